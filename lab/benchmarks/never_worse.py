"""Compare Roost with zero-to-jupyterhub's defaults, with equal placeholders, hub by hub: it must
never be worse.

`python -m benchmarks.never_worse`: all scenarios of `benchmarks.hub_scenarios`; exit status 1 where
a promise is broken. A hub of your own: `--launches FILE` (what `roost simulate --trace` takes),
`--hub-values FILE` (the hub's zero-to-jupyterhub values) and `--set NAME=VALUE` (its nodes and
users, as `roost simulate --set` has them).

Compared, for each number of placeholders and each autoscaler: zero-to-jupyterhub as its chart's
defaults have it; Roost's default values with the hub's images and users named; and what `roost
import` writes for the hub's values. Promised, over all seeds: no more launches given up, and no
more tries beyond the spawner's patience; p95 and p99 of the wait at most 5 % and one second longer,
and at most 5 % and one node-hour more, in the median of the seeds' differences. Each seed is the
same launches, image sizes and boot times for all. What a run would have found nine times in ten
stands beside what it found: the least worsening, by how much the seeds differ and by how many there
are.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from pathlib import Path
from statistics import median, stdev
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import yaml

from benchmarks.figures import figure, say, table
from benchmarks.forked import in_processes
from benchmarks.hub_scenarios import SCENARIOS, Scenario, known_before
from generator.importing.importer import import_layers
from roost_core.objects.fields import JSONObject
from roost_lab.simulator.engine.results import TOTAL
from roost_lab.simulator.engine.world import World
from roost_lab.simulator.setup.checks import AssumptionsError, make_assumptions, read_assumption
from roost_lab.simulator.setup.policy import load_policy
from roost_lab.simulator.setup.shipped_policies import policy_files
from roost_lab.simulator.sweep.replay import replay
from roost_lab.simulator.sweep.survey import trace_of
from roost_lab.traces.attempt import other_scheduler

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from roost_lab.simulator.setup.policy import Policy
    from roost_lab.traces.attempt import Attempt

HUB, DEFAULTS, IMPORTED = "z2jh", "roost, defaults", "roost, imported"
ARMS: Final = (HUB, DEFAULTS, IMPORTED)
AUTOSCALERS: Final = ("cluster-autoscaler", "karpenter")
# What counts as noise in a quantile of the wait, and in node-hours.
NOISE_SHARE: Final = 0.05
NOISE: Final = {"p95": 1.0, "p99": 1.0, "node_hours": 1.0}
# One user who stays late keeps a node for hours: fewer seeds say nothing of node-hours.
FEWEST_SEEDS: Final = 3
# A normal variable is below this nine times in ten; and how much wider a median's error is than a
# mean's.
NINE_IN_TEN, MEDIAN_ERROR = 1.2816, 1.2533
# Events of a Poisson process, expected, of which one is seen nine times in ten.
ONE_SEEN: Final = 2.303


# What each side runs


def hub_values(scenario: Scenario, placeholders: int) -> JSONObject:
    """The hub's own values, with so many placeholders."""
    scheduling = {
        "podPriority": {"enabled": bool(placeholders)},
        "userPlaceholder": {"replicas": placeholders},
    }
    found = dict(scenario.hub)
    if "jupyterhub" in found:
        found["jupyterhub"] = {**found["jupyterhub"], "scheduling": scheduling}
    else:
        found["scheduling"] = scheduling
    return found


def roost_values(scenario: Scenario, placeholders: int) -> JSONObject:
    """What an operator tells Roost of the hub: images, sizes, number of placeholders.

    The rest is as it comes.
    """
    assumed = make_assumptions(scenario.world, scenario.name)
    hub = scenario.hub.get("jupyterhub", scenario.hub)
    size = {"cpu": f"{assumed.user_cpu_millicores}m", "memory": str(assumed.user_memory_bytes)}
    found: JSONObject = {
        "singleuser": dict(hub.get("singleuser", {})),
        "placeholders": (
            [{"name": "default", "replicas": placeholders, "resources": {"requests": size}}]
            if placeholders
            else []
        ),
    }
    if not scenario.has_pullers:
        found["prePuller"] = {"enabled": False}
    return found


@cache
def policy_of(scenario: Scenario, arm: str, placeholders: int, extra: str) -> Policy:
    """The policy of one arm. extra: a values file over Roost's; "": none."""
    told = roost_values(scenario, placeholders)
    layers: list[str] = []
    if arm == HUB:
        layers.append(policy_files()["z2jh-placeholders-packed"].read_text(encoding="utf-8"))
    elif arm == IMPORTED:
        text = yaml.safe_dump(hub_values(scenario, placeholders))
        told = dict(import_layers([("hub.yaml", text)]).values)
    layers.append(json.dumps(told))
    if extra and arm != HUB:
        layers.append(Path(extra).read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder, f"{number}.yaml") for number, _ in enumerate(layers)]
        for file, text in zip(files, layers, strict=True):
            file.write_text(text, encoding="utf-8")
        found = load_policy(arm, list(map(str, files)))
    # Other hubs on the same nodes run zero-to-jupyterhub's scheduler, on both sides.
    users = load_policy("z2jh").profiles
    theirs = next(profile for name, profile in users.items() if name.endswith(".user"))
    outsiders = frozenset(f"hub-{number}" for number in range(1, 10))
    others = {other_scheduler(hub): theirs for hub in outsiders}
    return replace(found, profiles={**found.profiles, **others}, outsiders=outsiders)


# Replays


class Case(NamedTuple):
    """One row's conditions, arms aside."""

    scenario: str
    autoscaler: str
    placeholders: int


class Run(NamedTuple):
    """What one replay came to."""

    launches: int
    given_up: int
    timeouts: int
    p50: float
    p95: float
    p99: float
    node_hours: float
    cold: int
    waited_for_node: int


class Job(NamedTuple):
    """One replay."""

    case: Case
    arm: str
    seed: int
    days: float
    # A values file over Roost's.
    extra: str = ""
    # The weeks before are known.
    knows: bool = False


def run(scenario: Scenario, job: Job, policy: Policy) -> Run:
    """Replay one arm with one seed."""
    case, seed = job.case, job.seed
    world = make_assumptions(
        {**scenario.world, "autoscaler": _autoscaler(case.autoscaler)}, scenario.name
    )
    if job.knows:
        played = World(policy, world, seed)
        played.histories = known_before(scenario, seed)
        result = played.play(_launches(scenario, seed, job.days))
    else:
        result = replay(_launches(scenario, seed, job.days), policy, world, seed)
    waits = result.waits[TOTAL]
    return Run(
        launches=result.admitted,
        given_up=result.given_up + result.still_waiting,
        timeouts=result.timeouts,
        p50=waits.quantile(0.5),
        p95=waits.quantile(0.95),
        p99=waits.quantile(0.99),
        node_hours=result.node_hours,
        cold=result.cold,
        waited_for_node=result.waited_for_node,
    )


@cache
def _launches(scenario: Scenario, seed: int, days: float) -> Sequence[Attempt]:
    return scenario.launches(seed, days)


def _autoscaler(name: str) -> Any:  # noqa: ANN401 - an assumption's value
    return read_assumption(f"autoscaler={name}", "--autoscalers")[1]


Runs = dict[Case, dict[str, dict[int, Run]]]


def replays(
    scenarios: Iterable[Scenario],
    *,
    arms: Sequence[str] = ARMS,
    autoscalers: Sequence[str] = AUTOSCALERS,
    placeholders: Sequence[int] | None = None,
    seeds: Sequence[int] = (1, 2, 3),
    days: float | None = None,
    jobs: int = 1,
    extra: str = "",
) -> Runs:
    """Case -> arm -> seed -> what came of it. days: of all scenarios alike; None: each one's
    own.
    """
    known = {scenario.name: scenario for scenario in scenarios}
    todo = [
        Job(Case(scenario.name, autoscaler, number), arm, seed, days or scenario.days, extra)
        for scenario in known.values()
        for seed, autoscaler in product(seeds, autoscalers)
        for number in (
            scenario.placeholders
            if placeholders is None
            else [number for number in scenario.placeholders if number in placeholders]
        )
        for arm in arms
    ]
    # Where the values come to the same, so do the replays.
    alike: dict[tuple[object, ...], list[Job]] = {}
    for job in todo:
        digest = policy_of(
            known[job.case.scenario], job.arm, job.case.placeholders, job.extra
        ).digest
        alike.setdefault((job.case, job.seed, digest), []).append(job)
    firsts = {same[0]: same for same in alike.values()}
    found: Runs = {}
    for number, (job, done) in enumerate(play_all(known, list(firsts), jobs, _policy_of_job), 1):
        case = job.case
        for same in firsts[job]:
            found.setdefault(case, {}).setdefault(same.arm, {})[job.seed] = done
        place = f"{case.scenario}, {case.autoscaler}, {case.placeholders}"
        say(f"  {number}/{len(firsts)} {place}: {job.arm}, seed {job.seed}")
    return {
        case: {arm: found[case][arm] for arm in arms}
        for case in dict.fromkeys(job.case for job in todo)
    }


def play_all(
    known: Mapping[str, Scenario],
    todo: Sequence[Job],
    jobs: int,
    find_policy: Callable[[Scenario, Job], Policy],
) -> Iterable[tuple[Job, Run]]:
    """Replay in this many processes. known: the scenarios by name. find_policy: the policy of a
    scenario's job.
    """
    _known.update(known)
    _find_policy.append(find_policy)
    return in_processes(_run_known, todo, jobs)


# What forked processes find there: a scenario's launches may be a function that can't be sent to
# them.
_known: dict[str, Scenario] = {}
_find_policy: list[Callable[[Scenario, Job], Policy]] = []


def _run_known(job: Job) -> Run:
    scenario = _known[job.case.scenario]
    return run(scenario, job, _find_policy[-1](scenario, job))


def _policy_of_job(scenario: Scenario, job: Job) -> Policy:
    return policy_of(scenario, job.arm, job.case.placeholders, job.extra)


# Promises


@dataclass(frozen=True)
class Broken:
    """A promise that wasn't kept."""

    case: Case
    arm: str
    what: str

    def __str__(self) -> str:
        case = self.case
        return (
            f"{case.scenario}, {case.autoscaler}, {case.placeholders} placeholders, {self.arm}:"
            f" {self.what}"
        )


def broken_promises(found: Runs) -> list[Broken]:
    """Where Roost is worse than the hub without it."""
    broken = []
    for case, arms in found.items():
        before = arms[HUB]
        for arm, runs in arms.items():
            if arm != HUB:
                broken += [Broken(case, arm, what) for what in _worse(before, runs)]
    return broken


def _worse(before: Mapping[int, Run], after: Mapping[int, Run]) -> Iterable[str]:
    for name, about in (
        ("given_up", "launches given up"),
        ("timeouts", "tries beyond the spawner's patience"),
    ):
        was, now = (sum(getattr(run, name) for run in runs.values()) for runs in (before, after))
        if now > was:
            yield f"{now} {about}, {was} without Roost"
    for name in NOISE:
        if name == "node_hours" and len(after) < FEWEST_SEEDS:
            continue
        was, differences = _paired(before, after, name)
        if (more := median(differences)) > _noise(name, was):
            if name == "node_hours":
                yield f"{more:.0f} node-hours more than {was:.0f}"
            else:
                yield f"{name} of the wait {more:.0f} s longer than {was:.0f} s"


def _paired(
    before: Mapping[int, Run], after: Mapping[int, Run], name: str
) -> tuple[float, list[float]]:
    """The median before, and each seed's difference."""
    differences = [getattr(after[seed], name) - getattr(before[seed], name) for seed in after]
    return median(getattr(run, name) for run in before.values()), differences


def _noise(name: str, was: float) -> float:
    return NOISE[name] + NOISE_SHARE * was


def found_from(before: Mapping[int, Run], after: Mapping[int, Run]) -> str:
    """The least worsening of each figure that so many seeds would have shown nine times in ten; ""
    of one seed.
    """
    if len(after) < 2:
        return ""
    found = []
    for name, unit in (("p95", " s"), ("p99", " s"), ("node_hours", " h")):
        was, differences = _paired(before, after, name)
        error = NINE_IN_TEN * MEDIAN_ERROR * stdev(differences) / len(after) ** 0.5
        found.append(f"+{figure(_noise(name, was) + error)}{unit}")
    return f"{', '.join(found)}; {ONE_SEEN / sum(run.launches for run in after.values()):.2%}"


# Telling


def show(found: Runs) -> str:
    """A table of all cases and arms: sums over seeds, or medians with the least and the
    greatest.
    """
    head = [
        "hub",
        "autoscaler",
        "placeholders",
        "",
        "launches",
        "given up",
        "beyond patience",
        "wait p50, s",
    ]
    head += [
        "p95, s",
        "p99, s",
        "found no room",
        "cold",
        "node-hours",
        "promises",
        "found from: p95, p99, node-hours; given up",
    ]
    rows = []
    broken = {
        (broken_promise.case, broken_promise.arm) for broken_promise in broken_promises(found)
    }
    for case, arms in found.items():
        for arm, runs in arms.items():
            first = (
                [case.scenario, case.autoscaler, str(case.placeholders)]
                if arm == HUB
                else ["", "", ""]
            )
            by_seed = list(runs.values())
            sums = [
                str(sum(getattr(run, name) for run in by_seed))
                for name in ("launches", "given_up", "timeouts")
            ]
            medians = [
                _range(by_seed, name)
                for name in ("p50", "p95", "p99", "waited_for_node", "cold", "node_hours")
            ]
            kept = ""
            power = ""
            if arm != HUB:
                kept = "BROKEN" if (case, arm) in broken else "kept"
                power = found_from(arms[HUB], runs)
            rows.append([*first, arm, *sums, *medians, kept, power])
    return table(head, rows)


def _range(runs: Sequence[Run], name: str) -> str:
    values = [getattr(run, name) for run in runs]
    if max(values) == min(values):
        return figure(values[0])
    return f"{figure(median(values))} ({figure(min(values))} to {figure(max(values))})"


def _own(options: argparse.Namespace) -> list[Scenario]:
    """The scenario of the command line."""
    if not (options.launches and options.hub_values):
        raise SystemExit("--launches and --hub-values belong together: give both.")
    trace = trace_of((options.launches,))
    world = dict(read_assumption(text, "--set") for text in options.set)
    hub = yaml.safe_load(Path(options.hub_values).read_text(encoding="utf-8"))
    inner = hub.get("jupyterhub", hub)
    pullers = inner.get("prePuller", {})
    is_on = any(
        pullers.get(kind, {}).get("enabled", "jupyterhub" not in hub)
        for kind in ("hook", "continuous")
    )
    own = Scenario(
        name=Path(options.launches).name,
        about="",
        launches=lambda seed, _: list(trace.open(seed)),
        hub=hub,
        world=world,
        has_pullers=is_on,
        placeholders=tuple(options.placeholders or (0, 4, 25)),
    )
    return [own]


def add_scenario_options(parser: argparse.ArgumentParser) -> None:
    """Which scenarios are played, how long each, and by how many processes."""
    names = [scenario.name for scenario in SCENARIOS]
    every = ", ".join(names)
    parser.add_argument(
        "--scenarios", nargs="+", choices=names, default=names, metavar="NAME", help=every
    )
    parser.add_argument("--days", type=float, help="of launches; default: each scenario's own")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)


def main(arguments: Sequence[str] | None = None) -> int:
    """Replay, print the table and what is broken."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add_scenario_options(parser)
    parser.add_argument("--autoscalers", nargs="+", choices=AUTOSCALERS, default=AUTOSCALERS)
    parser.add_argument(
        "--placeholders", nargs="+", type=int, help="placeholders, of those that a scenario has"
    )
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument(
        "--values",
        default="",
        help="a values file over Roost's in both of its arms, to try something",
    )
    parser.add_argument("--launches", help="a hub of your own: its launches")
    parser.add_argument("--hub-values", help="its zero-to-jupyterhub values")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="an assumption about its world",
    )
    options = parser.parse_args(arguments)
    scenarios = [scenario for scenario in SCENARIOS if scenario.name in options.scenarios]
    try:
        if options.launches or options.hub_values:
            scenarios = _own(options)
        found = replays(
            scenarios,
            autoscalers=options.autoscalers,
            placeholders=options.placeholders,
            seeds=range(options.first_seed, options.first_seed + options.seeds),
            days=options.days,
            jobs=options.jobs,
            extra=options.values,
        )
    except AssumptionsError as error:
        raise SystemExit(str(error)) from error
    print(
        f"{options.seeds} seeds; sums, or medians with the least and the"
        f" greatest\n\n{show(found)}\n"
    )
    broken = broken_promises(found)
    print("\n".join(map(str, broken)) or "Every promise is kept.")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
