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
    """The Leases of the release's parts, by which the webhook knows whether a part runs."""

    def __init__(
        self, watches: Watches, settings: ReleaseSettings, metrics: WebhookMetrics
    ) -> None:
        # The host name of scheduler pods that run with the profiles of these values; "": it isn't
        # known.
        self.scheduler_host = settings.scheduler_host
        # If no pods are given to Roost's scheduler, nobody renews the scheduler's Lease.
        watched_parts = {
            part: name
            for part, name in settings.leases.items()
            if part != SCHEDULER or settings.sets_scheduler
        }
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
            for part, name in watched_parts.items()
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
