"""Figures of a term's replays by week: waits and node-hours, goals that they must keep, and tables.

A wait ends when containers run. Who never gets a server is counted as 999 s. Who waits longer than
30 s is late.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Final, NamedTuple

from benchmarks.figures import table
from benchmarks.terms import EXAM, Launch, Term
from roost_core.placement.headroom_account import LATE_SECONDS
from roost_lab.units import HOUR_SECONDS

# Arms that `benchmarks.learned_headroom` has as well.
NONE: Final = "none"
FIXED: Final = "fixed"
IMPORTED: Final = "imported"
ORACLE: Final = "oracle"
# The wait of who never got a server.
NEVER_SECONDS: Final = 999.0
DAY_NAMES: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


# Figures of a replay


@dataclass(frozen=True)
class Waits:
    """What people waited. Without anybody all are 0."""

    starts: int
    late_percent: float
    # Seconds.
    p95: float
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
    # At once, in weeks without an exam.
    most_nodes: int


@dataclass(frozen=True)
class Told:
    """What the controllers themselves say that learning brought, over a whole replay."""

    # Hours that people didn't wait.
    saved_hours: float
    # Below 0: saved.
    node_hours: float


@dataclass(frozen=True)
class Run:
    """What one replay came to."""

    # Before the first class; without empty weeks nobody comes, and no node runs.
    before: Period
    # One for each week of classes, from the first on.
    weeks: tuple[Period, ...]
    # From the second week to the end.
    later: Period
    # How long the replay took.
    seconds: float = 0.0
    # None: nothing was learned, or over more weeks than are kept.
    told: Told | None = None
    # Replays of the same term by the same arm, in which other chance decided, such as how long each
    # node boots.
    other_draws: tuple[Run, ...] = ()

    @property
    def node_hours(self) -> float:
        """Of the whole replay."""
        return self.before.node_hours + sum(week.node_hours for week in self.weeks)

    @property
    def people_hours(self) -> float:
        """All waits of the whole replay together, the exam's, too."""
        periods = (self.before, *self.weeks)
        return sum(period.everybody.people_hours for period in periods)

    @property
    def mean_node_hours(self) -> float:
        """As node_hours, in the mean of this replay and the other draws."""
        return fmean(run.node_hours for run in (self, *self.other_draws))

    @property
    def mean_people_hours(self) -> float:
        """As people_hours, in the mean of this replay and the other draws."""
        return fmean(run.people_hours for run in (self, *self.other_draws))


def waits_of(seconds: Iterable[float]) -> Waits:
    """Figures of waits, which are in seconds and in any order."""
    ordered = sorted(seconds)
    if not ordered:
        return Waits(0, 0.0, 0.0, 0.0, 0.0)
    late = sum(seconds > LATE_SECONDS for seconds in ordered)
    total = sum(ordered)
    return Waits(
        starts=len(ordered),
        late_percent=100 * late / len(ordered),
        p95=percentile(ordered, 0.95),
        mean=total / len(ordered),
        people_hours=total / HOUR_SECONDS,
    )


def percentile(ordered: Sequence[float], share: float) -> float:
    """The least of these values, in rising order, that a share of them doesn't exceed."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


class Nodes(NamedTuple):
    """The nodes of a week."""

    hours: float
    # At once.
    most: int


def figures_of(term: Term, waits: Mapping[int, float], nodes_by_week: Mapping[int, Nodes]) -> Run:
    """The figures of a replay.

    waits: seconds by the attempt's number, of those who got a server. nodes_by_week: of all weeks;
    the first week of classes is 1, those before are 0 and less.
    """
    by_week: dict[int, list[Launch]] = {}
    for launch in term.launches:
        by_week.setdefault(term.week_of(launch.attempt.moment), []).append(launch)

    def period(weeks: Iterable[int]) -> Period:
        numbers = list(weeks)
        launches = [launch for week in numbers for launch in by_week.get(week, ())]
        others = [launch for launch in launches if launch.group != EXAM]
        exam_weeks = {
            term.week_of(launch.attempt.moment) for launch in launches if launch.group == EXAM
        }
        usual_weeks = [week for week in numbers if week not in exam_weeks]
        return Period(
            everybody=waits_of(_waits(launches, waits)),
            exam_apart=waits_of(_waits(others, waits)),
            node_hours=sum(nodes_by_week[week].hours for week in numbers),
            most_nodes=max((nodes_by_week[week].most for week in usual_weeks), default=0),
        )

    all_weeks = range(1, term.weeks + 1)
    return Run(
        before=period(range(1 - term.empty_weeks, 1)),
        weeks=tuple(period([week]) for week in all_weeks),
        later=period(all_weeks[1:]),
    )


def _waits(launches: Iterable[Launch], waits: Mapping[int, float]) -> list[float]:
    return [waits.get(launch.attempt.number, NEVER_SECONDS) for launch in launches]


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
    seed = max(by_seed, key=lambda seed: by_seed[seed])
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
    head = ["autoscaler", "placeholders", "seeds", "late, %", "worst late"]
    head += ["p95, s", "worst p95", "people-hours", "most nodes", "node-hours", "against none, %"]
    head += ["worst against none", "late with exam, %", "worst with exam"]
    rows = []
    for autoscaler, by_arm in runs.items():
        for arm, by_seed in by_arm.items():
            periods = {seed: weeks(run) for seed, run in by_seed.items()}
            waited = median(period.exam_apart.people_hours for period in periods.values())
            hours = median(period.node_hours for period in periods.values())
            most = median(period.most_nodes for period in periods.values())
            more = more_node_hours(by_seed, by_arm.get(NONE, {}), weeks)
            with_exam = {seed: period.everybody.late_percent for seed, period in periods.items()}
            row = [autoscaler, arm, str(len(by_seed))]
            row += side_of(late_of(by_seed, weeks)).as_cells(2)
            row += side_of(p95_of(by_seed, weeks)).as_cells(1)
            row += [f"{waited:.1f}", f"{most:g}", f"{hours:,.0f}"]
            row += side_of(more).as_cells(1, "+") if more else ["-", "-"]
            row += side_of(with_exam).as_cells(2)
            rows.append(row)
    return table(head, rows)


def show_imported_against(runs: Runs) -> str:
    """A table of what learned placeholders change, term by term, against each other arm."""
    head = ["autoscaler", "learned, against", "seeds", "node-hours", "node-hours, %", "worst, %"]
    rows = []
    for autoscaler, by_arm in runs.items():
        imported = by_arm.get(IMPORTED, {})
        for arm, before in by_arm.items():
            both = imported.keys() & before.keys()
            if arm == IMPORTED or not both:
                continue
            more = [
                from_second_week(imported[seed]).node_hours
                - from_second_week(before[seed]).node_hours
                for seed in both
            ]
            share = side_of(more_node_hours(imported, before, from_second_week))
            row = [autoscaler, arm, str(len(both)), f"{median(more):+,.0f}"]
            rows.append(row + share.as_cells(1, "+"))
    return table(head, rows) if rows else ""


def show_first_week(runs: Runs) -> str:
    """A table of the first week alone, with a row for each autoscaler and arm."""
    head = ["autoscaler", "placeholders", "seeds", "late, %", "worst late"]
    head += ["p95, s", "worst p95", "mean, s", "worst mean", "people-hours", "worst people-hours"]
    head += ["node-hours against none, %", "worst against none"]
    rows = []
    for autoscaler, by_arm in runs.items():
        for arm, by_seed in by_arm.items():
            waits = {seed: first_week(run).exam_apart for seed, run in by_seed.items()}
            more = more_node_hours(by_seed, by_arm.get(NONE, {}), first_week)
            row = [autoscaler, arm, str(len(by_seed))]
            row += side_of(late_of(by_seed, first_week)).as_cells(2)
            row += side_of(p95_of(by_seed, first_week)).as_cells(1)
            row += side_of(
                {seed: waits_of_seed.mean for seed, waits_of_seed in waits.items()}
            ).as_cells(1)
            row += side_of(
                {seed: waits_of_seed.people_hours for seed, waits_of_seed in waits.items()}
            ).as_cells(1)
            row += side_of(more).as_cells(1, "+") if more else ["-", "-"]
            rows.append(row)
    return table(head, rows)


# What the controllers tell of learning


def node_hours_error(imported: Mapping[int, Run], none: Mapping[int, Run]) -> dict[int, float]:
    """Seed -> by how much the told node-hours are wrong, in percent of the difference.

    Without Roost, a term's node-hours differ from draw to draw by as much as a third of what
    learning costs. No controller can foresee that, so the difference is to the draws' mean.
    """
    found = {}
    for seed, run in imported.items():
        truth = run.node_hours - none[seed].mean_node_hours if seed in none else 0.0
        if run.told is not None and truth:
            found[seed] = 100 * abs(run.told.node_hours / truth - 1)
    return found


def saved_hours_error(imported: Mapping[int, Run], none: Mapping[int, Run]) -> dict[int, float]:
    """Seed -> by how much the told hours not waited are wrong, in percent of the difference.

    Waits for nodes and for their first pulls are told. The difference also has starts that were
    given up.
    """
    found = {}
    for seed, run in imported.items():
        truth = none[seed].mean_people_hours - run.people_hours if seed in none else 0.0
        if run.told is not None and truth:
            found[seed] = 100 * abs(run.told.saved_hours / truth - 1)
    return found


def show_told(runs: Runs) -> str:
    """A table of what the controllers tell beside the truth: a row for each autoscaler and seed."""
    head = ["autoscaler", "seed", "hours not waited, told", "true", "wrong by, %"]
    head += ["node-hours, told", "true", "wrong by, %"]
    rows = []
    for autoscaler, by_arm in runs.items():
        imported = by_arm.get(IMPORTED, {})
        none = by_arm.get(NONE, {})
        saved = saved_hours_error(imported, none)
        cost = node_hours_error(imported, none)
        for seed in sorted(saved.keys() & cost.keys()):
            run = imported[seed]
            without = none[seed]
            told = run.told or Told(0.0, 0.0)
            row = [autoscaler, str(seed), f"{told.saved_hours:.1f}"]
            row += [f"{without.mean_people_hours - run.people_hours:.1f}", f"{saved[seed]:.0f}"]
            row += [f"{told.node_hours:+.1f}", f"{run.node_hours - without.mean_node_hours:+.1f}"]
            rows.append([*row, f"{cost[seed]:.0f}"])
    return table(head, rows) if rows else ""


# Goals, as imported: from the second week on, and what is told of the whole term


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
    Goal("told node-hours of learning, wrong by", "%", node_hours_error, 25.0, 25.0),
)


class GoalResult(NamedTuple):
    """Whether a goal is kept with an autoscaler."""

    autoscaler: str
    # The goal and what was found, in words.
    text: str
    is_kept: bool


def judge(runs: Runs) -> list[GoalResult]:
    """Each goal for each autoscaler with which `none` and `imported` were played."""
    found = []
    for autoscaler, by_arm in runs.items():
        if NONE in by_arm and IMPORTED in by_arm:
            for goal in GOALS:
                figure = goal.figure(by_arm[IMPORTED], by_arm[NONE])
                if figure:
                    found.append(_judged(autoscaler, goal, figure))
    return found


def _judged(autoscaler: str, goal: Goal, by_seed: Mapping[int, float]) -> GoalResult:
    side = side_of(by_seed)
    is_kept = side.worst <= goal.most_worst
    worst = f"{side.worst:.2f} {goal.unit} (seed {side.worst_seed}, at most {goal.most_worst:g})"
    if goal.most_middle is None:
        return GoalResult(autoscaler, f"{goal.about}: worst seed {worst}", is_kept)
    is_kept = is_kept and side.middle <= goal.most_middle
    middle = f"{side.middle:.2f} {goal.unit} (at most {goal.most_middle:g})"
    return GoalResult(autoscaler, f"{goal.about}: median {middle}, worst seed {worst}", is_kept)


def show_results(results: Iterable[GoalResult]) -> str:
    """A line for each."""
    lines = []
    for result in results:
        word = "kept  " if result.is_kept else "broken"
        lines.append(f"{word} {result.autoscaler}: {result.text}")
    return "\n".join(lines)
