"""Play an exam that fills the hub: 320 people within two minutes at 18:00, on a term's exam day.

The day is played alone, from its midnight on, on a hub whose controllers have the history of all
days before. Nodes and servers of the evening before aren't there. The cases:

- not booked: as `roost import` writes it.
- not booked, 64 at once: and the hub starts 64 servers at a time (concurrentSpawnLimit). Who comes
  meanwhile comes again after 30 to 60 s.
- booked: the exam is booked, as by `roost book 320`.
- booked, 64 at once: both.
- booked, as many nodes as needed: the pool's greatest size is just enough for the exam's people and
  for those who are there then.
- booked, two thirds of the nodes: the pool's greatest size is two thirds of that. Of 18 nodes, 12.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from statistics import median
from typing import Any, Final, NamedTuple, cast

from benchmarks import term_playing as playing
from benchmarks import terms as drawn
from benchmarks.figures import table
from benchmarks.term_figures import IMPORTED, NEVER_SECONDS, percentile, side_of
from benchmarks.terms import EXAM, Launch, Term
from roost_core.placement.headroom_account import LATE_SECONDS
from roost_lab.simulator.engine.world import World
from roost_lab.simulator.setup.assumptions import Assumptions, Autoscaler
from roost_lab.simulator.setup.checks import make_assumptions
from roost_lab.units import HOUR_SECONDS

PEOPLE: Final = 320
HOUR: Final = 18
SPAWN_LIMIT: Final = 64
# Who waits longer is told of, beside those who are late.
SOON_SECONDS: Final = 10.0


class Case(NamedTuple):
    """What the exam meets."""

    is_booked: bool
    # 0: no limit.
    spawn_limit: int = 0
    # The pool's greatest size, as a share of the nodes that are needed; None: as usual.
    share_of_nodes: float | None = None


CASES: Final[Mapping[str, Case]] = {
    "not booked": Case(is_booked=False),
    "not booked, 64 at once": Case(is_booked=False, spawn_limit=SPAWN_LIMIT),
    "booked": Case(is_booked=True),
    "booked, 64 at once": Case(is_booked=True, spawn_limit=SPAWN_LIMIT),
    "booked, as many nodes as needed": Case(is_booked=True, share_of_nodes=1.0),
    "booked, two thirds of the nodes": Case(is_booked=True, share_of_nodes=2 / 3),
}


@dataclass(frozen=True)
class ExamJob:
    """One exam to play."""

    seed: int
    # Of CASES.
    case: str
    autoscaler: str
    weeks: int = playing.USUAL_WEEKS
    variants: tuple[str, ...] = ()
    time_zone: str = "UTC"
    boot_seconds: float = Assumptions().boot_median_seconds
    learn: tuple[playing.Learn, ...] = ()
    # Fingerprint of the code: a worker with other code refuses the job.
    code: str = ""

    @property
    def key(self) -> str:
        """Of no other job."""
        return json.dumps(asdict(self), sort_keys=True)

    def __str__(self) -> str:
        return f"seed {self.seed}, exam {self.case}, {self.autoscaler}"


@dataclass(frozen=True)
class Outcome:
    """What the exam's people met."""

    people: int
    later_than_10: int
    later_than_30: int
    # The hub gave their start up, or they never got so far.
    without_server: int
    # Seconds, of all; who gets no server counts as NEVER_SECONDS.
    p95: float
    slowest: float
    # Of the whole day.
    node_hours: float
    # The pool's greatest size.
    most_nodes: int


class ExamEnd(NamedTuple):
    """An exam was played."""

    key: str
    result: Outcome


# What a worker does for a job, and where jobs run.
Work = Callable[[ExamJob], Outcome]
Spread = Callable[[Sequence[ExamJob], Work], Generator[ExamEnd, None, None]]


def exam_term(job: ExamJob) -> Term:
    """The job's term, with this exam in place of its own. Raises ValueError where it has none."""
    term = playing.term_of(job.seed, job.weeks, job.variants, job.time_zone)
    return drawn.with_exam(term, PEOPLE, HOUR)


def booking_of(term: Term) -> dict[str, Any]:
    """The exam as `events.booked` has it."""
    exam = _exam_of(term)
    start = drawn.FIRST_MONDAY + timedelta(days=exam.day, hours=exam.hour)
    entry: dict[str, Any] = {
        "name": "exam",
        "people": exam.people,
        "start": start.isoformat(timespec="minutes"),
        "timeZone": term.time_zone,
    }
    if len(term.images) > 1:
        entry["image"] = term.images[0].ref
    return entry


def play_exam(job: ExamJob) -> Outcome:
    """Play the exam's day. Raises SweepError where the job's code isn't this process's."""
    playing.refuse_other_code(job.code)
    term = exam_term(job)
    case = CASES[job.case]
    begin = term.begin_of_day(_exam_of(term).day)
    end = term.begin_of_day(_exam_of(term).day + 1)
    before = [launch for launch in term.launches if launch.attempt.moment < begin]
    today = [launch for launch in term.launches if begin <= launch.attempt.moment < end]
    booked = [booking_of(term)] if case.is_booked else []
    policy = playing.policy_of(term, IMPORTED, job.learn, booked)
    options: dict[str, Any] = {
        "autoscaler": Autoscaler(job.autoscaler),
        "boot_median_seconds": job.boot_seconds,
        "concurrent_spawn_limit": case.spawn_limit,
    }
    if case.share_of_nodes is not None:
        options["max_nodes"] = math.ceil(case.share_of_nodes * needed_nodes(term, today))
    assumptions = make_assumptions(options, "options")
    world = World(policy, assumptions, job.seed)
    world.histories = {playing.SET_NAME: playing.history_text(before, policy)}
    waits: dict[int, float] = {}

    def note_wait(number: int, seconds: float, is_up: bool) -> None:
        if is_up:
            waits[number] = seconds

    world.measures.on_wait = note_wait
    result = world.play([launch.attempt for launch in today])
    numbers = [launch.attempt.number for launch in today if launch.group == EXAM]
    found = outcome_of(numbers, waits)
    return replace(found, node_hours=result.node_hours, most_nodes=assumptions.max_nodes)


def outcome_of(numbers: Sequence[int], waits: Mapping[int, float]) -> Outcome:
    """Figures of the exam's people, nodes aside.

    numbers: of their attempts. waits: seconds by the attempt's number, of those who got a server.
    """
    seconds = sorted(waits.get(number, NEVER_SECONDS) for number in numbers)
    return Outcome(
        people=len(numbers),
        later_than_10=sum(second > SOON_SECONDS for second in seconds),
        later_than_30=sum(second > LATE_SECONDS for second in seconds),
        without_server=sum(number not in waits for number in numbers),
        p95=percentile(seconds, 0.95),
        slowest=seconds[-1],
        node_hours=0.0,
        most_nodes=0,
    )


def needed_nodes(term: Term, today: Iterable[Launch]) -> int:
    """As many nodes as the exam's people fill, with those who are there when it begins."""
    exam = _exam_of(term)
    begin = term.begin_of_day(exam.day) + exam.hour * HOUR_SECONDS
    assumed = Assumptions()
    of_exam = term.images[0].memory_bytes
    others = 0
    for attempt, group in today:
        ends = attempt.moment + (attempt.session_seconds or 0.0)
        if group != EXAM and attempt.moment <= begin + drawn.EXAM_SECONDS and ends > begin:
            others += math.ceil((attempt.memory_bytes or of_exam) / of_exam)
    by_cpu = assumed.node_cpu_millicores // drawn.CPU_MILLICORES
    a_node = min(assumed.node_memory_bytes // of_exam, by_cpu, assumed.node_pods)
    return math.ceil((exam.people + others) / a_node)


def _exam_of(term: Term) -> drawn.Exam:
    if term.exam is None:
        raise ValueError("found a term without an exam")
    return term.exam


def play_exams(
    jobs: Sequence[ExamJob],
    spread: playing.Spread,
    report: Callable[[ExamJob, Outcome], None] = lambda _job, _outcome: None,
) -> dict[ExamJob, Outcome]:
    """Play all. report: called with each that ended. Raises SweepError."""
    by_key = {job.key: job for job in jobs}
    found = {}
    # A spread asks a job for its key and its name alone.
    with closing(cast("Spread", spread)(jobs, play_exam)) as ends:
        for end in ends:
            found[by_key[end.key]] = end.result
            report(by_key[end.key], end.result)
    return found


def show_exams(found: Mapping[ExamJob, Outcome]) -> str:
    """A table with a row for each autoscaler and case: medians of the seeds, and the worst seed."""
    by_row: dict[tuple[str, str], dict[int, Outcome]] = {}
    for job, outcome in found.items():
        by_row.setdefault((job.autoscaler, job.case), {})[job.seed] = outcome
    head = ["autoscaler", "exam", "people", "over 10 s", "over 30 s", "worst", "no server"]
    head += ["worst", "p95, s", "worst", "slowest, s", "worst", "most nodes", "node-hours"]
    rows = []
    for (autoscaler, case), by_seed in by_row.items():
        outcomes = list(by_seed.values())
        late = {seed: outcome.later_than_30 for seed, outcome in by_seed.items()}
        without = {seed: outcome.without_server for seed, outcome in by_seed.items()}
        row = [autoscaler, case, f"{median(outcome.people for outcome in outcomes):.0f}"]
        row.append(f"{median(outcome.later_than_10 for outcome in outcomes):.0f}")
        row += side_of(late).as_cells(0)
        row += side_of(without).as_cells(0)
        row += side_of({seed: outcome.p95 for seed, outcome in by_seed.items()}).as_cells(1)
        row += side_of({seed: outcome.slowest for seed, outcome in by_seed.items()}).as_cells(1)
        row.append(_range_of([outcome.most_nodes for outcome in outcomes]))
        row.append(f"{median(outcome.node_hours for outcome in outcomes):.0f}")
        rows.append(row)
    return table(head, rows)


def _range_of(numbers: Sequence[int]) -> str:
    least = min(numbers)
    most = max(numbers)
    return str(least) if least == most else f"{least} to {most}"
