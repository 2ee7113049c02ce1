"""A weekday of mybinder.org as people would feel it with faster pulls: `python -m
benchmarks.felt_day`.

The world is `mybinder-2019`, whose waits end when servers answer, but nodes pull four times as
fast, as in most other replays. Compared are what really ran, zero-to-jupyterhub's user-scheduler
with 25 placeholders, and Roost's defaults with as many.
"""

from __future__ import annotations

import argparse
from statistics import median
from typing import TYPE_CHECKING, Final

from benchmarks.figures import say, table
from benchmarks.flagship import POLICIES, QUANTILES, quantiles
from benchmarks.hub_scenarios import mybinder
from roost_lab.simulator.engine.world import World
from roost_lab.simulator.setup.checks import make_assumptions
from roost_lab.simulator.setup.policy import load_policy
from roost_lab.simulator.setup.worlds import MYBINDER, WORLDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from roost_lab.simulator.setup.assumptions import Assumptions

# Assumptions of the world that differ from the usual ones.
FELT: Final = {**WORLDS[MYBINDER], "pulls": "middle"}
# Columns of the table.
P95, NODE_HOURS = "wait, p95, s", "node-hours"
HEADINGS: Final = ("policy", "wait, p50, s", "wait, p90, s", P95, "wait, p99, s", NODE_HOURS)


def felt_world() -> Assumptions:
    """The world of this benchmark."""
    return make_assumptions(FELT, MYBINDER)


def play(policy: str, seed: int) -> tuple[float, ...]:
    """Seconds by QUANTILES of servers that came up, and the node-hours."""
    world = World(load_policy(policy), felt_world(), seed)
    waits: list[float] = []

    def note(_number: int, seconds: float, is_up: bool) -> None:
        if is_up:
            waits.append(seconds)

    world.measures.on_wait = note
    result = world.play(mybinder(seed, 1.0))
    return (*quantiles(waits, QUANTILES), result.node_hours)


def _cell(figures: Sequence[float]) -> str:
    return f"{median(figures):.1f} ({min(figures):.1f} to {max(figures):.1f})"


def main() -> int:
    """Replay, and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--seeds", type=int, default=3)
    seeds = range(1, parser.parse_args().seeds + 1)
    rows = []
    for policy in POLICIES:
        played = [play(policy, seed) for seed in seeds]
        rows.append([policy, *(_cell(figures) for figures in zip(*played, strict=True))])
        say(f"{rows[-1]}")
    print(table(HEADINGS, rows))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
