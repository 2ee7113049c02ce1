"""Compare Roost's placement with other rules on mybinder.org's launches: table, intervals and
Pareto plots.

`python -m benchmarks.paper [--days N] [--seeds N] [--plots FOLDER]`: each arm of `ARMS` replays the
same window of the trace with the same seeds, session lengths, image sizes and boot times. A figure
is the median over the seeds with an interval (`interval`), a change that of the seeds' own
differences to the first arm. Results: paper.md. `--results FILE` keeps each replay as a line of
JSON, so that an interrupted run continues where it stopped.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from functools import cache, lru_cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from benchmarks import paper_rules
from benchmarks.figures import Interval, interval, machine, say, table
from benchmarks.forked import in_processes
from benchmarks.paper_plots import Point, plot
from benchmarks.paper_rules import RULES, use_rule
from roost_lab.simulator.engine.results import TOTAL
from roost_lab.simulator.engine.world import World
from roost_lab.simulator.setup.assumptions import Assumptions
from roost_lab.simulator.setup.checks import make_assumptions, read_assumption
from roost_lab.simulator.setup.policy import load_policy
from roost_lab.simulator.setup.shipped_policies import policy_files
from roost_lab.simulator.sweep.run import code_fingerprint
from roost_lab.simulator.sweep.survey import trace_of
from roost_lab.units import DAY_SECONDS
from tests.recorded_data import LAUNCHES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from roost_lab.simulator.setup.policy import Policy
    from roost_lab.traces.attempt import Attempt

# As large as a user, see `Assumptions`.
PLACEHOLDERS: Final = [
    {"name": "default", "replicas": 25, "resources": {"requests": {"cpu": "10m", "memory": "550M"}}}
]
# One rule at a time: Roost's webhook and scheduler, and placeholders packed as zero-to-jupyterhub's
# are.
RULE_ALONE: Final[Mapping[str, Any]] = {
    "podClasses": {
        "user": {"imageGate": False, "join": {"user": None}},
        "placeholder": {"profile": "user"},
    },
    "imageGate": {"mode": "off"},
    "prePuller": {"enabled": False},
    "placeholderMover": {"enabled": False},
    "placeholders": PLACEHOLDERS,
}
# A set of so many slots more than there are pods has every node.
EVERY_NODE: Final = {"podClasses": {"user": {"warm": {"spare": 1_000_000}}}}


class Arm(NamedTuple):
    """What is compared: a shipped policy, values over it, and a rule in place of Roost's."""

    # "": the values' defaults alone.
    policy: str
    values: Sequence[Mapping[str, Any]] = ()
    rule: str = ""
    # Roost's own, marked in the plots.
    is_ours: bool = False


FIRST: Final = "z2jh, packed"
ARMS: Final[Mapping[str, Arm]] = {
    FIRST: Arm("z2jh-placeholders-packed"),
    "kube-scheduler": Arm("kube-default", [{"placeholders": PLACEHOLDERS}]),
    "kube-scheduler, no placeholders": Arm("kube-default"),
    **{name: Arm("", [RULE_ALONE], name) for name in RULES},
    "holders without a set": Arm("", [RULE_ALONE, EVERY_NODE]),
    "warm set alone": Arm("", [RULE_ALONE], is_ours=True),
    "Roost's defaults": Arm("roost", is_ours=True),
}


class Run(NamedTuple):
    """What one replay came to: cold starts, waits in seconds, node-hours, TiB from registries."""

    cold: float
    p95: float
    p99: float
    node_hours: float
    registry_tib: float


# Of its figures: title, and digits behind the point.
TITLES: Final = {
    "cold": ("cold starts", 0),
    "p95": ("wait p95, s", 1),
    "p99": ("wait p99, s", 1),
    "node_hours": ("node-hours", 0),
    "registry_tib": ("from registries, TiB", 2),
}
# Pairs of figures that are drawn against each other: the file's name, across, up.
PLOTS: Final = (
    ("paper-cold-starts", "node_hours", "cold"),
    ("paper-p99", "node_hours", "p99"),
    ("paper-waits", "cold", "p99"),
)


class Job(NamedTuple):
    """One replay. days: of launches, from the beginning of this day of the trace on, the first is
    1.
    """

    arm: str
    seed: int
    begin: int
    days: float
    settings: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Equal for replays with equal results."""
        arm = ARMS[self.arm]
        return json.dumps(
            [
                *self,
                policy_of_arm(self.arm).digest,
                arm.rule,
                code_fingerprint(),
                _rules_fingerprint(),
            ]
        )


@cache
def _rules_fingerprint() -> str:
    """Of the rules' own code, which isn't part of Roost's."""
    return sha256(Path(paper_rules.__file__).read_bytes()).hexdigest()[:16]


@cache
def policy_of_arm(name: str) -> Policy:
    """The policy that an arm of ARMS replays."""
    arm = ARMS[name]
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder, f"{number}.json") for number, _ in enumerate(arm.values)]
        for file, values in zip(files, arm.values, strict=True):
            file.write_text(json.dumps(values), encoding="utf-8")
        base = [policy_files()[arm.policy]] if arm.policy else []
        return load_policy(name, list(map(str, [*base, *files])))


@lru_cache(maxsize=2)
def launches(seed: int, begin: int, days: float) -> Sequence[Attempt]:
    """Those of a window of the trace, in order of time."""
    return list(_launches(seed, begin, days))


def _launches(seed: int, begin: int, days: float) -> Iterator[Attempt]:
    first = None
    for attempt in trace_of((str(LAUNCHES),)).open(seed):
        first = attempt.moment if first is None else first
        day = (attempt.moment - first) / DAY_SECONDS
        if day >= begin - 1 + days:
            return
        if day >= begin - 1:
            yield attempt


def play(job: Job) -> Run:
    """Replay one job."""
    settings = dict(read_assumption(text, "--set") for text in job.settings)
    assumed = make_assumptions(settings, "--set") if settings else Assumptions()
    world = World(policy_of_arm(job.arm), assumed, job.seed)
    rule = ARMS[job.arm].rule
    if rule:
        use_rule(world, RULES[rule](world, job.seed))
    result = world.play(launches(job.seed, job.begin, job.days))
    waits = result.waits[TOTAL]
    return Run(
        cold=result.cold,
        p95=waits.quantile(0.95),
        p99=waits.quantile(0.99),
        node_hours=result.node_hours,
        registry_tib=result.registry_bytes / 2**40,
    )


# Figures


def change(before: Mapping[int, Run], after: Mapping[int, Run], name: str) -> Interval:
    """Of a figure, in percent, over the seeds that both have."""
    seeds = [seed for seed in after if seed in before]
    return interval(
        [100 * (getattr(after[seed], name) / getattr(before[seed], name) - 1) for seed in seeds]
    )


def on_front(points: Mapping[str, tuple[float, float]]) -> frozenset[str]:
    """Those that no other is better than in one figure and at least as good in the other; less is
    better.
    """
    return frozenset(
        name
        for name, (x, y) in points.items()
        if not any((a <= x and b <= y) and (a < x or b < y) for a, b in points.values())
    )


Runs = dict[str, dict[int, Run]]


def show(runs: Runs) -> str:
    """A Markdown table: the first arm's medians with their intervals, the others' with their
    changes against it.
    """
    rows = []
    first = runs[FIRST]
    for name, by_seed in runs.items():
        row = [name]
        for field, (_, digits) in TITLES.items():
            middle, low, high = interval([getattr(run, field) for run in by_seed.values()])
            text = f"{middle:,.{digits}f}"
            if name == FIRST:
                text += f" ({low:,.{digits}f} to {high:,.{digits}f})"
            else:
                found = change(first, by_seed, field)
                # As whole numbers: there is no -0.
                middle, low, high = map(round, found)
                text += f", {middle:+} % ({low:+} to {high:+})"
            row.append(text)
        rows.append(row)
    return table(["rule", *(title for title, _ in TITLES.values())], rows)


def write_plots(runs: Runs, folder: Path) -> None:
    """One SVG for each of PLOTS."""
    for stem, across, up in PLOTS:
        amounts = {
            name: [
                interval([getattr(run, figure) for run in by_seed.values()])
                for figure in (across, up)
            ]
            for name, by_seed in runs.items()
        }
        front = on_front({name: (x.middle, y.middle) for name, (x, y) in amounts.items()})
        points = [
            Point(name, x, y, name in front, ARMS[name].is_ours) for name, (x, y) in amounts.items()
        ]
        drawing = plot(points, TITLES[across][0], TITLES[up][0])
        (folder / f"{stem}.svg").write_text(drawing, encoding="utf-8")


# The command


def main(arguments: Sequence[str] | None = None) -> int:
    """Replay, print the table, and draw."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--arms", nargs="+", choices=ARMS, default=list(ARMS), metavar="ARM", help=", ".join(ARMS)
    )
    parser.add_argument(
        "--begin", type=int, default=1, help="day of the trace from which launches are played"
    )
    parser.add_argument("--days", type=float, default=10, help="of launches")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=1, help="replays at once")
    parser.add_argument("--set", dest="settings", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument(
        "--results", type=Path, help="keep replays in this file, and use those that it has"
    )
    parser.add_argument("--plots", type=Path, help="write SVG files into this folder")
    options = parser.parse_args(arguments)
    arms = list(dict.fromkeys((FIRST, *options.arms)))
    seeds = range(1, options.seeds + 1)
    todo = [
        Job(arm, seed, options.begin, options.days, tuple(options.settings))
        for seed in seeds
        for arm in arms
    ]
    done = _kept(options.results)
    runs: Runs = {arm: {} for arm in arms}
    say(machine())
    for number, (job, run) in enumerate(_play_all(todo, done, options.jobs), 1):
        if options.results is not None and job.key not in done:
            with options.results.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"key": job.key, "run": run._asdict()}) + "\n")
        runs[job.arm][job.seed] = run
        say(
            f"  {number}/{len(todo)} {job.arm}, seed {job.seed}: {run.cold:.0f} cold,"
            f" {run.node_hours:.0f} node-hours"
        )
    print(show(runs))
    if options.plots is not None:
        write_plots(runs, options.plots)
    return 0


def _kept(file: Path | None) -> dict[str, Run]:
    if file is None or not file.exists():
        return {}
    lines = map(json.loads, file.read_text(encoding="utf-8").splitlines())
    return {line["key"]: Run(**line["run"]) for line in lines}


def _play_all(todo: Sequence[Job], done: Mapping[str, Run], jobs: int) -> Iterator[tuple[Job, Run]]:
    missing = []
    for job in todo:
        run = done.get(job.key)
        if run is None:
            missing.append(job)
        else:
            yield job, run
    yield from in_processes(play, missing, jobs)


if __name__ == "__main__":
    sys.exit(main())
