"""Keep the facts up to date: watch what the rules read from the cluster, and nothing else, and
replace the facts.

A change takes effect within about a tenth of a second. Many changes make one replacement, so a busy
cluster doesn't slow down reviews. What the webhook may not read (nodes, other namespaces) is
missing from the facts, logged once, and retried.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

from roost_core.kube.client import Client
from roost_core.kube.lease_watch import LeaseWatch
from roost_core.kube.readiness import ReadyVerdict
from roost_core.kube.watch_cache import WatchCache, label_selector
from roost_core.objects.device_classes import claimable_resources
from roost_core.objects.fields import JSONObject, MalformedObjectError
from roost_core.objects.metadata import labels_of
from roost_core.objects.node import Node, node_or_none
from roost_core.objects.pod_body import MIRROR_ANNOTATION, PodBody, read_pod_body
from roost_core.objects.selectors import Requirement, read_label_selector
from roost_core.placement.beliefs import EARLIER, FAILED_PULL, WAITED_SECONDS, WATCHED_SECONDS
from roost_core.placement.labels import (
    OPT_OUT_ANNOTATION,
    OWN_COMPONENT_LABEL,
    OWN_PART,
    OWN_PLACEHOLDER,
    PART_OF_LABEL,
    POLICY_REVISION_ANNOTATION,
    STRICT_SUFFIX,
)
from roost_core.placement.nodes import Nodes
from roost_core.placement.priorities import LOWEST_PRIORITY, NO_CLASS, foreign_priority
from roost_core.release.classes import namespace_matches, needs_namespace_labels
from roost_core.release.pod_classes import PodClass
from roost_core.release.settings import SCHEDULER, ReleaseSettings
from webhook.facts import Facts, Homes, PlacedPod, WarmFacts, read_builder, read_placed_pod
from webhook.metrics import WebhookMetrics, show
from webhook.node_images import ReportedImages
from webhook.rules import Rulebook
from webhook.rules.contract import Reads
from webhook.rules.pod_terms import ACROSS_NAMESPACES
from webhook.rules.requests import NOT_BEST_EFFORT, STORAGE
from webhook.rules.scheduler import own_scheduler_name
from webhook.settings import watched_parts

log = logging.getLogger(__name__)

T = TypeVar("T")

# Between two replacements of the facts.
SWAP_SECONDS: Final = 0.1
# Between two tries when facts can't be made of what was watched.
RETRY_SECONDS: Final = 2.0
_QUOTA_NAMES: Final = frozenset({ACROSS_NAMESPACES, NOT_BEST_EFFORT, *STORAGE})
_NO_HOMES: Final = Homes()


class WatchedPod(NamedTuple):
    """The parts of a pod of one of the classes that the facts and metrics need."""

    uid: str
    # None: finished.
    placed: PlacedPod | None
    # It was created without the webhook.
    is_unplaced: bool = False
    # It names Roost's scheduler and has no node yet.
    is_waiting: bool = False
    # Of another hub, whose pods count in warm sets alone.
    is_of_others: bool = False


class FactsKeeper:
    """Keeps the facts up to date with the cluster and the rules.

    `facts` can be read from any thread.
    """

    def __init__(
        self,
        client: Client,
        metrics: WebhookMetrics,
        pod_seen: Callable[[str, str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """pod_seen: called for each pod (namespace, name) of a class with a home that the facts now
        show.
        """
        self._client = client
        self._metrics = metrics
        self._pod_seen = pod_seen
        self._clock = clock
        self._dirty = threading.Event()
        self._watches: _Watches | None = None
        # Held while the watches are replaced.
        self._replacing = threading.Lock()
        # The newest facts; immutable.
        self.facts = Facts()
        self._has_facts = False
        # What the facts were made of, as in `_Watches.known`.
        self._known: list[bool] = []
        # When the watches were last replaced.
        self._replaced_at = 0.0

    def follow(self, settings: ReleaseSettings) -> None:
        """Watch what these rules need.

        The old facts stay in use until the new watches have listed, or for a while.
        """
        with self._replacing:
            before = self._watches
            if before is None or _watched(before.settings) != _watched(settings):
                self._watch_anew(settings)

    def _watch_anew(self, settings: ReleaseSettings) -> None:
        before = self._watches
        watches = _Watches(
            self._client, self._metrics, settings, self._dirty.set, clock=self._clock
        )
        try:
            watches.start()
        except Exception:
            # A system without room for threads. Those that did start end, and the next call begins
            # anew.
            watches.stop.set()
            raise
        self._watches, self._replaced_at = watches, self._clock()
        if before is not None:
            before.stop.set()
        # What was listed before the line above was not yet looked for here.
        self._dirty.set()

    def verdict(self) -> ReadyVerdict:
        """Ready once everything readable has been listed; new rules that need other watches don't
        change that.
        """
        if (watches := self._watches) is None:
            return ReadyVerdict(passed=False, detail="no policy yet, so nothing is watched")
        waiting = [
            cache.kind for cache in watches.caches if not cache.synced and not cache.is_forbidden
        ]
        faults = [f"{cache.kind}: {cache.fault}" for cache in watches.caches if cache.fault]
        faults += [
            f"{lease.kind}: {lease.fault}" for lease in watches.leases.values() if lease.fault
        ]
        waiting += [lease.kind for lease in watches.leases.values() if not lease.has_looked]
        detail = "; ".join(
            [*([f"not listed yet: {', '.join(waiting)}"] if waiting else []), *faults]
        )
        return ReadyVerdict(passed=self._has_facts, detail=detail)

    def age_seconds(self) -> float:
        """Return the age of the oldest part of the facts, 0.0 when nothing is watched.

        What was never listed is as old as its watch; what may not be read doesn't count.
        """
        watches = self._watches
        return max(map(WatchCache.age_seconds, watches.parts), default=0.0) if watches else 0.0

    def run(self, stop: threading.Event) -> None:
        """Replace the facts when something changed, until `stop`."""
        while not stop.is_set():
            if self._dirty.wait(1.0) or self._is_outdated():
                self._dirty.clear()
                pause_seconds = SWAP_SECONDS
                try:
                    self._swap()
                except Exception:
                    # the thread must survive any error: without it the facts would never change
                    log.exception("facts not updated")
                    self._dirty.set()
                    pause_seconds = RETRY_SECONDS
                stop.wait(pause_seconds)
        if self._watches is not None:
            self._watches.stop.set()

    def _is_outdated(self) -> bool:
        """Whether something became known or unknown without an event."""
        watches = self._watches
        return watches is not None and self._has_facts and watches.known != self._known

    def _swap(self) -> None:
        watches = self._watches
        has_time = not self._has_facts or self._clock() - self._replaced_at <= EARLIER.age_seconds
        if watches is None or (has_time and not watches.has_listed()):
            self._known = []
            return
        # Before: what changes meanwhile is noticed by the next look.
        self._known = watches.known
        facts, seen = watches.refresh()
        self.facts = facts
        self._has_facts = True
        if watches.has_other_hubs:
            with self._replacing:
                if self._watches is watches:
                    log.info("other namespaces are selected now: pods are listed anew")
                    self._watch_anew(watches.settings)
        # Not before: a burst's last builds would be counted neither by the ledger nor by the facts.
        for key in seen:
            namespace, _, name = key.partition("/")
            self._pod_seen(namespace, name)


def _watched(settings: ReleaseSettings) -> tuple[object, ...]:
    rulebook = Rulebook(settings)
    return {name: rulebook.reads(name) for name in settings.classes}, watched_parts(settings)


class _Watches:
    """All watches for one set of rules, and the facts made from them.

    Only one thread may call `refresh`.
    """

    def __init__(
        self,
        client: Client,
        metrics: WebhookMetrics,
        settings: ReleaseSettings,
        on_change: Callable[[], None],
        *,
        clock: Callable[[], float],
    ) -> None:
        self.settings = settings
        self._clock = clock
        self.stop = threading.Event()
        self._metrics = metrics
        rulebook = Rulebook(settings)
        self._rulebook = rulebook
        self._classes = rulebook.classes
        own = f"/api/v1/namespaces/{settings.namespace}/pods"

        cache = partial(
            WatchCache[Any],
            client,
            on_change=on_change,
            on_error=metrics.count_watch_error,
            clock=clock,
        )
        classes = settings.classes.values()
        self._nodes: WatchCache[Node] | None = None
        self._device_classes: WatchCache[frozenset[str]] | None = None
        if settings.reads_nodes:
            read = partial(node_or_none, with_images=bool(self._classes_that_read(Reads.WARM)))
            self._nodes = cache("/api/v1/nodes", read, kind="nodes")
            path = "/apis/resource.k8s.io/v1/deviceclasses"
            self._device_classes = cache(
                path, claimable_resources, kind="deviceclasses", keeps_changes=False
            )
        self._priorities: WatchCache[int] | None = None
        if settings.reads_nodes and self._classes_that_read(Reads.PRIORITIES):
            path = "/apis/scheduling.k8s.io/v1/priorityclasses"
            self._priorities = cache(
                path, foreign_priority, kind="priorityclasses", keeps_changes=False
            )
        self._quotas: WatchCache[tuple[str, frozenset[str]]] | None = None
        is_alone = settings.shared_namespaces is None and all(
            one.namespace_selector is None for one in classes
        )
        if self._classes_that_read(Reads.QUOTAS) and not (
            is_alone and all(not one.resources for one in classes)
        ):
            path = (
                f"/api/v1/namespaces/{settings.namespace}/resourcequotas"
                if is_alone
                else "/api/v1/resourcequotas"
            )
            self._quotas = cache(path, _read_quota, kind="resourcequotas", keeps_changes=False)
        self._namespaces: WatchCache[Mapping[str, str]] | None = None
        # Namespaces whose pods count in warm sets, too. None: no others.
        self._shared: frozenset[Requirement] | None = None
        if (
            settings.shared_namespaces is not None
            and settings.reads_nodes
            and self._classes_that_read(Reads.WARM)
        ):
            self._shared = read_label_selector(settings.shared_namespaces)
        selectors = [pod_class.namespace_selector for pod_class in classes]
        if self._shared is not None:
            selectors.append(settings.shared_namespaces)
        parsed = [read_label_selector(selector) for selector in selectors if selector is not None]
        self._selectors = [selector for selector in parsed if selector is not None]
        # A namespace that was there is selected now, or no longer: its pods were read as another
        # class's. So was each pod that was listed while namespaces might not be read.
        self.has_other_hubs = False
        self._listed_blind = False
        if any(map(needs_namespace_labels, selectors)):
            self._namespaces = cache("/api/v1/namespaces", labels_of, kind="namespaces")
        self._builders: dict[str, WatchCache[str]] = {
            pod_class.name: cache(
                "/api/v1/pods" if pod_class.namespace_selector is not None else own,
                self._builder_reader_for(pod_class),
                kind="builders",
                label_selector=label_selector(pod_class.home.builder_labels),
            )
            for pod_class in classes
            if pod_class.home is not None and pod_class.home.builder_labels
        }
        self._pods: dict[str, WatchCache[WatchedPod]] = {
            pod_class.name: cache(
                "/api/v1/pods" if self._looks_elsewhere(pod_class) else own,
                self._reader_for(pod_class),
                kind=f"pods/{pod_class.name}",
                label_selector=label_selector(pod_class.labels),
            )
            for pod_class in classes
        }
        # The Leases of Roost's other parts.
        self.leases: dict[str, LeaseWatch] = {
            part: LeaseWatch(
                client,
                settings.namespace,
                name,
                host=settings.scheduler_host if part == SCHEDULER else "",
                on_change=on_change,
                on_error=metrics.count_watch_error,
                clock=clock,
            )
            for part, name in settings.leases.items()
            if part != SCHEDULER or settings.sets_scheduler
        }
        # What the watches have yielded so far.
        self._known_nodes: Nodes | None = None
        self._known_namespaces: dict[str, Mapping[str, str]] = {}
        self._builder_pods: dict[str, dict[str, str]] = {name: {} for name in self._builders}
        self._builder_nodes: dict[str, frozenset[str]] = dict.fromkeys(
            self._builders, frozenset[str]()
        )
        self._homes = Homes()
        # Of all classes: what has run is no failed pull. Rules read them of some, which take in
        # what nodes report, too.
        self._warm = {name: WarmFacts() for name in settings.classes}
        self._warm_sets = self._classes_that_read(Reads.WARM) if settings.reads_nodes else []
        self._images = ReportedImages()
        # When each node last couldn't pull an image, by both.
        self._failed_pulls: dict[tuple[str, str], float] = {}
        self._given_up: frozenset[tuple[str, str]] = frozenset()
        # What can't be pulled now, by key of the pod that says so.
        self._failing: dict[str, set[tuple[str, str]]] = {}
        # Starting pods by key, and since when they have been bound.
        self._starting: dict[str, tuple[float, PlacedPod]] = {}
        # What the current refresh has read from the watches.
        self._taken: list[tuple[WatchCache[Any], Mapping[str, Any]]] = []
        # uid and class of unplaced pods, by key.
        self._unplaced: dict[str, tuple[str, str]] = {}
        # Class of pods that are waiting for Roost's scheduler, by key.
        self._waiting: dict[str, str] = {}
        show(metrics.unplaced, dict.fromkeys(settings.classes, 0))
        show(metrics.waiting, dict.fromkeys(settings.classes, 0))
        self._metrics.show_leases(
            {part: (lease.age_seconds, lease.is_away) for part, lease in self.leases.items()}
        )

    @property
    def _of_no_class(self) -> tuple[WatchCache[Any] | None, ...]:
        return self._nodes, self._device_classes, self._priorities, self._quotas, self._namespaces

    @property
    def caches(self) -> Iterator[WatchCache[Any]]:
        """Every watch."""
        yield from (cache for cache in self._of_no_class if cache is not None)
        yield from self._builders.values()
        yield from self._pods.values()

    @property
    def parts(self) -> Iterator[WatchCache[Any]]:
        """Those watches that the facts are made of: not the ones that never were allowed to list,
        nor refused nodes.
        """
        for cache in self.caches:
            if not cache.is_forbidden or (cache.synced and cache is not self._nodes):
                yield cache

    @property
    def known(self) -> list[bool]:
        """What is known now, watch by watch."""
        return [self.shows_new_pods, *map(_is_known, self.caches)]

    @property
    def knows_nodes(self) -> bool:
        """Whether nodes were listed, may still be read, and were heard of lately."""
        return self._nodes is not None and _is_known(self._nodes)

    @property
    def lowest_priority(self) -> int:
        """As in `Facts`; what can't be known may be anything."""
        classes = self._priorities
        if classes is None or not _is_known(classes):
            return LOWEST_PRIORITY
        return min(classes.objects().values(), default=NO_CLASS)

    @property
    def claimable(self) -> frozenset[str]:
        """As in `Facts`; none where it can't be known, so that the gate requires too little rather
        than too much.
        """
        classes = self._device_classes
        known = classes.objects().values() if classes is not None and _is_known(classes) else ()
        return frozenset[str]().union(*known)

    @property
    def quotas(self) -> Mapping[str, frozenset[str]] | None:
        """As in `Facts`."""
        if self._quotas is None:
            return {}
        if not _is_known(self._quotas):
            return None
        about: dict[str, frozenset[str]] = {}
        for namespace, names in self._quotas.objects().values():
            about[namespace] = about.get(namespace, frozenset()) | names
        return about

    @property
    def shows_new_pods(self) -> bool:
        """Whether no watch of pods with a home is known to be broken."""
        return not any(self._pods[name].fault for name in self._classes_that_read(Reads.HOMES))

    def _classes_that_read(self, part: Reads) -> list[str]:
        """The classes with a rule that looks at this part of the facts."""
        return [name for name in self.settings.classes if part in self._rulebook.reads(name)]

    def start(self) -> None:
        """Give each watch its thread."""
        for cache in self.caches:
            waits = cache not in self._of_no_class and self._namespaces is not None
            threading.Thread(
                target=self._run, args=(cache, waits), name=f"watch-{cache.kind}", daemon=True
            ).start()
        for lease in self.leases.values():
            threading.Thread(
                target=lease.run, args=(self.stop,), name=f"watch-{lease.kind}", daemon=True
            ).start()

    def _run(self, cache: WatchCache[Any], waits_for_namespaces: bool) -> None:
        # Which class a pod belongs to may hang on its namespace's labels.
        while waits_for_namespaces and self._namespaces is not None and not self.stop.is_set():
            if self._namespaces.synced or self._namespaces.is_forbidden:
                self._listed_blind |= not self._namespaces.synced
                break
            self.stop.wait(0.05)
        cache.run(self.stop)

    def has_listed(self) -> bool:
        """Whether each watch has listed, or may not, and each Lease was asked for."""
        have_looked = all(lease.has_looked for lease in self.leases.values())
        return have_looked and all(cache.synced or cache.is_forbidden for cache in self.caches)

    def refresh(self) -> tuple[Facts, list[str]]:
        """Return facts with all changes so far, and the keys of the pods with a home that changed.

        A fault loses nothing: what was taken is given back, and taken in again by the next call.
        """
        self._taken = []
        try:
            return self._refresh()
        except Exception:
            for cache, changes in self._taken:
                cache.give_back(changes)
            raise

    def _take(self, cache: WatchCache[T]) -> Mapping[str, T | None]:
        changes = cache.take_changes()
        self._taken.append((cache, changes))
        return changes

    def _refresh(self) -> tuple[Facts, list[str]]:
        if self._nodes is not None and self._nodes.synced:
            changes = self._take(self._nodes)
            if self._known_nodes is None:
                self._known_nodes = Nodes(node for node in changes.values() if node is not None)
            elif changes:
                self._images.note_replaced(self._known_nodes, changes)
                self._known_nodes = self._known_nodes.updated(changes)
        if self._namespaces is not None:
            before = self._known_namespaces
            labels_now = self._take(self._namespaces)
            self._known_namespaces = _changed(before, labels_now)
            self.has_other_hubs |= self._listed_blind and self._namespaces.synced
            self.has_other_hubs |= any(
                self._selects(name, before) != self._selects(name, self._known_namespaces)
                for name, labels in labels_now.items()
                if labels is not None and name in before
            )
        for name, builders in self._builders.items():
            pods = self._builder_pods[name] = _changed(
                self._builder_pods[name], self._take(builders)
            )
            names = frozenset(pods.values())
            # The same object while nothing changed: rings are recognised by it.
            if names != self._builder_nodes[name]:
                self._builder_nodes = {**self._builder_nodes, name: names}
        seen = self._refresh_pods()
        # Only now: a pod that is still bound to a node that went tells of its images with each
        # change of its status.
        self._keep_in_step()
        # Only where all pods with a home are known.
        counts_homes = all(
            _is_known(self._pods[name]) for name in self._classes_that_read(Reads.HOMES)
        )
        facts = Facts(
            nodes=self._known_nodes if self.knows_nodes else None,
            builder_nodes={
                name: self._builder_nodes[name]
                for name, one in self._builders.items()
                if _is_known(one)
            },
            homes=self._homes if counts_homes else _NO_HOMES,
            shows_new_pods=self.shows_new_pods,
            namespaces=self._known_namespaces
            if self._namespaces and _is_known(self._namespaces)
            else None,
            warm={
                name: self._warm[name] for name in self._warm_sets if _is_known(self._pods[name])
            },
            failed_pulls=self._failed_pulls,
            given_up=self._given_up,
            quotas=self.quotas,
            claimable=self.claimable,
            lowest_priority=self.lowest_priority,
            leases={part: lease.state for part, lease in self.leases.items()},
            scheduler_host=self.settings.scheduler_host,
        )
        return facts, seen

    def _selects(self, namespace: str, known: Mapping[str, Mapping[str, str]]) -> list[bool]:
        return [namespace_matches(selector, namespace, known) for selector in self._selectors]

    def _keep_in_step(self) -> None:
        """Let warm sets forget images with their nodes, and take in what nodes report."""
        nodes = None if self._nodes is None or self._nodes.is_forbidden else self._known_nodes
        self._warm = self._images.follow(
            self._warm, nodes, self._warm_sets, with_reports=self.knows_nodes
        )
        self._failed_pulls = {
            key: at for key, at in self._failed_pulls.items() if not self._proves(*key)
        }

    def _proves(self, node: str, image: str) -> bool:
        return any(warm.proves(node, image) for warm in self._warm.values())

    def _refresh_pods(self) -> list[str]:
        homes: dict[str, PlacedPod | None] = {}
        was_unplaced, was_waiting = dict(self._unplaced), dict(self._waiting)
        for name, cache in self._pods.items():
            has_home = Reads.HOMES in self._rulebook.reads(name)
            changes = self._take(cache)
            placed = {key: pod and pod.placed for key, pod in changes.items()}
            self._note_pulls(placed)
            if changes:
                self._warm = {**self._warm, name: self._warm[name].updated(placed)}
            for key, pod in changes.items():
                if pod is not None and pod.is_waiting:
                    self._waiting[key] = name
                else:
                    self._waiting.pop(key, None)
                if has_home:
                    homes[key] = pod.placed if pod is not None and not pod.is_of_others else None
                if pod is not None and pod.is_unplaced:
                    if self._unplaced.get(key, ("", ""))[0] != pod.uid:
                        self._unplaced[key] = (pod.uid, name)
                        self._metrics.unplaced_seen.labels(name).inc()
                else:
                    self._unplaced.pop(key, None)
        if homes:
            self._homes = self._homes.updated(homes)
        if self._unplaced != was_unplaced:
            counts = Counter(name for _, name in self._unplaced.values())
            show(self._metrics.unplaced, {name: counts[name] for name in self.settings.classes})
        if self._waiting != was_waiting:
            counts = Counter(self._waiting.values())
            show(self._metrics.waiting, {name: counts[name] for name in self.settings.classes})
        return list(homes)

    def _note_pulls(self, changes: Mapping[str, PlacedPod | None]) -> None:
        """Remember which images nodes can't pull, and couldn't lately, until one of their
        containers starts.

        Called before warm facts know of the changes. A pull that hangs raises no error: its pods
        go, and never started.
        """
        failed = dict(self._failed_pulls)
        now = self._clock()
        for key, pod in changes.items():
            failed.update(dict.fromkeys(self._failing.pop(key, ()), now))
            if pod is not None and pod.failing:
                self._failing[key] = {(pod.node, image) for image in pod.failing}
            since, before = self._starting.pop(key, (now, None))
            is_same = before and pod and pod.node == before.node
            if before and not is_same and not before.failing and now - since >= WAITED_SECONDS:
                # The first is its main container's; all pods may share the others.
                own = [image for image in before.images[:1] if not self._proves(before.node, image)]
                self._given_up |= {(before.node, image) for image in own} - failed.keys()
                failed |= {(before.node, image): now for image in own}
            if pod and pod.is_starting:
                self._starting[key] = (since if is_same else now, pod)
        if failed or self._failing:
            running = [pod for pod in changes.values() if pod is not None and not pod.is_starting]
            started = {(pod.node, image) for pod in running for image in pod.images}
            self._failing = {key: pulls - started for key, pulls in self._failing.items()}
            # It fails for as long as the pod says so: its status need not change meanwhile.
            told = set[tuple[str, str]]().union(*self._failing.values())
            failed.update(dict.fromkeys(told, math.inf))
            failed = {
                key: at
                for key, at in failed.items()
                if key not in started and now - at < FAILED_PULL.age_seconds
            }
            self._given_up = (self._given_up & failed.keys()) - told
        self._failed_pulls = failed

    def _looks_elsewhere(self, pod_class: PodClass) -> bool:
        counts_others = self._shared is not None and Reads.WARM in self._rulebook.reads(
            pod_class.name
        )
        return counts_others or pod_class.namespace_selector is not None

    def _builder_reader_for(self, pod_class: PodClass) -> Callable[[JSONObject], str | None]:
        """Builders of all hubs of a class make one ring: those of the release's namespace, and of
        the selected ones.
        """
        selector = pod_class.namespace_selector
        required = None if selector is None else read_label_selector(selector)

        def read(item: JSONObject) -> str | None:
            namespace = item["metadata"].get("namespace") or ""
            is_own = namespace == self.settings.namespace
            if (
                required is None
                or is_own
                or namespace_matches(required, namespace, self._namespace_labels())
            ):
                return read_builder(item)
            return None

        return read

    def _reader_for(self, pod_class: PodClass) -> Callable[[JSONObject], WatchedPod | None]:
        classes = self._classes
        names = {
            own_scheduler_name(self.settings, pod_class, suffix) for suffix in ("", STRICT_SUFFIX)
        } - {""}

        def is_unplaced(pod: PodBody) -> bool:
            # Pods without the revision annotation, except those that no rule is for. A pod that
            # names Roost's scheduler can still lack the other rules; only Roost's own placeholders
            # are created with all of them. A pod that its author bound to a node can't be told from
            # a scheduled one, nor an older pod from a missed one.
            is_own = pod.labels.get(PART_OF_LABEL) == OWN_PART
            carries_all = (
                pod.labels.get(OWN_COMPONENT_LABEL) != OWN_PLACEHOLDER
                or pod.scheduler_name in names
            )
            return not (
                POLICY_REVISION_ANNOTATION in pod.annotations
                or (is_own and carries_all)
                or pod.annotations.get(OPT_OUT_ANNOTATION) == "true"
                or MIRROR_ANNOTATION in pod.annotations
                or pod.is_daemon
            )

        def read(item: JSONObject) -> WatchedPod | None:
            namespace = item["metadata"].get("namespace") or ""
            try:
                pod = read_pod_body(item, namespace)
            except MalformedObjectError:
                return None
            # Two classes can select the same pod: it belongs to one of them.
            if classes.classify(pod.labels, namespace, self._namespace_labels()) != pod_class:
                return self._read_other_hubs(item, pod, pod_class)
            # A pod that is being deleted doesn't wait.
            is_unbound = not item["spec"].get("nodeName") and not item["metadata"].get(
                "deletionTimestamp"
            )
            is_waiting = pod.scheduler_name in names and is_unbound
            placed = read_placed_pod(item, pod_class.name)
            return WatchedPod(
                str(item["metadata"].get("uid") or ""), placed, is_unplaced(pod), is_waiting
            )

        return read

    def _read_other_hubs(
        self, item: JSONObject, pod: PodBody, pod_class: PodClass
    ) -> WatchedPod | None:
        """A pod of another hub that would belong to the class: it takes room in the warm set.

        Only once it has a node: before, it may still go to a node outside the set.
        """
        if self._shared is None or pod_class.name not in self._warm_sets:
            return None
        known = self._namespace_labels()
        is_shared = namespace_matches(self._shared, pod.namespace, known)
        if (
            not is_shared
            or self._classes.classify(pod.labels, self.settings.namespace, known) != pod_class
        ):
            return None
        placed = read_placed_pod(item, pod_class.name)
        return (
            WatchedPod("", placed, is_of_others=True)
            if placed is not None and placed.node
            else None
        )

    def _namespace_labels(self) -> Mapping[str, Mapping[str, str]] | None:
        if self._namespaces is None or not self._namespaces.synced:
            return None
        return self._namespaces.objects()


def _is_known(cache: WatchCache[Any]) -> bool:
    """Whether it was listed, may still be read, and was heard of lately."""
    return cache.synced and not cache.is_forbidden and cache.age_seconds() <= WATCHED_SECONDS


def _read_quota(quota: JSONObject) -> tuple[str, frozenset[str]] | None:
    """The quota's namespace, and those of its scopes and resources that rules look for."""
    spec = quota.get("spec") or {}
    selected = (spec.get("scopeSelector") or {}).get("matchExpressions") or ()
    names = (
        *(spec.get("hard") or ()),
        *(spec.get("scopes") or ()),
        *(one.get("scopeName") for one in selected),
    )
    found = _QUOTA_NAMES.intersection(names)
    return (str(quota["metadata"]["namespace"]), found) if found else None


def _changed(known: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in {**known, **changes}.items() if value is not None}
