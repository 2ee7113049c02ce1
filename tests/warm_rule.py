"""The rule of warm sets in a few plain lines: what `webhook.rules.warm_finder`, which keeps what it can, is held to."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from roost_core.placement.warm_sets import MAX_HOLDERS, NEW_NODE_IMAGES, Spare, doubt, set_size, with_weights

if TYPE_CHECKING:
    from collections.abc import Sequence


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
    # Images that came to it since a pod with this one's was bound or ended there; 0 where a label tells of them.
    images_since: int = 0
    # Pods for which it is pulling.
    pulls: int = 0
    # Images that it is known to have.
    images: int = 0


def choose_warm(
    nodes: Sequence[WarmNode], *, running: int, spare: int = 0, percent: int = 0, limit: int
) -> list[tuple[str, int]]:
    """Nodes that the pod should prefer, with weights 1 to 100, best first; [] when the set is full.

    running: pods of the class on these nodes or on none yet. spare: slots that the set has beyond them and this pod;
    percent: the same, of the slots of its last node; negative: that many too few. limit: nodes named at most.
    """
    order = sorted(nodes, key=lambda node: (node.created, node.name))
    members = order[: set_size((node.slots for node in order), running + 1, Spare(spare, percent))]
    free = [node for node in members if node.pods < node.slots]
    emptiest = sorted((node for node in free if node.holds), key=lambda node: node.pods)
    holders = sorted(emptiest[:MAX_HOLDERS], key=lambda node: doubt(node.images_since))
    pulling = [node for node in free if not node.holds]
    others = sorted(pulling, key=lambda node: (node.pulls, node.images < NEW_NODE_IMAGES, node.pods))
    beyond = [node for node in order[len(members) :] if node.pods < node.slots]
    return with_weights([node.name for node in [*holders, *others, *beyond][:limit]])
