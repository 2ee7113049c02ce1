"""Keep what learned placeholders saved and cost: people's waiting and node-hours, week by week.

Both are differences: what was seen, against what the same people would have met on nodes without
learned placeholders (pool_without.py). Pure; minutes are whole ones since 1970, hours are people's
or nodes'.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from math import exp, isfinite
from typing import Any, Final, NamedTuple

# Weeks and late classes that are kept.
KEPT_WEEKS: Final = 9
KEPT_CLASSES: Final = 60
DAYS_A_WEEK: Final = 7
DAYS_A_MONTH: Final = 30
# Time constant of a fading sum, a month that slides: what is this old counts 1/e.
MONTH_MINUTES: Final = DAYS_A_MONTH * 1440
# A hub's busiest week is looked for in so many weeks, so that a holiday doesn't count.
BUSY_WEEKS: Final = 5
# A start is late that waited longer for a node.
LATE_SECONDS: Final = 30.0


class Why(StrEnum):
    """Why people of a class waited for a node."""

    NOT_KNOWN = "not known"
    MORE_CAME = "more came"
    CEILING = "cut by the ceiling"
    MOST = "cut by learn.max"
    NODE_LATE = "nodes came late"


_REASONS: Final = frozenset(str(why) for why in Why)


class LateClass(NamedTuple):
    """People who came together, of whom some waited longer than LATE_SECONDS for a node."""

    # The minute of the first person who was late.
    minute: int
    people: int
    late: int
    why: Why


class Week(NamedTuple):
    """One week of a set."""

    # The minute at which it begins: Monday 0:00 in the set's time zone.
    begin: int
    # Starts, and those of them that were late.
    people: int = 0
    late: int = 0
    # Hours that people waited for nodes, and would have without learned placeholders.
    waited_hours: float = 0.0
    waited_without: float = 0.0
    # Node-hours of the set's nodes, and those without learned placeholders.
    node_hours: float = 0.0
    node_hours_without: float = 0.0

    @property
    def saved_hours(self) -> float:
        """People's hours that nobody waited because of learning."""
        return self.waited_without - self.waited_hours

    @property
    def net_node_hours(self) -> float:
        """Node-hours that learning cost; below 0 it saved some."""
        return self.node_hours - self.node_hours_without

    def plus(self, other: Week) -> Week:
        """Return the sum, with this one's begin."""
        return Week(
            self.begin,
            people=self.people + other.people,
            late=self.late + other.late,
            waited_hours=self.waited_hours + other.waited_hours,
            waited_without=self.waited_without + other.waited_without,
            node_hours=self.node_hours + other.node_hours,
            node_hours_without=self.node_hours_without + other.node_hours_without,
        )


@dataclass(frozen=True, slots=True)
class Account:
    """What learning saved and cost."""

    # The last ones, in order.
    weeks: tuple[Week, ...] = ()
    late_classes: tuple[LateClass, ...] = ()
    # Net node-hours of the last thirty days, older ones fading.
    month_node_hours: float = 0.0
    # The last minute that was booked.
    until: int = 0

    @property
    def month_node_hours_without(self) -> float:
        """Node-hours that thirty days like the busiest of the last weeks have without learning."""
        weeks = self.weeks[-BUSY_WEEKS:]
        busiest = max((week.node_hours_without for week in weeks), default=0.0)
        return busiest * DAYS_A_MONTH / DAYS_A_WEEK

    def with_minute(self, more: Week, minute: int) -> Account:
        """Return the account with what came until a minute. more: what came since the last call,
        with the week's begin.
        """
        passed = max(0, minute - self.until) if self.until else 1
        month = self.month_node_hours * exp(-passed / MONTH_MINUTES) + more.net_node_hours
        if self.weeks and self.weeks[-1].begin == more.begin:
            weeks = (*self.weeks[:-1], self.weeks[-1].plus(more))
        else:
            weeks = (*self.weeks, more)[-KEPT_WEEKS:]
        return replace(self, weeks=weeks, month_node_hours=month, until=max(minute, self.until))

    def with_late_class(self, late: LateClass) -> Account:
        """Return the account with one more class that waited."""
        return replace(self, late_classes=(*self.late_classes, late)[-KEPT_CLASSES:])

    def as_json(self) -> dict[str, Any]:
        """The account in the form that `read_account` reads."""
        return {
            "weeks": [[_short(number) for number in week] for week in self.weeks],
            "late": [[*late] for late in self.late_classes],
            "monthNodeHours": _short(self.month_node_hours),
            "until": self.until,
        }


def _short(number: float) -> float:
    return number if isinstance(number, int) else round(number, 4)


def read_account(body: object, now: int) -> Account:
    """Read an account; an empty one where there is none. Raises ValueError, TypeError or KeyError
    for anything else.

    now: the last minute that it may have.
    """
    if body is None:
        return Account()
    if not isinstance(body, Mapping):
        raise TypeError("account: expected a mapping")
    weeks = []
    for begin, people, late, *hours in body["weeks"][-KEPT_WEEKS:]:
        week = Week(int(begin), int(people), int(late), *map(float, hours))
        if len(hours) != len(Week._fields) - 3 or not all(map(isfinite, week)) or week.begin < 0:
            raise ValueError("account: expected weeks of seven numbers")
        weeks.append(week)
    late_classes = [
        LateClass(int(minute), int(people), int(late), Why(why))
        for minute, people, late, why in body["late"][-KEPT_CLASSES:]
        # A later version may know more reasons. Without them, the weeks still count.
        if why in _REASONS
    ]
    month = float(body["monthNodeHours"])
    until = int(body["until"])
    if not isfinite(month):
        raise ValueError("account: expected a number of node-hours")
    moments = [until, *(week.begin for week in weeks), *(late.minute for late in late_classes)]
    if not 0 <= min(moments) <= max(moments) <= now:
        raise ValueError("account: expected minutes up to the present")
    return Account(tuple(weeks), tuple(late_classes), month, until)
