"""The watches of a program, and the base class of everything that it knows by a watch.

For each kind of object, a program has a small subclass of `Watched`. It says where the kind is
listed, how an object is read, and what the program knows by the objects.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, Generic, TypeVar

from roost_core.kube.client import Client
from roost_core.kube.event_stream import ListWatch
from roost_core.kube.watch_cache import WatchCache

T = TypeVar("T")

NODES_PATH: Final = "/api/v1/nodes"
NAMESPACES_PATH: Final = "/api/v1/namespaces"
DEVICE_CLASSES_PATH: Final = "/apis/resource.k8s.io/v1/deviceclasses"


def pods_path(namespace: str) -> str:
    """Where the pods of a namespace are listed; "": of all namespaces."""
    return f"{NAMESPACES_PATH}/{namespace}/pods" if namespace else "/api/v1/pods"


def quotas_path(namespace: str = "") -> str:
    """Where the ResourceQuotas of a namespace are listed; "": of all namespaces."""
    if namespace:
        return f"{NAMESPACES_PATH}/{namespace}/resourcequotas"
    return "/api/v1/resourcequotas"


class Watches:
    """Watches of one client that start together.

    All but `start` belongs to the thread that makes them.
    """

    def __init__(
        self,
        client: Client,
        *,
        on_change: Callable[[], None],
        on_error: Callable[[str], None],
        clock: Callable[[], float],
        all_namespaces: bool = True,
    ) -> None:
        """Nothing is requested before `start`. The callbacks are those of WatchCache."""
        self.client = client
        # False: the account may read nothing outside of the release's own namespace.
        self.all_namespaces = all_namespaces
        self.on_change = on_change
        self.on_error = on_error
        self.clock = clock
        # In the order in which they were added.
        self.caches: list[WatchCache[Any]] = []
        # For each cache, in the same order: what its thread calls first.
        self._before_lists: list[Callable[[threading.Event], None]] = []

    def add(
        self,
        list_watch: ListWatch[T],
        *,
        keeps_changes: bool = False,
        is_minor: Callable[[T | None, T | None], bool] = lambda _before, _now: False,
        on_minor_change: Callable[[], None] = lambda: None,
        before_list: Callable[[threading.Event], None] = lambda _stop: None,
    ) -> WatchCache[T]:
        """Add a watch; the arguments are those of WatchCache.

        before_list: called in the watch's own thread before it asks for anything, with the event
        that ends the watch.
        """
        cache = WatchCache(
            self.client,
            list_watch,
            keeps_changes=keeps_changes,
            is_minor=is_minor,
            on_minor_change=on_minor_change,
            on_change=self.on_change,
            on_error=self.on_error,
            clock=self.clock,
        )
        self.caches.append(cache)
        self._before_lists.append(before_list)
        return cache

    def start(self, stop: threading.Event) -> None:
        """Start a thread for each watch. The threads end after `stop`."""
        for cache, before_list in zip(self.caches, self._before_lists, strict=True):
            threading.Thread(
                target=_run,
                args=(cache, before_list, stop),
                name=f"watch-{cache.kind}",
                daemon=True,
            ).start()


def _run(
    cache: WatchCache[Any], before_list: Callable[[threading.Event], None], stop: threading.Event
) -> None:
    before_list(stop)
    cache.run(stop)


class TakenChanges:
    """Changes that were taken from watches, and are given back if they can't be used."""

    def __init__(self) -> None:
        self._taken: list[tuple[WatchCache[Any], Mapping[str, Any]]] = []

    def take(self, cache: WatchCache[T]) -> Mapping[str, T | None]:
        """Return what changed since the last call, as `WatchCache.take_changes`."""
        changes = cache.take_changes()
        self._taken.append((cache, changes))
        return changes

    def _give_back(self) -> None:
        for cache, changes in self._taken:
            cache.give_back(changes)


@contextmanager
def taking_changes() -> Iterator[TakenChanges]:
    """Take changes of several watches within a `with` block.

    After an exception in the block, the next block takes the same changes again.
    """
    taken = TakenChanges()
    try:
        yield taken
    except Exception:
        taken._give_back()
        raise


class Watched(Generic[T]):
    """The objects of a kind as a program knows them. A subclass says what they are used for."""

    def __init__(self, cache: WatchCache[T] | None) -> None:
        """cache: None: the kind isn't watched, because it isn't needed or may not be read."""
        self.cache = cache

    @property
    def is_known(self) -> bool:
        """Whether the kind is watched, and `WatchCache.is_known`."""
        return self.cache is not None and self.cache.is_known

    def objects(self) -> Mapping[str, T]:
        """Return a copy of all objects, by `namespace/name` or name; {} if it isn't watched."""
        return {} if self.cache is None else self.cache.objects()

    def take(self, taken: TakenChanges) -> Mapping[str, T | None]:
        """Return the objects that changed since the last call; {} if the kind isn't watched.

        None: the object is gone.
        """
        if self.cache is None:
            return {}
        return taken.take(self.cache)


def apply_changes(known: dict[str, T], changes: Mapping[str, T | None]) -> None:
    """Apply changes, as of `WatchCache.take_changes`, to the objects in `known`."""
    for key, changed in changes.items():
        if changed is None:
            known.pop(key, None)
        else:
            known[key] = changed
