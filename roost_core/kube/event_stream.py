"""Stream every change of one kind of object, in order: first a list, then a watch.

A stream resumes after a dropped watch, and lists again when the resourceVersion has expired (410).
It waits longer after each failure, and detects dead connections.

A gapless stream continues where an earlier run stopped. It says when changes were missed, or may
have happened earlier than they were read. Its consumer may be slow: nothing is read until the
consumer has processed the last event.

docs/decisions/0002-webhook-server.md says why kubernetes.informer isn't used.
"""

from __future__ import annotations

import logging
import random
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

import orjson

from roost_core.kube.client import NOT_FOUND, ApiError, Client, ClusterError
from roost_core.objects.fields import JSONObject

T = TypeVar("T")

log = logging.getLogger(__name__)
# Spreads the requests of replicas over time; no secret depends on it. The functions of `random`
# would share their state with other code, which may set its seed.
_SPREAD: Final = random.Random()  # noqa: S311

# Objects in a page of a list. While a page is parsed, admission reviews wait; 100 nodes take about
# 5 ms.
PAGE_OBJECTS: Final = 100
# The server ends a watch after this time, and a new watch resumes. So watches also spread over API
# servers that were restarted.
WATCH_SECONDS: Final = 300
# The server sends a bookmark every minute. After this time without one, the connection is dead.
SILENCE_SECONDS: Final = 150.0
# How long the first watch after a fault lasts. Its end shows that watching works; a bookmark would
# show it only after a minute.
RETURN_SECONDS: Final = 5
# How long a watch without bookmarks lasts: it ends before SILENCE_SECONDS. The server has no cache
# of Events, and so sends no bookmarks for them.
UNMARKED_WATCH_SECONDS: Final = 90
FIRST_BACKOFF_SECONDS: Final = 0.5
LAST_BACKOFF_SECONDS: Final = 30.0
# If a server or a proxy ends a watch sooner than this, without an event, the next waits longer.
SHORT_WATCH_SECONDS: Final = 1.0
# The watch is forbidden, or the API server doesn't serve the kind: device classes before 1.34.
_REFUSED: Final = (403, NOT_FOUND)
GONE: Final = 410
# If nothing was read for longer than this, changes may have happened much earlier than they are
# read.
LATE_SECONDS: Final = 1.0
# After this time without an event, no event is waiting to be read.
QUIET_SECONDS: Final = 30.0
# Why changes are lost, in words.
FORGOTTEN: Final = "the API server had forgotten what came after the last position"
RESTORED: Final = "it was restored from a backup, or is another one"


class WatchEventType(StrEnum):
    """What an event of a stream says."""

    # A list begins; objects deleted meanwhile aren't in it. `item` is None.
    LISTING = "listing"
    LISTED = "listed"
    # The list is complete. `item` is None.
    SYNCED = "synced"
    ADDED = "added"
    MODIFIED = "modified"
    DELETED = "deleted"
    # Nothing changed up to `version`. `item` is None.
    BOOKMARK = "bookmark"
    # Changes between the last version and the following list are lost. `item` says why.
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One event of a stream: a change, or where a list begins and ends."""

    kind: str
    change: WatchEventType
    # `namespace/name`, or the name; "" without an item.
    key: str
    # What the stream's `read` returned; None for changes without an object, and for objects that it
    # ignores.
    item: Any
    # resourceVersion from which to continue after this event.
    version: str
    # When the event was read; Unix time. The change happened then. If `is_late`, it happened at any
    # time since the last event.
    at: float = 0.0
    is_late: bool = False


_WATCHED: Final = {
    kind.name: kind
    for kind in (WatchEventType.ADDED, WatchEventType.MODIFIED, WatchEventType.DELETED)
}


@dataclass(frozen=True, slots=True)
class ListWatch(Generic[T]):
    """What is watched: a path of the API, and what is kept of each object there."""

    path: str
    # Called for each object as it arrives; None: the object is ignored.
    read: Callable[[JSONObject], T | None]
    _: KW_ONLY
    # A word for logs and metrics.
    kind: str
    label_selector: str = ""
    field_selector: str = ""
    # Whether the server sends a bookmark every minute; it does for all kinds but Events.
    has_bookmarks: bool = True

    @property
    def selectors(self) -> dict[str, str]:
        """The selectors that are set, by the API's names."""
        selectors = {"labelSelector": self.label_selector, "fieldSelector": self.field_selector}
        return {name: selector for name, selector in selectors.items() if selector}


class EventStream:
    """One kind of object. `run` belongs to one thread, which also calls `read` and `on_event`."""

    def __init__(
        self,
        client: Client,
        list_watch: ListWatch[Any],
        on_event: Callable[[WatchEvent], None],
        *,
        gapless: bool = True,
        position: str = "",
        on_error: Callable[[str], None] = lambda _kind: None,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """gapless: False for a consumer that needs only the present state; then no change is
        reported as lost or late.

        position: for gapless streams, the version where an earlier run stopped; "": there was none.
        on_error: called with the kind after each failure. clock: monotonic seconds. wall: Unix
        time.
        """
        self.kind = list_watch.kind
        self._client = client
        self._path = list_watch.path
        self._read = list_watch.read
        self._on_event = on_event
        self._selectors = list_watch.selectors
        self._is_gapless = gapless
        self._on_error = on_error
        self._watch_seconds = WATCH_SECONDS if list_watch.has_bookmarks else UNMARKED_WATCH_SECONDS
        self._has_bookmarks = list_watch.has_bookmarks
        self._clock = clock
        self._wall = wall
        self._version = position
        # Changes up to this version had happened before the stream began to listen, or to listen
        # again: they are late.
        self._late_until = 0
        # Whether a complete list has been read.
        self.is_listed = False
        # Why the changes after `_version` can't be read; "": they can.
        self._lost = ""
        # Why the last try failed; "" if it didn't.
        self.fault = ""
        # Whether the last try was forbidden (RBAC), or the kind isn't served.
        self.is_forbidden = False
        self._heard_at = clock()

    def age_seconds(self) -> float:
        """Seconds since the last message of the server, bookmarks included.

        Up to about a minute is normal.
        """
        return self._clock() - self._heard_at

    def run(self, stop: threading.Event) -> None:
        """List, watch and resume until `stop`. If the server forgot the position, list again."""
        backoff_seconds = FIRST_BACKOFF_SECONDS
        while not stop.is_set():
            try:
                if not self.is_listed:
                    self._list(stop)
                ended_well = self._watch(stop)
                if ended_well:
                    # A watch that ended at once, without an event, proves nothing.
                    backoff_seconds = FIRST_BACKOFF_SECONDS
                    continue
            except ClusterError as error:
                self._note_failure(error)
                is_position_gone = isinstance(error, ApiError) and error.status == GONE
                if is_position_gone and self.age_seconds() > LAST_BACKOFF_SECONDS:
                    # The API server answers again, and has only forgotten the position. The list
                    # that follows makes the age 0, so this doesn't happen again and again.
                    backoff_seconds = FIRST_BACKOFF_SECONDS
            except Exception as error:  # noqa: BLE001 - if the thread ended, its consumer would learn of no more changes
                self._doubt_position()
                self._note_failure(ClusterError(_unforeseen(error)))
            stop.wait(backoff_seconds * _SPREAD.uniform(0.5, 1.0))
            backoff_seconds = min(2 * backoff_seconds, LAST_BACKOFF_SECONDS)

    def _note_failure(self, error: ClusterError) -> None:
        status = error.status if isinstance(error, ApiError) else None
        if status != NOT_FOUND:
            self._on_error(self.kind)
        self.is_forbidden = status in _REFUSED
        if status == GONE:
            if self._version:
                self._send(WatchEventType.LOST, self._lost or FORGOTTEN)
            self._forget_position()
        fault = str(error)
        if fault != self.fault:
            self.fault = fault
            # A stream that isn't gapless needs no position, so a 410 is nothing to mend.
            is_usual = status == NOT_FOUND or (status == GONE and not self._is_gapless)
            level = logging.INFO if is_usual else logging.WARNING
            log.log(level, "watch broken kind=%s: %s", self.kind, fault)

    def _forget_position(self) -> None:
        self._version = ""
        self._lost = ""
        self.is_listed = False

    def _doubt_position(self) -> None:
        """Note that the position may be invalid: list again, unless the stream is gapless."""
        if not self._is_gapless:
            self._forget_position()

    def _send(self, change: WatchEventType, item: Any = None, key: str = "") -> None:  # noqa: ANN401 - see WatchEvent.item
        self._on_event(WatchEvent(self.kind, change, key, item, self._version, self._wall()))

    def _list(self, stop: threading.Event) -> None:
        """List all objects as they were at the position, so that the watch continues without a gap.

        Without a position, list them as they are now.
        """
        query: dict[str, str | int | bool] = {**self._selectors, "limit": PAGE_OBJECTS}
        if self._version:
            self._find_late_version()
            query |= {"resourceVersion": self._version, "resourceVersionMatch": "Exact"}
        page = self._client.get(self._path, query)
        # A list whose first page fails sends no event.
        self._send(WatchEventType.LISTING)
        while not stop.is_set():
            metadata = page.get("metadata") or {}
            for item in page.get("items") or ():
                self._send(WatchEventType.LISTED, self._read(item), object_key(item))
            token = metadata.get("continue")
            if not token:
                self._version = str(metadata.get("resourceVersion") or "")
                self.is_listed = True
                self._note_life()
                self._send(WatchEventType.SYNCED)
                return
            page = self._client.get(
                self._path, {**self._selectors, "limit": PAGE_OBJECTS, "continue": token}
            )

    def _watch(self, stop: threading.Event) -> bool:
        """Watch until the server ends it; False if it did so at once and without an event."""
        opened_at = self._clock()
        had_events = False
        seconds = self._watch_seconds + _SPREAD.randrange(self._watch_seconds // 2)
        if self._is_gapless:
            self._find_late_version()
        elif self.fault:
            seconds = RETURN_SECONDS
        query: dict[str, str | int | bool] = {
            **self._selectors,
            "watch": True,
            "allowWatchBookmarks": True,
        }
        query |= {"resourceVersion": self._version, "timeoutSeconds": seconds}
        version_before = self._late_until
        last_event_at = self._clock()
        for line in self._client.lines(self._path, query, SILENCE_SECONDS):
            if stop.is_set():
                return True
            self._handle(line)
            had_events = True
            last_event_at = self._clock()
        ended_well = had_events or self._clock() - opened_at >= SHORT_WATCH_SECONDS
        if self._is_gapless:
            if not self._has_bookmarks and self._clock() - last_event_at >= QUIET_SECONDS:
                self._send_own_bookmark(version_before)
        elif ended_well:
            # For a kind without bookmarks and changes, the end of a watch is the only sign of life.
            self._note_life()
        return ended_well

    def _send_own_bookmark(self, version: int) -> None:
        """Send a bookmark that says that all changes up to this version have been read.

        version: the server's version before a watch that ended well, and whose last seconds brought
        no event. Without the bookmark, the position of a kind that seldom changes would expire on
        the server.
        """
        self._note_life()
        if version > _number(self._version):
            self._version = str(version)
            self._send(WatchEventType.BOOKMARK)

    def _handle(self, line: bytes) -> None:
        try:
            event = orjson.loads(line)
            change = event["type"]
            item = event["object"]
        except (ValueError, KeyError, TypeError):
            self._doubt_position()
            raise ClusterError("the watch sent something that is not an event") from None
        if change == "ERROR":
            self._doubt_position()
            raise ApiError(int(item.get("code") or 0), f"watch ended: {item.get('reason')}")
        began_at = self._clock()
        version = str(item["metadata"]["resourceVersion"])
        if change == "BOOKMARK":
            self._version = version
            self._note_life()
            self._send(WatchEventType.BOOKMARK)
        elif 0 < _number(version) <= _number(self._version) and not self._is_gapless:
            # The change was already read, in a newer version of the object.
            self._note_life()
        elif change in _WATCHED:
            read = self._read(item)
            is_late = _number(version) <= self._late_until
            # After `read`: a stream that fails again and again at the same line must count as old.
            self._note_life()
            # The event has its own version: a consumer that stored the event continues after it.
            self._on_event(
                WatchEvent(
                    self.kind,
                    _WATCHED[change],
                    object_key(item),
                    read,
                    version,
                    self._wall(),
                    is_late,
                )
            )
            self._version = version
            if self._is_gapless and self._clock() - began_at > LATE_SECONDS:
                # The consumer was slow, and messages of the server are waiting to be read.
                self._find_late_version()

    def _find_late_version(self) -> None:
        """Read the server's present version: changes up to it are late.

        Raises ApiError if it is older than the position. A list without a version is never older
        than what the server has sent, so the server lost data. A watch from a version in the future
        would miss the changes before it.
        """
        metadata = self._client.get(self._path, {"limit": 1}).get("metadata") or {}
        version = _number(str(metadata.get("resourceVersion") or ""))
        self._late_until = version
        if 0 < version < _number(self._version):
            self._lost = (
                f"the API server stood at {version}, before the last position {self._version}:"
                f" {RESTORED}"
            )
            raise ApiError(GONE, self._lost)

    def _note_life(self) -> None:
        """Note that the server sent something readable, so the last fault is over."""
        self._heard_at = self._clock()
        if self.fault:
            log.info("watch works again kind=%s", self.kind)
            self.fault = ""
        self.is_forbidden = False


def object_key(item: JSONObject) -> str:
    """`namespace/name`, or the name of an object without a namespace."""
    metadata = item["metadata"]
    namespace = metadata.get("namespace")
    return f"{namespace}/{metadata['name']}" if namespace else str(metadata["name"])


def _number(version: str) -> int:
    """A resourceVersion as a number; 0 for anything else.

    Kubernetes promises that resourceVersions of a kind can be compared as numbers.
    """
    return int(version) if version.isdigit() else 0


def _unforeseen(error: Exception) -> str:
    """Describe an unexpected error in one line: what it is, and where."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    return (
        f"unforeseen {type(error).__name__}: {error} ({Path(place.filename).name}:{place.lineno})"
    )
