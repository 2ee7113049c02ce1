"""Bookings in iCalendar files: what is read, what is refused, and when events begin."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from roost.controllers.runtime.calendars import parse_calendar
from roost_core.placement.events import Event, Limits, first_start_after
from roost_core.placement.headroom_windows import local_time, parse_moment
from roost_core.placement.settings_reader import Reader

if TYPE_CHECKING:
    from collections.abc import Callable

LIMITS = Limits(("default",), 200)
BERLIN = "DTSTART;TZID=Europe/Berlin:20261124T090000"
PEOPLE = r"DESCRIPTION:Bring a laptop.\npeople: 120\nimage: quay.io/me/course:1"


def _calendar(*events: list[str]) -> str:
    lines = ["BEGIN:VCALENDAR", "VERSION:2.0"]
    for number, event in enumerate(events):
        uid = [] if any(line.startswith("UID") for line in event) else [f"UID:{number}"]
        summary = [] if any(line.startswith("SUMMARY") for line in event) else [f"SUMMARY:event {number}"]
        lines += ["BEGIN:VEVENT", *uid, *summary, *event, "END:VEVENT"]
    return "\r\n".join([*lines, "END:VCALENDAR", ""])


def _parse(*events: list[str]) -> tuple[tuple[Event, ...], list[str]]:
    read = Reader()
    found = parse_calendar(read, _calendar(*events), "course.ics", LIMITS)
    return found, [str(fault) for fault in read.faults]


def _starts(event: Event, count: int = 10, after: str = "2026-01-01T00:00Z") -> list[str]:
    moment, found = int(parse_moment(after, "UTC")), list[str]()
    while len(found) < count and (start := first_start_after(event, moment)) is not None:
        found.append(local_time(start, "Europe/Berlin")[4:-4].strip())
        moment = start
    return found


def test_an_event_with_people_in_its_description_is_a_booking_and_another_is_none() -> None:
    events, faults = _parse([BERLIN, PEOPLE], [BERLIN, "DESCRIPTION:no people"], [BERLIN])
    assert not faults
    assert [(event.name, event.people, event.image, event.set_name) for event in events] == [
        ("event 0", 120, "quay.io/me/course:1", "default")
    ]
    assert _starts(events[0]) == ["2026-11-24 09:00"]


@pytest.mark.parametrize(
    ("begin", "expected"),
    [
        ("DTSTART:20261124T080000Z", "2026-11-24 09:00"),
        ('DTSTART;TZID="America/New_York":20261124T030000', "2026-11-24 09:00"),
    ],
)
def test_times_are_in_utc_or_in_a_zone(begin: str, expected: str) -> None:
    (event,), faults = _parse([begin, PEOPLE])
    assert not faults
    assert _starts(event) == [expected]


@pytest.mark.parametrize(
    "description",
    [
        r"DESCRIPTION:<p>people: 120</p><br>image: quay.io/me/course:1",
        "DESCRIPTION;LANGUAGE=en:PEOPLE: 120",
        "DESCRIPTION:peo\r\n ple: 1\r\n\t20",
        'DESCRIPTION;ALTREP="cid:part;1:2":people: 120',
    ],
)
def test_people_are_found_in_html_in_folded_lines_and_behind_parameters(description: str) -> None:
    (event,), faults = _parse([BERLIN, description])
    assert not faults
    assert event.people == 120


def test_a_weekly_event_keeps_its_time_across_a_clock_change_and_ends() -> None:
    begin = "DTSTART;TZID=Europe/Berlin:20261013T090000"
    (event,), _ = _parse([begin, "RRULE:FREQ=WEEKLY;COUNT=4", "EXDATE;TZID=Europe/Berlin:20261020T090000", PEOPLE])
    assert _starts(event) == ["2026-10-13 09:00", "2026-10-27 09:00", "2026-11-03 09:00"]


def test_every_second_week_on_two_days_until_a_day() -> None:
    begin = "DTSTART;TZID=Europe/Berlin:20261006T090000"
    (event,), _ = _parse([begin, "RRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=TH,TU;UNTIL=20261022", PEOPLE])
    assert _starts(event) == ["2026-10-06 09:00", "2026-10-08 09:00", "2026-10-20 09:00", "2026-10-22 09:00"]


def test_an_occurrence_that_was_moved_counts_where_it_is_now_and_a_cancelled_one_not_at_all() -> None:
    series = ["UID:a", "DTSTART;TZID=Europe/Berlin:20261103T090000", "RRULE:FREQ=WEEKLY;COUNT=4", PEOPLE]
    moved = ["UID:a", "RECURRENCE-ID;TZID=Europe/Berlin:20261110T090000", "DTSTART;TZID=Europe/Berlin:20261111T140000"]
    cancelled = ["UID:a", "RECURRENCE-ID:20261117T080000Z", "STATUS:CANCELLED", "DTSTART:20261117T080000Z"]
    events, faults = _parse(series, [*moved, PEOPLE], [*cancelled, PEOPLE])
    assert not faults
    assert [_starts(event) for event in events] == [
        ["2026-11-03 09:00", "2026-11-24 09:00"],
        ["2026-11-11 14:00"],
    ]


def test_dates_beside_the_rule_count_too() -> None:
    (event,), _ = _parse([BERLIN, "RDATE;TZID=Europe/Berlin:20261126T090000,20261125T090000", PEOPLE])
    assert _starts(event) == ["2026-11-24 09:00", "2026-11-25 09:00", "2026-11-26 09:00"]


@pytest.mark.parametrize(
    ("lines", "fault"),
    [
        (["DTSTART;VALUE=DATE:20261124"], "DTSTART: found"),
        (["DTSTART:20261124T090000"], "DTSTART;TZID: found nothing, expected TZID="),
        (["DTSTART;TZID=W. Europe Standard Time:20261124T090000"], 'found "W. Europe Standard Time"'),
        (["DTSTART;TZID=UTC:20260231T090000"], "expected a date-time of the calendar"),
        (["DTSTART;TZID=UTC:99990101T090000"], "expected a year from 1970 to 2199"),
        ([BERLIN, "RRULE:FREQ=MONTHLY;BYDAY=2TU"], "RRULE: found"),
        ([BERLIN, "RRULE:FREQ=DAILY;BYDAY=MO"], "write other recurrences as single events"),
        ([BERLIN, "RRULE:FREQ=DAILY;INTERVAL=0"], "RRULE: found"),
        ([BERLIN, "RRULE:FREQ=DAILY;UNTIL=99999999"], "UNTIL with a date"),
        ([BERLIN, "RRULE:FREQ=DAILY", "RRULE:FREQ=WEEKLY"], "expected one RRULE"),
        ([BERLIN, "EXDATE;VALUE=DATE:20261124"], "EXDATE: found"),
        ([], "DTSTART: found nothing"),
    ],
)
def test_what_is_not_supported_is_refused_by_name_and_the_others_count(lines: list[str], fault: str) -> None:
    events, faults = _parse([*lines, PEOPLE], [BERLIN, PEOPLE, "SUMMARY:other"])
    assert [event.name for event in events] == ["other"]
    assert len(faults) == 1
    assert faults[0].startswith("course.ics: event 0: ")
    assert fault in faults[0]


def test_events_that_are_none_of_ours_may_be_anything() -> None:
    assert _parse(["DTSTART;VALUE=DATE:20261124", "RRULE:FREQ=YEARLY"], ["RECURRENCE-ID:x", "DTSTART:y"]) == ((), [])


def test_too_many_people_are_refused() -> None:
    events, faults = _parse([BERLIN, "DESCRIPTION:people: 5000"])
    assert not events
    assert faults == [
        "course.ics: event 0.people: found 5000, expected a whole number from 1 to 200 (events.maxPeople)."
    ]


@pytest.mark.parametrize("text", ["", "<html>sign in</html>", "events: []"])
def test_something_else_than_a_calendar_is_refused(text: str) -> None:
    read = Reader()
    assert parse_calendar(read, text, "calendar", LIMITS) == ()
    assert "BEGIN:VCALENDAR" in str(read.faults[0])


@pytest.mark.parametrize("description", ["people:\\n120", "people: " + "9" * 5000, "people: 12x"])
def test_what_is_no_number_of_people_books_nothing(description: str) -> None:
    events, _ = _parse(["DTSTART:20261124T090000Z", f"DESCRIPTION:{description}"])
    assert events == ()


LONG_LINES: dict[str, Callable[[int], str]] = {
    # Descriptions are read up to 10,000 characters.
    "empty lines": lambda length: "DESCRIPTION:" + "\\n" * (length // 20),
    "no colon": lambda length: "x" * length,
    "parameters": lambda length: "x" + ";y=z" * length + ":",
}


@pytest.mark.parametrize("line", LONG_LINES.values(), ids=LONG_LINES)
def test_the_time_for_a_line_grows_with_its_length_alone(line: Callable[[int], str]) -> None:
    def seconds(length: int) -> float:
        """The least of several, so that other processes don't count."""
        found = []
        for _ in range(5):
            began = time.process_time()
            _parse(["DTSTART:20261124T090000Z", line(length)])
            found.append(time.process_time() - began)
        return min(found)

    # 8 if it is linear, 64 if each character costs one more pass.
    assert seconds(200_000) < 24 * seconds(25_000)
