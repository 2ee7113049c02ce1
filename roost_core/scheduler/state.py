"""Keep a cluster as kube-scheduler's cache does: nodes, the pods on them, and the sums that
decisions need.

`ClusterState` is changed in place, because a simulator makes thousands of decisions, and changes
one pod between two of them. To add a pod and to remove it again leaves an equal state. `without`
takes pods away for one decision: "where would they go now?". Nothing here reads a clock or is
random.

To decide quickly, the state keeps three things up to date:

- how many pods with each (anti-)affinity term a node has;
- how many pods each selector matches, of the selectors that were used lately;
- what was computed from one node and its pods alone, in a `NodeColumn`. It is computed again only
  for nodes that changed.
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
# Selectors whose counts are kept; the least recently used goes first.
_REMEMBERED_QUERIES: Final = 128
# Columns that are kept; the least recently used goes first.
_REMEMBERED_COLUMNS: Final = 64
# Changes of rows that are kept. A column that missed more of them is computed anew.
_REMEMBERED_CHANGES: Final = 4096
# Specs whose terms and needs are kept. When there are more, all are forgotten.
_REMEMBERED_SPECS: Final = 4096
# What kube-scheduler calls a node's zone; the deprecated label counts first.
_ZONE_LABELS: Final = ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone")
_REGION_LABELS: Final = (
    "failure-domain.beta.kubernetes.io/region",
    "topology.kubernetes.io/region",
)


class KeptResults(NamedTuple):
    """What filters found for needs and a profile.

    Both are found again by their `id`, so they are kept alive here: else another object could get
    the same `id`.
    """

    needs: object
    profile: object
    results: Any


class Needs(NamedTuple):
    """The parts of a spec that filters compare with one node and its pods.

    Pods with equal needs get the same results, which are kept. Users' pods differ mostly in their
    images, so thousands of specs have few different needs.
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
        # As the first node reported it. As in kube-scheduler, other nodes' reports change it only
        # after no node had the image any more.
        self.size_bytes = size_bytes
        self.holders: set[str] = set()


class LabelValues(NamedTuple):
    """The values of one label."""

    # Of each of `ClusterState.ordered`; None: the node hasn't the label.
    values: list[str | None]
    # Whether every node has the label, each with another value.
    all_differ: bool


class ChangedRows(NamedTuple):
    """Which rows changed, in the order of the changes. A row is named again with each change."""

    names: list[str]
    # How many earlier changes were forgotten.
    forgotten: int


class NodeColumn(Generic[_Found]):
    """What was computed from each row, in the order of `ClusterState.ordered`. Read-only."""

    __slots__ = ("_keep_alive", "_order", "_seen", "values")

    def __init__(self, keep_alive: object) -> None:
        self.values: list[_Found] = []
        self._keep_alive = keep_alive
        self._order: tuple[NodeRow, ...] | None = None
        # How many changes of rows the values take into account.
        self._seen = 0

    def follow(self, state: ClusterState, find: Callable[[NodeRow], _Found]) -> None:
        """Compute the values of changed rows again."""
        order = state.ordered
        names, forgotten = state.changes
        changes_so_far = forgotten + len(names)
        missed = changes_so_far - self._seen
        must_compute_all = self._order is not order or self._seen < forgotten or missed > len(order)
        if must_compute_all:
            self.values = list(map(find, order))
            self._order = order
        elif missed:
            places = state.places
            values = self.values
            for name in set(names[-missed:]):
                place = places[name]
                values[place] = find(order[place])
        self._seen = changes_so_far


class ClusterState:
    """Nodes and pods, as `filters`, `scores` and `preemption` need them.

    stale_images: score images as kube-scheduler does, with counts of holders that may be out of
    date. It keeps such counts for each node, and refreshes them in the first cycle after that node
    or a pod on it changed. Without this, the present counts are used for every node.
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
        # Pods that are bound or nominated, by "namespace/name".
        self._pods: dict[str, Pod] = {}
        # With `stale_images`: names of nodes that changed since the last cycle.
        self._unseen: set[str] = set()
        # Pods bound to a node that isn't known (yet): by name of the node, by key of the pod.
        self._homeless: dict[str, dict[str, Pod]] = {}
        # How many pods have a term, by name of their node.
        self.terms: dict[OwnedTerm, dict[str, int]] = {}
        # See `_owned_terms`.
        self._owned: dict[tuple[object, ...], tuple[PodSpec, list[OwnedTerm]]] = {}
        # See `needs_of`.
        self._needs: dict[tuple[int, ...], tuple[PodSpec, Needs]] = {}
        self._equal_needs: dict[Needs, Needs] = {}
        # How many pods a query finds, by name of their node.
        self._queries: OrderedDict[PodQuery, dict[str, int]] = OrderedDict()
        # Zones in order of arrival, and in each the names of its nodes in order of arrival.
        self._zones: dict[str, dict[str, None]] = {}
        # See `ordered`; None: must be worked out again, with the two below.
        self._ordered: tuple[NodeRow, ...] | None = None
        self._names: tuple[str, ...] = ()
        self._places: dict[str, int] = {}
        # See `label_values`.
        self._labels: dict[str, LabelValues] = {}
        self.changes = ChangedRows([], 0)
        self._columns: OrderedDict[tuple[object, ...], NodeColumn[Any]] = OrderedDict()
        # For `filters`: results that hold while no node changes, by the `id` of needs and profile.
        self.filter_results: dict[tuple[int, int], KeptResults] = {}
        # For `filters`: names of the nodes that meet a term.
        self.meeting: dict[NodeTerm, tuple[str, ...]] = {}
        for node in nodes:
            self.set_node(node)
        for pod in pods:
            self.add_pod(pod)

    # Nodes

    @property
    def ordered(self) -> tuple[NodeRow, ...]:
        """All rows in kube-scheduler's order: the first node of each zone, then the second of
        each, and so on.
        """
        if self._ordered is None:
            zones = [list(names) for names in self._zones.values()]
            most_nodes = max(map(len, zones), default=0)
            rows = []
            for index in range(most_nodes):
                rows += [self.rows[names[index]] for names in zones if index < len(names)]
            self._ordered = tuple(rows)
            self._names = tuple([row.name for row in rows])
            self._places = {name: place for place, name in enumerate(self._names)}
        return self._ordered

    @property
    def names(self) -> tuple[str, ...]:
        """The names of `ordered`."""
        if self._ordered is None:
            _ = self.ordered
        return self._names

    @property
    def places(self) -> Mapping[str, int]:
        """Where in `ordered` each node is, by name."""
        if self._ordered is None:
            _ = self.ordered
        return self._places

    def label_values(self, key: str) -> LabelValues:
        """Read a label of all nodes; kept until a node changes."""
        label_values = self._labels.get(key)
        if label_values is None:
            values = [row.labels.get(key) for row in self.ordered]
            all_differ = None not in values and len(set(values)) == len(values)
            label_values = self._labels[key] = LabelValues(values, all_differ)
        return label_values

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
        """Replace a node's list of images. name: of the node; before, after: bytes by image."""
        if before is after:
            return
        # The old list is taken out whole. So a node that alone has an image brings a new size.
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
        """Begin a cycle. With `stale_images`, refresh the image counts of nodes that changed since
        the last cycle.
        """
        for name in self._unseen:
            row = self.rows.get(name)
            if row is not None:
                row.image_view = {
                    image: (self.images[image].size_bytes, len(self.images[image].holders))
                    for image in row.node.images
                }
        self._unseen.clear()

    def touch(self, name: str) -> None:
        """Note that a node was reported again, without a change that the model knows.

        With `stale_images`, its image counts are refreshed all the same.
        """
        if self.stale_images and name in self.rows:
            self._unseen.add(name)

    def _changed(self, row: NodeRow) -> None:
        names, forgotten = self.changes
        names.append(row.name)
        if len(names) > _REMEMBERED_CHANGES:
            self.changes = ChangedRows([], forgotten + len(names))
        if self.stale_images:
            self._unseen.add(row.name)

    # Pods

    def get_pod(self, key: str) -> Pod | None:
        """The pod of that `namespace/name`, as it was added."""
        return self._pods.get(key)

    def add_pod(self, pod: Pod) -> None:
        """Add a pod, or replace the pod of its name.

        A pod that has finished, or is neither bound nor nominated, is only removed.
        """
        if pod.key in self._pods:
            self.remove_pod(pod.key)
        has_node = bool(pod.node_name or pod.nominated_node)
        if pod.is_finished or not has_node:
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
        """Take these pods out while the `with` block runs.

        They are added again at its end, also after an exception.
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
        """Count a pod in (1) or out (-1)."""
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
        """`owned_terms`, made once for all pods of a namespace whose specs share their terms."""
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
            # The spec is kept alive, so that no other object gets the same `id`.
            known = self._owned[key] = (spec, owned_terms(pod))
        _, terms = known
        return terms

    # Answers

    def needs_of(self, spec: PodSpec) -> Needs:
        """The spec's needs. Equal needs are the same object, so its `id` may serve as a key."""
        # Specs that were copied from one spec share these parts.
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
            needs = self._equal_needs.setdefault(new_needs, new_needs)
            # The spec is kept alive, so that no other object gets the same `id`.
            known = self._needs[key] = (spec, needs)
        _, needs = known
        return needs

    def column(
        self, key: tuple[object, ...], find: Callable[[NodeRow], _Found], keep_alive: object = None
    ) -> NodeColumn[_Found]:
        """What `find` returns for each row. It is kept under `key`.

        `find` may look at the row only, and not at its nominated pods. keep_alive: an object whose
        `id` is in `key`.
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
        """How many pods the query finds, by name of the node; without the nodes that have none.

        Read-only.
        """
        counts = self._queries.get(query)
        if counts is not None:
            self._queries.move_to_end(query)
            return counts
        counts = {}
        for name, row in self.rows.items():
            number = sum(map(query.finds, row.pods.values()))
            if number:
                counts[name] = number
        self._queries[query] = counts
        if len(self._queries) > _REMEMBERED_QUERIES:
            self._queries.popitem(last=False)
        return counts

    def namespaces_of(
        self, namespaces: frozenset[str], selector: frozenset[Requirement] | None
    ) -> frozenset[str] | None:
        """The namespaces that a term means; None: all of them.

        namespaces: that it names; selector: of labels of further namespaces.
        """
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
        """Which pods a term means: in which namespaces (None: all), with which labels.

        namespace: of the pod that has the term.
        """
        namespaces = self.namespaces_of(own_namespaces(term, namespace), term.namespace_selector)
        return namespaces, term.selector

    def labels_of_namespace(self, namespace: str) -> Mapping[str, str]:
        """The labels of a namespace; none if it is unknown."""
        return self.surroundings.namespaces.get(namespace) or {}


def _zone_of(node: Node) -> str:
    """What kube-scheduler tells zones apart by; "" for a node without region and zone."""
    zone = _first_label(node.labels, _ZONE_LABELS)
    region = _first_label(node.labels, _REGION_LABELS)
    return f"{region}:\0:{zone}" if zone or region else ""


def _first_label(labels: Mapping[str, str], keys: Iterable[str]) -> str:
    """The value of the first of these labels that is there; "" if none is."""
    return next((labels[key] for key in keys if key in labels), "")
