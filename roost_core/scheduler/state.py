"""Keep a cluster as kube-scheduler's cache does: nodes, the pods on them, and the sums that
decisions need.

`ClusterState` is changed in place, because a simulator changes one pod at a time between thousands
of decisions. Every change has an exact inverse, in any order: adding and removing a pod leaves an
equal state, and `without` does so for one decision ("where would it go now?"). Nothing here reads a
clock or is random.

Besides the sums, each change updates how many pods with each (anti-)affinity term a node has, and
how many pods each selector matches that was used before. So a decision costs the number of terms,
not of pods. What depends on one row alone is cached in a `Column`, and computed again only for rows
that changed.
"""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, Generic, NamedTuple, Self, TypeVar

from roost_core.objects.node import Node
from roost_core.objects.pod import HostPort, Pod, PodSpec, PodTerm
from roost_core.objects.selectors import NodeTerm, Requirement, Toleration, selector_matches
from roost_core.scheduler.node_rows import NodeRow, bump
from roost_core.scheduler.pod_queries import OwnedTerm, PodQuery, own_namespaces, owned_terms
from roost_core.scheduler.surroundings import NO_SURROUNDINGS, Surroundings

_Found = TypeVar("_Found")
# Cached counts of selectors; the least recently used goes first.
_REMEMBERED_QUERIES: Final = 128
# Columns of what depends on one node and its pods; the least recently used goes first.
_REMEMBERED_COLUMNS: Final = 64
# Changes of rows that a column can catch up with; one that is further behind is computed again.
_REMEMBERED_CHANGES: Final = 4096
# Specs whose terms are cached; beyond this, the cache is cleared.
_REMEMBERED_SPECS: Final = 4096
# What kube-scheduler calls a node's zone; the deprecated label counts first.
_ZONE_LABELS: Final = ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone")
_REGION_LABELS: Final = (
    "failure-domain.beta.kubernetes.io/region",
    "topology.kubernetes.io/region",
)


class KeptResults(NamedTuple):
    """What filters found for needs and a profile. Both are known by identity, and so kept alive."""

    needs: object
    profile: object
    results: Any


class Needs(NamedTuple):
    """All of a spec that filters ask of one node alone: pods that differ in nothing else get the
    same results there.

    Users' pods differ in their images, so there are few of these where there are thousands of
    specs.
    """

    requests: tuple[tuple[str, int], ...]
    host_ports: tuple[HostPort, ...]
    node_selector: tuple[tuple[str, str], ...]
    required_node_terms: tuple[NodeTerm, ...] | None
    tolerations: tuple[Toleration, ...]


class ImageUse:
    """One image name: its size, and the nodes that report it."""

    __slots__ = ("holders", "size_bytes")

    def __init__(self, size_bytes: int) -> None:
        # The first report counts while any node has the image, as kube-scheduler's cache has it.
        self.size_bytes = size_bytes
        self.holders: set[str] = set()


class NodeColumn(Generic[_Found]):
    """What was found out of each row, in the order of `ClusterState.ordered`. Read-only."""

    __slots__ = ("_keep_alive", "_order", "_seen", "values")

    def __init__(self, keep_alive: object) -> None:
        self.values: list[_Found] = []
        self._keep_alive = keep_alive
        self._order: tuple[NodeRow, ...] | None = None
        self._seen = 0

    def follow(self, state: ClusterState, find: Callable[[NodeRow], _Found]) -> None:
        """Compute changed rows again."""
        order = state.ordered
        changes, first = state.changes
        behind = len(changes) - (self._seen - first)
        if self._order is not order or self._seen < first or behind > len(order):
            self.values = list(map(find, order))
            self._order = order
        elif behind:
            places = state.places
            values = self.values
            for name in set(changes[-behind:]):
                place = places[name]
                values[place] = find(order[place])
        self._seen = first + len(changes)


class ClusterState:
    """Nodes and pods, as `filters`, `scores` and `preemption` need them.

    stale_images: keep for each node the counts of image holders that its own entry last saw, as
    kube-scheduler does: they are refreshed in the first cycle after that node or a pod on it
    changed. Off, every node sees present counts.
    """

    def __init__(
        self,
        nodes: Iterable[Node] = (),
        pods: Iterable[Pod] = (),
        surroundings: Surroundings = NO_SURROUNDINGS,
        *,
        stale_images: bool = False,
    ) -> None:
        self.rows: dict[str, NodeRow] = {}
        self.images: dict[str, ImageUse] = {}
        self.surroundings = surroundings
        self.stale_images = stale_images
        # Pods by "namespace/name", and the node each is on or nominated to.
        self._pods: dict[str, Pod] = {}
        # With `stale_images`: nodes that changed since the last cycle.
        self._unseen: set[str] = set()
        # Bound to nodes that aren't known (yet).
        self._homeless: dict[str, dict[str, Pod]] = {}
        # Pods with a term, counted by node name.
        self.terms: dict[OwnedTerm, dict[str, int]] = {}
        self._owned: dict[tuple[object, ...], tuple[PodSpec, list[OwnedTerm]]] = {}
        self._needs: dict[tuple[int, ...], tuple[PodSpec, Needs]] = {}
        self._equal_needs: dict[Needs, Needs] = {}
        self._queries: OrderedDict[PodQuery, dict[str, int]] = OrderedDict()
        # Names by zone, zones and names in order of arrival.
        self._zones: dict[str, dict[str, None]] = {}
        self._ordered: tuple[NodeRow, ...] | None = None
        self._names: tuple[str, ...] = ()
        self._places: dict[str, int] = {}
        self._labels: dict[str, tuple[list[str | None], bool]] = {}
        # Names of rows in the order in which they changed, and how many were forgotten before the
        # first of them.
        self.changes: tuple[list[str], int] = ([], 0)
        self._columns: OrderedDict[tuple[object, ...], NodeColumn[Any]] = OrderedDict()
        # For `filters`: results that hold while no node changes, and the nodes that meet a term.
        self.filter_results: dict[tuple[int, int], KeptResults] = {}
        self.meeting: dict[NodeTerm, tuple[str, ...]] = {}
        for node in nodes:
            self.set_node(node)
        for pod in pods:
            self.add_pod(pod)

    # Nodes

    @property
    def ordered(self) -> tuple[NodeRow, ...]:
        """All rows in kube-scheduler's order: one node of each zone in turn, in order of
        arrival.
        """
        if self._ordered is None:
            lists = [list(names) for names in self._zones.values()]
            rows = []
            for index in range(max(map(len, lists), default=0)):
                rows += [self.rows[names[index]] for names in lists if index < len(names)]
            self._ordered = tuple(rows)
            self._names = tuple([row.name for row in rows])
            self._places = {name: place for place, name in enumerate(self._names)}
        return self._ordered

    @property
    def names(self) -> tuple[str, ...]:
        """The names of `ordered`."""
        return (
            self._names if self._ordered is not None else tuple([row.name for row in self.ordered])
        )

    @property
    def places(self) -> Mapping[str, int]:
        """Where in `ordered` each node is, by name."""
        if self._ordered is None:
            _ = self.ordered
        return self._places

    def label_values(self, key: str) -> tuple[list[str | None], bool]:
        """A label's value of each of `ordered`, and whether each has one of its own."""
        column = self._labels.get(key)
        if column is None:
            values = [row.labels.get(key) for row in self.ordered]
            column = self._labels[key] = (
                values,
                None not in values and len(set(values)) == len(values),
            )
        return column

    def set_node(self, node: Node) -> None:
        """Add a node, or replace what is known of it; its pods stay."""
        name = node.name
        row = self.rows.get(name)
        if row is None:
            row = self.rows[name] = NodeRow(node)
            self._zones.setdefault(_zone_of(node), {})[name] = None
            self._nodes_changed()
            self._move_images({}, node.images, name)
            for pod in self._homeless.pop(name, {}).values():
                self._place(row, pod)
            for pod in self._pods.values():
                if not pod.node_name and pod.nominated_node == name:
                    row.nominated[pod.key] = pod
        else:
            before = row.node
            row.set_node(node)
            if before != node:
                old_zone = _zone_of(before)
                zone = _zone_of(node)
                if old_zone != zone:
                    # As in kube-scheduler, the order follows only when another node comes or goes.
                    self._leave_zone(old_zone, name)
                    self._zones.setdefault(zone, {})[name] = None
                self._forget_filter_results()
            self._move_images(before.images, node.images, name)
        self._changed(row)

    def remove_node(self, name: str) -> None:
        """Remove a node.

        Its pods are kept until it returns or they are removed. Raises KeyError.
        """
        row = self.rows[name]
        for pod in list(row.pods.values()):
            self._displace(row, pod)
            self._homeless.setdefault(name, {})[pod.key] = pod
        self._move_images(row.node.images, {}, name)
        del self.rows[name]
        self._leave_zone(_zone_of(row.node), name)
        self._nodes_changed()

    def _leave_zone(self, zone: str, name: str) -> None:
        names = self._zones[zone]
        del names[name]
        if not names:
            del self._zones[zone]

    def _nodes_changed(self) -> None:
        self._ordered = None
        self._forget_filter_results()

    def _forget_filter_results(self) -> None:
        self.filter_results.clear()
        self.meeting.clear()
        self._labels.clear()

    def _move_images(self, before: Mapping[str, int], after: Mapping[str, int], name: str) -> None:
        if before is after:
            return
        # All of the old report goes first: the last holder's new report brings a new size.
        for image in before:
            use = self.images.get(image)
            if use is not None:
                use.holders.discard(name)
                if not use.holders:
                    del self.images[image]
        for image, size_bytes in after.items():
            use = self.images.get(image)
            if use is None:
                use = self.images[image] = ImageUse(size_bytes)
            use.holders.add(name)

    def look(self) -> None:
        """Begin a cycle: with `stale_images`, nodes that changed since the last one see the present
        counts.
        """
        if self._unseen:
            for name in self._unseen:
                row = self.rows.get(name)
                if row is not None:
                    row.image_view = {
                        image: (self.images[image].size_bytes, len(self.images[image].holders))
                        for image in row.node.images
                    }
            self._unseen.clear()

    def touch(self, name: str) -> None:
        """Note that something about a node was told again that changes nothing here: its entry sees
        images anew.
        """
        if self.stale_images and name in self.rows:
            self._unseen.add(name)

    def _changed(self, row: NodeRow) -> None:
        changes, first = self.changes
        changes.append(row.name)
        if len(changes) > _REMEMBERED_CHANGES:
            self.changes = [], first + len(changes)
        if self.stale_images:
            self._unseen.add(row.name)

    # Pods

    def get_pod(self, key: str) -> Pod | None:
        """The pod of that `namespace/name`, as it was added."""
        return self._pods.get(key)

    def add_pod(self, pod: Pod) -> None:
        """Add a pod, or replace the one of its name.

        Finished ones, and those neither bound nor nominated, just go.
        """
        if pod.key in self._pods:
            self.remove_pod(pod.key)
        if pod.is_finished or not (pod.node_name or pod.nominated_node):
            return
        self._pods[pod.key] = pod
        if pod.node_name:
            row = self.rows.get(pod.node_name)
            if row is None:
                self._homeless.setdefault(pod.node_name, {})[pod.key] = pod
            else:
                self._place(row, pod)
            return
        row = self.rows.get(pod.nominated_node)
        if row is not None:
            row.nominated[pod.key] = pod

    def remove_pod(self, key: str) -> Pod:
        """Remove a pod and return it. Raises KeyError if there is none."""
        pod = self._pods.pop(key)
        if not pod.node_name:
            if pod.nominated_node in self.rows:
                self.rows[pod.nominated_node].nominated.pop(key, None)
            return pod
        row = self.rows.get(pod.node_name)
        if row is None:
            waiting = self._homeless[pod.node_name]
            del waiting[key]
            if not waiting:
                del self._homeless[pod.node_name]
        else:
            self._displace(row, pod)
        return pod

    @contextlib.contextmanager
    def without(self, *keys: str) -> Iterator[Self]:
        """The state without these pods; they are added again afterwards, also after an
        exception.
        """
        removed = [self.remove_pod(key) for key in keys if key in self._pods]
        try:
            yield self
        finally:
            for pod in reversed(removed):
                self.add_pod(pod)

    def _place(self, row: NodeRow, pod: Pod) -> None:
        row.add(pod)
        self._changed(row)
        self._count(row.name, pod, 1)

    def _displace(self, row: NodeRow, pod: Pod) -> None:
        row.remove(pod)
        self._changed(row)
        self._count(row.name, pod, -1)

    def _count(self, node_name: str, pod: Pod, sign: int) -> None:
        if pod.spec.has_pod_terms:
            for term in self._owned_terms(pod):
                counts = self.terms.setdefault(term, {})
                bump(counts, node_name, sign)
                if not counts:
                    del self.terms[term]
        for query, counts in self._queries.items():
            if query.finds(pod):
                bump(counts, node_name, sign)

    def _owned_terms(self, pod: Pod) -> list[OwnedTerm]:
        """`owned_terms`, made once for all pods of a namespace that share their terms."""
        spec = pod.spec
        key = (
            id(spec.required_affinity),
            id(spec.required_anti_affinity),
            id(spec.preferred_affinity),
            id(spec.preferred_anti_affinity),
            pod.namespace,
        )
        known = self._owned.get(key)
        if known is None:
            if len(self._owned) >= _REMEMBERED_SPECS:
                self._owned.clear()
            # The spec is kept, so that those ids stay its own.
            known = self._owned[key] = (spec, owned_terms(pod))
        _, terms = known
        return terms

    # Questions

    def needs_of(self, spec: PodSpec) -> Needs:
        """The spec's needs. Equal needs are one object: who keeps it may compare by identity."""
        # Specs that are copies of one share these parts.
        key = (
            id(spec.requests),
            id(spec.host_ports),
            id(spec.node_selector),
            id(spec.required_node_terms),
            id(spec.tolerations),
        )
        known = self._needs.get(key)
        if known is None:
            if len(self._needs) >= _REMEMBERED_SPECS:
                self._needs.clear()
                self._equal_needs.clear()
            new_needs = Needs(
                spec.requests,
                spec.host_ports,
                spec.node_selector,
                spec.required_node_terms,
                spec.tolerations,
            )
            # The spec is kept, so that those ids stay its own.
            known = self._needs[key] = (spec, self._equal_needs.setdefault(new_needs, new_needs))
        _, needs = known
        return needs

    def column(
        self, key: tuple[object, ...], find: Callable[[NodeRow], _Found], keep_alive: object = None
    ) -> NodeColumn[_Found]:
        """What `find` says of each row, for whoever asks with this key.

        It may look at nothing but the row, its nominated pods aside. keep_alive: what `key` names
        by identity.
        """
        column = self._columns.get(key)
        if column is None:
            column = self._columns[key] = NodeColumn(keep_alive)
            if len(self._columns) > _REMEMBERED_COLUMNS:
                self._columns.popitem(last=False)
        else:
            self._columns.move_to_end(key)
        column.follow(self, find)
        return column

    def count_pods(self, query: PodQuery) -> Mapping[str, int]:
        """How many pods the query matches, by node; nodes without any are left out. Read-only."""
        counts = self._queries.get(query)
        if counts is not None:
            self._queries.move_to_end(query)
            return counts
        counts = self._queries[query] = {
            name: number
            for name, row in self.rows.items()
            if (number := sum(map(query.finds, row.pods.values())))
        }
        if len(self._queries) > _REMEMBERED_QUERIES:
            self._queries.popitem(last=False)
        return counts

    def namespaces_of(
        self, namespaces: frozenset[str], selector: frozenset[Requirement] | None
    ) -> frozenset[str] | None:
        """The namespaces a term of a pod that comes means; None for all of them."""
        if selector is None:
            return namespaces
        if not selector:
            return None
        selected = (
            name
            for name, labels in self.surroundings.namespaces.items()
            if selector_matches(selector, labels)
        )
        return namespaces.union(selected)

    def condition_of(
        self, term: PodTerm, namespace: str
    ) -> tuple[frozenset[str] | None, frozenset[Requirement] | None]:
        """Which pods a term of a pod of that namespace means."""
        return self.namespaces_of(
            own_namespaces(term, namespace), term.namespace_selector
        ), term.selector

    def labels_of_namespace(self, namespace: str) -> Mapping[str, str]:
        """The labels of a namespace; none if it is unknown."""
        return self.surroundings.namespaces.get(namespace) or {}


def _zone_of(node: Node) -> str:
    labels = node.labels
    zone, region = (
        next((labels[label] for label in names if label in labels), "")
        for names in (_ZONE_LABELS, _REGION_LABELS)
    )
    return f"{region}:\0:{zone}" if zone or region else ""
