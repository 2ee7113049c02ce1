"""How well windows of a trace rank what `roost simulate --suggest` searches, against replays of the whole trace.

`python -m benchmarks.suggest_windows --trace FILE [--results FOLDER]`: candidates of the search's own space over the
policy `roost`, on the windows and on the whole trace, one seed. For several targets it prints the rank correlation of
what windows predict with the truth, and which place the candidate that `--suggest` would choose has among all of them.
"""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Final

from benchmarks.figures import say, table
from generator.values.files import read_values
from roost_lab.simulator.setup.assumptions import Assumptions
from roost_lab.simulator.setup.policy import load_policy
from roost_lab.simulator.setup.shipped import values_files
from roost_lab.simulator.sweep.result_store import ResultStore
from roost_lab.simulator.sweep.run import LocalProcesses, make_jobs, run_sweep
from roost_lab.simulator.sweep.suggest import (
    NO_WARM,
    PLACEHOLDERS,
    WARM_SPARE,
    Outcome,
    confirm,
    describe_candidate,
    make_space,
    predict,
    score_of,
)
from roost_lab.simulator.sweep.survey import trace_of
from roost_lab.simulator.sweep.windows import show_windows, with_windows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from roost_lab.simulator.engine.results import RunResult
    from roost_lab.simulator.sweep.suggest import Candidate, Score, Space
    from roost_lab.simulator.sweep.survey import Trace

POLICY: Final = "roost"
USER: Final = {"cpu": "10m", "memory": "550000000"}
# Axis -> value, over the policy's own.
CHANGES: Final[Sequence[Mapping[str, int]]] = (
    {},
    {WARM_SPARE: -25},
    {WARM_SPARE: -100},
    {WARM_SPARE: NO_WARM},
    {PLACEHOLDERS: 0},
    {PLACEHOLDERS: 42},
    {PLACEHOLDERS: 85},
    {WARM_SPARE: NO_WARM, PLACEHOLDERS: 0},
    {WARM_SPARE: NO_WARM, PLACEHOLDERS: 85},
    {WARM_SPARE: -50, PLACEHOLDERS: 0},
    {"NodeResourcesFit": 1},
    {WARM_SPARE: NO_WARM, "InterPodAffinity": 1},
    {WARM_SPARE: NO_WARM, "ImageLocality": 10201},
)
TARGETS: Final = (1.5, 3.0, 6.0, 10.0, 15.0, 18.0, 30.0)


def main(arguments: Sequence[str] | None = None) -> int:
    """Replay and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--trace", required=True)
    parser.add_argument("--results", type=Path, default=Path.home() / ".cache" / "roost" / "simulate")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args(arguments)
    trace = trace_of((options.trace,))
    windowed, launches = with_windows(trace)
    if not windowed.windows:
        parser.error(f"--trace {options.trace}: too short for windows; expected three days and more")
    space = make_space(read_values(values_files(POLICY)).values, 0, USER)
    candidates = [tuple((dict(space.start) | dict(change)).items()) for change in CHANGES]
    store = ResultStore(options.results)
    runs = _replay(space, candidates, windowed, store, options.jobs)
    whole = _replay(space, candidates, replace(trace, windows=()), store, options.jobs)
    said = f"{show_windows(windowed.windows)}: {launches:,} launches"
    print(_show(runs, {candidate: score_of([run]) for candidate, run in whole.items()}, space.start, said))
    spent = [sum(run.cpu_seconds for run in each.values()) / len(each) for each in (runs, whole)]
    print(f"\nProcessor time of a candidate: {spent[0]:.0f} s in the windows, {spent[1]:.0f} s on the whole trace.")
    return 0


def _replay(
    space: Space, candidates: Sequence[Candidate], trace: Trace, store: ResultStore, jobs: int
) -> dict[Candidate, RunResult]:
    policies = [
        load_policy(describe_candidate(candidate), values_files(POLICY), space.settings_of(candidate, json.dumps))
        for candidate in candidates
    ]
    made = make_jobs(policies, [1], [({}, Assumptions())], trace)
    say(f"{len(made)} replays")
    return dict(zip(candidates, run_sweep(made, LocalProcesses(jobs), store), strict=True))


def _show(runs: Mapping[Candidate, RunResult], whole: Mapping[Candidate, Score], start: Candidate, windows: str) -> str:
    predicted = {candidate: predict(run, runs[start], whole[start]) for candidate, run in runs.items()}
    rows = []
    for candidate, true in whole.items():
        changed = describe_candidate(tuple(each for each in candidate if each not in start)) or "as it is"
        said = predicted[candidate]
        rows.append(
            [
                changed,
                *(f"{was:,.1f} / {now:,.1f}" for was, now in zip(said[:2], true[:2], strict=True)),
                f"{said.cold:,.0f} / {true.cold:,.0f}",
            ]
        )
    choices = []
    for target in TARGETS:
        ranked = Outcome(start, dict(whole), start).ranked(target)
        guessed = Outcome(start, predicted, start).ranked(target)
        chosen = confirm(runs, start, whole[start], whole.__getitem__, target).best
        # Several may do the same.
        place = next(number for number, one in enumerate(ranked, 1) if whole[one] == whole[chosen])
        correlation = rank_correlation([ranked.index(one) for one in whole], [guessed.index(one) for one in whole])
        choices.append([f"{target:g}", f"{correlation:.2f}", str(place)])
    return "\n\n".join(
        (
            f"Windows {windows}",
            table(["candidate", "p95: predicted / true, s", "node-hours", "cold starts"], rows),
            table(["target, s", "rank correlation", "place of the chosen one"], choices),
        )
    )


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> float:
    """Spearman's, of ranks without ties."""
    if len(first) < 2:
        return 1.0
    middle = fmean(first)
    shared = sum((one - middle) * (other - middle) for one, other in zip(first, second, strict=True))
    return shared / sum((one - middle) ** 2 for one in first)


if __name__ == "__main__":
    raise SystemExit(main())
