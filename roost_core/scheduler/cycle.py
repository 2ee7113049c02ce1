"""Decide one pod as one kube-scheduler cycle does: filter, score, choose a node; or say why not,
and pre-empt.

The state isn't changed. The caller adds the pod to it, bound or nominated, before it decides the
next one. Source: kube-scheduler's schedule_one.go, v1.33 to v1.37.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from roost_core.objects.pod import Pod
from roost_core.scheduler.filters import NOT_NAMED, Cycle
from roost_core.scheduler.node_rows import NodeRow
from roost_core.scheduler.plugins import DEFAULT_PREEMPTION, DYNAMIC_RESOURCES
from roost_core.scheduler.preemption import Nomination, preempt
from roost_core.scheduler.profile import Profile
from roost_core.scheduler.rejections import Rejection, count_reasons, no_node_text
from roost_core.scheduler.scores import Chosen, ScoreTable, score_chosen
from roost_core.scheduler.state import ClusterState

NO_NODES: Final = "no nodes available to schedule pods"
# Clusters with fewer nodes are searched completely, and at least this many fitting nodes are looked
# for.
_MIN_FEASIBLE: Final = 100
_MIN_FEASIBLE_PERCENT: Final = 5
# The longest message of an Event.
_MAX_NOTE: Final = 1024
_CUT: Final = b" ..."


@dataclass(frozen=True, slots=True)
class SchedulingDecision:
    """The outcome of one cycle."""

    # None: it fits on no node.
    node: str | None
    # None if only one node passed, or was tried: the only one that fits, or the nominated one.
    table: ScoreTable | None = None
    # Why the other nodes that were tried don't fit, by name.
    rejections: Mapping[str, Rejection] = field(default_factory=dict)
    # Pre-emption for it, if it fits on no node.
    nomination: Nomination | None = None
    # kube-scheduler's FailedScheduling message; "" if it has a node.
    message: str = ""
    # Where the next cycle's search begins; matters with 100 nodes and more.
    next_start: int = 0

    @property
    def reasons(self) -> dict[str, int]:
        """How many nodes each reason excluded."""
        return count_reasons(self.rejections)


def as_note(message: str) -> bytes:
    """A message as kube-scheduler's Event has it: UTF-8, cut after 1024 bytes, be it within a
    letter.
    """
    encoded = message.encode()
    return encoded if len(encoded) <= _MAX_NOTE else encoded[: _MAX_NOTE - len(_CUT)] + _CUT


def schedule(
    pod: Pod, state: ClusterState, profile: Profile, *, start: int = 0, with_preemption: bool = True
) -> SchedulingDecision:
    """Decide a pod that isn't bound, in this state, which isn't changed.

    A pod that is bound in the state already stands in its own way there: ask inside
    `state.without(pod.key)`. start: the `next_start` of the decision before. with_preemption: look
    for victims when it fits nowhere.
    """
    if not state.rows:
        return SchedulingDecision(None, message=NO_NODES)
    cycle = Cycle(pod, state, profile)
    rejections: dict[str, Rejection] = {}
    next_start = start
    if cycle.refusal is None:
        nominated = state.rows.get(pod.nominated_node)
        if nominated is not None:
            verdict = cycle.check_with_nominated(nominated)
            if verdict is None:
                return SchedulingDecision(nominated.name, next_start=start)
            # Looked at, so it counts even where the search below doesn't come to it.
            rejections[nominated.name] = verdict
        feasible = _find_feasible(cycle, state, start, rejections)
        next_start = (start + len(feasible) + len(rejections)) % len(state.rows)
        if feasible:
            if len(feasible) == 1 or not profile.scores:
                return SchedulingDecision(
                    state.names[feasible[0]], None, rejections, next_start=next_start
                )
            table = score_chosen(Chosen(state, feasible), cycle)
            return SchedulingDecision(
                table.nodes[table.place_of_best], table, rejections, next_start=next_start
            )
        text = no_node_text(len(state.rows), rejections, NOT_NAMED)
    else:
        text = f"0/{len(state.rows)} nodes are available: {cycle.refusal}."
    nomination = None
    after = ""
    if with_preemption:
        nomination, after = _post_filter(cycle, rejections)
    return SchedulingDecision(
        None, None, rejections, nomination, f"{text} {after}" if after else text, next_start
    )


def _find_feasible(
    cycle: Cycle, state: ClusterState, start: int, rejections: dict[str, Rejection]
) -> Sequence[int]:
    """Places in `ordered` of nodes that fit, as many as are looked for; fills in the rejections of
    those passed by.
    """
    rows: Sequence[NodeRow] = state.ordered
    if cycle.named_nodes is not None:
        rows = [row for row in rows if row.name in cycle.named_nodes]
    number = len(rows)
    wanted = feasible_wanted(number, cycle.profile)
    begin = start % number if number else 0
    feasible: list[int] = []
    for row, verdict in cycle.check_all((*rows[begin:], *rows[:begin]) if begin else rows):
        if verdict is not None:
            rejections[row.name] = verdict
        elif len(feasible) == wanted:
            # kube-scheduler stops at the first one beyond the limit.
            break
        else:
            feasible.append(state.places[row.name])
    return feasible


def feasible_wanted(nodes: int, profile: Profile) -> int:
    """How many fitting nodes kube-scheduler looks for among this many nodes."""
    if not profile.scores:
        return 1
    if nodes < _MIN_FEASIBLE:
        return nodes
    percent = profile.percentage_of_nodes_to_score or max(50 - nodes // 125, _MIN_FEASIBLE_PERCENT)
    return max(nodes * percent // 100, _MIN_FEASIBLE)


def _post_filter(
    cycle: Cycle, rejections: Mapping[str, Rejection]
) -> tuple[Nomination | None, str]:
    """Run the profile's PostFilter plugins in turn.

    Returns the nomination, and what they add to the message.
    """
    messages = []
    for plugin in cycle.profile.post_filters:
        if plugin == DYNAMIC_RESOURCES:
            if cycle.refusal is not None:
                # Its own PreFilter wasn't reached: kube-scheduler takes that for an error, and
                # stops here.
                return None, "not found"
            # From 1.37 on it says nothing of pods without claims.
            if cycle.profile.minor < 37:
                messages.append("no new claims to deallocate")
        elif plugin == DEFAULT_PREEMPTION:
            nomination, message = preempt(cycle.pod, cycle.state, cycle.profile, rejections)
            if nomination is not None:
                # From 1.37 on success is told too, in place of what the plugins before said.
                return nomination, "" if cycle.profile.minor < 37 else f"preemption: {message}"
            messages.append(f"preemption: {message}")
    return None, ", ".join(messages)
