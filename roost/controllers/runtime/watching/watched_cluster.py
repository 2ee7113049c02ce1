"""Everything that the controllers watch, and the snapshot made of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from roost.controllers.contract.release import ReleaseDocument
from roost.controllers.contract.snapshot import Snapshot
from roost.controllers.runtime.watching.bookings import WatchedBookings
from roost.controllers.runtime.watching.device_classes import WatchedDeviceClasses
from roost.controllers.runtime.watching.histories import WatchedHistories
from roost.controllers.runtime.watching.hold_ups import WatchedHoldUps
from roost.controllers.runtime.watching.namespaces import WatchedNamespaces
from roost.controllers.runtime.watching.nodes import WatchedNodes
from roost.controllers.runtime.watching.pods import WatchedPods
from roost.controllers.runtime.watching.pull_events import WatchedPullEvents
from roost.controllers.runtime.watching.quotas import WatchedLimitRanges, WatchedQuotas
from roost.controllers.runtime.watching.stateful_sets import WatchedStatefulSets
from roost_core.kube.client import Client
from roost_core.kube.readiness import Readiness
from roost_core.kube.watch_cache import WatchCache
from roost_core.kube.watches import Watches
from roost_core.placement.beliefs import SNAPSHOT


class WatchedCluster:
    """All watches, and the snapshot made of them.

    `follow` and `snapshot` belong to one thread.
    """

    def __init__(
        self,
        client: Client,
        release: ReleaseDocument,
        *,
        all_namespaces: bool = True,
        on_change: Callable[[], None],
        on_minor_change: Callable[[], None] = lambda: None,
        on_error: Callable[[str], None] = lambda _kind: None,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """Nothing is requested before `start`.

        all_namespaces: False: the account may read pods of the release's own namespace only.
        on_change, on_minor_change: called after each change; `minor_changes.py` says which are
        minor. on_error: called with the kind of a watch that failed. clock: seconds of a monotonic
        clock. wall: Unix time.
        """
        self._release = release
        make_watches = partial(
            Watches,
            client,
            on_change=on_change,
            on_error=on_error,
            clock=clock,
            all_namespaces=all_namespaces,
        )
        # Nothing is planned without these.
        vital = make_watches()
        # Plans are made without these, too: the image gate must not wait, for example, for what
        # headroom learned.
        others = make_watches()
        self._vital = vital
        self._others = others
        # `readiness` reports the first watch in this order that isn't ready.
        self.nodes = WatchedNodes(vital, wall)
        self.pods = WatchedPods(vital, release, on_minor_change)
        self.stateful_sets = WatchedStatefulSets(vital, release)
        self.pull_events = WatchedPullEvents(vital, release, on_minor_change)
        self.namespaces = WatchedNamespaces(vital, release)
        self.device_classes = WatchedDeviceClasses(others)
        self.histories = WatchedHistories(others, release)
        self.hold_ups = WatchedHoldUps(others, release, on_minor_change)
        self.quotas = WatchedQuotas(others, release)
        self.limit_ranges = WatchedLimitRanges(others, release)
        self.bookings = WatchedBookings(vital, others, release, self.namespaces)

    @property
    def caches(self) -> list[WatchCache[Any]]:
        """The watches without which nothing is planned."""
        return self._vital.caches

    def start(self, stop: threading.Event) -> None:
        """Start a thread for each watch."""
        self._vital.start(stop)
        self._others.start(stop)

    def readiness(self) -> Readiness:
        """Whether every watch has listed and is up to date."""
        for cache in self.caches:
            fault = f": {cache.fault}" if cache.fault else ""
            if not cache.synced:
                return Readiness(False, f"{cache.kind} not listed yet{fault}")
            age_seconds = cache.age_seconds()
            if age_seconds > SNAPSHOT.age_seconds:
                return Readiness(
                    False, f"no update of {cache.kind} for {age_seconds:.0f} s: {cache.fault}"
                )
        return Readiness(True)

    def follow(self) -> None:
        """Take in what changed. Call it also while no snapshot is needed, or changes pile up."""
        self.nodes.follow()
        self.pods.follow()
        self.quotas.follow()

    def snapshot(self) -> Snapshot:
        """Return the cluster as known now.

        Its mappings are shared with earlier snapshots, which change with it.
        """
        self.follow()
        return Snapshot(
            release=self._release.name,
            namespace=self._release.namespace,
            nodes=self.nodes.by_name,
            pods=self.pods.by_key,
            namespaces=self.namespaces.labels(),
            stateful_sets=self.stateful_sets.by_name,
            pull_events=self.pull_events.objects(),
            hold_ups=self.hold_ups.objects(),
            bookings=self.bookings.by_name,
            claimable=self.device_classes.claimable,
            histories=self.histories.by_set,
            quotas=self.quotas.by_name,
            awaits_hub_quotas=self.quotas.awaits_hubs,
            container_defaults=self.limit_ranges.by_name,
            sights=self.nodes.sights,
        )
