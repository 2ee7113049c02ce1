"""One watch of nodes for several hubs, each of which reads it at its own pace."""

from __future__ import annotations

import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Final

from roost_core.kube.watch_cache import WatchCache
from webhook.rules.facts import NodeFact, Nodes, read_node

if TYPE_CHECKING:
    from collections.abc import Callable

    from roost_core.kube.client import Client


# Without an event for so long (there is a bookmark every minute) nodes may be gone: rules must not rely on them.
STALE_SECONDS: Final = 300.0


class NodeFeed:
    """Nodes with their room and images, kept once. `run` belongs to one thread; all else may be called from any."""

    def __init__(
        self,
        client: Client,
        on_error: Callable[[str], None] = lambda _kind: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Nothing is requested before `run`."""
        self.cache: WatchCache[NodeFact] = WatchCache(
            client,
            "/api/v1/nodes",
            partial(read_node, with_allocatable=True, with_images=True),
            kind="nodes",
            on_change=self._tell,
            on_error=on_error,
            clock=clock,
        )
        self._lock = threading.Lock()
        self._nodes = Nodes()
        # Replaced as a whole: the watch's thread reads it without the lock.
        self._readers: tuple[Callable[[], None], ...] = ()

    def add_reader(self, on_change: Callable[[], None]) -> None:
        """From now on call this after each change."""
        with self._lock:
            self._readers = (*self._readers, on_change)

    def remove_reader(self, on_change: Callable[[], None]) -> None:
        """Stop calling it."""
        with self._lock:
            self._readers = tuple(each for each in self._readers if each != on_change)

    def nodes(self) -> Nodes:
        """The nodes with all changes so far; the same object for all readers while nothing changes."""
        with self._lock:
            changes = self.cache.take_changes()
            if changes:
                try:
                    self._nodes = self._nodes.updated(changes)
                except Exception:
                    self.cache.give_back(changes)
                    raise
            return self._nodes

    def trusted(self) -> tuple[Nodes | None, bool]:
        """The nodes, None while they can't be read; and whether they were heard of lately."""
        if not self.cache.synced or self.cache.is_forbidden:
            return None, False
        return self.nodes(), self.cache.age_seconds() <= STALE_SECONDS

    def run(self, stop: threading.Event) -> None:
        """List and watch until `stop`."""
        self.cache.run(stop)

    def _tell(self) -> None:
        for on_change in self._readers:
            on_change()
