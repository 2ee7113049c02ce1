"""The rule of warm sets, asked with a few plain nodes, and a set's size in its plainest form."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, cast

from roost_core.placement.warm_sets import Spare
from roost_core.release.pod_classes import Warm
from webhook.facts.warm_candidates import Candidates
from webhook.rules.warm import order_warm_nodes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from webhook.facts.warm import WarmFacts

IMAGE = "an-image"


def set_size(slots: Iterable[int], pods: int, spare: Spare) -> int:
    """Return how many nodes, in the order in which a set takes them, hold this many pods; at least
    1 if any.

    `Candidates` answers the same at once, for thousands of nodes.
    """
    size = 0
    remaining = pods + spare.pods
    for more in slots:
        size += 1
        remaining -= more
        if 100 * remaining + spare.percent * more <= 0:
            break
    return size


def size_of_set(slots: Iterable[int], pods: int, spare: Spare) -> int:
    """The same as the webhook answers it. pods: at least 1, which is the pod that comes."""
    nodes = [WarmNode(f"n{place}", 0, some, holds=False) for place, some in enumerate(slots)]
    facts = cast("WarmFacts", KnownNodes(nodes, running=pods - 1))
    return Candidates({node.name: node.slots for node in nodes}).free(spare, facts).set_size


class WarmNode(NamedTuple):
    """One node as a pod of the class sees it."""

    name: str
    # Pods of the class, bound there or on their way.
    pods: int
    # Pods of this size that it takes in all.
    slots: int
    # It is known to hold the pod's images.
    holds: bool
    # Seconds since 1970.
    created: float = 0.0
    # Images that came to it since a pod with this one's was bound or ended there.
    images_since: int = 0
    # Pods for which it is pulling.
    pulls: int = 0
    # Images that it is known to have.
    images: int = 0


class KnownNodes:
    """In the place of WarmFacts: what is known of these nodes."""

    def __init__(self, nodes: Sequence[WarmNode], running: int) -> None:
        self._nodes = {node.name: node for node in nodes}
        self._without_node = running - sum(node.pods for node in nodes)
        self.loads = {node.name: node.pods for node in nodes}
        self.pulls = {node.name: node.pulls for node in nodes}
        self.mark = object()

    def pods_on(self, node: str) -> int:
        return self._nodes[node].pods if node else self._without_node

    def image_counts(self, nodes: Iterable[str]) -> Iterable[int]:
        return [self._nodes[node].images for node in nodes]

    def holders(self, reference: str) -> frozenset[str]:
        return frozenset(
            node.name for node in self._nodes.values() if node.holds and reference == IMAGE
        )

    def images_since(self, node: str, _reference: str) -> int:
        return self._nodes[node].images_since


def choose_warm(
    nodes: Sequence[WarmNode], *, running: int, spare: int = 0, limit: int
) -> list[tuple[str, int]]:
    """Nodes that a pod should prefer, with weights 1 to 100, best first; [] when the set is full.

    running: pods of the class on these nodes or on none yet. spare: slots that the set has beyond
    them and this pod; negative: that many too few. limit: nodes named at most.
    """
    facts = cast("WarmFacts", KnownNodes(nodes, running))
    slots = {
        node.name: node.slots for node in sorted(nodes, key=lambda node: (node.created, node.name))
    }
    warm = Warm(pods_per_node=0, spare=Spare(spare), nodes=limit)
    return order_warm_nodes(warm, Candidates(slots), facts, {IMAGE: frozenset()}).nodes
