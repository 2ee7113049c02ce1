"""Play a term: what each arm runs, one replay, and many, which may be kept in a file."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from functools import cache, lru_cache
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

import yaml

from benchmarks import never_worse
from benchmarks import term_figures as figures
from benchmarks import terms as drawn
from benchmarks.hub_scenarios import Scenario
from benchmarks.learned_headroom import foresee
from benchmarks.term_figures import FIXED, IMPORTED, NONE, ORACLE, Period, Run, Waits
from benchmarks.term_picture import LOOK_SECONDS, PICTURE_WEEK, Look, Played
from benchmarks.terms import VARIANTS, Launch, Term
from generator.importing.importer import import_layers
from roost_core.objects.fields import JSONObject
from roost_core.objects.quantities import parse_quantity
from roost_core.placement.headroom_account import KEPT_WEEKS
from roost_core.placement.headroom_history import history_of
from roost_core.placement.labels import PLACEHOLDER_SET_LABEL
from roost_core.release.bookings import Limits
from roost_core.release.placeholder_sets import PRICE_KEYS
from roost_lab.booking.timetable import TimetableRules, read_timetable
from roost_lab.simulator.engine.pods import PLACEHOLDER, USER
from roost_lab.simulator.engine.world import World
from roost_lab.simulator.setup.assumptions import Assumptions, Autoscaler
from roost_lab.simulator.setup.checks import make_assumptions
from roost_lab.simulator.setup.policy import Policy
from roost_lab.simulator.sweep import run as sweep
from roost_lab.simulator.sweep.dask_cluster import DaskCluster
from roost_lab.simulator.sweep.run import SweepError
from roost_lab.traces.attempt import Attempt
from roost_lab.units import DAY_SECONDS

BOOKED: Final = "booked"
KNOWN: Final = "known"
ARMS: Final = (NONE, FIXED, IMPORTED, BOOKED, KNOWN, ORACLE)
# Those that are as `roost import` writes them, and more or less of it.
LEARNING_ARMS: Final = (IMPORTED, BOOKED, KNOWN)
AUTOSCALERS: Final = (Autoscaler.CLUSTER_AUTOSCALER.value, Autoscaler.KARPENTER.value)
# As many as in the other comparisons with a fixed number.
FIXED_PLACEHOLDERS: Final = 25
# Of which `known` has the history.
KNOWN_WEEKS: Final = 2
# The only set that `roost import` writes for these hubs.
SET_NAME: Final = "default"
# The chart's events.maxPeople.
MOST_PEOPLE: Final = 500
# Of the namespaces of hubs that share nodes.
POOL_LABELS: Final = {"hub.jupyter.org/pool": "users"}
# Between the seeds of two draws of a term: more than anybody's seeds.
DRAW_SEEDS: Final = 100_003
# Weeks of a term unless told otherwise.
USUAL_WEEKS: Final = 5


# What runs


class Learn(NamedTuple):
    """A key of `placeholders[].learn` or of `placeholder.defaults.prices`, and its value, over what
    `roost import` writes.
    """

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
    # Of LEARNING_ARMS alone.
    learn: tuple[Learn, ...] = ()
    # On the same nodes, each with its own release and some of the classes.
    hubs: int = 1
    # Of these, so many learn; None: all. The others have no placeholders.
    learning_hubs: int | None = None
    # As imported: a set for each size of seat, which all use the same nodes.
    sets_by_size: bool = False
    # With another number, other chance decides, such as how long each node boots.
    draw: int = 0
    # Fingerprint of the code: a worker with other code refuses the job.
    code: str = ""

    @property
    def key(self) -> str:
        """Equal for replays with equal results: options, and digests of values and code."""
        options = {**asdict(self), "values": policy_of_job(self).digest}
        return json.dumps(options, sort_keys=True)

    def __str__(self) -> str:
        draw = f", draw {self.draw + 1}" if self.draw else ""
        return f"seed {self.seed}, {self.arm}{draw}, {self.autoscaler}"


@cache
def fingerprint() -> str:
    """Of the code that decides a replay's figures: Roost's, and these benchmarks'."""
    digest = sha256(sweep.code_fingerprint().encode())
    for name in ("term_playing", "term_figures", "terms", "learned_headroom"):
        digest.update(Path(__file__).with_name(f"{name}.py").read_bytes())
    return digest.hexdigest()[:16]


@lru_cache(maxsize=4)
def term_of(
    seed: int, weeks: int, variants: tuple[str, ...] = (), time_zone: str = "UTC", hubs: int = 1
) -> Term:
    """The term of a seed. Of fewer weeks than a term has: the beginning of a usual term."""
    is_cut = weeks < drawn.FEWEST_WEEKS
    term = drawn.draw_term(seed, USUAL_WEEKS if is_cut else weeks)
    if is_cut:
        term = drawn.first_weeks(term, weeks)
    for name in variants:
        term = VARIANTS[name](term)
    if time_zone != term.time_zone:
        term = drawn.in_zone(term, time_zone)
    if hubs > 1:
        term = drawn.at_hubs(term, hubs)
    return term


def term_of_job(job: Job) -> Term:
    """The term that a job plays."""
    return term_of(job.seed, job.weeks, job.variants, job.time_zone, job.hubs)


def policy_of_job(job: Job) -> Policy:
    """What the cluster runs."""
    term = term_of_job(job)
    learn = job.learn if job.arm in LEARNING_ARMS else ()
    booked = timetable_of(term) if job.arm == BOOKED else ()
    sizes = drawn.sizes_of(term) if job.sets_by_size and job.arm == IMPORTED else ()
    return policy_of(term, job.arm, learn, booked, shares_pool=job.hubs > 1, sizes=sizes)


def policy_of(
    term: Term,
    arm: str,
    learn: tuple[Learn, ...] = (),
    booked: Sequence[Mapping[str, Any]] = (),
    *,
    shares_pool: bool = False,
    sizes: tuple[int, ...] | None = (),
) -> Policy:
    """What the cluster of a term runs. booked: entries of `events.booked`. shares_pool: each hub's
    release has `sharedPools`. sizes: bytes of memory, in place of the imported set a set for each;
    None: no set.
    """
    hub_text = json.dumps(drawn.hub_of(term))
    booked_text = json.dumps(booked)
    return _policy_of(hub_text, arm, learn, booked_text, shares_pool=shares_pool, sizes=sizes)


@lru_cache(maxsize=256)
def _policy_of(
    hub_text: str,
    arm: str,
    learn: tuple[Learn, ...],
    booked_text: str,
    *,
    shares_pool: bool,
    sizes: tuple[int, ...] | None,
) -> Policy:
    hub = json.loads(hub_text)
    booked = json.loads(booked_text)
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
    changes: JSONObject = {}
    if shares_pool:
        changes["sharedPools"] = {"namespaceSelector": {"matchLabels": POOL_LABELS}}
    if booked:
        changes["events"] = {"enabled": True, "booked": booked}
    prices = {key: value for key, value in learn if key in PRICE_KEYS}
    of_sets = {key: value for key, value in learn if key not in PRICE_KEYS}
    if prices:
        changes["placeholder"] = {"defaults": {"prices": prices}}
    if sizes is None:
        changes["placeholders"] = []
    elif sizes:
        (imported,) = imported_sets(scenario)
        changes["placeholders"] = [_with_memory(imported, size) for size in sizes]
    elif arm == ORACLE or of_sets:
        changes["placeholders"] = imported_sets(scenario)
    for placeholder_set in changes.get("placeholders", ()):
        if arm == ORACLE:
            placeholder_set.pop("learn", None)
            placeholder_set["replicas"] = 0
        else:
            placeholder_set["learn"] = {**placeholder_set.get("learn", {}), **of_sets}
    if not changes:
        return never_worse.policy_of(scenario, never_worse.IMPORTED, 0, "")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "changes.yaml")
        file.write_text(yaml.safe_dump(changes), encoding="utf-8")
        return never_worse.policy_of(scenario, never_worse.IMPORTED, 0, str(file))


def _no_launches(_seed: int, _days: float) -> Sequence[Attempt]:
    return ()


def imported_sets(scenario: Scenario) -> list[JSONObject]:
    """The placeholder sets that `roost import` writes for a hub without placeholders."""
    text = yaml.safe_dump(never_worse.hub_values(scenario, 0))
    values = import_layers([("hub.yaml", text)]).values
    sets: list[JSONObject] = json.loads(json.dumps(values["placeholders"]))
    return sets


def _with_memory(placeholder_set: JSONObject, size: int) -> JSONObject:
    """The set with placeholders of so many bytes, by another name."""
    requests = {**placeholder_set["resources"]["requests"], "memory": str(size)}
    return {
        **placeholder_set,
        "name": f"{placeholder_set['name']}-{size}",
        "resources": {"requests": requests},
    }


def timetable_of(term: Term) -> list[JSONObject]:
    """What `roost book --timetable` books of a term's classes: each with all its people, each week.

    It knows neither the holiday nor a week in which a class is out. A booking has no first day,
    only months: it also counts on earlier days of the first class's month.
    """
    first_day = drawn.FIRST_MONDAY.date()
    last_day = first_day + timedelta(days=drawn.DAYS_A_WEEK * term.weeks - 1)
    text = io.StringIO()
    lines = csv.writer(text)
    lines.writerow(("weekday", "time", "people", "until", "name", "image"))
    for number, course in enumerate(term.classes, 1):
        weekday = figures.DAY_NAMES[course.weekday]
        clock = f"{course.hour}:{course.minute:02}"
        image = term.images[course.image].ref if len(term.images) > 1 else ""
        lines.writerow((weekday, clock, course.people, last_day, f"class {number}", image))
    rules = TimetableRules(
        file="the timetable",
        zone=term.time_zone,
        now=term.begin_of(1 - term.empty_weeks),
        first_day=first_day,
        limits_of=lambda _entry: Limits(sets=(SET_NAME,), max_people=MOST_PEOPLE),
        profiles=None,
    )
    return [dict(booking.entry) for booking in read_timetable(text.getvalue().encode(), rules)]


def history_text(launches: Iterable[Launch], policy: Policy) -> str:
    """The history of these launches, by their size, as `roost headroom --prometheus` finds it."""
    seat_bytes = _seat_bytes(policy)
    sessions = []
    for attempt, _ in launches:
        size = (attempt.memory_bytes or seat_bytes) / seat_bytes
        end = attempt.moment + (attempt.session_seconds or 0.0)
        sessions.append((attempt.moment, end, size))
    return history_of(sessions).as_text()


def refuse_other_code(code: str) -> None:
    """Raise SweepError where a job's code isn't this process's. code: a fingerprint; "": any."""
    if code and code != fingerprint():
        why = "the code here differs from the code that the run began with"
        raise SweepError(f"{why}: use one checkout, or begin again")


def play(job: Job) -> Run:
    """Play one job. Raises SweepError where its code isn't this process's."""
    refuse_other_code(job.code)
    begun = time.monotonic()
    term = term_of_job(job)
    policy = policy_of_job(job)
    world = world_of(job, policy)
    waits: dict[int, float] = {}
    hours_until: list[float] = []
    peaks: list[int] = []

    def note_wait(number: int, seconds: float, is_up: bool) -> None:
        if is_up:
            waits[number] = seconds

    def end_week(moment: float) -> None:
        world.measures.nodes(0, moment)
        hours_until.append(world.measures.result.node_hours)
        peaks.append(world.measures.result.peak_nodes)
        world.measures.begin_peak()

    world.measures.on_wait = note_wait
    weeks = range(1 - term.empty_weeks, term.weeks + 1)
    for week in weeks[:-1]:
        end = term.begin_of(week + 1)
        world.at(end, end_week, end)
    if job.arm == ORACLE:
        foresee(world, _seats(term.attempts, policy))
    if job.arm == KNOWN:
        before = drawn.weeks_before(term, KNOWN_WEEKS)
        world.histories = {SET_NAME: history_text(before, policy)}
    result = world.play(term.attempts)
    hours_until.append(result.node_hours)
    peaks.append(result.peak_nodes)
    # Nobody may have come in the last weeks.
    hours_until += [result.node_hours] * (len(weeks) - len(hours_until))
    peaks += [0] * (len(weeks) - len(peaks))
    hours = (until - before for before, until in pairwise([0.0, *hours_until]))
    nodes_by_week = {
        week: figures.Nodes(hours=hours_of_week, most=peak)
        for week, hours_of_week, peak in zip(weeks, hours, peaks, strict=True)
    }
    found = figures.figures_of(term, waits, nodes_by_week)
    told = _told(world) if job.arm == IMPORTED and len(weeks) <= KEPT_WEEKS else None
    return replace(found, seconds=time.monotonic() - begun, told=told)


def _told(world: World) -> figures.Told:
    """What all hubs' controllers tell together, of all sets."""
    weeks = [
        week
        for release in world.releases
        for placeholders in release.policy.placeholders
        for week in release.controls.learned_account(
            placeholders.labels[PLACEHOLDER_SET_LABEL]
        ).weeks
    ]
    saved_hours = sum(week.saved_hours for week in weeks)
    return figures.Told(saved_hours, sum(week.net_node_hours for week in weeks))


def world_of(job: Job, policy: Policy) -> World:
    """The world of a job, before anybody comes."""
    options = {"autoscaler": Autoscaler(job.autoscaler), "boot_median_seconds": job.boot_seconds}
    hubs = drawn.hub_names(job.hubs) if job.hubs > 1 else ()
    others = {}
    if job.learning_hubs is not None and job.arm == IMPORTED:
        without = policy_of(term_of_job(job), job.arm, shares_pool=True, sizes=None)
        others = dict.fromkeys(hubs[job.learning_hubs :], without)
    assumed = make_assumptions(options, "options")
    chance = job.seed + job.draw * DRAW_SEEDS
    return World(policy, assumed, chance, hubs, others=others)


def _seats(attempts: Sequence[Attempt], policy: Policy) -> list[Attempt]:
    """Each launch as often as placeholders give way to it: a user may have the memory of two."""
    seat_bytes = _seat_bytes(policy)
    seats = []
    for attempt in attempts:
        seats += [attempt] * max(1, math.ceil((attempt.memory_bytes or 0) / seat_bytes))
    return seats


def _seat_bytes(policy: Policy) -> int:
    """Memory that a placeholder of the only set requests."""
    (placeholders,) = policy.placeholders
    requests = placeholders.spec["containers"][0]["resources"]["requests"]
    return int(parse_quantity(requests["memory"]))


def looks_of(job: Job) -> Played:
    """Monday to Friday of the picture's week."""
    term = term_of_job(job)
    begin = term.begin_of(PICTURE_WEEK)
    end = begin + drawn.WORKING_DAYS * DAY_SECONDS
    # A replay ends with its last launch: one of the weekend shows Friday to its end.
    end_of_week = term.begin_of(PICTURE_WEEK + 1)
    attempts = [attempt for attempt in term.attempts if attempt.moment < end_of_week]
    world = world_of(job, policy_of_job(job))
    looks: list[Look] = []
    waits: dict[int, float] = {}

    def look(_: object) -> None:
        pods = world.sim_pods.values()
        users = [pod.ready_at is not None for pod in pods if pod.kind == USER]
        seats = sum(pod.kind == PLACEHOLDER and pod.node is not None for pod in pods)
        running = sum(users)
        looks.append(Look(running, len(users) - running, seats, len(world.nodes)))

    def note_wait(number: int, seconds: float, is_up: bool) -> None:
        waits[number] = seconds if is_up else figures.NEVER_SECONDS

    world.measures.on_wait = note_wait
    for moment in range(round(begin), round(end), LOOK_SECONDS):
        world.at(moment, look)
    world.play(attempts)
    ours = (attempt.number for attempt in attempts if begin <= attempt.moment < end)
    seconds = (waits.get(number, figures.NEVER_SECONDS) for number in ours)
    return Played(looks, figures.waits_of(seconds))


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
        with closing(spread(missing, play)) as ends:
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
    # Runs of older code have none.
    told = entry.get("told")
    return Run(
        before=_period_of(entry["before"]),
        weeks=tuple(map(_period_of, entry["weeks"])),
        later=_period_of(entry["later"]),
        seconds=entry["seconds"],
        told=None if told is None else figures.Told(**told),
    )


def _period_of(entry: Mapping[str, Any]) -> Period:
    return Period(
        everybody=Waits(**entry["everybody"]),
        exam_apart=Waits(**entry["exam_apart"]),
        node_hours=entry["node_hours"],
        most_nodes=entry.get("most_nodes", 0),
    )
