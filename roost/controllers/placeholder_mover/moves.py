"""Choose which placeholders to evict: those that the scheduler would now put on the marked node, a
few at a time.

Every reason not to evict is here: some hold for a whole set (`why_set_stays`), others for one
placeholder (`why_placeholder_stays`). Nothing moves while anything is unsettled.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import Final

from roost.controllers.contract.actions import Action, EvictPod
from roost.controllers.placeholder_mover.marks import NodeMark
from roost.controllers.placeholder_mover.move_memory import (
    WINDOW_SECONDS,
    Move,
    MoveMemory,
    settle_moves,
)
from roost.controllers.placeholder_mover.node_fitness import NodeJudge, Reason
from roost.controllers.placeholder_mover.scheduler_model import Prediction, SchedulerModel
from roost.controllers.placeholder_mover.unneeded_nodes import Unneeded
from roost.controllers.placeholder_mover.view import MoverView
from roost_core.objects.pod import Pod
from roost_core.placement.labels import PLACEHOLDER_SET_LABEL
from roost_core.release.placeholder_sets import PlaceholderSet


def why_set_stays(
    view: MoverView,
    judge: NodeJudge,
    placeholder_set: PlaceholderSet,
    mark: NodeMark | None,
    memory: MoveMemory,
) -> Reason | None:
    """Return why none of the set's placeholders may be evicted now; None if some may."""
    snapshot = view.snapshot
    settings = view.settings
    now = view.now
    placeholders = view.by_set[placeholder_set.name]
    stateful_set = snapshot.stateful_sets.get(placeholder_set.stateful_set)
    back_off = memory.back_offs.get(placeholder_set.name)
    if mark is None:
        return Reason("no marked node")
    node = snapshot.nodes[mark.node]
    if placeholder_set.label not in node.labels:
        return Reason("mark on its way")
    unfit = judge.judge_attraction(node, placeholder_set) or judge.why_unmoved(node)
    if unfit is not None:
        return Reason(f"marked node: {unfit.text}", unfit.seconds_left)
    if not view.preempted_on.isdisjoint(
        {mark.node, *(pod.node_name for pod in placeholders.bound)}
    ):
        return Reason("a user waits for room")
    if stateful_set is None or stateful_set.is_rolling:
        return Reason("the set is being rolled out")
    if any(move.set_name == placeholder_set.name for move in memory.in_flight):
        return Reason("a move is under way")
    if placeholders.unsettled or len(placeholders.bound) != stateful_set.replicas:
        return Reason("placeholders are pending")
    if back_off is not None and back_off.until > now.steady:
        return Reason("backing off", back_off.until - now.steady)
    if settings.profile_fault(placeholders.bound):
        return Reason("the scheduler's configuration can't be followed")
    return None


def why_placeholder_stays(
    view: MoverView, judge: NodeJudge, pod: Pod, mark: NodeMark, unneeded: frozenset[str]
) -> Reason | None:
    """Return why this placeholder must not be evicted from its node now; None if it may.

    unneeded: uids of the nodes that the set's pool can do without.
    A label or annotation of the pod or of its node that keeps it in place is read here.
    """
    node = view.snapshot.nodes.get(pod.node_name)
    if node is None:
        return Reason("their node: gone")
    unfit = judge.why_unmoved(node)
    if unfit is not None:
        return Reason(f"their node: {unfit.text}", unfit.seconds_left)
    # Users need room where most of them are: placeholders don't go where more users are, unless a
    # node can go for it.
    if node.uid not in unneeded and view.count_users(node.name) < view.count_users(mark.node):
        return Reason("more users are on the marked node")
    return None


# Predictions in one plan: each takes milliseconds where there are thousands of nodes.
MAX_PREDICTIONS: Final = 20
# Until the model takes in the next part of a large cluster.
MODEL_SECONDS: Final = 0.5
_ELSEWHERE: Final = Reason("the scheduler would put them elsewhere")


# Why placeholders of a set stay where they are for now although they aren't on the marked node ->
# how many.
Holds = Mapping[Reason, int]


def plan_moves(
    view: MoverView,
    judge: NodeJudge,
    marks: Mapping[str, NodeMark],
    memory: MoveMemory,
    model: SchedulerModel,
    *,
    unneeded: Mapping[str, Unneeded],
) -> tuple[list[Action], MoveMemory, Mapping[str, Holds]]:
    """Choose evictions, at most as many as the minute's budget still allows; return what holds
    others, by set, too.
    """
    settings = view.settings
    now = view.now
    memory, notices = settle_moves(memory, view.snapshot, settings, now)
    requested: dict[str, Move] = {}
    evictions: list[Action] = []
    holds: dict[str, Holds] = {}
    served = {
        placeholder_set.name: memory.served.get(placeholder_set.name, -inf)
        for placeholder_set in settings.sets
    }
    # Predictions and evictions may not suffice for all sets.
    for placeholder_set in sorted(
        settings.sets, key=lambda placeholder_set: served[placeholder_set.name]
    ):
        name = placeholder_set.name
        mark = marks.get(name)
        without = unneeded.get(name, Unneeded())
        elsewhere = [
            pod
            for pod in view.by_set[name].bound
            if mark is None or pod.node_name != mark.node
            if not without.is_emptying or _is_on(view, pod, without.nodes)
        ]
        if not elsewhere:
            continue
        reason = why_set_stays(view, judge, placeholder_set, mark, memory)
        budget = settings.evictions_per_minute - len(memory.evictions) - len(requested)
        if reason is None and budget <= 0:
            oldest = memory.evictions[0] if memory.evictions else None
            seconds_left = None if oldest is None else oldest + WINDOW_SECONDS - now.steady
            reason = Reason("the minute's evictions are used up", seconds_left)
        elif reason is None and model.predictions >= MAX_PREDICTIONS:
            reason = Reason("other sets come first")
        elif reason is None and not model.follow_once(view.snapshot):
            reason = Reason("the scheduler's model is being made", MODEL_SECONDS)
        if reason is not None:
            holds[name] = {reason: len(elsewhere)}
            continue
        assert mark is not None  # noqa: S101 - without a mark, the set stays
        served[name] = now.steady
        chosen, holds[name] = _choose_moves(
            view, judge, model, mark, elsewhere, unneeded=without.nodes, budget=budget
        )
        for pod, move in chosen:
            requested[move.uid] = move
            why = (
                f"set {name}: the scheduler would now put it on {move.target} rather than"
                f" {move.source}"
            )
            evictions.append(EvictPod.of(pod, why))
    model.undo()
    view.waits += [
        reason.seconds_left
        for held in holds.values()
        for reason in held
        if reason.seconds_left is not None
    ]
    return [*evictions, *notices], replace(memory, requested=requested, served=served), holds


def _is_on(view: MoverView, pod: Pod, uids: frozenset[str]) -> bool:
    """Whether the pod is on one of the nodes."""
    node = view.snapshot.nodes.get(pod.node_name)
    return node is not None and node.uid in uids


def _choose_moves(
    view: MoverView,
    judge: NodeJudge,
    model: SchedulerModel,
    mark: NodeMark,
    elsewhere: Sequence[Pod],
    *,
    unneeded: frozenset[str],
    budget: int,
) -> tuple[Sequence[tuple[Pod, Move]], Holds]:
    """Return one set's evictions, users' fullest node first, and what holds each other placeholder.

    Each prediction builds on the moves chosen before it.
    """
    target = view.snapshot.nodes[mark.node]
    chosen: list[tuple[Pod, Move]] = []
    held: Counter[Reason] = Counter()
    # Nodes whose placeholders the scheduler would put elsewhere than on the marked node.
    repelled: set[str] = set()
    # Users should find room where most of them are: placeholders leave that node first.
    for pod in sorted(
        elsewhere, key=lambda pod: (-view.count_users(pod.node_name), pod.node_name, pod.name)
    ):
        if pod.node_name in repelled:
            held[_ELSEWHERE] += 1
            continue
        reason = why_placeholder_stays(view, judge, pod, mark, unneeded)
        if reason is not None:
            held[reason] += 1
            continue
        profile = view.settings.profiles.get(pod.scheduler_name)
        if profile is None:
            ends = Reason("their scheduler is not one of Roost's")
            break
        # A prediction costs more than counting, so the room is counted first.
        if not view.has_room(target, pod.spec):
            ends = Reason("the marked node has no room")
            break
        if model.predictions >= MAX_PREDICTIONS:
            ends = Reason("the next plan goes on")
            break
        prediction = model.try_move(pod, mark.node, profile)
        if prediction is Prediction.REJECTED:
            ends = Reason("the marked node refuses them")
            break
        if prediction is Prediction.ELSEWHERE:
            repelled.add(pod.node_name)
            held[_ELSEWHERE] += 1
            continue
        if len(chosen) == budget:
            ends = Reason("the minute's evictions are used up")
            break
        set_name = pod.labels[PLACEHOLDER_SET_LABEL]
        chosen.append(
            (pod, Move(set_name, pod.key, pod.uid, pod.node_name, mark.node, view.now.steady))
        )
    else:
        return chosen, held
    # Whatever ended the choice holds this placeholder and those after it.
    held[ends] += len(elsewhere) - len(chosen) - held.total()
    return chosen, held
