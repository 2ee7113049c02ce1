"""Read booked events from an iCalendar file (RFC 5545): of each VEVENT with a line `people: 120` in its description.

Supported: DTSTART with TZID (a name of the IANA database) or in UTC, one RRULE (DAILY or WEEKLY with INTERVAL, COUNT,
UNTIL and, if WEEKLY, BYDAY), EXDATE, RDATE of date-times, and single occurrences that were moved or cancelled
(RECURRENCE-ID). Anything else in an event with such a line is a fault, and that event is left out; events without such
a line are none of ours. An event's end doesn't matter: room is kept until those who come have come.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from roost_core.placement.events import FIRST_YEAR, LAST_YEAR, MOST_EVENTS, Event, make_event
from roost_core.placement.headroom_windows import is_time_zone, local_datetime, unix_time

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from roost_core.placement.events import Limits
    from roost_core.placement.settings_reader import Reader

_WEEKDAYS: Final = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_TIME: Final = re.compile(r"([0-9]{8}T[0-9]{6})(Z?)", re.ASCII)
_OURS: Final = re.compile(
    r"^[ \t]*(people|image|set)[ \t]*:[ \t]*(\S+)[ \t\r]*$", re.ASCII | re.IGNORECASE | re.MULTILINE
)
# Python reads no number of thousands of digits.
_PEOPLE: Final = re.compile(r"[0-9]{1,9}", re.ASCII)
_TAG: Final = re.compile(r"<[^<>]{0,200}>")
_ESCAPE: Final = re.compile(r"\\([nN,;\\])")
# Of one event.
_MOST_DATES: Final = 1000
_DAY: Final = timedelta(days=1)


class Property(NamedTuple):
    """One content line: DTSTART;TZID=Europe/Berlin:20261124T090000."""

    name: str
    parameters: tuple[tuple[str, str], ...]
    value: str

    def parameter(self, name: str) -> str:
        """A parameter's value; "" if it is absent."""
        return dict(self.parameters).get(name, "")


@dataclass(frozen=True, slots=True)
class Rule:
    """A recurrence, in local time from `CalendarStarts.first` on."""

    # Days: 1 or 7.
    unit: int
    interval: int
    # The first occurrence counts; None: no limit.
    count: int | None
    # The last local time that may be one; None: no limit.
    until: datetime | None
    # 0: Monday. Only with a unit of 7, sorted.
    days: tuple[int, ...]
    # The first day of a week.
    week_start: int = 0

    def occurrences(self, first: datetime, near: datetime) -> Iterator[datetime]:
        """Yield local times in order; without a count, those long before `near` are skipped."""
        step = self.unit * self.interval
        origin = first
        if self.unit == 7:
            origin = first - _DAY * ((first.weekday() - self.week_start) % 7)
        skipped = 0 if self.count is not None else max(0, (near - origin).days // step - 1)
        offsets = sorted((day - self.week_start) % 7 for day in self.days) if self.unit == 7 else [0]
        moment, left = origin + _DAY * (step * skipped), self.count
        while moment.year <= LAST_YEAR:
            for offset in offsets:
                time = moment + _DAY * offset
                if time < first:
                    continue
                if (self.until is not None and time > self.until) or left == 0:
                    return
                left = None if left is None else left - 1
                yield time
            moment += _DAY * step


@dataclass(frozen=True, slots=True)
class CalendarStarts:
    """When an event of a calendar begins."""

    first: datetime
    time_zone: str
    rule: Rule | None = None
    # Unix times: occurrences that don't take place, and others besides the rule's, sorted.
    without: frozenset[int] = frozenset()
    also: tuple[int, ...] = ()

    def first_after(self, moment: int) -> int | None:
        """Return the first beginning later than `moment`; None: there is none."""
        found = next(self._regular(moment), None)
        also = next((time for time in self.also[bisect_right(self.also, moment) :] if time not in self.without), None)
        return min((time for time in (found, also) if time is not None), default=None)

    def _regular(self, moment: int) -> Iterator[int]:
        if self.rule is None:
            times: Iterator[datetime] = iter((self.first,))
        else:
            times = self.rule.occurrences(self.first, local_datetime(moment, self.time_zone))
        for local in times:
            time = unix_time(local, self.time_zone)
            if time > moment and time not in self.without:
                yield time


def parse_calendar(read: Reader, text: str, key: str, limits: Limits) -> tuple[Event, ...]:
    """Read a calendar's bookings; faults go to the reader under `key`, and that event is left out."""
    if "BEGIN:VCALENDAR" not in text.upper():
        read.fault(key, text.strip()[:40] or None, "an iCalendar file, which begins with BEGIN:VCALENDAR")
        return ()
    single: dict[str, list[Event]] = {}
    overridden: dict[str, set[int]] = {}
    events: list[tuple[str, Event]] = []
    for entry in islice(_entries(text), 100 * MOST_EVENTS):
        ours = _ours(entry)
        of = {prop.name: prop for prop in entry}
        uid = of["UID"].value if "UID" in of else ""
        summary = _unescaped(of["SUMMARY"].value).strip() if "SUMMARY" in of else ""
        at = f"{key}: {summary[:60] or uid[:60] or 'an event without SUMMARY'}"
        faults_before = read.count
        moved = of.get("RECURRENCE-ID")
        instance = None if moved is None else _moment(moved, Reading(read, at, quiet="people" not in ours))
        if instance is not None:
            # An occurrence that was moved, changed or cancelled no longer counts in its series.
            overridden.setdefault(uid, set()).add(instance)
        if "people" not in ours or of.get("STATUS", _NONE).value.upper() == "CANCELLED":
            continue
        starts = _starts(entry, Reading(read, at))
        people = int(ours["people"]) if _PEOPLE.fullmatch(ours["people"]) else ours["people"]
        if starts is None:
            continue
        event = make_event(
            read,
            at,
            name=" ".join(summary.split())[:100] or "event",
            people=people,
            starts=starts,
            image=ours.get("image", ""),
            set_name=ours.get("set", ""),
            limits=limits,
        )
        if read.count != faults_before:
            continue
        if moved is not None:
            single.setdefault(uid, []).append(event)
        else:
            events.append((uid, event))
    found = [_without(event, overridden.get(uid, set())) for uid, event in events]
    found += [event for several in single.values() for event in several]
    if len(found) > MOST_EVENTS:
        read.fault(key, len(found), f"at most {MOST_EVENTS} events with people; the first {MOST_EVENTS} count")
    return tuple(found[:MOST_EVENTS])


_NONE: Final = Property("", (), "")


@dataclass(frozen=True, slots=True)
class Reading:
    """Where faults go."""

    read: Reader
    at: str
    # An event that isn't ours has none.
    quiet: bool = False

    def fault(self, name: str, found: object, expected: str) -> None:
        """Report a fault of a property."""
        if not self.quiet:
            self.read.fault(f"{self.at}: {name}", found, expected)


def _entries(text: str) -> Iterator[Sequence[Property]]:
    """Yield the properties of each VEVENT, without those of components in it."""
    entry: list[Property] = []
    # Components that are open, the innermost last.
    inside: list[str] = []
    for line in re.sub(r"\r?\n[ \t]", "", text).splitlines():
        prop = _property(line)
        if prop is None:
            continue
        if prop.name == "BEGIN":
            inside.append(prop.value.upper())
            if inside[-1] == "VEVENT":
                entry = []
        elif prop.name == "END":
            if inside and inside.pop() == "VEVENT":
                yield entry
        elif inside and inside[-1] == "VEVENT":
            entry.append(prop)


def _property(line: str) -> Property | None:
    head: list[str] = []
    begin, quoted = 0, False
    for index, letter in enumerate(line):
        if letter == '"':
            quoted = not quoted
        elif letter in ";:" and not quoted:
            head.append(line[begin:index].replace('"', ""))
            begin = index + 1
            if letter == ":":
                pairs = tuple((name.upper(), value) for name, _, value in (part.partition("=") for part in head[1:]))
                return Property(head[0].strip().upper(), pairs, line[begin:])
    return None


def _ours(entry: Sequence[Property]) -> dict[str, str]:
    """Return what the description says for us: people, image, set."""
    text = next((_unescaped(prop.value) for prop in entry if prop.name == "DESCRIPTION"), "")
    # Some calendars write HTML.
    return {name.lower(): value for name, value in _OURS.findall(_TAG.sub("\n", text[:10_000]))}


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(lambda match: "\n" if match[1] in "nN" else match[1], text)


def _starts(entry: Sequence[Property], reading: Reading) -> CalendarStarts | None:
    """Read DTSTART and its recurrence; None after a fault."""
    many: dict[str, list[Property]] = {}
    for prop in entry:
        many.setdefault(prop.name, []).append(prop)
    begin = _time(many.get("DTSTART", [_NONE])[0], reading)
    if begin is None:
        return None
    first, zone = begin
    rules = many.get("RRULE", [])
    if len(rules) > 1 or "EXRULE" in many:
        reading.fault("RRULE", f"{len(rules)} rules", "one RRULE, and no EXRULE: make several events of it")
        return None
    rule = None
    if rules and (rule := _rule(rules[0].value, first, zone, reading)) is None:
        return None
    dates: dict[str, list[int]] = {"EXDATE": [], "RDATE": []}
    for name, times in dates.items():
        for prop in many.get(name, []):
            for value in prop.value.split(",")[:_MOST_DATES]:
                if (time := _moment(prop._replace(name=name, value=value), reading)) is None:
                    return None
                times.append(time)
    return CalendarStarts(first, zone, rule, frozenset(dates["EXDATE"]), tuple(sorted(set(dates["RDATE"]))))


def _moment(prop: Property, reading: Reading) -> int | None:
    time = _time(prop, reading)
    return None if time is None else unix_time(*time)


def _time(prop: Property, reading: Reading) -> tuple[datetime, str] | None:
    """Return a local time and its zone; None after a fault."""
    name = prop.name or "DTSTART"
    match = _TIME.fullmatch(prop.value.strip())
    if match is None:
        expected = "a date-time like 20261124T090000, for an event that takes all day says no time"
        reading.fault(name, prop.value or None, expected)
        return None
    zone = "UTC" if match[2] else prop.parameter("TZID").strip('"').lstrip("/")
    if not is_time_zone(zone):
        expected = "TZID= with a zone of the IANA database, like Europe/Berlin, or a time in UTC, which ends with Z"
        reading.fault(f"{name};TZID", zone or None, expected)
        return None
    try:
        local = datetime.strptime(match[1], "%Y%m%dT%H%M%S")  # noqa: DTZ007 - a local time; its zone is beside it
    except ValueError:
        reading.fault(name, prop.value, "a date-time of the calendar, like 20261124T090000")
        return None
    if not FIRST_YEAR <= local.year <= LAST_YEAR:
        reading.fault(name, prop.value, f"a year from {FIRST_YEAR} to {LAST_YEAR}")
        return None
    return local, zone


def _rule(text: str, first: datetime, zone: str, reading: Reading) -> Rule | None:
    """Read an RRULE; None after a fault."""
    parts = {name.upper(): value.upper() for name, _, value in (part.partition("=") for part in text.split(";"))}
    expected = (
        "FREQ=DAILY or FREQ=WEEKLY with INTERVAL, COUNT, UNTIL and, if WEEKLY, BYDAY=MO,TU…; write other recurrences "
        "as single events"
    )
    unit = {"DAILY": 1, "WEEKLY": 7}.get(parts.get("FREQ", ""), 0)
    known = {"FREQ", "INTERVAL", "COUNT", "UNTIL", "WKST"} | ({"BYDAY"} if unit == 7 else set())
    interval, count = (parts.get(name, "1") for name in ("INTERVAL", "COUNT"))
    days = parts["BYDAY"].split(",") if "BYDAY" in parts else []
    week_start = parts.get("WKST", "MO")
    if (
        not unit
        or not parts.keys() <= known
        or not all(_is_count(number) for number in (interval, count))
        or not {*days, week_start} <= set(_WEEKDAYS)
    ):
        reading.fault("RRULE", text, expected)
        return None
    until = None
    if "UNTIL" in parts:
        until = _until(parts["UNTIL"], zone)
        if until is None:
            reading.fault("RRULE", text, "UNTIL with a date like 20270131 or a time in UTC like 20270131T225959Z")
            return None
    numbers = tuple(sorted({_WEEKDAYS.index(day) for day in days})) or (first.weekday(),)
    limit = int(count) if "COUNT" in parts else None
    return Rule(unit, int(interval), limit, until, numbers if unit == 7 else (), _WEEKDAYS.index(week_start))


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 4 and int(text) >= 1


def _until(text: str, zone: str) -> datetime | None:
    """Return the last local time of a recurrence; None: it can't be read."""
    try:
        if len(text) == 8:
            return datetime.strptime(text, "%Y%m%d") + _DAY - timedelta(seconds=1)  # noqa: DTZ007 - as above
        match = _TIME.fullmatch(text)
        if match is None or not FIRST_YEAR <= int(text[:4]) <= 9000:
            return None
        local = datetime.strptime(match[1], "%Y%m%dT%H%M%S")  # noqa: DTZ007 - as above
        return local_datetime(unix_time(local, "UTC"), zone) if match[2] else local
    except (ValueError, OverflowError):
        return None


def _without(event: Event, instances: set[int]) -> Event:
    starts = event.starts
    if not instances or not isinstance(starts, CalendarStarts):
        return event
    return replace(event, starts=replace(starts, without=starts.without | instances))
