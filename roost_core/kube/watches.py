"""The watches of one program, and what is common to everything that it knows by a watch.

A program has a small class for each kind of object, on top of `Watched`: it says where the kind is
listed, how an object is read, and what the program knows by it.
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
        # One for each cache.
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
        """Give each watch its thread, until `stop`."""
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
    """Changes that were taken from watches, and go back if they can't be used."""

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
    """Take changes of several watches; after an exception the next call takes the same again."""
    taken = TakenChanges()
    try:
        yield taken
    except Exception:
        taken._give_back()
        raise


class Watched(Generic[T]):
    """One kind of object as a program knows it; a subclass says what is known by it."""

    def __init__(self, cache: WatchCache[T] | None) -> None:
        """cache: None: nobody asks for the kind, or it may not be read, so it isn't watched."""
        self.cache = cache

    @property
    def is_known(self) -> bool:
        """Whether it is watched, was listed, may still be read, and was heard of lately."""
        return self.cache is not None and self.cache.is_known

    def objects(self) -> Mapping[str, T]:
        """Return a copy of all objects; none where it isn't watched."""
        return {} if self.cache is None else self.cache.objects()

    def take(self, taken: TakenChanges) -> Mapping[str, T | None]:
        """Return what changed since the last call; nothing where it isn't watched."""
        if self.cache is None:
            return {}
        return taken.take(self.cache)


def apply_changes(known: dict[str, T], changes: Mapping[str, T | None]) -> None:
    """Change `known`, by key; None: the object is gone."""
    for key, changed in changes.items():
        if changed is None:
            known.pop(key, None)
        else:
            known[key] = changed
