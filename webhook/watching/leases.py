"""The Leases of Roost's other parts."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from roost_core.kube.lease_watch import LeaseWatch
from roost_core.kube.watches import Watches
from roost_core.placement.lease_state import LeaseState
from roost_core.release.release_settings import SCHEDULER, ReleaseSettings
from webhook.metrics import WebhookMetrics


class WatchedLeases:
    """The Lease of each part that the release has; the scheduler's where pods are given to it."""

    def __init__(
        self, watches: Watches, settings: ReleaseSettings, metrics: WebhookMetrics
    ) -> None:
        # The host name that scheduler pods with these values' profiles have; "": it isn't known.
        self.scheduler_host = settings.scheduler_host
        self.by_part = {
            part: LeaseWatch(
                watches.client,
                settings.namespace,
                name,
                host=settings.scheduler_host if part == SCHEDULER else "",
                on_change=watches.on_change,
                on_error=watches.on_error,
                steady=watches.clock,
            )
            for part, name in settings.leases.items()
            # Where pods keep the cluster's scheduler, nobody renews the Lease of Roost's.
            if part != SCHEDULER or settings.sets_scheduler
        }
        metrics.show_lease_ages({part: lease.age_seconds for part, lease in self.by_part.items()})

    @property
    def fact(self) -> Mapping[str, LeaseState]:
        """`Facts.leases`."""
        return {part: lease.state for part, lease in self.by_part.items()}

    def have_looked(self) -> bool:
        """Whether each Lease was asked for, successfully or not."""
        return all(lease.has_looked for lease in self.by_part.values())

    def start(self, stop: threading.Event) -> None:
        """Give each Lease its thread, until `stop`."""
        for lease in self.by_part.values():
            threading.Thread(
                target=lease.run, args=(stop,), name=f"watch-{lease.kind}", daemon=True
            ).start()
