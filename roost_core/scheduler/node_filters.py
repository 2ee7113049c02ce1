"""Filters that depend on nodes alone: NodeUnschedulable, TaintToleration and NodeAffinity.

Their results hold for all pods of one spec until a node changes. Source: the Filter methods of
kube-scheduler's plugins, v1.33 to v1.37.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from roost_core.objects.pod import Pod
from roost_core.objects.selectors import (
    NodeTerm,
    count_unwanted,
    node_matches,
    node_term_matches,
    tolerates_cordon,
    untolerated,
)
from roost_core.scheduler.node_rows import NodeRow
from roost_core.scheduler.plugins import NODE_AFFINITY, NODE_UNSCHEDULABLE, TAINT_TOLERATION
from roost_core.scheduler.profile import Profile
from roost_core.scheduler.rejections import Check, Rejection
from roost_core.scheduler.state import ClusterState, KeptResults

# The most specs whose results are kept while no node changes.
_REMEMBERED_VERDICTS: Final = 2048
UNSCHEDULABLE: Final = Rejection(("node(s) were unschedulable",), True)
TAINTED: Final = Rejection(("node(s) had untolerated taint(s)",), True)
OTHER_NODES: Final = Rejection(("node(s) didn't match Pod's node affinity/selector",), True)


@dataclass(slots=True)
class NodeFilterResults:
    """The results of these filters for a spec and a profile. They hold until a node changes.

    What is None is computed when it is first needed.
    """

    # Why nodes reject the pod, by the node's name.
    rejected: dict[str, Rejection] = field(default_factory=dict)
    # See the properties of NodeFilters with the same names.
    unmatched: frozenset[str] | None = None
    kept_off: frozenset[str] | None = None
    unwanted: dict[str, int] | None = None
    # By the preferred node terms of a spec.
    preferred: dict[tuple[tuple[int, NodeTerm], ...], tuple[int, dict[str, int]]] = field(
        default_factory=dict
    )


class NodeFilters:
    """The filters for a pod, a state of the cluster and a profile, as far as only nodes decide."""

    __slots__ = ("_filter_results", "pod", "profile", "state")

    def __init__(self, pod: Pod, state: ClusterState, profile: Profile) -> None:
        state.look()
        self.pod = pod
        self.state = state
        self.profile = profile
        self._filter_results: NodeFilterResults | None = None

    @property
    def _node_checks(self) -> dict[str, Check]:
        return {
            NODE_UNSCHEDULABLE: self._check_cordon,
            TAINT_TOLERATION: self._check_taints,
            NODE_AFFINITY: self._check_affinity,
        }

    @property
    def filter_results(self) -> NodeFilterResults:
        """The results of these filters, for all pods with the same needs."""
        if self._filter_results is None:
            self._filter_results = self._find_filter_results()
        return self._filter_results

    def _find_filter_results(self) -> NodeFilterResults:
        needs = self.state.needs_of(self.pod.spec)
        profile = self.profile
        kept = self.state.filter_results
        # By identity, so that needs aren't hashed for each pod.
        key = (id(needs), id(profile))
        entry = kept.get(key)
        if entry is not None:
            remembered: NodeFilterResults = entry.results
            return remembered
        filter_results = NodeFilterResults()
        node_checks = self._node_checks
        checks = [node_checks[plugin] for plugin in profile.filters if plugin in node_checks]
        for name, row in self.state.rows.items():
            for check in checks:
                verdict = check(row)
                if verdict is not None:
                    filter_results.rejected[name] = verdict
                    break
        if len(kept) >= _REMEMBERED_VERDICTS:
            kept.clear()
        kept[key] = KeptResults(needs, profile, filter_results)
        return filter_results

    def _check_node(self, row: NodeRow) -> Rejection | None:
        return self.filter_results.rejected.get(row.name)

    def _check_cordon(self, row: NodeRow) -> Rejection | None:
        if row.node.unschedulable and not tolerates_cordon(self.pod.spec.tolerations):
            return UNSCHEDULABLE
        return None

    def _check_taints(self, row: NodeRow) -> Rejection | None:
        if not row.node.taints:
            return None
        taint = untolerated(row.node.taints, self.pod.spec.tolerations)
        if taint is None:
            return None
        if self.profile.minor >= 34:
            return TAINTED
        # Before 1.34, kube-scheduler names the taint.
        return Rejection((f"node(s) had untolerated taint {{{taint.key}: {taint.value}}}",), True)

    def _check_affinity(self, row: NodeRow) -> Rejection | None:
        return None if node_matches(self.pod.spec, row.name, row.labels) else OTHER_NODES

    @property
    def unmatched(self) -> frozenset[str]:
        """Nodes that the pod's own node selector and required affinity don't admit."""
        filter_results = self.filter_results
        if filter_results.unmatched is None:
            spec = self.pod.spec
            rows = self.state.rows
            filter_results.unmatched = frozenset(
                name for name, row in rows.items() if not node_matches(spec, name, row.labels)
            )
        return filter_results.unmatched

    @property
    def kept_off(self) -> frozenset[str]:
        """Nodes whose taints the pod doesn't tolerate."""
        filter_results = self.filter_results
        if filter_results.kept_off is None:
            tolerations = self.pod.spec.tolerations
            rows = self.state.rows
            filter_results.kept_off = frozenset(
                name for name, row in rows.items() if untolerated(row.node.taints, tolerations)
            )
        return filter_results.kept_off

    @property
    def preferred(self) -> tuple[int, Mapping[str, int]]:
        """The weights of the pod's preferred node terms, in two parts.

        First the sum for the terms that all nodes meet. Then the sums for the other terms, by the
        node's name; nodes with 0 are left out.
        """
        kept = self.filter_results.preferred
        terms = self.pod.spec.preferred_node_terms
        if terms not in kept:
            if len(kept) >= _REMEMBERED_VERDICTS:
                kept.clear()
            kept[terms] = self._sum_preferred(terms)
        return kept[terms]

    def _sum_preferred(self, terms: tuple[tuple[int, NodeTerm], ...]) -> tuple[int, dict[str, int]]:
        everywhere = 0
        weights: dict[str, int] = {}
        for weight, term in terms:
            names = self._nodes_that_meet(term) if weight else ()
            if len(names) == len(self.state.rows):
                everywhere += weight
                continue
            for name in names:
                weights[name] = weights.get(name, 0) + weight
        return everywhere, weights

    def _nodes_that_meet(self, term: NodeTerm) -> Sequence[str]:
        """Names of the nodes that meet a node selector term."""
        kept = self.state.meeting
        if term not in kept:
            if len(kept) >= _REMEMBERED_VERDICTS:
                kept.clear()
            rows = self.state.rows
            kept[term] = tuple(
                [name for name, row in rows.items() if node_term_matches(term, name, row.labels)]
            )
        return kept[term]

    @property
    def unwanted(self) -> Mapping[str, int]:
        """How many PreferNoSchedule taints the pod doesn't tolerate, by the node's name.

        Nodes with 0 are left out.
        """
        filter_results = self.filter_results
        if filter_results.unwanted is None:
            tolerations = self.pod.spec.tolerations
            rows = self.state.rows
            numbers = {
                name: count_unwanted(row.node.taints, tolerations) for name, row in rows.items()
            }
            filter_results.unwanted = {name: number for name, number in numbers.items() if number}
        return filter_results.unwanted
