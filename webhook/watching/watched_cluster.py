"""Everything that the rules of one release document need of the cluster, and the facts made of
it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from roost_core.kube.client import Client
from roost_core.kube.watch_cache import WatchCache
from roost_core.kube.watches import TakenChanges, Watches, taking_changes
from roost_core.release.release_settings import ReleaseSettings
from webhook.facts.facts import Facts
from webhook.metrics import WebhookMetrics
from webhook.rules import Rulebook
from webhook.watching.builders import watch_builders
from webhook.watching.device_classes import WatchedDeviceClasses
from webhook.watching.leases import WatchedLeases
from webhook.watching.namespaces import WatchedNamespaces
from webhook.watching.nodes import WatchedNodes
from webhook.watching.pods import WatchedPods
from webhook.watching.priority_classes import WatchedPriorityClasses
from webhook.watching.quotas import WatchedQuotas
from webhook.watching.reported_images import ReportedImages


class WatchedCluster:
    """All watches for one set of rules. Only one thread may call `refresh`."""

    def __init__(
        self,
        client: Client,
        metrics: WebhookMetrics,
        settings: ReleaseSettings,
        on_change: Callable[[], None],
        *,
        clock: Callable[[], float],
    ) -> None:
        """Nothing is requested before `start`. on_change: called when facts could change."""
        self.settings = settings
        # Ends the watches.
        self.stop = threading.Event()
        rulebook = Rulebook(settings)
        watches = Watches(
            client, on_change=on_change, on_error=metrics.count_watch_error, clock=clock
        )
        self._watches = watches
        # Faults and what isn't listed yet are told in this order.
        self.nodes = WatchedNodes(watches, rulebook)
        self.device_classes = WatchedDeviceClasses(watches, rulebook)
        self.priority_classes = WatchedPriorityClasses(watches, rulebook)
        self.quotas = WatchedQuotas(watches, rulebook)
        self.namespaces = WatchedNamespaces(watches, rulebook)
        self.builders = watch_builders(watches, rulebook, self.namespaces)
        self.pods = WatchedPods(watches, rulebook, self.namespaces, metrics)
        self.leases = WatchedLeases(watches, settings, metrics)
        self._images = ReportedImages()

    @property
    def caches(self) -> list[WatchCache[Any]]:
        """Every watch; Leases are read instead."""
        return self._watches.caches

    def start(self) -> None:
        """Give each watch its thread."""
        self._watches.start(self.stop)
        self.leases.start(self.stop)

    def has_listed(self) -> bool:
        """Whether each watch has listed, or may not, and each Lease was asked for."""
        return self.leases.have_looked() and all(
            cache.synced or cache.is_forbidden for cache in self.caches
        )

    def detail(self) -> str:
        """What isn't listed yet, and why what was asked for last failed; for /readyz."""
        leases = self.leases.by_part.values()
        waiting = [
            cache.kind for cache in self.caches if not cache.synced and not cache.is_forbidden
        ]
        waiting += [lease.kind for lease in leases if not lease.has_looked]
        faults = [f"{cache.kind}: {cache.fault}" for cache in self.caches if cache.fault]
        faults += [f"{lease.kind}: {lease.fault}" for lease in leases if lease.fault]
        not_listed = [f"not listed yet: {', '.join(waiting)}"] if waiting else []
        return "; ".join([*not_listed, *faults])

    @property
    def known(self) -> list[bool]:
        """What is known now, watch by watch."""
        return [cache.is_known for cache in self.caches]

    @property
    def has_other_hubs(self) -> bool:
        """Whether other namespaces are selected than when their pods were listed."""
        return self.namespaces.has_other_hubs

    def refresh(self) -> Facts:
        """Return facts with all changes so far.

        A fault loses nothing: what was taken is given back, and taken in again by the next call.
        """
        with taking_changes() as taken:
            self._take_in(taken)
            return self._facts()

    def _take_in(self, taken: TakenChanges) -> None:
        self.nodes.refresh(taken, self._images)
        self.namespaces.refresh(taken)
        for builders in self.builders.values():
            builders.refresh(taken)
        self.pods.refresh(taken, self.nodes)
        # After the pods: one that is still bound to a node that went tells of that node's images
        # with each change of its status, and they are to be forgotten with the node.
        self.pods.keep_in_step(self.nodes, self._images)

    def _facts(self) -> Facts:
        failed_pulls = self.pods.failed_pulls
        return Facts(
            nodes=self.nodes.fact,
            builder_nodes={
                name: builders.last_known
                for name, builders in self.builders.items()
                if builders.is_known
            },
            namespaces=self.namespaces.fact,
            warm=self.pods.warm,
            failed_pulls=failed_pulls.by_image,
            given_up=failed_pulls.given_up,
            quotas=self.quotas.fact,
            claimable=self.device_classes.fact,
            lowest_priority=self.priority_classes.fact,
            leases=self.leases.fact,
            scheduler_host=self.leases.scheduler_host,
        )
