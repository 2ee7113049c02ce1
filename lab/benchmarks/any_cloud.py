"""How much of Roost's gain stays without its scheduler: `python -m benchmarks.any_cloud`.

Two days of mybinder.org's recorded launches, 28 and 29 May 2019, with 25 placeholders in each row.
Waits end when servers answer, as in `benchmarks.felt_day`. The first row is what mybinder.org ran:
zero-to-jupyterhub's user scheduler. The others are Roost's defaults, placed by its own scheduler
and by two that a cluster may have.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from statistics import median
from typing import Any, Final, NamedTuple

from benchmarks.felt_day import felt_world
from benchmarks.figures import say, spread, table
from benchmarks.studies import values_files
from generator.values.merge import SetOptions
from roost_lab.simulator.engine.results import TOTAL, RunResult
from roost_lab.simulator.engine.world import World
from roost_lab.simulator.setup.policy import Policy, load_policy
from roost_lab.simulator.sweep.survey import trace_of
from roost_lab.traces.attempt import Attempt
from roost_lab.units import DAY_SECONDS
from tests.recorded_data import LAUNCHES

# 2019-05-28T00:00:00Z, and so long.
BEGIN: Final = 1_559_001_600.0
DAYS: Final = 2
_PACKS: Final[Mapping[str, Any]] = {
    # Stock plugins, and what EKS lets one set of them.
    "strategy": None,
    "plugins": {"score": {"enabled": []}},
    "pluginConfig": [
        {
            "name": "NodeResourcesFit",
            "args": {
                "scoringStrategy": {
                    "type": "MostAllocated",
                    "resources": [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}],
                }
            },
        }
    ],
}


class Row(NamedTuple):
    """A scheduler, with a shipped policy, and values over it."""

    scheduler: str
    values: str
    policy: str
    over: Mapping[str, Any]


ROWS: Final = (
    Row("zero-to-jupyterhub's user scheduler", "without Roost", "z2jh-placeholders-packed", {}),
    Row("Roost's (`deploy`)", "default", "roost", {}),
    Row("Kubernetes' own (`none`)", "default", "roost", {"scheduler.target": "none"}),
    Row(
        "`MostAllocated` (as on EKS)",
        "default",
        "roost",
        {
            "scheduler.profiles": dict.fromkeys(("user", "build", "placeholder"), _PACKS),
            # As the webhook does where the scheduler isn't Roost's.
            "podClasses.user.join.user": None,
        },
    ),
)


def policy_of(row: Row) -> Policy:
    """What a row's cluster runs."""
    settings = SetOptions(
        json_values=tuple(f"{key}={json.dumps(value)}" for key, value in row.over.items())
    )
    return load_policy(row.policy, values_files(row.policy), settings)


def launches(seed: int) -> Iterator[Attempt]:
    """The two days."""
    for attempt in trace_of((str(LAUNCHES),)).open(seed):
        if attempt.moment >= BEGIN + DAYS * DAY_SECONDS:
            return
        if attempt.moment >= BEGIN:
            yield attempt


def _cells(runs: list[RunResult]) -> list[str]:
    cold = sorted(run.cold for run in runs)
    return [
        f"{median(cold):,.0f} ({cold[0]:,} to {cold[-1]:,})",
        spread([run.waits[TOTAL].quantile(0.95) for run in runs]),
        spread([run.waits[TOTAL].quantile(0.99) for run in runs]),
        spread([run.node_hours for run in runs]),
    ]


def main() -> int:
    """Replay, and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=3)
    seeds = range(1, parser.parse_args().seeds + 1)
    rows = []
    for row in ROWS:
        policy = policy_of(row)
        runs = [World(policy, felt_world(), seed).play(launches(seed)) for seed in seeds]
        rows.append([row.scheduler, row.values, *_cells(runs)])
        say(f"{rows[-1]}")
    head = ["scheduler", "values", "cold starts", "wait, p95, s", "wait, p99, s", "node-hours"]
    print(table(head, rows))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
