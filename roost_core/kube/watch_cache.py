"""Keep a local copy of one kind of object, by list-then-watch, reduced to what its reader needs.

Resumes after a dropped watch, lists again when the server has forgotten where we were (410), waits longer after each
failure, and notices a connection that died silently. Objects are reduced as they arrive: 5,000 whole nodes would not
fit into a small pod. (docs/decisions/0002-webhook-server.md says why not kubernetes.informer.)
"""

from __future__ import annotations

import logging
import random
import threading
import time
from typing import TYPE_CHECKING, Final, Generic, TypeVar

import orjson

from roost_core.kube.client import ApiError, ClusterError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from roost_core.kube.client import Client, JSONObject

log = logging.getLogger(__name__)

T = TypeVar("T")

# Objects a page: parsing a page holds the interpreter, and reviews wait for it. 100 nodes are some 5 ms.
PAGE_OBJECTS: Final = 100
# The server ends a watch after this long, and we resume: spreads load over API servers that were restarted.
WATCH_SECONDS: Final = 300
# The server sends a bookmark a minute; silence of more than two means that the connection is dead.
SILENCE_SECONDS: Final = 150.0
# Events come without bookmarks: the server has no cache of them. Their watches end well before silence means anything.
UNMARKED_WATCH_SECONDS: Final = 90
FIRST_BACKOFF_SECONDS: Final = 0.5
LAST_BACKOFF_SECONDS: Final = 30.0
# A server (or a proxy before it) that ends watches sooner, without an event, is asked ever more seldom.
SHORT_WATCH_SECONDS: Final = 1.0
GONE: Final = 410


class WatchCache(Generic[T]):
    """The objects of one list path; `read` reduces each, or returns None for those that don't matter.

    `run` belongs to one thread; all else may be called from any.
    """

    def __init__(
        self,
        client: Client,
        path: str,
        read: Callable[[JSONObject], T | None],
        *,
        kind: str,
        label_selector: str = "",
        field_selector: str = "",
        has_bookmarks: bool = True,
        keeps_changes: bool = True,
        on_change: Callable[[], None] = lambda: None,
        is_minor: Callable[[T | None, T | None], bool] = lambda _before, _now: False,
        on_minor_change: Callable[[], None] = lambda: None,
        on_error: Callable[[str], None] = lambda _kind: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare. `kind` is a word for logs and metrics; `on_change` is told that `take_changes` has something.

        is_minor: given an object before and now (None: none), tells that `on_minor_change` is to be told instead.
        keeps_changes: False for readers of `objects` alone; changes that nobody takes would pile up.
        has_bookmarks: whether the server tells every minute that nothing happened; it does for all kinds but Events.
        """
        self.kind = kind
        self._client = client
        self._path = path
        self._read = read
        selectors = {"labelSelector": label_selector, "fieldSelector": field_selector}
        self._query: dict[str, str | int | bool] = {name: text for name, text in selectors.items() if text}
        self._on_change = on_change
        self._is_minor = is_minor
        self._keeps_changes = keeps_changes
        self._on_minor_change = on_minor_change
        self._watch_seconds = WATCH_SECONDS if has_bookmarks else UNMARKED_WATCH_SECONDS
        self._on_error = on_error
        self._clock = clock
        self._lock = threading.Lock()
        self._objects: dict[str, T] = {}
        self._changes: dict[str, T | None] = {}
        self._synced = False
        self._fault = ""
        self._is_forbidden = False
        self._heard_at = clock()
        self._version: str | None = None

    @property
    def synced(self) -> bool:
        """Whether a whole list has arrived at least once."""
        return self._synced

    @property
    def is_forbidden(self) -> bool:
        """Whether the last try was refused for want of rights."""
        return self._is_forbidden

    @property
    def fault(self) -> str:
        """What the last try failed of; "" while all is well."""
        return self._fault

    def age_seconds(self) -> float:
        """Seconds since the server was last heard of, bookmarks counted: up to a minute or so is normal."""
        return self._clock() - self._heard_at

    def objects(self) -> Mapping[str, T]:
        """Return a copy of all objects."""
        with self._lock:
            return dict(self._objects)

    def take_changes(self) -> Mapping[str, T | None]:
        """Return what changed since the last call, by `namespace/name` or name; None: it is gone."""
        with self._lock:
            changes, self._changes = self._changes, {}
        return changes

    def give_back(self, changes: Mapping[str, T | None]) -> None:
        """Undo `take_changes`, whose result could not be used; what has changed since stays newer."""
        with self._lock:
            self._changes = {**changes, **self._changes}

    def run(self, stop: threading.Event) -> None:
        """List, watch, resume and list again, until `stop`."""
        backoff_seconds = FIRST_BACKOFF_SECONDS
        while not stop.is_set():
            try:
                if self._version is None:
                    self._list()
                if self._watch(stop):
                    # Only a watch that ended well, and not at once, proves that all is well.
                    backoff_seconds = FIRST_BACKOFF_SECONDS
                    continue
            except ClusterError as error:
                self._note_failure(error)
            except Exception:  # a fault of the reader must not end the watch: facts would be frozen unnoticed
                log.exception("watch failed kind=%s", self.kind)
                self._version = None
                self._on_error(self.kind)
            stop.wait(backoff_seconds * random.uniform(0.5, 1.0))  # noqa: S311 - spreads replicas, keeps no secret
            backoff_seconds = min(2 * backoff_seconds, LAST_BACKOFF_SECONDS)

    def _note_failure(self, error: ClusterError) -> None:
        status = error.status if isinstance(error, ApiError) else None
        if status == GONE:
            self._version = None
        self._is_forbidden = status == 403
        self._on_error(self.kind)
        fault = str(error)
        if fault != self._fault:
            self._fault = fault
            # 410 is how a watch that slept too long ends: nothing to mend.
            log.log(logging.INFO if status == GONE else logging.WARNING, "watch broken kind=%s: %s", self.kind, fault)

    def _list(self) -> None:
        found: dict[str, T] = {}
        query = {**self._query, "limit": PAGE_OBJECTS}
        while True:
            page = self._client.get(self._path, query)
            for item in page.get("items") or ():
                read = self._read(item)
                if read is not None:
                    found[object_key(item)] = read
            metadata = page.get("metadata") or {}
            if not metadata.get("continue"):
                break
            query["continue"] = metadata["continue"]
        with self._lock:
            if self._keeps_changes:
                for key in self._objects.keys() - found.keys():
                    self._changes[key] = None
                for key, read in found.items():
                    if self._objects.get(key) != read:
                        self._changes[key] = read
            self._objects = found
        self._version = str(metadata.get("resourceVersion") or "")
        self._hear()
        self._synced = True
        self._on_change()

    def _watch(self, stop: threading.Event) -> bool:
        """Watch until the server ends it; False when it did so at once and without a word."""
        opened_at = self._clock()
        was_told = False
        query = {
            **self._query,
            "watch": True,
            "allowWatchBookmarks": True,
            "resourceVersion": self._version or "",
            "timeoutSeconds": self._watch_seconds + random.randrange(self._watch_seconds // 2),  # noqa: S311 - as above
        }
        for line in self._client.lines(self._path, query, SILENCE_SECONDS):
            if stop.is_set():
                break
            self._handle(line)
            was_told = True
        ended_well = was_told or self._clock() - opened_at >= SHORT_WATCH_SECONDS
        if ended_well:
            # Without bookmarks this is all that is heard of a kind that doesn't change.
            self._hear()
        return ended_well

    def _handle(self, line: bytes) -> None:
        try:
            event = orjson.loads(line)
            kind, item = event["type"], event["object"]
        except (ValueError, KeyError, TypeError):
            self._version = None
            raise ClusterError("the watch sent something that is no event") from None
        if kind == "ERROR":
            # Whatever it is, where we stood is in doubt.
            self._version = None
            raise ApiError(int(item.get("code") or 0), f"watch ended: {item.get('reason')}")
        self._hear()
        self._version = item["metadata"]["resourceVersion"]
        if kind == "BOOKMARK":
            return
        key = object_key(item)
        read = None if kind == "DELETED" else self._read(item)
        # Most events of a node are heartbeats, and change nothing that anybody reads.
        before = self._objects.get(key)
        if before == read:
            return
        with self._lock:
            if read is None:
                self._objects.pop(key, None)
            else:
                self._objects[key] = read
            if self._keeps_changes:
                self._changes[key] = read
        if self._is_minor(before, read):
            self._on_minor_change()
        else:
            self._on_change()

    def _hear(self) -> None:
        self._heard_at = self._clock()
        if self._fault:
            log.info("watch works again kind=%s", self.kind)
            self._fault = ""
        self._is_forbidden = False


def object_key(item: JSONObject) -> str:
    """`namespace/name`, or the name of an object without a namespace."""
    metadata = item["metadata"]
    namespace = metadata.get("namespace")
    return f"{namespace}/{metadata['name']}" if namespace else str(metadata["name"])


def label_selector(labels: Mapping[str, str]) -> str:
    """Write labels as the API's `labelSelector` parameter has them."""
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
