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
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from functools import cache, lru_cache
from hashlib import sha256
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, Final, NamedTuple, cast

import yaml

from benchmarks import never_worse
from benchmarks import terms as drawn
from benchmarks.figures import say, table
from benchmarks.hub_scenarios import Scenario
from benchmarks.learned_headroom import foresee
from benchmarks.terms import EXAM, VARIANTS, Launch, Term
from generator.faults import ValuesError
from generator.importing.importer import import_layers
from roost_core.objects.quantities import parse_quantity
from roost_lab.simulator.engine.pods import PLACEHOLDER, USER
from roost_lab.simulator.engine.world import World
from roost_lab.simulator.setup.assumptions import Assumptions, Autoscaler
from roost_lab.simulator.setup.checks import make_assumptions
from roost_lab.simulator.setup.policy import Policy
from roost_lab.simulator.sweep import run as sweep
from roost_lab.simulator.sweep.dask_cluster import DaskCluster
from roost_lab.simulator.sweep.run import SweepError
from roost_lab.traces.attempt import Attempt
from tools.write_drawings import IMAGES, svg, text

NONE: Final = "none"
FIXED: Final = "fixed"
IMPORTED: Final = "imported"
ORACLE: Final = "oracle"
ARMS: Final = (NONE, FIXED, IMPORTED, ORACLE)
AUTOSCALERS: Final = (Autoscaler.CLUSTER_AUTOSCALER.value, Autoscaler.KARPENTER.value)
# As many as in the other comparisons with a fixed number.
FIXED_PLACEHOLDERS: Final = 25
# Weeks of a term unless told otherwise.
USUAL_WEEKS: Final = 5
MOST_WEEKS: Final = 26
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

    waits: seconds by the attempt's number, of those who got a server. node_hours: by week, of which
    the first of classes is 1.
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
        """Equal for replays with equal results: options, and digests of values and code."""
        options = {**asdict(self), "values": policy_of_job(self).digest}
        return json.dumps(options, sort_keys=True)

    def __str__(self) -> str:
        return f"seed {self.seed}, {self.arm}, {self.autoscaler}"


@cache
def fingerprint() -> str:
    """Of the code that decides a replay's figures: Roost's, and these benchmarks'."""
    digest = sha256(sweep.code_fingerprint().encode())
    for name in ("term", "terms", "learned_headroom"):
        digest.update(Path(__file__).with_name(f"{name}.py").read_bytes())
    return digest.hexdigest()[:16]


@lru_cache(maxsize=4)
def term_of(seed: int, weeks: int, variants: tuple[str, ...] = (), time_zone: str = "UTC") -> Term:
    """The term of a seed. Of fewer weeks than a term has: the beginning of a usual term."""
    is_cut = weeks < drawn.FEWEST_WEEKS
    term = drawn.draw_term(seed, USUAL_WEEKS if is_cut else weeks)
    if is_cut:
        term = drawn.first_weeks(term, weeks)
    for name in variants:
        term = VARIANTS[name](term)
    if time_zone != term.time_zone:
        term = drawn.in_zone(term, time_zone)
    return term


def _term_of_job(job: Job) -> Term:
    return term_of(job.seed, job.weeks, job.variants, job.time_zone)


def policy_of_job(job: Job) -> Policy:
    """What the cluster runs."""
    learn = job.learn if job.arm == IMPORTED else ()
    return _policy_of(json.dumps(drawn.hub_of(_term_of_job(job))), job.arm, learn)


@lru_cache(maxsize=256)
def _policy_of(hub_text: str, arm: str, learn: tuple[Learn, ...]) -> Policy:
    hub = json.loads(hub_text)
    users = {
        "user_cpu_millicores": round(1000 * hub["singleuser"]["cpu"]["guarantee"]),
        "user_memory_bytes": hub["singleuser"]["memory"]["guarantee"],
    }
    # Its world gives placeholders the size of a user. The launches are played apart from it.
    scenario = Scenario(name="term", about="", launches=_no_launches, hub=hub, world=users)
    if arm == NONE:
        return never_worse.policy_of(scenario, never_worse.HUB, 0, "")
    if arm == FIXED:
        return never_worse.policy_of(scenario, never_worse.HUB, FIXED_PLACEHOLDERS, "")
    if arm == IMPORTED and not learn:
        return never_worse.policy_of(scenario, never_worse.IMPORTED, 0, "")
    sets = imported_sets(scenario)
    for each in sets:
        if arm == ORACLE:
            each.pop("learn", None)
            each["replicas"] = 0
        else:
            each["learn"] = {**each.get("learn", {}), **dict(learn)}
    with tempfile.TemporaryDirectory() as folder:
        changes = Path(folder, "changes.yaml")
        changes.write_text(yaml.safe_dump({"placeholders": sets}), encoding="utf-8")
        return never_worse.policy_of(scenario, never_worse.IMPORTED, 0, str(changes))


def _no_launches(_seed: int, _days: float) -> Sequence[Attempt]:
    return ()


def imported_sets(scenario: Scenario) -> list[_JSON]:
    """The placeholder sets that `roost import` writes for a hub without placeholders."""
    text = yaml.safe_dump(never_worse.hub_values(scenario, 0))
    values = import_layers([("hub.yaml", text)]).values
    sets: list[_JSON] = json.loads(json.dumps(values["placeholders"]))
    return sets


def play(job: Job) -> Run:
    """Play one job. Raises SweepError where its code isn't this process's."""
    if job.code and job.code != fingerprint():
        why = "the code here differs from the code that the run began with"
        raise SweepError(f"{why}: use one checkout, or begin again")
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
    hours = (until - before for before, until in pairwise([0.0, *hours_until]))
    node_hours = dict(zip(weeks, hours, strict=True))
    found = figures_of(term, waits, node_hours)
    return replace(found, seconds=time.monotonic() - begun)


def _world_of(job: Job, policy: Policy) -> World:
    options = {"autoscaler": Autoscaler(job.autoscaler), "boot_median_seconds": job.boot_seconds}
    return World(policy, make_assumptions(options, "options"), job.seed)


def _seats(attempts: Sequence[Attempt], policy: Policy) -> list[Attempt]:
    """Each launch as often as placeholders give way to it: a user may have the memory of two."""
    (placeholders,) = policy.placeholders
    requests = placeholders.spec["containers"][0]["resources"]["requests"]
    seat_bytes = int(parse_quantity(requests["memory"]))
    seats = []
    for attempt in attempts:
        seats += [attempt] * max(1, math.ceil((attempt.memory_bytes or 0) / seat_bytes))
    return seats


# Many replays


# What a worker does for a job, and where jobs run, as a sweep has it.
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
    return cast("Spread", sweep.LocalProcesses(jobs) if dask is None else DaskCluster(dask))


def play_all(
    jobs: Sequence[Job],
    spread: Spread,
    results: Path | None,
    *,
    work: Work = play,
    begin: Callable[[int], None] = lambda _kept: None,
    report: Callable[[Job, Run], None] = lambda _job, _run: None,
) -> dict[Job, Run]:
    """Play all jobs that the file of results doesn't have. Each is appended to it as it ends.

    begin: called once with how many it has. report: called with every replay that ended now. Raises
    SweepError.
    """
    kept: dict[str, Run] = {}
    if results is not None:
        kept = read_results(results)
    by_key = {job.key: job for job in jobs}
    missing = [job for key, job in by_key.items() if key not in kept]
    begin(len(by_key) - len(missing))
    if missing:
        with closing(spread(missing, work)) as ends:
            for end in ends:
                kept[end.key] = end.result
                if results is not None:
                    _append(results, by_key[end.key], end)
                report(by_key[end.key], end.result)
    return {job: kept[key] for key, job in by_key.items()}


# What each line of results begins with.
LINE_START: Final = '{"key": '


def read_results(path: Path) -> dict[str, Run]:
    """Replays by their job's key; none without such a file. Raises ValueError for other content.

    A line that was cut off in writing is left out, so its replay is played again.
    """
    if not path.exists():
        return {}
    found = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            entry = json.loads(line)
            found[str(entry["key"])] = _run_of(entry["run"])
        except json.JSONDecodeError:
            if not line.startswith(LINE_START):
                raise _no_result(path, number) from None
        except (KeyError, TypeError):
            raise _no_result(path, number) from None
    return found


def _no_result(path: Path, number: int) -> ValueError:
    found = f"{path}:{number}: found a line that is no result of this benchmark"
    return ValueError(f"{found}. Name another file, or remove the line.")


def _append(path: Path, job: Job, end: End) -> None:
    entry = {"key": end.key, "job": str(job), "commit": commit(), "run": asdict(end.result)}
    line = json.dumps(entry) + "\n"
    with path.open("ab+") as file:
        size = file.seek(0, os.SEEK_END)
        if size:
            file.seek(size - 1)
            is_cut_off = file.read(1) != b"\n"
            if is_cut_off:
                line = "\n" + line
        file.write(line.encode())


@cache
def commit() -> str:
    """The commit, with "-dirty" behind it if files differ from it; "" outside a repository."""
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


# Autoscaler -> arm -> seed -> what came of it.
Runs = Mapping[str, Mapping[str, Mapping[int, Run]]]
# Which weeks a figure is of.
Weeks = Callable[[Run], Period]


class Side(NamedTuple):
    """A figure of several seeds: the median, and the greatest with its seed."""

    middle: float
    worst: float
    worst_seed: int

    def as_cells(self, digits: int, sign: str = "") -> list[str]:
        """The median, and the worst seed."""
        worst = f"{self.worst:{sign}.{digits}f} (seed {self.worst_seed})"
        return [f"{self.middle:{sign}.{digits}f}", worst]


def side_of(by_seed: Mapping[int, float]) -> Side:
    """The figure of these seeds."""
    seed = max(by_seed, key=lambda each: by_seed[each])
    return Side(median(by_seed.values()), by_seed[seed], seed)


def first_week(run: Run) -> Period:
    """The week in which nothing was learned before."""
    return run.weeks[0]


def from_second_week(run: Run) -> Period:
    """All weeks but the first."""
    return run.later


def late_of(runs: Mapping[int, Run], weeks: Weeks = from_second_week) -> dict[int, float]:
    """Seed -> share of people who were late, in percent, the exam apart."""
    return {seed: weeks(run).exam_apart.late_percent for seed, run in runs.items()}


def p95_of(runs: Mapping[int, Run], weeks: Weeks = from_second_week) -> dict[int, float]:
    """Seed -> p95 of the wait in seconds, the exam apart."""
    return {seed: weeks(run).exam_apart.p95 for seed, run in runs.items()}


def more_node_hours(
    runs: Mapping[int, Run], before: Mapping[int, Run], weeks: Weeks = from_second_week
) -> dict[int, float]:
    """Seed -> node-hours against those of `before`, in percent, for the seeds that both have."""
    found = {}
    for seed, run in runs.items():
        hours_before = weeks(before[seed]).node_hours if seed in before else 0.0
        if hours_before:
            found[seed] = 100 * (weeks(run).node_hours / hours_before - 1)
    return found


def show(runs: Runs, weeks: Weeks) -> str:
    """A table with a row for each autoscaler and arm."""
    head = ["autoscaler", "placeholders", "seeds", "late, %", "worst", "p95, s", "worst"]
    head += ["people-hours", "node-hours", "against none, %", "worst", "late with exam, %", "worst"]
    rows = []
    for autoscaler, by_arm in runs.items():
        for arm, by_seed in by_arm.items():
            periods = {seed: weeks(run) for seed, run in by_seed.items()}
            waited = median(each.exam_apart.people_hours for each in periods.values())
            hours = median(each.node_hours for each in periods.values())
            more = more_node_hours(by_seed, by_arm.get(NONE, {}), weeks)
            with_exam = {seed: each.everybody.late_percent for seed, each in periods.items()}
            row = [autoscaler, arm, str(len(by_seed))]
            row += side_of(late_of(by_seed, weeks)).as_cells(2)
            row += side_of(p95_of(by_seed, weeks)).as_cells(1)
            row += [f"{waited:.1f}", f"{hours:,.0f}"]
            row += side_of(more).as_cells(1, "+") if more else ["-", "-"]
            row += side_of(with_exam).as_cells(2)
            rows.append(row)
    return table(head, rows)


def show_seed(runs: Runs, seed: int) -> str:
    """A table of one seed: a row for each autoscaler, arm and week."""
    head = ["autoscaler", "placeholders", "week", "starts", "late, %", "p95, s", "p99, s"]
    head += ["mean, s", "people-hours", "node-hours", "late without exam, %", "p95, s"]
    rows = []
    for autoscaler, by_arm in runs.items():
        for arm, by_seed in by_arm.items():
            run = by_seed[seed]
            named = {str(number): period for number, period in enumerate(run.weeks, 1)}
            named[f"2 to {len(run.weeks)}"] = run.later
            if run.before.everybody.starts:
                named = {"before": run.before, **named}
            rows += [[autoscaler, arm, name, *_cells_of(named[name])] for name in named]
    return table(head, rows)


def _cells_of(period: Period) -> list[str]:
    waits, apart = period.everybody, period.exam_apart
    seconds = (waits.p95, waits.p99, waits.mean)
    return [
        f"{waits.starts:,}",
        f"{waits.late_percent:.2f}",
        *(f"{each:.1f}" for each in seconds),
        f"{waits.people_hours:.1f}",
        f"{period.node_hours:,.0f}",
        f"{apart.late_percent:.2f}",
        f"{apart.p95:.1f}",
    ]


def show_late_classes(runs: Runs, seed: int) -> str:
    """A table of one seed: the classes of which many were late. Without placeholders most are."""
    head = ["autoscaler", "placeholders", "week", "class", "people", "late", "p95, s"]
    rows = []
    for autoscaler, by_arm in runs.items():
        for arm, by_seed in by_arm.items():
            for late in by_seed[seed].late_classes if arm != NONE else ():
                name = f"{late.weekday} {late.time}{', exam' if late.is_exam else ''}"
                row = [autoscaler, arm, str(late.week), name]
                rows.append([*row, str(late.people), str(late.late), f"{late.p95:.0f}"])
    return table(head, rows)


# Goals, from the second week on, as imported


class Goal(NamedTuple):
    """What a figure may be at most, over the seeds."""

    about: str
    unit: str
    # Seed -> figure, of the arms `imported` and `none`.
    figure: Callable[[Mapping[int, Run], Mapping[int, Run]], dict[int, float]]
    # Of the median seed; None: any.
    most_middle: float | None
    most_worst: float


GOALS: Final = (
    Goal("late, exam apart", "%", lambda imported, _: late_of(imported), 1.0, 3.0),
    Goal("p95, exam apart", "s", lambda imported, _: p95_of(imported), None, 3.0),
    Goal("node-hours against none", "%", more_node_hours, 6.0, 9.0),
)


class Verdict(NamedTuple):
    """Whether a goal is kept with an autoscaler."""

    autoscaler: str
    # The goal and what was found, in words.
    text: str
    is_kept: bool


def judge(runs: Runs) -> list[Verdict]:
    """Each goal for each autoscaler with which `none` and `imported` were played."""
    found = []
    for autoscaler, by_arm in runs.items():
        if NONE in by_arm and IMPORTED in by_arm:
            for goal in GOALS:
                figure = goal.figure(by_arm[IMPORTED], by_arm[NONE])
                found.append(_judged(autoscaler, goal, figure))
    return found


def _judged(autoscaler: str, goal: Goal, by_seed: Mapping[int, float]) -> Verdict:
    side = side_of(by_seed)
    is_kept = side.worst <= goal.most_worst
    worst = f"{side.worst:.2f} {goal.unit} (seed {side.worst_seed}, at most {goal.most_worst:g})"
    if goal.most_middle is None:
        return Verdict(autoscaler, f"{goal.about}: worst seed {worst}", is_kept)
    is_kept = is_kept and side.middle <= goal.most_middle
    middle = f"{side.middle:.2f} {goal.unit} (at most {goal.most_middle:g})"
    return Verdict(autoscaler, f"{goal.about}: median {middle}, worst seed {worst}", is_kept)


def show_verdicts(verdicts: Iterable[Verdict]) -> str:
    """A line for each."""
    lines = []
    for each in verdicts:
        word = "kept  " if each.is_kept else "broken"
        lines.append(f"{word} {each.autoscaler}: {each.text}")
    return "\n".join(lines)


# The picture

PICTURE_WEEK: Final = 3
# The panels' titles.
PICTURE_ARMS: Final = {NONE: "Without placeholders", IMPORTED: "With Roost, as imported"}
LOOK_SECONDS: Final = 60
# So many looks are one step of a line, which shows the greatest.
LOOKS_A_STEP: Final = 10
SECONDS_A_DAY: Final = 86_400
# Of a panel, in pixels.
PANEL_LEFT: Final = 45
PANEL_WIDTH: Final = 690
PANEL_HEIGHT: Final = 150
PANEL_STEP: Final = 225
# In light and in dark; the other drawings have no such lines.
WAITING_STYLE: Final = "stroke:#d1495b"
SEATS_STYLE: Final = "stroke:#2a9d6f;stroke-width:1.5"
CLASS_STYLE: Final = "stroke:#7d8791"


class Look(NamedTuple):
    """How many there are at a time."""

    users: int
    waiting: int
    placeholders: int
    nodes: int


class Scale(NamedTuple):
    """What both panels have alike."""

    # Users at the panels' top.
    most: int
    users_a_node: int
    # When classes begin: days since Monday.
    class_days: Sequence[float]


class Played(NamedTuple):
    """A week for the picture."""

    looks: Sequence[Look]
    # Of those who came from Monday to Friday.
    waits: Waits


def looks_of(job: Job) -> Played:
    """Monday to Friday of the picture's week."""
    term = _term_of_job(job)
    begin = term.begin_of(PICTURE_WEEK)
    end = begin + drawn.WORKING_DAYS * SECONDS_A_DAY
    # A replay ends with its last launch: one of the weekend shows Friday to its end.
    end_of_week = term.begin_of(PICTURE_WEEK + 1)
    attempts = [attempt for attempt in term.attempts if attempt.moment < end_of_week]
    world = _world_of(job, policy_of_job(job))
    looks: list[Look] = []
    waits: dict[int, float] = {}

    def look(_: object) -> None:
        pods = world.sim_pods.values()
        users = [pod.ready_at is not None for pod in pods if pod.kind == USER]
        seats = sum(pod.kind == PLACEHOLDER and pod.node is not None for pod in pods)
        running = sum(users)
        looks.append(Look(running, len(users) - running, seats, len(world.nodes)))

    def note_wait(number: int, seconds: float, is_up: bool) -> None:
        waits[number] = seconds if is_up else NEVER_SECONDS

    world.measures.on_wait = note_wait
    for moment in range(round(begin), round(end), LOOK_SECONDS):
        world.at(moment, look)
    world.play(attempts)
    ours = (attempt.number for attempt in attempts if begin <= attempt.moment < end)
    return Played(looks, waits_of(waits.get(number, NEVER_SECONDS) for number in ours))


def draw(term: Term, weeks: Mapping[str, Played]) -> str:
    """The picture: a panel for each arm."""
    steps = {arm: list(_steps(played.looks)) for arm, played in weeks.items()}
    users_a_node = _users_a_node(term)
    most = max(_greatest(step, users_a_node) for each in steps.values() for step in each)
    scale = Scale(most, users_a_node, list(_class_days(term)))
    parts: list[str] = []
    for place, (arm, played) in enumerate(weeks.items()):
        late = f"{played.waits.late_percent:.1f} % wait longer than {LATE_SECONDS:.0f} s"
        hours = sum(look.nodes for look in played.looks) * LOOK_SECONDS / SECONDS_AN_HOUR
        title = f"{PICTURE_ARMS[arm]}: {late}, {hours:,.0f} node-hours from Monday to Friday"
        top = 24 + PANEL_STEP * place
        parts += _panel(top, title, steps[arm], scale)
    parts += _legend(24 + PANEL_STEP * len(weeks), users_a_node)
    label = "A week of classes without placeholders and with Roost: users, who waits, and nodes"
    return svg(24 + PANEL_STEP * len(weeks) + 18, label, parts)


def _steps(looks: Sequence[Look]) -> Iterator[Look]:
    """The greatest of each number in each step, so that no short wait is lost."""
    for first in range(0, len(looks), LOOKS_A_STEP):
        yield Look(*map(max, zip(*looks[first : first + LOOKS_A_STEP], strict=True)))


def _greatest(step: Look, users_a_node: int) -> int:
    return max(step.users, step.waiting, step.placeholders, users_a_node * step.nodes)


def _users_a_node(term: Term) -> int:
    """How many users of the term's smallest image a node takes: no node has more users."""
    assumed = Assumptions()
    memory = min(image.memory_bytes for image in term.images)
    by_cpu = assumed.node_cpu_millicores // drawn.CPU_MILLICORES
    return min(assumed.node_memory_bytes // memory, by_cpu, assumed.node_pods)


def _panel(top: float, title: str, steps: Sequence[Look], scale: Scale) -> Iterator[str]:
    bottom = top + 20 + PANEL_HEIGHT
    days = range(drawn.WORKING_DAYS)

    def x(day: float) -> float:
        return PANEL_LEFT + PANEL_WIDTH * day / len(days)

    def y(count: float) -> float:
        return bottom - PANEL_HEIGHT * count / scale.most

    step_days = LOOKS_A_STEP * LOOK_SECONDS / SECONDS_A_DAY

    def path(counts: Iterable[float]) -> str:
        return "L".join(f"{x(step_days * n):.1f} {y(count):.1f}" for n, count in enumerate(counts))

    yield text(15, top, title, "bold")
    for count in range(0, scale.most + 1, 100 if scale.most > 250 else 50):
        yield f'<path class="grid" d="M{PANEL_LEFT} {y(count):.1f}h{PANEL_WIDTH}"/>'
        yield text(15, y(count) + 4, str(count), "small")
    for day in days:
        yield f'<path class="grid" d="M{x(day):.1f} {bottom}v{-PANEL_HEIGHT}"/>'
        yield text(x(day + 0.5) - 12, bottom + 24, DAY_NAMES[day], "small")
    room = path(scale.users_a_node * step.nodes for step in steps)
    yield f'<path class="node" d="M{PANEL_LEFT} {bottom}L{room}V{bottom}Z"/>'
    for begin in scale.class_days:
        yield f'<path class="line" style="{CLASS_STYLE}" d="M{x(begin):.1f} {bottom + 2}v6"/>'
    seats = path(step.placeholders for step in steps)
    yield f'<path class="line" style="{SEATS_STYLE}" d="M{seats}"/>'
    yield f'<path class="line users" d="M{path(step.users for step in steps)}"/>'
    waiting = ((n, step.waiting) for n, step in enumerate(steps) if step.waiting)
    bars = " ".join(f"M{x(step_days * n):.1f} {bottom}V{y(count):.1f}" for n, count in waiting)
    yield f'<path class="line" style="{WAITING_STYLE}" d="{bars}"/>'


def _class_days(term: Term) -> Iterator[float]:
    """When classes begin in the picture's week: days since its Monday."""
    for number, each in enumerate(term.classes):
        if _takes_place(term, number):
            minutes = each.minute + each.late_minutes.get(PICTURE_WEEK, 0)
            yield each.weekday + (each.hour + minutes / 60) / 24


def _takes_place(term: Term, number: int) -> bool:
    each = term.classes[number]
    day = (PICTURE_WEEK - 1) * drawn.DAYS_A_WEEK + each.weekday
    return day != term.holiday and PICTURE_WEEK not in each.weeks_left_out


def _legend(y: float, users_a_node: int) -> Iterator[str]:
    lines = (
        (15, "line users", "", "users"),
        (95, "line", WAITING_STYLE, "waiting users"),
        (225, "line", SEATS_STYLE, "placeholders"),
    )
    for x, kind, style, words in lines:
        yield f'<path class="{kind}" style="{style}" d="M{x} {y}h24"/>'
        yield text(x + 30, y + 4, words)
    yield f'<rect class="node" x="350" y="{y - 6}" width="24" height="12"/>'
    yield text(380, y + 4, f"nodes, {users_a_node} users each")
    yield f'<path class="line" style="{CLASS_STYLE}" d="M560 {y - 3}v6"/>'
    yield text(568, y + 4, "a class begins")


# The command


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m benchmarks.term", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    add = parser.add_argument
    add("--seeds", type=_seeds, default=_seeds("1-20"), help="such as 3, 1-20 or 1,4,8-9")
    add("--arms", nargs="+", choices=ARMS, default=ARMS)
    add("--autoscalers", nargs="+", choices=AUTOSCALERS, default=AUTOSCALERS)
    cut = f"fewer than {drawn.FEWEST_WEEKS}: the beginning of a term of {USUAL_WEEKS}"
    add("--weeks", type=_weeks, default=USUAL_WEEKS, help=f"of classes; {cut}")
    add("--variants", nargs="+", choices=VARIANTS, default=(), help="of the terms")
    zone = f"classes are at its local time. The clock of {drawn.CLOCK_CHANGES} changes in week 4"
    add("--time-zone", type=_zone, default="UTC", metavar="ZONE", help=zone)
    boot = "until a node is ready, median"
    usual_boot = Assumptions().boot_median_seconds
    add("--boot-seconds", type=_boot_seconds, default=usual_boot, metavar="S", help=boot)
    learn = "learn KEY=VALUE …: over what `roost import` writes for a set's `learn`"
    add("--set", dest="changes", nargs="+", default=(), metavar="WORD", help=learn)
    add("--jobs", type=_at_least_one, default=sweep.usual_workers(), help="processes at once")
    add("--dask", metavar="ADDRESS", help="of a scheduler: play on its workers instead")
    kept = "keep replays in this file of JSON lines, and play only what it lacks"
    add("--results", type=Path, metavar="FILE", help=kept)
    add("--seed-table", type=int, metavar="N", help="also print the weeks of this seed")
    add("--picture", type=int, metavar="N", help="draw the third week of this seed, and no more")
    add("--output", type=Path, default=IMAGES / "term-week.svg", help="the picture's file")
    options = parser.parse_args(arguments)
    options.arms = [arm for arm in ARMS if arm in options.arms]
    options.autoscalers = [each for each in AUTOSCALERS if each in options.autoscalers]
    options.variants = tuple(name for name in VARIANTS if name in options.variants)
    try:
        options.learn = read_learn(options.changes)
    except ValueError as error:
        parser.error(str(error))
    if options.learn and IMPORTED not in options.arms:
        parser.error(f"--set learn is for the arm {IMPORTED}, which --arms leaves out")
    if options.seed_table is not None and options.seed_table not in options.seeds:
        parser.error(f"--seed-table {options.seed_table}: --seeds has no such seed")
    for path in (options.results, options.output):
        if path is not None and not path.absolute().parent.is_dir():
            parser.error(f"{path}: found no folder {path.parent}")
    if options.picture is not None and options.weeks < PICTURE_WEEK:
        parser.error(f"--picture shows week {PICTURE_WEEK}: give --weeks {PICTURE_WEEK} or more")
    return options


def _fault(text: str, expected: str) -> argparse.ArgumentTypeError:
    return argparse.ArgumentTypeError(f"found {text!r}, expected {expected}")


def _seeds(text: str) -> list[int]:
    """Seeds in rising order, each once."""
    found: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.partition("-")
        ends = [first, last] if dash else [first]
        if not all(end.isdecimal() for end in ends) or int(ends[0]) > int(ends[-1]):
            raise _fault(text, "seeds such as 3, 1-20 or 1,4,8-9")
        found.update(range(int(ends[0]), int(ends[-1]) + 1))
    return sorted(found)


def _weeks(text: str) -> int:
    if not text.isdecimal() or not 2 <= int(text) <= MOST_WEEKS:
        raise _fault(text, f"2 to {MOST_WEEKS} weeks: figures are from the second week on")
    return int(text)


def _at_least_one(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise _fault(text, "a whole number of at least 1")
    return int(text)


def _boot_seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    longest = Assumptions().give_up_boot_seconds
    if not 0 < seconds <= longest:
        raise _fault(text, f"seconds above 0 and up to {longest:g}, when autoscalers give up")
    return seconds


def _zone(text: str) -> str:
    try:
        drawn.zone_of(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text


def read_learn(words: Sequence[str]) -> tuple[Learn, ...]:
    """Changes of `learn costPercent=20 quantile=0.9`. Raises ValueError for other words.

    Keys and values are checked as those of any values file are, when they are rendered.
    """
    if not words:
        return ()
    first, *pairs = words
    if first != "learn" or not pairs:
        raise ValueError(f"--set {' '.join(words)}: expected `--set learn KEY=VALUE …`")
    found = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not (key and equals and value):
            raise ValueError(f"--set learn: found {pair!r}, expected KEY=VALUE")
        try:
            read = yaml.safe_load(value)
        except yaml.YAMLError:
            read = None
        is_scalar = isinstance(read, str | int | float)
        if not is_scalar:
            raise ValueError(f"--set learn {key}: found {value!r}, expected a number or a text")
        if key == "timeZone":
            drawn.zone_of(str(read))
        found[key] = read
    return tuple(Learn(key, found[key]) for key in sorted(found))


def jobs_of(options: argparse.Namespace) -> list[Job]:
    """What to play, one seed after the other."""
    return [
        _job(options, seed, arm, autoscaler)
        for seed in options.seeds
        for autoscaler in options.autoscalers
        for arm in options.arms
    ]


def _job(options: argparse.Namespace, seed: int, arm: str, autoscaler: str) -> Job:
    return Job(
        seed=seed,
        arm=arm,
        autoscaler=autoscaler,
        weeks=options.weeks,
        variants=options.variants,
        time_zone=options.time_zone,
        boot_seconds=options.boot_seconds,
        learn=options.learn if arm == IMPORTED else (),
        code=fingerprint(),
    )


class Progress:
    """Says on stderr what ended, and how many replays that are."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._ended = 0

    def begin(self, kept: int) -> None:
        """So many replays are known from earlier runs."""
        self._ended = kept
        if kept:
            say(f"  {kept}/{self._total} were played before")

    def end(self, job: Job, run: Run) -> None:
        """One more replay ended."""
        self._ended += 1
        later = run.later.exam_apart
        figures = f"late {later.late_percent:.2f} %, p95 {later.p95:.1f} s from week 2 on"
        hours = f"{run.later.node_hours:,.0f} node-hours"
        say(f"  {self._ended}/{self._total} {job}: {figures}, {hours}; {run.seconds:.0f} s")


def main(arguments: Sequence[str] | None = None) -> int:
    """Play, print the tables, and judge; or draw."""
    options = _options(arguments)
    try:
        if options.picture is not None:
            return _draw_picture(options)
        return _compare(options)
    except ValuesError as error:
        # Their file is one of ours, that the reader never saw.
        for fault in error.faults:
            say(str(fault._replace(file="--set learn" if options.learn else "values", line=0)))
    except (OSError, SweepError, ValueError) as error:
        say(str(error))
    return 2


def _compare(options: argparse.Namespace) -> int:
    jobs = jobs_of(options)
    progress = Progress(len(jobs))
    spread = spread_of(options.jobs, options.dask)
    done = play_all(jobs, spread, options.results, begin=progress.begin, report=progress.end)
    runs: dict[str, dict[str, dict[int, Run]]] = {}
    for job in jobs:
        runs.setdefault(job.autoscaler, {}).setdefault(job.arm, {})[job.seed] = done[job]
    print(f"First week, exam apart:\n\n{show(runs, first_week)}\n")
    print(f"From the second week on, exam apart:\n\n{show(runs, from_second_week)}\n")
    if options.seed_table is not None:
        seed = options.seed_table
        print(f"Seed {seed}, week by week, everybody:\n\n{show_seed(runs, seed)}\n")
        share = f"more than {LATE_CLASS_SHARE:.0%} were late"
        print(f"Seed {seed}, classes of which {share}:\n\n{show_late_classes(runs, seed)}\n")
    verdicts = judge(runs)
    if verdicts:
        print(f"Goals, from the second week on, as imported:\n\n{show_verdicts(verdicts)}")
    return 0 if all(each.is_kept for each in verdicts) else 1


def _draw_picture(options: argparse.Namespace) -> int:
    autoscaler = options.autoscalers[0]
    jobs = {arm: _job(options, options.picture, arm, autoscaler) for arm in PICTURE_ARMS}
    weeks = {arm: looks_of(job) for arm, job in jobs.items()}
    options.output.write_text(draw(_term_of_job(jobs[NONE]), weeks), encoding="utf-8")
    for arm, played in weeks.items():
        waits = played.waits
        say(f"{arm}: {waits.starts} starts, late {waits.late_percent:.2f} %, p95 {waits.p95:.1f} s")
    return 0


if __name__ == "__main__":
    # Workers find this module's functions under its name, not as __main__.
    sys.exit(import_module("benchmarks.term").main())
