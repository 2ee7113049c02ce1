"""Work for the hubs that this release serves: each as its own account, with its own Lease, budgets and memory.

Nodes and pods are watched once, by the release's own account. All plans are made in one thread, hub after hub, so the
snapshot needs no locks and planning takes no more of a core than for one hub. Who holds a hub's Lease writes for it,
so a hub's own controllers and a central release never do at the same time: the Lease is released only after the writes
that were under way have ended, or left to expire.

A hub's budgets outlive its documents: who writes a document again and again gets no new ones.
"""

from __future__ import annotations

import functools
import logging
import threading
import time
import uuid
from collections import deque
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from roost.controllers.hub_settings import HubSettings, read_hub_settings
from roost.controllers.image_gate.plan import NAME as GATE
from roost.controllers.runtime.apply import Applier, Helpers
from roost.controllers.runtime.budget import WINDOW_SECONDS, WRITES_PER_MINUTE
from roost.controllers.runtime.events import EventWriter
from roost.controllers.runtime.loop import RESYNC_SECONDS, Loop
from roost.controllers.runtime.metrics import Metrics
from roost.controllers.runtime.watching import Watching
from roost_core.kube.borrowed_account import connect_as
from roost_core.kube.hub_feed import HubFeed
from roost_core.kube.leader_election import Leadership
from roost_core.kube.process import version
from roost_core.kube.trust import own_service_account
from roost_core.placement.hub_documents import MAX_HUBS
from roost_core.placement.labels import HUB_SETTINGS_KEY
from roost_core.placement.settings_reader import SettingsError

if TYPE_CHECKING:
    from collections.abc import Callable

    from roost.controllers.runtime.fair_shares import FairShares, Share
    from roost.controllers.runtime.watching import Scope
    from roost.controllers.settings import ControllersSettings
    from roost_core.kube.client import Client
    from roost_core.placement.settings_reader import Document

log = logging.getLogger(__name__)

LOOK_SECONDS: Final = 1.0
RETRY_SECONDS: Final = 2.0
# From a renewal of a hub's Lease to the next one: while nothing happens, these are most of the requests.
LEASE_PACE_SECONDS: Final = 3.0
# Nodes that are labelled at the same time. Each may keep a connection of each hub open.
PARALLEL_WRITES: Final = 4
# One hub's writes must not hold up the others': what it doesn't get done in its turn, it does in the next one.
TURN_SECONDS: Final = 1.0
# For Leases to be released at the end, so that another replica needn't wait for them to expire.
RELEASE_SECONDS: Final = 3.0
# Of these, for the writes of the hub's turn to end: one batch of requests. Else its Lease is left to expire.
TURN_END_SECONDS: Final = 2.0


class Budgets(NamedTuple):
    """One hub's shares."""

    writes: Share
    evictions: Share


class Surroundings:
    """What all hubs of one process share."""

    def __init__(
        self,
        client: Client,
        watching: Watching,
        metrics: Metrics,
        *,
        identity: str,
        central: tuple[str, str],
        minor: int,
        scheduler_configuration: Document | None,
        scope_of: Callable[[ControllersSettings], Scope],
        writes: FairShares,
        evictions: FairShares,
        own: Budgets,
    ) -> None:
        """client: the release's own, which may request tokens of the hubs' accounts. watching: nodes and pods.

        writes, evictions: of all hubs of this process together. own: of what the release does for itself.
        """
        self.client = client
        self.watching = watching
        self.metrics = metrics
        self.identity = identity
        self.central = central
        self.minor = minor
        self.scheduler_configuration = scheduler_configuration
        self.scope_of = scope_of
        self.writes = writes
        self.evictions = evictions
        self.own = own
        # For all hubs, as one thread makes all plans and carries them out.
        self.helpers = Helpers(PARALLEL_WRITES)
        # The release's own, in whose thread all plans are made; set before `ServedHubs.run`.
        self.loop: Loop | None = None

    def wake(self) -> None:
        """Plan soon."""
        if self.loop is not None:
            self.loop.wake()

    def wake_later(self) -> None:
        """Plan later."""
        if self.loop is not None:
            self.loop.wake_later()

    def divide(self, acting: list[Budgets], served: int) -> None:
        """Divide the totals among the hubs that this process acts for, of so many, and the release's own work."""
        if self.loop is not None and self.loop.leads:
            acting = [self.own, *acting]
        self.writes.divide([each.writes for each in acting], served + 1)
        self.evictions.divide([each.evictions for each in acting], served + 1)

    def progressed(self) -> None:
        """Note that a step is done."""
        if self.loop is not None:
            self.loop.progressed()


class ServedHub:
    """The controllers of one hub, from one document of settings."""

    def __init__(self, hub: HubSettings, shared: Surroundings, budgets: Budgets) -> None:
        """budgets: the namespace's, which an earlier document may have used."""
        settings, namespace = hub.settings, hub.settings.namespace
        self.name = hub.hub
        self._shared = shared
        self._stop = threading.Event()
        # Held during a turn.
        self._in_turn = threading.Lock()
        self.budgets = budgets
        self._evictions_per_minute = settings.evictions_per_minute
        self.metrics = Metrics(
            version(), [gauge for planner in settings.planners for gauge in planner.gauges], of_process=False
        )
        client = connect_as(
            shared.client,
            namespace,
            hub.account,
            shared.metrics.count_request,
            # The account may have been made anew, with another uid.
            on_refused=lambda: owner.cache_clear(),  # noqa: PLW0108 - defined below
        )
        self._watching = Watching(
            client,
            shared.scope_of(settings),
            on_change=shared.wake,
            on_minor_change=shared.wake_later,
            on_error=shared.metrics.count_watch_error,
            shared=shared.watching,
        )

        @functools.cache
        def owner() -> dict[str, Any] | None:
            return own_service_account(client, namespace)

        # Of its own: what one lets go of must not be taken from its successor, which is of the same process.
        identity = f"{shared.identity}_{uuid.uuid4().hex[:8]}"
        self._leadership = Leadership(
            client,
            namespace,
            hub.lease,
            identity,
            owner=owner,
            is_fit=self._is_fit,
            has_ended=self._has_ended,
            pace_seconds=LEASE_PACE_SECONDS,
        )
        self._thread = threading.Thread(
            target=self._leadership.run, args=(self._stop,), name=f"lease-{self.name}", daemon=True
        )
        applier = Applier(
            client,
            namespace,
            writes=self.budgets.writes,
            evictions=self.budgets.evictions,
            events=EventWriter(client, identity, hub=self.name),
            may_write=lambda: self.is_leader and not self._stop.is_set(),
            on_eviction=self.metrics.count_eviction,
            on_done=shared.progressed,
            owner=owner,
            plan_seconds=TURN_SECONDS,
            helpers=shared.helpers,
        )
        self._loop = Loop(
            settings.planners,
            self._watching.snapshot,
            applier,
            self.metrics,
            is_leader=lambda: self.is_leader,
            is_synced=lambda: self._watching.verdict().passed,
            vital=frozenset({GATE}),
        )

    @property
    def is_leader(self) -> bool:
        """Whether this replica writes for the hub."""
        return self._leadership.is_leader

    def _is_fit(self) -> bool:
        loop = self._shared.loop
        has_thread = loop is not None and loop.makes_progress
        return has_thread and self._watching.verdict().passed and not self._loop.fails

    def _has_ended(self) -> bool:
        """Wait for the turn that is under way; False if it goes on."""
        if not self._in_turn.acquire(timeout=TURN_END_SECONDS):
            return False
        self._in_turn.release()
        return True

    def start(self) -> None:
        """Watch the hub's namespace, and ask for its Lease."""
        self._watching.start(self._stop)
        self._thread.start()

    def stop(self) -> None:
        """Write nothing more, and release the Lease."""
        self._stop.set()

    def wait_released(self, seconds: float) -> None:
        """Wait until the Lease was released, but no longer than this."""
        self._thread.join(seconds)

    def turn(self) -> float:
        """Plan and apply once, if this replica may; return the seconds to wait if nothing changes."""
        with self._in_turn:
            # Here, as budgets belong to this thread: an earlier document's may have been another.
            self.budgets.evictions.own.per_minute = self._evictions_per_minute
            wait_seconds = self._loop.safe_turn()
        # Who doesn't lead has nothing to wait for: the Lease is looked at elsewhere.
        return wait_seconds if self.is_leader else RESYNC_SECONDS


class ServedHubs:
    """All hubs of the process. `turns` belongs to the thread that plans, `run` to another."""

    def __init__(self, shared: Surroundings) -> None:
        self._shared = shared
        self._changed = threading.Event()
        self._feed = HubFeed(
            shared.client,
            shared.central,
            HUB_SETTINGS_KEY,
            on_change=self._changed.set,
            on_error=shared.metrics.count_watch_error,
        )
        # By namespace; replaced as a whole.
        self._hubs: dict[str, ServedHub] = {}
        # By namespace: the document that was tried last.
        self._tried: dict[str, bytes] = {}
        # By namespace; and since when there is no such hub.
        self._budgets: dict[str, Budgets] = {}
        self._gone_at: dict[str, float] = {}
        self._led: frozenset[str] = frozenset()
        self._next = 0

    def turns(self) -> float:
        """Do each hub's turn, another one first each time; return the seconds that all of them may wait."""
        order = deque(self._hubs.values())
        order.rotate(-self._next)
        self._shared.divide([hub.budgets for hub in order if hub.is_leader], len(order))
        self._next = (self._next + 1) % max(1, len(order))
        wait_seconds = RESYNC_SECONDS
        for hub in order:
            wait_seconds = min(wait_seconds, hub.turn())
            self._shared.progressed()
        return wait_seconds

    def run(self, stop: threading.Event) -> None:
        """Follow hubs that come, change and go, until `stop`."""
        self._feed.start(stop)
        while not stop.is_set():
            if self._changed.wait(LOOK_SECONDS) or self._feed.is_due:
                self._changed.clear()
                try:
                    is_done = self._take_in()
                except Exception:  # the thread must survive any error: without it no hub's change would be seen
                    log.exception("hubs not updated")
                    is_done = False
                if not is_done:
                    self._changed.set()
                    stop.wait(RETRY_SECONDS)
            led = frozenset(namespace for namespace, hub in self._hubs.items() if hub.is_leader)
            if led != self._led:
                self._led = led
                self._shared.wake()
        for hub in self._hubs.values():
            hub.stop()
        deadline = time.monotonic() + RELEASE_SECONDS
        for hub in self._hubs.values():
            hub.wait_released(max(0.0, deadline - time.monotonic()))

    def _take_in(self) -> bool:
        """Follow what is there now. False: some hub has to be tried again."""
        if not self._feed.is_listed:
            return True
        documents = self._feed.paced_documents()
        # Those that are served stay, whoever comes later.
        wanted = sorted(documents, key=lambda namespace: namespace not in self._hubs)
        if len(wanted) > MAX_HUBS:
            log.error("refused, as %d hubs are the most: %s", MAX_HUBS, ", ".join(wanted[MAX_HUBS:]))
        hubs: dict[str, ServedHub] = {}
        failed: set[str] = set()
        for namespace in wanted[:MAX_HUBS]:
            # Whatever is wrong with one hub, the others are served.
            try:
                hub = self._follow(namespace, documents[namespace])
            except Exception as error:  # noqa: BLE001 - as the line above says
                self._fail(namespace, error)
                failed.add(namespace)
                hub = self._hubs.get(namespace)
            if hub is not None:
                hubs[namespace] = hub
        gone = [hub for namespace, hub in self._hubs.items() if hubs.get(namespace) is not hub]
        for hub in gone:
            hub.stop()
        for namespace, hub in list(hubs.items()):
            if self._hubs.get(namespace) is hub:
                continue
            try:
                hub.start()
            except Exception as error:  # noqa: BLE001 - as above
                # Some of its threads may run: they end, and the next one is a new hub's.
                hub.stop()
                del hubs[namespace]
                self._fail(namespace, error)
                failed.add(namespace)
        self._hubs = hubs
        self._drop_budgets()
        self._tried = {namespace: text for namespace, text in self._tried.items() if namespace in documents}
        self._shared.metrics.hubs = {hub.name: hub.metrics for hub in hubs.values()}
        self._shared.wake()
        return not failed

    def _fail(self, namespace: str, error: Exception) -> None:
        """Say what went wrong, and try this hub again later, also if its document doesn't change."""
        log.error("hub=%s: not taken in", namespace, exc_info=error)
        self._shared.metrics.count_refused_hub(namespace)
        self._tried.pop(namespace, None)

    def _follow(self, namespace: str, text: bytes) -> ServedHub | None:
        """The hub by this document; the one there is if it is no other, or not valid."""
        before = self._hubs.get(namespace)
        if self._tried.get(namespace) == text:
            return before
        self._tried[namespace] = text
        shared = self._shared
        try:
            settings = read_hub_settings(text, namespace, shared.central, shared.scheduler_configuration, shared.minor)
        except SettingsError as error:
            self._refuse(namespace, error.one_line())
            return before
        except Exception as error:  # noqa: BLE001 - a fault of the reader, which finds the same the next time
            self._refuse(namespace, f"can't be read ({type(error).__name__})", error)
            return before
        log.info("hub=%s: served controllers=%s", namespace, ",".join(each.name for each in settings.settings.planners))
        return ServedHub(settings, shared, self._budgets_of(namespace, settings.settings.evictions_per_minute))

    def _budgets_of(self, namespace: str, evictions_per_minute: int) -> Budgets:
        """Those of an earlier document, if there was one within the last minute."""
        shared = self._shared
        if namespace not in self._budgets:
            self._budgets[namespace] = Budgets(
                shared.writes.share(WRITES_PER_MINUTE), shared.evictions.share(evictions_per_minute, starts_spent=True)
            )
        return self._budgets[namespace]

    def _drop_budgets(self) -> None:
        """Drop those of hubs that went more than a minute ago: nothing that they took counts any more."""
        now = time.monotonic()
        self._gone_at = {
            namespace: self._gone_at.get(namespace, now) for namespace in self._budgets if namespace not in self._hubs
        }
        for namespace, gone_at in self._gone_at.items():
            if now - gone_at > WINDOW_SECONDS:
                del self._budgets[namespace]

    def _refuse(self, namespace: str, reason: str, error: Exception | None = None) -> None:
        self._shared.metrics.count_refused_hub(namespace)
        kept = "the last ones stay" if namespace in self._hubs else "none"
        log.error("hub=%s: settings refused, %s: %s", namespace, kept, reason, exc_info=error)
