"""Find the nodes that only placeholders use, and that their pool can do without.

Cluster Autoscaler takes a node away when less than half of it is requested. A node that is full of
placeholders stays, although other nodes have room for them. The mover empties such a node.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from roost.controllers.placeholder_mover.node_fitness import NodeJudge
from roost.controllers.placeholder_mover.view import MoverView
from roost_core.release.placeholder_sets import PlaceholderSet

# A node is unneeded once the others have room for so many times the set's placeholders: with less,
# the next users would bring it back.
ROOM_TO_DO_WITHOUT: Final = 1.5
# It is needed again when they have room for fewer than this.
ROOM_TO_STAY_WITHOUT: Final = 1.0
# Of the newest nodes of a pool. In a pool of more, a node less saves little.
MOST_NODES: Final = 200


def find_unneeded(
    view: MoverView, judge: NodeJudge, placeholder_set: PlaceholderSet, before: frozenset[str]
) -> frozenset[str]:
    """Return the uids of the set's unneeded nodes. before: what the last plan returned.

    Each of them is fit to attract placeholders, and only the set's placeholders use it. The newest
    come first, for their images are the fewest.
    """
    placeholders = view.by_set[placeholder_set.name]
    spec = placeholders.spec
    newest = view.newest_first[:MOST_NODES]
    if spec is None or not any(view.is_unused(placeholder_set, node) for node in newest):
        return frozenset()
    number = view.count_wanted(placeholder_set)
    bound_to = Counter(pod.node_name for pod in placeholders.bound)
    fit = [node for node in newest if judge.why_unattractive(node, placeholder_set) is None]
    seats = {node.uid: view.count_room(node, spec) + bound_to[node.name] for node in fit}
    room = sum(seats.values())
    unneeded = set()
    for node in fit:
        factor = ROOM_TO_STAY_WITHOUT if node.uid in before else ROOM_TO_DO_WITHOUT
        room_of_others = room - seats[node.uid]
        if view.is_unused(placeholder_set, node) and room_of_others >= factor * number:
            unneeded.add(node.uid)
            room = room_of_others
    return frozenset(unneeded)
