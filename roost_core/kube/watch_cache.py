"""Keep a local copy of one kind of object, from an event stream.

As objects arrive, they are reduced to what the program needs: 5,000 complete nodes wouldn't fit
into the memory of a small pod.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from roost_core.kube.client import Client
from roost_core.kube.event_stream import EventStream, ListWatch, WatchEvent, WatchEventType
from roost_core.placement.beliefs import WATCHED_SECONDS

T = TypeVar("T")


class WatchCache(Generic[T]):
    """The objects of one path of the API, each as its `read` reduces it.

    `run` belongs to one thread. Everything else may be called from any thread.
    """

    def __init__(
        self,
        client: Client,
        list_watch: ListWatch[T],
        *,
        keeps_changes: bool = True,
        on_change: Callable[[], None] = lambda: None,
        is_minor: Callable[[T | None, T | None], bool] = lambda _before, _now: False,
        on_minor_change: Callable[[], None] = lambda: None,
        on_error: Callable[[str], None] = lambda _kind: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """on_change: called after each complete list, and after each change that isn't minor.

        is_minor: given an object before and now (None: absent), whether the change is minor. Then
        `on_minor_change` is called instead.

        keeps_changes: False if `take_changes` isn't used; changes that nobody takes would pile up.
        on_error: called with the kind after each failure. clock: monotonic seconds.
        """
        self.kind = list_watch.kind
        self._stream = EventStream(
            client, list_watch, self._apply, gapless=False, on_error=on_error, clock=clock
        )
        self._on_change = on_change
        self._is_minor = is_minor
        self._keeps_changes = keeps_changes
        self._on_minor_change = on_minor_change
        self._lock = threading.Lock()
        self._objects: dict[str, T] = {}
        self._changes: dict[str, T | None] = {}
        # Objects of the list that is being read.
        self._listed: dict[str, T] = {}
        # Whether a complete list has been read.
        self.synced = False

    @property
    def is_forbidden(self) -> bool:
        """Whether the last try was forbidden (RBAC), or the kind isn't served."""
        return self._stream.is_forbidden

    @property
    def fault(self) -> str:
        """Why the last try failed; "" if it didn't."""
        return self._stream.fault

    def age_seconds(self) -> float:
        """Seconds since the last message of the server, bookmarks included.

        Up to about a minute is normal.
        """
        return self._stream.age_seconds()

    @property
    def is_known(self) -> bool:
        """Whether the objects were listed, may still be read, and aren't out of date."""
        return self.synced and not self.is_forbidden and self.age_seconds() <= WATCHED_SECONDS

    def objects(self) -> Mapping[str, T]:
        """Return a copy of all objects."""
        with self._lock:
            return dict(self._objects)

    def take_changes(self) -> Mapping[str, T | None]:
        """Return the objects that changed since the last call, by `namespace/name` or name.

        None: the object is gone. Raises RuntimeError if the cache doesn't keep changes.
        """
        if not self._keeps_changes:
            raise RuntimeError(f"changes of {self.kind} aren't kept: add it with keeps_changes")
        with self._lock:
            changes = self._changes
            self._changes = {}
        return changes

    def give_back(self, changes: Mapping[str, T | None]) -> None:
        """Undo `take_changes` if its result could not be used; later changes take precedence."""
        with self._lock:
            self._changes = {**changes, **self._changes}

    def run(self, stop: threading.Event) -> None:
        """List, watch, resume and list again, until `stop`."""
        self._stream.run(stop)

    def _apply(self, event: WatchEvent) -> None:
        match event.change:
            case WatchEventType.LISTING:
                self._listed = {}
            case WatchEventType.LISTED:
                if event.item is not None:
                    self._listed[event.key] = event.item
            case WatchEventType.SYNCED:
                self._replace(self._listed)
            case WatchEventType.ADDED | WatchEventType.MODIFIED:
                self._set(event.key, event.item)
            case WatchEventType.DELETED:
                self._set(event.key, None)

    def _replace(self, objects: dict[str, T]) -> None:
        with self._lock:
            if self._keeps_changes:
                for key in self._objects.keys() - objects.keys():
                    self._changes[key] = None
                for key, item in objects.items():
                    if self._objects.get(key) != item:
                        self._changes[key] = item
            self._objects = objects
            self._listed = {}
        self.synced = True
        self._on_change()

    def _set(self, key: str, item: T | None) -> None:
        before = self._objects.get(key)
        # Most events of a node are heartbeats, and change nothing that is read.
        if before == item:
            return
        with self._lock:
            if item is None:
                self._objects.pop(key, None)
            else:
                self._objects[key] = item
            if self._keeps_changes:
                self._changes[key] = item
        if self._is_minor(before, item):
            self._on_minor_change()
        else:
            self._on_change()


def label_selector(labels: Mapping[str, str]) -> str:
    """Format labels for the API's `labelSelector` parameter."""
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
