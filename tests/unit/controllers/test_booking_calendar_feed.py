"""The calendar on the web: polled within bounds, and the last one counts while it can't be read."""

import json
import logging
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
from roost.controllers.runtime.watching import Watching
from roost.controllers.settings import parse_settings
from roost_core.release.events import Limits
from roost_core.release.reader import Reader
from roost_lab.simulator.setup.policy import load_policy
from tests.builders import default_values

URL = "https://calendar.example.org/private.ics?token=secret"
LECTURE = (
    b"BEGIN:VCALENDAR\nBEGIN:VEVENT\nSUMMARY:lecture\nDESCRIPTION:people: 9\nDTSTART:20261124T090000Z\nEND:VEVENT\n"
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
    return CalendarFeed(URL, limits, on_change=on_change, pool=web, clock=lambda: web.now, wall=lambda: 0.0)


def test_its_bookings_are_read_its_faults_logged_and_only_a_change_wakes_the_loop(
    caplog: pytest.LogCaptureFixture,
) -> None:
    faulty = LECTURE + b"BEGIN:VEVENT\nSUMMARY:big\nDESCRIPTION:people: 900\nDTSTART:20261124T090000Z\nEND:VEVENT\n"
    web, changes = Web(faulty), list[None]()
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
        ({"answer": b"moved", "status": 302}, "HTTP status 302"),
        ({"answer": b"x" * (MOST_CALENDAR + 1)}, "more than 4 MiB"),
        ({"answer": b"x" * 200_000, "seconds_per_block": TOTAL_SECONDS / 2}, "not complete within 60 s"),
        ({"block_bytes": 1, "seconds_per_block": 19.0}, "not complete within 60 s"),
        ({"headers": {"content-encoding": "gzip"}}, "content-encoding 'gzip', expected none"),
        ({}, "calendar not read: ZeroDivisionError; the last one counts"),
    ],
)
def test_what_can_not_be_read_is_logged_without_its_address_and_the_last_one_counts(
    change: dict[str, Any], said: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
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
    many = {f"{number:03}": _config_map(str(number), lecture) for number in range(MOST_CONFIG_MAPS + 2)}
    sources = reader.sources(many)
    assert [len(source.events) for source in sources] == [1] * MOST_CONFIG_MAPS + [0, 0]
    assert "expected 200 with 4 MiB in all" in sources[-1].faults[0]
    large = {str(number): _config_map(str(number), lecture + "x" * (MOST_TEXT - len(lecture))) for number in range(40)}
    counted = [len(source.events) for source in reader.sources(large)]
    assert sum(counted) == MOST_TEXT_IN_ALL // MOST_TEXT
    longer = {"a": _config_map("a", "x" * (MOST_TEXT + 1))}
    assert reader.sources(longer)[0].faults == (
        f'a.ics: found "{MOST_TEXT + 1} characters", expected at most {MOST_TEXT}.',
    )


def test_one_that_is_written_again_and_again_costs_the_others_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    read: list[str] = []

    def slow(text: BookingText, *_more: object) -> BookingSource:
        now[0] += 2.0
        read.append(text.name)
        return BookingSource("ConfigMap", text.name, text.uid, ())

    monkeypatch.setattr(booking_sources, "read_config_map", slow)
    reader = ConfigMapReader(Limits(("default",), 100), ReadingTime(lambda: now[0]), wall=lambda: 0.0)
    texts = {each: _config_map(each) for each in "bcde"}
    for name in "abcde":
        # "a" is written in each turn.
        others = {each: texts[each] for each in texts if each <= name}
        sources = reader.sources({"a": _config_map("a"), **others})
    # All that fits in a minute's time; what was read before counts on, and what wasn't is named.
    assert read == ["a", "b", "a"]
    assert [source.name for source in sources if source.is_unread] == ["a", "c", "d", "e"]
    now[0] += 60.0
    assert [source.name for source in reader.sources({each: _config_map(each) for each in "abcde"})] == list("abcde")
    assert read[3:] == ["c", "d", "e"]


def watching_of(settings: Settings) -> Watching:
    """What the controllers watch under a shipped policy with these values; it never begins."""
    policy = load_policy("roost", (), settings)
    release = parse_settings(policy.controllers or {}, policy.scheduler_configuration, policy.minor).shared
    return Watching(cast("Any", None), release, on_change=lambda: None)


LEARN = {
    "name": "default",
    "replicas": 3,
    "learn": {"quantile": 0.9, "min": 0, "max": 5, "bootSeconds": 300, "timeZone": "UTC"},
}


@pytest.mark.parametrize(
    ("values", "watched"),
    [
        ({"events.enabled": True, "events.configMaps": True}, 1),
        ({"events.enabled": True, "events.configMaps": False}, 0),
        ({"events.enabled": False, "events.configMaps": True}, 0),
        # A history is watched where the controllers learn.
        ({"placeholders": [LEARN]}, 1),
    ],
)
def test_config_maps_are_watched_only_where_the_values_ask_for_it(values: dict[str, Any], watched: int) -> None:
    watching = watching_of(Settings(json_values=tuple(f"{key}={json.dumps(value)}" for key, value in values.items())))
    kinds = [cache.kind for cache in (*watching.caches, *watching._others)]
    assert kinds.count("configmaps") == watched


def test_an_address_without_https_is_refused_without_its_token() -> None:
    events = {**default_values()["events"], "enabled": True, "calendarUrl": URL.replace("https", "http")}
    read = Reader()
    read_booking_settings(read, {"events": events})
    (fault,) = [str(fault) for fault in read.faults if fault.key == "events.calendarUrl"]
    assert "expected an address that begins with https://" in fault
    assert "secret" not in fault
