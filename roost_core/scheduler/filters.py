"""Find the nodes on which a pod fits, and say of each other one why not, in kube-scheduler's words.

Owns the filter plugins. Volumes, resource claims and declared node features are held against no node: the model knows
nothing of them. Source: the Filter and PreFilter methods of kube-scheduler's plugins, v1.35 to v1.37.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from roost_core.placement.selectors import Requirement
from roost_core.scheduler.matching import (
    count_unwanted,
    is_kept_off,
    node_matches,
    node_term_matches,
    selector_matches,
    tolerates_cordon,
)
from roost_core.scheduler.plugins import (
    INTER_POD_AFFINITY,
    NODE_AFFINITY,
    NODE_PORTS,
    NODE_RESOURCES_FIT,
    NODE_UNSCHEDULABLE,
    POD_TOPOLOGY_SPREAD,
    TAINT_TOLERATION,
)
from roost_core.scheduler.state import (
    REQUIRED_ANTI_AFFINITY,
    ClusterState,
    Column,
    Condition,
    NodeRow,
    PodQuery,
    owned_terms,
    term_means,
)

if TYPE_CHECKING:
    from roost_core.scheduler.objects import HostPort, NodeTerm, PodState, PodTerm, SpreadConstraint, WeightedNodeTerm
    from roost_core.scheduler.profile import Profile

ALL_ADDRESSES: Final = "0.0.0.0"  # noqa: S104 (Kubernetes' word for all addresses; nothing is bound here)
# Verdicts of so many different specs are kept while no node changes.
_REMEMBERED_VERDICTS: Final = 2048


class Rejection(NamedTuple):
    """Why a node can't take a pod. `unresolvable`: not even pre-emption would help there."""

    reasons: tuple[str, ...]
    unresolvable: bool


Verdict = Rejection | None
Check = Callable[[NodeRow], Verdict]

_NODE_FILTERS: Final = (NODE_UNSCHEDULABLE, TAINT_TOLERATION, NODE_AFFINITY)
# All of them together.
_OF_NODES: Final = "what nodes alone decide"

UNSCHEDULABLE: Final = Rejection(("node(s) were unschedulable",), True)
TAINTED: Final = Rejection(("node(s) had untolerated taint(s)",), True)
OTHER_NODES: Final = Rejection(("node(s) didn't match Pod's node affinity/selector",), True)
OTHER_PROFILE_NODES: Final = Rejection(("node(s) didn't match scheduler-enforced node affinity",), True)
PORT_TAKEN: Final = Rejection(("node(s) didn't have free ports for the requested pod ports",), False)
SKEWED: Final = Rejection(("node(s) didn't match pod topology spread constraints",), False)
NO_TOPOLOGY: Final = Rejection(("node(s) didn't match pod topology spread constraints (missing required label)",), True)
NO_COMPANY: Final = Rejection(("node(s) didn't match pod affinity rules",), True)
AVOIDS_OTHERS: Final = Rejection(("node(s) didn't match pod anti-affinity rules",), False)
AVOIDED_BY_OTHERS: Final = Rejection(("node(s) didn't satisfy existing pods anti-affinity rules",), False)
CONFLICTING_NAMES: Final = "pod affinity terms conflict"
# For the nodes that a pod of a DaemonSet isn't about.
NOT_NAMED: Final = Rejection(("node(s) didn't satisfy plugin(s) [NodeAffinity]",), True)


@dataclass(slots=True)
class NodeVerdicts:
    """What nodes alone decide for the needs of one spec and one profile, by node name; good until a node changes."""

    rejected: dict[str, Rejection] = field(default_factory=dict)
    # Nodes that the pod's own selector and required affinity don't admit; made when asked for.
    unmatched: frozenset[str] | None = None
    kept_off: frozenset[str] | None = None
    # PreferNoSchedule taints not tolerated, and points by the preferred node terms asked for; only those above 0.
    unwanted: dict[str, int] | None = None
    preferred: dict[tuple[WeightedNodeTerm, ...], dict[str, int]] = field(default_factory=dict)


class Cycle:
    """One pod before one state and profile: what PreFilter computes, and the filters that use it.

    `fork` gives a second one to add pods to or take pods from; that is how pre-emption and nominated pods are tried.
    """

    __slots__ = (
        "_checks", "_number_alone", "_verdicts", "named_nodes", "others", "pod", "profile", "refusal", "spread",
        "state",
    )  # fmt: skip

    def __init__(self, pod: PodState, state: ClusterState, profile: Profile) -> None:
        state.look()
        self.pod = pod
        self.state = state
        self.profile = profile
        self._verdicts: NodeVerdicts | None = None
        # The whole cluster is refused before any node is looked at.
        self.refusal: str | None = None
        # The pod can only be about these nodes.
        self.named_nodes: frozenset[str] | None = None
        if NODE_AFFINITY in profile.filters:
            self._read_names()
        self.spread = SpreadCounts.of(self) if POD_TOPOLOGY_SPREAD in profile.filters else None
        self.others = OtherPods.of(self) if INTER_POD_AFFINITY in profile.filters else None
        self._checks, self._number_alone = self._make_checks()

    def _read_names(self) -> None:
        terms = self.pod.spec.required_node_terms
        if not terms:
            return
        names: set[str] = set()
        for term in terms:
            named = [values for key, operator, values in term.fields if key == "metadata.name" and operator == "In"]
            if not named:
                return
            names |= frozenset.intersection(*named)
        if names:
            self.named_nodes = frozenset(names)
        else:
            self.refusal = CONFLICTING_NAMES

    def _make_checks(self) -> tuple[tuple[Check, ...], int]:
        """The filters in the profile's order that can reject this pod at all; how many first ones ask one row alone."""
        names, alone = _plan_checks(
            self.profile.filters, bool(self.pod.spec.host_ports), self.spread is not None, self.others is not None
        )
        checks: dict[str, Check] = {
            _OF_NODES: self._check_node,
            NODE_RESOURCES_FIT: self._check_room,
            NODE_PORTS: self._check_ports,
        }
        if self.spread is not None:
            checks[POD_TOPOLOGY_SPREAD] = self.spread.check
        if self.others is not None:
            checks[INTER_POD_AFFINITY] = self.others.check
        return tuple([checks.get(name) or self._node_checks[name] for name in names]), alone

    @property
    def _node_checks(self) -> dict[str, Check]:
        return {
            NODE_UNSCHEDULABLE: self._check_cordon,
            TAINT_TOLERATION: self._check_taints,
            NODE_AFFINITY: self._check_affinity,
        }

    def fork(self) -> Self:
        """The same cycle with counts of its own."""
        new = type(self).__new__(type(self))
        for name in ("pod", "state", "profile", "refusal", "named_nodes", "_verdicts"):
            setattr(new, name, getattr(self, name))
        new.spread = self.spread.copy() if self.spread is not None else None
        new.others = self.others.copy() if self.others is not None else None
        new._checks, new._number_alone = new._make_checks()
        return new

    def count(self, pod: PodState, row: NodeRow, sign: int) -> None:
        """Count another pod in (1) or out (-1) at this node, in the counts that filters use."""
        if self.spread is not None:
            self.spread.count(pod, row, sign)
        if self.others is not None:
            self.others.count(pod, row, sign)

    def check(self, row: NodeRow) -> Verdict:
        """Why the pod doesn't fit on this node, as it stands; None when it does."""
        return _first(self._checks, row)

    def check_all(self, rows: Iterable[NodeRow]) -> Iterator[tuple[NodeRow, Verdict]]:
        """Each of the state's own rows with its verdict as `check_with_nominated` gives it, but quick."""
        known, places = self.alone.values, self.state.places
        others = self._checks[self._number_alone :]
        for row in rows:
            if row.nominated:
                yield row, self.check_with_nominated(row)
                continue
            verdict = known[places[row.name]]
            if verdict is None and others:
                verdict = _first(others, row)
            yield row, verdict

    @property
    def asks_others(self) -> bool:
        """Whether a row's verdict follows from more than that row."""
        return self._number_alone < len(self._checks)

    @property
    def alone(self) -> Column[Verdict]:
        """What one row alone decides, nominations aside: for the next pod with these needs most of it still holds."""
        needs = self.state.needs_of(self.pod.spec)
        # Filters behind one that asks of other pods are not asked of a row alone, so their number belongs to the key.
        key = (type(self), id(needs), id(self.profile), self._number_alone)
        checks = self._checks[: self._number_alone]
        if len(checks) == 1:
            find = checks[0]
        elif len(checks) == 2:
            one, two = checks

            def find(row: NodeRow) -> Verdict:
                verdict = one(row)
                return two(row) if verdict is None else verdict

        else:

            def find(row: NodeRow) -> Verdict:
                return _first(checks, row)

        return self.state.column(key, find, (needs, self.profile))

    def check_with_nominated(self, row: NodeRow) -> Verdict:
        """As `check`; the pod must also fit beside pods of its priority or above that are nominated to the node."""
        if row.nominated:
            priority, key = self.pod.priority, self.pod.key
            rivals = [one for one in row.nominated.values() if one.priority >= priority and one.key != key]
            if rivals:
                cycle, fuller = self.fork(), row.copy()
                for rival in rivals:
                    fuller.add(rival)
                    cycle.count(rival, fuller, 1)
                verdict = cycle.check(fuller)
                if verdict is not None:
                    return verdict
        return self.check(row)

    # What nodes alone decide

    @property
    def verdicts(self) -> NodeVerdicts:
        """What nodes alone decide, for all pods with the same needs."""
        if self._verdicts is None:
            self._verdicts = self._find_verdicts()
        return self._verdicts

    def _find_verdicts(self) -> NodeVerdicts:
        needs, profile, kept = self.state.needs_of(self.pod.spec), self.profile, self.state.verdicts
        # By identity, so that needs aren't hashed for each pod; the entry keeps both objects alive.
        key = (id(needs), id(profile))
        entry = kept.get(key)
        if entry is not None:
            found: NodeVerdicts = entry[2]
            return found
        verdicts = NodeVerdicts()
        node_checks = self._node_checks
        checks = [node_checks[plugin] for plugin in profile.filters if plugin in node_checks]
        for name, row in self.state.rows.items():
            for check in checks:
                verdict = check(row)
                if verdict is not None:
                    verdicts.rejected[name] = verdict
                    break
        if len(kept) >= _REMEMBERED_VERDICTS:
            kept.clear()
        kept[key] = (needs, profile, verdicts)
        return verdicts

    def _check_node(self, row: NodeRow) -> Verdict:
        return self.verdicts.rejected.get(row.name)

    def _check_cordon(self, row: NodeRow) -> Verdict:
        if row.node.fact.unschedulable and not tolerates_cordon(self.pod.spec.tolerations):
            return UNSCHEDULABLE
        return None

    def _check_taints(self, row: NodeRow) -> Verdict:
        taints = row.node.fact.taints
        return TAINTED if taints and is_kept_off(self.pod.spec.tolerations, taints) else None

    def _check_affinity(self, row: NodeRow) -> Verdict:
        added = self.profile.added_node_terms
        if added is not None and not any(node_term_matches(term, row.name, row.labels) for term in added):
            return OTHER_PROFILE_NODES
        return None if node_matches(self.pod.spec, row.name, row.labels) else OTHER_NODES

    @property
    def unmatched(self) -> frozenset[str]:
        """Nodes that the pod's own node selector and required affinity don't admit."""
        verdicts = self.verdicts
        if verdicts.unmatched is None:
            spec, rows = self.pod.spec, self.state.rows
            verdicts.unmatched = frozenset(
                name for name, row in rows.items() if not node_matches(spec, name, row.labels)
            )
        return verdicts.unmatched

    @property
    def kept_off(self) -> frozenset[str]:
        """Nodes whose taints the pod doesn't tolerate."""
        verdicts = self.verdicts
        if verdicts.kept_off is None:
            tolerations, rows = self.pod.spec.tolerations, self.state.rows
            verdicts.kept_off = frozenset(
                name for name, row in rows.items() if is_kept_off(tolerations, row.node.fact.taints)
            )
        return verdicts.kept_off

    @property
    def preferred(self) -> Mapping[str, int]:
        """Weights of the preferred node terms that each node meets, the profile's added; nodes with 0 are left out."""
        kept, asked = self.verdicts.preferred, self.pod.spec.preferred_node_terms
        found = kept.get(asked)
        if found is None:
            found = {}
            for weight, term in (*self.profile.added_preferred_terms, *asked):
                if weight:
                    for name in self._meeting(term):
                        found[name] = found.get(name, 0) + weight
            if len(kept) >= _REMEMBERED_VERDICTS:
                kept.clear()
            kept[asked] = found
        return found

    def _meeting(self, term: NodeTerm) -> Sequence[str]:
        """The nodes that meet a node selector term."""
        known, rows = self.state.meeting, self.state.rows
        found = known.get(term)
        if found is None:
            if len(known) >= _REMEMBERED_VERDICTS:
                known.clear()
            found = known[term] = tuple(
                [name for name, row in rows.items() if node_term_matches(term, name, row.labels)]
            )
        return found

    @property
    def unwanted(self) -> Mapping[str, int]:
        """PreferNoSchedule taints of each node that the pod doesn't tolerate; nodes with 0 are left out."""
        verdicts = self.verdicts
        if verdicts.unwanted is None:
            tolerations = self.pod.spec.tolerations
            found = {}
            for name, row in self.state.rows.items():
                number = count_unwanted(tolerations, row.node.fact.taints)
                if number:
                    found[name] = number
            verdicts.unwanted = found
        return verdicts.unwanted

    # What the pods there decide

    def _check_ports(self, row: NodeRow) -> Verdict:
        taken = row.ports
        for wanted in self.pod.spec.host_ports:
            for one in taken:
                if _clash(wanted, one):
                    return PORT_TAKEN
        return None

    def _check_room(self, row: NodeRow) -> Verdict:
        allocatable, requested = row.allocatable, row.requested
        if len(row.pods) < row.max_pods:
            for name, amount in self.pod.spec.requests:
                if amount and amount > allocatable.get(name, 0) - requested.get(name, 0):
                    break
            else:
                return None
        return self._lack(row)

    def _lack(self, row: NodeRow) -> Verdict:
        """All that is lacking; ignored extended resources aside."""
        reasons = [] if len(row.pods) < row.max_pods else ["Too many pods"]
        unresolvable = False
        for name, amount in self.pod.spec.requests:
            capacity = row.allocatable.get(name, 0)
            if amount > 0 and amount > capacity - row.requested.get(name, 0) and not self._is_ignored(name):
                reasons.append(f"Insufficient {name}")
                unresolvable = unresolvable or amount > capacity
        return Rejection(tuple(reasons), unresolvable) if reasons else None

    def _is_ignored(self, resource: str) -> bool:
        # Only resources outside Kubernetes' own domain can be ignored.
        if "/" not in resource or "kubernetes.io/" in resource:
            return False
        group = resource.partition("/")[0]
        return resource in self.profile.ignored_resources or group in self.profile.ignored_resource_groups


@lru_cache(maxsize=256)
def _plan_checks(
    filters: tuple[str, ...], has_ports: bool, is_spread: bool, has_others: bool
) -> tuple[tuple[str, ...], int]:
    """The filters in the profile's order that can reject a pod at all; how many first ones ask one row alone."""
    asked = {NODE_RESOURCES_FIT, *_NODE_FILTERS}
    asked |= {NODE_PORTS} if has_ports else set()
    asked |= {POD_TOPOLOGY_SPREAD} if is_spread else set()
    asked |= {INTER_POD_AFFINITY} if has_others else set()
    active = [plugin for plugin in filters if plugin in asked]
    start = next((index for index, plugin in enumerate(active) if plugin in _NODE_FILTERS), 0)
    together = active[start : start + sum(plugin in _NODE_FILTERS for plugin in active)]
    if together and all(plugin in _NODE_FILTERS for plugin in together):
        # As by default: what nodes alone decide comes in one piece, and is known already.
        active[start : start + len(together)] = [_OF_NODES]
    asks_others = (POD_TOPOLOGY_SPREAD, INTER_POD_AFFINITY)
    alone = next((index for index, plugin in enumerate(active) if plugin in asks_others), len(active))
    return tuple(active), alone


def _first(checks: Iterable[Check], row: NodeRow) -> Verdict:
    for check in checks:
        verdict = check(row)
        if verdict is not None:
            return verdict
    return None


def _clash(wanted: HostPort, taken: HostPort) -> bool:
    if wanted.port != taken.port or wanted.protocol != taken.protocol:
        return False
    return wanted.ip == taken.ip or ALL_ADDRESSES in (wanted.ip, taken.ip)


# Spreading


def spread_constraints(
    pod: PodState, profile: Profile, state: ClusterState, *, required: bool
) -> list[SpreadConstraint]:
    """The pod's own constraints of one kind; when it has none at all, the profile's with the cluster's selector."""
    own = pod.spec.spread_constraints
    if own:
        return [_with_label_keys(one, pod) for one in own if one.required == required]
    defaults = [one for one in profile.default_spread if one.required == required]
    if not defaults:
        return []
    selector = _default_selector(pod, state)
    return [one._replace(selector=selector) for one in defaults] if selector else []


def _with_label_keys(constraint: SpreadConstraint, pod: PodState) -> SpreadConstraint:
    keys = [key for key in constraint.match_label_keys if key in pod.labels]
    if not keys or constraint.selector is None:
        return constraint
    more = {Requirement(key, "In", frozenset((pod.labels[key],))) for key in keys}
    return constraint._replace(selector=constraint.selector | more)


def _default_selector(pod: PodState, state: ClusterState) -> frozenset[Requirement]:
    """What the Services that select the pod and its controller select, all together; empty when nothing does."""
    labels: dict[str, str] = {}
    for selector in state.surroundings.services.get(pod.namespace, ()):
        if all(pod.labels.get(key) == value for key, value in selector.items()):
            labels.update(selector)
    found = frozenset(Requirement(key, "In", frozenset((value,))) for key, value in labels.items())
    if pod.owner is None:
        return found
    return found | state.surroundings.controllers.get((pod.owner.kind, pod.namespace, pod.owner.name), frozenset())


def spread_query(constraint: SpreadConstraint, namespace: str) -> PodQuery:
    """The pods that a constraint of a pod of that namespace counts."""
    return PodQuery((Condition(frozenset((namespace,)), constraint.selector),), living=True)


def counted_nodes(
    cycle: Cycle, constraints: Sequence[SpreadConstraint], *, require_all: bool
) -> Iterator[tuple[NodeRow, list[int]]]:
    """Nodes that count for spreading, each with the indices of the constraints whose policies admit it."""
    keys = [one.topology_key for one in constraints]
    for row in cycle.state.rows.values():
        if require_all and not all(key in row.labels for key in keys):
            continue
        indices = [index for index, one in enumerate(constraints) if admits(cycle, one, row.name)]
        if indices:
            yield row, indices


def admits(cycle: Cycle, constraint: SpreadConstraint, name: str) -> bool:
    """Tell whether the node passes the constraint's inclusion policies."""
    if constraint.honor_affinity and name in cycle.unmatched:
        return False
    return not (constraint.honor_taints and name in cycle.kept_off)


class SpreadCounts:
    """DoNotSchedule constraints, with the number of pods in each of their domains."""

    __slots__ = ("_constraints", "_counts", "_cycle", "_fewest", "_matches_itself")

    def __init__(self, cycle: Cycle, constraints: Sequence[SpreadConstraint]) -> None:
        self._cycle = cycle
        self._constraints = constraints
        labels = cycle.pod.labels
        self._matches_itself = [int(selector_matches(one.selector, labels)) for one in constraints]
        self._counts: list[dict[str, int]] = [{} for _ in constraints]
        pods = [
            # An empty selector counts nothing here.
            cycle.state.count_pods(spread_query(one, cycle.pod.namespace)) if one.selector else {}
            for one in constraints
        ]
        # The smallest count of each constraint, while nothing changes.
        self._fewest: list[int | None] = [None] * len(constraints)
        for row, indices in counted_nodes(cycle, constraints, require_all=True):
            for index in indices:
                counts, value = self._counts[index], row.labels[constraints[index].topology_key]
                counts[value] = counts.get(value, 0) + pods[index].get(row.name, 0)

    @classmethod
    def of(cls, cycle: Cycle) -> Self | None:
        """The counts for the cycle's pod; None when no constraint binds it."""
        constraints = spread_constraints(cycle.pod, cycle.profile, cycle.state, required=True)
        return cls(cycle, constraints) if constraints else None

    def copy(self) -> Self:
        """Counts of their own."""
        new = type(self).__new__(type(self))
        new._cycle, new._constraints, new._matches_itself = self._cycle, self._constraints, self._matches_itself
        new._counts = [dict(counts) for counts in self._counts]
        new._fewest = list(self._fewest)
        return new

    def count(self, pod: PodState, row: NodeRow, sign: int) -> None:
        """Count another pod in or out; unlike at first also one that is being deleted, as kube-scheduler does."""
        if pod.namespace != self._cycle.pod.namespace:
            return
        if not all(one.topology_key in row.labels for one in self._constraints):
            return
        for index, constraint in enumerate(self._constraints):
            if selector_matches(constraint.selector, pod.labels) and admits(self._cycle, constraint, row.name):
                counts, value = self._counts[index], row.labels[constraint.topology_key]
                counts[value] = counts.get(value, 0) + sign
                self._fewest[index] = None

    def check(self, row: NodeRow) -> Verdict:
        """Why the node would be one too many; None when it wouldn't."""
        for index, constraint in enumerate(self._constraints):
            value = row.labels.get(constraint.topology_key)
            if value is None:
                return NO_TOPOLOGY
            number = self._counts[index].get(value, 0) + self._matches_itself[index]
            if number - self._fewest_of(index) > constraint.max_skew:
                return SKEWED
        return None

    def _fewest_of(self, index: int) -> int:
        fewest = self._fewest[index]
        if fewest is None:
            counts = self._counts[index]
            fewest = min(counts.values()) if len(counts) >= self._constraints[index].min_domains else 0
            self._fewest[index] = fewest
        return fewest


# Other pods

_Domains = dict[tuple[str, str], int]


class OtherPods:
    """Required (anti-)affinity: in which domains the pods are that the pod needs, avoids or is avoided by."""

    __slots__ = ("_affinity", "_anti_affinity", "_avoided_by", "_namespace_labels", "_pod", "_queries")

    def __init__(self, cycle: Cycle) -> None:
        pod, state = cycle.pod, cycle.state
        self._pod = pod
        self._namespace_labels = state.labels_of_namespace(pod.namespace)
        rows = state.rows
        affinity, anti_affinity = pod.spec.required_affinity, pod.spec.required_anti_affinity
        needed = PodQuery(tuple(state.condition_of(term, pod.namespace) for term in affinity))
        avoided = [PodQuery((state.condition_of(term, pod.namespace),)) for term in anti_affinity]
        self._queries = (needed, avoided)
        self._affinity: _Domains = {}
        self._anti_affinity: _Domains = {}
        self._avoided_by: _Domains = {}
        if affinity:
            for name, number in state.count_pods(needed).items():
                _add_domains(self._affinity, affinity, rows[name].labels, number)
        for term, query in zip(anti_affinity, avoided, strict=True):
            for name, number in state.count_pods(query).items():
                _add_domains(self._anti_affinity, (term,), rows[name].labels, number)
        for owned, counts in state.terms.items():
            if owned.kind == REQUIRED_ANTI_AFFINITY and term_means(owned, pod, self._namespace_labels):
                for name, number in counts.items():
                    _add_domains(self._avoided_by, (owned.term,), rows[name].labels, number)

    @classmethod
    def of(cls, cycle: Cycle) -> Self | None:
        """The domains for the cycle's pod; None when no term binds it: then later pods don't bring one either."""
        found = cls(cycle)
        spec = cycle.pod.spec
        return found if found._avoided_by or spec.required_affinity or spec.required_anti_affinity else None

    def copy(self) -> Self:
        """Domains of their own."""
        new = type(self).__new__(type(self))
        new._pod, new._namespace_labels, new._queries = self._pod, self._namespace_labels, self._queries
        new._affinity = dict(self._affinity)
        new._anti_affinity = dict(self._anti_affinity)
        new._avoided_by = dict(self._avoided_by)
        return new

    def count(self, pod: PodState, row: NodeRow, sign: int) -> None:
        """Count another pod in or out."""
        spec = self._pod.spec
        needed, avoided = self._queries
        if spec.required_affinity and needed.finds(pod):
            _add_domains(self._affinity, spec.required_affinity, row.labels, sign)
        for term, query in zip(spec.required_anti_affinity, avoided, strict=True):
            if query.finds(pod):
                _add_domains(self._anti_affinity, (term,), row.labels, sign)
        if pod.spec.required_anti_affinity:
            for owned in owned_terms(pod):
                if owned.kind == REQUIRED_ANTI_AFFINITY and term_means(owned, self._pod, self._namespace_labels):
                    _add_domains(self._avoided_by, (owned.term,), row.labels, sign)

    def check(self, row: NodeRow) -> Verdict:
        """Why the node is in the wrong company; None when it isn't."""
        labels, spec = row.labels, self._pod.spec
        if spec.required_affinity and not self._has_company(labels):
            return NO_COMPANY
        if self._anti_affinity:
            for term in spec.required_anti_affinity:
                value = labels.get(term.topology_key)
                if value is not None and self._anti_affinity.get((term.topology_key, value), 0) > 0:
                    return AVOIDS_OTHERS
        for (key, value), number in self._avoided_by.items():
            if number > 0 and labels.get(key) == value:
                return AVOIDED_BY_OTHERS
        return None

    def _has_company(self, labels: Mapping[str, str]) -> bool:
        terms = self._pod.spec.required_affinity
        alone = False
        for term in terms:
            value = labels.get(term.topology_key)
            if value is None:
                return False
            if self._affinity.get((term.topology_key, value), 0) <= 0:
                alone = True
        # The first of its kind may start a company that it would itself belong to.
        return not alone or (not self._affinity and self._queries[0].finds(self._pod))


def _add_domains(domains: _Domains, terms: Sequence[PodTerm], labels: Mapping[str, str], number: int) -> None:
    for term in terms:
        value = labels.get(term.topology_key)
        if value is not None:
            domain = (term.topology_key, value)
            total = domains.get(domain, 0) + number
            if total:
                domains[domain] = total
            else:
                domains.pop(domain, None)


# All nodes


def filter_nodes(pod: PodState, state: ClusterState, profile: Profile) -> dict[str, Verdict]:
    """For every node, in kube-scheduler's order: None when the pod fits there, else why not.

    Pods nominated to a node are reckoned with. A pod that can only be about named nodes is rejected by the others.
    """
    cycle = Cycle(pod, state, profile)
    if cycle.refusal is not None:
        refused = Rejection((cycle.refusal,), True)
        return {row.name: refused for row in state.ordered}
    named = cycle.named_nodes
    return {
        row.name: NOT_NAMED if named is not None and row.name not in named else verdict
        for row, verdict in cycle.check_all(state.ordered)
    }
