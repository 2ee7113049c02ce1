"""Match labels, nodes and taints against the rules of pods.

The same meaning as `roost_core.placement.selectors`, on rules read once instead of on JSON, since a scheduling cycle
asks this thousands of times.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from roost_core.placement.selectors import UNSCHEDULABLE_TAINT, Requirement, Taint, requirement_matches

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from roost_core.scheduler.objects import NodeTerm, PodSpec, Toleration

NO_SCHEDULE: Final = "NoSchedule"
PREFER_NO_SCHEDULE: Final = "PreferNoSchedule"
_CORDON: Final = Taint(UNSCHEDULABLE_TAINT, "", NO_SCHEDULE)


def selector_matches(selector: Iterable[Requirement] | None, labels: Mapping[str, str]) -> bool:
    """Whether labels meet every requirement; no selector at all (None) matches nothing."""
    if selector is None:
        return False
    for key, operator, values in selector:
        if operator == "In":
            if labels.get(key) not in values:
                return False
        elif not requirement_matches(key, operator, values, labels):
            return False
    return True


def node_term_matches(term: NodeTerm, name: str, labels: Mapping[str, str]) -> bool:
    """Whether a node meets all expressions and fields of a node selector term."""
    for key, operator, values in term.expressions:
        if not requirement_matches(key, operator, values, labels):
            return False
    for key, operator, values in term.fields:
        # kube-apiserver accepts this one field and these two operators.
        if key != "metadata.name" or operator not in ("In", "NotIn") or (name in values) != (operator == "In"):
            return False
    return True


def node_matches(spec: PodSpec, name: str, labels: Mapping[str, str]) -> bool:
    """Whether a node meets the pod's node selector and required node affinity; taints and cordon aside."""
    for key, value in spec.node_selector:
        if labels.get(key) != value:
            return False
    terms = spec.required_node_terms
    return terms is None or any(node_term_matches(term, name, labels) for term in terms)


def tolerates(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    """Whether one of the tolerations tolerates the taint. Lt and Gt, behind an alpha gate, tolerate nothing."""
    for key, operator, value, effect in tolerations:
        if (
            (not effect or effect == taint.effect)
            and (not key or key == taint.key)
            and (operator == "Exists" or (operator == "Equal" and value == taint.value))
        ):
            return True
    return False


def is_kept_off(tolerations: Iterable[Toleration], taints: Iterable[Taint]) -> bool:
    """Whether a NoSchedule or NoExecute taint is not tolerated."""
    return any(taint.effect != PREFER_NO_SCHEDULE and not tolerates(tolerations, taint) for taint in taints)


def tolerates_cordon(tolerations: Iterable[Toleration]) -> bool:
    """Whether the tolerations include cordoned nodes."""
    return tolerates(tolerations, _CORDON)


def count_unwanted(tolerations: Iterable[Toleration], taints: Iterable[Taint]) -> int:
    """How many PreferNoSchedule taints are not tolerated."""
    return sum(taint.effect == PREFER_NO_SCHEDULE and not tolerates(tolerations, taint) for taint in taints)
