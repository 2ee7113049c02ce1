"""Serve the hubs of other namespaces: follow their rules and facts, each hub apart from all others.

A ConfigMap that isn't valid is counted, keeps the last good rules of its hub, and touches no other hub.
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from roost_core.kube.hub_feed import HubFeed
from roost_core.kube.readiness import Verdict
from roost_core.placement.hub_documents import MAX_HUBS, read_hub_rules
from roost_core.placement.labels import HUB_CONFIG_MAP, POLICY_KEY
from roost_core.placement.settings import SCHEDULER
from roost_core.placement.settings_reader import SettingsError
from webhook.metrics import HubMetrics
from webhook.policy_file import NO_RULES
from webhook.review import Hub
from webhook.shared_pools import SharedPools, labels_of
from webhook.watch import FactsKeeper

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from roost_core.kube.client import Client
    from roost_core.placement.lease_state import LeaseState
    from roost_core.placement.settings import Settings
    from webhook.metrics import Metrics
    from webhook.node_feed import NodeFeed
    from webhook.rules.facts import Facts, WarmFacts
    from webhook.shared_pools import Labels, Loads

log = logging.getLogger(__name__)

# A replica that starts isn't ready until each hub's facts are there, or for so long: one hub must not hold up the rest.
PATIENCE_SECONDS: Final = 20.0
# Between two looks at whether the central release's own rules changed.
LOOK_SECONDS: Final = 1.0
RETRY_SECONDS: Final = 2.0


class ServedHub:
    """One hub: its last good rules, and the facts that they need."""

    def __init__(
        self,
        namespace: str,
        client: Client,
        metrics: Metrics,
        feed: NodeFeed,
        *,
        scheduler_state: Callable[[], LeaseState],
        loads_changed: Callable[[], None],
    ) -> None:
        """scheduler_state: of the central release's scheduler, which binds the hub's pods.

        loads_changed: called when `loads` did.
        """
        self.namespace = namespace
        self.hub = Hub(lambda: self.settings, self._current_facts)
        self.settings: Settings = NO_RULES
        self.common: Mapping[Labels, WarmFacts] = {}
        self.keeper = FactsKeeper(
            client, HubMetrics(metrics, namespace), self.hub.pod_seen, feed=feed, loads_changed=loads_changed
        )
        self._metrics = metrics
        self._scheduler_state = scheduler_state
        # Of the last try: the document, the central rules, and why it was refused ("" if it wasn't).
        self._tried: tuple[bytes, Settings] | None = None
        self.fault = ""
        # The facts, and what they were made of.
        self._merged: tuple[tuple[Facts, LeaseState, Mapping[Labels, WarmFacts]], Facts] | None = None
        # By class: the same of its warm set.
        self._seen: dict[str, tuple[WarmFacts, WarmFacts, WarmFacts]] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(
            target=self.keeper.run, args=(self._stop,), name=f"facts-{namespace}", daemon=True
        )
        self._thread.start()

    @property
    def has_rules(self) -> bool:
        """Whether there ever was a valid document."""
        return self.settings is not NO_RULES

    def follow(self, text: bytes, central: Settings) -> None:
        """Use this document under these rules of the central release; keep the last good one if it isn't valid."""
        if self._tried is not None and self._tried[0] == text and self._tried[1] is central:
            return
        self._tried = (text, central)
        try:
            rules = read_hub_rules(text, self.namespace, central)
        except SettingsError as error:
            self.refuse(error.one_line())
            return
        except Exception as error:  # noqa: BLE001 - a fault of the reader must not touch other hubs
            self.refuse(f"can't be read ({type(error).__name__})", error)
            return
        before = self.settings, self.fault
        self.settings, self.fault = rules.settings, ""
        try:
            self.keeper.follow(rules.settings)
        except Exception:
            # To be tried again, also if nothing changes.
            self._tried = None
            self.settings, self.fault = before
            raise
        for pod_class, profile in rules.lost_profiles.items():
            log.warning(
                "hub=%s: pods of class %s keep the cluster's scheduler: scheduler.profiles of the central release has "
                "no %r",
                self.namespace, pod_class, profile,
            )  # fmt: skip
        self._metrics.show_hub(self.namespace, rules.settings.revision)
        log.info("hub=%s: rules in use revision=%s", self.namespace, rules.settings.revision)

    def refuse(self, reason: str, error: Exception | None = None) -> None:
        """Keep the last good rules, and say why. error: one whose traceback helps."""
        if reason == self.fault:
            return
        self.fault = reason
        self._metrics.count_refused_hub(self.namespace)
        log.error(
            "hub=%s: ConfigMap %s refused, revision=%s stays in use: %s",
            self.namespace, HUB_CONFIG_MAP, self.settings.revision or "none", reason,
            exc_info=error,
        )  # fmt: skip

    @property
    def loads(self) -> Loads:
        """Its users' pods, which other hubs of its pool count."""
        return self.keeper.loads

    def stop(self) -> None:
        """End its watches; its pods are no longer decided by its rules."""
        self._stop.set()
        self._metrics.forget_hub(self.namespace)

    def _current_facts(self) -> Facts:
        parts = self.keeper.facts, self._scheduler_state(), self.common
        merged = self._merged
        if merged is None or any(one is not other for one, other in zip(merged[0], parts, strict=True)):
            facts, state, _ = parts
            warm = {name: self._with_others(name, own) for name, own in facts.warm.items()}
            self._seen = {name: seen for name, seen in self._seen.items() if name in warm}
            merged = (parts, replace(facts, leases={**facts.leases, SCHEDULER: state}, warm=warm))
            self._merged = merged
        return merged[1]

    def _with_others(self, name: str, own: WarmFacts) -> WarmFacts:
        """What a class's warm set counts: the pods of all hubs of its pool, if it shares one."""
        pod_class = self.settings.classes.get(name)
        common = self.common.get(labels_of(pod_class)) if pod_class is not None else None
        if common is None:
            return own
        seen = self._seen.get(name)
        # The same object while nothing changed: warm sets are recognised by it.
        if seen is None or seen[0] is not own or seen[1] is not common:
            seen = self._seen[name] = (own, common, common.seen_by(own))
        return seen[2]


class Hubs:
    """All hubs that this release serves. `run` belongs to one thread; `hub_of` may be called from any."""

    def __init__(
        self,
        client: Client,
        metrics: Metrics,
        feed: NodeFeed,
        *,
        central: Callable[[], Settings],
        identity: tuple[str, str],
        scheduler_state: Callable[[], LeaseState],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """central: the release's own rules; identity: its name and namespace."""
        self._client = client
        self._metrics = metrics
        self._feed = feed
        self._central = central
        self._scheduler_state = scheduler_state
        self._clock = clock
        self._started = clock()
        self._changed = threading.Event()
        self._hubs: dict[str, ServedHub] = {}
        self._pools = SharedPools(feed)
        self._used_central: Settings = NO_RULES
        self._surplus: frozenset[str] = frozenset()
        # Whether all documents were looked at once.
        self._is_taken_in = False
        self._documents = HubFeed(
            client,
            identity,
            POLICY_KEY,
            is_needed=True,
            on_change=self._changed.set,
            on_error=metrics.count_watch_error,
            clock=clock,
        )

    def hub_of(self, namespace: str) -> Hub | None:
        """The hub whose rules are for this namespace's pods; None: none that is served."""
        served = self._hubs.get(namespace)
        return served.hub if served is not None and served.has_rules else None

    def verdict(self) -> Verdict:
        """Ready once all documents were read and the facts are there; a slow hub holds up for 20 s at most."""
        faults = self._documents.faults
        faults += [f"{hub.namespace}: {hub.fault}" for hub in self._hubs.values() if hub.fault]
        waiting = [hub.namespace for hub in self._hubs.values() if hub.has_rules and not hub.keeper.verdict().passed]
        if not self._documents.is_listed:
            waiting.append("the list of hubs")
        elif not self._is_taken_in:
            waiting.append("the first look at all hubs' rules")
        detail = "; ".join(
            [f"{len(self._hubs)} hubs", *([f"waiting for {', '.join(waiting)}"] if waiting else []), *faults]
        )
        return Verdict(not waiting or self._clock() - self._started > PATIENCE_SECONDS, detail)

    def age_seconds(self) -> float:
        """The age of the oldest part of any hub's facts."""
        return max((hub.keeper.age_seconds() for hub in self._hubs.values()), default=0.0)

    def run(self, stop: threading.Event) -> None:
        """Follow hubs that come, change and go, until `stop`."""
        threading.Thread(target=self._feed.run, args=(stop,), name="watch-nodes", daemon=True).start()
        threading.Thread(target=self._pools.run, args=(stop,), name="shared-pools", daemon=True).start()
        self._documents.start(stop)
        while not stop.is_set():
            has_news = self._changed.wait(LOOK_SECONDS) or self._documents.is_due
            if has_news or self._central() is not self._used_central:
                self._changed.clear()
                try:
                    is_done = self._take_in()
                except Exception:  # the thread must survive any error: without it no hub's change would be seen
                    log.exception("hubs not updated")
                    is_done = False
                if not is_done:
                    self._changed.set()
                    stop.wait(RETRY_SECONDS)
        for hub in self._hubs.values():
            hub.stop()

    def _take_in(self) -> bool:
        """Follow what is there now. False: some hub has to be tried again."""
        central = self._central()
        if central is NO_RULES or not self._documents.is_listed:
            return True
        documents = self._documents.paced_documents()
        # Those that are served stay, whoever comes later.
        wanted = sorted(documents, key=lambda namespace: namespace not in self._hubs)
        self._refuse_surplus(frozenset(wanted[MAX_HUBS:]))
        hubs: dict[str, ServedHub] = {}
        is_done = True
        for namespace in wanted[:MAX_HUBS]:
            # Whatever is wrong with one hub, the others are served.
            try:
                hub = self._hubs.get(namespace) or self._make(namespace)
            except Exception:
                log.exception("hub=%s: not served", namespace)
                self._metrics.count_refused_hub(namespace)
                is_done = False
                continue
            hubs[namespace] = hub
            try:
                hub.follow(documents[namespace], central)
            except Exception as error:  # noqa: BLE001 - as above
                hub.refuse(f"can't be followed ({type(error).__name__})", error)
                is_done = False
        gone = [hub for namespace, hub in self._hubs.items() if namespace not in hubs]
        self._hubs = hubs
        self._pools.follow(hubs, self._documents.labels())
        for hub in gone:
            hub.stop()
            log.info("hub=%s: no longer served", hub.namespace)
        self._metrics.show_hub_count(len(hubs))
        self._used_central = central
        self._is_taken_in = True
        return is_done

    def _make(self, namespace: str) -> ServedHub:
        return ServedHub(
            namespace,
            self._client,
            self._metrics,
            self._feed,
            scheduler_state=self._scheduler_state,
            loads_changed=self._pools.tell,
        )

    def _refuse_surplus(self, surplus: frozenset[str]) -> None:
        for namespace in sorted(surplus - self._surplus):
            self._metrics.count_refused_hub(namespace)
            log.error("hub=%s: refused: %d hubs are served already, which is the most", namespace, MAX_HUBS)
        self._surplus = surplus
