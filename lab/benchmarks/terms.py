"""Draw a university's term: its classes, its exam, and everybody who launches a server.

Each seed is another university. It has 8 to 16 classes, each once or twice a week, of 20 to 180
people. They begin on the hour, at a quarter past, or at half past. Fewer people come from week to
week. Two classes fall out once, two begin late once, and one day is a holiday. People also come one
by one. In the last week is an exam at an hour at which nobody came before. All of it is made up.

A term is drawn by `draw_term`. The functions from `first_weeks` on make another term of it. Times
are local times of the term's zone, which is UTC unless `in_zone` says otherwise.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, Final, NamedTuple
from zlib import crc32
from zoneinfo import ZoneInfo

from roost_lab.traces.attempt import Attempt
from roost_lab.units import HOUR_SECONDS

# The first day of classes, at midnight.
FIRST_MONDAY: Final = datetime(2026, 10, 5)  # noqa: DTZ001 - local time of the term's zone
DAYS_A_WEEK: Final = 7
WORKING_DAYS: Final = 5
# With fewer there is no week in which the holiday may be.
FEWEST_WEEKS: Final = 3
# The holiday isn't before the third week, so that a week without it was seen.
FIRST_HOLIDAY: Final = 14
GB: Final = 10**9
CPU_MILLICORES: Final = 50
# Minutes that a server runs: a least time, and a log-normal that comes on top.
LEAST_MINUTES: Final = 60.0
SESSION_MU: Final = 3.9
SESSION_SIGMA: Final = 0.6
EXAM_MINUTES: Final = 95.0
EXAM_MINUTES_SIGMA: Final = 8.0
# Within so many seconds from its hour on, all people of an exam come.
EXAM_SECONDS: Final = 120.0
# People who come one by one come within these hours, fewer of them at weekends.
ONE_BY_ONE_HOURS: Final = range(7, 23)
WEEKEND_DIVISOR: Final = 3
# Seconds until a server was ready where it was recorded. They count neither as wait nor as session.
READY_SECONDS: Final = 2
# A zone whose clock goes back on the Sunday before the fourth week.
CLOCK_CHANGES: Final = "Europe/Berlin"
# How many times as large `ten_times` makes a university.
TIMES: Final = 10
# The week, counted from 1, from which on `new_timetable` has other classes.
NEW_TIMETABLE_WEEK: Final = 4
# The week, counted from 1, from which on `moved_classes` has some of its classes elsewhere.
MOVED_CLASSES_WEEK: Final = 3
# Of so many classes one moves.
CLASSES_PER_MOVED: Final = 3
# The hours in which a class may begin.
CLASS_HOURS: Final = range(8, 18)
# What `Launch.group` says of people who come for the exam.
EXAM: Final = -1
# Weeks that `weeks_before` can draw.
MOST_WEEKS_BEFORE: Final = 10


class Image(NamedTuple):
    """An image of the hub, and what its users' pods request."""

    ref: str
    # On disk.
    bytes: int
    memory_bytes: int


class Class(NamedTuple):
    """A class: people who come once a week for the same image."""

    # 0: Monday.
    weekday: int
    # When it begins, local time.
    hour: int
    minute: int
    # In the first week, if all come.
    people: int
    # Its place in the term's images.
    image: int
    # Weeks, counted from 1, in which it doesn't take place. A holiday is not among them.
    weeks_left_out: tuple[int, ...] = ()
    # Week, counted from 1, and by how many minutes it begins later in that week.
    late_minutes: Mapping[int, int] = {}


class Exam(NamedTuple):
    """An exam, with the first image."""

    # Counted from the first Monday, which is 0.
    day: int
    # When it begins, local time.
    hour: int
    people: int


class Habits(NamedTuple):
    """How people of a university come."""

    # Of a class's people, the share that is lost from one week to the next.
    decline: float = 0.0
    # People who come one by one in an hour of a working day, mean.
    one_by_one: float = 5.0


# Of a term that isn't drawn.
USUAL_HABITS: Final = Habits()


class Launch(NamedTuple):
    """Somebody's launch, and why they come."""

    attempt: Attempt
    # The place of their class in the term's classes; EXAM; None: they come one by one.
    group: int | None


@dataclass(frozen=True, kw_only=True)
class Term:
    """A university's term."""

    seed: int
    # Of classes.
    weeks: int
    images: Sequence[Image]
    classes: Sequence[Class]
    # A day without classes, counted from the first Monday, which is 0.
    holiday: int
    # None: none takes place.
    exam: Exam | None
    # In order of time; an attempt's number is its place.
    launches: Sequence[Launch]
    habits: Habits = USUAL_HABITS
    # A name of the IANA database.
    time_zone: str = "UTC"
    # Weeks before the first, in which the hub is there and has no users.
    empty_weeks: int = 0

    @property
    def attempts(self) -> list[Attempt]:
        """What a replay plays."""
        return [launch.attempt for launch in self.launches]

    def week_of(self, moment: float) -> int:
        """The week of a moment (seconds since 1970). The first of classes is 1, before it is 0."""
        return (_local(moment, self._zone) - FIRST_MONDAY).days // DAYS_A_WEEK + 1

    def begin_of(self, week: int) -> float:
        """When a week begins: its Monday's midnight, in seconds since 1970."""
        return self.begin_of_day((week - 1) * DAYS_A_WEEK)

    def begin_of_day(self, day: int) -> float:
        """When a day begins, in seconds since 1970. day: counted from the first Monday, 0."""
        return _moment(FIRST_MONDAY + timedelta(days=day), self._zone)

    @property
    def _zone(self) -> tzinfo:
        return zone_of(self.time_zone)


def zone_of(name: str) -> tzinfo:
    """A time zone of the IANA database. Raises ValueError for a name that it doesn't have."""
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (OSError, KeyError, ValueError):
        known = f"a name of the IANA database, such as {CLOCK_CHANGES}"
        raise ValueError(f"time zone: found {name!r}, expected {known}") from None


def draw_term(seed: int, weeks: int) -> Term:
    """Draw a term. Equal seeds and weeks give equal terms. Raises ValueError for too few weeks."""
    if weeks < FEWEST_WEEKS:
        raise ValueError(f"a term has at least {FEWEST_WEEKS} weeks, not {weeks}")
    # The order of the draws decides what a seed means: two draws may not change places.
    chance = random.Random(f"term {seed}")  # noqa: S311 - no secret
    images = [_draw_image(chance, number) for number in range(chance.randrange(1, 4))]
    classes = _draw_classes(chance, len(images))
    holiday = chance.randrange(FIRST_HOLIDAY, weeks * DAYS_A_WEEK - 1)
    classes = _with_exceptions(chance, classes, weeks)
    exam_day = (weeks - 1) * DAYS_A_WEEK + chance.randrange(1, WORKING_DAYS)
    exam_people = chance.choice([64, 120, 200, 320])
    exam = Exam(exam_day, chance.choice([18, 19]), exam_people)
    habits = Habits(decline=chance.uniform(0.0, 0.09), one_by_one=chance.uniform(2, 10))
    term = Term(
        seed=seed,
        weeks=weeks,
        images=images,
        classes=classes,
        holiday=holiday,
        exam=exam,
        launches=(),  # drawn last, since they need the rest
        habits=habits,
    )
    return _with_launches(term, _LaunchDraw(chance, images, habits).launches(term))


def _draw_image(chance: random.Random, number: int) -> Image:
    size = chance.randrange(2, 10) * GB
    return Image(f"quay.io/uni/image-{number}:2026", size, chance.choice([1, 1, 2]) * GB)


def _draw_classes(chance: random.Random, images: int) -> list[Class]:
    """The classes in order of the week, without the weeks in which they are out or late."""
    classes = []
    for _ in range(chance.randrange(8, 17)):
        people = int(min(180, max(20, chance.lognormvariate(4.1, 0.6))))
        image = chance.randrange(images)
        times_a_week = chance.choice([1, 1, 2])
        for _ in range(times_a_week):
            weekday = chance.randrange(WORKING_DAYS)
            hour = chance.choice(CLASS_HOURS)
            minute = chance.choice([0, 0, 15, 30, 30])
            classes.append(Class(weekday, hour, minute, people, image))
    return sorted(classes, key=lambda class_: class_[:5])


def _with_exceptions(chance: random.Random, classes: Sequence[Class], weeks: int) -> list[Class]:
    """The classes with the weeks in which one is out, and with those in which one begins late."""
    left_out = []
    for _ in range(2):
        week = chance.randrange(1, weeks) + 1
        left_out.append((week, chance.randrange(len(classes))))
    late: dict[tuple[int, int], int] = {}
    for _ in range(2):
        week = chance.randrange(1, weeks) + 1
        number = chance.randrange(len(classes))
        late[week, number] = chance.randrange(4, 11)
    found = []
    for place, course in enumerate(classes):
        weeks_left_out = sorted({week for week, number in left_out if number == place})
        ours = {week: minutes for (week, number), minutes in late.items() if number == place}
        found.append(course._replace(weeks_left_out=tuple(weeks_left_out), late_minutes=ours))
    return found


class _LaunchDraw:
    """Draws launches one day after the other."""

    def __init__(self, chance: random.Random, images: Sequence[Image], habits: Habits) -> None:
        self._chance = chance
        self._images = images
        self._habits = habits
        self._drawn: list[Launch] = []

    def launches(self, term: Term) -> list[Launch]:
        """All of a term, in order of time; all have the number 0."""
        for day in range(term.weeks * DAYS_A_WEEK):
            if day != term.holiday:
                self._classes_of(day, term.classes)
            self._people_one_by_one(day)
            if term.exam is not None and day == term.exam.day:
                self._exam(term.exam)
        return self._in_order()

    def days_without_exam(self, days: Iterable[int], classes: Sequence[Class]) -> list[Launch]:
        """All of these days, which have no holiday; else as `launches`."""
        for day in days:
            self._classes_of(day, classes)
            self._people_one_by_one(day)
        return self._in_order()

    def classes_alone(self, days: Iterable[int], classes: Sequence[Class]) -> list[Launch]:
        """Those of the classes' people on these days, which have no holiday; else as `launches`."""
        for day in days:
            self._classes_of(day, classes)
        return self._in_order()

    def exam_alone(self, exam: Exam) -> list[Launch]:
        """Those of the exam's people; else as `launches`."""
        self._exam(exam)
        return self._in_order()

    def _in_order(self) -> list[Launch]:
        return sorted(self._drawn, key=_moment_of)

    def _classes_of(self, day: int, classes: Sequence[Class]) -> None:
        chance = self._chance
        week = day // DAYS_A_WEEK + 1
        for number, course in enumerate(classes):
            if day % DAYS_A_WEEK != course.weekday or week in course.weeks_left_out:
                continue
            left = 1 - self._habits.decline * (week - 1)
            people = course.people * left * chance.uniform(0.85, 1.0)
            for _ in range(int(people)):
                begin = course.minute + course.late_minutes.get(week, 0)
                # Most come within five minutes, around the first minute of the class.
                minutes = begin + max(-6.0, chance.gauss(1, 2.5))
                at = self._time(day, hours=course.hour, minutes=minutes)
                self._launch(at, course.image, self._session_minutes(), number)

    def _people_one_by_one(self, day: int) -> None:
        chance = self._chance
        is_weekend = day % DAYS_A_WEEK >= WORKING_DAYS
        mean = self._habits.one_by_one / (WEEKEND_DIVISOR if is_weekend else 1)
        for hour in ONE_BY_ONE_HOURS:
            for _ in range(int(chance.expovariate(1 / mean))):
                at = self._time(day, hours=hour, minutes=chance.random() * 60)
                image = chance.randrange(len(self._images))
                self._launch(at, image, self._session_minutes(), None)

    def _exam(self, exam: Exam) -> None:
        for _ in range(exam.people):
            after = timedelta(hours=exam.hour, seconds=self._chance.uniform(0, EXAM_SECONDS))
            at = FIRST_MONDAY + timedelta(days=exam.day) + after
            minutes = EXAM_MINUTES + self._chance.gauss(0, EXAM_MINUTES_SIGMA)
            self._launch(at, 0, minutes, EXAM)

    def _time(self, day: int, *, hours: int, minutes: float) -> datetime:
        microseconds = self._chance.randrange(1, 999999)
        after = timedelta(hours=hours, minutes=minutes, microseconds=microseconds)
        return FIRST_MONDAY + timedelta(days=day) + after

    def _session_minutes(self) -> float:
        return LEAST_MINUTES + self._chance.lognormvariate(SESSION_MU, SESSION_SIGMA)

    def _launch(self, at: datetime, image: int, minutes: float, group: int | None) -> None:
        # As a record has it: seconds from the launch on, some of them until it was ready.
        seconds = minutes * 60 + READY_SECONDS
        attempt = attempt_of(self._images[image], _moment(at, UTC), seconds - READY_SECONDS)
        self._drawn.append(Launch(attempt, group))


def attempt_of(image: Image, moment: float, session_seconds: float) -> Attempt:
    """A launch of an image at a moment (seconds since 1970); its number is 0."""
    return Attempt(
        0,
        moment,
        "",
        image.ref,
        image_bytes=image.bytes,
        session_seconds=session_seconds,
        cpu_millicores=CPU_MILLICORES,
        memory_bytes=image.memory_bytes,
        hub="hub",
    )


def hub_of(term: Term) -> dict[str, Any]:
    """The values of the term's hub for zero-to-jupyterhub, placeholders aside.

    Of several images each has a profile, and the first is also the default.
    """
    first = term.images[0]
    name, _, tag = first.ref.rpartition(":")
    singleuser: dict[str, Any] = {
        "image": {"name": name, "tag": tag},
        "memory": {"guarantee": first.memory_bytes},
        "cpu": {"guarantee": CPU_MILLICORES / 1000},
    }
    if len(term.images) > 1:
        singleuser["profileList"] = [_profile_of(image) for image in term.images]
    return {"singleuser": singleuser}


def _profile_of(image: Image) -> dict[str, Any]:
    override = {"image": image.ref, "mem_guarantee": image.memory_bytes}
    return {"display_name": image.ref, "kubespawner_override": override}


# Other terms, made of one


def first_weeks(term: Term, weeks: int) -> Term:
    """The first weeks of a term. The exam is in the last week, so it falls away with it."""
    end = term.begin_of(weeks + 1)
    is_exam_in = term.exam is not None and term.exam.day < weeks * DAYS_A_WEEK
    shorter = replace(term, weeks=min(weeks, term.weeks), exam=term.exam if is_exam_in else None)
    return _with_launches(
        shorter, (launch for launch in term.launches if launch.attempt.moment < end)
    )


def without_exam(term: Term) -> Term:
    """A term without its exam."""
    others = (launch for launch in term.launches if launch.group != EXAM)
    return _with_launches(replace(term, exam=None), others)


def every_second_week(term: Term) -> Term:
    """A term in which each class comes every second week.

    The first class comes in odd weeks, the next one in even weeks, and so on.
    """
    # With weeks before the first, which `weeks_before` draws.
    all_weeks = range(1 - MOST_WEEKS_BEFORE, term.weeks + 1)
    classes = []
    for number, course in enumerate(term.classes):
        others = {week for week in all_weeks if not _comes_in(number, week)}
        left_out = sorted(others | set(course.weeks_left_out))
        classes.append(course._replace(weeks_left_out=tuple(left_out)))

    def comes(launch: Launch) -> bool:
        is_of_class = launch.group is not None and launch.group != EXAM
        return not is_of_class or _comes_in(launch.group or 0, term.week_of(launch.attempt.moment))

    return _with_launches(replace(term, classes=classes), filter(comes, term.launches))


def _comes_in(number: int, week: int) -> bool:
    """Whether the class of that number comes in a week, where classes come every second week."""
    return (week + number) % 2 == 1


def new_timetable(term: Term) -> Term:
    """A term whose classes end with its third week. In the fourth begin others, drawn anew.

    The people who come one by one, the holiday and the exam are the same.
    """
    chance = random.Random(f"new timetable {term.seed}")  # noqa: S311 - no secret
    others = _with_exceptions(chance, _draw_classes(chance, len(term.images)), term.weeks)
    return _with_change(term, chance, NEW_TIMETABLE_WEEK, range(len(term.classes)), others)


def moved_classes(term: Term) -> Term:
    """A term in which a third of the classes move for good, in its third week.

    Each comes to another day at its hour, or to another hour on its day. All else is the same.
    """
    chance = random.Random(f"moved classes {term.seed}")  # noqa: S311 - no secret
    classes = len(term.classes)
    moving = sorted(chance.sample(range(classes), classes // CLASSES_PER_MOVED))
    moved = [_elsewhere(chance, term.classes[number]) for number in moving]
    return _with_change(term, chance, MOVED_CLASSES_WEEK, moving, moved)


def _elsewhere(chance: random.Random, course: Class) -> Class:
    """The class on another day, or at another hour."""
    if chance.choice([True, False]):
        days = [day for day in range(WORKING_DAYS) if day != course.weekday]
        return course._replace(weekday=chance.choice(days))
    hours = [hour for hour in CLASS_HOURS if hour != course.hour]
    return course._replace(hour=chance.choice(hours))


def _with_change(
    term: Term,
    chance: random.Random,
    week: int,
    ending: Collection[int],
    beginning: Sequence[Class],
) -> Term:
    """The term in which classes end before a week, and others begin in it.

    ending: places in the term's classes, which stay as they are. The others come behind these.
    """
    # With weeks before the first, which `weeks_before` draws.
    before = range(1 - MOST_WEEKS_BEFORE, week)
    after = range(week, term.weeks + 1)
    others = [_without_weeks(course, before) for course in beginning]
    classes = [
        _without_weeks(course, after) if number in ending else course
        for number, course in enumerate(term.classes)
    ]

    def stays(launch: Launch) -> bool:
        return launch.group not in ending or term.week_of(launch.attempt.moment) < week

    first_day = (week - 1) * DAYS_A_WEEK
    days = (day for day in range(first_day, term.weeks * DAYS_A_WEEK) if day != term.holiday)
    drawn = _LaunchDraw(chance, term.images, term.habits).classes_alone(days, others)
    coming = [
        launch._replace(group=len(classes) + (launch.group or 0))
        for launch in _moved(drawn, UTC, zone_of(term.time_zone))
    ]
    launches = sorted([*filter(stays, term.launches), *coming], key=_moment_of)
    return _with_launches(replace(term, classes=[*classes, *others]), launches)


def _without_weeks(course: Class, weeks: Iterable[int]) -> Class:
    """The class that doesn't take place in these weeks either."""
    return course._replace(weeks_left_out=tuple(sorted({*weeks, *course.weeks_left_out})))


def ten_times(term: Term) -> Term:
    """A term of a university with ten times as many classes and people who come one by one.

    Its images, holiday and exam are the same.
    """
    chance = random.Random(f"ten times {term.seed}")  # noqa: S311 - no secret
    classes = list(term.classes)
    for _ in range(TIMES - 1):
        drawn = _draw_classes(chance, len(term.images))
        classes += _with_exceptions(chance, drawn, term.weeks)
    classes.sort(key=lambda class_: class_[:5])
    habits = term.habits._replace(one_by_one=term.habits.one_by_one * TIMES)
    larger = replace(term, classes=classes, habits=habits)
    return _with_launches(larger, _LaunchDraw(chance, term.images, habits).launches(larger))


def after_empty_weeks(term: Term, weeks: int) -> Term:
    """A term whose hub is installed so many weeks before the first class, and is empty until then.

    Only the administrator tries it, on the first Monday at nine, for an hour: a replay begins with
    the first launch.
    """
    begin = term.begin_of(1 - weeks)
    alone = Launch(attempt_of(term.images[0], begin + 9 * HOUR_SECONDS, HOUR_SECONDS), None)
    return _with_launches(replace(term, empty_weeks=weeks), [alone, *term.launches])


def in_zone(term: Term, name: str) -> Term:
    """A term in another time zone: everybody comes at the same local time.

    Raises ValueError for a zone that isn't known.
    """
    moved = _moved(term.launches, zone_of(term.time_zone), zone_of(name))
    return _with_launches(replace(term, time_zone=name), moved)


def at_hubs(term: Term, hubs: int) -> Term:
    """A term whose university has so many hubs: each class, the exam and each of the people who
    come one by one launch at one of them.
    """

    def hub_of_launch(launch: Launch) -> str:
        who = f"person {launch.attempt.number}"
        if launch.group is not None:
            who = f"class {launch.group}"
        return hub_names(hubs)[crc32(f"{term.seed} {who}".encode()) % hubs]

    return _with_launches(
        term,
        (
            launch._replace(attempt=launch.attempt._replace(hub=hub_of_launch(launch)))
            for launch in term.launches
        ),
    )


def sizes_of(term: Term) -> tuple[int, ...]:
    """The bytes of memory that servers of the term request, each size once, the smallest first."""
    return tuple(sorted({image.memory_bytes for image in term.images}))


def hub_names(hubs: int) -> list[str]:
    """Namespaces of so many hubs."""
    return [f"faculty-{number}" for number in range(1, hubs + 1)]


def with_exam(term: Term, people: int, hour: int) -> Term:
    """A term whose exam, on its day, is of so many people and at that hour.

    Raises ValueError for a term without an exam.
    """
    if term.exam is None:
        raise ValueError("found a term without an exam, expected one whose exam can be changed")
    exam = term.exam._replace(people=people, hour=hour)
    chance = random.Random(f"exam {term.seed} {people}")  # noqa: S311 - no secret
    coming = _LaunchDraw(chance, term.images, term.habits).exam_alone(exam)
    others = without_exam(term).launches
    launches = [*others, *_moved(coming, UTC, zone_of(term.time_zone))]
    return _with_launches(replace(term, exam=exam), sorted(launches, key=_moment_of))


def weeks_before(term: Term, weeks: int) -> list[Launch]:
    """What came in so many weeks before a term: the same timetable, and other people.

    Nobody drops out, and no class falls out or begins late. Before empty weeks they end as these
    begin. All launches have the number 0.
    """
    chance = random.Random(f"before {term.seed}")  # noqa: S311 - no secret
    habits = term.habits._replace(decline=0.0)
    end = -DAYS_A_WEEK * term.empty_weeks
    days = range(end - DAYS_A_WEEK * weeks, end)
    found = _LaunchDraw(chance, term.images, habits).days_without_exam(days, term.classes)
    return _moved(found, UTC, zone_of(term.time_zone))


def _moved(launches: Iterable[Launch], before: tzinfo, zone: tzinfo) -> list[Launch]:
    """The same local times in another zone, in order of time."""
    moved = []
    for launch in launches:
        moment = _moment(_local(launch.attempt.moment, before), zone)
        moved.append(launch._replace(attempt=launch.attempt._replace(moment=moment)))
    return sorted(moved, key=_moment_of)


def _moment_of(launch: Launch) -> float:
    return launch.attempt.moment


# What a term may be varied by, as options name it.
VARIANTS: Final[Mapping[str, Callable[[Term], Term]]] = {
    "ten-times": ten_times,
    "two-empty-weeks": lambda term: after_empty_weeks(term, 2),
    "every-second-week": every_second_week,
    "new-timetable": new_timetable,
    "moved-classes": moved_classes,
    "no-exam": without_exam,
}


def _with_launches(term: Term, launches: Iterable[Launch]) -> Term:
    """The term with these launches, numbered in their order."""
    numbered = []
    for number, launch in enumerate(launches):
        attempt = launch.attempt._replace(number=number)
        numbered.append(Launch(attempt, launch.group))
    return replace(term, launches=numbered)


def _moment(at: datetime, zone: tzinfo) -> float:
    return at.replace(tzinfo=zone).timestamp()


def _local(moment: float, zone: tzinfo) -> datetime:
    return datetime.fromtimestamp(moment, zone).replace(tzinfo=None)
