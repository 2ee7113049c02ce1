"""Find the nodes on which a pod fits, and why it doesn't fit on the others, in kube-scheduler's
words.

This file has the order of the filters, and the filters that depend on the pods of a node: NodePorts
and NodeResourcesFit. Volumes, resource claims and declared node features are not modelled, and
exclude no node. Source: the Filter and PreFilter methods of kube-scheduler's plugins, v1.33 to
v1.37.
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
# The name of a check that stands for all of them.
_OF_NODES: Final = "what nodes alone decide"
PORT_TAKEN: Final = Rejection(
    ("node(s) didn't have free ports for the requested pod ports",), False
)
CONFLICTING_NAMES: Final = "pod affinity terms conflict"
# For nodes that a pod's node affinity doesn't name, if it names nodes, as for pods of DaemonSets.
NOT_NAMED: Final = Rejection(("node(s) didn't satisfy plugin(s) [NodeAffinity]",), True)


class Cycle(NodeFilters):
    """The filters for a pod, a state of the cluster and a profile, with what PreFilter computes.

    Pre-emption and nominated pods are tried on a `fork`, to which pods are added, or from which
    they are removed.
    """

    __slots__ = ("_checks", "_row_checks", "named_nodes", "others", "refusal", "spread")

    def __init__(self, pod: Pod, state: ClusterState, profile: Profile) -> None:
        super().__init__(pod, state, profile)
        # Why the pod fits on no node, whatever the nodes are; None: nodes must be looked at.
        self.refusal: str | None = None
        # The names of the nodes that the pod's required node affinity names; None: it names none.
        self.named_nodes: frozenset[str] | None = None
        if NODE_AFFINITY in profile.filters:
            self._read_named_nodes()
        self.spread = SpreadCounts.of(self) if POD_TOPOLOGY_SPREAD in profile.filters else None
        self.others = OtherPods.of(self) if INTER_POD_AFFINITY in profile.filters else None
        # `_row_checks`: how many of the first checks look only at a node and its pods.
        self._checks, self._row_checks = self._make_checks()

    def _read_named_nodes(self) -> None:
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
        """The checks that may reject this pod, in the profile's order, and how many of the first
        checks look only at a node and its pods.
        """
        names, row_checks = _plan_checks(
            self.profile.filters,
            has_ports=bool(self.pod.spec.host_ports),
            is_spread=self.spread is not None,
            has_others=self.others is not None,
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
        checks = {**self._node_checks, **checks}
        return tuple([checks[name] for name in names]), row_checks

    def fork(self) -> Self:
        """A copy of the cycle. `count` on the copy doesn't change this cycle."""
        new = type(self).__new__(type(self))
        for name in ("pod", "state", "profile", "refusal", "named_nodes", "_filter_results"):
            setattr(new, name, getattr(self, name))
        new.spread = self.spread.copy() if self.spread is not None else None
        new.others = self.others.copy() if self.others is not None else None
        new._checks, new._row_checks = new._make_checks()
        return new

    def count(self, pod: Pod, row: NodeRow, sign: int) -> None:
        """Add another pod (sign 1) to the filters' counts of a node, or remove it (sign -1)."""
        if self.spread is not None:
            self.spread.count(pod, row, sign)
        if self.others is not None:
            self.others.count(pod, row, sign)

    def check(self, row: NodeRow) -> Rejection | None:
        """Return why the pod doesn't fit on a node, without its nominated pods; None: it fits."""
        return _first_rejection(self._checks, row)

    def check_all(self, rows: Iterable[NodeRow]) -> Iterator[tuple[NodeRow, Rejection | None]]:
        """Yield each row with the result of `check_with_nominated` for it. It is faster.

        rows: of the state.
        """
        row_verdicts = self._find_row_verdicts().values
        places = self.state.places
        other_checks = self._checks[self._row_checks :]
        for row in rows:
            if row.nominated:
                yield row, self.check_with_nominated(row)
                continue
            verdict = row_verdicts[places[row.name]]
            if verdict is None and other_checks:
                verdict = _first_rejection(other_checks, row)
            yield row, verdict

    def _find_row_verdicts(self) -> NodeColumn[Rejection | None]:
        """The results of the checks that look only at a node and its pods, for each row.

        Nominated pods don't count. The state remembers the results for the next pod with the same
        needs.
        """
        needs = self.state.needs_of(self.pod.spec)
        # The number of checks belongs to the key: it differs between pods with the same needs if a
        # filter that looks at other nodes' pods stands between these checks in the profile.
        key = (
            type(self),
            id(needs),
            id(self.profile),
            self._row_checks,
            self.state.surroundings.claimable,
        )
        checks = self._checks[: self._row_checks]
        # Special cases for speed: every node is checked, and by default there are two checks.
        if len(checks) == 1:
            find = checks[0]
        elif len(checks) == 2:
            first, second = checks

            def find(row: NodeRow) -> Rejection | None:
                verdict = first(row)
                return second(row) if verdict is None else verdict

        else:

            def find(row: NodeRow) -> Rejection | None:
                return _first_rejection(checks, row)

        return self.state.column(key, find, (needs, self.profile))

    def check_with_nominated(self, row: NodeRow) -> Rejection | None:
        """Return why the pod doesn't fit on a node; None: it fits.

        It must also fit together with the node's nominated pods of the same or a higher priority.
        """
        rivals = [
            rival
            for rival in row.nominated.values()
            if rival.priority >= self.pod.priority and rival.key != self.pod.key
        ]
        if rivals:
            cycle = self.fork()
            row_with_rivals = row.copy()
            for rival in rivals:
                row_with_rivals.add(rival)
                cycle.count(rival, row_with_rivals, 1)
            verdict = cycle.check(row_with_rivals)
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
                # No resource is lacking.
                return None
        return self._find_lacking(row)

    def _find_lacking(self, row: NodeRow) -> Rejection | None:
        """Name all resources that the node lacks for the pod. None: it lacks none that counts.

        An extended resource that the node doesn't list doesn't count if devices may provide it.
        """
        reasons = [] if len(row.pods) < row.max_pods else ["Too many pods"]
        unresolvable = False
        for name, amount in self.pod.spec.requests:
            capacity = row.allocatable.get(name, 0)
            if amount <= 0 or amount <= capacity - row.requested.get(name, 0):
                continue
            if not capacity and name in self.state.surroundings.claimable:
                continue
            reasons.append(f"Insufficient {name}")
            # kube-scheduler 1.33 looks for victims even on nodes that are too small.
            if amount > capacity and self.profile.minor >= 34:
                unresolvable = True
        return Rejection(tuple(reasons), unresolvable) if reasons else None


@lru_cache(maxsize=256)
def _plan_checks(
    filters: tuple[str, ...], *, has_ports: bool, is_spread: bool, has_others: bool
) -> tuple[tuple[str, ...], int]:
    """The names of the checks that may reject a pod, in the profile's order, and how many of the
    first checks look only at a node and its pods.

    filters: of the profile. has_ports: the pod has host ports. is_spread: a required spreading
    constraint binds it. has_others: a required (anti-)affinity term binds it.
    """
    needed = {NODE_RESOURCES_FIT, *_NODE_FILTERS}
    if has_ports:
        needed.add(NODE_PORTS)
    if is_spread:
        needed.add(POD_TOPOLOGY_SPREAD)
    if has_others:
        needed.add(INTER_POD_AFFINITY)
    active = [plugin for plugin in filters if plugin in needed]
    of_nodes = [plugin for plugin in active if plugin in _NODE_FILTERS]
    start = active.index(of_nodes[0]) if of_nodes else 0
    end = start + len(of_nodes)
    if of_nodes and active[start:end] == of_nodes:
        # They follow each other, as by default. Then one check stands for all of them, and its
        # result is already known.
        active[start:end] = [_OF_NODES]
    row_checks = 0
    for plugin in active:
        if plugin in (POD_TOPOLOGY_SPREAD, INTER_POD_AFFINITY):
            break
        row_checks += 1
    return tuple(active), row_checks


def _first_rejection(checks: Iterable[Check], row: NodeRow) -> Rejection | None:
    for check in checks:
        verdict = check(row)
        if verdict is not None:
            return verdict
    return None


def _clash(wanted: HostPort, taken: HostPort) -> bool:
    if wanted.port != taken.port or wanted.protocol != taken.protocol:
        return False
    return wanted.ip == taken.ip or ALL_ADDRESSES in (wanted.ip, taken.ip)
