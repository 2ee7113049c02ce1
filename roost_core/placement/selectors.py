"""Evaluate label selectors, node selector terms, taints and tolerations as kube-apiserver and kube-scheduler do.

Owns the meaning of these objects, given as JSON has them; knows nothing of which pod or node they come from.
Anything of the wrong shape matches nothing: a rule that can't be read must never widen a choice.
Source: component-helpers' nodeaffinity and apimachinery's labels packages, Kubernetes v1.36.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

LABEL_SELECTOR_OPERATORS: Final = frozenset({"In", "NotIn", "Exists", "DoesNotExist"})
NODE_SELECTOR_OPERATORS: Final = LABEL_SELECTOR_OPERATORS | {"Gt", "Lt"}
_WHOLE_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)
UNSCHEDULABLE_TAINT: Final = "node.kubernetes.io/unschedulable"


class Requirement(NamedTuple):
    """One expression of a selector; the order of its values doesn't matter, so equal rules compare equal."""

    key: str
    operator: str
    values: frozenset[str]


class Taint(NamedTuple):
    """A node's taint; `effect` is NoSchedule, PreferNoSchedule or NoExecute."""

    key: str
    value: str
    effect: str


def read_requirement(expression: object) -> Requirement | None:
    """Read one matchExpressions or matchFields entry; None if it is malformed."""
    if not isinstance(expression, dict):
        return None
    key, operator, values = expression.get("key"), expression.get("operator"), expression.get("values")
    if not isinstance(key, str) or not isinstance(operator, str):
        return None
    if values is None:
        return Requirement(key, operator, frozenset())
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        return None
    return Requirement(key, operator, frozenset(values))


def read_label_selector(selector: object) -> frozenset[Requirement] | None:
    """Return all requirements of a metav1.LabelSelector; None if it is malformed. `{}` has none, so it matches all."""
    if not isinstance(selector, dict):
        return None
    requirements: set[Requirement] = set()
    labels = selector.get("matchLabels")
    if labels is not None:
        if not isinstance(labels, dict):
            return None
        for key, value in labels.items():
            if not isinstance(key, str) or not isinstance(value, str):
                return None
            requirements.add(Requirement(key, "In", frozenset((value,))))
    expressions = selector.get("matchExpressions")
    if expressions is not None:
        found = _read_requirements(expressions)
        if found is None:
            return None
        requirements |= found
    return frozenset(requirements)


def read_node_term(term: object) -> frozenset[tuple[str, Requirement]] | None:
    """Return all requirements of a node selector term, each with "label" or "field"; None if it is malformed."""
    if not isinstance(term, dict):
        return None
    requirements: set[tuple[str, Requirement]] = set()
    for kind, name in (("label", "matchExpressions"), ("field", "matchFields")):
        expressions = term.get(name)
        if expressions is None:
            continue
        found = _read_requirements(expressions)
        if found is None:
            return None
        requirements.update((kind, requirement) for requirement in found)
    return frozenset(requirements)


def _read_requirements(expressions: object) -> set[Requirement] | None:
    """All of a list of expressions; None if it is malformed."""
    if not isinstance(expressions, list):
        return None
    requirements: set[Requirement] = set()
    for expression in expressions:
        requirement = read_requirement(expression)
        if requirement is None:
            return None
        requirements.add(requirement)
    return requirements


def requirement_matches(key: str, operator: str, values: object, labels: Mapping[str, str]) -> bool:
    """Whether `labels` match one expression; Gt and Lt, of node selectors only, compare integers."""
    value = labels.get(key)
    if operator == "Exists":
        return value is not None
    if operator == "DoesNotExist":
        return value is None
    if not isinstance(values, list | tuple | frozenset):
        return False
    if operator == "In":
        return value in values if value is not None else False
    if operator == "NotIn":
        return value is None or value not in values
    if operator in ("Gt", "Lt") and value is not None and len(values) == 1:
        wanted = next(iter(values))
        # Python parses more than Go as an integer: "1_000", " 7".
        if not (isinstance(wanted, str) and _WHOLE_NUMBER.fullmatch(value) and _WHOLE_NUMBER.fullmatch(wanted)):
            return False
        return int(value) > int(wanted) if operator == "Gt" else int(value) < int(wanted)
    return False


def labels_match(requirements: Iterable[Requirement], labels: Mapping[str, str]) -> bool:
    """Whether `labels` match every requirement of a label selector."""
    return all(
        requirement_matches(requirement.key, requirement.operator, requirement.values, labels)
        for requirement in requirements
    )


def is_empty_term(term: object) -> bool:
    """Whether a node selector term has no expression: such a term matches no node, and must still match none later."""
    return not isinstance(term, dict) or not (term.get("matchExpressions") or term.get("matchFields"))


def _expression_matches(expression: object, labels: Mapping[str, str]) -> bool:
    if not isinstance(expression, dict):
        return False
    key, operator = expression.get("key"), expression.get("operator")
    if not isinstance(key, str) or not isinstance(operator, str):
        return False
    return requirement_matches(key, operator, expression.get("values"), labels)


def node_term_matches(term: object, node_name: str, labels: Mapping[str, str]) -> bool:
    """Whether a node matches a node selector term: all its expressions and fields; an empty term matches nothing."""
    if not isinstance(term, dict):
        return False
    expressions, fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
    if not isinstance(expressions, list | tuple) or not isinstance(fields, list | tuple):
        return False
    if not expressions and not fields:
        return False
    for expression in expressions:
        if not _expression_matches(expression, labels):
            return False
    if not fields:
        return True
    names = {"metadata.name": node_name}
    for field in fields:
        if not isinstance(field, dict) or field.get("operator") not in ("In", "NotIn"):
            return False
        # kube-apiserver accepts this one field only.
        if field.get("key") != "metadata.name" or not _expression_matches(field, names):
            return False
    return True


def tolerates(toleration: object, taint: Taint) -> bool:
    """Whether a toleration tolerates a taint. Lt and Gt, behind an alpha gate, count as not tolerating."""
    if not isinstance(toleration, dict):
        return False
    effect = toleration.get("effect")
    if effect and effect != taint.effect:
        return False
    key = toleration.get("key")
    if key and key != taint.key:
        return False
    operator = toleration.get("operator") or "Equal"
    if operator == "Exists":
        return True
    return bool(operator == "Equal" and key and (toleration.get("value") or "") == taint.value)


def untolerated(taints: Iterable[Taint], tolerations: Iterable[object]) -> Taint | None:
    """Return the first taint that keeps a pod with these tolerations off the node; PreferNoSchedule keeps none off."""
    for taint in taints:
        if taint.effect == "PreferNoSchedule":
            continue
        for toleration in tolerations:
            if tolerates(toleration, taint):
                break
        else:
            return taint
    return None
