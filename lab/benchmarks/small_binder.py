"""Ten days of a BinderHub with 600 launches a day, as people would feel them: `python -m
benchmarks.small_binder`.

The hub is `small binder` of `benchmarks.hub_scenarios`: waits end when servers answer. Compared are
zero-to-jupyterhub's user-scheduler and what `roost import` writes, with as many placeholders, with
both autoscalers. The seeds were never used to tune Roost.
"""

from __future__ import annotations

import argparse
import os
from statistics import median
from typing import TYPE_CHECKING, Final

from benchmarks.figures import table
from benchmarks.hub_scenarios import SCENARIOS
from benchmarks.never_worse import HUB, IMPORTED, Case, Run, replays

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

NAME: Final = "small binder"
DAYS: Final = 10
FIRST_SEED: Final = 3
# Columns of the table, and its arms.
P95, NODE_HOURS = "wait, p95, s", "node-hours"
POLICIES: Final[Mapping[str, str]] = {HUB: "z2jh-placeholders-packed", IMPORTED: "roost"}
FIGURES: Final[Mapping[str, Callable[[Run], float]]] = {
    "cold starts": lambda run: run.cold,
    "wait, p50, s": lambda run: run.p50,
    P95: lambda run: run.p95,
    "wait, p99, s": lambda run: run.p99,
    NODE_HOURS: lambda run: run.node_hours,
}


def show(found: Mapping[Case, Mapping[str, Mapping[int, Run]]]) -> str:
    """A table: medians over seeds with the least and the greatest."""
    rows = [
        [case.autoscaler, str(case.placeholders), policy, *_cells(list(arms[arm].values()))]
        for case, arms in found.items()
        for arm, policy in POLICIES.items()
    ]
    return table(["autoscaler", "placeholders", "policy", *FIGURES], rows)


def _cells(runs: Sequence[Run]) -> list[str]:
    cells = []
    for read in FIGURES.values():
        figures = [read(run) for run in runs]
        digits = 0 if min(figures) > 100 else 1
        middle, least, most = (
            f"{figure:,.{digits}f}" for figure in (median(figures), min(figures), max(figures))
        )
        cells.append(f"{middle} ({least} to {most})")
    return cells


def main() -> int:
    """Replay, and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--days", type=float, default=DAYS)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    (scenario,) = [scenario for scenario in SCENARIOS if scenario.name == NAME]
    found = replays(
        [scenario],
        arms=tuple(POLICIES),
        seeds=range(FIRST_SEED, FIRST_SEED + options.seeds),
        days=options.days,
        jobs=options.jobs,
    )
    print(show(found))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
