"""Read the bytes of the calendar that `--calendar` names, and say which of its days are booked.

A calendar is a file, or an address of the web. Its size is limited, and the time that it takes.
An address often holds a secret, so messages and names show only its host.
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
# Longest times to connect, to wait for the next bytes, and for the whole answer.
_CONNECT_SECONDS: Final = 10.0
_READ_SECONDS: Final = 20.0
TOTAL_SECONDS: Final = 60.0
_BEGIN: Final = "BEGIN:VCALENDAR"
# Bytes of a file in which it must begin.
_FIRST_BYTES: Final = 99
_BLOCK_BYTES: Final = 1 << 16
# Characters of a calendar's name.
_MOST_NAME: Final = 60
# A series that never ends is booked so far ahead. Reading the calendar again each day moves that
# end on.
MOST_DAYS_AHEAD: Final = 365


def is_calendar(data: bytes) -> bool:
    """Whether a file's first bytes are those of an iCalendar file."""
    text = data[:_FIRST_BYTES].decode("utf-8", "replace")
    # A byte order mark and empty lines may precede it.
    return text.lstrip("\ufeff \t\r\n").upper().startswith(_BEGIN)


class CalendarSource:
    """A file, or an address that begins with https:// (http:// on this machine)."""

    def __init__(self, text: str) -> None:
        """text: what the user gave. Raises UsageError for an address that isn't read."""
        self._text = text
        self.is_address = "://" in text
        # `shown`: how messages name the calendar. `name`: how its bookings name it, unless the user
        # chooses another name.
        if self.is_address:
            host = _host(text)
            self.shown = f"{host}/…"
            # The digest tells two secret addresses of one host apart.
            digest = sha256(text.encode()).hexdigest()[:8]
            self.name = f"{host[:_MOST_NAME]} {digest}"
        else:
            self.shown = one_line(text)
            self.name = one_line(PurePath(text).name)[-_MOST_NAME:]

    def read(self, pool: Any = None) -> bytes:  # noqa: ANN401 - urllib3.PoolManager, or a test's
        """The calendar's bytes; of one that is too large, the first MOST_BYTES + 1.

        Raises UsageError where it can't be read.
        """
        if not self.is_address:
            return read_file(self._text, MOST_BYTES)
        try:
            return self._fetch(pool or urllib3.PoolManager(num_pools=1, retries=False))
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            # The library's message has the address, so only the kind of error is shown.
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
            while len(content) <= MOST_BYTES:
                # `read1` gives the bytes that have arrived. `read` would wait for a whole block,
                # and could unpack it to any size.
                block = response.read1(_BLOCK_BYTES, decode_content=False)
                if not block:
                    break
                content += block
                if time.monotonic() > until:
                    found = f"an answer that isn't complete after {TOTAL_SECONDS:.0f} s"
                    raise self._error(found, "one that is")
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
        if not _is_safe_to_read(parts.scheme, host):
            found = f"an address that begins with {parts.scheme}://"
        elif host.isprintable() and " " not in host:
            return host
    except ValueError:
        # The error's message has parts of the address, so it isn't shown.
        pass
    expected = "a file, or an address that begins with https:// and names a host"
    raise UsageError(f"--calendar: found {one_line(found)}, expected {expected}")


def _is_safe_to_read(scheme: str, host: str) -> bool:
    """Whether nobody between the host and this machine can read or change the calendar."""
    if scheme == "https":
        return bool(host)
    if scheme != "http":
        return False
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@dataclass(frozen=True, slots=True)
class CalendarOrder:
    """What somebody asks for with --calendar."""

    source: CalendarSource
    # The calendar's name, which its bookings carry.
    name: str
    # The zone of times without a zone, if the calendar names none either. "": those times are
    # faults.
    zone: str
    # None: from now on.
    first_day: date | None
    # None: a year from now.
    last_day: date | None
    # Whether the user chose the name. Otherwise two files may have the same one.
    is_named: bool = False

    def span(self, now: float) -> tuple[int, int]:
        """Unix times between which events are booked. Raises UsageError where there are none."""
        zone = read_zone(self.zone)
        since = int(now - PAST_SECONDS)
        until = int(now) + MOST_DAYS_AHEAD * DAY_SECONDS
        if self.first_day is not None:
            midnight = unix_time(datetime.combine(self.first_day, clock()), zone)
            since = max(since, midnight)
        if self.last_day is not None:
            until = unix_time(datetime.combine(self.last_day, clock(23, 59)), zone)
        if until > max(since, now):
            return since, until
        if self.last_day is None:
            expected = f"a day of the next {MOST_DAYS_AHEAD}, or --until with a day after it"
            raise UsageError(f"--from: found {self.first_day}, expected {expected}")
        expected = "a day to come that isn't before --from"
        raise UsageError(f"--until: found {self.last_day}, expected {expected}")
