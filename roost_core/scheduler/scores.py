"""Score the nodes that fit a pod exactly as kube-scheduler does, and choose one of them.

Models the score plugins, their normalisation over the nodes that fit, their weights, and how ties
end. A single point can decide, so the arithmetic is kube-scheduler's, too: integers are divided
towards zero, and floats are added in the same order. Source: the PreScore, Score and NormalizeScore
methods of kube-scheduler's plugins and its heap of totals, v1.33 to v1.37.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import repeat
from operator import add
from typing import Final, NamedTuple, TypeVar

from roost_core.objects.node import HOSTNAME_LABEL
from roost_core.objects.pod import SpreadConstraint
from roost_core.objects.requests import CPU, MEMORY, is_scalar
from roost_core.scheduler.filters import Cycle
from roost_core.scheduler.node_rows import NodeRow
from roost_core.scheduler.plugins import (
    BALANCED_ALLOCATION,
    DYNAMIC_RESOURCES,
    IMAGE_LOCALITY,
    INTER_POD_AFFINITY,
    NODE_AFFINITY,
    NODE_RESOURCES_FIT,
    POD_TOPOLOGY_SPREAD,
    TAINT_TOLERATION,
    VOLUME_BINDING,
)
from roost_core.scheduler.pod_queries import PREFERRED, REQUIRED_AFFINITY, PodQuery, term_selects
from roost_core.scheduler.profile import LEAST_ALLOCATED
from roost_core.scheduler.state import ClusterState
from roost_core.scheduler.topology_spread import admits, spread_constraints, spread_query

MAX_SCORE: Final = 100
_MIB: Final = 2**20
# ImageLocality: up to so many bytes, a node gets no point.
_MIN_IMAGE_BYTES: Final = 23 * _MIB
# ImageLocality: from so many bytes for each container on, a node gets all points.
_MAX_IMAGE_BYTES: Final = 1000 * _MIB


class Alike(NamedTuple):
    """The points of nodes, most of which have the same number.

    Only the chosen nodes' points mean something: `others` may name other nodes, too.
    """

    # Of each node that `others` doesn't name.
    usual: int
    # By name of the node.
    others: Mapping[str, int]


# What a plugin's function returns: points times the plugin's weight. A list has the points of each
# node in the order of `ClusterState.ordered`. None: the plugin doesn't score this pod.
Scores = Alike | list[int] | None
_T = TypeVar("_T")


class Chosen:
    """The nodes that fit. `places`: where they are in `ClusterState.ordered`."""

    __slots__ = ("_name_set", "_names", "places", "state")

    def __init__(self, state: ClusterState, places: Sequence[int]) -> None:
        self.state = state
        self.places = places
        self._names: tuple[str, ...] | None = None
        self._name_set: frozenset[str] | None = None

    def __len__(self) -> int:
        return len(self.places)

    def of(self, values: Sequence[_T]) -> list[_T]:
        """The chosen nodes' values. values: of all nodes, as in `ClusterState.ordered`."""
        return list(map(values.__getitem__, self.places))

    def among(self, values: Mapping[str, int]) -> Mapping[str, int]:
        """The chosen nodes' values. values: by name of the node; any node may be left out."""
        all_are_chosen = len(self.places) == len(self.state.rows)
        if not values or all_are_chosen:
            return values
        if self._name_set is None:
            self._name_set = frozenset(self.names)
        chosen = self._name_set
        return {name: value for name, value in values.items() if name in chosen}

    @property
    def names(self) -> tuple[str, ...]:
        """The chosen nodes' names."""
        if self._names is None:
            self._names = tuple(self.of(self.state.names))
        return self._names

    @property
    def rows(self) -> list[NodeRow]:
        """The chosen nodes' rows."""
        return self.of(self.state.ordered)


class ScoreTable:
    """Points of every node that fits, by plugin, and their sums. All are in the order of `nodes`.

    The choice needs only `place_of_best`. The tables are for readers of a decision, so each is made
    when it is asked for. The state may have changed by then, so nothing here looks at it again.
    """

    __slots__ = ("_scored", "_totals_above_usual", "_usual", "nodes", "place_of_best")

    def __init__(self, chosen: Chosen, scored: Mapping[str, Alike | list[int]]) -> None:
        """scored: weighted points by plugin."""
        self.nodes = chosen.names
        self._scored = {
            plugin: chosen.of(scores) if isinstance(scores, list) else scores
            for plugin, scores in scored.items()
        }
        places = chosen.state.places
        # Of all nodes of the state. Usual points are the same for each node, so they don't change
        # which node is best. They are left out here, because adding them to each node takes time.
        totals = None
        for scores in scored.values():
            if isinstance(scores, list):
                totals = scores.copy() if totals is None else list(map(add, totals, scores))
        if totals is None:
            totals = [0] * len(places)
        usual = 0
        for scores in scored.values():
            if isinstance(scores, Alike):
                usual += scores.usual
                for name, points in scores.others.items():
                    totals[places[name]] += points - scores.usual
        self._totals_above_usual = chosen.of(totals)
        # The sum of all plugins' usual points.
        self._usual = usual
        # Which of `nodes` kube-scheduler takes.
        self.place_of_best = pick(self._totals_above_usual)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ScoreTable) and list(self.rows()) == list(other.rows())

    __hash__ = None  # type: ignore[assignment] # it holds lists

    @property
    def points(self) -> dict[str, list[int]]:
        """Weighted points by plugin."""
        return {
            plugin: (
                scores
                if isinstance(scores, list)
                else list(map(scores.others.get, self.nodes, repeat(scores.usual)))
            )
            for plugin, scores in self._scored.items()
        }

    @property
    def totals(self) -> list[int]:
        """The sum of each node's points."""
        return [total + self._usual for total in self._totals_above_usual]

    @property
    def best(self) -> tuple[str, ...]:
        """All nodes with the highest total."""
        totals = self._totals_above_usual
        highest = max(totals)
        return tuple(
            node for node, total in zip(self.nodes, totals, strict=True) if total == highest
        )

    def rows(self) -> Iterator[tuple[str, dict[str, int], int]]:
        """Each node with its points by plugin and its total."""
        all_points = self.points
        for index, (node, total) in enumerate(zip(self.nodes, self.totals, strict=True)):
            yield node, {plugin: points[index] for plugin, points in all_points.items()}, total


def score_chosen(chosen: Chosen, cycle: Cycle) -> ScoreTable:
    """Score the chosen nodes. kube-scheduler does so only if there are two or more."""
    scored: dict[str, Alike | list[int]] = {}
    for plugin, weight in cycle.profile.scores:
        scores = SCORERS[plugin](cycle, chosen, weight)
        if scores is not None:
            scored[plugin] = scores
    return ScoreTable(chosen, scored)


def pick(totals: Sequence[int]) -> int:
    """The index of the node that kube-scheduler chooses.

    It makes a binary heap of the totals, in their order, and takes the root. If several totals are
    the highest, the root isn't always the first of them: a parent stays above equal children, and a
    left child comes before a right child.

    This finds the root without making the heap. It goes down from the top, always to the subtree
    from which a highest total would rise.
    """
    highest = max(totals)
    size = len(totals)
    place = 0
    while totals[place] != highest:
        left_child = 2 * place + 1
        # The left subtree's places on one level, from first to last, follow one another.
        first = last = left_child
        while first < size and highest not in totals[first : last + 1]:
            first = 2 * first + 1
            last = 2 * last + 2
        is_on_the_left = first < size
        place = left_child if is_on_the_left else left_child + 1
    return place


# Plugins that look at nodes, not at other pods


def score_taints(cycle: Cycle, chosen: Chosen, weight: int) -> Scores:
    """TaintToleration: the fewer PreferNoSchedule taints that aren't tolerated, the better."""
    taint_counts = chosen.among(cycle.unwanted)
    most = max(taint_counts.values(), default=0)
    others = {
        name: weight * (MAX_SCORE - MAX_SCORE * count // most)
        for name, count in taint_counts.items()
    }
    return Alike(weight * MAX_SCORE, others)


def score_node_affinity(cycle: Cycle, chosen: Chosen, weight: int) -> Scores:
    """NodeAffinity: the sum of the weights of the preferred terms that a node meets.

    The node with the highest sum gets all points, and the others their share.
    """
    if not cycle.pod.spec.preferred_node_terms:
        return None
    # Of terms that all nodes meet, and by node of further terms.
    of_all, of_some = cycle.preferred
    of_some = chosen.among(of_some)
    highest = of_all + max(of_some.values(), default=0)
    if not highest:
        return Alike(0, {})
    others = {
        name: weight * (MAX_SCORE * (of_all + further) // highest)
        for name, further in of_some.items()
    }
    return Alike(weight * (MAX_SCORE * of_all // highest), others)


def score_images(cycle: Cycle, chosen: Chosen, weight: int) -> Scores:  # noqa: ARG001 (each scorer is given the same)
    """ImageLocality: the bytes of the pod's images that a node holds.

    An image's bytes are multiplied by the share of all nodes that hold it.
    """
    spec = cycle.pod.spec
    state = cycle.state
    names = [_image_name(image) for image in spec.images]
    if cycle.profile.minor >= 36:
        names += [_image_name(image) for image in spec.volume_images]
    all_nodes = len(state.rows)
    # The multiplied bytes of all images, by name of the node.
    held_bytes: dict[str, int] = {}
    for name in names:
        use = state.images.get(name)
        if use is None:
            continue
        image_bytes = int(use.size_bytes * (len(use.holders) / all_nodes))
        if not state.stale_images and not held_bytes:
            # The loop below, but faster: each holder of the first image has the same bytes.
            held_bytes = dict.fromkeys(use.holders, image_bytes)
            continue
        for holder in use.holders:
            seen_by_node = state.rows[holder].image_view
            if seen_by_node is None:
                bytes_here = image_bytes
            else:
                size_bytes, holder_count = seen_by_node.get(name, (0, 0))
                bytes_here = int(size_bytes * (holder_count / all_nodes))
            held_bytes[holder] = held_bytes.get(holder, 0) + bytes_here
    # From 1.37 on, image volumes raise the maximum, as containers do.
    image_count = len(names) if cycle.profile.minor >= 37 else len(spec.images)
    max_bytes = _MAX_IMAGE_BYTES * image_count

    def points_for(node_bytes: int) -> int:
        counted_bytes = min(max(node_bytes, _MIN_IMAGE_BYTES), max_bytes) - _MIN_IMAGE_BYTES
        return weight * (MAX_SCORE * counted_bytes // (max_bytes - _MIN_IMAGE_BYTES))

    # Many nodes hold the same, so each amount is scored once.
    points = {node_bytes: points_for(node_bytes) for node_bytes in {0, *held_bytes.values()}}
    return Alike(points[0], {name: points[held] for name, held in held_bytes.items()})


@lru_cache(maxsize=4096)
def _image_name(image: str) -> str:
    return image if image.rfind(":") > image.rfind("/") else f"{image}:latest"


def score_nothing(cycle: Cycle, chosen: Chosen, weight: int) -> Scores:  # noqa: ARG001 (each scorer is given the same)
    """DynamicResources and VolumeBinding: 0 on each node. Claims and volumes aren't modelled."""
    return Alike(0, {})


# Plugins that look at what is free


def score_fit(cycle: Cycle, chosen: Chosen, weight: int) -> Scores:  # noqa: ARG001 (each scorer is given the same)
    """NodeResourcesFit: by how much would be left of each resource, or how much would be taken.

    The profile's strategy says which of the two.
    """
    fit = cycle.profile.fit
    asked = dict(cycle.pod.spec.fit_requests)
    resources = [
        _AskedResource(name, resource_weight, asked.get(name, 0))
        for name, resource_weight in fit.resources
        # An extended resource that isn't asked for stays out of the mean.
        if name in (CPU, MEMORY) or asked.get(name, 0) or not is_scalar(name)
    ]

    def find(row: NodeRow) -> int:
        return weight * _share_score(row, resources, is_least=fit.strategy == LEAST_ALLOCATED)

    key = (NODE_RESOURCES_FIT, id(fit), cycle.pod.spec.fit_requests, weight)
    return cycle.state.column(key, find, fit).values


class _AskedResource(NamedTuple):
    """A resource that NodeResourcesFit scores."""

    name: str
    # Of this resource, in the mean over all of them.
    weight: int
    # How much of it the pod asks for.
    amount: int


def _share_score(row: NodeRow, resources: Sequence[_AskedResource], *, is_least: bool) -> int:
    """The mean over the resources. is_least: the less would be taken, the more points."""
    allocatable = row.allocatable
    scored = row.scored
    points = 0
    weights = 0
    for name, weight, amount in resources:
        capacity = allocatable.get(name, 0)
        if not capacity:
            continue
        taken = min(scored.get(name, 0) + amount, capacity)
        good = capacity - taken if is_least else taken
        points += weight * (good * MAX_SCORE // capacity)
        weights += weight
    return points // weights if weights else 0


def score_balance(cycle: Cycle, chosen: Chosen, weight: int) -> Scores:  # noqa: ARG001 (each scorer is given the same)
    """NodeResourcesBalancedAllocation: how evenly CPU and memory would be taken.

    From 1.36 on: how much more evenly they would be taken than now.
    """
    asked = dict(cycle.pod.spec.requests)
    resources = [(name, asked.get(name, 0)) for name in (CPU, MEMORY)]
    if not any(amount for _, amount in resources):
        return None
    by_change = cycle.profile.minor >= 36

    def find(row: NodeRow) -> int:
        return weight * _balance_score(row, resources, by_change=by_change)

    key = (BALANCED_ALLOCATION, by_change, tuple(resources), weight)
    return cycle.state.column(key, find).values


def _balance_score(row: NodeRow, resources: Sequence[tuple[str, int]], *, by_change: bool) -> int:
    # What would be taken of each resource that the node has, as a share from 0 to 1: now, and with
    # the pod.
    shares_before = []
    shares_after = []
    for name, amount in resources:
        capacity = row.allocatable.get(name, 0)
        if capacity:
            taken = row.requested.get(name, 0)
            shares_before.append(min(taken / capacity, 1.0))
            shares_after.append(min((taken + amount) / capacity, 1.0))
    after = _balance(shares_after)
    if not by_change:
        return after
    # Both are 50 to 100. So is the result, and 75 means that nothing changes.
    before = _balance(shares_before)
    return 50 + _divide(50 + after - before, 2)


def _balance(shares: Sequence[float]) -> int:
    """100 points where both shares are equal, and fewer the more they differ; 50 at least.

    A node that has only one of the resources, or none, gets 100.
    """
    if len(shares) != 2:
        return int(MAX_SCORE)
    of_cpu, of_memory = shares
    deviation = abs((of_cpu - of_memory) / 2)
    return int((1 - deviation) * MAX_SCORE)


# Plugins that look at other pods


def score_other_pods(cycle: Cycle, chosen: Chosen, weight: int) -> Scores:
    """InterPodAffinity: the sum of the weights of terms that draw the pod to a node, or off it.

    They are the pod's own preferred terms, and the terms of pods that run, if they mean this pod.
    The best node gets all points, the worst node none.
    """
    pod = cycle.pod
    state = cycle.state
    weights = _DomainWeights(chosen)
    for sign, terms in ((1, pod.spec.preferred_affinity), (-1, pod.spec.preferred_anti_affinity)):
        for term_weight, term in terms:
            counts = state.count_pods(PodQuery((state.condition_of(term, pod.namespace),)))
            weights.add(counts, term.topology_key, sign * term_weight)
    namespace_labels = state.labels_of_namespace(pod.namespace)
    for owned, counts in state.terms.items():
        if owned.kind == PREFERRED:
            term_weight = owned.weight
        elif owned.kind == REQUIRED_AFFINITY:
            # kube-scheduler's hardPodAffinityWeight.
            term_weight = 1
        else:
            continue
        if term_weight and term_selects(owned, pod, namespace_labels):
            weights.add(counts, owned.term.topology_key, term_weight)
    return weights.scores(weight)


class _DomainWeights:
    """Adds up weights for topology domains, and then for each node those of its domains.

    A term's topologyKey is a label, and the nodes with one value of it are a domain.
    """

    def __init__(self, chosen: Chosen) -> None:
        self._chosen = chosen
        # Where each domain is a single node: by name of the node.
        self._by_node: dict[str, int] = {}
        # Of other labels: by label, by its value.
        self._domains: dict[str, dict[str, int]] = {}

    def add(self, counts: Mapping[str, int], key: str, weight: int) -> None:
        """Add this weight for each pod. counts: pods by name of their node; key: the label."""
        state = self._chosen.state
        if state.label_values(key).all_differ:
            by_node = self._by_node
            for name, number in counts.items():
                by_node[name] = by_node.get(name, 0) + number * weight
            return
        for name, number in counts.items():
            value = state.rows[name].labels.get(key)
            if value is not None:
                weights = self._domains.setdefault(key, {})
                weights[value] = weights.get(value, 0) + number * weight

    def scores(self, weight: int) -> Scores:
        """Points by the nodes' sums: all for the highest sum, none for the lowest.

        None: no weight was added.
        """
        if not self._by_node and not self._domains:
            return None
        chosen = self._chosen
        by_node = self._by_node if not self._domains else self._sums_of_nodes()
        sums = [*chosen.among(by_node).values()]
        if len(sums) < len(chosen):
            # The sum of the nodes that aren't named.
            sums.append(0)
        lowest = min(sums)
        highest = max(sums)
        if lowest == highest:
            return Alike(0, {})
        width = highest - lowest
        # Many nodes have the same sum, so each sum is scored once.
        points = {
            node_sum: weight * int(100.0 * ((node_sum - lowest) / width))
            for node_sum in {0, *by_node.values()}
        }
        return Alike(points[0], {name: points[node_sum] for name, node_sum in by_node.items()})

    def _sums_of_nodes(self) -> dict[str, int]:
        """For each node, the sum of the weights of its domains."""
        state = self._chosen.state
        sums = dict.fromkeys(state.names, 0) | self._by_node
        for key, weights in self._domains.items():
            for name, value in zip(state.names, state.label_values(key).values, strict=True):
                if value is not None:
                    sums[name] += weights.get(value, 0)
        return sums


class _CountedDomains(NamedTuple):
    """What one constraint of PodTopologySpread counts."""

    # How much a pod counts: the more domains there are, the more.
    pod_weight: float
    # Matching pods by domain: the label's value, or for the hostname the node's name.
    pods: Mapping[str, int]


def score_spread(cycle: Cycle, chosen: Chosen, weight: int) -> Scores:
    """PodTopologySpread: the fewer matching pods in a node's domains, the better."""
    pod = cycle.pod
    state = cycle.state
    profile = cycle.profile
    constraints = spread_constraints(pod, profile, state, required=False)
    if not constraints:
        return None
    # Whether a node must have the labels of all constraints. Else it gets no point.
    requires_labels = bool(pod.spec.spread_constraints) or not profile.spread_is_system_default
    required_keys = (
        [constraint.topology_key for constraint in constraints] if requires_labels else []
    )
    rows = [row for row in chosen.rows if all(key in row.labels for key in required_keys)]
    if not rows:
        return Alike(0, {})
    counted = [_count_domains(cycle, constraint, rows, required_keys) for constraint in constraints]
    # By name of the node: the more matching pods, the higher.
    crowding = dict[str, int]()
    for row in rows:
        total = 0.0
        for constraint, domains in zip(constraints, counted, strict=True):
            value = row.labels.get(constraint.topology_key)
            if value is not None:
                is_hostname = constraint.topology_key == HOSTNAME_LABEL
                pod_count = domains.pods.get(row.name if is_hostname else value, 0)
                total += pod_count * domains.pod_weight + (constraint.max_skew - 1)
        crowding[row.name] = _round_half_up(total)
    highest = max(crowding.values())
    lowest = min(crowding.values())
    if not highest:
        return Alike(0, dict.fromkeys(crowding, weight * MAX_SCORE))
    others = {
        name: weight * (MAX_SCORE * (highest + lowest - crowded) // highest)
        for name, crowded in crowding.items()
    }
    return Alike(0, others)


def _count_domains(
    cycle: Cycle,
    constraint: SpreadConstraint,
    rows: Sequence[NodeRow],
    required_keys: Sequence[str],
) -> _CountedDomains:
    """Count the pods that a constraint means. rows: of the nodes that are scored.

    required_keys: labels without which a node's pods don't count.
    """
    key = constraint.topology_key
    # An empty selector counts nothing.
    query = spread_query(constraint, cycle.pod.namespace)
    pods_by_node = cycle.state.count_pods(query) if constraint.selector else {}
    if key == HOSTNAME_LABEL:
        return _CountedDomains(math.log(len(rows) + 2), pods_by_node)
    # If the label isn't required, the nodes without it are a domain, too: "".
    pods_by_value = {row.labels.get(key, ""): 0 for row in rows}
    for name, number in pods_by_node.items():
        row = cycle.state.rows[name]
        has_required = all(required_key in row.labels for required_key in required_keys)
        if has_required and admits(cycle, constraint, name):
            value = row.labels.get(key, "")
            if value in pods_by_value:
                pods_by_value[value] += number
    return _CountedDomains(math.log(len(pods_by_value) + 2), pods_by_value)


# Arithmetic


def _divide(dividend: int, divisor: int) -> int:
    """Divide and round towards zero, as Go does. Python's // rounds down."""
    quotient = abs(dividend) // abs(divisor)
    return quotient if (dividend < 0) == (divisor < 0) else -quotient


def _round_half_up(number: float) -> int:
    """Round to the nearest whole number, and a half up. number: 0 or more.

    `int(number + 0.5)` would be wrong just below a half: the sum itself is rounded.
    """
    floor = int(number)
    return floor + 1 if number - floor >= 0.5 else floor


SCORERS: Final[dict[str, Callable[[Cycle, Chosen, int], Scores]]] = {
    TAINT_TOLERATION: score_taints,
    NODE_AFFINITY: score_node_affinity,
    NODE_RESOURCES_FIT: score_fit,
    POD_TOPOLOGY_SPREAD: score_spread,
    INTER_POD_AFFINITY: score_other_pods,
    DYNAMIC_RESOURCES: score_nothing,
    VOLUME_BINDING: score_nothing,
    BALANCED_ALLOCATION: score_balance,
    IMAGE_LOCALITY: score_images,
}
