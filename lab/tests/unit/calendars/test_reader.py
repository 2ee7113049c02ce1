"""Calendars: what is booked or refused of them, when it begins, and what a hostile one costs."""

import random
import time
import unicodedata
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from generator.faults import UsageError
from lab.tests.told import cases
from roost_core.placement.headroom_windows import is_time_zone, local_time, parse_moment
from roost_core.release.bookings import MOST_EVENTS, Event, Limits, first_start_after
from roost_lab.calendars import reader
from roost_lab.calendars.reader import CalendarRules, Reading, read_calendar
from roost_lab.calendars.source import MOST_BYTES
from roost_lab.calendars.zones import WINDOWS_ZONES, find_zone

CALENDARS = Path(__file__).parents[2] / "data" / "calendars"
BERLIN = "DTSTART;TZID=Europe/Berlin:20261124T090000"
PEOPLE = r"DESCRIPTION:Bring a laptop.\npeople: 120\nimage: quay.io/me/course:1"
WEEKLY = ["DTSTART;TZID=Europe/Berlin:20261103T090000", "RRULE:FREQ=WEEKLY;COUNT=4"]


def rules(zone: str = "", taken: frozenset[str] = frozenset()) -> CalendarRules:
    """From the beginning of 2026 to June of the next year."""
    since, until = (
        int(parse_moment(day, "UTC")) for day in ("2026-01-01T00:00", "2027-06-01T00:00")
    )
    return CalendarRules(
        name="course.ics",
        source="course.ics",
        zone=zone,
        since=since,
        until=until,
        limits_of=lambda _entry: Limits(("default", "gpu"), 200),
        taken=taken,
    )


def calendar(*events: list[str], before: tuple[str, ...] = ()) -> bytes:
    """A calendar of events. They are called `event 0`, … unless they say more."""
    lines = ["BEGIN:VCALENDAR", "VERSION:2.0", *before]
    for number, event in enumerate(events):
        uid = [] if any(line.startswith("UID") for line in event) else [f"UID:{number}"]
        is_named = any(line.startswith("SUMMARY") for line in event)
        summary = [] if is_named else [f"SUMMARY:event {number}"]
        lines += ["BEGIN:VEVENT", *uid, *summary, *event, "END:VEVENT"]
    return "\r\n".join([*lines, "END:VCALENDAR", ""]).encode()


def read(*events: list[str], before: tuple[str, ...] = ()) -> Reading:
    return read_calendar(calendar(*events, before=before), rules())


def starts(event: Event, count: int = 10) -> list[str]:
    moment, found = int(parse_moment("2026-01-01T00:00Z", "UTC")), list[str]()
    while len(found) < count and (start := first_start_after(event, moment)) is not None:
        found.append(local_time(start, "Europe/Berlin")[4:-4].strip())
        moment = start
    return found


def test_an_event_with_people_in_its_description_is_booked_and_another_is_none() -> None:
    others = [
        [BERLIN, "DESCRIPTION:no people"],
        [BERLIN],
        ["DTSTART;VALUE=DATE:20261124", "RRULE:FREQ=SECONDLY"],
        ["RECURRENCE-ID:x", "DTSTART:y"],
        [BERLIN, "DESCRIPTION:people = all of them\\nset = {1}"],
    ]
    reading = read([BERLIN, PEOPLE], *others, [BERLIN, "DESCRIPTION:people: 120\\nset: gpu"])
    assert [booking.entry for booking in reading.bookings] == [
        {
            "name": "event 0",
            "people": 120,
            "start": "2026-11-24T09:00",
            "timeZone": "Europe/Berlin",
            "image": "quay.io/me/course:1",
            "calendar": "course.ics",
        },
        {
            "name": "event 6",
            "people": 120,
            "start": "2026-11-24T09:00",
            "timeZone": "Europe/Berlin",
            "set": "gpu",
            "calendar": "course.ics",
        },
    ]
    assert not reading.faults


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("5000", "5000"),
        ("9" * 5000, f'"{"9" * 56}...'),
        ("12x", '"12x"'),
        ("1 200", '"1 200"'),
        ("1\xa0200", '"1 200"'),
        ("1\u2009200 students", '"1 200"'),
        ("", '""'),
        ("\\nBob\\nAnn", '""'),
        ("<br>120 a<br>", '""'),
    ],
)
def test_a_number_of_people_that_is_none_is_told_with_number_and_uid(said: str, found: str) -> None:
    reading = read([BERLIN, PEOPLE], [BERLIN, f"DESCRIPTION:people: {said}", "SUMMARY:exam"])
    assert len(reading.bookings) == 1
    (fault,) = reading.faults
    assert fault.startswith(f"course.ics: event 2 (exam, UID 1), people: found {found}")
    assert fault.endswith("expected a whole number from 1 to 200 (events.maxPeople).")


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("people = 120", "people = 120"),
        ("people=120", "people = 120"),
        ("people\uff1a120", "people "),
        ("people\uff1d 120", "people "),
        ("People \u2236 120 students", "people "),
        ("people\ufe55\uff11\uff12\uff10", "people "),
        ("people - 120", "people - 120"),
        ("people \u2013 120", "people "),
        ("people -> 120", "people -> 120"),
        ("people == 120", "people == 120"),
        ("people ~120", "people ~ 120"),
        ("people 120", "people 120"),
        ("* people 120", "people 120"),
        ("Bring a laptop\\nPEOPLE\t120 \\nThanks", "people 120"),
        ("<table><tr><td>people</td><td>120</td></tr></table>", "people 120"),
    ],
)
def test_people_without_a_colon_are_told(said: str, found: str) -> None:
    reading = read([BERLIN, f"DESCRIPTION:{said}"])
    assert not reading.bookings
    (fault,) = reading.faults
    assert fault.startswith(f'course.ics: event 1 (event 0, UID 0), people: found "{found}')
    assert fault.endswith("expected a colon: people: 120.")


@pytest.mark.parametrize("seed", range(200))
def test_people_with_any_sign_but_a_colon_are_told(seed: int) -> None:
    rng = random.Random(seed)
    marks = [chr(code) for code in range(0x21, 0x10000) if is_mark(chr(code))]
    sign = rng.choice(["", " "]) + rng.choice([rng.choice(marks), "=", "\uff1a", "==", "=>"])
    number = rng.choice(["120", "12", "7", "\uff11\uff12"])
    line = f"{rng.choice(['people', 'People', 'PEOPLE'])}{sign}{rng.choice(['', ' '])}{number}"
    before = rng.choice(["", "Bring a laptop.\\n", "- ", "1. ", "\\n\\n"])
    after = rng.choice(["", "\\nsee you", "\\nimage: quay.io/me/course:1"])
    reading = read([BERLIN, f"DESCRIPTION:{before}{line}{after}"])
    (fault,) = reading.faults
    assert "people: found" in fault, line
    assert fault.endswith("expected a colon: people: 120.")


def is_mark(char: str) -> bool:
    """Whether somebody may write it for a colon: a sign that ends no sentence and isn't in HTML."""
    is_sign = unicodedata.category(char) in ("Pd", "Po", "Sm", "Sk", "So")
    return is_sign and char not in ":,.;!?'\"&\\<>*#" and not unicodedata.combining(char)


@pytest.mark.parametrize(
    "said",
    [
        "Ten people, 120 chairs",
        "people. 120 chairs",
        "people 120 years ago",
        "people of 1984",
        "120 people",
        "people = everybody",
        "Who are these people\\n\\n2 pm",
    ],
)
def test_a_text_about_people_is_no_booking_and_no_fault(said: str) -> None:
    assert read([BERLIN, f"DESCRIPTION:{said}"]) == Reading([], [])


@pytest.mark.parametrize("line", ["image = quay.io/me/course:1", "set=gpu", "set\uff1agpu"])
def test_an_image_or_a_set_without_a_colon_is_told(line: str) -> None:
    reading = read([BERLIN, f"DESCRIPTION:people: 120\\n{line}"])
    assert (len(reading.bookings), len(reading.faults)) == (0, 1)
    # Text of another kind.
    assert read([BERLIN, "DESCRIPTION:people: 120\\nset = {1}\\nimage = of God"]).bookings


@pytest.mark.parametrize("image", ["see moodle", "quay.io/me/course:1 or later", "\uff1aquay.io/a"])
def test_an_image_of_two_words_is_told(image: str) -> None:
    reading = read([BERLIN, f"DESCRIPTION:people: 120\\nimage: {image}"])
    assert not reading.bookings
    (fault,) = reading.faults
    assert "image: found" in fault


@pytest.mark.parametrize(("lines", "expected"), cases("calendars", "starts"))
def test_when_events_begin(lines: list[str], expected: list[str]) -> None:
    reading = read([*lines, PEOPLE])
    assert not reading.faults
    (booking,) = reading.bookings
    assert starts(booking.event) == expected


@pytest.mark.parametrize("description", cases("calendars", "people"))
def test_people_are_found_in_html_in_folded_lines_and_behind_parameters(description: str) -> None:
    reading = read([BERLIN, description])
    assert not reading.faults
    ((_, event),) = reading.bookings
    image = "quay.io/me/course:1" if "image" in description else ""
    assert (event.people, event.image) == (120, image)


def test_editors_html_is_read() -> None:
    reading = read_calendar((CALENDARS / "descriptions-in-html.ics").read_bytes(), rules())
    assert not reading.faults
    assert [(event.name, event.people, event.image) for _, event in reading.bookings] == [
        ("bold", 120, ""),
        ("spans", 120, ""),
        ("linked image", 120, "quay.io/team/course:1"),
        ("a word behind", 120, ""),
    ]


def test_an_occurrence_that_was_moved_counts_where_it_is_now_and_a_cancelled_one_not_at_all() -> (
    None
):
    series = ["UID:a", "SUMMARY:lecture", *WEEKLY, PEOPLE]
    moved = ["UID:a", "SUMMARY:lecture", "RECURRENCE-ID;TZID=Europe/Berlin:20261110T090000", PEOPLE]
    cancelled = ["UID:a", "RECURRENCE-ID:20261117T080000Z", "STATUS:CANCELLED", PEOPLE]
    reading = read(
        series,
        [*moved, "DTSTART;TZID=Europe/Berlin:20261111T140000"],
        [*cancelled, "DTSTART:20261117T080000Z"],
    )
    assert not reading.faults
    ((_, event),) = reading.bookings
    assert starts(event) == ["2026-11-03 09:00", "2026-11-11 14:00", "2026-11-24 09:00"]


SERIES = ["UID:a", "SUMMARY:lecture", *WEEKLY, PEOPLE]


@pytest.mark.parametrize(
    "name", ["RECURRENCE-ID;VALUE=DATE", "RECURRENCE-ID", "RECURRENCE-ID;TZID=Europe/Berlin"]
)
@pytest.mark.parametrize("more", [["STATUS:CANCELLED"], ["STATUS:CANCELLED", BERLIN], [BERLIN]])
def test_a_change_of_a_date_is_of_that_days_occurrence(name: str, more: list[str]) -> None:
    reading = read(SERIES, ["UID:a", f"{name}:20261117", *more])
    assert not reading.faults
    ((_, event),) = reading.bookings
    assert starts(event) == ["2026-11-03 09:00", "2026-11-10 09:00", "2026-11-24 09:00"]


def test_a_change_of_a_date_and_all_later_ones_ends_the_series_the_day_before() -> None:
    reading = read(SERIES, ["UID:a", "RECURRENCE-ID;RANGE=THISANDFUTURE;VALUE=DATE:20261117"])
    assert starts(reading.bookings[0].event) == ["2026-11-03 09:00", "2026-11-10 09:00"]
    assert len(reading.faults) == 1


def test_a_change_that_can_not_be_read_is_told() -> None:
    change = ["UID:a", "RECURRENCE-ID;TZID=Foo:20261117T090000", "STATUS:CANCELLED"]
    reading = read(SERIES, change)
    assert len(starts(reading.bookings[0].event)) == 4
    (fault,) = reading.faults
    assert fault.startswith("course.ics: event 2 (event 1, UID a), RECURRENCE-ID;TZID: found")


PAST = {
    "all day": ["DTSTART;VALUE=DATE:20241101"],
    "zone": ["DTSTART;TZID=Nowhere:20200101T090000"],
    "year": ["DTSTART;VALUE=DATE:16010101"],
    "rule": ["DTSTART;TZID=Europe/Berlin:20200101T090000", "RRULE:FREQ=HOURLY;UNTIL=20200102"],
}


@pytest.mark.parametrize("lines", PAST.values(), ids=PAST)
def test_faults_of_what_is_past_are_none(lines: list[str]) -> None:
    assert read([*lines, PEOPLE]) == Reading([], [], with_people=1)


NOT_PAST = {
    "no end": ["DTSTART;TZID=Europe/Berlin:20200101T090000", "RRULE:FREQ=HOURLY"],
    "another date": ["DTSTART;TZID=Nowhere:20200101T090000", "RDATE:20261124T080000Z"],
    "an end to come": ["DTSTART;VALUE=DATE:20200101", "RRULE:FREQ=DAILY;UNTIL=20261124"],
    "no date": ["DTSTART:20200101T"],
    "yesterday": ["DTSTART;VALUE=DATE:20251231"],
}


@pytest.mark.parametrize("lines", NOT_PAST.values(), ids=NOT_PAST)
def test_faults_of_what_may_not_be_past_are_told(lines: list[str]) -> None:
    assert len(read([*lines, PEOPLE]).faults) == 1


def test_an_occurrence_with_other_people_is_a_booking_beside_its_series() -> None:
    other = [
        "UID:a",
        "SUMMARY:lecture",
        "RECURRENCE-ID:20261110T080000Z",
        "DTSTART:20261110T080000Z",
    ]
    reading = read(
        ["UID:a", "SUMMARY:lecture", *WEEKLY, PEOPLE], [*other, "DESCRIPTION:people: 30"]
    )
    assert [(event.name, event.people, starts(event)) for _, event in reading.bookings] == [
        ("lecture", 120, ["2026-11-03 09:00", "2026-11-17 09:00", "2026-11-24 09:00"]),
        ("lecture 2", 30, ["2026-11-10 09:00"]),
    ]


def test_a_cancelled_event_is_none() -> None:
    assert read([*WEEKLY, PEOPLE, "STATUS:CANCELLED"]) == Reading([], [])


MANY = [BERLIN, "EXDATE;TZID=Europe/Berlin:" + ",".join(["20261124T090000"] * 1001)]


@pytest.mark.parametrize(
    ("lines", "fault"), [*cases("calendars", "refused"), (MANY, "EXDATE: found")]
)
def test_what_is_not_supported_is_refused_by_name_and_the_others_count(
    lines: list[str], fault: str
) -> None:
    reading = read([*lines, PEOPLE], [BERLIN, PEOPLE, "SUMMARY:other"])
    assert [event.name for _, event in reading.bookings] == ["other"]
    (said,) = reading.faults
    assert said.startswith("course.ics: event 1 (event 0, UID 0), ")
    assert fault in said


def test_a_change_of_all_later_occurrences_is_refused_and_the_series_is_read_up_to_it() -> None:
    series = ["UID:a", "DTSTART;TZID=Europe/Berlin:20261103T090000", "RRULE:FREQ=WEEKLY", PEOPLE]
    changed = ["UID:a", "RECURRENCE-ID;RANGE=THISANDFUTURE;TZID=Europe/Berlin:20261117T090000"]
    reading = read(series, [*changed, "DTSTART;TZID=Europe/Berlin:20261117T140000", PEOPLE])
    assert [starts(event) for _, event in reading.bookings] == [
        ["2026-11-03 09:00", "2026-11-10 09:00"]
    ]
    (fault,) = reading.faults
    assert "RECURRENCE-ID;RANGE: found" in fault
    assert "a new event from there on" in fault


def test_of_series_with_one_uid_the_first_counts() -> None:
    cancelled = ["UID:a", "RECURRENCE-ID:20261124T080000Z", "STATUS:CANCELLED", BERLIN]
    series = ["UID:a", BERLIN, "RRULE:FREQ=DAILY;COUNT=2", PEOPLE]
    reading = read(series, series, cancelled)
    assert [starts(event) for _, event in reading.bookings] == [["2026-11-25 09:00"]]
    (fault,) = reading.faults
    where, _, said = fault.partition(", UID: ")
    assert where == "course.ics: event 2 (event 1, UID a)"
    assert said == 'found "a", expected a UID that no other event has.'


def test_bytes_that_are_not_utf_8_are_told() -> None:
    data = calendar([BERLIN, PEOPLE, "SUMMARY:Übung"])
    assert not read_calendar(data, rules()).faults
    reading = read_calendar(data.decode().encode("latin-1"), rules())
    assert [event.name for _, event in reading.bookings] == ["\ufffdbung"]
    (fault,) = reading.faults
    said = "course.ics: found bytes that aren't UTF-8, as in \ufffdbung, expected a file in UTF-8."
    assert fault.startswith(said)


def test_past_events_and_those_after_the_last_day_do_not_count() -> None:
    past = [["DTSTART:20200101T090000Z", PEOPLE]] * 300
    reading = read(
        *past, [BERLIN, PEOPLE], ["DTSTART:20200101T090000Z", "RRULE:FREQ=MONTHLY", PEOPLE]
    )
    assert not reading.faults
    assert {event.name: len(starts(event, 99)) for _, event in reading.bookings} == {
        "event 300": 1,
        "event 301": 17,
    }


def test_names_are_those_of_no_other_booking() -> None:
    data = calendar(*[[BERLIN, PEOPLE, "SUMMARY:lecture"]] * 3)
    reading = read_calendar(data, rules(taken=frozenset({"lecture", "lecture 3"})))
    assert [event.name for _, event in reading.bookings] == ["lecture 2", "lecture 4", "lecture 5"]


def test_names_stay_as_time_goes_on() -> None:
    mondays = ["UID:a", "SUMMARY:lecture", "DTSTART:20261102T090000Z", "RRULE:FREQ=WEEKLY", PEOPLE]
    tuesdays = ["UID:b", *mondays[1:2], "DTSTART:20261103T090000Z", *mondays[3:]]
    data = calendar(mondays, tuesdays)
    for day in ("2026-11-02T00:00", "2026-11-03T00:00"):
        since = int(parse_moment(day, "UTC"))
        reading = read_calendar(data, replace(rules(), since=since, until=since + 7 * 86_400))
        assert {event.name: starts(event)[0][8:10] for _, event in reading.bookings} == {
            "lecture": "02" if day < "2026-11-03" else "09",
            "lecture 2": "03",
        }


def test_zones_of_other_programs_are_those_that_they_mean() -> None:
    reading = read_calendar((CALENDARS / "zones-of-other-programs.ics").read_bytes(), rules())
    assert not reading.faults
    assert [starts(event) for _, event in reading.bookings] == [
        ["2026-10-13 09:00"],
        ["2026-10-14 09:00"],
    ]


def test_a_zone_that_the_calendar_defines_itself_is_followed_through_its_clock_changes() -> None:
    reading = read_calendar((CALENDARS / "zone-of-its-own.ics").read_bytes(), rules())
    assert not reading.faults
    # In Berlin's time; on 25 October the file's own clock goes back, too.
    assert [start for _, event in reading.bookings for start in starts(event)] == [
        "2026-10-13 09:00",
        "2026-10-20 09:00",
        "2026-10-27 09:00",
        "2026-11-03 09:00",
    ]
    assert all(booking.event.people == 120 for booking in reading.bookings)


@pytest.mark.parametrize(("name", "zone"), cases("calendars", "zones"))
def test_a_zone_is_found_by_each_name_that_calendars_give_it(name: str, zone: str) -> None:
    assert find_zone(name) == zone


def test_every_zone_of_windows_is_in_the_database() -> None:
    assert len(WINDOWS_ZONES) > 130
    assert all(is_time_zone(zone) for zone in WINDOWS_ZONES.values())


def test_a_calendar_may_name_its_own_zones() -> None:
    zone = ("BEGIN:VTIMEZONE", "TZID:Mitteleuropa", "X-LIC-LOCATION:Europe/Berlin", "END:VTIMEZONE")
    reading = read(
        ["DTSTART;TZID=Mitteleuropa:20261124T090000", PEOPLE],
        ["DTSTART:20261124T030000", PEOPLE],
        before=("X-WR-TIMEZONE:America/New_York", *zone),
    )
    assert not reading.faults
    assert [starts(event) for _, event in reading.bookings] == [["2026-11-24 09:00"]] * 2


def test_a_time_without_a_zone_is_of_the_zone_that_is_said() -> None:
    reading = read_calendar(
        calendar(["DTSTART:20261124T030000", PEOPLE]), rules(zone="America/New_York")
    )
    assert [starts(event) for _, event in reading.bookings] == [["2026-11-24 09:00"]]


def _own_zone(rule: str) -> tuple[str, ...]:
    """A zone with Berlin's clocks, as Outlook writes one."""
    changes = [("STANDARD", "+0200", "+0100", "10"), ("DAYLIGHT", "+0100", "+0200", "3")]
    lines = ["BEGIN:VTIMEZONE", "TZID:Customized Time Zone"]
    for kind, before, after, month in changes:
        lines += [f"BEGIN:{kind}", "DTSTART:16010101T020000", f"TZOFFSETFROM:{before}"]
        lines += [f"TZOFFSETTO:{after}", f"{rule};BYMONTH={month}", f"END:{kind}"]
    return (*lines, "END:VTIMEZONE")


IN_OWN_ZONE = ["DTSTART;TZID=Customized Time Zone:20261020T090000", "RRULE:FREQ=WEEKLY;COUNT=3"]


def test_a_zone_that_the_calendar_defines_is_read() -> None:
    own = _own_zone("RRULE:FREQ=YEARLY;BYDAY=-1SU")
    reading = read([*IN_OWN_ZONE, PEOPLE], before=own)
    assert not reading.faults
    ((entry, event),) = reading.bookings
    assert entry["timeZone"] == "UTC"
    assert starts(event) == ["2026-10-20 09:00", "2026-10-27 09:00", "2026-11-03 09:00"]
    # Some programs write one that can't be read, and no event uses it.
    broken = ("BEGIN:VTIMEZONE", "TZID:Nowhere", "END:VTIMEZONE", *own[:-1], "X", own[-1])
    assert len(read([BERLIN, PEOPLE], before=broken).bookings) == 1
    # It isn't another calendar's.
    assert "TZID: found" in read([*IN_OWN_ZONE, PEOPLE]).faults[0]


# In a guest's description, as far as the calendar's next such words.
NO_ZONES = {
    "a line separator": "DESCRIPTION:hi\u2028{}:VTIMEZONE\u2028foo",
    "a next line": "DESCRIPTION:hi\x85{}:VTIMEZONE\x85foo",
    "a form feed": "DESCRIPTION:hi\f{}:VTIMEZONE\ffoo",
    "a fold": "DESCRIPTION:hi\r\n {}:VTIMEZONE",
    "a fold with spaces": "DESCRIPTION:hi\r\n\t{}:VTIMEZONE   \r\n foo",
}


@pytest.mark.parametrize("description", NO_ZONES.values(), ids=NO_ZONES)
def test_a_guests_words_are_no_zone_and_hide_no_event(description: str) -> None:
    reading = read(
        [BERLIN, description.format("BEGIN")],
        [BERLIN, PEOPLE],
        [BERLIN, description.format("END")],
        [BERLIN, PEOPLE],
    )
    assert [event.name for _, event in reading.bookings] == ["event 1", "event 3"]


def test_a_zone_within_an_event_hides_no_other_event() -> None:
    reading = read([BERLIN, "BEGIN:VTIMEZONE", "END:VTIMEZONE", PEOPLE], [BERLIN, PEOPLE])
    assert [event.name for _, event in reading.bookings] == ["event 0", "event 1"]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "found an empty file, expected an iCalendar file, which begins with BEGIN:VCALENDAR"),
        (b"<html>sign in</html>", 'found "<html>sign in</html>", expected an iCalendar file'),
        (b"events: []", "expected an iCalendar file"),
        (b"BEGIN:VCALENDAR\nBEGIN:VEVENT\nEND:VEVENT\n", "found no END:VCALENDAR at its end"),
        (b"BEGIN:VCALENDAR\nno colon\nEND:VCALENDAR\n", "expected an iCalendar file"),
        (b"BEGIN:VCALENDAR" + b"\n" * MOST_BYTES, "found more than 4 MiB, expected a calendar of"),
        (calendar(*[["X-A:b"]] * 20_001), "found more events, expected at most 20000"),
        (
            calendar(*[[BERLIN, PEOPLE]] * (MOST_EVENTS + 1)),
            "found 201 events with people that aren't past, expected at most 200. Say an earlier",
        ),
    ],
    ids=["empty", "html", "yaml", "cut", "no colon", "large", "many", "many with people"],
)
def test_a_calendar_that_can_not_be_read_at_all_is_refused(data: bytes, said: str) -> None:
    with pytest.raises(UsageError) as refused:
        read_calendar(data, rules())
    assert str(refused.value).startswith("course.ics: ")
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("events", "before"),
    [
        ([[*IN_OWN_ZONE, PEOPLE]], _own_zone("RRULE:FREQ=SECONDLY")),
        ([[BERLIN, "RRULE:FREQ=MONTHLY;BYMONTHDAY=30;BYMONTH=2;COUNT=9", PEOPLE]] * 150, ()),
    ],
    ids=["a zone that changes each second", "rules that never hold"],
)
def test_a_calendar_that_takes_too_long_ends_with_where_it_was(
    events: list[list[str]], before: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "MOST_SECONDS", 0.5)
    began = time.process_time()
    with pytest.raises(UsageError) as refused:
        read_calendar(calendar(*events, before=before), rules())
    assert time.process_time() - began < 5.0
    assert str(refused.value).startswith("course.ics: event ")
    assert "found a calendar that took more than 0 s to read" in str(refused.value)
    assert str(refused.value).endswith("Nothing was changed")


LONG_LINES: dict[str, Callable[[int], str]] = {
    "empty lines": lambda length: "DESCRIPTION:" + "\\n" * (length // 20),
    "no colon": lambda length: "x" * length,
    "parameters": lambda length: "x" + ";y=z" * (length // 20) + ":",
    "open tags": lambda length: "DESCRIPTION:" + "<a<p<!--<style" * (length // 50),
    "spaces": lambda length: "DESCRIPTION:people:" + " " * (length // 4) + "x",
    "no people": lambda length: (
        "DESCRIPTION:" + "people: " * (length // 20) + "\\n" * (length // 20)
    ),
    "people": lambda length: "DESCRIPTION:" + "people:1 " * (length // 20),
}


@pytest.mark.parametrize("line", LONG_LINES.values(), ids=LONG_LINES)
def test_the_time_for_a_line_grows_with_its_length_alone(line: Callable[[int], str]) -> None:
    def seconds(length: int) -> float:
        """The least of several, so that other processes don't count."""
        found = []
        for _ in range(3):
            began = time.process_time()
            read(["DTSTART:20261124T090000Z", line(length)])
            found.append(time.process_time() - began)
        return min(found)

    # 8 if it is linear, 64 if each character costs one more pass. Clocks tick each 10 ms.
    assert seconds(1_600_000) < 24 * max(seconds(200_000), 0.01)
