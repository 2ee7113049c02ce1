"""Play a university's term with Roost and without it: `python -m benchmarks.term`.

`benchmarks.terms` draws the terms: each seed is another university. Each term is played by these
arms:

- none: the hub has no placeholders.
- fixed: the hub always has 25 placeholders, as zero-to-jupyterhub keeps them.
- imported: what `roost import` writes for the hub without placeholders. The numbers are learned in
  the replay itself.
- oracle: as imported, but it knows all launches. It keeps the seats that are needed within a node's
  boot.

A wait ends when containers run. Who never gets a server is counted as 999 s. Who waits longer than
30 s is late. Most figures leave the exam's people apart, because no earlier evening had an exam.

If `none` and `imported` are both played, the goals are judged for each autoscaler. A broken goal is
exit status 1.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import cache, lru_cache
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any, Final, NamedTuple, cast

import yaml

from benchmarks import never_worse
from benchmarks.figures import say, table
from benchmarks.hub_scenarios import Scenario
from benchmarks.learned_headroom import foresee
from benchmarks.terms import EXAM, FEWEST_WEEKS, VARIANTS, Launch, Term, draw_term, first_weeks, hub_of, in_zone
from generator.importing.importer import import_layers
from roost_core.objects.quantities import parse_quantity
from roost_lab.simulator.engine.world import World
from roost_lab.simulator.setup.assumptions import Assumptions, Autoscaler
from roost_lab.simulator.setup.checks import make_assumptions
from roost_lab.simulator.setup.policy import Policy
from roost_lab.simulator.sweep.dask_cluster import DaskCluster
from roost_lab.simulator.sweep.run import LocalProcesses, SweepError, code_fingerprint, usual_workers
from roost_lab.traces.attempt import Attempt

NONE: Final = "none"
FIXED: Final = "fixed"
IMPORTED: Final = "imported"
ORACLE: Final = "oracle"
ARMS: Final = (NONE, FIXED, IMPORTED, ORACLE)
AUTOSCALERS: Final = (Autoscaler.CLUSTER_AUTOSCALER.value, Autoscaler.KARPENTER.value)
# What zero-to-jupyterhub's guide has as an example of a number.
FIXED_PLACEHOLDERS: Final = 25
# Weeks of a term unless told otherwise.
USUAL_WEEKS: Final = 5
# Who waits longer is late.
LATE_SECONDS: Final = 30.0
# The wait of who never got a server.
NEVER_SECONDS: Final = 999.0
# A class is told of if a greater share of its people is late.
LATE_CLASS_SHARE: Final = 0.05
SECONDS_AN_HOUR: Final = 3600.0
DAY_NAMES: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_JSON = dict[str, Any]


# Figures of a replay


@dataclass(frozen=True)
class Waits:
    """What people waited. Without anybody all are 0."""

    starts: int
    late_percent: float
    # Seconds.
    p95: float
    p99: float
    mean: float
    # All waits together.
    people_hours: float


@dataclass(frozen=True)
class Period:
    """A week, or several."""

    everybody: Waits
    # The same without the exam's people.
    exam_apart: Waits
    node_hours: float


@dataclass(frozen=True)
class LateClass:
    """A class or exam, in one week, of whose people many were late."""

    # The first of classes is 1.
    week: int
    weekday: str
    # When it should have begun: hour and minute, local time.
    time: str
    people: int
    late: int
    # Seconds.
    p95: float
    is_exam: bool


@dataclass(frozen=True)
class Run:
    """What one replay came to."""

    # Before the first class; without empty weeks nobody comes, and no node runs.
    before: Period
    # One for each week of classes, from the first on.
    weeks: tuple[Period, ...]
    # From the second week to the end.
    later: Period
    late_classes: tuple[LateClass, ...]
    # How long the replay took.
    seconds: float = 0.0


def waits_of(seconds: Iterable[float]) -> Waits:
    """Figures of waits, which are in seconds and in any order."""
    ordered = sorted(seconds)
    if not ordered:
        return Waits(0, 0.0, 0.0, 0.0, 0.0, 0.0)
    late = sum(each > LATE_SECONDS for each in ordered)
    total = sum(ordered)
    return Waits(
        starts=len(ordered),
        late_percent=100 * late / len(ordered),
        p95=percentile(ordered, 0.95),
        p99=percentile(ordered, 0.99),
        mean=total / len(ordered),
        people_hours=total / SECONDS_AN_HOUR,
    )


def percentile(ordered: Sequence[float], share: float) -> float:
    """The least of these values, in rising order, that a share of them doesn't exceed."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def figures_of(term: Term, waits: Mapping[int, float], node_hours: Mapping[int, float]) -> Run:
    """The figures of a replay.

    waits: seconds by the attempt's number, of those who got a server. node_hours: by week; the first of classes is 1.
    """
    by_week: dict[int, list[Launch]] = {}
    for launch in term.launches:
        by_week.setdefault(term.week_of(launch.attempt.moment), []).append(launch)

    def period(weeks: Iterable[int]) -> Period:
        numbers = list(weeks)
        launches = [launch for week in numbers for launch in by_week.get(week, ())]
        others = [launch for launch in launches if launch.group != EXAM]
        hours = sum(node_hours.get(week, 0.0) for week in numbers)
        return Period(waits_of(_waits(launches, waits)), waits_of(_waits(others, waits)), hours)

    all_weeks = range(1, term.weeks + 1)
    return Run(
        before=period(range(1 - term.empty_weeks, 1)),
        weeks=tuple(period([week]) for week in all_weeks),
        later=period(all_weeks[1:]),
        late_classes=tuple(_late_classes(term, by_week, waits)),
    )


def _waits(launches: Iterable[Launch], waits: Mapping[int, float]) -> list[float]:
    return [waits.get(launch.attempt.number, NEVER_SECONDS) for launch in launches]


def _late_classes(
    term: Term, by_week: Mapping[int, Sequence[Launch]], waits: Mapping[int, float]
) -> Iterator[LateClass]:
    for week in sorted(by_week):
        of_group: dict[int, list[Launch]] = {}
        for launch in by_week[week]:
            if launch.group is not None:
                of_group.setdefault(launch.group, []).append(launch)
        for group, launches in of_group.items():
            seconds = sorted(_waits(launches, waits))
            late = sum(each > LATE_SECONDS for each in seconds)
            if late > LATE_CLASS_SHARE * len(seconds):
                weekday, begins = _begin_of_group(term, group)
                p95 = percentile(seconds, 0.95)
                yield LateClass(week, weekday, begins, len(seconds), late, p95, group == EXAM)


def _begin_of_group(term: Term, group: int) -> tuple[str, str]:
    """Weekday and time at which a class, or the exam, begins."""
    if group == EXAM and term.exam is not None:
        return DAY_NAMES[term.exam.day % 7], f"{term.exam.hour:02}:00"
    found = term.classes[group]
    return DAY_NAMES[found.weekday], f"{found.hour:02}:{found.minute:02}"


# Playing


class Learn(NamedTuple):
    """A key of `placeholders[].learn` and its value, over what `roost import` writes."""

    key: str
    # A number or a text, as YAML has it.
    value: str | float


@dataclass(frozen=True)
class Job:
    """One replay to run."""

    seed: int
    arm: str
    autoscaler: str
    weeks: int = USUAL_WEEKS
    # Of VARIANTS.
    variants: tuple[str, ...] = ()
    time_zone: str = "UTC"
    boot_seconds: float = Assumptions().boot_median_seconds
    # Of the arm `imported` alone.
    learn: tuple[Learn, ...] = ()
    # Fingerprint of the code: a worker with other code refuses the job.
    code: str = ""

    @property
    def key(self) -> str:
        """Equal for replays with equal results: options, a digest of the values and one of the code."""
        options = {**asdict(self), "values": policy_of_job(self).digest}
        return json.dumps(options, sort_keys=True)

    def __str__(self) -> str:
        return f"seed {self.seed}, {self.arm}, {self.autoscaler}"


@cache
def fingerprint() -> str:
    """Of the code that decides a replay's figures: Roost's, and these benchmarks'."""
    digest = sha256(code_fingerprint().encode())
    for name in ("term", "terms", "learned_headroom"):
        digest.update(Path(__file__).with_name(f"{name}.py").read_bytes())
    return digest.hexdigest()[:16]


@lru_cache(maxsize=4)
def term_of(seed: int, weeks: int, variants: tuple[str, ...] = (), time_zone: str = "UTC") -> Term:
    """The term of a seed. Of fewer weeks than a term has: the beginning of a usual term."""
    is_cut = weeks < FEWEST_WEEKS
    term = draw_term(seed, USUAL_WEEKS if is_cut else weeks)
    if is_cut:
        term = first_weeks(term, weeks)
    for name in variants:
        term = VARIANTS[name](term)
    if time_zone != term.time_zone:
        term = in_zone(term, time_zone)
    return term


def _term_of_job(job: Job) -> Term:
    return term_of(job.seed, job.weeks, job.variants, job.time_zone)


def policy_of_job(job: Job) -> Policy:
    """What the cluster runs."""
    learn = job.learn if job.arm == IMPORTED else ()
    return _policy_of(json.dumps(hub_of(_term_of_job(job))), job.arm, learn)


@lru_cache(maxsize=256)
def _policy_of(hub_text: str, arm: str, learn: tuple[Learn, ...]) -> Policy:
    hub = json.loads(hub_text)
    users = {
        "user_cpu_millicores": round(1000 * hub["singleuser"]["cpu"]["guarantee"]),
        "user_memory_bytes": hub["singleuser"]["memory"]["guarantee"],
    }
    # Its world gives placeholders the size of a user. The launches are played apart from it.
    scenario = Scenario(name="term", about="", launches=lambda _seed, _days: (), hub=hub, world=users)
    if arm == NONE:
        return never_worse.policy_of(scenario, never_worse.HUB, 0, "")
    if arm == FIXED:
        return never_worse.policy_of(scenario, never_worse.HUB, FIXED_PLACEHOLDERS, "")
    if arm == IMPORTED and not learn:
        return never_worse.policy_of(scenario, never_worse.IMPORTED, 0, "")
    sets = imported_sets(scenario)
    for each in sets:
        if arm == ORACLE:
            del each["learn"]
            each["replicas"] = 0
        else:
            each["learn"] |= dict(learn)
    with tempfile.TemporaryDirectory() as folder:
        changes = Path(folder, "changes.yaml")
        changes.write_text(yaml.safe_dump({"placeholders": sets}), encoding="utf-8")
        return never_worse.policy_of(scenario, never_worse.IMPORTED, 0, str(changes))


def imported_sets(scenario: Scenario) -> list[_JSON]:
    """The placeholder sets that `roost import` writes for a hub without placeholders."""
    text = yaml.safe_dump(never_worse.hub_values(scenario, 0))
    values = import_layers([("hub.yaml", text)]).values
    sets: list[_JSON] = json.loads(json.dumps(values["placeholders"]))
    return sets


def play(job: Job) -> Run:
    """Play one job. Raises SweepError where its code isn't this process's."""
    if job.code and job.code != fingerprint():
        raise SweepError(
            "the code here differs from the code that the run began with: use one checkout, or begin again"
        )
    begun = time.monotonic()
    term = _term_of_job(job)
    policy = policy_of_job(job)
    world = _world_of(job, policy)
    waits: dict[int, float] = {}
    hours_until: list[float] = []

    def note_wait(number: int, seconds: float, is_up: bool) -> None:
        if is_up:
            waits[number] = seconds

    def note_hours(moment: float) -> None:
        world.measures.nodes(0, moment)
        hours_until.append(world.measures.result.node_hours)

    world.measures.on_wait = note_wait
    weeks = range(1 - term.empty_weeks, term.weeks + 1)
    for week in weeks[:-1]:
        end = term.begin_of(week + 1)
        world.at(end, note_hours, end)
    if job.arm == ORACLE:
        foresee(world, _seats(term.attempts, policy))
    result = world.play(term.attempts)
    hours_until.append(result.node_hours)
    # Nobody may have come in the last weeks.
    hours_until += [result.node_hours] * (len(weeks) - len(hours_until))
    node_hours = {
        week: until - before for week, before, until in zip(weeks, [0.0, *hours_until], hours_until, strict=False)
    }
    found = figures_of(term, waits, node_hours)
    return Run(found.before, found.weeks, found.later, found.late_classes, time.monotonic() - begun)


def _world_of(job: Job, policy: Policy) -> World:
    options = {"autoscaler": Autoscaler(job.autoscaler), "boot_median_seconds": job.boot_seconds}
    return World(policy, make_assumptions(options, "options"), job.seed)


def _seats(attempts: Sequence[Attempt], policy: Policy) -> list[Attempt]:
    """Each launch as often as placeholders have to give way to it: a user may have the memory of two."""
    (placeholders,) = policy.placeholders
    requests = placeholders.spec["containers"][0]["resources"]["requests"]
    seat_bytes = int(parse_quantity(requests["memory"]))
    seats = []
    for attempt in attempts:
        seats += [attempt] * max(1, math.ceil((attempt.memory_bytes or 0) / seat_bytes))
    return seats


# Many replays


# What a worker does for a job, and where jobs run: as the simulator's sweeps have it, for these jobs.
Work = Callable[[Job], Run]


class End(NamedTuple):
    """A replay ended."""

    key: str
    result: Run


Spread = Callable[[Sequence[Job], Work], Generator[End, None, None]]


def spread_of(jobs: int, dask: str | None) -> Spread:
    """Processes of this machine, or the workers of a Dask cluster by its scheduler's address.

    The workers need the same checkout, with `benchmarks` on their path.
    """
    # A sweep's job is asked for its key and its name alone.
    return cast("Spread", LocalProcesses(jobs) if dask is None else DaskCluster(dask))


def play_all(
    jobs: Sequence[Job],
    spread: Spread,
    results: Path | None,
    *,
    work: Work = play,
    report: Callable[[Job, Run], None] = lambda _job, _run: None,
) -> dict[Job, Run]:
    """Play all jobs that the file of results doesn't have, and append each to it as it ends. Raises SweepError.

    report: called with every replay that ended now.
    """
    kept: dict[str, Run] = {}
    if results is not None:
        _drop_partial_line(results)
        kept = read_results(results)
    by_key = {job.key: job for job in jobs}
    missing = [job for key, job in by_key.items() if key not in kept]
    if missing:
        with closing(spread(missing, work)) as ends:
            for end in ends:
                kept[end.key] = end.result
                if results is not None:
                    _append(results, by_key[end.key], end)
                report(by_key[end.key], end.result)
    return {job: kept[key] for key, job in by_key.items()}


def read_results(path: Path) -> dict[str, Run]:
    """Replays by their job's key; none without such a file. Raises ValueError for other content."""
    if not path.exists():
        return {}
    found = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            entry = json.loads(line)
            found[str(entry["key"])] = _run_of(entry["run"])
        except (ValueError, KeyError, TypeError) as error:
            why = f"{path}:{number}: no result of this benchmark ({type(error).__name__}: {error})"
            raise ValueError(f"{why}. Name another file, or remove the line.") from None
    return found


def _append(path: Path, job: Job, end: End) -> None:
    entry = {"key": end.key, "job": str(job), "commit": commit(), "run": asdict(end.result)}
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(entry) + "\n")


def _drop_partial_line(path: Path) -> None:
    """Remove a last line that was cut off in writing, so that the next one doesn't continue it."""
    if path.exists():
        text = path.read_bytes()
        whole_lines = text[: text.rfind(b"\n") + 1]
        if whole_lines != text:
            path.write_bytes(whole_lines)


@cache
def commit() -> str:
    """The commit that is checked out, with "-dirty" behind it if files differ from it; "" outside a repository."""
    folder = Path(__file__).parent
    command = ["git", "describe", "--always", "--abbrev=40", "--exclude=*", "--dirty"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def _run_of(entry: Mapping[str, Any]) -> Run:
    return Run(
        before=_period_of(entry["before"]),
        weeks=tuple(map(_period_of, entry["weeks"])),
        later=_period_of(entry["later"]),
        late_classes=tuple(LateClass(**each) for each in entry["late_classes"]),
        seconds=entry["seconds"],
    )


def _period_of(entry: Mapping[str, Any]) -> Period:
    return Period(Waits(**entry["everybody"]), Waits(**entry["exam_apart"]), entry["node_hours"])


# Tables

# Arm and autoscaler -> seed -> what came of it.
Runs = dict[tuple[str, str], dict[int, Run]]


class Side(NamedTuple):
    """Of a figure, over the seeds: the median, and the worst seed with its number."""

    middle: float
    worst: float
    worst_seed: int


def side_of(by_seed: Mapping[int, float]) -> Side:
    """The median and the greatest."""
    seed = max(by_seed, key=lambda each: by_seed[each])
    return Side(median(by_seed.values()), by_seed[seed], seed)


def first_week(run: Run) -> Period:
    """The week in which nothing was learned before."""
    return run.weeks[0]


def from_second_week(run: Run) -> Period:
    """All weeks but the first."""
    return run.later


def more_node_hours(runs: Runs, arm: str, autoscaler: str, period: Callable[[Run], Period]) -> dict[int, float]:
    """Seed -> node-hours against those without placeholders, in percent."""
    before = runs.get((NONE, autoscaler), {})
    found = {}
    for seed, run in runs[arm, autoscaler].items():
        if seed in before and period(before[seed]).node_hours:
            found[seed] = 100 * (period(run).node_hours / period(before[seed]).node_hours - 1)
    return found


def show(runs: Runs, period: Callable[[Run], Period]) -> str:
    """A row for each autoscaler and arm: medians over the seeds, and the worst seed."""
    head = ["autoscaler", "placeholders", "seeds", "late, %", "worst", "p95, s", "worst"]
    head += ["people-hours waited", "node-hours", "against none, %", "worst", "late with exam, %", "worst"]
    rows = []
    for (arm, autoscaler), by_seed in sorted(runs.items(), key=_row_order):
        periods = {seed: period(run) for seed, run in by_seed.items()}
        late = side_of({seed: each.exam_apart.late_percent for seed, each in periods.items()})
        p95 = side_of({seed: each.exam_apart.p95 for seed, each in periods.items()})
        waited = median(each.exam_apart.people_hours for each in periods.values())
        hours = median(each.node_hours for each in periods.values())
        with_exam = side_of({seed: each.everybody.late_percent for seed, each in periods.items()})
        more = more_node_hours(runs, arm, autoscaler, period)
        row = [autoscaler, arm, str(len(by_seed))]
        row += [f"{late.middle:.2f}", f"{late.worst:.2f} (seed {late.worst_seed})"]
        row += [f"{p95.middle:.1f}", f"{p95.worst:.1f} (seed {p95.worst_seed})"]
        row += [f"{waited:.1f}", f"{hours:,.0f}"]
        if more:
            against = side_of(more)
            row += [f"{against.middle:+.1f}", f"{against.worst:+.1f} (seed {against.worst_seed})"]
        else:
            row += ["-", "-"]
        row += [f"{with_exam.middle:.2f}", f"{with_exam.worst:.2f} (seed {with_exam.worst_seed})"]
        rows.append(row)
    return table(head, rows)


def _row_order(item: tuple[tuple[str, str], object]) -> tuple[str, int]:
    (arm, autoscaler), _ = item
    return autoscaler, ARMS.index(arm)


# The command


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.term", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=read_seeds, default=range(1, 21), metavar="1-20")
    parser.add_argument("--arms", nargs="+", choices=ARMS, default=ARMS)
    parser.add_argument("--autoscalers", nargs="+", choices=AUTOSCALERS, default=AUTOSCALERS)
    parser.add_argument("--weeks", type=int, default=USUAL_WEEKS)
    parser.add_argument("--jobs", type=int, default=usual_workers())
    parser.add_argument("--dask", metavar="ADDRESS")
    parser.add_argument("--results", type=Path, metavar="FILE")
    parser.add_argument("--boot-seconds", type=float, default=Assumptions().boot_median_seconds)
    parser.add_argument("--set", dest="changes", nargs="+", default=[])
    return parser.parse_args(arguments)


def read_seeds(text: str) -> Sequence[int]:
    """Seeds of `3`, `1-20` or `1,4,8-9`."""
    found: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


def read_learn(words: Sequence[str]) -> tuple[Learn, ...]:
    """Changes of `learn costPercent=20 quantile=0.9`."""
    if not words:
        return ()
    pairs = (word.partition("=") for word in words[1:])
    return tuple(Learn(key, yaml.safe_load(value)) for key, _, value in pairs)


def main(arguments: Sequence[str] | None = None) -> int:
    """Play, print the tables, and judge."""
    options = _options(arguments)
    jobs = [
        Job(
            seed=seed,
            arm=arm,
            autoscaler=autoscaler,
            weeks=options.weeks,
            boot_seconds=options.boot_seconds,
            learn=read_learn(options.changes) if arm == IMPORTED else (),
            code=fingerprint(),
        )
        for seed in options.seeds
        for autoscaler in options.autoscalers
        for arm in options.arms
    ]
    spread = spread_of(options.jobs, options.dask)
    done = play_all(jobs, spread, options.results, report=Progress(len(jobs)).ended)
    runs: Runs = {}
    for job, run in done.items():
        runs.setdefault((job.arm, job.autoscaler), {})[job.seed] = run
    print(f"First week:\n\n{show(runs, first_week)}\n")
    print(f"From the second week on:\n\n{show(runs, from_second_week)}\n")
    return 0


class Progress:
    """Says on stderr what ended, and how many replays that are."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._ended = 0

    def ended(self, job: Job, run: Run) -> None:
        """One more replay ended."""
        self._ended += 1
        later = run.later.exam_apart
        say(
            f"  {self._ended}/{self._total} {job}: late {later.late_percent:.2f} %, "
            f"p95 {later.p95:.1f} s from week 2 on, {run.later.node_hours:,.0f} node-hours; "
            f"{run.seconds:.0f} s"
        )


if __name__ == "__main__":
    # Workers find this module's functions under its name, not as __main__.
    sys.exit(import_module("benchmarks.term").main())
