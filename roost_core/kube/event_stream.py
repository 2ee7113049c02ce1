"""Stream every change of one kind of object, in order, by list-then-watch.

Resumes after a dropped watch, lists again when the resourceVersion has expired (410), waits longer
after each failure, and detects dead connections. A gapless stream continues where an earlier run
stopped, and says when changes were missed or may have happened earlier than they were read. Its
consumer may be slow: nothing more is read until it has processed what it was given.
(docs/decisions/0002-webhook-server.md says why not kubernetes.informer.)
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
# Spreads replicas, keeps no secret. Of our own: the module's is whoever seeds it, and no other
# thread may move it on.
_SPREAD: Final = random.Random()  # noqa: S311


# Objects a page: parsing a page holds the interpreter, and admission reviews wait. 100 nodes take
# about 5 ms.
PAGE_OBJECTS: Final = 100
# The server ends a watch after this long, and we resume: spreads load over API servers that were
# restarted.
WATCH_SECONDS: Final = 300
# The server sends a bookmark a minute; after more than two minutes without, the connection is dead.
SILENCE_SECONDS: Final = 150.0
# The first watch after a fault: its end tells at once that nothing changed, which a bookmark would
# after a minute.
RETURN_SECONDS: Final = 5
# Events come without bookmarks: the server has no cache of them. Their watches end well before
# silence means anything.
UNMARKED_WATCH_SECONDS: Final = 90
FIRST_BACKOFF_SECONDS: Final = 0.5
LAST_BACKOFF_SECONDS: Final = 30.0
# A server (or a proxy) that ends watches sooner, without an event, is asked less and less often.
SHORT_WATCH_SECONDS: Final = 1.0
# Forbidden; or a kind that the API server doesn't serve, such as device classes before 1.34.
_REFUSED: Final = (403, NOT_FOUND)
GONE: Final = 410
# After this long without reading, changes may have happened much earlier than they are read.
LATE_SECONDS: Final = 1.0
# After this long without an event, there is none waiting.
QUIET_SECONDS: Final = 30.0
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
    # resourceVersion from which to continue after this.
    version: str
    # Unix time when it was read; it happened then or, if `is_late`, at any time since the last
    # event.
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
        """gapless: False for a consumer that only needs the present state; then no change is
        reported as lost or late.

        position: the version where an earlier run stopped, "" if there was none; for gapless
        streams.
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
        # What has happened up to this version had happened when we began to listen (again).
        self._late_until = 0
        # Whether a complete list has been read.
        self.is_listed = False
        # Why what comes after `_version` can't be had; "" as long as it can.
        self._lost = ""
        # Why the last try failed; "" if it didn't.
        self.fault = ""
        # Whether the last try was forbidden (RBAC), or the kind isn't served.
        self.is_forbidden = False
        self._heard_at = clock()

    def age_seconds(self) -> float:
        """Seconds since the last message of the server, including bookmarks: up to about a minute
        is normal.
        """
        return self._clock() - self._heard_at

    def run(self, stop: threading.Event) -> None:
        """List, watch, resume and, where the server has forgotten, list again, until `stop`."""
        backoff_seconds = FIRST_BACKOFF_SECONDS
        while not stop.is_set():
            try:
                if not self.is_listed:
                    self._list(stop)
                if self._watch(stop):
                    # Only a watch that ended well, and not at once, proves that watching works.
                    backoff_seconds = FIRST_BACKOFF_SECONDS
                    continue
            except ClusterError as error:
                self._note_failure(error)
                if (
                    isinstance(error, ApiError)
                    and error.status == GONE
                    and self.age_seconds() > LAST_BACKOFF_SECONDS
                ):
                    # The API server answers again, and has only forgotten our place. A list is a
                    # sign of life, so this happens once.
                    backoff_seconds = FIRST_BACKOFF_SECONDS
            except Exception as error:  # noqa: BLE001 - whatever it is: a thread that ends leaves a consumer that is deaf
                self._doubt()
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
            self._forget_place()
        fault = str(error)
        if fault != self.fault:
            self.fault = fault
            # Without a place to keep, 410 is how a watch that slept too long ends: nothing to mend.
            is_usual = status == NOT_FOUND or (status == GONE and not self._is_gapless)
            level = logging.INFO if is_usual else logging.WARNING
            log.log(level, "watch broken kind=%s: %s", self.kind, fault)

    def _forget_place(self) -> None:
        self._version = self._lost = ""
        self.is_listed = False

    def _doubt(self) -> None:
        """The position may be invalid: list again, unless the stream is gapless."""
        if not self._is_gapless:
            self._forget_place()

    def _send(self, change: WatchEventType, item: Any = None, key: str = "") -> None:  # noqa: ANN401 - see WatchEvent.item
        self._on_event(WatchEvent(self.kind, change, key, item, self._version, self._wall()))

    def _list(self, stop: threading.Event) -> None:
        """List everything, as of the position, so that the watch can continue from there without a
        gap.
        """
        query: dict[str, str | int | bool] = {**self._selectors, "limit": PAGE_OBJECTS}
        if self._version:
            self._find_late()
            query |= {"resourceVersion": self._version, "resourceVersionMatch": "Exact"}
        page = self._client.get(self._path, query)
        # Only now: a failed list sends no event.
        self._send(WatchEventType.LISTING)
        while not stop.is_set():
            metadata = page.get("metadata") or {}
            for item in page.get("items") or ():
                self._send(WatchEventType.LISTED, self._read(item), object_key(item))
            token = metadata.get("continue")
            if not token:
                self._version = str(metadata.get("resourceVersion") or "")
                self.is_listed = True
                self._hear()
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
            self._find_late()
        elif self.fault:
            seconds = RETURN_SECONDS
        query: dict[str, str | int | bool] = {
            **self._selectors,
            "watch": True,
            "allowWatchBookmarks": True,
        }
        query |= {"resourceVersion": self._version, "timeoutSeconds": seconds}
        before = self._late_until
        listens_since = self._clock()
        for line in self._client.lines(self._path, query, SILENCE_SECONDS):
            if stop.is_set():
                return True
            self._handle(line)
            had_events = True
            listens_since = self._clock()
        ended_well = had_events or self._clock() - opened_at >= SHORT_WATCH_SECONDS
        if self._is_gapless:
            if not self._has_bookmarks and self._clock() - listens_since >= QUIET_SECONDS:
                self._mark(before)
        elif ended_well:
            # Without bookmarks this is all that is heard of a kind that doesn't change.
            self._hear()
        return ended_well

    def _mark(self, version: int) -> None:
        """Send a bookmark of our own: all changes up to this version have been read.

        It is the server's version before a watch that ended well and whose last seconds brought
        nothing. Without it, the position of a kind that seldom changes would expire on the server.
        """
        self._hear()
        if version > _number(self._version):
            self._version = str(version)
            self._send(WatchEventType.BOOKMARK)

    def _handle(self, line: bytes) -> None:
        try:
            event = orjson.loads(line)
            change = event["type"]
            item = event["object"]
        except (ValueError, KeyError, TypeError):
            self._doubt()
            raise ClusterError("the watch sent something that is not an event") from None
        if change == "ERROR":
            self._doubt()
            raise ApiError(int(item.get("code") or 0), f"watch ended: {item.get('reason')}")
        began_at = self._clock()
        version = str(item["metadata"]["resourceVersion"])
        if change == "BOOKMARK":
            self._version = version
            self._hear()
            self._send(WatchEventType.BOOKMARK)
        elif 0 < _number(version) <= _number(self._version) and not self._is_gapless:
            # The change comes again, or late: what is known is newer.
            self._hear()
        elif change in _WATCHED:
            read = self._read(item)
            is_late = _number(version) <= self._late_until
            # Only what can be read was heard: a stream that fails of the same line again and again
            # grows old.
            self._hear()
            # WatchEvent with its own version: whoever stores it may go on after it.
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
                self._find_late()

    def _find_late(self) -> None:
        """Read the present version: changes up to it are late. Raises ApiError if it is behind
        ours.

        A list without a version is never older than anything the server has sent. A watch from a
        future version would send nothing until then, and miss the changes before it.
        """
        metadata = self._client.get(self._path, {"limit": 1}).get("metadata") or {}
        version = self._late_until = _number(str(metadata.get("resourceVersion") or ""))
        if 0 < version < _number(self._version):
            self._lost = (
                f"the API server stood at {version}, before the last position {self._version}:"
                f" {RESTORED}"
            )
            raise ApiError(GONE, self._lost)

    def _hear(self) -> None:
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
    """A resourceVersion as a number (Kubernetes says they can be compared); 0 for anything else."""
    return int(version) if version.isdigit() else 0


def _unforeseen(error: Exception) -> str:
    """Describe an unexpected error in one line: what it is, and where."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    return (
        f"unforeseen {type(error).__name__}: {error} ({Path(place.filename).name}:{place.lineno})"
    )
