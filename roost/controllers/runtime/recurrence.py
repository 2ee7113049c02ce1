"""Recurrences of calendars (RFC 5545), by arithmetic: daily, weekly and monthly rules.

A rule answers with its days from a given day on, and passes over what lies before: what it costs
depends neither on how long ago it began nor on its COUNT. Days are proleptic ordinals, as
`date.toordinal` counts them.
"""

from __future__ import annotations

from bisect import bisect_left
from calendar import monthrange
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from functools import cache
from typing import Final

from roost_core.release.events import FIRST_YEAR, LAST_YEAR

LAST_DAY: Final = date(LAST_YEAR, 12, 31).toordinal()


@dataclass(frozen=True, slots=True)
class DayRule:
    """Days of a period that repeats: of `interval` days, or of as many weeks."""

    first: int
    # Days of a period.
    step: int
    # The first period's first day.
    origin: int
    # Days of a period that count, from 0, sorted.
    offsets: tuple[int, ...] = (0,)
    # No day after this one counts.
    last: int = LAST_DAY

    def days_from(self, day: int) -> Iterator[int]:
        """Yield the days that aren't before `day`."""
        day = max(day, self.first)
        period = self.origin + (day - self.origin) // self.step * self.step
        while period <= self.last:
            for offset in self.offsets:
                if day <= period + offset <= self.last:
                    yield period + offset
            period += self.step

    def last_of(self, count: int) -> int:
        """Return the last of the first `count` days."""
        index = bisect_left(self.offsets, self.first - self.origin) + count - 1
        periods, place = divmod(index, len(self.offsets))
        return self.origin + periods * self.step + self.offsets[place]


@dataclass(frozen=True, slots=True)
class MonthRule:
    """Days of every month, or of every `interval`-th."""

    first: int
    interval: int
    # (ordinal, weekday); an ordinal of 0: each such weekday, -1: the last. Empty: any weekday.
    weekdays: tuple[tuple[int, int], ...] = ()
    # 1 to 31, -1: the last. Empty: any day.
    month_days: tuple[int, ...] = ()
    # Of the days that are left, those at these places; -1: the last. Empty: all of them.
    positions: tuple[int, ...] = ()
    # As in DayRule.
    last: int = LAST_DAY

    def days_from(self, day: int) -> Iterator[int]:
        """Yield the days that aren't before `day`."""
        day = max(day, self.first)
        first, now = date.fromordinal(self.first), date.fromordinal(min(day, LAST_DAY))
        begin = (first.year - FIRST_YEAR) * 12 + first.month - 1
        month = (
            begin
            + ((now.year - FIRST_YEAR) * 12 + now.month - 1 - begin)
            // self.interval
            * self.interval
        )
        known: dict[tuple[int, int], tuple[int, ...]] = {}
        for before, shape in _months()[month :: self.interval]:
            if before >= self.last:
                return
            if shape not in known:
                known[shape] = self._days_of(*shape)
            for each in known[shape]:
                if day <= before + each <= self.last:
                    yield before + each

    def last_of(self, count: int) -> int:
        """Return the last of the first `count` days, at the latest LAST_DAY: a rule has at most 230
        years of months.
        """
        last = self.first
        for number, day in enumerate(self.days_from(self.first), 1):
            last = day
            if number == count:
                return day
        return max(last, LAST_DAY)

    def _days_of(self, first_weekday: int, length: int) -> tuple[int, ...]:
        """Return the days of a month that begins with this weekday (0: Monday) and has so many
        days.
        """
        days = set(range(1, length + 1))
        if self.month_days:
            days &= {each if each > 0 else length + 1 + each for each in self.month_days}
        if self.weekdays:
            chosen: set[int] = set()
            for ordinal, weekday in self.weekdays:
                all_such = list(range(1 + (weekday - first_weekday) % 7, length + 1, 7))
                if ordinal == 0:
                    chosen.update(all_such)
                elif abs(ordinal) <= len(all_such):
                    chosen.add(all_such[ordinal - 1 if ordinal > 0 else ordinal])
            days &= chosen
        found = sorted(days)
        if self.positions:
            places = {place - 1 if place > 0 else len(found) + place for place in self.positions}
            found = [each for place, each in enumerate(found) if place in places]
        return tuple(found)


@cache
def _months() -> tuple[tuple[int, tuple[int, int]], ...]:
    """Of each month from FIRST_YEAR on: the day before it, and its first weekday and length, which
    are of few kinds.
    """
    months = [
        (year, number) for year in range(FIRST_YEAR, LAST_YEAR + 1) for number in range(1, 13)
    ]
    return tuple((date(*month, 1).toordinal() - 1, monthrange(*month)) for month in months)


Rule = DayRule | MonthRule
