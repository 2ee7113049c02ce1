"""Forecast how many more users will come while a node boots, from the same minutes of earlier days.

Each earlier day says how many more came there from that minute on within the time that a node
takes. Two questions are asked of the days. *Waves*: how many people came at this very minute? Days
of the same weekday count most, and those on which as many had come as today; a wave may also come
some minutes late. *Steady need*: how many came in the hour before and in the hour after? Where
users come one by one, no minute is like another.

What a seat is worth is decided in headroom_worth.py. Times are Unix time; minutes are whole ones
since 1970.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from math import sqrt
from typing import Final, NamedTuple

from roost_core.placement.headroom_history import (
    DAY_MINUTES,
    HOUR_MINUTES,
    KEPT_DAYS,
    MINUTE_SECONDS,
    UNSEEN,
    History,
)
from roost_core.placement.headroom_windows import Period, utc_offset_seconds
from roost_core.placement.headroom_worth import Needs, Worth, seats_worth

# With fewer days, nothing is forecast.
LEAST_DAYS: Final = 2
# With fewer days, the values' number stands.
FLOOR_DAYS: Final = 7
# What a week counts by the week after it.
WEEKLY_WEIGHT: Final = 0.8
# People who have come within so many minutes tell which days today is like.
WAVE_MINUTES: Final = 5
# A wave may come so many minutes late without being unlike its day.
LATE_MINUTES: Final = 2
# Whether a class has come already is seen in so many minutes.
LONG_MINUTES: Final = 20
# A class may begin so many minutes late, and on how many days of a hundred each happens: lecturers
# are late.
DELAYS_MINUTES: Final = (5, 10)
DELAY_SHARE: Final = 0.03
# If people are missing who had come by now on earlier days, their class begins late or falls out.
# This share of the weight that those days lose is added to late classes.
MISSING_SHARE: Final = 0.3
# More people have come than on an earlier day. If the wave came early, all of them will be missing
# later; if the wave is larger, nobody will. This share of them is taken off.
EARLY_SHARE: Final = 0.25
# A wave is so many people at least.
LEAST_WAVE: Final = 3
# If a wave is too large for days of half of all weight, so many days of other waves count ...
OTHER_DAYS: Final = 14
# ... with this share of the weight that those days lose.
OTHER_SHARE: Final = 0.3
# Steady need is looked at in steps of so many minutes, in the hour before and in the hour after.
STEADY_STEP: Final = 6


class Likeness(Enum):
    """How a day is like today."""

    SAME_WEEKDAY = 0
    # Both are working days, or both are days of a weekend.
    LIKE_DAY = 1
    OTHER_DAY = 2


# What days count for waves: a like day only until the weekday itself was seen.
_WAVE_WEIGHTS: Final = {
    Likeness.SAME_WEEKDAY: 1.0,
    Likeness.LIKE_DAY: 0.1,
    Likeness.OTHER_DAY: 0.02,
}
_KNOWN_WAVE_WEIGHTS: Final = {
    Likeness.SAME_WEEKDAY: 1.0,
    Likeness.LIKE_DAY: 0.003,
    Likeness.OTHER_DAY: 0.0005,
}
# What days count for steady need.
_STEADY_WEIGHTS: Final = {
    Likeness.SAME_WEEKDAY: 1.0,
    Likeness.LIKE_DAY: 0.5,
    Likeness.OTHER_DAY: 0.1,
}


class Rises:
    """By how many users the level rose at most within the time ahead, from each minute on; worked
    out once a minute.

    One belongs to one history that grows: levels of the past don't change.
    """

    def __init__(self, history: History) -> None:
        self.ahead = history.ahead_minutes
        self._first = history.first
        # None: not worked out yet.
        self._known: list[int | None] = []

    def fits(self, history: History) -> bool:
        """Whether it is still of this history: not after another one was read, days went or boots
        changed.
        """
        return self.ahead == history.ahead_minutes and self._first == history.first

    def at(self, history: History, minute: int) -> int:
        """Return the rise from a minute on; UNSEEN: nobody looked."""
        index = minute - self._first
        levels = history.levels
        if not 0 <= index < len(levels):
            return UNSEEN
        known = self._known
        if index < len(known) and (rise := known[index]) is not None:
            return rise
        level = levels[index]
        rise = UNSEEN if level == UNSEEN else max(levels[index : index + self.ahead + 1]) - level
        # What is still to come may rise further.
        if index + self.ahead < len(levels):
            while len(known) <= index:
                known.append(None)
            known[index] = rise
        return rise


class EarlierMinute(NamedTuple):
    """The same minute of an earlier day."""

    at: int
    # What it counts, the less the longer ago it is.
    recency: float
    # How the day is like today.
    likeness: Likeness


class Day(NamedTuple):
    """What an earlier day says of this minute."""

    weight: float
    # The most who came from then on within the time ahead.
    coming: int
    # How many had come within WAVE_MINUTES of that minute, and of LATE_MINUTES before it, because
    # today's wave may be late: the smaller number, and the larger one.
    fewest: int
    most: int
    # How many had come within LONG_MINUTES; None: nobody looked.
    lately: int | None
    # Its classes are taken as if they had begun late.
    is_delayed: bool = False


class _WeighedNeed(NamedTuple):
    """One of Needs: seats that may be needed, and what that counts."""

    seats: float
    weight: float


class Outlook(NamedTuple):
    """What earlier days say of one minute."""

    # Empty where nobody came on any of them.
    days: Sequence[Day]
    # How many earlier days were seen.
    days_seen: int
    # The most seats that any of them needed within an hour of this minute.
    most: float
    # What was needed in the hours before and after.
    before: Needs
    after: Needs
    # In which the minute is the last.
    history: History

    def floor(self, replicas: int, highest: int) -> int:
        """What stays of the values' number: one more than any day needed within an hour of this
        minute, and at most `highest` once the days tell it.
        """
        if self.days_seen < FLOOR_DAYS:
            return replicas
        return min(replicas, highest, 1 + round(self.most))


class Forecast(NamedTuple):
    """The seats that a minute needs."""

    # How many are worth the nodes that only they keep, those that fit beside users included.
    worth: int
    # How many of these are needed beside a wave.
    steady: int


def look_ahead(
    history: History,
    minute: int,
    time_zone: str,
    rises: Rises | None = None,
    steady: tuple[Needs, Needs] | None = None,
) -> Outlook | None:
    """Return what earlier days say of a minute; None with too few of them.

    time_zone: a name of the IANA database; "the same minute" is one of its clocks. rises: of this
    history, kept from minute to minute. steady: what `steady_needs` gave for a minute close by.
    """
    rises = rises or Rises(history)
    minutes_then = [
        earlier
        for earlier in earlier_minutes(history, minute, time_zone)
        if rises.at(history, earlier.at) != UNSEEN
    ]
    if len(minutes_then) < LEAST_DAYS:
        return None
    before, after = steady or steady_needs(history, minute, time_zone, rises)
    # Needs begin with the most seats.
    most_steady = [needs[0][0] for needs in (before, after) if needs]
    rises_then = [rises.at(history, earlier.at) for earlier in minutes_then]
    most = max([0.0, *most_steady, *rises_then])
    shifts = (0, *DELAYS_MINUTES)
    if not any(
        rises.at(history, earlier.at - shift) > 0 for earlier in minutes_then for shift in shifts
    ):
        return Outlook((), len(minutes_then), most, before, after, history)
    is_known = any(earlier.likeness is Likeness.SAME_WEEKDAY for earlier in minutes_then)
    weights = _KNOWN_WAVE_WEIGHTS if is_known else _WAVE_WEIGHTS
    days: list[Day] = []
    for at, recency, likeness in minutes_then:
        weight = recency * weights[likeness]
        days += _day(history, rises, at, weight)
        for delay in DELAYS_MINUTES:
            days += _delayed(history, rises, at - delay, DELAY_SHARE * weight)
    return Outlook(days, len(minutes_then), most, before, after, history)


def _day(history: History, rises: Rises, at: int, weight: float) -> list[Day]:
    """What an earlier minute says; nothing where somebody didn't look."""
    still = rises.at(history, at)
    now = history.at(at)
    five_ago = history.at(at - WAVE_MINUTES)
    two_ago = history.at(at - LATE_MINUTES)
    seven_ago = history.at(at - LATE_MINUTES - WAVE_MINUTES)
    if UNSEEN in (still, now, five_ago, two_ago, seven_ago):
        return []
    in_time = now - five_ago
    late = two_ago - seven_ago
    long_ago = history.at(at - LONG_MINUTES)
    lately = None if long_ago == UNSEEN else now - long_ago
    return [Day(weight, still, min(in_time, late), max(in_time, late), lately)]


def _delayed(history: History, rises: Rises, at: int, weight: float) -> list[Day]:
    """The same of a class that begins late: then nobody had come to it a while ago."""
    return [
        day._replace(is_delayed=True)
        for day in _day(history, rises, at, weight)
        if day.lately is not None
    ]


def steady_needs(
    history: History, minute: int, time_zone: str, rises: Rises
) -> tuple[Needs, Needs]:
    """Return what earlier days needed in the hour before and in the hour after this time, the most
    seats first.
    """
    before: list[tuple[float, float]] = []
    after: list[tuple[float, float]] = []
    for at, recency, likeness in earlier_minutes(history, minute, time_zone):
        weight = recency * _STEADY_WEIGHTS[likeness]
        for step in range(STEADY_STEP, HOUR_MINUTES + STEADY_STEP, STEADY_STEP):
            for needs, moment in ((before, at - step), (after, at + step)):
                rise = rises.at(history, moment)
                if rise != UNSEEN:
                    needs.append((rise, weight))
    return _together(before), _together(after)


def _together(needs: Sequence[tuple[float, float]]) -> Needs:
    """Each need once, with all of its weight, the most seats first."""
    weights: dict[float, float] = {}
    for need, weight in needs:
        weights[need] = weights.get(need, 0.0) + weight
    return sorted(weights.items(), reverse=True)


def forecast_need(outlook: Outlook, came: float | None, worth: Worth, room: int = 0) -> Forecast:
    """Forecast the seats to have now.

    came: who came in the last WAVE_MINUTES; None: as on each day. room: how many seats users' nodes
    have left.
    """
    lately = None if came is None else _came_lately(outlook.history, came)
    today = _all_as_today(outlook.days, came, lately)
    if not today:
        # Nobody came on any day: all weight says that nobody will.
        today = [_WeighedNeed(seats=0.0, weight=1.0)]
    others = _other_waves(outlook, came)
    of_waves = seats_worth(today, worth, room)
    if others:
        of_waves = max(of_waves, seats_worth([*today, *others], worth, room))
    going_on = worth.going_on()
    steady = min(
        seats_worth(outlook.before, going_on, room), seats_worth(outlook.after, going_on, room)
    )
    return Forecast(max(of_waves, steady), steady)


def learned_replicas(
    period: Period, outlook: Outlook | None, seats: int, least: int, most: int
) -> int:
    """Return a set's number: the seats within bounds, but no less than active windows and what
    stays of the values'.
    """
    if outlook is None:
        return period.replicas
    floor = period.replicas if period.windows else outlook.floor(period.replicas, most)
    return max(least, min(most, seats), floor)


def earlier_minutes(history: History, minute: int, time_zone: str) -> Iterator[EarlierMinute]:
    """That minute of earlier days, the last day first."""
    offset = _offset_minutes(minute, time_zone)
    # 1970 began on a Thursday.
    weekday = ((minute + offset) // DAY_MINUTES + 3) % 7
    for back in range(1, KEPT_DAYS + 1):
        at = minute - back * DAY_MINUTES
        if at + DAY_MINUTES < history.first:
            return
        # The same time of the clocks, which may have changed since.
        at += offset - _offset_minutes(at, time_zone)
        likeness = Likeness.OTHER_DAY
        if back % 7 == 0:
            likeness = Likeness.SAME_WEEKDAY
        elif ((weekday - back) % 7 >= 5) == (weekday >= 5):
            likeness = Likeness.LIKE_DAY
        yield EarlierMinute(at, WEEKLY_WEIGHT ** (back / 7), likeness)


def _offset_minutes(minute: int, time_zone: str) -> int:
    """How many minutes the zone's clocks are ahead of UTC."""
    if time_zone == "UTC":
        return 0
    return utc_offset_seconds(minute * MINUTE_SECONDS, time_zone) // MINUTE_SECONDS


def _came_lately(history: History, came: float) -> float | None:
    """How many have come within LONG_MINUTES. came: within WAVE_MINUTES."""
    now = history.end - 1
    five_ago = history.at(now - WAVE_MINUTES)
    long_ago = history.at(now - LONG_MINUTES)
    return None if UNSEEN in (five_ago, long_ago) else came + five_ago - long_ago


def _all_as_today(
    days: Sequence[Day], came: float | None, lately: float | None
) -> list[_WeighedNeed]:
    """What each day says of today. Late classes count more while people are missing."""
    today = [_as_today(day, came, lately) for day in days]
    lost = sum(
        day.weight - need.weight
        for day, need in zip(days, today, strict=True)
        if _are_people_missing(day, came, lately)
    )
    usual = sum(day.weight for day in days if day.is_delayed)
    if not lost or not usual:
        return today
    more = 1 + MISSING_SHARE * lost / usual
    return [
        need._replace(weight=need.weight * more) if day.is_delayed else need
        for day, need in zip(days, today, strict=True)
    ]


def _are_people_missing(day: Day, came: float | None, lately: float | None) -> bool:
    """Whether fewer have come today than on a day whose classes are taken as they began."""
    if day.is_delayed or came is None:
        return False
    return came < day.fewest or _is_class_missing(day, lately)


def _is_class_missing(day: Day, lately: float | None) -> bool:
    """Whether fewer have come lately than on a day on which most people had come by then.

    On other days the class was still to begin. Whoever had come until then came for something else.
    """
    if lately is None or day.lately is None:
        return False
    return day.lately > day.coming and lately < day.lately


def _as_today(day: Day, came: float | None, lately: float | None = None) -> _WeighedNeed:
    """Return how many would still come if today went on as that day, and the day's weight.

    The further that day's count is from today's, the smaller the weight.
    """
    if came is None:
        return _WeighedNeed(day.coming, day.weight)
    nearest = min(max(came, day.fewest), day.most)
    still = day.coming - EARLY_SHARE * max(0.0, came - nearest)
    unlikeness = _unlikeness(came, nearest)
    # More than then says nothing of a class in time: it may have begun early.
    is_asked = day.is_delayed or _is_class_missing(day, lately)
    if is_asked and day.lately is not None and lately is not None:
        unlikeness += _unlikeness(lately, day.lately)
    return _WeighedNeed(max(0.0, still), day.weight / (1 + unlikeness))


def _other_waves(outlook: Outlook, came: float | None) -> Needs:
    """What came after like minutes of other waves, if today's wave is too large for the days' same
    minutes.
    """
    if came is None or came < LEAST_WAVE:
        return ()
    if outlook.days:
        lost = _lost_weight(outlook.days, came)
        if lost < sum(day.weight for day in outlook.days) / 2:
            return ()
    else:
        # All of the weight 1 that a forecast without days has: nobody came then.
        lost = 1.0
    rises = _rises_after_like_waves(outlook.history, came)
    return [_WeighedNeed(rise, OTHER_SHARE * lost / len(rises)) for rise in rises]


def _lost_weight(days: Sequence[Day], came: float) -> float:
    """The weight that earlier days lose because more people have come than then."""
    return sum(day.weight - _as_today(day, came).weight for day in days if came > day.most)


def _rises_after_like_waves(history: History, came: float) -> list[int]:
    """By how many users the level rose after each minute of the last OTHER_DAYS to which about as
    many people had come as to now. came: within WAVE_MINUTES.
    """
    levels = history.levels[-OTHER_DAYS * DAY_MINUTES :]
    ahead = history.ahead_minutes
    came_in_two = levels[-1] - levels[-1 - LATE_MINUTES]
    # This follows from _unlikeness(came, other) <= 1. Most minutes have fewer, and are left before
    # what costs ten times as much: each plan asks for this.
    least = came - sqrt(1 + 2 * came)
    rises: list[int] = []
    for at in range(WAVE_MINUTES, len(levels) - ahead):
        level = levels[at]
        five_ago = levels[at - WAVE_MINUTES]
        # Also leaves out a minute that is UNSEEN itself.
        if level - five_ago < least:
            continue
        two_ago = levels[at - LATE_MINUTES]
        if UNSEEN in (five_ago, two_ago):
            continue
        is_like = _unlikeness(came, level - five_ago) <= 1
        if is_like and _unlikeness(came_in_two, level - two_ago) <= 1:
            rises.append(max(levels[at : at + ahead + 1]) - level)
    return rises


def _unlikeness(count: float, other: float) -> float:
    """How unlike two counts are, measured by their noise: the variance of a count is the count."""
    return (count - other) ** 2 / (1 + abs(count) + abs(other))
