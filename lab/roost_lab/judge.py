"""Say what `roost import`'s proposals would have done with a hub's own launches, by replaying them.

A short answer beside a proposal, not a sweep: the newest launches, few seeds, the usual assumptions, one process.
"""

from __future__ import annotations

import contextlib
import json
import tempfile
import time
from collections import deque
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Final, NamedTuple

from generator.faults import UsageError
from roost_lab.pages.phrases import show_seconds
from roost_lab.recorder.answers.exports import launch_lines
from roost_lab.recorder.store.database import Store, StoreError
from roost_lab.simulator.engine.results import TOTAL
from roost_lab.simulator.setup.assumptions import Assumptions
from roost_lab.simulator.setup.checks import AssumptionsError
from roost_lab.simulator.setup.policy import Policy, load_policy
from roost_lab.simulator.sweep.fit_checks import check_policy
from roost_lab.simulator.sweep.replay import replay
from roost_lab.simulator.sweep.survey import trace_of
from roost_lab.traces.counts import TraceError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from roost_lab.simulator.sweep.survey import Trace
    from roost_lab.traces.attempt import Attempt

# How long proposals are replayed at most, about.
REPLAY_SECONDS: Final = 60.0
# Some seconds a replay on one processor.
MOST_LAUNCHES: Final = 3000
SEEDS: Final = 3
# A change helps that shortens the wait by at least so much, for at most so much more node-hours.
_SHORTER: Final = 0.9
_DEARER: Final = 1.03
_SQLITE: Final = b"SQLite format 3\0"


def judge_proposals(
    values: str, proposals: Sequence[Mapping[str, Any]], instead: Mapping[str, Any] | None, history: str
) -> tuple[list[str], bool]:
    """A sentence for each proposal: what it alone would have done with a history; and whether `instead` helps.

    values: the imported ones, as YAML. proposals: what each lays over them. instead: values of another proposal, which
    must help beside the first of the others that has placeholders. history: a record's database, or a launch trace.
    Raises UsageError for a history that can't be read, or a hub that doesn't fit the usual nodes.
    """
    tried = [*proposals, *([] if instead is None else [instead])]
    with tempfile.TemporaryDirectory() as folder:
        try:
            attempts = latest(trace_of((_trace_file(history, Path(folder)),)))
        except (TraceError, StoreError) as error:
            raise UsageError(f"--history: {error}") from None
        try:
            now, *after = judge(_policies(values, tried, Path(folder)), attempts, REPLAY_SECONDS, time.monotonic)
        except AssumptionsError as error:
            raise UsageError(f"--history: not replayed, because the hub doesn't fit the usual nodes: {error}") from None
    fixed = next((score for one, score in zip(proposals, after, strict=False) if "placeholders" in one), now)
    return [describe(now, score, len(attempts)) for score in after], instead is not None and helps(fixed, after[-1])


def _policies(values: str, tried: Sequence[Mapping[str, Any]], folder: Path) -> list[Policy]:
    """The imported values, then each proposal laid over them."""
    now = folder / "values.yaml"
    now.write_text(values, encoding="utf-8")
    policies = [load_policy("today", [str(now)])]
    for place, proposal in enumerate(tried):
        more = folder / f"more-{place}.yaml"
        more.write_text(json.dumps(proposal), encoding="utf-8")
        policies.append(load_policy(f"more-{place}", [str(now), str(more)]))
    return policies


def _trace_file(history: str, folder: Path) -> str:
    """The history as a file of launches: a database's are written to one. Raises StoreError."""
    if "://" not in history:
        path = Path(history)
        try:
            with path.open("rb") as file:
                is_database = file.read(len(_SQLITE)) == _SQLITE
        except OSError as error:
            raise UsageError(f"--history: {history}: {error.strerror}") from None
        if not is_database:
            return history
    launches = folder / "launches.jsonl"
    with contextlib.closing(Store.open_for_reading(history)) as store, launches.open("w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in launch_lines(store))
    return str(launches)


class Score(NamedTuple):
    """What a policy achieves: medians over its seeds."""

    # 95 of 100 starts wait at most so long.
    wait_seconds: float
    node_hours: float
    cold: float
    seeds: int


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
    runs = []
    over = clock() + seconds
    for seed in range(1, SEEDS + 1):
        began = clock()
        runs.append([replay(attempts, policy, assumptions, seed) for policy in policies])
        # The next one takes as long as this one.
        if clock() + (clock() - began) > over:
            break
    return [
        Score(
            median(run.waits[TOTAL].quantile(0.95) for run in of_policy),
            median(run.node_hours for run in of_policy),
            median(run.cold for run in of_policy),
            len(of_policy),
        )
        for of_policy in zip(*runs, strict=True)
    ]


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
