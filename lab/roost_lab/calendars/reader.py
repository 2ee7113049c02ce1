"""Read the bookings of an iCalendar file (RFC 5545): of each event with `people: 120` in its
description.

Events without such words are none of ours. An event with a fault is left out, and the others count.
A calendar that can't be read, or not within bounds, gives nothing but the reason.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import icalendar
from icalendar.timezone import tzp

from generator.faults import UsageError, one_line
from roost_core.release.bookings import MOST_EVENTS, MOST_STARTS, Event, Limits
from roost_core.release.reader import SettingsFault, describe
from roost_lab.booking.entry import read_entry
from roost_lab.calendars.descriptions import lacks_colon, read_descriptions
from roost_lab.calendars.occurrences import (
    ALL_LATER,
    EventFaultError,
    EventTimes,
    ends_before,
    is_moved,
    occurrences,
    read_times,
)
from roost_lab.calendars.source import MOST_BYTES
from roost_lab.calendars.time_limit import OutOfTimeError, processor_seconds
from roost_lab.calendars.zones import Zones, find_zone, take_zones

# A calendar of 4 MiB with 20,000 events takes half of it.
MOST_SECONDS: Final = 8.0
_MOST_EVENTS_IN_ALL: Final = 20_000
_MOST_FAULTS: Final = 50
_MOST_NAME: Final = 90
_MOST_DIGITS: Final = 9
_CALENDAR: Final = "an iCalendar file, which begins with BEGIN:VCALENDAR"
# What stands for bytes that aren't UTF-8.
_UNREAD: Final = "\ufffd"
_ESCAPE: Final = re.compile(r"\\([nN,;\\])")


@dataclass(frozen=True, slots=True, kw_only=True)
class CalendarRules:
    """What a calendar is read by."""

    # The calendar's name: its bookings carry it.
    name: str
    # The file, or the address without what is secret in it: for faults.
    source: str
    # The zone of times that have none, where the calendar names none either; "": such times are
    # faults.
    zone: str
    # Unix times. Events begin from then on, and not later.
    since: int
    until: int
    limits_of: Callable[[Mapping[str, Any]], Limits]
    # Names of bookings that aren't this calendar's.
    taken: frozenset[str] = frozenset()


class CalendarBooking(NamedTuple):
    """One booking of a calendar."""

    # As `events.yaml` has it.
    entry: Mapping[str, Any]
    event: Event


class Reading(NamedTuple):
    """What a calendar says."""

    bookings: Sequence[CalendarBooking]
    # One line each: where, what was found, what is accepted, the fix.
    faults: Sequence[str]
    # What events with a fault are called. A number may stand behind it in a booking's name.
    faulty: frozenset[str] = frozenset()
    # How many events have people, whenever they begin.
    with_people: int = 0


@dataclass(frozen=True, slots=True)
class _CalendarEvent:
    """One VEVENT."""

    # From 1 on, in the calendar's order.
    number: int
    component: icalendar.Component
    # "people", "image" and "set", as far as the description names them.
    described: Mapping[str, str]

    @property
    def is_booked(self) -> bool:
        """Whether it says how many come, and wasn't cancelled."""
        is_cancelled = str(self.component.get("STATUS", "")).strip().upper() == "CANCELLED"
        return "people" in self.described and not is_cancelled

    @property
    def uid(self) -> str:
        """The series' UID; "": it has none."""
        return _first(self.component, "UID")

    @property
    def summary(self) -> str:
        """What its booking is called, unless another one is."""
        words = " ".join(_first(self.component, "SUMMARY").split())
        return one_line(words)[:_MOST_NAME] or "event"

    @property
    def words(self) -> tuple[str, ...]:
        """What it books, without when."""
        described = [self.described.get(word, "") for word in ("people", "image", "set")]
        return (self.summary, *described)

    @property
    def place(self) -> str:
        """Where it is, for faults."""
        uid = f", UID {one_line(self.uid[:60])}" if self.uid else ""
        return f"event {self.number} ({self.summary[:60]}{uid})"


def _first(component: icalendar.Component, name: str) -> str:
    """The text of a property, the first of several; "" without it."""
    value = component.get(name, "")
    return str(value[0] if isinstance(value, list) else value).strip()


@dataclass(frozen=True, slots=True)
class _Draft:
    """When one event begins, in one zone."""

    event: _CalendarEvent
    zone: str
    # Local times like 2026-11-24T09:00. Empty: they can't be told, and the event keeps its name.
    starts: set[str]


def read_calendar(data: bytes, rules: CalendarRules) -> Reading:
    """The bookings of a calendar, in its order.

    data: its bytes, or MOST_BYTES + 1 of them. Raises UsageError when it can't be read at all.
    """
    reader = _Reader(rules)
    try:
        with processor_seconds(MOST_SECONDS):
            return reader.read(data)
    except OutOfTimeError:
        found = f"a calendar that took more than {MOST_SECONDS:.0f} s to read"
        expected = "rules, zones and dates that a program can work through in that time"
        fix = "Mend or remove what is named here. Nothing was changed"
        raise UsageError(
            f"{rules.source}: {reader.place}: found {found}, expected {expected}. {fix}"
        ) from None


class _Reader:
    """Reads one calendar; knows where it is."""

    def __init__(self, rules: CalendarRules) -> None:
        self._rules = rules
        self._faults: list[str] = []
        self._faulty: set[str] = set()
        self._with_people = 0
        self.place = "its lines and zones"

    def read(self, data: bytes) -> Reading:
        """Read a calendar as `read_calendar` does, without a limit of time."""
        text, blocks = take_zones(_text_of(data, self._rules.source))
        calendar = _parse(text, self._rules.source)
        own = find_zone(_first(calendar, "X-WR-TIMEZONE"))
        zones = Zones(blocks, own or self._rules.zone)
        bookings: list[CalendarBooking] = []
        names = set(self._rules.taken)
        drafts: list[_Draft] = []
        for series in self._series(calendar):
            drafts += self._drafts(series, zones)
        # Not by when they begin: names would change places as time goes on.
        for draft in sorted(drafts, key=lambda draft: (draft.event.number, draft.zone)):
            name = _free_name(draft.event.summary, names)
            # A faulty event keeps its name: it may be booked under it, and the others don't move up
            # meanwhile.
            names.add(name)
            booking = self._booking(draft, name)
            if booking is not None:
                bookings.append(booking)
        if len(bookings) > MOST_EVENTS:
            found = f"{len(bookings)} events with people that aren't past"
            fix = f"at most {MOST_EVENTS}. Say an earlier --until, or make several calendars of it"
            raise UsageError(f"{self._rules.source}: found {found}, expected {fix}")
        unread = [booking.event.name for booking in bookings if _UNREAD in booking.event.name]
        if unread and not _is_utf8(data):
            found = f"found bytes that aren't UTF-8, as in {unread[0]}"
            fix = "Save or export it so. The booking has this name until then."
            source = self._rules.source
            self._faults.append(one_line(f"{source}: {found}, expected a file in UTF-8. {fix}"))
        faulty = frozenset(self._faulty)
        return Reading(bookings, self._shown_faults(), faulty, self._with_people)

    def _series(self, calendar: icalendar.Calendar) -> Iterable[Sequence[_CalendarEvent]]:
        """The events of each UID, the series first, where any of them has people."""
        by_uid: dict[str, list[_CalendarEvent]] = {}
        number = 0
        for component in calendar.subcomponents:
            if component.name != "VEVENT":
                continue
            number += 1
            event = _CalendarEvent(number, component, read_descriptions(_descriptions(component)))
            self._with_people += event.is_booked
            if not event.is_booked and not is_moved(component):
                continue
            of_uid = by_uid.setdefault(event.uid or f"event {number}", [])
            is_second = any(not is_moved(other.component) for other in of_uid)
            if is_second and not is_moved(component):
                # Of two events with one UID, each would lose what is moved in the other.
                fault = EventFaultError("UID", event.uid, "a UID that no other event has")
                self._fault(event, fault)
                continue
            of_uid.append(event)
        for events in by_uid.values():
            if any(event.is_booked for event in events):
                yield sorted(events, key=lambda event: is_moved(event.component))

    def _drafts(self, series: Sequence[_CalendarEvent], zones: Zones) -> Iterable[_Draft]:
        """When a series' events begin, by what they book and the zone."""
        since = datetime.fromtimestamp(self._rules.since, UTC)
        until = datetime.fromtimestamp(self._rules.until, UTC)
        times: list[EventTimes] = []
        drafts: dict[tuple[tuple[str, ...], str], _Draft] = {}
        for event in series:
            self.place = event.place
            try:
                read = read_times(
                    event.number, event.component, zones, until, is_booked=event.is_booked
                )
            except EventFaultError as fault:
                self._fault(event, fault)
                if not is_moved(event.component):
                    drafts[event.words, ""] = _Draft(event, "", set())
                continue
            if read.is_for_all_later:
                self._fault(event, ALL_LATER)
            times.append(read)
        self.place = series[0].place
        by_number = {event.number: event for event in series}
        try:
            for occurrence in occurrences(times, since, until):
                event = by_number[occurrence.number]
                if not event.is_booked:
                    continue
                # An occurrence that was moved, and else is as the others, is booked with them.
                key = (event.words, occurrence.zone)
                draft = drafts.setdefault(key, _Draft(event, occurrence.zone, set()))
                draft.starts.add(f"{occurrence.local:%Y-%m-%dT%H:%M}")
        except EventFaultError as fault:
            return self._untold(series, fault)
        except Exception as error:  # noqa: BLE001 - a stranger's rules and zones, in libraries
            expected = "rules and zones that icalendar and dateutil can reckon with"
            of_library = EventFaultError("its times", type(error).__name__, expected)
            return self._untold(series, of_library)
        return drafts.values()

    def _untold(self, series: Sequence[_CalendarEvent], fault: EventFaultError) -> Iterable[_Draft]:
        """A series whose times can't be told: a part of them isn't booked either."""
        self._fault(series[0], fault)
        self._faulty |= {event.summary for event in series}
        return [_Draft(series[0], "", set())]

    def _booking(self, draft: _Draft, name: str) -> CalendarBooking | None:
        """A booking of this name; None after a fault."""
        event = draft.event
        if not draft.starts:
            return None
        if len(draft.starts) > MOST_STARTS:
            expected = f"at most {MOST_STARTS}. Say an earlier --until"
            found = f"{len(draft.starts)} occurrences"
            self._fault(event, EventFaultError("RRULE", found, expected))
            return None
        people = event.described["people"]
        if lacks_colon(people):
            expected = "a colon: people: 120"
            self._fault(event, EventFaultError("people", f"people {people.strip()}", expected))
            return None
        is_number = people.isascii() and people.isdecimal() and len(people) <= _MOST_DIGITS
        starts = sorted(draft.starts)
        entry: dict[str, Any] = {
            "name": name,
            "people": int(people) if is_number else people,
            "start": starts if len(starts) > 1 else starts[0],
            "timeZone": draft.zone,
        }
        for word in ("image", "set"):
            if word in event.described:
                entry[word] = event.described[word]
        entry["calendar"] = self._rules.name
        read, faults = read_entry(entry, self._rules.limits_of(entry))
        for fault in faults:
            self._fault(event, fault)
        return None if read is None else CalendarBooking(entry, read)

    def _fault(self, event: _CalendarEvent, fault: EventFaultError | SettingsFault) -> None:
        since = datetime.fromtimestamp(self._rules.since, UTC)
        if ends_before(event.component, since):
            # Each run would tell this fault again, and nobody mends what is past.
            return
        self._faulty.add(event.summary)
        self._faults.append(one_line(f"{self._rules.source}: {event.place}, {fault}"))

    def _shown_faults(self) -> Sequence[str]:
        shown = self._faults[:_MOST_FAULTS]
        more = len(self._faults) - len(shown)
        return [*shown, f"{self._rules.source}: {more} faults more"] if more else shown


def _text_of(data: bytes, source: str) -> str:
    """A calendar's text, within bounds. Raises UsageError."""
    if len(data) > MOST_BYTES:
        most = f"{MOST_BYTES // 2**20} MiB"
        raise UsageError(f"{source}: found more than {most}, expected a calendar of at most {most}")
    text = data.decode("utf-8", "replace").strip("\ufeff \t\r\n")
    if text[:15].upper() != "BEGIN:VCALENDAR":
        found = describe(text[:40]) if text else "an empty file"
        raise UsageError(f"{source}: found {found}, expected {_CALENDAR}")
    if text[-13:].upper() != "END:VCALENDAR":
        found = "no END:VCALENDAR at its end, so a part may be missing"
        raise UsageError(f"{source}: found {found}, expected the whole calendar. Fetch it again")
    if text.upper().count("BEGIN:VEVENT") > _MOST_EVENTS_IN_ALL:
        most = f"at most {_MOST_EVENTS_IN_ALL}. Make several calendars of it"
        raise UsageError(f"{source}: found more events, expected {most}")
    return text


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _parse(text: str, source: str) -> icalendar.Calendar:
    """The calendar's components. Raises UsageError."""
    # icalendar remembers zones of calendars that it read before.
    tzp.use_default()
    try:
        with warnings.catch_warnings():
            # icalendar warns that it guesses a zone behind a path. zones.py finds the same zone.
            warnings.simplefilter("ignore")
            return icalendar.Calendar.from_ical(text)
    except Exception as error:  # noqa: BLE001 - a stranger's text, in a library
        raise UsageError(f"{source}: found {describe(str(error))}, expected {_CALENDAR}") from None


def _descriptions(event: icalendar.Component) -> Iterator[str]:
    """What an event's descriptions say: plain, and in HTML as Outlook writes it beside."""
    for name in ("DESCRIPTION", "X-ALT-DESC"):
        value = event.get(name, [])
        texts = value if isinstance(value, list) else [value]
        for text in texts:
            # icalendar doesn't know X-ALT-DESC, and leaves its escapes.
            yield str(text) if name == "DESCRIPTION" else _unescaped(str(text))


def _unescaped(text: str) -> str:
    def plain(match: re.Match[str]) -> str:
        return "\n" if match[1] in "nN" else match[1]

    return _ESCAPE.sub(plain, text)


def _free_name(summary: str, names: set[str]) -> str:
    """The summary, with a number behind it where another booking is called so."""
    number = 1
    name = summary
    while name in names:
        number += 1
        name = f"{summary} {number}"
    return name
