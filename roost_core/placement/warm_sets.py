"""The parts of a class's warm set: slots of nodes, spare room, doubt and weights in order. How many
nodes a set has is worked out in `webhook/facts/warm_candidates.py`.

Knows nothing of pods' bodies, facts or the API. Packing alone would choose the fullest node, even
if it lacks the image. Choosing only by image would never empty a node. So the set keeps load
together, and in it the pod goes where its images are known to be: `webhook.rules.warm` finds these.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from roost_core.objects.pod import MAX_WEIGHT

MAX_NODES: Final = 30
# Holders, the emptiest first, whose doubt is computed: limits the time of a review.
MAX_HOLDERS: Final = 200
# A node with fewer is new: others are more likely to have parts of an image, and to be asked for it
# again.
NEW_NODE_IMAGES: Final = 30
# This many images fit on any node's disk.
SURE_IMAGES: Final = 16
_PODS: Final = "pods"


class Spare(NamedTuple):
    """Slots that a set has beyond its pods; negative: that many too few."""

    pods: int = 0
    # A percentage of the slots of the set's last node.
    percent: int = 0


def doubt(images_since: int) -> int:
    """Rank, from 0, how doubtful it is that a node still has an image after this many others were
    pulled since its use.

    Kubelets collect the image used longest ago, when the disk is full. How many fit isn't known, so
    each doubling is a rank; small numbers are alike, for no disk is so small.
    """
    return (images_since // SURE_IMAGES).bit_length()


def with_weights(names: Sequence[str]) -> list[tuple[str, int]]:
    """Return weights that fall evenly from 100.

    Among MAX_NODES names two neighbours are 3 apart or more, so kube-scheduler still tells them
    apart when other terms of the pod, of weight 200 together, are scaled down to 100 with them.
    """
    count = len(names)
    return [(name, MAX_WEIGHT * (count - place) // count) for place, name in enumerate(names)]


def slots_of(allocatable: Mapping[str, int], requests: Iterable[tuple[str, int]]) -> int:
    """Return how many pods with these requests an empty node takes; 0 if its allocatable is
    unknown.

    Amounts as kube-scheduler counts them: CPU in millicores, all else in units. What daemons and
    other classes use isn't deducted.
    """
    slots = allocatable.get(_PODS, 0)
    for resource, amount in requests:
        if amount > 0:
            slots = min(slots, allocatable.get(resource, 0) // amount)
    return slots
