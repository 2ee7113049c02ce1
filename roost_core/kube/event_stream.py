"""Tell every change of one kind of object, in order, from where an earlier run stopped, and say when some were missed.

Unlike a watch cache it folds nothing together: a pod that came and went within a second is told of as often as the API
server tells of it. Its consumer may be slow: nothing more is read until it has taken what it was given.
"""

from __future__ import annotations

import logging
import random
import time
import traceback
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import orjson

from roost_core.kube.client import ApiError, ClusterError
from roost_core.kube.watch_cache import (
    FIRST_BACKOFF_SECONDS,
    GONE,
    LAST_BACKOFF_SECONDS,
    PAGE_OBJECTS,
    SHORT_WATCH_SECONDS,
    SILENCE_SECONDS,
    UNMARKED_WATCH_SECONDS,
    WATCH_SECONDS,
    object_key,
)

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from roost_core.kube.client import Client, JSONObject

log = logging.getLogger(__name__)


class Change(StrEnum):
    """What a stream tells."""

    # A list begins; what went meanwhile isn't in it. `item` is None.
    LISTING = "listing"
    LISTED = "listed"
    # The list is whole. `item` is None.
    SYNCED = "synced"
    ADDED = "added"
    MODIFIED = "modified"
    DELETED = "deleted"
    # Nothing changed up to `version`. `item` is None.
    BOOKMARK = "bookmark"
    # What was between the last version and the list that follows can't be had. `item` is why, in words.
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class Told:
    """One thing told by a stream."""

    kind: str
    change: Change
    # `namespace/name`, or the name; "" without an item.
    key: str
    # What the stream's `read` made of the object; None for changes without one, and for objects it doesn't want.
    item: Any
    # resourceVersion from which to go on after this.
    version: str
    # Seconds since the epoch when it was read; it happened then, or, when `is_late`, at any time since the last one.
    at: float = 0.0
    is_late: bool = False


# Whoever took nothing for so long, or heard nothing, may be told of what happened long before.
LATE_SECONDS: Final = 1.0
# A server that had something to say would have said it by now.
QUIET_SECONDS: Final = 30.0
FORGOTTEN: Final = "the API server had forgotten what came after the last position"
RESTORED: Final = "it was restored from a backup, or is another one"
_WATCHED: Final = {"ADDED": Change.ADDED, "MODIFIED": Change.MODIFIED, "DELETED": Change.DELETED}


class EventStream:
    """One kind of object. `run` belongs to one thread, which also calls `read` and `tell`."""

    def __init__(
        self,
        client: Client,
        path: str,
        kind: str,
        read: Callable[[JSONObject], Any],
        tell: Callable[[Told], None],
        *,
        position: str = "",
        has_bookmarks: bool = True,
        on_error: Callable[[str], None] = lambda _kind: None,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """Prepare. position: the version where an earlier run stopped; "": there was none.

        has_bookmarks: whether the server tells every minute that nothing happened; it does for all kinds but Events.
        """
        self.kind = kind
        self._client = client
        self._path = path
        self._read = read
        self._tell = tell
        self._on_error = on_error
        self._watch_seconds = WATCH_SECONDS if has_bookmarks else UNMARKED_WATCH_SECONDS
        self._has_bookmarks = has_bookmarks
        self._clock = clock
        self._wall = wall
        self._version = position
        # What has happened up to this version had happened when we began to listen (again).
        self._late_until = 0
        self._is_listed = False
        # Why what comes after `_version` can't be had; "" as long as it can.
        self._lost = ""
        self._fault = ""
        self._heard_at = clock()

    @property
    def is_listed(self) -> bool:
        """Whether a whole list has been told."""
        return self._is_listed

    @property
    def fault(self) -> str:
        """What the last try failed of; "" while all is well."""
        return self._fault

    def age_seconds(self) -> float:
        """Seconds since the server was last heard of."""
        return self._clock() - self._heard_at

    def run(self, stop: threading.Event) -> None:
        """List, watch, resume and, where the server has forgotten, list again, until `stop`."""
        backoff_seconds = FIRST_BACKOFF_SECONDS
        while not stop.is_set():
            try:
                if not self._is_listed:
                    self._list(stop)
                if self._watch(stop):
                    backoff_seconds = FIRST_BACKOFF_SECONDS
                    continue
            except ClusterError as error:
                self._note_failure(error)
            except Exception as error:  # noqa: BLE001 - whatever it is: a thread that ends leaves a consumer that is deaf
                self._note_failure(ClusterError(_unforeseen(error)))
            stop.wait(backoff_seconds * random.uniform(0.5, 1.0))  # noqa: S311 - spreads load, keeps no secret
            backoff_seconds = min(2 * backoff_seconds, LAST_BACKOFF_SECONDS)

    def _note_failure(self, error: ClusterError) -> None:
        self._on_error(self.kind)
        if isinstance(error, ApiError) and error.status == GONE:
            if self._version:
                self._say(Change.LOST, self._lost or FORGOTTEN)
            self._version = self._lost = ""
            self._is_listed = False
        fault = str(error)
        if fault != self._fault:
            self._fault = fault
            log.warning("stream broken kind=%s: %s", self.kind, fault)

    def _say(self, change: Change, item: Any = None, key: str = "") -> None:  # noqa: ANN401 - see Told.item
        self._tell(Told(self.kind, change, key, item, self._version, self._wall()))

    def _list(self, stop: threading.Event) -> None:
        """Tell of everything: as it was at the position, so that the watch can go on from there without a hole."""
        query: dict[str, str | int | bool] = {"limit": PAGE_OBJECTS}
        if self._version:
            self._find_late()
            query |= {"resourceVersion": self._version, "resourceVersionMatch": "Exact"}
        page = self._client.get(self._path, query)
        # Only now: a list that can't be had tells nothing.
        self._say(Change.LISTING)
        while not stop.is_set():
            metadata = page.get("metadata") or {}
            for item in page.get("items") or ():
                self._say(Change.LISTED, self._read(item), object_key(item))
            token = metadata.get("continue")
            if not token:
                self._version = str(metadata.get("resourceVersion") or "")
                self._is_listed = True
                self._hear()
                self._say(Change.SYNCED)
                return
            page = self._client.get(self._path, {"limit": PAGE_OBJECTS, "continue": token})

    def _watch(self, stop: threading.Event) -> bool:
        """Watch until the server ends it; False when it did so at once and without a word."""
        opened_at = self._clock()
        was_told = False
        self._find_late()
        query: dict[str, str | int | bool] = {
            "watch": True,
            "allowWatchBookmarks": True,
            "resourceVersion": self._version,
            "timeoutSeconds": self._watch_seconds + random.randrange(self._watch_seconds // 2),  # noqa: S311 - as above
        }
        before, listens_since = self._late_until, self._clock()
        for line in self._client.lines(self._path, query, SILENCE_SECONDS):
            if stop.is_set():
                return True
            self._handle(line)
            was_told = True
            listens_since = self._clock()
        if not self._has_bookmarks and self._clock() - listens_since >= QUIET_SECONDS:
            self._mark(before)
        return was_told or self._clock() - opened_at >= SHORT_WATCH_SECONDS

    def _mark(self, version: int) -> None:
        """Say that all up to this version was told, in the place of a bookmark.

        It is what the server stood at before a watch that ended well, and in whose last seconds we listened and nothing
        came. Without it the position of a quiet kind would grow old, until the server has forgotten what is after it.
        """
        self._hear()
        if version > _number(self._version):
            self._version = str(version)
            self._say(Change.BOOKMARK)

    def _handle(self, line: bytes) -> None:
        try:
            event = orjson.loads(line)
            change, item = event["type"], event["object"]
        except (ValueError, KeyError, TypeError):
            raise ClusterError("the watch sent something that is no event") from None
        if change == "ERROR":
            raise ApiError(int(item.get("code") or 0), f"watch ended: {item.get('reason')}")
        began_at = self._clock()
        version = str(item["metadata"]["resourceVersion"])
        if change == "BOOKMARK":
            self._version = version
            self._hear()
            self._say(Change.BOOKMARK)
        elif change in _WATCHED:
            read = self._read(item)
            is_late = _number(version) <= self._late_until
            # Only what can be read was heard: a stream that fails of the same line again and again grows old.
            self._hear()
            # Told with its own version: whoever stores it may go on after it.
            self._tell(Told(self.kind, _WATCHED[change], object_key(item), read, version, self._wall(), is_late))
            self._version = version
            if self._clock() - began_at > LATE_SECONDS:
                # Its consumer took its time, and what the server said meanwhile waits to be read.
                self._find_late()

    def _find_late(self) -> None:
        """Ask what the version is now: changes up to it are told late. Raises ApiError when it is behind ours.

        A list without a version is never older than what the server has told anybody. A watch from a version that is
        still to come would be silent until then, and after that tell of changes as if there had been none before.
        """
        metadata = self._client.get(self._path, {"limit": 1}).get("metadata") or {}
        version = self._late_until = _number(str(metadata.get("resourceVersion") or ""))
        if 0 < version < _number(self._version):
            self._lost = f"the API server stood at {version}, before the last position {self._version}: {RESTORED}"
            raise ApiError(GONE, self._lost)

    def _hear(self) -> None:
        self._heard_at = self._clock()
        if self._fault:
            log.info("stream works again kind=%s", self.kind)
            self._fault = ""


def _number(version: str) -> int:
    """A resourceVersion as a number (Kubernetes says they can be compared); 0 for anything else."""
    return int(version) if version.isdigit() else 0


def _unforeseen(error: Exception) -> str:
    """A fault that nobody thought of, in one line: what it is, and where."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    return f"unforeseen {type(error).__name__}: {error} ({Path(place.filename).name}:{place.lineno})"
