"""Compute how many placeholders a set should have at a given time, from windows of local time.

Windows are given by cron expressions or local date-times, in a time zone; times are passed as Unix
time, and nothing here reads a clock. A window is active from each of its starts (inclusive) to its
next end (exclusive). A local time that a clock change skips counts as the time of the change; one
that occurs twice counts as its first occurrence. So a window from 02:00 to 03:00 isn't active in
the night without that hour, and a single time occurs once. Source: cron expressions as in Debian's
cron (the package cronsim); time zones by PEP 495 and PEP 615.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from difflib import get_close_matches
from functools import lru_cache
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim, CronSimError

MAX_REPLICAS: Final = 100_000
# What is expected of `timeZone`, for faults.
TIME_ZONE: Final = "a zone of the IANA database, like Europe/Berlin or UTC"
# More than the longest name has: comparing with all of them takes longer, the longer a text is.
_LONGEST_ZONE: Final = 64
_CRON: Final = re.compile(r"[ \t]*(?:[0-9A-Za-z*,/#-]+[ \t]+){4}[0-9A-Za-z*,/#-]+[ \t]*", re.ASCII)
# A local date-time.
DATE_TIME: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2})?", re.ASCII
)
_ZONE: Final = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*(?:/[A-Za-z0-9_+-]+){0,2}", re.ASCII)
# Files of the zone database that differ from machine to machine.
_NO_ZONES: Final = frozenset({"localtime", "posixrules", "Factory"})
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
# Any time will do to check a cron expression.
_SOME_DAY: Final = datetime(2024, 1, 1)  # noqa: DTZ001 - a local time without a zone
# Longer than a year; as many starts as hourly ones of six weeks.
_LONG_DAYS: Final = 400
# Whole weeks that stand for a window that is the same each week ...
_SAMPLE_DAYS: Final = 28
# ... and for one that isn't.
_YEARLY_SAMPLE_DAYS: Final = 728
_MOST_STARTS: Final = 1000


@dataclass(frozen=True, slots=True)
class Window:
    """One entry of a set's `windows`: while it is active, the set has at least that many
    replicas.
    """

    name: str
    replicas: int
    # A name of the IANA database: Europe/Berlin.
    time_zone: str
    # Both are cron expressions of five fields, or both local date-times.
    start: str
    end: str


class Period(NamedTuple):
    """A span of time in which nothing changes."""

    replicas: int
    # Names of the windows that give this number; empty: none is active.
    windows: tuple[str, ...]
    # When that may change at the earliest; None: never.
    until: float | None


class ReplicaChange(NamedTuple):
    """From this time on, the set has this many replicas."""

    at: float
    replicas: int
    windows: tuple[str, ...]


def is_time_zone(name: str) -> bool:
    """Whether the zone database knows this name."""
    if not _ZONE.fullmatch(name) or name in _NO_ZONES:
        return False
    try:
        ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        return False
    return True


def expected_zone(name: str) -> str:
    """What is expected in place of a name that isn't a zone's: the zone whose name is most like it.

    Takes some hundredths of a second.
    """
    near = get_close_matches(name[:_LONGEST_ZONE], _zones(), 1)
    return f"a zone of the IANA database, like {near[0]}" if near else TIME_ZONE


@lru_cache(maxsize=1)
def _zones() -> Sequence[str]:
    """All names, sorted, so that of two that are as near the same one is told each time."""
    return sorted(available_timezones())


def _cron_fault(text: str) -> str | None:
    expected = (
        'a cron text of five fields ("0 8 * * 1-5") or a local date-time ("2026-10-01T08:00")'
    )
    if not _CRON.fullmatch(text):
        return expected
    try:
        first = next(CronSim(text, _SOME_DAY), None)
    except (CronSimError, AssertionError, ValueError) as error:
        return f"{expected}; {error or 'a field is none of cron'}"
    return "a time that occurs: this one doesn't within 50 years" if first is None else None


def _date_fault(text: str) -> str | None:
    try:
        datetime.fromisoformat(text)
    except ValueError as error:
        return f"a date-time of the calendar; {error}"
    return None


def period_at(windows: Sequence[Window], otherwise: int, moment: float) -> Period:
    """Return how many replicas a set has at a time: the most of the active windows, else
    `otherwise`.

    moment: seconds since 1970. `until` is the next start or end of any window, whether or not the
    number then changes.
    """
    now = int(moment // 1)
    holding = [window for window in windows if _holds(window, now)]
    replicas = max((window.replicas for window in holding), default=otherwise)
    edges: list[int] = []
    for window in windows:
        for text in (window.start, window.end):
            edge = next_time(text, window.time_zone, now)
            if edge:
                edges.append(edge)
    return Period(
        replicas,
        tuple(window.name for window in holding if window.replicas == replicas),
        float(min(edges)) if edges else None,
    )


def changes_between(
    windows: Sequence[Window], otherwise: int, begin: float, end: float
) -> Iterator[ReplicaChange]:
    """Yield the state at `begin`, then each change of the number or of the windows that give it,
    before `end`.
    """
    moment = begin
    last_state: tuple[int, tuple[str, ...]] | None = None
    while moment < end:
        period = period_at(windows, otherwise, moment)
        state = (period.replicas, period.windows)
        if state != last_state:
            yield ReplicaChange(moment, period.replicas, period.windows)
        last_state = state
        if period.until is None:
            return
        moment = period.until


def replica_hours(changes: Sequence[ReplicaChange], end: float, per: int = 1) -> float:
    """Return hours times replicas until `end`; per: this many replicas count as one, rounded up at
    each change.
    """
    ends = [*(change.at for change in changes[1:]), end]
    return sum(
        -(-change.replicas // per) * (until - change.at) / 3600
        for change, until in zip(changes, ends, strict=True)
    )


def local_time(moment: float, time_zone: str) -> str:
    """Format a time in that zone: `Mon 2026-10-05 08:00 CEST`."""
    return _zoned(moment, time_zone).strftime("%a %Y-%m-%d %H:%M %Z")


def parse_moment(text: str, time_zone: str) -> float:
    """Return the Unix time of a date-time: by its offset or Z, else local in that zone.

    Raises ValueError.
    """
    given = datetime.fromisoformat(text)
    if given.tzinfo is not None:
        return (given - _EPOCH).total_seconds()
    return float(unix_time(given, time_zone))


def utc_offset_seconds(moment: int, time_zone: str) -> int:
    """Return what clocks of that zone are ahead of UTC at a time."""
    local = _zoned(moment, time_zone)
    return int((local.replace(tzinfo=UTC) - local).total_seconds())


def never_holds(window: Window) -> bool:
    """Whether a window of cron expressions is never active within 400 days: each of its starts is
    an end, too.

    Checks a thousand starts at most; with more, it counts as active.
    """
    if DATE_TIME.fullmatch(window.start):
        return False
    begin = unix_time(_SOME_DAY, window.time_zone)
    moment = begin
    for _ in range(_MOST_STARTS):
        start = next_time(window.start, window.time_zone, moment)
        if start is None or start > begin + _LONG_DAYS * 86_400:
            return True
        if _holds(window, start):
            return False
        moment = start
    return False


def longest_and_hours(window: Window) -> tuple[float, float]:
    """Hours of the longest time that a window of cron expressions is active, and its mean replicas
    times hours a week.

    Over four weeks, or two years where it names days of the month or months; (0, 0) for a window by
    dates.
    """
    if DATE_TIME.fullmatch(window.start):
        return 0, 0
    is_yearly = any(text.split()[2:4] != ["*", "*"] for text in (window.start, window.end))
    zone = window.time_zone
    begin = unix_time(_SOME_DAY, zone)
    end = begin + (_YEARLY_SAMPLE_DAYS if is_yearly else _SAMPLE_DAYS) * 86_400
    moment = begin
    longest = 0
    active = 0
    for _ in range(_MOST_STARTS):
        start = moment if _holds(window, moment) else next_time(window.start, zone, moment)
        if start is None or start >= end:
            moment = end
            break
        if not _holds(window, start):
            # This start is an end, too. The next start may come before the next end.
            moment = start
            continue
        stop = min(next_time(window.end, zone, start) or end, end)
        longest = max(longest, stop - start)
        active += stop - start
        moment = stop
    return longest / 3600, active / 3600 * window.replicas * 7 * 86_400 / (moment - begin)


def next_time(text: str, time_zone: str, moment: int) -> int | None:
    """Return the first time of a cron expression or local date-time later than `moment`; None:
    there is none.
    """
    for candidate in _times(text, local_datetime(moment, time_zone), reverse=False):
        start = unix_time(candidate, time_zone)
        if start > moment:
            return start
    return None


def start_fault(text: str) -> str | None:
    """Return what was expected instead of this cron expression or local date-time; None: it is
    one.
    """
    return _date_fault(text) if DATE_TIME.fullmatch(text) else _cron_fault(text)


def unix_time(local: datetime, time_zone: str) -> int:
    """Return the Unix time of a local time without a zone: the first of two; if skipped, that of
    the clock change.
    """
    moment = _seconds(local, time_zone)
    if _local(moment, time_zone) == local:
        return moment
    # Before the change, clocks show less than `local`; after it, more.
    low = _seconds(local.replace(fold=1), time_zone)
    high = moment
    while high - low > 1:
        middle = (low + high) // 2
        if local_datetime(middle, time_zone) < local:
            low = middle
        else:
            high = middle
    return high


def local_datetime(moment: int, time_zone: str) -> datetime:
    """Return the local time, without its zone."""
    return _local(moment, time_zone).replace(fold=0)


def monday_of(moment: int, time_zone: str) -> int:
    """Return when the week of that time began: on its Monday, 0:00 in the zone."""
    day = local_datetime(moment, time_zone).date()
    monday = datetime.combine(day - timedelta(days=day.weekday()), time())
    return unix_time(monday, time_zone)


# The calendar


def _holds(window: Window, now: int) -> bool:
    start = _last(window.start, window.time_zone, now)
    if start is None:
        return False
    end = _last(window.end, window.time_zone, now)
    # Both at the same time: a clock change skipped everything between them.
    return end is None or start > end


def _last(text: str, time_zone: str, now: int) -> int | None:
    """Return the latest time of a cron expression or date that is not after `now`."""
    local = _local(now, time_zone)
    if local.fold:
        # Times that occur twice count as their first occurrence, so those up to an hour ahead have
        # passed.
        local += _offset(local.replace(fold=0), time_zone) - _offset(local, time_zone)
    for candidate in _times(text, local.replace(fold=0) + timedelta(seconds=1), reverse=True):
        moment = unix_time(candidate, time_zone)
        if moment <= now:
            return moment
    return None


def _times(text: str, local: datetime, *, reverse: bool) -> Iterator[datetime]:
    """Yield the date, or local times of a cron expression before or after `local`, which has no
    zone.
    """
    if DATE_TIME.fullmatch(text):
        yield datetime.fromisoformat(text)
    else:
        yield from CronSim(text, local, reverse=reverse)


def _seconds(local: datetime, time_zone: str) -> int:
    zoned = local.replace(tzinfo=_zone(time_zone))
    return int((zoned.astimezone(UTC) - _EPOCH).total_seconds())


def _local(moment: int, time_zone: str) -> datetime:
    """Return the local time without its zone; its fold is 1 when it occurs for the second time."""
    return _zoned(moment, time_zone).replace(tzinfo=None)


def _zoned(moment: float, time_zone: str) -> datetime:
    return (_EPOCH + timedelta(seconds=moment)).astimezone(_zone(time_zone))


def _offset(local: datetime, time_zone: str) -> timedelta:
    """Return what the zone's clocks are ahead of UTC at a local time."""
    return local.replace(tzinfo=UTC) - local.replace(tzinfo=_zone(time_zone))


@lru_cache(maxsize=64)
def _zone(name: str) -> ZoneInfo:
    return ZoneInfo(name)
