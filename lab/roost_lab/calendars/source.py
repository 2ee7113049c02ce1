"""What of which calendar is booked: its bytes, from a file or the web, within bounds of size and
time, and the days that count.

An address often holds a secret. Nothing here says more of it than its host.
"""

from __future__ import annotations

import ipaddress
import time
from dataclasses import dataclass
from datetime import date, datetime
from datetime import time as clock
from hashlib import sha256
from pathlib import PurePath
from typing import Any, Final
from urllib.parse import urlsplit

import urllib3

from generator.faults import UsageError, one_line
from generator.values.files import read_file
from roost.controllers.runtime.booking_sources import PAST_SECONDS
from roost_core.placement.headroom_windows import unix_time
from roost_lab.booking.entry import read_zone
from roost_lab.units import DAY_SECONDS

MOST_BYTES: Final = 4 * 2**20
# For a connection, for each read, and in all.
_CONNECT_SECONDS: Final = 10.0
_READ_SECONDS: Final = 20.0
TOTAL_SECONDS: Final = 60.0
_BEGIN: Final = "BEGIN:VCALENDAR"
_BLOCK: Final = 1 << 16
_MOST_NAME: Final = 60
# What never ends is booked so far ahead. Whoever reads it again each day moves it on.
MOST_DAYS_AHEAD: Final = 365


def is_calendar(data: bytes) -> bool:
    """Whether a file's first bytes are those of an iCalendar file."""
    return data[:99].decode("utf-8", "replace").lstrip("\ufeff \t\r\n").upper().startswith(_BEGIN)


class CalendarSource:
    """A file, or an address that begins with https:// (http:// on this machine)."""

    def __init__(self, text: str) -> None:
        """Raises UsageError for an address that isn't read."""
        self._text = text
        self.is_address = "://" in text
        host = _host(text) if self.is_address else ""
        # For faults.
        self.shown = f"{host}/…" if self.is_address else one_line(text)
        # What its bookings carry, unless somebody says another name. Two secret addresses of one
        # host are two calendars.
        self.name = one_line(PurePath(text).name)[-_MOST_NAME:]
        if self.is_address:
            self.name = f"{host[:_MOST_NAME]} {sha256(text.encode()).hexdigest()[:8]}"

    def read(self, pool: Any = None) -> bytes:  # noqa: ANN401 - urllib3.PoolManager, or a test's
        """The calendar's bytes, or MOST_BYTES + 1 of them. Raises UsageError."""
        if not self.is_address:
            return read_file(self._text, MOST_BYTES)
        try:
            return self._fetch(pool or urllib3.PoolManager(num_pools=1, retries=False))
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            # The library's message has the address.
            raise self._error(f"no answer ({type(error).__name__})", "a calendar") from None

    def _fetch(self, pool: Any) -> bytes:  # noqa: ANN401 - as above
        until = time.monotonic() + TOTAL_SECONDS
        response = pool.request(
            "GET",
            self._text,
            preload_content=False,
            redirect=False,
            timeout=urllib3.Timeout(connect=_CONNECT_SECONDS, read=_READ_SECONDS),
            headers={"accept": "text/calendar", "user-agent": "roost"},
        )
        try:
            if response.status != 200:
                expected = "200"
                if 300 <= response.status < 400:
                    expected += ". Redirects aren't followed: say the address that they lead to"
                raise self._error(f"HTTP status {response.status}", expected)
            encoding = response.headers.get("content-encoding", "identity").lower()
            if encoding != "identity":
                raise self._error(f"content-encoding {encoding[:20]!r}", "none")
            content = b""
            # What has arrived, as it is: `read` would wait for a whole block, and unpack any number
            # of bytes from it.
            while len(content) <= MOST_BYTES:
                block = response.read1(_BLOCK, decode_content=False)
                if not block:
                    break
                content += block
                if time.monotonic() > until:
                    raise self._error(
                        f"an answer that isn't complete after {TOTAL_SECONDS:.0f} s", "one that is"
                    )
            return content[: MOST_BYTES + 1]
        finally:
            response.close()

    def _error(self, found: str, expected: str) -> UsageError:
        return UsageError(f"{self.shown}: found {found}, expected {expected}. Nothing was changed")


def _host(address: str) -> str:
    """The host of an address that may be read. Raises UsageError."""
    found = "an address that can't be read"
    try:
        parts = urlsplit(address)
        host = parts.hostname or ""
        if _may_be_read(parts.scheme, host) and host.isprintable() and " " not in host:
            return host
        if not _may_be_read(parts.scheme, host):
            found = f"an address that begins with {parts.scheme}://"
    except ValueError:
        # Its message has parts of the address.
        pass
    expected = "a file, or an address that begins with https:// and names a host"
    raise UsageError(f"--calendar: found {one_line(found)}, expected {expected}")


def _may_be_read(scheme: str, host: str) -> bool:
    """Whether nobody on the way can change or read the calendar."""
    if scheme != "http":
        return scheme == "https" and bool(host)
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@dataclass(frozen=True, slots=True)
class CalendarOrder:
    """What somebody asks for with --calendar."""

    source: CalendarSource
    # The calendar's name: its bookings carry it.
    name: str
    # The zone of times that have none, where the calendar names none either; "": such times are
    # faults.
    zone: str
    # None: from now on.
    first_day: date | None
    # None: a year from now.
    last_day: date | None
    # Whether somebody said the name: it needn't tell two files of one name apart.
    is_named: bool = False

    def span(self, now: float) -> tuple[int, int]:
        """Unix times between which events are booked. Raises UsageError."""
        zone = read_zone(self.zone)
        since = int(now - PAST_SECONDS)
        until = int(now) + MOST_DAYS_AHEAD * DAY_SECONDS
        if self.first_day is not None:
            since = max(since, unix_time(datetime.combine(self.first_day, clock()), zone))
        if self.last_day is not None:
            until = unix_time(datetime.combine(self.last_day, clock(23, 59)), zone)
        if until <= max(since, now):
            expected = "a day to come that isn't before --from"
            raise UsageError(f"--until: found {self.last_day}, expected {expected}")
        return since, until
