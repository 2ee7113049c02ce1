"""Count what a class's warm set is made of: slots of nodes, how many nodes carry the class, and weights in order.

Knows nothing of pods' bodies, facts or the API. Packing alone fills the fullest node whatever it holds; an image's
holder alone empties no node. So the set keeps load together, and in it the pod goes where its images are known to be:
`webhook.rules.warm_finder` finds these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

MAX_NODES: Final = 30
# Holders, the emptiest first, of which is asked how sure they are: a bound on a review's time.
MAX_HOLDERS: Final = 200
# So many images fit on any node's disk.
SURE_IMAGES: Final = 16
_MAX_WEIGHT: Final = 100
_PODS: Final = "pods"


class Spare(NamedTuple):
    """Slots that a set has beyond its pods; below zero: so many too few."""

    pods: int = 0
    # Of the slots of the last node that the set takes in.
    percent: int = 0


def set_size(slots: Iterable[int], pods: int, spare: Spare) -> int:
    """How many nodes, in the order in which a set takes them in, carry so many pods; at least one if there is one."""
    size = 0
    rest = pods + spare.pods
    for more in slots:
        size += 1
        rest -= more
        if 100 * rest + spare.percent * more <= 0:
            break
    return size


def doubt(images_since: int) -> int:
    """How doubtful it is that a node still has an image, when so many others came since it was used: a rank from 0.

    Kubelets collect the image used longest ago, when the disk is full. How many fit isn't known, so each doubling is
    a rank; small numbers are alike, for no disk is so small.
    """
    return (images_since // SURE_IMAGES).bit_length()


def with_weights(names: Sequence[str]) -> list[tuple[str, int]]:
    """Weights that fall evenly from 100.

    Among MAX_NODES names two neighbours are 3 apart or more, so kube-scheduler still tells them apart when other terms
    of the pod, of weight 200 together, are scaled down to 100 with them.
    """
    count = len(names)
    return [(name, _MAX_WEIGHT * (count - place) // count) for place, name in enumerate(names)]


def slots_of(allocatable: Mapping[str, int], requests: Iterable[tuple[str, int]]) -> int:
    """How many pods with these requests a node takes in all; 0 while nobody knows what it can allocate.

    Amounts as kube-scheduler counts them: CPU in millicores, all else in units. What daemons and other classes use
    isn't deducted.
    """
    slots = allocatable.get(_PODS, 0)
    for resource, amount in requests:
        if amount > 0:
            slots = min(slots, allocatable.get(resource, 0) // amount)
    return slots
