"""Say what changes of one hub's values would have done with its latest launches, within a given time.

A short answer beside a proposal, not a sweep: the newest launches, few seeds, the usual assumptions, one process.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING, Final, NamedTuple

from roost_lab.pages.phrases import show_seconds
from roost_lab.simulator.engine.results import TOTAL
from roost_lab.simulator.setup.assumptions import Assumptions
from roost_lab.simulator.sweep.fit_checks import check_policy
from roost_lab.simulator.sweep.replay import replay

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from roost_lab.simulator.engine.results import RunResult
    from roost_lab.simulator.setup.policy import Policy
    from roost_lab.simulator.sweep.survey import Trace
    from roost_lab.traces.attempt import Attempt

# Some seconds a replay on one processor.
MOST_LAUNCHES: Final = 3000
SEEDS: Final = 3
# A change helps that shortens the wait by at least so much, for at most so much more node-hours.
_SHORTER: Final = 0.9
_DEARER: Final = 1.03


class Score(NamedTuple):
    """What a policy achieves: medians over its seeds."""

    # 95 of 100 starts wait at most so long.
    wait_seconds: float
    node_hours: float
    cold: float
    seeds: int


def score_of(runs: Sequence[RunResult]) -> Score:
    """The score of one policy, from its replays."""
    waits = [run.waits[TOTAL].quantile(0.95) for run in runs]
    return Score(median(waits), median(run.node_hours for run in runs), median(run.cold for run in runs), len(runs))


def latest(trace: Trace, most: int = MOST_LAUNCHES) -> list[Attempt]:
    """The newest launches of a trace, numbered anew, all of one hub. Raises TraceError."""
    kept = deque(trace.open(1), most)
    return [attempt._replace(number=number, hub="") for number, attempt in enumerate(kept)]


def judge(
    policies: Sequence[Policy], attempts: Sequence[Attempt], seconds: float, clock: Callable[[], float]
) -> list[Score]:
    """The score of each policy: medians over seeds, the same seeds for each; what is over after `seconds` is left out.

    The first seed is always replayed. clock: monotonic, in seconds. Raises AssumptionsError for a policy whose pods fit
    no node of the usual assumptions.
    """
    # A history has no builds, and whoever came was let in.
    assumptions = replace(Assumptions(), quota_per_repository=0, quota_total=0)
    for policy in policies:
        check_policy(policy, assumptions)
    runs: list[list[RunResult]] = [[] for _ in policies]
    over = clock() + seconds
    for seed in range(1, SEEDS + 1):
        began = clock()
        round_ = [replay(attempts, policy, assumptions, seed) for policy in policies]
        for of_policy, run in zip(runs, round_, strict=True):
            of_policy.append(run)
        # The next one takes as long as this one.
        if clock() + (clock() - began) > over:
            break
    return [score_of(of_policy) for of_policy in runs]


def helps(before: Score, after: Score) -> bool:
    """Whether a change is worth proposing: 95 of 100 wait a tenth less, and node-hours rise by 3 % at most."""
    return after.wait_seconds <= _SHORTER * before.wait_seconds and after.node_hours <= _DEARER * before.node_hours


def describe(before: Score, after: Score, launches: int) -> str:
    """What a change does, in a sentence of figures."""
    return (
        f"Replayed with your {launches:,} latest launches: cold starts {before.cold:,.0f} -> {after.cold:,.0f}, "
        f"95 of 100 wait {show_seconds(before.wait_seconds)} -> {show_seconds(after.wait_seconds)} at most, "
        f"node-hours {before.node_hours:,.0f} -> {after.node_hours:,.0f} "
        f"(median of {after.seeds} {'seed' if after.seeds == 1 else 'seeds'})."
    )
