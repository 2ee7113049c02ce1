"""Calendars, whatever they say: rules are dateutil's, and hostile texts end with a reason."""

import time
from dataclasses import replace
from datetime import datetime, timedelta
from importlib import import_module
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from generator.faults import UsageError
from lab.tests.unit.calendars.test_reader import rules
from roost_core.placement.headroom_windows import unix_time
from roost_core.release.bookings import Event, first_start_after
from roost_lab.calendars import reader
from roost_lab.calendars.reader import Reading, read_calendar

# It carries no types. The Kubernetes client needs it, so it is there.
RRULE: Any = import_module("dateutil.rrule")
# A year, as `roost book` has it.
SPAN = replace(rules(), until=rules().since + 365 * 86_400)
ZONES = st.sampled_from(
    ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "UTC", "America/Sao_Paulo"]
)
DAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
FIRST = st.integers(0, 2 * 365 * 86_400).map(
    lambda seconds: datetime.fromisoformat("2025-01-01") + timedelta(0, seconds // 60 * 60)
)


@st.composite
def _rules(draw: st.DrawFn, first: datetime) -> str:
    frequency = draw(st.sampled_from(["DAILY", "WEEKLY", "MONTHLY", "YEARLY"]))
    weekly = frequency == "WEEKLY"
    parts = [f"FREQ={frequency}"]
    if draw(st.booleans()):
        parts.append(f"INTERVAL={draw(st.integers(1, 5))}")
    if frequency in ("DAILY", "WEEKLY") and draw(st.booleans()):
        # The first must be one of its own days: RFC 5545 leaves open what else it means.
        days = draw(st.sets(st.integers(0, 6))) | {first.weekday()}
        parts.append(f"BYDAY={','.join(DAYS[day] for day in days)}")
    if frequency == "MONTHLY":
        dates = draw(st.lists(st.integers(-31, 31).filter(bool), max_size=3))
        if dates:
            parts.append(f"BYMONTHDAY={','.join(map(str, dates))}")
        # RFC 5545 leaves open what both together mean.
        # 0: each of these weekdays of the month.
        ordinal_strategy = draw(st.sampled_from([st.just(0), st.integers(-5, 5).filter(bool)]))
        weekdays = draw(st.lists(st.tuples(ordinal_strategy, st.sampled_from(DAYS)), max_size=3))
        if weekdays:
            written = [f"{ordinal or ''}{day}" for ordinal, day in weekdays]
            parts.append(f"BYDAY={','.join(written)}")
        places = draw(st.lists(st.integers(-4, 4).filter(bool), max_size=2))
        if places and (dates or weekdays):
            parts.append(f"BYSETPOS={','.join(map(str, places))}")
    if weekly and draw(st.booleans()):
        parts.append(f"WKST={draw(st.sampled_from(DAYS))}")
    end = draw(st.sampled_from(["", "COUNT", "UNTIL"]))
    if end == "COUNT":
        parts.append(f"COUNT={draw(st.integers(1, 40))}")
    if end == "UNTIL":
        parts.append(f"UNTIL={first + timedelta(days=draw(st.integers(0, 300))):%Y%m%dT%H%M%S}")
    return ";".join(parts)


def _calendar(first: datetime, zone: str, rule: str) -> Event | None:
    lines = ["BEGIN:VCALENDAR", "BEGIN:VEVENT", "SUMMARY:lecture", "DESCRIPTION:people: 9"]
    lines += [
        f"DTSTART;TZID={zone}:{first:%Y%m%dT%H%M%S}",
        f"RRULE:{rule}",
        "END:VEVENT",
        "END:VCALENDAR",
    ]
    reading = read_calendar("\r\n".join(lines).encode(), SPAN)
    assert not reading.faults
    return reading.bookings[0].event if reading.bookings else None


@settings(max_examples=80)
@given(st.data(), FIRST, ZONES, st.integers(-40, 500))
def test_recurrences_are_dateutils_in_local_time(
    data: st.DataObject, first: datetime, zone: str, days: int
) -> None:
    rule = data.draw(_rules(first))
    event = _calendar(first, zone, rule)
    moment = max(unix_time(first + timedelta(days=days), zone), SPAN.since)
    expected: list[int] = []
    for local in RRULE.rrulestr(rule, dtstart=first):
        start = unix_time(local, zone)
        # Two times of one clock change count once.
        if moment < start <= SPAN.until and start not in expected:
            expected.append(start)
        if start > SPAN.until or len(expected) == 6:
            break
    found: list[int] = []
    while event is not None and len(found) < 6:
        following = first_start_after(event, moment)
        if following is None:
            break
        found.append(following)
        moment = following
    assert found == expected


AT_NINE = "DTSTART;TZID=Nowhere:20270101T090000"
BEGIN = "DTSTART;TZID=Europe/Berlin:19980106T090000"


def _dates(count: int, form: str = "%Y%m%dT090000Z") -> list[str]:
    day = datetime.fromisoformat("2026-11-18")
    return [(day + timedelta(days=number)).strftime(form) for number in range(count)]


def _many(text: str, size: int, separator: str = ",") -> str:
    """So many characters of a text again and again."""
    return separator.join([text] * (size // (len(text) + len(separator))))


# What one event of a calendar says, of about so many characters in all.
EVENTS: dict[str, Any] = {
    "counted from long ago": lambda _: [BEGIN, "RRULE:FREQ=DAILY;COUNT=9999"],
    "hardly ever": lambda _: [BEGIN, "RRULE:FREQ=MONTHLY;BYDAY=5FR;BYMONTHDAY=31;COUNT=9999"],
    "never": lambda _: [BEGIN, "RRULE:FREQ=MONTHLY;BYMONTHDAY=30;BYDAY=1MO;COUNT=9999"],
    "a long rule": lambda size: [BEGIN, f"RRULE:FREQ=MONTHLY;BYDAY={_many('-5FR', size)}"],
    "long places": lambda size: [BEGIN, f"RRULE:FREQ=MONTHLY;BYSETPOS={_many('-1', size)}"],
    "seconds": lambda size: [BEGIN, f"RRULE:FREQ=DAILY;BYSECOND={_many('7', size)}"],
    "each second": lambda _: [BEGIN, "RRULE:FREQ=SECONDLY"],
    "a far end": lambda _: [BEGIN, "RRULE:FREQ=WEEKLY;UNTIL=89991231T000000Z"],
    "dates taken out": lambda size: [
        "DTSTART:20261101T090000Z",
        "RRULE:FREQ=DAILY",
        f"EXDATE:{','.join(_dates(size // 17))}",
    ],
    "one date": lambda size: [BEGIN, f"RDATE:{_many('20270101T080000Z', size)}"],
    "moved away": lambda _: ["UID:one", "RRULE:FREQ=DAILY", "DTSTART:20261101T090000Z"],
    "folded": lambda size: [AT_NINE, f"DESCRIPTION:{_many('people: 9', size, chr(10) + ' ')}"],
    "in it another": lambda size: ["BEGIN:VEVENT"] * (size // 13),
    "zeros": lambda size: [f"{AT_NINE}\0", "\0" * size],
    "tags": lambda size: [AT_NINE, f"DESCRIPTION:{_many('<style<!--<p', size)}"],
    "zones": lambda size: [AT_NINE, *["X-WR-TIMEZONE:Africa/Here"] * (size // 26)],
    "open zones": lambda size: ["BEGIN:VTIMEZONE"] * (size // 16),
}


def _hostile(kind: str, each: int, size: int) -> str:
    event = [*EVENTS[kind](each), "DESCRIPTION:people: 9"]
    lines, length = ["BEGIN:VCALENDAR"], 0
    while length < size:
        uid = [] if event[0].startswith("UID") else [f"UID:{len(lines)}"]
        lines += ["BEGIN:VEVENT", *uid, f"SUMMARY:e{len(lines)}", *event, "END:VEVENT"]
        # Estimated from the last lines: to count all each time would take long.
        last = lines[-200:]
        length = sum(map(len, last)) * len(lines) // len(last)
    moved = _dates(size // 60, "RECURRENCE-ID:%Y%m%dT090000Z") if kind == "moved away" else []
    for recurrence in moved:
        lines += ["BEGIN:VEVENT", "UID:one", recurrence, "END:VEVENT"]
    return "\n".join([*lines, "END:VCALENDAR"])


def _read(text: str) -> tuple[Reading, str]:
    """What a calendar says, or why it can't be read."""
    try:
        return read_calendar(text.encode("utf-8", "replace"), rules()), ""
    except UsageError as error:
        return Reading([], []), str(error)


SIZES = [(20, 27_000), (900, 27_000), (17_000, 270_000), (120_000, 300), (20, 1_000_000)]


@settings(max_examples=15, suppress_health_check=list(HealthCheck))
@example("never", (20, 27_000))
@example("open zones", (900, 1_000_000))
@given(st.sampled_from(sorted(EVENTS)), st.sampled_from(SIZES))
# The limit's first exception may come in Hypothesis's callback of garbage collection.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.slow
def test_whatever_a_calendar_says_it_ends_within_its_time_and_says_why(
    kind: str, sizes: tuple[int, int]
) -> None:
    began = time.process_time()
    with patch.object(reader, "MOST_SECONDS", 1.0):
        reading, refused = _read(_hostile(kind, *sizes))
    assert len(reading.bookings) <= 200
    assert len(reading.faults) <= 51
    assert len(refused) < 1000
    assert time.process_time() - began < 5


@given(st.text(max_size=300))
def test_whatever_text_stands_in_an_event_it_is_read_or_refused(text: str) -> None:
    lines = ["BEGIN:VCALENDAR", "BEGIN:VEVENT", "DESCRIPTION:people: 9"]
    lines += ["DTSTART:20261124T090000Z", text, "END:VEVENT", "END:VCALENDAR"]
    reading, refused = _read("\n".join(lines))
    assert refused.startswith("course.ics: ") == bool(refused)
    # Else it is another component.
    assert reading.bookings or reading.faults or refused or "BEGIN" in text.upper()
