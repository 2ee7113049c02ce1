"""Bookings in iCalendar files: what is read or refused, when events begin, and the calendar on the
web.
"""

import json
import logging
import time
from collections.abc import Callable
from typing import Any, cast
from unittest.mock import Mock

import pytest
import urllib3

from generator.values.merge import Settings
from roost.controllers.contract.bookings import BookingSource, read_booking_settings
from roost.controllers.runtime import booking_sources
from roost.controllers.runtime.booking_sources import (
    MOST_CALENDAR,
    MOST_CONFIG_MAPS,
    MOST_TEXT,
    MOST_TEXT_IN_ALL,
    TOTAL_SECONDS,
    BookingText,
    CalendarFeed,
    ConfigMapReader,
    ReadingTime,
    keep_config_map,
)
from roost.controllers.runtime.calendar_zones import WINDOWS_ZONES, find_zone
from roost.controllers.runtime.calendars import parse_calendar
from roost.controllers.runtime.watching.watched_cluster import WatchedCluster
from roost.controllers.settings import parse_settings
from roost_core.placement.headroom_windows import is_time_zone, local_time, parse_moment
from roost_core.release.events import Event, Limits, first_start_after
from roost_core.release.reader import Reader
from roost_lab.simulator.setup.policy import load_policy
from tests.builders import default_values
from tests.recorded_data import DATA, rows

LIMITS = Limits(("default",), 200)
BERLIN = "DTSTART;TZID=Europe/Berlin:20261124T090000"
PEOPLE = r"DESCRIPTION:Bring a laptop.\npeople: 120\nimage: quay.io/me/course:1"


def _calendar(*events: list[str]) -> str:
    lines = ["BEGIN:VCALENDAR", "VERSION:2.0"]
    for number, event in enumerate(events):
        uid = [] if any(line.startswith("UID") for line in event) else [f"UID:{number}"]
        summary = (
            [] if any(line.startswith("SUMMARY") for line in event) else [f"SUMMARY:event {number}"]
        )
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


def test_an_event_with_people_in_its_description_is_a_booking_and_no_other_event_is() -> None:
    others = [
        [BERLIN, "DESCRIPTION:no people"],
        [BERLIN],
        ["DTSTART;VALUE=DATE:20261124", "RRULE:FREQ=YEARLY"],
        ["RECURRENCE-ID:x", "DTSTART:y"],
        *([BERLIN, f"DESCRIPTION:people: {odd}"] for odd in ("\\n120", "9" * 5000, "12x")),
    ]
    events, faults = _parse([BERLIN, PEOPLE], *others, [BERLIN, "DESCRIPTION:people: 5000"])
    assert [(event.name, event.people, event.image, event.set_name) for event in events] == [
        ("event 0", 120, "quay.io/me/course:1", "default")
    ]
    assert _starts(events[0]) == ["2026-11-24 09:00"]
    assert (
        faults[-1]
        == "course.ics: event 8.people: found 5000, expected a whole number from 1 to 200"
        " (events.maxPeople)."
    )


@pytest.mark.parametrize(("lines", "expected"), rows("controllers/calendar-starts"))
def test_when_events_begin(lines: list[str], expected: list[str]) -> None:
    (event,), faults = _parse([*lines, PEOPLE])
    assert not faults
    assert _starts(event) == expected


@pytest.mark.parametrize("description", rows("controllers/calendar-people"))
def test_people_are_found_in_html_in_folded_lines_and_behind_parameters(description: str) -> None:
    (event,), faults = _parse([BERLIN, description])
    assert not faults
    assert (event.people, event.image) == (
        120,
        "quay.io/me/course:1" if "image" in description else "",
    )


def test_an_occurrence_that_was_moved_counts_where_it_is_now_and_a_cancelled_one_not_at_all() -> (
    None
):
    series = [
        "UID:a",
        "DTSTART;TZID=Europe/Berlin:20261103T090000",
        "RRULE:FREQ=WEEKLY;COUNT=4",
        PEOPLE,
    ]
    moved = [
        "UID:a",
        "RECURRENCE-ID;TZID=Europe/Berlin:20261110T090000",
        "DTSTART;TZID=Europe/Berlin:20261111T140000",
    ]
    cancelled = [
        "UID:a",
        "RECURRENCE-ID:20261117T080000Z",
        "STATUS:CANCELLED",
        "DTSTART:20261117T080000Z",
    ]
    events, faults = _parse(series, [*moved, PEOPLE], [*cancelled, PEOPLE])
    assert not faults
    assert [_starts(event) for event in events] == [
        ["2026-11-03 09:00", "2026-11-24 09:00"],
        ["2026-11-11 14:00"],
    ]


MANY = [BERLIN, "EXDATE;TZID=Europe/Berlin:" + ",".join(["20261124T090000"] * 1001)]


@pytest.mark.parametrize(
    ("lines", "fault"), [*rows("controllers/calendar-refused"), (MANY, "EXDATE: found")]
)
def test_what_is_not_supported_is_refused_by_name_and_the_others_count(
    lines: list[str], fault: str
) -> None:
    events, faults = _parse([*lines, PEOPLE], [BERLIN, PEOPLE, "SUMMARY:other"])
    assert [event.name for event in events] == ["other"]
    assert len(faults) == 1
    assert faults[0].startswith("course.ics: event 0: ")
    assert fault in faults[0]


def test_a_change_of_all_later_occurrences_is_refused_and_the_series_is_read_up_to_it() -> None:
    series = ["UID:a", "DTSTART;TZID=Europe/Berlin:20261103T090000", "RRULE:FREQ=WEEKLY", PEOPLE]
    changed = ["UID:a", "RECURRENCE-ID;RANGE=THISANDFUTURE;TZID=Europe/Berlin:20261117T090000"]
    events, faults = _parse(
        series, [*changed, "DTSTART;TZID=Europe/Berlin:20261117T140000", PEOPLE]
    )
    assert [_starts(event) for event in events] == [["2026-11-03 09:00", "2026-11-10 09:00"]]
    assert len(faults) == 1
    assert "RECURRENCE-ID;RANGE: found" in faults[0]
    assert "a new event from there on" in faults[0]


def test_of_series_with_one_uid_the_first_counts() -> None:
    cancelled = ["UID:a", "RECURRENCE-ID:20261124T080000Z", "STATUS:CANCELLED"]
    series = ["UID:a", BERLIN, "RRULE:FREQ=DAILY;COUNT=2", PEOPLE]
    events, faults = _parse(series, series, cancelled)
    assert [_starts(event) for event in events] == [["2026-11-25 09:00"]]
    assert faults == [
        (
            'course.ics: event 1: UID: found "a",'
            " expected a UID that no other event of the calendar has."
        )
    ]


def test_past_events_do_not_count() -> None:
    past = [["DTSTART:20200101T090000Z", PEOPLE]] * 300
    text = _calendar(
        *past, [BERLIN, PEOPLE], ["DTSTART:20200101T090000Z", "RRULE:FREQ=WEEKLY", PEOPLE]
    )
    read = Reader()
    found = parse_calendar(
        read, text, "a.ics", LIMITS, since=parse_moment("2026-11-01T00:00Z", "UTC")
    )
    assert [event.name for event in found] == ["event 300", "event 301"]
    assert not read.faults


def test_what_there_is_no_time_for_is_left_out_and_said() -> None:
    left = iter([True, True])
    read = Reader()
    text = _calendar(*[[BERLIN, PEOPLE]] * 5)
    found = parse_calendar(read, text, "a.ics", LIMITS, may_go_on=lambda: next(left, False))
    assert len(found) == 2
    assert "takes too long" in str(read.faults[0])


def test_zones_of_other_programs_are_those_that_they_mean() -> None:
    read, name = Reader(), "zones-of-other-programs.ics"
    events = parse_calendar(
        read, (DATA / "calendars" / name).read_text(encoding="utf-8"), name, LIMITS
    )
    assert not read.faults
    assert [_starts(event) for event in events] == [["2026-10-13 09:00"], ["2026-10-14 09:00"]]


@pytest.mark.parametrize(("name", "zone"), rows("controllers/calendar-zones"))
def test_a_zone_is_found_by_each_name_that_calendars_give_it(name: str, zone: str) -> None:
    assert find_zone(name) == zone


def test_every_zone_of_the_table_is_in_the_database() -> None:
    assert len(WINDOWS_ZONES) > 130
    assert all(is_time_zone(zone) for zone in WINDOWS_ZONES.values())


def test_a_calendar_may_name_its_own_zones() -> None:
    zone = ["BEGIN:VTIMEZONE", "TZID:Mitteleuropa", "X-LIC-LOCATION:Europe/Berlin", "END:VTIMEZONE"]
    event = ["BEGIN:VEVENT", "DTSTART;TZID=Mitteleuropa:20261124T090000", PEOPLE, "END:VEVENT"]
    floating = ["BEGIN:VEVENT", "DTSTART:20261124T030000", PEOPLE, "END:VEVENT"]
    text = "\n".join(
        ["BEGIN:VCALENDAR", "X-WR-TIMEZONE:America/New_York", *zone, *event, *floating]
    )
    read = Reader()
    events = parse_calendar(read, text, "a.ics", LIMITS)
    assert not read.faults
    assert [_starts(event) for event in events] == [["2026-11-24 09:00"], ["2026-11-24 09:00"]]


@pytest.mark.parametrize("text", ["", "<html>sign in</html>", "events: []"])
def test_something_else_than_a_calendar_is_refused(text: str) -> None:
    read = Reader()
    assert parse_calendar(read, text, "calendar", LIMITS) == ()
    assert "BEGIN:VCALENDAR" in str(read.faults[0])


LONG_LINES: dict[str, Callable[[int], str]] = {
    "empty lines": lambda length: "DESCRIPTION:" + "\\n" * (length // 20),
    "no colon": lambda length: "x" * length,
    "parameters": lambda length: "x" + ";y=z" * length + ":",
    "open tags": lambda length: "DESCRIPTION:" + "<a<p<!--<style" * (length // 50),
    "spaces": lambda length: "DESCRIPTION:people:" + " " * (length // 4) + "x",
    "people": lambda length: "DESCRIPTION:" + "people:1 " * (length // 20),
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


URL = "https://calendar.example.org/private.ics?token=secret"
END = b"END:VEVENT\nEND:VCALENDAR\n"
LECTURE = (
    b"BEGIN:VCALENDAR\nBEGIN:VEVENT\nSUMMARY:lecture\nDESCRIPTION:people:"
    b" 9\nDTSTART:20261124T090000Z\n" + END
)


class Web:
    """Answers requests with what it is told: bytes, blocks, a status, or an error."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.status = 200
        self.asked: list[dict[str, Any]] = []
        self.now = 0.0
        self.seconds_per_block = 0.0
        # What arrives at a time.
        self.block_bytes = 1 << 16
        self.headers: dict[str, str] = {}

    def request(self, method: str, url: str, **options: Any) -> "Web":
        self.asked.append({"method": method, "url": url, **options})
        if isinstance(self.answer, Exception):
            raise self.answer
        self.left = self.answer
        return self

    def read1(self, amount: int, *, decode_content: bool) -> bytes:
        assert not decode_content, "a small answer may be unpacked to any size"
        self.now += self.seconds_per_block
        size = min(amount, self.block_bytes)
        block, self.left = self.left[:size], self.left[size:]
        return bytes(block)

    def close(self) -> None:
        """Nothing is open."""


def _feed(web: Web, on_change: Callable[[], None] = lambda: None) -> CalendarFeed:
    limits = Limits(("default",), 100)
    return CalendarFeed(
        URL, limits, on_change=on_change, pool=web, clock=lambda: web.now, wall=lambda: 0.0
    )


def test_bookings_are_read_faults_logged_and_changes_wake_the_loop(
    caplog: pytest.LogCaptureFixture,
) -> None:
    big = (
        b"END:VEVENT\nBEGIN:VEVENT\nSUMMARY:big\nDESCRIPTION:people:"
        b" 900\nDTSTART:20261124T090000Z\n"
    )
    web, changes = Web(LECTURE.replace(END, big + END)), list[None]()
    feed = _feed(web, lambda: changes.append(None))
    assert feed.source is None
    with caplog.at_level(logging.WARNING):
        feed.poll()
    feed.poll()
    assert feed.source is not None
    assert [event.name for event in feed.source.events] == ["lecture"]
    assert "booking refused: calendar: big.people: found 900" in caplog.text
    assert len(changes) == 1
    assert (web.asked[0]["url"], web.asked[0]["redirect"]) == (URL, False)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"answer": urllib3.exceptions.MaxRetryError(None, URL, None)}, "MaxRetryError"),  # type: ignore[arg-type]
        ({"answer": LECTURE[: -len(END)]}, "it doesn't end with END:VCALENDAR"),
        ({"answer": b"moved", "status": 302}, "HTTP status 302"),
        ({"answer": b"x" * (MOST_CALENDAR + 1)}, "more than 4 MiB"),
        (
            {"answer": b"x" * 200_000, "seconds_per_block": TOTAL_SECONDS / 2},
            "not complete within 60 s",
        ),
        ({"block_bytes": 1, "seconds_per_block": 19.0}, "not complete within 60 s"),
        ({"headers": {"content-encoding": "gzip"}}, "content-encoding 'gzip', expected none"),
        ({}, "calendar not read: ZeroDivisionError; the last one counts"),
    ],
)
def test_what_can_not_be_read_is_logged_without_its_address_and_the_last_one_counts(
    change: dict[str, Any],
    said: str,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    web = Web(LECTURE)
    feed = _feed(web)
    feed.poll()
    before = feed.source
    vars(web).update(change)
    if not change:
        monkeypatch.setattr(booking_sources, "parse_calendar", Mock(side_effect=ZeroDivisionError))
    with caplog.at_level(logging.WARNING):
        feed.poll()
    assert feed.source is before
    assert web.now < 2 * TOTAL_SECONDS
    assert said in caplog.text
    assert "the last one counts" in caplog.text
    assert "secret" not in caplog.text


def _config_map(name: str, text: str = "", key: str = "a.ics") -> BookingText:
    return keep_config_map({"metadata": {"name": name, "uid": name}, "data": {key: text}})


def test_config_maps_are_bounded_in_number_and_in_bytes() -> None:
    reader = ConfigMapReader(Limits(("default",), 100), ReadingTime(), wall=lambda: 0.0)
    lecture = LECTURE.decode()
    many = {
        f"{number:03}": _config_map(str(number), lecture) for number in range(MOST_CONFIG_MAPS + 2)
    }
    sources = reader.sources(many)
    assert [len(source.events) for source in sources] == [1] * MOST_CONFIG_MAPS + [0, 0]
    assert "expected 200 with 4 MiB in all" in sources[-1].faults[0]
    large = {
        str(number): _config_map(str(number), lecture + "x" * (MOST_TEXT - len(lecture)))
        for number in range(40)
    }
    counted = [len(source.events) for source in reader.sources(large)]
    assert sum(counted) == MOST_TEXT_IN_ALL // MOST_TEXT
    longer = {"a": _config_map("a", "x" * (MOST_TEXT + 1))}
    assert reader.sources(longer)[0].faults == (
        f'a.ics: found "{MOST_TEXT + 1} characters", expected at most {MOST_TEXT}.',
    )


def test_one_that_is_written_again_and_again_costs_the_others_no_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [0.0]
    read: list[str] = []

    def slow(text: BookingText, *_more: object) -> BookingSource:
        now[0] += 2.0
        read.append(text.name)
        return BookingSource("ConfigMap", text.name, text.uid, ())

    monkeypatch.setattr(booking_sources, "read_config_map", slow)
    reader = ConfigMapReader(
        Limits(("default",), 100), ReadingTime(lambda: now[0]), wall=lambda: 0.0
    )
    texts = {each: _config_map(each) for each in "bcde"}
    for name in "abcde":
        # "a" is written in each turn.
        others = {each: texts[each] for each in texts if each <= name}
        sources = reader.sources({"a": _config_map("a"), **others})
    # All that fits in a minute's time; what was read before counts on, and what wasn't is named.
    assert read == ["a", "b", "a"]
    assert [source.name for source in sources if source.is_unread] == ["a", "c", "d", "e"]
    now[0] += 60.0
    assert [
        source.name for source in reader.sources({each: _config_map(each) for each in "abcde"})
    ] == list("abcde")
    assert read[3:] == ["c", "d", "e"]


def cluster_of(settings: Settings) -> WatchedCluster:
    """What the controllers watch under a shipped policy with these values; it never begins."""
    policy = load_policy("roost", (), settings)
    release = parse_settings(
        policy.controllers or {}, policy.scheduler_configuration, policy.minor
    ).shared
    return WatchedCluster(cast("Any", None), release, on_change=lambda: None)


@pytest.mark.parametrize(("values", "watched"), rows("controllers/watched-config-maps"))
def test_config_maps_are_watched_only_where_the_values_ask_for_it(
    values: dict[str, Any], watched: int
) -> None:
    cluster = cluster_of(
        Settings(json_values=tuple(f"{key}={json.dumps(value)}" for key, value in values.items()))
    )
    kinds = [cache.kind for cache in (*cluster.caches, *cluster.other_caches)]
    assert kinds.count("configmaps") == watched


def test_an_address_without_https_is_refused_without_its_token() -> None:
    events = {
        **default_values()["events"],
        "enabled": True,
        "calendarUrl": URL.replace("https", "http"),
    }
    read = Reader()
    read_booking_settings(read, {"events": events})
    (fault,) = [str(fault) for fault in read.faults if fault.key == "events.calendarUrl"]
    assert "expected an address that begins with https://" in fault
    assert "secret" not in fault
