"""The PodTopologySpread filter: which constraints bind a pod, and how many pods each domain has.

Source: kube-scheduler's plugin of that name, v1.33 to v1.37.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Self

from roost_core.objects.pod import Pod, SpreadConstraint
from roost_core.objects.selectors import Requirement, selector_matches
from roost_core.scheduler.node_filters import NodeFilters
from roost_core.scheduler.node_rows import NodeRow
from roost_core.scheduler.pod_queries import PodQuery
from roost_core.scheduler.profile import Profile
from roost_core.scheduler.rejections import Rejection
from roost_core.scheduler.state import ClusterState

SKEWED: Final = Rejection(("node(s) didn't match pod topology spread constraints",), False)
NO_TOPOLOGY: Final = Rejection(
    ("node(s) didn't match pod topology spread constraints (missing required label)",), True
)


def spread_constraints(
    pod: Pod, profile: Profile, state: ClusterState, *, required: bool
) -> list[SpreadConstraint]:
    """The pod's required spreading constraints, or the others.

    A pod without any constraint gets the profile's constraints, with the selector of its Services
    and its controller.
    """
    if pod.spec.spread_constraints:
        return [
            _with_label_keys(constraint, pod)
            for constraint in pod.spec.spread_constraints
            if constraint.required == required
        ]
    defaults = [
        constraint for constraint in profile.default_spread if constraint.required == required
    ]
    if not defaults:
        return []
    selector = _default_selector(pod, state)
    if not selector:
        return []
    return [constraint._replace(selector=selector) for constraint in defaults]


def _with_label_keys(constraint: SpreadConstraint, pod: Pod) -> SpreadConstraint:
    """A pod's constraint with its `matchLabelKeys` in the selector."""
    keys = [key for key in constraint.match_label_keys if key in pod.labels]
    if not keys or constraint.selector is None:
        return constraint
    more = {Requirement(key, "In", frozenset((pod.labels[key],))) for key in keys}
    return constraint._replace(selector=constraint.selector | more)


def _default_selector(pod: Pod, state: ClusterState) -> frozenset[Requirement]:
    """The selectors of all Services that select the pod, and of its controller, together.

    Empty: there are none.
    """
    labels: dict[str, str] = {}
    for selector in state.surroundings.services.get(pod.namespace, ()):
        if all(pod.labels.get(key) == value for key, value in selector.items()):
            labels.update(selector)
    requirements = frozenset(
        Requirement(key, "In", frozenset((value,))) for key, value in labels.items()
    )
    if pod.owner is None:
        return requirements
    return requirements | state.surroundings.controllers.get(
        (pod.owner.kind, pod.namespace, pod.owner.name), frozenset()
    )


def spread_query(constraint: SpreadConstraint, namespace: str) -> PodQuery:
    """A query for the pods that a constraint counts. namespace: of the pod with the constraint."""
    return PodQuery(((frozenset((namespace,)), constraint.selector),), living=True)


def counted_nodes(
    nodes: NodeFilters, constraints: Sequence[SpreadConstraint], *, require_all: bool
) -> Iterator[tuple[NodeRow, list[int]]]:
    """Yield the nodes that count for spreading.

    Each comes with the indices of the constraints whose policies admit it. require_all: only nodes
    that have the topology keys of all constraints.
    """
    keys = [constraint.topology_key for constraint in constraints]
    for row in nodes.state.rows.values():
        if require_all and not all(key in row.labels for key in keys):
            continue
        indices = [
            index
            for index, constraint in enumerate(constraints)
            if admits(nodes, constraint, row.name)
        ]
        if indices:
            yield row, indices


def admits(nodes: NodeFilters, constraint: SpreadConstraint, name: str) -> bool:
    """Whether the node passes the constraint's inclusion policies."""
    if constraint.honor_affinity and name in nodes.unmatched:
        return False
    return not (constraint.honor_taints and name in nodes.kept_off)


class SpreadCounts:
    """DoNotSchedule constraints, with the number of pods in each of their domains."""

    __slots__ = ("_constraints", "_counts", "_fewest", "_matches_itself", "_nodes")

    def __init__(self, nodes: NodeFilters, constraints: Sequence[SpreadConstraint]) -> None:
        self._nodes = nodes
        self._constraints = constraints
        labels = nodes.pod.labels
        # For each constraint: 1 if it counts the pod itself, else 0.
        self._matches_itself = [
            int(selector_matches(constraint.selector, labels)) for constraint in constraints
        ]
        # For each constraint: the number of pods in each domain, by the value of the topology key.
        self._counts: list[dict[str, int]] = [{} for _ in constraints]
        # Pods that each constraint counts, by the node's name.
        pods: list[Mapping[str, int]] = []
        for constraint in constraints:
            # An empty selector counts no pod here.
            if constraint.selector:
                query = spread_query(constraint, nodes.pod.namespace)
                pods.append(nodes.state.count_pods(query))
            else:
                pods.append({})
        # The smallest count of each constraint; None: it must be found again after a change.
        self._fewest: list[int | None] = [None] * len(constraints)
        for row, indices in counted_nodes(nodes, constraints, require_all=True):
            for index in indices:
                counts = self._counts[index]
                value = row.labels[constraints[index].topology_key]
                counts[value] = counts.get(value, 0) + pods[index].get(row.name, 0)

    @classmethod
    def of(cls, nodes: NodeFilters) -> Self | None:
        """The counts for the cycle's pod; None: no required constraint binds it."""
        constraints = spread_constraints(nodes.pod, nodes.profile, nodes.state, required=True)
        return cls(nodes, constraints) if constraints else None

    def copy(self) -> Self:
        """A copy. `count` on the copy doesn't change this object."""
        new = type(self).__new__(type(self))
        new._nodes = self._nodes
        new._constraints = self._constraints
        new._matches_itself = self._matches_itself
        new._counts = [dict(counts) for counts in self._counts]
        new._fewest = list(self._fewest)
        return new

    def count(self, pod: Pod, row: NodeRow, sign: int) -> None:
        """Add another pod on a node to the counts (sign 1), or remove it (sign -1).

        Pods that are being deleted count here, but not in the first counts: kube-scheduler does the
        same.
        """
        if pod.namespace != self._nodes.pod.namespace:
            return
        if not all(constraint.topology_key in row.labels for constraint in self._constraints):
            return
        for index, constraint in enumerate(self._constraints):
            is_counted = selector_matches(constraint.selector, pod.labels)
            if is_counted and admits(self._nodes, constraint, row.name):
                counts = self._counts[index]
                value = row.labels[constraint.topology_key]
                counts[value] = counts.get(value, 0) + sign
                self._fewest[index] = None

    def check(self, row: NodeRow) -> Rejection | None:
        """Return why the pod would skew the domains too much on this node; None if it wouldn't."""
        for index, constraint in enumerate(self._constraints):
            value = row.labels.get(constraint.topology_key)
            if value is None:
                return NO_TOPOLOGY
            number = self._counts[index].get(value, 0) + self._matches_itself[index]
            if number - self._fewest_of(index) > constraint.max_skew:
                return SKEWED
        return None

    def _fewest_of(self, index: int) -> int:
        """The smallest count of a constraint; 0 if there are fewer domains than `minDomains`."""
        fewest = self._fewest[index]
        if fewest is None:
            counts = self._counts[index]
            has_enough_domains = len(counts) >= self._constraints[index].min_domains
            fewest = min(counts.values()) if has_enough_domains else 0
            self._fewest[index] = fewest
        return fewest
