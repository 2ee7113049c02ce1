"""Read bookings where hub admins write them: ConfigMaps of the release's namespace, and a calendar on the web.

Both are written by others than the operator: texts are short, shallow and without aliases, or refused, and one that is
refused takes nothing with it. The calendar is read by HTTPS alone, without redirects, within bounds of time and size;
while it can't be read, the last one counts.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any, Final

import urllib3
import yaml

from roost.controllers.contract.bookings import BookingSource
from roost.controllers.runtime.calendars import parse_calendar
from roost_core.placement.events import MOST_EVENTS, Event, parse_events
from roost_core.placement.settings_reader import Reader

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from roost_core.kube.client import JSONObject
    from roost_core.placement.events import Limits

log = logging.getLogger(__name__)

CONFIG_MAP, CALENDAR = "ConfigMap", "calendar"
EVENTS_KEY: Final = "events.yaml"
CALENDAR_SUFFIX: Final = ".ics"
# Of a key of a ConfigMap, and of the calendar on the web.
MOST_TEXT: Final = 128 * 1024
MOST_CALENDAR: Final = 4 * 2**20
MOST_DEPTH: Final = 10
# One Event or log line each.
MOST_FAULTS: Final = 20
MOST_FAULT_LETTERS: Final = 500
POLL_SECONDS: Final = 300.0
# For a connection, for each read, and in all.
CONNECT_SECONDS, READ_SECONDS, TOTAL_SECONDS = 10.0, 20.0, 60.0
_BLOCK: Final = 1 << 16


def read_config_map(item: JSONObject, limits: Limits) -> BookingSource:
    """Read a ConfigMap: its key events.yaml, and each key that ends with .ics. Raises nothing, whatever it holds."""
    metadata = item["metadata"]
    read = Reader()
    events: list[Event] = []
    try:
        events = _read_data(read, item.get("data") or {}, limits)
    except Exception as error:  # noqa: BLE001 - the watch would fail of it again and again, and no controller plan
        read.fault("data", type(error).__name__, "events that can be read")
    return _source(CONFIG_MAP, metadata["name"], metadata.get("uid") or "", events, read)


def _read_data(read: Reader, data: JSONObject, limits: Limits) -> list[Event]:
    events: list[Event] = []
    keys = [key for key in sorted(data) if key == EVENTS_KEY or key.endswith(CALENDAR_SUFFIX)]
    if not keys:
        read.fault("data", sorted(data)[:3] or None, f"a key {EVENTS_KEY}, or one that ends with {CALENDAR_SUFFIX}")
    for key in keys:
        text = str(data[key])
        if len(text) > MOST_TEXT:
            read.fault(key, f"{len(text)} characters", f"at most {MOST_TEXT}")
        elif key == EVENTS_KEY:
            events += parse_events(read, _load(read, text), EVENTS_KEY, limits)
        else:
            events += parse_calendar(read, text, key, limits)
    if len(events) > MOST_EVENTS:
        read.fault("data", len(events), f"at most {MOST_EVENTS} events; the first {MOST_EVENTS} count")
    return events[:MOST_EVENTS]


def _load(read: Reader, text: str) -> object:
    """Parse YAML; None after a fault."""
    fault = ""
    try:
        depth = 0
        # Without building anything: aliases would multiply, and depth overflow the stack.
        for event in yaml.parse(text, Loader=yaml.CSafeLoader):
            if isinstance(event, yaml.AliasEvent):
                fault = "an alias (*)"
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > MOST_DEPTH:
                fault = f"lists or mappings {depth} deep"
            if fault:
                break
        else:
            return yaml.load(text, Loader=yaml.CSafeLoader)
    except (yaml.YAMLError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        fault = f"invalid YAML{f' in line {mark.line + 1}' if mark is not None else ''}"
    read.fault(EVENTS_KEY, fault, "a list of events, like [{name: lecture, people: 120, …}]")
    return None


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
        pool: Any = None,  # noqa: ANN401 - urllib3.PoolManager, or a test's
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """on_change: called after a calendar with other bookings was read. pool: None means an own one."""
        self._url = url
        self._limits = limits
        self._on_change = on_change
        self._pool = urllib3.PoolManager(num_pools=1, retries=False) if pool is None else pool
        self._clock = clock
        self._source: BookingSource | None = None

    @property
    def source(self) -> BookingSource | None:
        """The last calendar that could be read; None: none yet."""
        return self._source

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
            events = parse_calendar(read, text, CALENDAR, self._limits)
        except Exception as error:  # noqa: BLE001 - whatever a server sends; the last calendar counts
            # The address may hold a secret token, and so may the library's message.
            why = str(error) if isinstance(error, CalendarError) else type(error).__name__
            log.warning("calendar not read: %s; %s", why, "the last one counts" if self._source else "it books nothing")
            return
        source = _source(CALENDAR, CALENDAR, "", list(events), read)
        if source == self._source:
            return
        self._source = source
        for fault in source.faults:
            log.warning("booking refused: %s", fault)
        log.info("calendar read events=%d faults=%d", len(events), read.count)
        self._on_change()

    def _fetch(self) -> str:
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
                raise CalendarError(f"HTTP status {response.status}, expected 200 (redirects are not followed)")
            encoding = response.headers.get("content-encoding", "identity").lower()
            if encoding != "identity":
                raise CalendarError(f"content-encoding {encoding[:20]!r}, expected none")
            content = b""
            # What has arrived, as it is: `read` would wait for a whole block, and unpack any number of bytes from it.
            while block := response.read1(_BLOCK, decode_content=False):
                content += block
                if len(content) > MOST_CALENDAR:
                    raise CalendarError(f"more than {MOST_CALENDAR // 2**20} MiB")
                if self._clock() > until:
                    raise CalendarError(f"not complete within {TOTAL_SECONDS:.0f} s")
            return content.decode("utf-8", "replace")
        finally:
            response.close()


class CalendarError(Exception):
    """A calendar can't be used; the text says why, without its address."""
