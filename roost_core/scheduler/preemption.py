"""Choose the pods that kube-scheduler would delete to make room for one of higher priority.

Source: kube-scheduler's DefaultPreemption plugin and its preemption package, v1.33 to v1.37.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from roost_core.objects.pod import Pod
from roost_core.objects.selectors import selector_matches
from roost_core.scheduler.filters import Cycle
from roost_core.scheduler.node_rows import NodeRow
from roost_core.scheduler.profile import Profile
from roost_core.scheduler.rejections import Rejection, no_node_text
from roost_core.scheduler.state import ClusterState
from roost_core.scheduler.surroundings import DisruptionBudget

NEVER: Final = "not eligible due to preemptionPolicy=Never."
WAITING: Final = "not eligible due to a terminating pod on the nominated node."
NO_VICTIMS: Final = Rejection(("No preemption victims found for incoming pod",), True)
NOT_HELPFUL: Final = Rejection(("Preemption is not helpful for scheduling",), True)
# Added to each victim's priority, so that none counts as less than nothing: the lowest priority is
# -2**31. So of equal priorities, fewer victims are a smaller sum, as in kube-scheduler.
_PRIORITY_SHIFT: Final = 2**31
# At least this share and this number of the nodes that could help are tried: kube-scheduler's
# defaults.
_CANDIDATES_PERCENT: Final = 10
_LEAST_CANDIDATES: Final = 100


@dataclass(frozen=True, slots=True)
class Nomination:
    """Where room is made, and the victims, most important first."""

    node: str
    victims: tuple[Pod, ...]
    # How many victims violate a PodDisruptionBudget.
    violations: int = 0
    # Nodes that are just as good: kube-scheduler takes any of these and `node`.
    equals: tuple[str, ...] = ()


def preempt(
    pod: Pod,
    state: ClusterState,
    profile: Profile,
    rejections: Mapping[str, Rejection] | None = None,
) -> tuple[Nomination | None, str]:
    """Find the node and the victims for a pod that fits on no node, and the message as in the
    FailedScheduling Event.

    rejections: what the filters said of each node, when that is known. kube-scheduler draws where
    its search begins, here it begins with the first node: that matters only where more nodes could
    help than are tried (100 by default). Pods that haven't started count as started last.
    """
    cycle = Cycle(pod, state, profile)
    if rejections is None:
        rejections = {
            row.name: verdict
            for row in state.ordered
            if (verdict := cycle.check_with_nominated(row)) is not None
        }
    if not pod.preempts:
        return None, NEVER
    if _is_waiting(pod, state, rejections):
        return None, WAITING
    helpful = [
        row
        for row in state.ordered
        if (verdict := rejections.get(row.name)) is not None and not verdict.unresolvable
    ]
    wanted = min(max(len(helpful) * _CANDIDATES_PERCENT // 100, _LEAST_CANDIDATES), len(helpful))
    candidates: list[Nomination] = []
    failures: dict[str, Rejection] = {}
    for row in helpful:
        outcome = _victims_on(cycle, row, state.surroundings.budgets)
        if isinstance(outcome, Rejection):
            failures[row.name] = outcome
            continue
        candidates.append(outcome)
        if len(candidates) >= wanted and any(not candidate.violations for candidate in candidates):
            break
    if not candidates:
        return None, no_node_text(len(state.rows), failures, NOT_HELPFUL)
    best = _best(candidates)
    chosen = replace(best[0], equals=tuple(candidate.node for candidate in best[1:]))
    # kube-scheduler says so from 1.37 on.
    return (
        chosen,
        (
            f"found a potential placement for pod on node {chosen.node}, preempting"
            f" {len(chosen.victims)} victims"
        ),
    )


def _is_waiting(pod: Pod, state: ClusterState, rejections: Mapping[str, Rejection]) -> bool:
    """Whether earlier victims are still terminating on the pod's nominated node."""
    row = state.rows.get(pod.nominated_node)
    if row is None:
        return False
    verdict = rejections.get(row.name)
    if verdict is not None and verdict.unresolvable:
        return False
    return any(
        victim.priority < pod.priority and victim.leaving and victim.preempted
        for victim in row.pods.values()
    )


def _victims_on(
    cycle: Cycle, row: NodeRow, budgets: Sequence[DisruptionBudget]
) -> Nomination | Rejection:
    """All pods of lower priority go; then each may stay that can, those with a budget first, the
    important first.
    """
    lower = [pod for pod in row.pods.values() if pod.priority < cycle.pod.priority]
    if not lower:
        return NO_VICTIMS
    # Tried on copies: the cycle goes on to other nodes.
    trial = cycle.fork()
    room = row.copy()
    for pod in lower:
        room.remove(pod)
        trial.count(pod, row, -1)
    verdict = trial.check_with_nominated(room)
    if verdict is not None:
        return verdict
    protected, others = _by_budget(sorted(lower, key=_importance), budgets)

    def put_back(pods: Sequence[Pod]) -> list[Pod]:
        """Put back each pod that still fits, and return those that don't."""
        victims: list[Pod] = []
        for pod in pods:
            room.add(pod)
            trial.count(pod, row, 1)
            if trial.check_with_nominated(room) is not None:
                room.remove(pod)
                trial.count(pod, row, -1)
                victims.append(pod)
        return victims

    protected_victims = put_back(protected)
    victims = sorted([*protected_victims, *put_back(others)], key=_importance)
    return Nomination(row.name, tuple(victims), len(protected_victims))


def _importance(pod: Pod) -> tuple[int, float]:
    return (-pod.priority, pod.started if pod.started is not None else math.inf)


def _by_budget(
    pods: Sequence[Pod], budgets: Sequence[DisruptionBudget]
) -> tuple[list[Pod], list[Pod]]:
    """Split pods into those whose eviction would violate a budget, in order, and the others."""
    allowed = [budget.disruptions_allowed for budget in budgets]
    breaking: list[Pod] = []
    others: list[Pod] = []
    for pod in pods:
        breaks_budget = False
        for index, budget in enumerate(budgets):
            if (
                pod.labels
                and budget.namespace == pod.namespace
                and budget.selector
                and pod.name not in budget.disrupted_pods
                and selector_matches(budget.selector, pod.labels)
            ):
                allowed[index] -= 1
                breaks_budget = breaks_budget or allowed[index] < 0
        (breaking if breaks_budget else others).append(pod)
    return breaking, others


def _best(candidates: Sequence[Nomination]) -> list[Nomination]:
    """The candidates that cost least, by node. What costs less, the first difference counts:

    1. fewer victims whose budget it violates,
    2. a lower priority of the most important victim,
    3. a smaller sum of priorities,
    4. fewer victims,
    5. a later start of the oldest among the most important.
    """

    def cost(candidate: Nomination) -> tuple[int, int, int, int, float]:
        highest = candidate.victims[0].priority
        starts = [victim.started for victim in candidate.victims if victim.priority == highest]
        earliest = min(start if start is not None else math.inf for start in starts)
        total = sum(victim.priority + _PRIORITY_SHIFT for victim in candidate.victims)
        return (candidate.violations, highest, total, len(candidate.victims), -earliest)

    lowest = min(map(cost, candidates))
    return sorted(
        (candidate for candidate in candidates if cost(candidate) == lowest),
        key=lambda candidate: candidate.node,
    )
