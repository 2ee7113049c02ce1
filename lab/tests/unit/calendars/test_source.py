"""Where calendars come from: which addresses are read, within which bounds, and what isn't said."""

import time
from datetime import date
from typing import Any

import pytest
import urllib3

from generator.faults import UsageError
from roost_core.placement.headroom_windows import parse_moment
from roost_lab.calendars.source import MOST_BYTES, TOTAL_SECONDS, CalendarOrder, CalendarSource

URL = "https://calendar.example.org/private.ics?token=secret"
NO_ANSWER = urllib3.exceptions.TimeoutError(URL)
LECTURE = b"BEGIN:VCALENDAR\nEND:VCALENDAR\n"


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


def test_an_address_is_asked_once_without_redirects() -> None:
    web = Web(LECTURE)
    assert CalendarSource(URL).read(web) == LECTURE
    assert [(asked["url"], asked["redirect"]) for asked in web.asked] == [(URL, False)]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"answer": NO_ANSWER}, "no answer (TimeoutError)"),
        ({"answer": b"moved", "status": 302}, "HTTP status 302, expected 200. Redirects aren't"),
        ({"answer": b"", "status": 404}, "HTTP status 404, expected 200. Nothing was changed"),
        (
            {"answer": b"x" * 200_000, "seconds_per_block": TOTAL_SECONDS / 2},
            "an answer that isn't complete after 60 s",
        ),
        ({"block_bytes": 1, "seconds_per_block": 31.0}, "an answer that isn't complete"),
        ({"headers": {"content-encoding": "gzip"}}, "content-encoding 'gzip', expected none"),
    ],
)
def test_what_can_not_be_read_is_told_without_its_address(
    change: dict[str, Any], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    web = Web(LECTURE)
    vars(web).update(change)
    monkeypatch.setattr(time, "monotonic", lambda: web.now)
    with pytest.raises(UsageError) as refused:
        CalendarSource(URL).read(web)
    assert str(refused.value).startswith("calendar.example.org/…: found ")
    assert said in str(refused.value)
    assert "secret" not in str(refused.value)
    assert web.now < 2 * TOTAL_SECONDS


def test_an_answer_without_end_is_cut_where_it_is_too_large() -> None:
    assert len(CalendarSource(URL).read(Web(b"x" * (3 * MOST_BYTES)))) == MOST_BYTES + 1


@pytest.mark.parametrize(
    "address",
    [
        "http://calendar.example.org/a?secret",
        "ftp://x/secret",
        "https:///secret",
        "webcal://x/secret",
    ],
)
def test_an_address_without_https_is_refused_without_its_token(address: str) -> None:
    with pytest.raises(UsageError, match="or an address that begins with https://") as refused:
        CalendarSource(address)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("host", ["[bad", "[::1", "a\x1b[2J", "a b", "[x]"])
def test_an_address_whose_host_is_none_is_refused(host: str) -> None:
    with pytest.raises(UsageError, match="expected a file, or an address that begins") as refused:
        CalendarSource(f"https://{host}/secret")
    assert "secret" not in str(refused.value)
    assert "\x1b" not in str(refused.value)


@pytest.mark.parametrize("host", ["127.0.0.1:8080", "localhost", "[::1]:80"])
def test_this_machine_is_read_without_https(host: str) -> None:
    assert CalendarSource(f"http://{host}/a.ics").read(Web(LECTURE)) == LECTURE


def test_two_secret_addresses_of_one_host_are_two_calendars_and_a_file_is_called_as_it_is() -> None:
    names = [CalendarSource(address).name for address in (URL, f"{URL}2", "term/course.ics")]
    assert names[0] != names[1]
    assert all(name.startswith("calendar.example.org ") for name in names[:2])
    assert "secret" not in "".join(names)
    assert names[2] == "course.ics"


def test_a_span_is_from_a_day_ago_or_the_first_day_to_the_last_day_or_a_year_ahead() -> None:
    now = parse_moment("2026-11-24T09:00", "Europe/Berlin")
    source = CalendarSource("course.ics")
    assert CalendarOrder(source, "", "Europe/Berlin", None, None).span(now) == (
        now - 86_400,
        now + 365 * 86_400,
    )


def test_a_first_day_after_the_year_ahead_is_a_fault_of_from_not_of_until() -> None:
    now = parse_moment("2026-11-24T09:00", "Europe/Berlin")
    source = CalendarSource("course.ics")
    first_day = date(2028, 1, 1)
    with pytest.raises(
        UsageError, match="--from: found 2028-01-01, expected a day of the next 365"
    ):
        CalendarOrder(source, "", "Europe/Berlin", first_day, None).span(now)
    last_day = date(2028, 1, 2)
    since, until = CalendarOrder(source, "", "Europe/Berlin", first_day, last_day).span(now)
    assert since < until
