"""Hubs on which Roost is compared with zero-to-jupyterhub: their launches, their operators' values,
their nodes.

Launches are made up from the seed, or a recorded trace's. Sizes are round figures of hubs of that
kind; what a figure stands for is said beside it. A pool of nodes of its own (GPUs, large memory) is
a scenario of its own, for pods of one pool never go to another's nodes.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from roost_core.objects.fields import JSONObject
from roost_core.placement.headroom_history import history_of
from roost_lab.simulator.setup.worlds import MYBINDER, WORLDS
from roost_lab.simulator.sweep.survey import trace_of
from roost_lab.traces.attempt import Attempt
from roost_lab.traces.synthetic import BEGIN, synthetic_attempts
from roost_lab.units import DAY_SECONDS, HOUR_SECONDS
from tests.recorded_data import LAUNCHES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

GIB: Final = 2**30
GB: Final = 10**9
KNOWN_DAYS: Final = 21.0


@dataclass(frozen=True, kw_only=True, eq=False)
class Scenario:
    """One hub, or one pool of a hub."""

    name: str
    about: str
    # (seed, days) -> launches in order of time.
    launches: Callable[[int, float], Sequence[Attempt]]
    # zero-to-jupyterhub's (or BinderHub's) values, placeholders aside: they are added by number.
    hub: Mapping[str, Any]
    # What the world is, where it differs from `Assumptions`.
    world: Mapping[str, Any] = field(default_factory=dict)
    # The hub's chart runs image pullers; BinderHub's has them off.
    has_pullers: bool = True
    # Numbers of placeholders to compare with.
    placeholders: tuple[int, ...] = (0, 4, 25)
    days: float = 2.0


def in_order(moments: Iterable[tuple[float, Callable[[int, float], Attempt]]]) -> list[Attempt]:
    """Attempts by moment, numbered in that order."""
    ordered = sorted(moments, key=lambda moment: moment[0])
    return [make(number, moment) for number, (moment, make) in enumerate(ordered)]


def one_of(image: str, size: int, stays: float, **more: Any) -> Callable[[int, float], Attempt]:  # noqa: ANN401
    """A launch of an image; `stays`: seconds that the server runs."""

    def make(number: int, moment: float) -> Attempt:
        return Attempt(
            number, moment, image, image, image_bytes=size, session_seconds=stays, **more
        )

    return make


def _stays(chance: random.Random, minutes: float, sigma: float = 0.6) -> float:
    return 60.0 * min(chance.lognormvariate(0.0, sigma) * minutes, 12 * 60.0)


def _all_day(chance: random.Random, days: float, a_day: float) -> Iterable[float]:
    """Moments at random, twice as many by day as by night."""
    moment = BEGIN
    end = BEGIN + days * DAY_SECONDS
    while (moment := moment + chance.expovariate(a_day / DAY_SECONDS * 4 / 3)) < end:
        by_day = 7 <= (moment - BEGIN) % DAY_SECONDS / HOUR_SECONDS < 19
        if by_day or chance.random() < 0.5:
            yield moment


def _hub(image: str, memory: str | int, cpu: float | None = None, **more: Any) -> JSONObject:  # noqa: ANN401
    name, _, tag = image.rpartition(":")
    singleuser: JSONObject = {"image": {"name": name, "tag": tag}, "memory": {"guarantee": memory}}
    if cpu is not None:
        singleuser["cpu"] = {"guarantee": cpu}
    return {"singleuser": singleuser | more}


def _binder(memory: str | int) -> JSONObject:
    users = {"singleuser": {"memory": {"guarantee": memory}, "cpu": {"guarantee": 0.01}}}
    return {"config": {"BinderHub": {"use_registry": True}}, "jupyterhub": users}


_COURSE: Final = "quay.io/example/course:2026"


def lecture(seed: int, days: float) -> list[Attempt]:
    """150 users within three minutes at 10 and at 14 o'clock, for 90 minutes; and 72 others a
    day.
    """
    chance = random.Random(f"lecture {seed}")  # noqa: S311 - no secret
    size = 4 * GB
    moments = [
        (moment, one_of(_COURSE, size, _stays(chance, 40))) for moment in _all_day(chance, days, 72)
    ]
    for begin in (
        BEGIN + day * DAY_SECONDS + hour * HOUR_SECONDS
        for day in range(max(1, round(days)))
        for hour in (10, 14)
    ):
        for _ in range(150):
            stays = chance.uniform(70, 100) * 60
            moments.append((begin + chance.uniform(0, 180), one_of(_COURSE, size, stays)))
    return in_order(moments)


_UNIVERSITY: Final = {
    "quay.io/example/datascience:2026": (0.6, 5 * GB),
    "quay.io/example/r-course:2026": (0.25, 3 * GB),
    "quay.io/example/physics:2026": (0.15, 4 * GB),
}
GPU_IMAGE: Final = "quay.io/example/gpu:2026"
_DEFAULT = next(iter(_UNIVERSITY))


def _profile(image: str) -> JSONObject:
    return {"display_name": image.rpartition("/")[2], "kubespawner_override": {"image": image}}


def university(seed: int, days: float) -> list[Attempt]:
    """Classes on the hour from 8 to 17, 30 to 90 users in ten minutes, each of one image; and 300
    others a day.
    """
    chance = random.Random(f"university {seed}")  # noqa: S311
    images = list(_UNIVERSITY)
    shares = [share for share, _ in _UNIVERSITY.values()]

    def some() -> str:
        return chance.choices(images, shares)[0]

    moments = []
    for moment in _all_day(chance, days, 300):
        image = some()
        moments.append((moment, one_of(image, _UNIVERSITY[image][1], _stays(chance, 60))))
    for hour in (
        BEGIN + day * DAY_SECONDS + hour * HOUR_SECONDS
        for day in range(max(1, round(days)))
        for hour in range(8, 18)
    ):
        if chance.random() < 0.3:
            continue
        image = some()
        for _ in range(chance.randint(30, 90)):
            stays = chance.uniform(40, 110) * 60
            moments.append(
                (hour + chance.uniform(-120, 480), one_of(image, _UNIVERSITY[image][1], stays))
            )
    return in_order((moment, make) for moment, make in moments if moment >= BEGIN)


class Course(NamedTuple):
    """A course on GPUs: people with a GPU each come within ten minutes."""

    # Days from the first Monday to the first lesson, and from one lesson to the next.
    first_day: int
    days_apart: int
    hour: int = 13
    people: int = 12

    def begins(self, days: float) -> Iterator[float]:
        """Yield when each lesson of so many days begins, in Unix time."""
        for day in range(self.first_day, max(1, round(days)), self.days_apart):
            yield BEGIN + day * DAY_SECONDS + self.hour * HOUR_SECONDS

    def has(self, moment: float) -> bool:
        """Whether whoever comes then comes to the course. moment: Unix time."""
        day, seconds = divmod(moment - BEGIN, DAY_SECONDS)
        is_lesson_day = day >= self.first_day and (day - self.first_day) % self.days_apart == 0
        return is_lesson_day and 0 <= seconds - self.hour * HOUR_SECONDS < COURSE_SECONDS


COURSE_SECONDS: Final = 600.0
DAILY_COURSE: Final = Course(first_day=0, days_apart=1)
# On Wednesdays.
WEEKLY_COURSE: Final = Course(first_day=2, days_apart=7)


def gpu_pool(seed: int, days: float, course: Course = DAILY_COURSE) -> list[Attempt]:
    """A course of 12 users with a GPU each, and 15 others a day at no time that repeats.

    One pod fills a node.
    """
    chance = random.Random(f"gpu {seed}")  # noqa: S311
    moments = [
        (moment, one_of(GPU_IMAGE, 12 * GB, _stays(chance, 120)))
        for moment in _all_day(chance, days, 15)
    ]
    for begin in course.begins(days):
        for _ in range(course.people):
            after = chance.uniform(0, COURSE_SECONDS)
            user = one_of(GPU_IMAGE, 12 * GB, _stays(chance, 110, 0.2))
            moments.append((begin + after, user))
    return in_order(moments)


def memory_pool(seed: int, days: float) -> list[Attempt]:
    """30 users a day with 60 GiB each, of the university's first image. Two fill a node."""
    chance = random.Random(f"memory {seed}")  # noqa: S311
    size = _UNIVERSITY[_DEFAULT][1]
    return in_order(
        (moment, one_of(_DEFAULT, size, _stays(chance, 180)))
        for moment in _all_day(chance, days, 30)
    )


_RESEARCH: Final = "quay.io/example/pangeo:2026"


def research(seed: int, days: float) -> list[Attempt]:
    """Twenty researchers with 16 GiB, each once or twice a day for hours."""
    chance = random.Random(f"research {seed}")  # noqa: S311
    return in_order(
        (moment, one_of(_RESEARCH, 6 * GB, _stays(chance, 200)))
        for moment in _all_day(chance, days, 32)
    )


def small_binder(seed: int, days: float) -> list[Attempt]:
    """600 launches a day of many repositories, popular as mybinder.org's are."""
    return list(synthetic_attempts(seed, days=days, launches_per_day=600.0))


def shared_cluster(seed: int, days: float) -> list[Attempt]:
    """A hub with a class of 40 at 9 and at 15 o'clock and 120 others a day; four other hubs with
    120 a day each.
    """
    chance = random.Random(f"shared {seed}")  # noqa: S311
    size = 3 * GB
    moments = [
        (moment, one_of(_COURSE, size, _stays(chance, 60)))
        for moment in _all_day(chance, days, 120)
    ]
    for begin in (
        BEGIN + day * DAY_SECONDS + hour * HOUR_SECONDS
        for day in range(max(1, round(days)))
        for hour in (9, 15)
    ):
        course = [(begin + chance.uniform(0, 300), _stays(chance, 80, 0.2)) for _ in range(40)]
        moments += [(moment, one_of(_COURSE, size, stays)) for moment, stays in course]
    for number in range(1, 5):
        image = f"quay.io/example/hub-{number}:2026"
        moments += [
            (moment, one_of(image, size, _stays(chance, 60), hub=f"hub-{number}"))
            for moment in _all_day(chance, days, 120)
        ]
    return in_order(moments)


def mybinder(seed: int, days: float) -> list[Attempt]:
    """The recorded days of mybinder.org, from the second on, a weekday's whole."""
    opened = trace_of((str(LAUNCHES),)).open(seed)
    begin = BEGIN + DAY_SECONDS
    later = (visit for visit in opened if visit.moment >= begin)
    return list(takewhile(lambda visit: visit.moment < begin + days * DAY_SECONDS, later))


def known_before(scenario: Scenario, seed: int) -> dict[str, str]:
    """The history of the weeks before, of other launches of the same hub: each server is one
    placeholder.

    It is what `roost headroom --prometheus` finds before an install.
    """
    back = KNOWN_DAYS * DAY_SECONDS
    launches = (
        (launch.moment - back, launch.session_seconds or HOUR_SECONDS)
        for launch in scenario.launches(seed + 1000, KNOWN_DAYS)
    )
    return {
        "default": history_of(
            (begin, begin + stays, 1.0) for begin, stays in launches if begin < BEGIN
        ).as_text()
    }


# All nodes take equally long to come: else a policy that asks for one more would meet other boots
# from there on.
_EVEN: Final = {"boot_sigma": 0.0, "quota_per_repository": 0}
# 26 users of 1 GiB a node, as on a machine of 32 GB: what its daemons leave.
_MIDDLE_NODE: Final = {"node_cpu_millicores": 7910, "node_memory_bytes": 27 * GIB}
# Waits of BinderHubs end when servers answer, after as long as mybinder.org's did.
ANSWERS: Final = {key: WORLDS[MYBINDER][key] for key in ("answer_seconds", "answer_sigma")}
_OF_HUB: Final = {**_EVEN, **_MIDDLE_NODE, "user_memory_bytes": GIB, "user_cpu_millicores": 50}

SCENARIOS: Final = (
    Scenario(
        name="lecture",
        about="150 users in three minutes, one image, twice a day",
        launches=lecture,
        hub=_hub(_COURSE, "1G", 0.05),
        world=_OF_HUB,
    ),
    Scenario(
        name="university",
        about="three images, classes on the hour",
        launches=university,
        hub=_hub(_DEFAULT, "1G", 0.05, profileList=[_profile(image) for image in _UNIVERSITY]),
        world=_OF_HUB,
    ),
    Scenario(
        name="university: GPUs",
        about="one pod a node, a pool that is empty at night",
        launches=gpu_pool,
        hub=_hub(
            GPU_IMAGE,
            "24G",
            4,
            extraResource={key: {"nvidia.com/gpu": "1"} for key in ("guarantees", "limits")},
        ),
        world={
            **_EVEN,
            "user_memory_bytes": 24 * GIB,
            "user_cpu_millicores": 4000,
            "node_memory_bytes": 28 * GIB,
            "node_cpu_millicores": 7910,
            "min_nodes": 0,
            # 12 GB behind a boot take longer than the spawner's usual patience, so operators give
            # it more.
            "start_timeout_seconds": 900.0,
        },
        placeholders=(0, 1),
        days=10.0,
    ),
    Scenario(
        name="university: large memory",
        about="60 GiB a user, a pool that is empty at night",
        launches=memory_pool,
        hub=_hub(_DEFAULT, "60G", 2),
        world={
            **_EVEN,
            "user_memory_bytes": 60 * GIB,
            "user_cpu_millicores": 2000,
            "node_memory_bytes": 122 * GIB,
            "node_cpu_millicores": 15_800,
            "min_nodes": 0,
        },
        placeholders=(0, 1),
        days=10.0,
    ),
    Scenario(
        name="research",
        about="twenty users, large pods",
        launches=research,
        hub=_hub(_RESEARCH, "16G", 2),
        world={
            **_EVEN,
            "user_memory_bytes": 16 * GIB,
            "user_cpu_millicores": 2000,
            "node_memory_bytes": 60 * GIB,
            "node_cpu_millicores": 15_800,
        },
        placeholders=(0, 4),
        days=10.0,
    ),
    Scenario(
        name="small binder",
        about="600 launches a day of many repositories",
        launches=small_binder,
        hub=_binder("512M"),
        has_pullers=False,
        world={
            **_EVEN,
            **ANSWERS,
            "user_memory_bytes": 512 * 2**20,
            "node_memory_bytes": 13 * GIB,
            "node_cpu_millicores": 3920,
        },
    ),
    Scenario(
        name="shared cluster",
        about="five hubs on one pool; one of them runs Roost",
        launches=shared_cluster,
        hub=_hub(_COURSE, "1G", 0.05),
        world=_OF_HUB,
    ),
    Scenario(
        name="mybinder.org",
        about="a recorded weekday, 2019-05-23",
        launches=mybinder,
        hub=_binder(550_000_000),
        has_pullers=False,
        world={**ANSWERS, "boot_sigma": 0.0},
        placeholders=(0, 25),
        days=1.0,
    ),
)
