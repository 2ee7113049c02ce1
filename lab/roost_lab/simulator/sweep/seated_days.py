"""Play an event's day with its people's servers started beforehand: what those who come still wait,
and what the servers of those who don't come cost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import median

from roost_core.release.bookings import Event
from roost_core.release.seating_pace import (
    FIRST_SEATS,
    SEATING_START_SECONDS,
    SEATS_A_SECOND,
    most_seating,
    seating_seconds,
)
from roost_lab.simulator.engine.world import World
from roost_lab.simulator.setup.assumptions import SESSIONS, Assumptions
from roost_lab.simulator.setup.policy import Policy
from roost_lab.traces.attempt import Attempt
from roost_lab.traces.chance import Chance
from roost_lab.units import HOUR_SECONDS

Day = tuple[Sequence[Attempt], frozenset[int]]


@dataclass(frozen=True, slots=True)
class SeatedDay:
    """One day: its attempts, and when each listed person comes, by number of the attempt."""

    attempts: Sequence[Attempt]
    # None: they don't come.
    comes_at: Mapping[int, float | None]


@dataclass(frozen=True, slots=True)
class SeatedDays:
    """The event's day with its people seated, once for each seed."""

    # Seconds from a person's coming until their server is up, sorted: of all seeds.
    waits: Sequence[float]
    node_hours_by_seed: Sequence[float]
    # Hours of servers whose people didn't come.
    absent_hours_by_seed: Sequence[float]
    cold_by_seed: Sequence[int]
    # Who came and has no server, in all seeds.
    without_server: int

    @property
    def absent_hours(self) -> float:
        """Server-hours for people who didn't come, in the median seed."""
        return median(self.absent_hours_by_seed)


def with_sessions(days: Sequence[Day], assumptions: Assumptions) -> list[Day]:
    """The same days, with how long the event's people stay: as long, whenever their servers
    start.
    """
    least_minutes, median_minutes, sigma = SESSIONS[assumptions.sessions]
    longer_days: list[Day] = []
    for seed, (attempts, people) in enumerate(days, 1):
        chance = Chance(seed)
        changed: list[Attempt] = []
        for attempt in attempts:
            if attempt.number in people:
                more_minutes = chance.log_normal(
                    "session of an event", attempt.number, median_minutes, sigma
                )
                seconds = 60.0 * (least_minutes + more_minutes)
                changed.append(attempt._replace(session_seconds=seconds))
            else:
                changed.append(attempt)
        longer_days.append((changed, people))
    return longer_days


def seating_moments(
    event: Event, start: int, concurrent_spawn_limit: int, start_seconds: float
) -> list[float]:
    """When each person's server is asked for; Unix time.

    start_seconds: what a start takes, by the assumptions.
    """
    begin = start - seating_seconds(event.people, concurrent_spawn_limit, SEATING_START_SECONDS)
    window = FIRST_SEATS
    going: list[float] = []
    moments: list[float] = []
    now = begin
    while len(moments) < event.people:
        ended = sum(1 for end in going if end <= now)
        going = [end for end in going if end > now]
        window += ended
        room = min(window, most_seating(concurrent_spawn_limit)) - len(going)
        new = max(0, min(SEATS_A_SECOND, room, event.people - len(moments)))
        moments += [now] * new
        going += [now + start_seconds] * new
        now += 1.0
    return moments


def seat(
    days: Sequence[Day],
    event: Event,
    start: int,
    *,
    concurrent_spawn_limit: int,
    grace_seconds: float,
    start_seconds: float,
) -> list[SeatedDay]:
    """Return the days with the event's servers started beforehand.

    days: with the people who come, as `with_sessions` gives them; the others whom the event books
    don't come.
    """
    seated: list[SeatedDay] = []
    for seed, (attempts, people) in enumerate(days, 1):
        moments = seating_moments(event, start, concurrent_spawn_limit, start_seconds)
        # Who comes is in no order among those who are listed.
        chance = Chance(seed)
        moments.sort(key=lambda at: chance.uniform("order of the listed", at))
        of_people = [attempt for attempt in attempts if attempt.number in people]
        comes_at: dict[int, float | None] = {}
        moved: list[Attempt] = []
        for attempt, moment in zip(of_people, moments, strict=False):
            early = max(0.0, attempt.moment - moment)
            stays = (attempt.session_seconds or 0.0) + early
            moved.append(attempt._replace(moment=moment, session_seconds=stays))
            comes_at[attempt.number] = attempt.moment
        number = max(attempt.number for attempt in attempts)
        for moment in moments[len(of_people) :]:
            number += 1
            stays = start + grace_seconds - moment
            absent = of_people[0]._replace(number=number, moment=moment, session_seconds=stays)
            moved.append(absent)
            comes_at[number] = None
        others = [attempt for attempt in attempts if attempt.number not in people]
        in_order = sorted([*others, *moved], key=lambda attempt: attempt.moment)
        seated.append(SeatedDay(in_order, comes_at))
    return seated


def _note_end(
    ended: dict[int, tuple[float, bool]], number: int, waited: float, is_up: bool
) -> None:
    ended[number] = (waited, is_up)


def play_seated(policy: Policy, assumptions: Assumptions, days: Sequence[SeatedDay]) -> SeatedDays:
    """Play a day for each seed, from 1 on."""
    assumptions = replace(assumptions, quota_per_repository=0)
    waits: list[float] = []
    hours: list[float] = []
    absent_hours: list[float] = []
    cold: list[int] = []
    without_server = 0
    for seed, day in enumerate(days, 1):
        world = World(policy, assumptions, seed)
        # Number of an attempt -> the seconds that it waited, and whether its server was up then.
        ended: dict[int, tuple[float, bool]] = {}
        world.measures.on_wait = partial(_note_end, ended)
        result = world.play(day.attempts)
        asked_at = {attempt.number: attempt.moment for attempt in day.attempts}
        kept = {attempt.number: attempt.session_seconds or 0.0 for attempt in day.attempts}
        of_absent = 0.0
        for number, comes_at in day.comes_at.items():
            waited, is_up = ended.get(number, (0.0, False))
            if comes_at is None:
                of_absent += kept[number] if is_up else 0.0
            elif is_up:
                waits.append(max(0.0, asked_at[number] + waited - comes_at))
            else:
                without_server += 1
        hours.append(result.node_hours)
        absent_hours.append(of_absent / HOUR_SECONDS)
        cold.append(result.cold)
    return SeatedDays(sorted(waits), hours, absent_hours, cold, without_server)
