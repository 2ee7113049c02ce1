"""Count the users of all served hubs that share nodes: one table of them for each pool, which the hubs' warm sets read.

A hub shares a pool if its rules name it by `sharedPools` and the selector there selects the hub's own namespace, whose
labels are the operator's: it takes both, as for being served. What hubs get of each other is pods that are bound, with
their nodes and images. The size of a set, the gate and everything else stay each hub's own.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from typing import TYPE_CHECKING, Final, Protocol

from roost_core.objects.selectors import read_label_selector
from roost_core.placement.classes import namespace_matches
from roost_core.placement.hub_documents import requires_a_label
from webhook.node_images import NodeImages
from webhook.rules.facts import WarmFacts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from roost_core.objects.selectors import Requirement
    from roost_core.placement.settings import PodClass, Settings
    from webhook.node_feed import NodeFeed
    from webhook.rules.facts import Nodes, WarmPod

log = logging.getLogger(__name__)

# Between two merges of what the hubs' watches have seen.
MERGE_SECONDS: Final = 0.1
RETRY_SECONDS: Final = 2.0

# Of one pod: users' pods have one to three. Who may create pods in one hub's namespace could else push out all names
# that are remembered of a node, for the hubs of a whole pool, with a single pod.
MAX_IMAGES_A_POD: Final = 10

# The labels by which a class knows its pods. Hubs may call a class what they like.
Labels = frozenset[tuple[str, str]]
# Unfinished pods of users by their classes' labels, and by `pod_key`. Each mapping is replaced when it changes.
Loads = dict[Labels, "Mapping[str, WarmPod]"]
# What a label selector of namespaces requires: equal for selectors that are written differently.
Pool = frozenset["Requirement"]


class PoolMember(Protocol):
    """A served hub, as pools see it."""

    # By labels of its classes with a warm set: what all hubs of its pool come to. Empty: it counts its own pods alone.
    common: Mapping[Labels, WarmFacts]

    @property
    def settings(self) -> Settings:
        """Its rules."""

    @property
    def loads(self) -> Loads:
        """Its users' pods."""


def labels_of(pod_class: PodClass) -> Labels:
    """The labels by which a class knows its pods."""
    return frozenset(pod_class.labels.items())


def counts_for_others(settings: Settings, pod_class: PodClass) -> bool:
    """Whether the pods of this class take room in the warm sets of other hubs."""
    shares = settings.central is not None and settings.shared_namespaces is not None
    return shares and (pod_class.warm is not None or pod_class.is_of_users)


def pool_of(settings: Settings, known: Mapping[str, Mapping[str, str]]) -> Pool | None:
    """The pool that a hub shares; known: labels of namespaces. None: it names none, or none of its own namespace."""
    if settings.shared_namespaces is None:
        return None
    required = read_label_selector(settings.shared_namespaces)
    if required is None or not requires_a_label(required) or not namespace_matches(required, settings.namespace, known):
        return None
    return required


class SharedPools:
    """All pools that served hubs share. `follow` belongs to one thread, `run` to another; `tell` to any."""

    def __init__(self, feed: NodeFeed) -> None:
        """feed: the nodes of all hubs."""
        self._feed = feed
        self._dirty = threading.Event()
        # Replaced as a whole.
        self._pools: Mapping[Pool, Mapping[str, PoolMember]] = {}
        self._outside: frozenset[str] = frozenset()
        # Of the merging thread: tables by pool and labels, and who was given some of them.
        self._tables: dict[tuple[Pool, Labels], _Table] = {}
        self._given: dict[str, PoolMember] = {}

    def follow(self, hubs: Mapping[str, PoolMember], known: Mapping[str, Mapping[str, str]]) -> None:
        """Group these hubs, by namespace, into pools. known: labels of their namespaces."""
        pools: dict[Pool, dict[str, PoolMember]] = {}
        outside = set()
        for namespace, hub in sorted(hubs.items()):
            pool = pool_of(hub.settings, known)
            if pool is not None:
                pools.setdefault(pool, {})[namespace] = hub
            elif hub.settings.shared_namespaces is not None:
                outside.add(namespace)
        for namespace in sorted(outside - self._outside):
            log.warning(
                "hub=%s: its warm sets count its own pods alone: sharedPools.namespaceSelector must require a label "
                "by matchLabels, In or Exists, and select the hub's own namespace. Label the namespace as it asks.",
                namespace,
            )
        before = {pool: members.keys() for pool, members in self._pools.items()}
        for pool, members in pools.items():
            if len(members) > 1 and members.keys() != before.get(pool):
                log.info("hubs that share nodes, and count each other's users in warm sets: %s", ", ".join(members))
        self._pools, self._outside = pools, frozenset(outside)
        self.tell()

    def tell(self) -> None:
        """Some hub's pods or rules changed, or nodes did."""
        self._dirty.set()

    def run(self, stop: threading.Event) -> None:
        """Merge what the hubs saw, until `stop`."""
        self._feed.add_reader(self.tell)
        while not stop.is_set():
            if self._dirty.wait(1.0):
                self._dirty.clear()
                pause_seconds = MERGE_SECONDS
                try:
                    self.merge()
                except Exception:  # the thread must survive any error: without it no other hub's users would be seen
                    log.exception("pools that hubs share not updated")
                    self._dirty.set()
                    pause_seconds = RETRY_SECONDS
                stop.wait(pause_seconds)
        self._feed.remove_reader(self.tell)

    def merge(self) -> None:
        """Give each hub of a pool what all of them come to now. Of a pool with one hub there is nothing to give."""
        nodes, is_recent = self._feed.trusted()
        given: dict[str, PoolMember] = {}
        used: set[tuple[Pool, Labels]] = set()
        for pool, members in self._pools.items():
            if len(members) < 2:
                continue
            loads = {namespace: hub.loads for namespace, hub in members.items()}
            # Of a class that one hub alone has, there is nothing to give either.
            counts = Counter(labels for hub in members.values() for labels in _counted_labels(hub.settings))
            read = {
                namespace: [labels for labels in _read_labels(hub.settings) if counts[labels] > 1]
                for namespace, hub in members.items()
            }
            for labels in frozenset().union(*read.values()):
                table = self._tables.setdefault((pool, labels), _Table())
                table.take_in({namespace: found.get(labels, {}) for namespace, found in loads.items()})
                table.follow(nodes, is_recent=is_recent)
                used.add((pool, labels))
            for namespace, hub in members.items():
                common = {labels: self._tables[pool, labels].facts for labels in read[namespace]}
                # The same object while nothing changed: the hub makes facts anew for another one.
                if not _is_same(hub.common, common):
                    hub.common = common
                given[namespace] = hub
        for namespace, hub in self._given.items():
            if given.get(namespace) is not hub:
                hub.common = {}
        self._given = given
        self._tables = {key: table for key, table in self._tables.items() if key in used}


class _Table:
    """The bound users of one pool and class, and the images that are on nodes."""

    def __init__(self) -> None:
        self.facts = WarmFacts()
        self._images = NodeImages()
        self._nodes: Nodes | None = None
        # What each hub's pods were when they were last taken in.
        self._taken: Mapping[str, Mapping[str, WarmPod]] = {}

    def take_in(self, loads: Mapping[str, Mapping[str, WarmPod]]) -> None:
        """Count these pods, by namespace, and no others."""
        changes: dict[str, WarmPod | None] = {}
        for namespace in loads.keys() | self._taken.keys():
            before, now = self._taken.get(namespace, {}), loads.get(namespace, {})
            if before is not now:
                changes |= {key: None for key, pod in before.items() if pod.images and key not in now}
                changes |= {key: _if_bound(pod) for key, pod in now.items() if before.get(key) != pod}
        if changes:
            self.facts = self.facts.updated(changes)
        self._taken = loads

    def follow(self, nodes: Nodes | None, *, is_recent: bool) -> None:
        """Forget what was on nodes that went, and take in what nodes report. nodes: None: they can't be read."""
        if nodes is not None:
            self._images.note_changed(self._nodes, nodes)
            self._nodes = nodes
        self.facts = self._images.follow({None: self.facts}, nodes, with_reports=is_recent)[None]


def _read_labels(settings: Settings) -> frozenset[Labels]:
    """Of the classes whose warm sets read what is common."""
    classes = settings.classes.values() if settings.reads_nodes else ()
    return frozenset(labels_of(pod_class) for pod_class in classes if pod_class.warm is not None)


def _counted_labels(settings: Settings) -> frozenset[Labels]:
    """Of the classes whose pods others count."""
    return frozenset(labels_of(one) for one in settings.classes.values() if counts_for_others(settings, one))


def _is_same(before: Mapping[Labels, WarmFacts], now: Mapping[Labels, WarmFacts]) -> bool:
    """Whether both hold the same objects."""
    return before.keys() == now.keys() and all(before[labels] is facts for labels, facts in now.items())


def _if_bound(pod: WarmPod) -> WarmPod | None:
    """Only pods that are bound show images."""
    return pod._replace(images=pod.images[:MAX_IMAGES_A_POD]) if pod.images else None
