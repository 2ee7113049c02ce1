"""Watch what the rules read of the cluster, and replace the facts when it changes.

A change takes effect within about a tenth of a second. Many changes together cause one replacement,
so a busy cluster doesn't slow down reviews. What the webhook may not read (nodes, other namespaces)
is missing from the facts. That is logged once, and tried again.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Final

from roost_core.kube.client import Client
from roost_core.kube.readiness import Readiness
from roost_core.placement.beliefs import EARLIER
from roost_core.release.release_settings import ReleaseSettings
from webhook.facts.facts import Facts
from webhook.metrics import WebhookMetrics
from webhook.rules import Rulebook
from webhook.watching.watched_cluster import WatchedCluster
from webhook.webhook_settings import watched_parts

log = logging.getLogger(__name__)

# Between two replacements of the facts.
SWAP_SECONDS: Final = 0.1
# Between two tries when facts can't be made of what was watched.
RETRY_SECONDS: Final = 2.0


class FactsKeeper:
    """Keeps the facts up to date with the cluster and the rules.

    `facts` can be read from any thread.
    """

    def __init__(
        self, client: Client, metrics: WebhookMetrics, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._client = client
        self._metrics = metrics
        self._clock = clock
        self._dirty = threading.Event()
        self._cluster: WatchedCluster | None = None
        # Held while the watches are replaced.
        self._replacing = threading.Lock()
        # The newest facts; immutable.
        self.facts = Facts()
        self._has_facts = False
        # `WatchedCluster.known` when the facts were made.
        self._known: list[bool] = []
        # When the watches were last replaced.
        self._replaced_at = 0.0

    def follow(self, settings: ReleaseSettings) -> None:
        """Watch what these rules need.

        The old facts stay in use until the new watches have listed, or for a while.
        """
        with self._replacing:
            before = self._cluster
            if before is None or _watched(before.settings) != _watched(settings):
                self._watch_anew(settings)

    def _watch_anew(self, settings: ReleaseSettings) -> None:
        before = self._cluster
        cluster = WatchedCluster(
            self._client, self._metrics, settings, self._dirty.set, clock=self._clock
        )
        try:
            cluster.start()
        except Exception:
            # The system has no room for more threads. The threads that have started end, and the
            # next call tries again.
            cluster.stop.set()
            raise
        self._cluster = cluster
        self._replaced_at = self._clock()
        if before is not None:
            before.stop.set()
        # Lists that were complete before `_cluster` was set went unnoticed.
        self._dirty.set()

    def readiness(self) -> Readiness:
        """Ready once everything readable has been listed.

        It stays ready when new rules need other watches.
        """
        cluster = self._cluster
        if cluster is None:
            return Readiness(passed=False, detail="no policy yet, so nothing is watched")
        return Readiness(passed=self._has_facts, detail=cluster.detail())

    def run(self, stop: threading.Event) -> None:
        """Replace the facts when something changed, until `stop`."""
        while not stop.is_set():
            has_changed = self._dirty.wait(1.0)
            if not has_changed and not self._is_outdated():
                continue
            self._dirty.clear()
            pause_seconds = SWAP_SECONDS
            try:
                self._swap()
            except Exception:
                # No error may end the thread: then the facts would never change again.
                log.exception("facts not updated")
                self._dirty.set()
                pause_seconds = RETRY_SECONDS
            stop.wait(pause_seconds)
        if self._cluster is not None:
            self._cluster.stop.set()

    def _is_outdated(self) -> bool:
        """Whether something became known or unknown without a change, because time passed."""
        cluster = self._cluster
        return cluster is not None and self._has_facts and cluster.known != self._known

    def _swap(self) -> None:
        """Replace the facts, unless the old facts stay until the watches have listed everything."""
        cluster = self._cluster
        if cluster is None:
            self._known = []
            return
        seconds_since_replaced = self._clock() - self._replaced_at
        may_wait = not self._has_facts or seconds_since_replaced <= EARLIER.age_seconds
        if may_wait and not cluster.has_listed():
            self._known = []
            return
        # Read first, so that `_is_outdated` notices what changes while the facts are made.
        self._known = cluster.known
        self.facts = cluster.refresh()
        self._has_facts = True
        if cluster.has_other_hubs:
            with self._replacing:
                if self._cluster is cluster:
                    log.info("other namespaces are selected now: pods are listed anew")
                    self._watch_anew(cluster.settings)


def _watched(settings: ReleaseSettings) -> tuple[object, ...]:
    """What decides what is watched. Settings with equal results need the same watches."""
    rulebook = Rulebook(settings)
    return {name: rulebook.reads(name) for name in settings.classes}, watched_parts(settings)
