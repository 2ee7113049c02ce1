"""The InterPodAffinity filter: in which domains a pod may run because of other pods.

A domain is a topology key with a value. A pod needs some pods in its domain, avoids others, and is
avoided by others. Source: kube-scheduler's plugin of that name, v1.33 to v1.37.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Self

from roost_core.objects.pod import Pod, PodTerm
from roost_core.scheduler.node_filters import NodeFilters
from roost_core.scheduler.node_rows import NodeRow, bump
from roost_core.scheduler.pod_queries import (
    REQUIRED_ANTI_AFFINITY,
    OwnedTerm,
    PodQuery,
    owned_terms,
    term_selects,
)
from roost_core.scheduler.rejections import Rejection

NO_COMPANY: Final = Rejection(("node(s) didn't match pod affinity rules",), True)
AVOIDS_OTHERS: Final = Rejection(("node(s) didn't match pod anti-affinity rules",), False)
AVOIDED_BY_OTHERS: Final = Rejection(
    ("node(s) didn't satisfy existing pods anti-affinity rules",), False
)
# How many pods are in a domain, by topology key and value.
_Domains = dict[tuple[str, str], int]


class OtherPods:
    """The other pods that a pod's required (anti-)affinity, or theirs, is about, by domain."""

    __slots__ = (
        "_affinity",
        "_anti_affinity",
        "_avoided_by",
        "_namespace_labels",
        "_pod",
        "_queries",
    )

    def __init__(self, nodes: NodeFilters) -> None:
        pod = nodes.pod
        state = nodes.state
        self._pod = pod
        self._namespace_labels = state.labels_of_namespace(pod.namespace)
        rows = state.rows
        affinity = pod.spec.required_affinity
        anti_affinity = pod.spec.required_anti_affinity
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
            if self._is_avoided_by(owned):
                for name, number in counts.items():
                    _add_domains(self._avoided_by, (owned.term,), rows[name].labels, number)

    @classmethod
    def of(cls, nodes: NodeFilters) -> Self | None:
        """The domains for the cycle's pod. None: no term binds the pod.

        Then the filter is skipped for the whole cycle, even if a pod that is added later to try it
        has a term. kube-scheduler does the same.
        """
        domains = cls(nodes)
        spec = nodes.pod.spec
        has_own_terms = bool(spec.required_affinity or spec.required_anti_affinity)
        return domains if has_own_terms or domains._avoided_by else None

    def copy(self) -> Self:
        """A copy. `count` on the copy doesn't change this object."""
        new = type(self).__new__(type(self))
        new._pod = self._pod
        new._namespace_labels = self._namespace_labels
        new._queries = self._queries
        new._affinity = dict(self._affinity)
        new._anti_affinity = dict(self._anti_affinity)
        new._avoided_by = dict(self._avoided_by)
        return new

    def count(self, pod: Pod, row: NodeRow, sign: int) -> None:
        """Add another pod on a node to the counts (sign 1), or remove it (sign -1)."""
        spec = self._pod.spec
        needed, avoided = self._queries
        if spec.required_affinity and needed.finds(pod):
            _add_domains(self._affinity, spec.required_affinity, row.labels, sign)
        for term, query in zip(spec.required_anti_affinity, avoided, strict=True):
            if query.finds(pod):
                _add_domains(self._anti_affinity, (term,), row.labels, sign)
        if pod.spec.required_anti_affinity:
            for owned in owned_terms(pod):
                if self._is_avoided_by(owned):
                    _add_domains(self._avoided_by, (owned.term,), row.labels, sign)

    def _is_avoided_by(self, owned: OwnedTerm) -> bool:
        """Whether a term of another pod keeps this pod out of its domain."""
        if owned.kind != REQUIRED_ANTI_AFFINITY:
            return False
        return term_selects(owned, self._pod, self._namespace_labels)

    def check(self, row: NodeRow) -> Rejection | None:
        """Return why the node's domains violate a term; None if they don't."""
        labels = row.labels
        spec = self._pod.spec
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
        """Whether a node's domains have the pods that the pod needs."""
        has_company = True
        for term in self._pod.spec.required_affinity:
            value = labels.get(term.topology_key)
            if value is None:
                return False
            if self._affinity.get((term.topology_key, value), 0) <= 0:
                has_company = False
        if has_company:
            return True
        # The first pod of a group may start it, if it matches its own terms.
        needed, _ = self._queries
        return not self._affinity and needed.finds(self._pod)


def _add_domains(
    domains: _Domains, terms: Sequence[PodTerm], labels: Mapping[str, str], number: int
) -> None:
    """Add a number of pods on a node with these labels to the domain of each term."""
    for term in terms:
        value = labels.get(term.topology_key)
        if value is not None:
            bump(domains, (term.topology_key, value), number)
