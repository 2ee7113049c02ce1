"""Read bookings where hub admins write them: ConfigMaps of the release's and of hubs' namespaces,
and a calendar.

Both are written by others than the operator: texts are short, shallow and without aliases, or
refused, and one that is refused takes nothing with it. They are bounded in number and bytes, and
all of them together in the time that reading takes. The calendar is read by HTTPS alone, without
redirects, within bounds of time and size; while it can't be read, the last one counts.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

import urllib3

from roost.controllers.contract.bookings import BookingSource
from roost.controllers.runtime.calendars import parse_calendar
from roost_core.objects.fields import JSONObject
from roost_core.placement.labels import EVENTS_KEY
from roost_core.release.events import MOST_EVENTS, Event, Limits, read_events
from roost_core.release.reader import Reader

log = logging.getLogger(__name__)

CONFIG_MAP, CALENDAR = "ConfigMap", "calendar"
CALENDAR_SUFFIX: Final = ".ics"
# Of a key of a ConfigMap, and of the calendar on the web.
MOST_TEXT: Final = 128 * 1024
MOST_CALENDAR: Final = 4 * 2**20
# Of all that a hub's ConfigMap holds, and events of it: there may be a hundred hubs.
MOST_OF_HUB: Final = 128 * 1024
MOST_EVENTS_OF_HUB: Final = 50
# ConfigMaps, and the characters of all of them.
MOST_CONFIG_MAPS: Final = 200
MOST_TEXT_IN_ALL: Final = 4 * 2**20
# Seconds a minute that reading bookings may take, all sources together; and how many of them must
# be left to begin with another ConfigMap, which is cut where they end. A large one of a hub takes a
# tenth of a second.
READING_SECONDS: Final = 5.0
LEAST_SECONDS: Final = 0.5
# An event that began so long ago is past.
PAST_SECONDS: Final = 86_400.0
# One Event or log line each.
MOST_FAULTS: Final = 20
MOST_FAULT_LETTERS: Final = 500
POLL_SECONDS: Final = 300.0
# For a connection, for each read, and in all.
CONNECT_SECONDS, READ_SECONDS, TOTAL_SECONDS = 10.0, 20.0, 60.0
_BLOCK: Final = 1 << 16


class ReadingTime:
    """What reading bookings may take: READING_SECONDS a minute, of all sources together.

    Safe from any thread.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._left = READING_SECONDS
        self._as_of = clock()

    @property
    def left(self) -> float:
        """Seconds that are left now."""
        with self._lock:
            return self._refill()

    @contextlib.contextmanager
    def spend(self) -> Iterator[Callable[[], bool]]:
        """Count the time of this block; what is yielded says whether it may go on."""
        began, left = self._clock(), self.left
        try:
            yield lambda: self._clock() - began < left
        finally:
            with self._lock:
                self._left = self._refill() - (self._clock() - began)

    def _refill(self) -> float:
        now = self._clock()
        self._left = min(READING_SECONDS, self._left + (now - self._as_of) * READING_SECONDS / 60.0)
        self._as_of = now
        return self._left


class BookingText(NamedTuple):
    """A ConfigMap that books events, as it came."""

    name: str
    uid: str
    # By key: events.yaml and calendars. Of a text that is too long, only how long it is.
    texts: Mapping[str, str | int]
    # Up to three others.
    other_keys: tuple[str, ...]
    # The namespace that it books for; "": the release's own.
    hub: str = ""
    # Characters of all that it holds.
    size: int = 0

    @property
    def length(self) -> int:
        """Characters of all its texts."""
        return sum(len(text) for text in self.texts.values() if isinstance(text, str))


def keep_config_map(item: JSONObject, hub: str = "") -> BookingText:
    """Keep what is read of a ConfigMap. Raises nothing, whatever it holds.

    hub: the namespace that it books for; "": the release's own.
    """
    texts: dict[str, str | int] = {}
    data = item.get("data") or {}
    size = sum(len(str(text)) for text in data.values())
    for key in sorted(data) if not hub or size <= MOST_OF_HUB else ():
        if key == EVENTS_KEY or key.endswith(CALENDAR_SUFFIX):
            text = str(data[key])
            texts[key] = text if len(text) <= MOST_TEXT else len(text)
    metadata = item["metadata"]
    others = tuple(sorted(data.keys() - texts.keys())[:3])
    return BookingText(metadata["name"], metadata.get("uid") or "", texts, others, hub, size)


class ConfigMapReader:
    """Reads ConfigMaps once each time that they change, as far as there is time.

    Belongs to one thread.
    """

    def __init__(
        self, limits: Limits, reading_time: ReadingTime, *, wall: Callable[[], float] = time.time
    ) -> None:
        self._limits = limits
        self._time = reading_time
        self._wall = wall
        # By key, the one that was read longest ago first.
        self._known: dict[str, tuple[BookingText, BookingSource]] = {}

    def sources(self, texts: Mapping[str, BookingText]) -> Sequence[BookingSource]:
        """Return what they book, by name.

        One that there was no time for yet counts as it was before, or later.
        """
        known = {key: self._known[key] for key in self._known if key in texts}
        new = [key for key in sorted(texts) if key not in known]
        length = 0
        within: set[str] = set()
        # Of hubs', those with little text first, so that no hub's much text costs another one its
        # little.
        for key in sorted(texts, key=lambda key: (texts[key].length if texts[key].hub else 0, key)):
            length += texts[key].length
            if len(within) < MOST_CONFIG_MAPS and length <= MOST_TEXT_IN_ALL:
                within.add(key)
        # Whoever writes theirs again and again comes after the others.
        for key in (*new, *[key for key in known if known[key][0] is not texts[key]]):
            if self._time.left < LEAST_SECONDS:
                log.warning(
                    "bookings are read later: reading took %.0f s of the last minute",
                    READING_SECONDS,
                )
                break
            known.pop(key, None)
            with self._time.spend() as may_go_on:
                known[key] = (
                    texts[key],
                    read_config_map(texts[key], self._limits, self._wall(), may_go_on),
                )
        self._known = known
        return [
            _source_of(texts[key], known.get(key)) if key in within else _beyond(texts[key])
            for key in sorted(texts)
        ]


def _source_of(text: BookingText, known: tuple[BookingText, BookingSource] | None) -> BookingSource:
    if known is None:
        return BookingSource(CONFIG_MAP, text.name, text.uid, (), hub=text.hub, is_unread=True)
    return known[1] if known[0] is text else replace(known[1], is_unread=True)


def _beyond(text: BookingText) -> BookingSource:
    fault = (
        f"data: found more beside the ConfigMaps that come before it, expected {MOST_CONFIG_MAPS}"
        f" with {MOST_TEXT_IN_ALL // 2**20} MiB in all."
    )
    return BookingSource(CONFIG_MAP, text.name, text.uid, (), (fault,), text.hub)


def read_config_map(
    text: BookingText,
    limits: Limits,
    now: float = 0.0,
    may_go_on: Callable[[], bool] = lambda: True,
) -> BookingSource:
    """Read a ConfigMap: its key events.yaml, and each key that ends with .ics. Raises nothing,
    whatever it holds.

    may_go_on: as of calendars.parse_calendar. A hub's ConfigMap that is too large, or that has too
    many events, is refused whole: one that is cut would book what its writer doesn't expect.
    """
    read = Reader()
    events: list[Event] = []
    try:
        events = _read_data(read, text, limits, now, may_go_on)
    except Exception as error:  # noqa: BLE001 - plans would fail of it again and again
        read.fault("data", type(error).__name__, "events that can be read")
    if text.hub and len(events) > MOST_EVENTS_OF_HUB:
        read.fault(
            "data",
            len(events),
            f"at most {MOST_EVENTS_OF_HUB} events of one hub; none of them counts",
        )
        events = []
    return replace(_source(CONFIG_MAP, text.name, text.uid, events, read), hub=text.hub)


def _read_data(
    read: Reader, kept: BookingText, limits: Limits, now: float, may_go_on: Callable[[], bool]
) -> list[Event]:
    events: list[Event] = []
    if kept.hub and kept.size > MOST_OF_HUB:
        read.fault(
            "data",
            f"{kept.size} characters",
            f"at most {MOST_OF_HUB} of one hub; none of its events counts",
        )
    elif not kept.texts:
        expected = f"a key {EVENTS_KEY}, or one that ends with {CALENDAR_SUFFIX}"
        read.fault("data", list(kept.other_keys) or None, expected)
    for key, text in kept.texts.items():
        if isinstance(text, int):
            read.fault(key, f"{text} characters", f"at most {MOST_TEXT}")
        elif key == EVENTS_KEY:
            events += read_events(read, text, limits)
        else:
            events += parse_calendar(
                read, text, key, limits, since=now - PAST_SECONDS, may_go_on=may_go_on
            )
    if len(events) > MOST_EVENTS:
        read.fault(
            "data", len(events), f"at most {MOST_EVENTS} events; the first {MOST_EVENTS} count"
        )
    return events[:MOST_EVENTS]


def _source(kind: str, name: str, uid: str, events: list[Event], read: Reader) -> BookingSource:
    # Faults quote keys and summaries, of any length.
    faults = tuple(str(fault)[:MOST_FAULT_LETTERS] for fault in read.faults[:MOST_FAULTS])
    return BookingSource(kind, name, uid, tuple(events), faults)


class CalendarFeed:
    """Polls one calendar. `run` belongs to one thread; `source` may be called from any."""

    def __init__(
        self,
        url: str,
        limits: Limits,
        *,
        on_change: Callable[[], None],
        reading_time: ReadingTime | None = None,
        pool: Any = None,  # noqa: ANN401 - urllib3.PoolManager, or a test's
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """on_change: called after a calendar with other bookings was read. None: an own one."""
        self._url = url
        self._limits = limits
        self._on_change = on_change
        self._pool = urllib3.PoolManager(num_pools=1, retries=False) if pool is None else pool
        self._clock = clock
        self._wall = wall
        self._time = reading_time or ReadingTime(clock)
        # The last calendar that could be read; None: none yet.
        self.source: BookingSource | None = None

    def run(self, stop: threading.Event) -> None:
        """Poll until `stop`."""
        while not stop.is_set():
            self.poll()
            stop.wait(POLL_SECONDS)

    def poll(self) -> None:
        """Read the calendar once; log what is wrong with it."""
        try:
            text = self._fetch()
            read = Reader()
            with self._time.spend() as may_go_on:
                since = self._wall() - PAST_SECONDS
                events = parse_calendar(
                    read, text, CALENDAR, self._limits, since=since, may_go_on=may_go_on
                )
        except Exception as error:  # noqa: BLE001 - whatever a server sends; the last calendar counts
            # The address may hold a secret token, and so may the library's message.
            why = str(error) if isinstance(error, CalendarError) else type(error).__name__
            log.warning(
                "calendar not read: %s; %s",
                why,
                "the last one counts" if self.source else "it books nothing",
            )
            return
        source = _source(CALENDAR, CALENDAR, "", list(events), read)
        if source == self.source:
            return
        self.source = source
        for fault in source.faults:
            log.warning("booking refused: %s", fault)
        log.info("calendar read events=%d faults=%d", len(events), read.count)
        self._on_change()

    def _fetch(self) -> str:
        if self._time.left <= 0:
            raise CalendarError(f"reading bookings took {READING_SECONDS:.0f} s of the last minute")
        until = self._clock() + TOTAL_SECONDS
        response = self._pool.request(
            "GET",
            self._url,
            preload_content=False,
            redirect=False,
            timeout=urllib3.Timeout(connect=CONNECT_SECONDS, read=READ_SECONDS),
            headers={"accept": "text/calendar", "user-agent": "roost"},
        )
        try:
            if response.status != 200:
                raise CalendarError(
                    f"HTTP status {response.status}, expected 200 (redirects are not followed)"
                )
            encoding = response.headers.get("content-encoding", "identity").lower()
            if encoding != "identity":
                raise CalendarError(f"content-encoding {encoding[:20]!r}, expected none")
            content = b""
            # What has arrived, as it is: `read` would wait for a whole block, and unpack any number
            # of bytes from it.
            while block := response.read1(_BLOCK, decode_content=False):
                content += block
                if len(content) > MOST_CALENDAR:
                    raise CalendarError(f"more than {MOST_CALENDAR // 2**20} MiB")
                if self._clock() > until:
                    raise CalendarError(f"not complete within {TOTAL_SECONDS:.0f} s")
            text = content.decode("utf-8", "replace")
            if "END:VCALENDAR" not in text.upper().rpartition("BEGIN:")[2]:
                raise CalendarError("it doesn't end with END:VCALENDAR, so a part may be missing")
            return text
        finally:
            response.close()


class CalendarError(Exception):
    """A calendar can't be used; the text says why, without its address."""
