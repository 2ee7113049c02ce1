"""What learned placeholders saved and cost, week by week, and which classes still waited.

The controllers keep the account of each set in their ConfigMap. The record doesn't have it: the
report gets it by `--learned`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Self

from roost_core.placement.headroom_account import Account, LateClass, Week
from roost_lab.pages.table import Unit
from roost_lab.report.query import Query
from roost_lab.report.subject import Field, Report, Section, TableOf
from roost_lab.units import DAY_US, MINUTE_US

WEEK_US: Final = 7 * DAY_US


@dataclass(frozen=True, slots=True)
class LearnedRoom:
    """The account of each placeholder set that learns, by the set's name."""

    accounts: Mapping[str, Account] = field(default_factory=dict)

    @classmethod
    def read(cls, query: Query) -> Self:  # noqa: ARG003 - the protocol of all subjects
        """The record holds no account: there are none until the report is given them."""
        return cls()


class _SetWeek(NamedTuple):
    set_name: str
    week: Week


class _SetClass(NamedTuple):
    set_name: str
    late_class: LateClass


def summary(report: Report) -> list[str]:
    """One line for each set, of its weeks in the period; none where no account is known."""
    lines = []
    for name in report[LearnedRoom].accounts:
        weeks = [found.week for found in _weeks(report) if found.set_name == name]
        if not weeks:
            continue
        saved = sum(week.saved_hours for week in weeks)
        cost = sum(week.net_node_hours for week in weeks)
        ratio = f", {saved / cost:.1f} for each node-hour" if cost > 0 else ""
        lines.append(
            f"Learned placeholders, set {name}: people waited {saved:.1f} hours less for nodes, at"
            f" {cost:.1f} node-hours more{ratio}."
        )
    return lines


def _weeks(report: Report) -> Iterator[_SetWeek]:
    """Each week that has a part in the report's period."""
    from_us, to_us = report.window
    for name, account in report[LearnedRoom].accounts.items():
        for week in account.weeks:
            begin_us = week.begin * MINUTE_US
            if begin_us < to_us and begin_us + WEEK_US > from_us:
                yield _SetWeek(name, week)


def _late_classes(report: Report) -> Iterator[_SetClass]:
    """Each class of the report's period in which people waited."""
    from_us, to_us = report.window
    for name, account in report[LearnedRoom].accounts.items():
        for late_class in account.late_classes:
            if from_us <= late_class.minute * MINUTE_US < to_us:
                yield _SetClass(name, late_class)


def _share_late(row: _SetWeek) -> float | None:
    return row.week.late / row.week.people if row.week.people else None


def _hours_a_node_hour(row: _SetWeek) -> float | None:
    """None: learning cost nothing in that week."""
    cost = row.week.net_node_hours
    return row.week.saved_hours / cost if cost > 0 else None


BY_WEEK: Final = TableOf[_SetWeek](
    "learned_by_week",
    "By week",
    (
        Field("set", "placeholder set", Unit.TEXT, lambda row: row.set_name),
        Field("week", "week of", Unit.TIME, lambda row: row.week.begin * MINUTE_US),
        Field("starts", "starts", Unit.COUNT, lambda row: row.week.people),
        Field("late_share", "longer than 30 s for a node", Unit.SHARE, _share_late),
        Field("saved_hours", "people's hours saved", Unit.MEAN, lambda row: row.week.saved_hours),
        Field("net_node_hours", "node-hours more", Unit.MEAN, lambda row: row.week.net_node_hours),
        Field("saved_a_node_hour", "hours saved a node-hour", Unit.MEAN, _hours_a_node_hour),
    ),
    _weeks,
)
LATE: Final = TableOf[_SetClass](
    "learned_late_classes",
    "Classes in which people waited for nodes",
    (
        Field("set", "placeholder set", Unit.TEXT, lambda row: row.set_name),
        Field("at", "first who waited", Unit.TIME, lambda row: row.late_class.minute * MINUTE_US),
        Field("people", "people", Unit.COUNT, lambda row: row.late_class.people),
        Field("late", "waited", Unit.COUNT, lambda row: row.late_class.late),
        Field("why", "why", Unit.TEXT, lambda row: str(row.late_class.why)),
    ),
    _late_classes,
)
SECTION: Final = Section(
    "learned",
    "What learned placeholders saved and cost",
    LearnedRoom,
    (BY_WEEK, LATE),
    about=(
        "Against the same people on nodes without learned placeholders, as the controllers"
        " reckon it."
    ),
)
