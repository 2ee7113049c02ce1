"""Choose the node that attracts each set's placeholders: the newest fit one that the pool needs,
without changing it every minute.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Final, NamedTuple

from roost.controllers.contract.actions import Action, ChangeNode, Notice
from roost.controllers.contract.snapshot import Moment, Snapshot
from roost.controllers.placeholder_mover.node_fitness import NodeJudge, Reason
from roost.controllers.placeholder_mover.unneeded_nodes import MOST_NODES, Unneeded
from roost.controllers.placeholder_mover.view import MoverView
from roost_core.objects.node import Node
from roost_core.release.placeholder_sets import PlaceholderSet

MARK: Final = "true"


class NodeMark(NamedTuple):
    """A set's mark as this replica knows it."""

    node: str
    uid: str
    # Steady seconds: when it was set, or first seen.
    since: float


class LabelChange(NamedTuple):
    """A mark that a node gains or loses."""

    node: Node
    label: str
    gains: bool
    why: str


def plan_marks(
    view: MoverView,
    judge: NodeJudge,
    before: Mapping[str, NodeMark],
    unneeded: Mapping[str, Unneeded],
) -> tuple[Mapping[str, NodeMark], list[Action]]:
    """Mark one node for each set, and remove every other mark of this release.

    before: the last plan's marks, by set. unneeded: the nodes that each set's pool can do without.
    Returns the marks of now, and the actions that bring them about.
    """
    snapshot = view.snapshot
    settings = view.settings
    now = view.now
    changes: list[LabelChange] = []
    notices: list[Notice] = []
    marks: dict[str, NodeMark] = {}
    carriers = _carriers(snapshot.nodes.values(), settings.label_prefix)
    for placeholder_set in settings.sets:
        carrying = carriers.pop(placeholder_set.label, [])
        current = _current(carrying, before.get(placeholder_set.name), snapshot, now)
        without = unneeded.get(placeholder_set.name, Unneeded())
        is_on_unneeded = current is not None and current.uid in without.nodes
        is_emptying = without.is_emptying or is_on_unneeded
        choose = _choose_in_place_of if is_emptying else _choose_newest
        chosen = choose(view, judge, placeholder_set, without.nodes, current)
        if chosen is not None:
            notices.append(_notice(placeholder_set, chosen, current, _why_chosen(is_emptying)))
            current = NodeMark(chosen.name, chosen.uid, now.steady)
        if current is not None:
            marks[placeholder_set.name] = current
            marked = snapshot.nodes[current.node]
            if placeholder_set.label not in marked.labels:
                why = f"attracts set {placeholder_set.name}: {_why_chosen(is_emptying)}"
                changes.append(LabelChange(marked, placeholder_set.label, True, why))
        why = f"another node attracts set {placeholder_set.name}"
        changes += [
            LabelChange(node, placeholder_set.label, False, why)
            for node in carrying
            if current is None or node.name != current.node
        ]
    why = "no set of this release has this mark"
    changes += [
        LabelChange(node, label, False, why) for label, nodes in carriers.items() for node in nodes
    ]
    return marks, [*_change_nodes(changes), *notices]


def _change_nodes(changes: Iterable[LabelChange]) -> list[ChangeNode]:
    """One action a node; nodes that gain a mark come first."""
    by_node: dict[str, list[LabelChange]] = {}
    for change in changes:
        by_node.setdefault(change.node.name, []).append(change)
    actions = []
    for name, of_node in by_node.items():
        gained = sorted({change.label for change in of_node if change.gains})
        lost = {change.label for change in of_node if not change.gains}
        actions.append(
            ChangeNode(
                node=name,
                uid=of_node[0].node.uid,
                set_labels=dict.fromkeys(gained, MARK),
                remove_labels=frozenset(lost - {*gained}),
                why="; ".join(dict.fromkeys(change.why for change in of_node)),
            )
        )
    return sorted(actions, key=lambda action: (not action.set_labels, action.node))


def _carriers(nodes: Iterable[Node], prefix: str) -> dict[str, list[Node]]:
    """Nodes by each mark of this release that they carry."""
    carriers: dict[str, list[Node]] = {}
    for node in nodes:
        for key in node.labels:
            if key.startswith(prefix):
                carriers.setdefault(key, []).append(node)
    return carriers


def _current(
    carrying: Sequence[Node], before: NodeMark | None, snapshot: Snapshot, now: Moment
) -> NodeMark | None:
    """Return the last plan's mark, whose label may be on its way; else the newest marked node's."""
    if before is not None:
        node = snapshot.nodes.get(before.node)
        if node is not None and node.uid == before.uid:
            return before
    newest = max(carrying, key=lambda node: (node.created, node.name), default=None)
    return None if newest is None else NodeMark(newest.name, newest.uid, now.steady)


def _choose_newest(
    view: MoverView,
    judge: NodeJudge,
    placeholder_set: PlaceholderSet,
    unneeded: frozenset[str],
    current: NodeMark | None,
) -> Node | None:
    """Return the node that gets the mark: the newest fit one that the pool needs. None: the mark
    stays where it is.
    """
    for node in view.newest_first:
        if node.uid in unneeded:
            continue
        unfit = judge.judge_attraction(node, placeholder_set)
        if unfit is None:
            is_kept = current is not None and _keeps(view, judge, placeholder_set, current, node)
            return None if is_kept else node
        if unfit.seconds_left is not None:
            view.waits.append(unfit.seconds_left)
    return None


def _choose_in_place_of(
    view: MoverView,
    judge: NodeJudge,
    placeholder_set: PlaceholderSet,
    unneeded: frozenset[str],
    current: NodeMark | None,
) -> Node | None:
    """Return the node that gets the mark while placeholders leave the unneeded nodes: the newest
    fit one with room. None: the mark stays where it is.
    """

    def is_fit(node: Node) -> bool:
        is_attractive = judge.judge_attraction(node, placeholder_set) is None
        return is_attractive and node.uid not in unneeded

    marked = None if current is None else view.snapshot.nodes[current.node]
    is_marked_fit = marked is not None and is_fit(marked)
    if marked is not None and is_marked_fit and not view.is_full(placeholder_set, marked):
        return None
    fit = list(islice(filter(is_fit, view.newest_first), MOST_NODES))
    for node in fit:
        if not view.is_full(placeholder_set, node):
            return node
    # All are full, so no placeholder could move.
    return None if is_marked_fit or not fit else fit[0]


def _keeps(
    view: MoverView,
    judge: NodeJudge,
    placeholder_set: PlaceholderSet,
    current: NodeMark,
    chosen: Node,
) -> bool:
    """Whether the mark stays where it is although `chosen` is the newest fit node."""
    node = view.snapshot.nodes[current.node]
    if chosen.name == node.name:
        return True
    unfit = judge.judge_attraction(node, placeholder_set)
    # Nodes created within the same second are equally new.
    if chosen.created <= node.created:
        return unfit is None or _outlasts(view, judge, placeholder_set, node, unfit)
    if unfit is not None:
        return False
    seconds_left = current.since + view.settings.keep_mark_seconds - view.now.steady
    if seconds_left <= 0 or view.is_full(placeholder_set, node):
        return False
    view.waits.append(seconds_left)
    return True


def _outlasts(
    view: MoverView, judge: NodeJudge, placeholder_set: PlaceholderSet, node: Node, unfit: Reason
) -> bool:
    """Whether the pool's newest node may be fit again soon: placeholders moved to an older one
    would come back.
    """
    if unfit.is_for_good:
        return False
    patience_seconds = view.settings.flap_seconds + view.settings.keep_mark_seconds
    seconds_left = patience_seconds - judge.unfit_seconds(node, placeholder_set)
    if seconds_left <= 0:
        return False
    view.waits.append(seconds_left)
    return True


def _why_chosen(is_emptying: bool) -> str:
    if is_emptying:
        return "the pool can do without its nodes that only placeholders use"
    return "it is the newest fit node of their pool"


def _notice(
    placeholder_set: PlaceholderSet, chosen: Node, before: NodeMark | None, why: str
) -> Notice:
    instead = f" instead of {before.node}" if before is not None else ""
    message = (
        f"Placeholders of set {placeholder_set.name} are attracted to this node{instead}: {why}."
    )
    return Notice.on_node(chosen.name, chosen.uid, "DrawsPlaceholders", message)
