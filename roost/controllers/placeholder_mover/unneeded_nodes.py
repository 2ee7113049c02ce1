"""Find the nodes that only placeholders use, and that their pool can do without.

Cluster Autoscaler takes a node away when less than half of it is requested. A node that is full of
placeholders stays, although other nodes have room for them. The mover empties it of its own
placeholders. Other hubs' releases do the same with theirs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from roost.controllers.placeholder_mover.node_fitness import NodeJudge
from roost.controllers.placeholder_mover.view import MoverView
from roost_core.objects.node import Node
from roost_core.release.placeholder_sets import PlaceholderSet

# A node is unneeded once the others have room for so many times the set's placeholders, and others'
# on this node: with less, the next users would bring it back.
ROOM_TO_DO_WITHOUT: Final = 1.5
# It is needed again when they have room for fewer than this.
ROOM_TO_STAY_WITHOUT: Final = 1.0
# Cluster Autoscaler's --scale-down-utilization-threshold. Below it, it takes the node with its
# placeholders.
LEAST_REQUESTED: Final = 0.5
# An emptied node that is still there after so long isn't going to be taken: the pool is as small as
# it may be, or has no autoscaler.
GIVE_UP_SECONDS: Final = 3600.0
# Of a pool, the newest. In a larger one, a node less saves little.
MOST_NODES: Final = 200


@dataclass(frozen=True, slots=True)
class Unneeded:
    """A set's unneeded nodes, by uid."""

    # Since when each holds none of the set's placeholders, or the time of the plan; steady seconds.
    empty_since: Mapping[str, float] = field(default_factory=dict)
    # Nodes that were emptied in vain. They count as needed for as long as they are there.
    staying: frozenset[str] = frozenset()
    # Some of the set's placeholders are still on an unneeded node.
    is_emptying: bool = False

    @property
    def nodes(self) -> frozenset[str]:
        """Their uids."""
        return frozenset(self.empty_since)


def find_unneeded(
    view: MoverView, judge: NodeJudge, placeholder_set: PlaceholderSet, before: Unneeded
) -> Unneeded:
    """Return the set's unneeded nodes. before: what the last plan returned.

    The newest come first, for their images are the fewest.
    """
    placeholders = view.by_set[placeholder_set.name]
    spec = placeholders.spec
    if spec is None:
        return Unneeded(staying=before.staying)
    now = view.now.steady
    bound_to = Counter(pod.node_name for pod in placeholders.bound)
    fit = (
        node for node in view.newest_first if judge.judge_attraction(node, placeholder_set) is None
    )
    newest = list(islice(fit, MOST_NODES))
    candidates = {
        node.uid
        for node in newest
        if node.uid not in before.staying
        and _may_go(view, placeholder_set, node, before, has_some=bool(bound_to[node.name]))
    }
    # A node that isn't fit just now, as with an autoscaler's candidate taint, is remembered.
    fit_uids = {node.uid for node in newest}
    empty_since = {
        node.uid: before.empty_since[node.uid]
        for node in view.newest_first
        if node.uid in before.empty_since
        and node.uid not in fit_uids
        and not view.count_users(node.name)
    }
    if candidates:
        number = view.snapshot.stateful_sets[placeholder_set.stateful_set].replicas
        seats = {node.uid: view.count_room(node, spec) + bound_to[node.name] for node in newest}
        room = sum(seats.values())
        for node in newest:
            factor = ROOM_TO_STAY_WITHOUT if node.uid in before.empty_since else ROOM_TO_DO_WITHOUT
            room_of_others = room - seats[node.uid]
            # Each release moves its own: the others' placeholders need room as well.
            leaving = number + view.count_others(placeholder_set, node)
            if node.uid in candidates and room_of_others >= factor * leaving:
                room, number = room_of_others, leaving
                is_empty = not bound_to[node.name]
                empty_since[node.uid] = before.empty_since.get(node.uid, now) if is_empty else now
    staying = {uid for uid, since in empty_since.items() if now - since >= GIVE_UP_SECONDS}
    present = {node.uid for node in view.newest_first}
    return Unneeded(
        empty_since={uid: since for uid, since in empty_since.items() if uid not in staying},
        staying=(before.staying | staying) & present,
        is_emptying=any(
            bound_to[node.name] for node in newest if node.uid in empty_since.keys() - staying
        ),
    )


def _may_go(
    view: MoverView,
    placeholder_set: PlaceholderSet,
    node: Node,
    before: Unneeded,
    *,
    has_some: bool,
) -> bool:
    """Whether the node may go if the others have room. has_some: it has placeholders of the set."""
    if node.uid in before.empty_since:
        # A build that comes and goes doesn't bring placeholders back. A user does.
        return not view.count_users(node.name)
    if not view.is_unused(placeholder_set, node):
        return False
    return not has_some or view.requested_share(node) >= LEAST_REQUESTED
