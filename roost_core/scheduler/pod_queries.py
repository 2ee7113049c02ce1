"""Queries that find pods by namespace and labels.

(Anti-)affinity terms, spreading and the autoscaler use them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from roost_core.objects.pod import Pod, PodTerm
from roost_core.objects.selectors import Requirement, selector_matches

# Kinds of (anti-)affinity terms. A pod's terms also act on pods that come later.
REQUIRED_AFFINITY: Final = "required affinity"
REQUIRED_ANTI_AFFINITY: Final = "required anti-affinity"
PREFERRED: Final = "preferred"


class OwnedTerm(NamedTuple):
    """A pod's term, with what the term means because of the pod that has it."""

    # One of the kinds above.
    kind: str
    term: PodTerm
    # As `own_namespaces` returns them.
    namespaces: frozenset[str]
    # A preferred term's weight; negative for anti-affinity. 0 for a required one.
    weight: int


class PodQuery(NamedTuple):
    """A query for the pods that meet all conditions."""

    # Each condition: namespaces (None: all), and a selector.
    conditions: tuple[tuple[frozenset[str] | None, frozenset[Requirement] | None], ...]
    # Whether pods that are being deleted are left out.
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
    """The namespaces that a term names. If it names none and selects none: the namespace of the pod
    that has the term, which is `namespace`.
    """
    if term.namespaces or term.namespace_selector is not None:
        return term.namespaces
    return frozenset((namespace,))


def owned_terms(pod: Pod) -> list[OwnedTerm]:
    """All (anti-)affinity terms of a pod."""
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


def term_selects(owned: OwnedTerm, pod: Pod, namespace_labels: Mapping[str, str]) -> bool:
    """Whether a term of another pod selects `pod`, whose namespace has these labels."""
    term = owned.term
    is_in_namespaces = pod.namespace in owned.namespaces or selector_matches(
        term.namespace_selector, namespace_labels
    )
    return is_in_namespaces and selector_matches(term.selector, pod.labels)
