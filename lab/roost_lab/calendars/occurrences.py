"""When the events of one series of a calendar begin, within a span: rules, exceptions, changes.

icalendar reads the lines and dateutil computes rules. What stands here is what they leave open:
zones under other names, rules that would take too long, exceptions, and faults that name the line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from zoneinfo import ZoneInfo

from dateutil.rrule import rrulestr
from icalendar.prop import vBroken, vRecur

from roost_core.release.bookings import FIRST_YEAR, LAST_YEAR
from roost_core.release.reader import describe
from roost_lab.calendars.zones import Zones

if TYPE_CHECKING:
    from icalendar import Component

# EXDATE and RDATE of one event.
_MOST_DATES: Final = 1000
# Some programs write a far end for none.
_LAST_END: Final = 9000
# More than any two zones are apart, and a day's length.
_ZONES_APART: Final = timedelta(days=2)
_MOMENT: Final = timedelta(microseconds=1)
_WEEKDAY: Final = re.compile(r"([+-]?[1-9][0-9]?)?(MO|TU|WE|TH|FR|SA|SU)", re.ASCII)
_ALWAYS: Final = frozenset({"FREQ", "INTERVAL", "COUNT", "UNTIL", "WKST"})
_BY: Final[Mapping[str, frozenset[str]]] = {
    "DAILY": frozenset({"BYMONTH", "BYMONTHDAY", "BYDAY"}),
    "WEEKLY": frozenset({"BYMONTH", "BYDAY"}),
    "MONTHLY": frozenset({"BYMONTH", "BYMONTHDAY", "BYDAY", "BYSETPOS"}),
    "YEARLY": frozenset({"BYMONTH", "BYMONTHDAY", "BYDAY", "BYSETPOS"}),
}
# The n-th such weekday of the month, or of the year.
_MOST_ORDINAL: Final[Mapping[str, int]] = {"MONTHLY": 5, "YEARLY": 53}
_RANGES: Final[Mapping[str, tuple[int, int]]] = {
    "INTERVAL": (1, 9999),
    "COUNT": (1, 9999),
    "BYMONTH": (1, 12),
    "BYMONTHDAY": (-31, 31),
    "BYSETPOS": (-366, 366),
}
_RULE: Final = (
    "FREQ=DAILY, WEEKLY, MONTHLY or YEARLY, with BYDAY=MO,TU (in MONTHLY and YEARLY also 2TU),"
    " BYMONTH, BYMONTHDAY or BYSETPOS, and INTERVAL, COUNT or UNTIL. Write other recurrences as"
    " single events"
)
_TIME: Final = "a date-time like 20261124T090000. Give an event that takes all day a time"
_ZONE: Final = (
    "TZID= with a zone of the IANA database like Europe/Berlin, Windows' name of one, a VTIMEZONE"
    " of the calendar that a program can read, a time in UTC, which ends with Z, or --zone"
)


class EventFaultError(Exception):
    """An event can't be booked: which property, what was found, what is accepted with the fix."""

    def __init__(self, key: str, found: str, expected: str) -> None:
        super().__init__(key, found, expected)
        self.key = key
        self.found = found
        self.expected = expected

    def __str__(self) -> str:
        shown = describe(self.found) if self.found else "nothing"
        return f"{self.key}: found {shown}, expected {self.expected}."


ALL_LATER: Final = EventFaultError(
    "RECURRENCE-ID;RANGE",
    "a change of all later occurrences",
    "occurrences changed one by one, or a new event from there on. The series is read up to this"
    " occurrence",
)


@dataclass(frozen=True, slots=True)
class EventTimes:
    """When an event begins: a series, or a single occurrence of one."""

    # By which its occurrences tell where they come from.
    number: int
    # With its zone. None: this occurrence of a series doesn't take place.
    first: datetime | None
    # "": once.
    rule: str = ""
    # The rule's occurrences aren't later. None: no limit of its own.
    last: datetime | None = None
    # For a single occurrence: when it would have been, and whether all later ones are changed, too.
    # A date means the occurrence of that day.
    instead_of: datetime | date | None = None
    is_for_all_later: bool = False
    # Occurrences beside the rule's, and those of the rule that don't take place.
    also: Sequence[datetime] = ()
    without: frozenset[datetime | date] = frozenset()


class Occurrence(NamedTuple):
    """One beginning of an event."""

    number: int
    # A local time, without its zone.
    local: datetime
    # A zone of the IANA database.
    zone: str


def is_moved(event: Component) -> bool:
    """Whether it is a single occurrence of a series, which was moved, changed or cancelled."""
    return "RECURRENCE-ID" in event


def read_times(
    number: int, event: Component, zones: Zones, until: datetime, *, is_booked: bool = True
) -> EventTimes:
    """When an event begins, not later than `until`. Raises EventFaultError.

    number: as in EventTimes. is_booked: False for an occurrence that doesn't take place, of which
    nothing else is read.
    """
    instead_of = None
    is_for_all_later = False
    if is_moved(event):
        instead_of = _moment_or_day(event, "RECURRENCE-ID", zones)
        is_for_all_later = "RANGE" in _all(event, "RECURRENCE-ID")[0].params
    if not is_booked:
        return EventTimes(number, None, instead_of=instead_of, is_for_all_later=is_for_all_later)
    rules = _all(event, "RRULE")
    if len(rules) > 1 or "EXRULE" in event:
        expected = "one RRULE, and no EXRULE. Make several events of it"
        raise EventFaultError("RRULE", f"{len(rules)} rules", expected)
    first = _moment(event, "DTSTART", zones)
    rule = ""
    last = None
    if rules and not is_moved(event):
        last = _last(rules[0], first)
        rule = _rule_text(rules[0], until if last is None else min(last, until))
    return EventTimes(
        number=number,
        first=first,
        rule=rule,
        last=last,
        instead_of=instead_of,
        is_for_all_later=is_for_all_later,
        also=[_timed("RDATE", day) for day in _dates(event, "RDATE", zones)],
        without=frozenset(_dates(event, "EXDATE", zones)),
    )


def occurrences(
    events: Sequence[EventTimes], since: datetime, until: datetime
) -> Iterator[Occurrence]:
    """When the events of one UID begin, in any order. Raises EventFaultError.

    A single occurrence takes the place of the series' own. Of a series whose later occurrences are
    all changed, those before the change count.
    """
    replaced = {event.instead_of for event in events if event.instead_of}
    changed = [event.instead_of for event in events if event.instead_of and event.is_for_all_later]
    for event in events:
        if event.is_for_all_later:
            continue
        without = event.without
        ends = [until]
        if event.instead_of is None:
            without |= replaced
            ends += [_begin(day, event) - _MOMENT for day in changed]
        skipped = {day.timestamp() for day in without if isinstance(day, datetime)}
        skipped_days = {day for day in without if not isinstance(day, datetime)}
        last = min(ends)
        for start in _starts(event, since):
            is_skipped = start.timestamp() in skipped or start.date() in skipped_days
            if since <= start <= last and not is_skipped:
                yield _occurrence(event.number, start)


def _begin(day: datetime | date, event: EventTimes) -> datetime:
    """When a day begins where an event takes place."""
    if isinstance(day, datetime):
        return day
    return datetime.combine(day, time(), UTC if event.first is None else event.first.tzinfo)


def _starts(event: EventTimes, since: datetime) -> Iterator[datetime]:
    """When an event begins, with what is taken out; not in order, and some before `since`."""
    yield from event.also
    if event.first is None:
        return
    if not event.rule:
        yield event.first
        return
    try:
        rule: Any = rrulestr(event.rule, dtstart=event.first)
        for start in rule.xafter(since, inc=True):
            if event.last is not None and start > event.last:
                return
            yield start
    except (ValueError, OverflowError) as error:
        raise EventFaultError("RRULE", f"{event.rule} ({error})", _RULE) from error


def _occurrence(number: int, start: datetime) -> Occurrence:
    if isinstance(start.tzinfo, ZoneInfo):
        return Occurrence(number, start.replace(tzinfo=None), str(start.tzinfo))
    # The calendar's own zone has no name that others know.
    return Occurrence(number, start.astimezone(UTC).replace(tzinfo=None), "UTC")


def _placed(key: str, moment: object, named: str, zones: Zones) -> datetime:
    """A date-time with its zone. named: its TZID. Raises EventFaultError."""
    if not isinstance(moment, datetime):
        raise EventFaultError(key, _shown(moment), _TIME)
    if not FIRST_YEAR <= moment.year <= LAST_YEAR:
        raise EventFaultError(key, _shown(moment), f"a year from {FIRST_YEAR} to {LAST_YEAR}")
    if moment.tzinfo is not None and not named:
        return moment
    zone = zones.find(named)
    if zone is None:
        raise EventFaultError(f"{key};TZID", named, _ZONE)
    return moment.replace(tzinfo=zone)


def _all(event: Component, name: str) -> Sequence[Any]:
    """The properties of a name; an event may have several."""
    value = event.get(name, [])
    return value if isinstance(value, list) else [value]


def ends_before(event: Component, since: datetime) -> bool:
    """Whether an event surely ends its recurrences before then, whatever its zone is."""
    days: list[date] = []
    properties = [*_all(event, "DTSTART"), *_all(event, "RECURRENCE-ID")]
    for prop in properties:
        if isinstance(prop, vBroken) or not isinstance(prop.dt, date):
            return False
        days.append(prop.dt)
    rules = _all(event, "RRULE")
    if not days or "RDATE" in event or len(rules) > 1:
        return False
    for rule in rules:
        ends = [] if isinstance(rule, vBroken) else rule.get("UNTIL", [])
        if len(ends) != 1 or not isinstance(ends[0], date):
            return False
        days.append(ends[0])
    last = max(day.date() if isinstance(day, datetime) else day for day in days)
    return last < (since - _ZONES_APART).date()


def _zone_name(prop: Any) -> str:  # noqa: ANN401 - of any type of icalendar's
    return str(prop.params.get("TZID", "")).strip().strip('"')


def _shown(value: object) -> str:
    if isinstance(value, datetime):
        return f"{value:%Y%m%dT%H%M%S}"
    if isinstance(value, date):
        return f"{value:%Y%m%d}"
    return "" if value is None else str(value)


def _moment(event: Component, name: str, zones: Zones) -> datetime:
    """A property's date-time, with its zone. Raises EventFaultError."""
    prop = _first(event, name)
    return _placed(name, prop.dt, _zone_name(prop), zones)


def _moment_or_day(event: Component, name: str, zones: Zones) -> datetime | date:
    """A property's date-time with its zone, or its date. Raises EventFaultError."""
    prop = _first(event, name)
    return _day(prop.dt, prop) or _placed(name, prop.dt, _zone_name(prop), zones)


def _first(event: Component, name: str) -> Any:  # noqa: ANN401 - as above
    """The first property of a name. Raises EventFaultError."""
    properties = _all(event, name)
    if not properties or isinstance(properties[0], vBroken):
        raise EventFaultError(name, str(properties[0]) if properties else "", _TIME)
    return properties[0]


def _day(moment: object, prop: Any) -> date | None:  # noqa: ANN401 - as above
    """The date of a property without a time; None: it has one."""
    if isinstance(moment, datetime):
        # icalendar adds midnight to a date with a zone, and no series has two times of one day.
        is_date = bool(_zone_name(prop)) and moment.time() == time()
        return moment.date() if is_date else None
    return moment if isinstance(moment, date) else None


def _timed(key: str, moment: datetime | date) -> datetime:
    """A date-time that must have a time. Raises EventFaultError."""
    if not isinstance(moment, datetime):
        raise EventFaultError(key, _shown(moment), _TIME)
    return moment


def _dates(event: Component, name: str, zones: Zones) -> Sequence[datetime | date]:
    """The dates of EXDATE or RDATE: with their zones, or without a time. Raises EventFaultError."""
    placed: list[datetime | date] = []
    for dates in _all(event, name):
        if isinstance(dates, vBroken):
            if not str(dates).strip(" ,"):
                continue
            raise EventFaultError(name, str(dates), _TIME)
        if len(placed) + len(dates.dts) > _MOST_DATES:
            expected = f"at most {_MOST_DATES} dates of one event"
            raise EventFaultError(name, f"more than {_MOST_DATES}", expected)
        for value in dates.dts:
            # A period begins with its first time.
            moment = value.dt[0] if isinstance(value.dt, tuple) else value.dt
            day = _day(moment, dates)
            placed.append(day or _placed(name, moment, _zone_name(dates), zones))
    return placed


def _rule_text(rule: Any, last: datetime) -> str:  # noqa: ANN401 - as above
    """A rule that ends by `last`, or by its count. Raises EventFaultError."""
    if isinstance(rule, vBroken):
        raise _refused(rule)
    frequency = str(rule.get("FREQ", [""])[0]).upper()
    allowed = _BY.get(frequency)
    if allowed is None or not set(rule) <= _ALWAYS | allowed:
        raise _refused(rule)
    for key, (low, high) in _RANGES.items():
        for number in rule.get(key, []):
            if not low <= int(number) <= high or int(number) == 0:
                raise _refused(rule)
    # In a week, or a day, no weekday is the n-th.
    most_ordinal = _MOST_ORDINAL.get(frequency, 0)
    for day in rule.get("BYDAY", []):
        match = _WEEKDAY.fullmatch(str(day).upper())
        if match is None or abs(int(match[1] or 0)) > most_ordinal:
            raise _refused(rule)
    made = vRecur(rule)
    made.pop("UNTIL", None)
    if "COUNT" not in rule:
        made["UNTIL"] = [last]
    return _text(made)


def _last(rule: Any, first: datetime) -> datetime | None:  # noqa: ANN401 - as above
    """UNTIL in UTC, if there is one: a last day counts whole, and a time without Z is local.

    Raises EventFaultError.
    """
    ends = [] if isinstance(rule, vBroken) else rule.get("UNTIL", [])
    if not ends:
        return None
    end = ends[0]
    if len(ends) > 1 or not isinstance(end, date) or not FIRST_YEAR <= end.year <= _LAST_END:
        raise _refused(rule)
    last = end if isinstance(end, datetime) else datetime.combine(end, time(23, 59, 59))
    placed = last if last.tzinfo is not None else last.replace(tzinfo=first.tzinfo)
    return placed.astimezone(UTC)


def _refused(rule: Any) -> EventFaultError:  # noqa: ANN401 - as above
    return EventFaultError("RRULE", _text(rule), _RULE)


def _text(rule: Any) -> str:  # noqa: ANN401 - icalendar's writers have no types
    if isinstance(rule, vBroken):
        return str(rule)
    return bytes(rule.to_ical()).decode("utf-8", "replace")
