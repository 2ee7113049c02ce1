"""Score the nodes that fit a pod, to the last point as kube-scheduler does, and choose one.

Has the score plugins, their normalisation over the nodes that fit, weights and ties. Integers are
divided towards zero and floats added in kube-scheduler's order, because one point decides. Source:
the PreScore, Score and NormalizeScore methods of kube-scheduler's plugins and its heap of totals,
v1.33 to v1.37.
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
from roost_core.scheduler.pod_queries import PREFERRED, REQUIRED_AFFINITY, PodQuery, term_means
from roost_core.scheduler.profile import LEAST_ALLOCATED
from roost_core.scheduler.state import ClusterState
from roost_core.scheduler.topology_spread import admits, spread_constraints, spread_query

MAX_SCORE: Final = 100
_MIB: Final = 2**20
# ImageLocality: sizes below the first don't count; the second (for each container) is the maximum.
_MIN_IMAGE_BYTES: Final = 23 * _MIB
_MAX_IMAGE_BYTES: Final = 1000 * _MIB


class Alike(NamedTuple):
    """Points that most nodes have, and those of the other nodes, by name.

    What isn't chosen may have any.
    """

    usual: int
    others: Mapping[str, int]


# A plugin's points times its weight; a list: of each of `ClusterState.ordered`. None: it doesn't
# score this pod.
Scores = Alike | list[int] | None
_T = TypeVar("_T")


class Chosen:
    """The nodes that fit, by their places in `ClusterState.ordered`."""

    __slots__ = ("_name_set", "_names", "places", "state")

    def __init__(self, state: ClusterState, places: Sequence[int]) -> None:
        self.state = state
        self.places = places
        self._names: tuple[str, ...] | None = None
        self._name_set: frozenset[str] | None = None

    def __len__(self) -> int:
        return len(self.places)

    def of(self, values: Sequence[_T]) -> list[_T]:
        """Their values, of such as are in the order of `ClusterState.ordered`."""
        return list(map(values.__getitem__, self.places))

    def among(self, values: Mapping[str, int]) -> Mapping[str, int]:
        """Their values, of such as are by name."""
        if not values or len(self.places) == len(self.state.rows):
            return values
        if self._name_set is None:
            self._name_set = frozenset(self.names)
        chosen = self._name_set
        return {name: value for name, value in values.items() if name in chosen}

    @property
    def names(self) -> tuple[str, ...]:
        """Their names."""
        if self._names is None:
            self._names = tuple(self.of(self.state.names))
        return self._names

    @property
    def rows(self) -> list[NodeRow]:
        """Their rows."""
        return self.of(self.state.ordered)


class ScoreTable:
    """Scores of every node that fits: weighted points by plugin, and their sums; all in the order
    of `nodes`.

    What only readers of a decision ask for is made when they ask; the state may have changed by
    then.
    """

    __slots__ = ("_relative", "_scored", "_usual", "nodes", "place_of_best")

    def __init__(self, chosen: Chosen, scored: Mapping[str, Alike | list[int]]) -> None:
        """scored: by plugin; kept, so the lists must be nobody else's."""
        self.nodes = chosen.names
        self._scored = {
            plugin: chosen.of(scores) if isinstance(scores, list) else scores
            for plugin, scores in scored.items()
        }
        usual = 0
        totals = None
        places = chosen.state.places
        for scores in scored.values():
            if isinstance(scores, list):
                totals = scores.copy() if totals is None else list(map(add, totals, scores))
        if totals is None:
            totals = [0] * len(places)
        for scores in scored.values():
            if isinstance(scores, Alike):
                usual += scores.usual
                for name, points in scores.others.items():
                    totals[places[name]] += points - scores.usual
        # All of them lack `usual`, which makes no difference to who is best.
        self._relative = chosen.of(totals)
        self._usual = usual
        # Which of `nodes` kube-scheduler takes.
        self.place_of_best = pick(self._relative)

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
        return [total + self._usual for total in self._relative]

    @property
    def best(self) -> tuple[str, ...]:
        """All nodes with the highest total."""
        highest = max(self._relative)
        return tuple(
            node for node, total in zip(self.nodes, self._relative, strict=True) if total == highest
        )

    def rows(self) -> Iterator[tuple[str, dict[str, int], int]]:
        """Each node with its points by plugin and its total."""
        all_points = self.points
        for index, (node, total) in enumerate(zip(self.nodes, self.totals, strict=True)):
            yield node, {plugin: points[index] for plugin, points in all_points.items()}, total


def score_chosen(chosen: Chosen, cycle: Cycle) -> ScoreTable:
    """Score the chosen nodes. kube-scheduler scores two or more, and takes a single one without."""
    scored: dict[str, Alike | list[int]] = {}
    for plugin, weight in cycle.profile.scores:
        scores = SCORERS[plugin](cycle, chosen, weight)
        if scores is not None:
            scored[plugin] = scores
    return ScoreTable(chosen, scored)


def pick(totals: Sequence[int]) -> int:
    """The index of the node that kube-scheduler chooses: the root of a binary heap made of the
    totals in their order.

    That is not the first of several best ones: a parent stays above equal children, and a left
    child comes before a right one.
    """
    highest = max(totals)
    size = len(totals)
    place = 0
    while totals[place] != highest:
        # The left subtree's nodes are a run on each level.
        begin = end = 2 * place + 1
        while begin < size and highest not in totals[begin : end + 1]:
            begin = 2 * begin + 1
            end = 2 * end + 2
        place = 2 * place + (1 if begin < size else 2)
    return place


# Nodes alone


def score_taints(cycle: Cycle, chosen: Chosen, weight: int) -> Scores:
    """TaintToleration: the fewer PreferNoSchedule taints that aren't tolerated, the better."""
    unwanted = chosen.among(cycle.unwanted)
    most = max(unwanted.values(), default=0)
    others = {
        name: weight * (MAX_SCORE - MAX_SCORE * number // most) for name, number in unwanted.items()
    }
    return Alike(weight * MAX_SCORE, others)


def score_node_affinity(cycle: Cycle, chosen: Chosen, weight: int) -> Scores:
    """NodeAffinity: the weights of preferred terms that hold, measured by the best node's."""
    if not cycle.pod.spec.preferred_node_terms:
        return None
    everywhere, more = cycle.preferred
    more = chosen.among(more)
    most = everywhere + max(more.values(), default=0)
    if not most:
        return Alike(0, {})
    others = {
        name: weight * (MAX_SCORE * (everywhere + points) // most) for name, points in more.items()
    }
    return Alike(weight * (MAX_SCORE * everywhere // most), others)


def score_images(cycle: Cycle, chosen: Chosen, weight: int) -> Scores:  # noqa: ARG001 (each scorer is given the same)
    """ImageLocality: bytes of the pod's images that are there, each times the share of all nodes
    that hold it.
    """
    spec = cycle.pod.spec
    state = cycle.state
    names = [_image_name(image) for image in spec.images]
    if cycle.profile.minor >= 36:
        names += [_image_name(image) for image in spec.volume_images]
    all_nodes = len(state.rows)
    held: dict[str, int] = {}
    for name in names:
        use = state.images.get(name)
        if use is None:
            continue
        present = int(use.size_bytes * (len(use.holders) / all_nodes))
        if not state.stale_images and not held:
            held = dict.fromkeys(use.holders, present)
            continue
        for holder in use.holders:
            view = state.rows[holder].image_view
            if view is None:
                share = present
            else:
                size_bytes, number = view.get(name, (0, 0))
                share = int(size_bytes * (number / all_nodes))
            held[holder] = held.get(holder, 0) + share
    # From 1.37 on an image volume widens the range, too.
    counted = len(names) if cycle.profile.minor >= 37 else len(spec.images)
    most = _MAX_IMAGE_BYTES * counted
    span = most - _MIN_IMAGE_BYTES
    scores = {
        present: (
            weight
            * (MAX_SCORE * (min(max(present, _MIN_IMAGE_BYTES), most) - _MIN_IMAGE_BYTES) // span)
        )
        for present in {0, *held.values()}
    }
    return Alike(scores[0], {name: scores[present] for name, present in held.items()})


@lru_cache(maxsize=4096)
def _image_name(image: str) -> str:
    return image if image.rfind(":") > image.rfind("/") else f"{image}:latest"


def score_claims(cycle: Cycle, chosen: Chosen, weight: int) -> Scores:  # noqa: ARG001 (each scorer is given the same)
    """DynamicResources: 0 everywhere, for a pod without resource claims."""
    return Alike(0, {})


# Room


def score_fit(cycle: Cycle, chosen: Chosen, weight: int) -> Scores:  # noqa: ARG001 (each scorer is given the same)
    """NodeResourcesFit: by what would be left, or what would be taken."""
    fit = cycle.profile.fit
    asked = dict(cycle.pod.spec.fit_requests)
    resources = [
        (name, share, asked.get(name, 0))
        for name, share in fit.resources
        # An extended resource that isn't asked for stays out of the mean.
        if name in (CPU, MEMORY) or asked.get(name, 0) or not is_scalar(name)
    ]

    def find(row: NodeRow) -> int:
        return weight * _share_score(row, resources, is_least=fit.strategy == LEAST_ALLOCATED)

    key = (NODE_RESOURCES_FIT, id(fit), cycle.pod.spec.fit_requests, weight)
    return cycle.state.column(key, find, fit).values


# Name and weight of each resource, and how much of it the pod asks for.
_Asked = list[tuple[str, int, int]]


def _share_score(row: NodeRow, resources: _Asked, *, is_least: bool) -> int:
    allocatable = row.allocatable
    scored = row.scored
    points = weights = 0
    for name, weight, asked in resources:
        capacity = allocatable.get(name, 0)
        if not capacity:
            continue
        taken = min(scored.get(name, 0) + asked, capacity)
        points += (capacity - taken if is_least else taken) * MAX_SCORE // capacity * weight
        weights += weight
    return points // weights if weights else 0


def score_balance(cycle: Cycle, chosen: Chosen, weight: int) -> Scores:  # noqa: ARG001 (each scorer is given the same)
    """NodeResourcesBalancedAllocation: how evenly resources would be taken; from 1.36 on, how much
    more evenly.
    """
    asked = dict(cycle.pod.spec.requests)
    resources = [(name, asked.get(name, 0)) for name in (CPU, MEMORY)]
    if not any(amount for _, amount in resources):
        return None
    by_change = cycle.profile.minor >= 36

    def find(row: NodeRow) -> int:
        return weight * _balance_score(row, resources, by_change=by_change)

    return cycle.state.column(
        (BALANCED_ALLOCATION, by_change, tuple(resources), weight), find
    ).values


def _balance_score(row: NodeRow, resources: Sequence[tuple[str, int]], *, by_change: bool) -> int:
    present = [
        (capacity, row.requested.get(name, 0), amount)
        for name, amount in resources
        if (capacity := row.allocatable.get(name, 0))
    ]
    after = _balance([min((taken + amount) / capacity, 1.0) for capacity, taken, amount in present])
    if not by_change:
        return after
    before = _balance([min(taken / capacity, 1.0) for capacity, taken, _ in present])
    return 50 + _divide(50 + after - before, 2)


def _balance(shares: Sequence[float]) -> int:
    """The score of these shares: the highest where two are equal, or where there aren't two."""
    if len(shares) != 2:
        return int(MAX_SCORE)
    one, other = shares
    deviation = abs((one - other) / 2)
    return int((1 - deviation) * MAX_SCORE)


# Other pods


def score_other_pods(cycle: Cycle, chosen: Chosen, weight: int) -> Scores:
    """InterPodAffinity: weights of terms, of the pod and of those there, stretched between the
    worst and best node.
    """
    pod = cycle.pod
    state = cycle.state
    company = _Company(chosen)
    for sign, terms in ((1, pod.spec.preferred_affinity), (-1, pod.spec.preferred_anti_affinity)):
        for number, term in terms:
            counts = state.count_pods(PodQuery((state.condition_of(term, pod.namespace),)))
            company.add(counts, term.topology_key, sign * number)
    labels = state.labels_of_namespace(pod.namespace)
    for owned, counts in state.terms.items():
        # A required term counts 1: kube-scheduler's hardPodAffinityWeight.
        number = owned.weight if owned.kind == PREFERRED else int(owned.kind == REQUIRED_AFFINITY)
        if number and term_means(owned, pod, labels):
            company.add(counts, owned.term.topology_key, number)
    return company.scores(weight)


class _Company:
    """Adds up the weights of the pods in each node's domains."""

    def __init__(self, chosen: Chosen) -> None:
        self._chosen = chosen
        # By a label that each node has a value of its own of: by name of the node.
        self._by_node: dict[str, int] = {}
        # By other labels, by their values.
        self._domains: dict[str, dict[str, int]] = {}

    def add(self, counts: Mapping[str, int], key: str, weight: int) -> None:
        """Add pods, counted by node, with this weight each."""
        state = self._chosen.state
        if state.label_values(key)[1]:
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
        """The sum for each chosen node, stretched between the lowest and the highest; None without
        any pod.
        """
        if not self._by_node and not self._domains:
            return None
        chosen = self._chosen
        by_node = self._by_node if not self._domains else self._all_by_node()
        sums = chosen.among(by_node).values()
        # A node that isn't named has 0.
        others = (0,) if len(sums) < len(chosen) else ()
        lowest = min((*sums, *others))
        highest = max((*sums, *others))
        if lowest == highest:
            return Alike(0, {})
        width = highest - lowest
        stretched = {
            points: weight * int(100.0 * ((points - lowest) / width))
            for points in {0, *by_node.values()}
        }
        return Alike(stretched[0], {name: stretched[points] for name, points in by_node.items()})

    def _all_by_node(self) -> dict[str, int]:
        state = self._chosen.state
        sums = dict.fromkeys(state.names, 0) | self._by_node
        for key, weights in self._domains.items():
            for name, value in zip(state.names, state.label_values(key)[0], strict=True):
                if value is not None:
                    sums[name] += weights.get(value, 0)
        return sums


def score_spread(cycle: Cycle, chosen: Chosen, weight: int) -> Scores:
    """PodTopologySpread: the fewer matching pods in a node's domains, the better."""
    pod = cycle.pod
    state = cycle.state
    profile = cycle.profile
    constraints = spread_constraints(pod, profile, state, required=False)
    if not constraints:
        return None
    require_all = bool(pod.spec.spread_constraints) or not profile.spread_is_system_default
    keys = [constraint.topology_key for constraint in constraints]
    rows = chosen.rows
    ignored = {
        row.name for row in rows if require_all and not all(key in row.labels for key in keys)
    }
    counted = [row for row in rows if row.name not in ignored]
    parts = [
        _spread_part(cycle, constraint, counted, keys if require_all else [])
        for constraint in constraints
    ]
    raw = []
    for row in rows:
        if row.name in ignored:
            raw.append(-1)
            continue
        points = 0.0
        for (share, numbers), constraint in zip(parts, constraints, strict=True):
            value = row.labels.get(constraint.topology_key)
            if value is not None:
                number = numbers.get(
                    row.name if constraint.topology_key == HOSTNAME_LABEL else value, 0
                )
                points += number * share + (constraint.max_skew - 1)
        raw.append(_round_half_up(points))
    scored = [points for points in raw if points >= 0]
    if not scored:
        return Alike(0, {})
    highest = max(scored)
    lowest = min(scored)
    others = {
        row.name: (
            weight * (MAX_SCORE * (highest + lowest - points) // highest if highest else MAX_SCORE)
        )
        for row, points in zip(rows, raw, strict=True)
        if points >= 0
    }
    return Alike(0, others)


def _spread_part(
    cycle: Cycle,
    constraint: SpreadConstraint,
    counted: Sequence[NodeRow],
    required_keys: Sequence[str],
) -> tuple[float, Mapping[str, int]]:
    """A constraint's weight, and its pods by domain; by node for the hostname."""
    key = constraint.topology_key
    # An empty selector counts nothing.
    query = spread_query(constraint, cycle.pod.namespace)
    pods = cycle.state.count_pods(query) if constraint.selector else {}
    if key == HOSTNAME_LABEL:
        return math.log(len(counted) + 2), pods
    # A node without the label is of the domain "", where that is allowed at all.
    numbers = {row.labels.get(key, ""): 0 for row in counted}
    size = len(numbers)
    for name, number in pods.items():
        row = cycle.state.rows[name]
        if all(topology_key in row.labels for topology_key in required_keys) and admits(
            cycle, constraint, name
        ):
            value = row.labels.get(key, "")
            if value in numbers:
                numbers[value] += number
    return math.log(size + 2), numbers


# Arithmetic


def _divide(dividend: int, divisor: int) -> int:
    """Towards zero, as Go divides."""
    quotient = abs(dividend) // abs(divisor)
    return quotient if (dividend < 0) == (divisor < 0) else -quotient


def _round_half_up(number: float) -> int:
    """To the nearest whole number, halves up; for numbers from 0 on.

    Adding a half first could round twice.
    """
    floor = int(number)
    return floor + 1 if number - floor >= 0.5 else floor


SCORERS: Final[dict[str, Callable[[Cycle, Chosen, int], Scores]]] = {
    TAINT_TOLERATION: score_taints,
    NODE_AFFINITY: score_node_affinity,
    NODE_RESOURCES_FIT: score_fit,
    POD_TOPOLOGY_SPREAD: score_spread,
    INTER_POD_AFFINITY: score_other_pods,
    DYNAMIC_RESOURCES: score_claims,
    VOLUME_BINDING: score_claims,
    BALANCED_ALLOCATION: score_balance,
    IMAGE_LOCALITY: score_images,
}
