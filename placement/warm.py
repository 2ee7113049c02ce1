"""Choose the warm nodes of a pod: those of the smallest set that carries its class, holders of its images first.

Owns the set, the order in it and the weights; knows nothing of pods' bodies, facts or the API. Packing alone fills the
fullest node whatever it holds; an image's holder alone empties no node. So the set keeps load together, and in it the
pod goes where its images are known to be, and to the emptiest such node.
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

MAX_NODES: Final = 30
_MAX_WEIGHT: Final = 100
_PODS: Final = "pods"


class WarmNode(NamedTuple):
    """One node as a pod of the class sees it."""

    name: str
    # Pods of the class, bound there or on their way.
    pods: int
    # Pods of this size that it takes in all.
    seats: int
    # It is known to hold the pod's images.
    holds: bool


def choose_warm(nodes: Sequence[WarmNode], *, running: int, spare: int, limit: int) -> list[tuple[str, int]]:
    """Nodes that the pod should prefer, with weights 1 to 100, best first; [] when the set is full.

    running: pods of the class on these nodes or on none yet. spare: seats that the set has beyond them and this pod;
    negative: that many pods too few, which then go wherever the profile packs them. limit: nodes named at most.
    """
    order = sorted(nodes, key=lambda node: (-node.pods, node.name))
    members = order[: set_size((node.seats for node in order), running + 1 + spare)]
    free = [node for node in members if node.pods < node.seats]
    free.sort(key=lambda node: (not node.holds, node.pods, node.name))
    return with_weights([node.name for node in free[:limit]])


def set_size(seats: Iterable[int], wanted: int) -> int:
    """How many nodes, in the order in which a set takes them in, carry `wanted` pods; at least one if there is one."""
    size = 0
    for carried in accumulate(seats):
        size += 1
        if carried >= wanted:
            break
    return size


def with_weights(names: Sequence[str]) -> list[tuple[str, int]]:
    """Weights that fall evenly from 100.

    Among MAX_NODES names two neighbours are 3 apart or more, so kube-scheduler still tells them apart when other terms
    of the pod, of weight 200 together, are scaled down to 100 with them.
    """
    count = len(names)
    return [(name, _MAX_WEIGHT * (count - place) // count) for place, name in enumerate(names)]


def seats_of(allocatable: Mapping[str, int], requests: Iterable[tuple[str, int]]) -> int:
    """How many pods with these requests a node takes in all; 0 while nobody knows what it can allocate.

    Amounts as kube-scheduler counts them: CPU in millicores, all else in units. What daemons and other classes use
    isn't deducted.
    """
    seats = allocatable.get(_PODS, 0)
    for resource, amount in requests:
        if amount > 0:
            seats = min(seats, allocatable.get(resource, 0) // amount)
    return seats
