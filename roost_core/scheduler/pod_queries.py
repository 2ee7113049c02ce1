"""Queries of pods by namespace and labels: for (anti-)affinity terms, spreading and the
autoscaler.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from roost_core.objects.pod import Pod, PodTerm
from roost_core.objects.selectors import Requirement, selector_matches

# Kinds of pods' terms, as they act on a pod that comes.
REQUIRED_AFFINITY: Final = "required affinity"
REQUIRED_ANTI_AFFINITY: Final = "required anti-affinity"
PREFERRED: Final = "preferred"


class OwnedTerm(NamedTuple):
    """A term together with whose it is, since one without namespaces means its owner's own."""

    kind: str
    term: PodTerm
    namespaces: frozenset[str]
    # A preferred term's weight; negative for anti-affinity. 0 for a required one.
    weight: int


class PodQuery(NamedTuple):
    """Pods that meet every one of the conditions; `living` leaves out those that are being
    deleted.
    """

    # Namespaces (None: every one) and a selector.
    conditions: tuple[tuple[frozenset[str] | None, frozenset[Requirement] | None], ...]
    living: bool = False

    def finds(self, pod: Pod) -> bool:
        """Whether the pod matches."""
        if self.living and pod.leaving:
            return False
        for namespaces, selector in self.conditions:
            if namespaces is not None and pod.namespace not in namespaces:
                return False
            if not selector_matches(selector, pod.labels):
                return False
        return True


def own_namespaces(term: PodTerm, namespace: str) -> frozenset[str]:
    """The namespaces that a term names; its owner's own when it names none and selects none."""
    if term.namespaces or term.namespace_selector is not None:
        return term.namespaces
    return frozenset((namespace,))


def owned_terms(pod: Pod) -> list[OwnedTerm]:
    """All (anti-)affinity terms of a pod that act on pods which come later; required anti-affinity
    among them.
    """
    spec = pod.spec
    namespace = pod.namespace
    terms = [
        OwnedTerm(REQUIRED_AFFINITY, term, own_namespaces(term, namespace), 0)
        for term in spec.required_affinity
    ]
    terms += [
        OwnedTerm(REQUIRED_ANTI_AFFINITY, term, own_namespaces(term, namespace), 0)
        for term in spec.required_anti_affinity
    ]
    terms += [
        OwnedTerm(PREFERRED, term, own_namespaces(term, namespace), weight)
        for weight, term in spec.preferred_affinity
    ]
    terms += [
        OwnedTerm(PREFERRED, term, own_namespaces(term, namespace), -weight)
        for weight, term in spec.preferred_anti_affinity
    ]
    return terms


def term_means(owned: OwnedTerm, pod: Pod, namespace_labels: Mapping[str, str]) -> bool:
    """Whether a term of a pod that is there means a pod that comes, whose namespace has these
    labels.
    """
    term = owned.term
    return (
        pod.namespace in owned.namespaces
        or selector_matches(term.namespace_selector, namespace_labels)
    ) and selector_matches(term.selector, pod.labels)
