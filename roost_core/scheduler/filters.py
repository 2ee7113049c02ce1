"""Find the nodes on which a pod fits, and why not on the others, in kube-scheduler's words.

Has the order of the filters, and those that depend on one node's pods: NodePorts and
NodeResourcesFit. Volumes, resource claims and declared node features are not modelled, and exclude
no node. Source: the Filter and PreFilter methods of kube-scheduler's plugins, v1.33 to v1.37.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final, Self

from roost_core.objects.pod import HostPort, Pod
from roost_core.scheduler.node_filters import NodeFilters
from roost_core.scheduler.node_rows import NodeRow
from roost_core.scheduler.plugins import (
    INTER_POD_AFFINITY,
    NODE_AFFINITY,
    NODE_PORTS,
    NODE_RESOURCES_FIT,
    NODE_UNSCHEDULABLE,
    POD_TOPOLOGY_SPREAD,
    TAINT_TOLERATION,
)
from roost_core.scheduler.pod_affinity import OtherPods
from roost_core.scheduler.profile import Profile
from roost_core.scheduler.rejections import Check, Rejection
from roost_core.scheduler.state import ClusterState, NodeColumn
from roost_core.scheduler.topology_spread import SpreadCounts

ALL_ADDRESSES: Final = "0.0.0.0"  # noqa: S104 (Kubernetes' word for all addresses; nothing is bound here)
_NODE_FILTERS: Final = (NODE_UNSCHEDULABLE, TAINT_TOLERATION, NODE_AFFINITY)
# All of them together.
_OF_NODES: Final = "what nodes alone decide"
PORT_TAKEN: Final = Rejection(
    ("node(s) didn't have free ports for the requested pod ports",), False
)
CONFLICTING_NAMES: Final = "pod affinity terms conflict"
# For the nodes that a pod of a DaemonSet isn't about.
NOT_NAMED: Final = Rejection(("node(s) didn't satisfy plugin(s) [NodeAffinity]",), True)


class Cycle(NodeFilters):
    """One pod before one state and profile: what PreFilter computes, and the filters that use it.

    `fork` gives a second one to add pods to or take pods from; that is how pre-emption and
    nominated pods are tried.
    """

    __slots__ = ("_checks", "_number_alone", "named_nodes", "others", "refusal", "spread")

    def __init__(self, pod: Pod, state: ClusterState, profile: Profile) -> None:
        super().__init__(pod, state, profile)
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
            named = [
                values
                for key, operator, values in term.fields
                if key == "metadata.name" and operator == "In"
            ]
            if not named:
                return
            names |= frozenset.intersection(*named)
        if names:
            self.named_nodes = frozenset(names)
        else:
            self.refusal = CONFLICTING_NAMES

    def _make_checks(self) -> tuple[tuple[Check, ...], int]:
        """The filters in the profile's order that can reject this pod at all; how many first ones
        ask one row alone.
        """
        names, alone = _plan_checks(
            self.profile.filters,
            bool(self.pod.spec.host_ports),
            self.spread is not None,
            self.others is not None,
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

    def fork(self) -> Self:
        """The same cycle with counts of its own."""
        new = type(self).__new__(type(self))
        for name in ("pod", "state", "profile", "refusal", "named_nodes", "_filter_results"):
            setattr(new, name, getattr(self, name))
        new.spread = self.spread.copy() if self.spread is not None else None
        new.others = self.others.copy() if self.others is not None else None
        new._checks, new._number_alone = new._make_checks()
        return new

    def count(self, pod: Pod, row: NodeRow, sign: int) -> None:
        """Count another pod in (1) or out (-1) at this node, in the counts that filters use."""
        if self.spread is not None:
            self.spread.count(pod, row, sign)
        if self.others is not None:
            self.others.count(pod, row, sign)

    def check(self, row: NodeRow) -> Rejection | None:
        """Return why the pod doesn't fit on this node as it is; None if it does."""
        return _first(self._checks, row)

    def check_all(self, rows: Iterable[NodeRow]) -> Iterator[tuple[NodeRow, Rejection | None]]:
        """Each of the state's own rows with its verdict as `check_with_nominated` gives it, but
        quick.
        """
        known = self._verdicts_of_rows_alone().values
        places = self.state.places
        others = self._checks[self._number_alone :]
        for row in rows:
            if row.nominated:
                yield row, self.check_with_nominated(row)
                continue
            verdict = known[places[row.name]]
            if verdict is None and others:
                verdict = _first(others, row)
            yield row, verdict

    def _verdicts_of_rows_alone(self) -> NodeColumn[Rejection | None]:
        """What the checks before the first that asks about other pods say of each row.

        Nominations are left aside. The state remembers the results for the next pod with the same
        needs.
        """
        needs = self.state.needs_of(self.pod.spec)
        # Filters behind one that asks of other pods are not asked of a row alone, so their number
        # belongs to the key.
        key = (
            type(self),
            id(needs),
            id(self.profile),
            self._number_alone,
            self.state.surroundings.claimable,
        )
        checks = self._checks[: self._number_alone]
        # Written out for speed: every node is asked, and by default there are two checks.
        if len(checks) == 1:
            find = checks[0]
        elif len(checks) == 2:
            first, second = checks

            def find(row: NodeRow) -> Rejection | None:
                verdict = first(row)
                return second(row) if verdict is None else verdict

        else:

            def find(row: NodeRow) -> Rejection | None:
                return _first(checks, row)

        return self.state.column(key, find, (needs, self.profile))

    def check_with_nominated(self, row: NodeRow) -> Rejection | None:
        """Check as `check` does. The pod must also fit beside pods of its priority or above that
        are nominated to the node.
        """
        if row.nominated:
            priority = self.pod.priority
            key = self.pod.key
            rivals = [
                rival
                for rival in row.nominated.values()
                if rival.priority >= priority and rival.key != key
            ]
            if rivals:
                cycle = self.fork()
                fuller = row.copy()
                for rival in rivals:
                    fuller.add(rival)
                    cycle.count(rival, fuller, 1)
                verdict = cycle.check(fuller)
                if verdict is not None:
                    return verdict
        return self.check(row)

    def _check_ports(self, row: NodeRow) -> Rejection | None:
        taken = row.ports
        for wanted in self.pod.spec.host_ports:
            for port in taken:
                if _clash(wanted, port):
                    return PORT_TAKEN
        return None

    def _check_room(self, row: NodeRow) -> Rejection | None:
        allocatable = row.allocatable
        requested = row.requested
        if len(row.pods) < row.max_pods:
            for name, amount in self.pod.spec.requests:
                if amount and amount > allocatable.get(name, 0) - requested.get(name, 0):
                    break
            else:
                return None
        return self._lack(row)

    def _lack(self, row: NodeRow) -> Rejection | None:
        """Return all lacking resources, except ignored extended resources."""
        reasons = [] if len(row.pods) < row.max_pods else ["Too many pods"]
        unresolvable = False
        for name, amount in self.pod.spec.requests:
            capacity = row.allocatable.get(name, 0)
            if amount > 0 and amount > capacity - row.requested.get(name, 0):
                if not capacity and name in self.state.surroundings.claimable:
                    continue
                reasons.append(f"Insufficient {name}")
                # 1.33 looks for victims even on nodes that are too small.
                unresolvable = unresolvable or (amount > capacity and self.profile.minor >= 34)
        return Rejection(tuple(reasons), unresolvable) if reasons else None


@lru_cache(maxsize=256)
def _plan_checks(
    filters: tuple[str, ...], has_ports: bool, is_spread: bool, has_others: bool
) -> tuple[tuple[str, ...], int]:
    """The filters in the profile's order that can reject a pod at all; how many first ones ask one
    row alone.
    """
    asked = {NODE_RESOURCES_FIT, *_NODE_FILTERS}
    if has_ports:
        asked.add(NODE_PORTS)
    if is_spread:
        asked.add(POD_TOPOLOGY_SPREAD)
    if has_others:
        asked.add(INTER_POD_AFFINITY)
    active = [plugin for plugin in filters if plugin in asked]
    of_nodes = [plugin for plugin in active if plugin in _NODE_FILTERS]
    start = active.index(of_nodes[0]) if of_nodes else 0
    end = start + len(of_nodes)
    if of_nodes and active[start:end] == of_nodes:
        # Side by side, as by default: what nodes alone decide is one check, and is known already.
        active[start:end] = [_OF_NODES]
    asks_others = (POD_TOPOLOGY_SPREAD, INTER_POD_AFFINITY)
    alone = next(
        (index for index, plugin in enumerate(active) if plugin in asks_others), len(active)
    )
    return tuple(active), alone


def _first(checks: Iterable[Check], row: NodeRow) -> Rejection | None:
    for check in checks:
        verdict = check(row)
        if verdict is not None:
            return verdict
    return None


def _clash(wanted: HostPort, taken: HostPort) -> bool:
    if wanted.port != taken.port or wanted.protocol != taken.protocol:
        return False
    return wanted.ip == taken.ip or ALL_ADDRESSES in (wanted.ip, taken.ip)
