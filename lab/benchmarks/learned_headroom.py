"""Compare learned placeholders with a fixed number and with none: `python -m
benchmarks.learned_headroom`.

Hubs: those of `benchmarks.hub_scenarios`, and a pool of GPUs with a course once a week, of which
only the course's people count. Each plays with Roost's defaults without placeholders, with the
scenario's greatest number at all times, with that number as `roost import` writes it (until a week
shows that fewer do, and more as learned), and with numbers learned alone. What is learned is
learned in the replay itself, which begins without a history, so each forecast sees only what
happened before it. An oracle knows all launches: it keeps the seats that will be needed until a
node that is asked for now can be used. Waits and node-hours are those from the third day on, when
there is a forecast, or `--from-day`; medians over the seeds, which are the same launches for all.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate
from math import ceil
from pathlib import Path
from statistics import fmean, median, quantiles
from typing import Final, NamedTuple

from benchmarks.figures import say, table
from benchmarks.hub_scenarios import SCENARIOS, WEEKLY_COURSE, Scenario, gpu_pool
from benchmarks.never_worse import roost_values
from benchmarks.term_figures import FIXED, IMPORTED, NONE, ORACLE
from generator.importing.profile_pools import learning
from roost_core.placement.headroom_forecast import LEAST_DAYS
from roost_core.placement.headroom_history import SPARE_SECONDS
from roost_lab.simulator.engine.world import World
from roost_lab.simulator.setup.assumptions import SESSIONS
from roost_lab.simulator.setup.checks import make_assumptions
from roost_lab.simulator.setup.policy import Policy, load_policy
from roost_lab.traces.attempt import Attempt
from roost_lab.units import DAY_SECONDS

LEARNED: Final = "learned"
ARMS: Final = (NONE, FIXED, IMPORTED, LEARNED, ORACLE)
# How often the oracle looks; the controllers do as often.
STEP_SECONDS: Final = 10.0


class Figures(NamedTuple):
    """What one replay came to, from the first day that counts on."""

    mean: float
    p95: float
    p99: float
    # Launches that waited longer than 30 s, in percent.
    late: float
    node_hours: float


_GPUS: Final = next(scenario for scenario in SCENARIOS if scenario.name == "university: GPUs")
GPUS_WEEKLY: Final = "GPUs: weekly course"
HUBS: Final = (
    *SCENARIOS,
    replace(
        _GPUS,
        name=GPUS_WEEKLY,
        about="12 people once a week",
        launches=partial(gpu_pool, course=WEEKLY_COURSE),
        days=35.0,
    ),
)


def policies(scenario: Scenario) -> Iterator[tuple[str, Policy]]:
    """Yield each arm's policy."""
    for arm in ARMS:
        values = roost_values(scenario, 0 if arm == NONE else scenario.placeholders[-1])
        if arm in (IMPORTED, LEARNED):
            device = "a GPU" if "extraResource" in scenario.hub["singleuser"] else ""
            values["placeholders"][0].update(learning(device))
        if arm in (LEARNED, ORACLE):
            values["placeholders"][0]["replicas"] = 0
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "values.yaml")
            path.write_text(json.dumps(values), encoding="utf-8")
            yield arm, load_policy(arm, [str(path)])


def session_seconds(one: Attempt, world: World) -> float:
    """How long a server runs once it is up."""
    if one.session_seconds is not None:
        return one.session_seconds
    least, middle, sigma = SESSIONS[world.assumed.sessions]
    return 60.0 * (least + world.chance.log_normal("session", one.number, middle, sigma))


def foresee(world: World, launches: Sequence[Attempt]) -> None:
    """Let the first set have as many seats as will be needed within a boot and the controllers'
    time to spare.
    """
    begin = launches[0].moment
    steps = [0] * (ceil((launches[-1].moment - begin) / STEP_SECONDS) + 1)
    for launch in launches:
        for moment, users in (
            (launch.moment, 1),
            (launch.moment + session_seconds(launch, world), -1),
        ):
            if (step := ceil((moment - begin) / STEP_SECONDS)) < len(steps):
                steps[step] += users
    levels = list(accumulate(steps))
    ahead = ceil((world.assumed.boot_median_seconds + SPARE_SECONDS) / STEP_SECONDS)
    sets = world.releases[0].sets
    scale = partial(sets.scale, next(iter(sets.sets)))
    before = 0
    for step, level in enumerate(levels):
        if before != (before := max(levels[step : step + ahead + 1]) - level):
            world.at(begin + step * STEP_SECONDS, scale, before)


def play(
    scenario: Scenario, policy: Policy, seed: int, days: float, from_day: int = LEAST_DAYS + 1
) -> Figures:
    """Replay one arm with one seed. from_day: the first, counted from 1, whose launches and
    node-hours count.
    """
    launches = scenario.launches(seed, days)
    begin = launches[0].moment // DAY_SECONDS * DAY_SECONDS + (from_day - 1) * DAY_SECONDS
    moments = {launch.number: launch.moment for launch in launches}
    world = World(policy, make_assumptions(dict(scenario.world), scenario.name), seed)
    waits = []

    def count(number: int, seconds: float, _is_up: bool) -> None:
        moment = moments[number]
        is_counted = scenario.name != GPUS_WEEKLY or WEEKLY_COURSE.has(moment)
        if moment >= begin and is_counted:
            waits.append(seconds)

    before: list[float] = []

    def cut(moment: float) -> None:
        world.measures.nodes(0, moment)
        before.append(world.measures.result.node_hours)

    world.measures.on_wait = count
    world.at(begin, cut, begin)
    if policy.name == ORACLE:
        foresee(world, launches)
    result = world.play(launches)
    parts = quantiles(waits, n=100, method="inclusive")
    hours = result.node_hours - sum(before)
    return Figures(
        fmean(waits),
        parts[94],
        parts[98],
        100 * sum(wait > 30 for wait in waits) / len(waits),
        hours,
    )


def show(scenario: Scenario, found: Mapping[str, Sequence[Figures]]) -> list[list[str]]:
    """The rows of a hub."""
    rows = []
    for arm, runs in found.items():
        more = median(
            100 * (run.node_hours / none.node_hours - 1)
            for run, none in zip(runs, found[NONE], strict=True)
        )
        mean, p95, p99, late, hours = (median(values) for values in zip(*runs, strict=True))
        first = scenario.name if arm == NONE else ""
        rows.append(
            [
                first,
                arm,
                f"{mean:,.1f}",
                f"{p95:,.1f}",
                f"{p99:,.1f}",
                f"{late:.2f}",
                f"{hours:,.0f}",
                f"{more:+.1f} %",
            ]
        )
    return rows


def main(arguments: Sequence[str] | None = None) -> int:
    """Print each hub's figures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    names = [hub.name for hub in HUBS]
    parser.add_argument(
        "--hubs", nargs="+", choices=names, default=names, metavar="NAME", help=", ".join(names)
    )
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument(
        "--days", type=float, help="of launches; default: 10, or the scenario's own"
    )
    parser.add_argument(
        "--from-day", type=int, default=LEAST_DAYS + 1, help="the first day that counts; default: 3"
    )
    options = parser.parse_args(arguments)
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    rows: list[list[str]] = []
    for scenario in HUBS:
        if scenario.name not in options.hubs:
            continue
        days = options.days or max(scenario.days, 9.0 if scenario.name == "mybinder.org" else 10.0)
        found: dict[str, list[Figures]] = {arm: [] for arm in ARMS}
        for seed in seeds:
            for arm, policy in policies(scenario):
                found[arm].append(play(scenario, policy, seed, days, options.from_day))
                say(f"  {scenario.name}, seed {seed}, {arm}: {found[arm][-1]}")
        rows += show(scenario, found)
    print(
        table(
            [
                "hub",
                "placeholders",
                "mean, s",
                "p95, s",
                "p99, s",
                "over 30 s, %",
                "node-hours",
                "against none",
            ],
            rows,
        )
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
