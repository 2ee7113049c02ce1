"""Evaluate label selectors, node selector terms, taints and tolerations as kube-apiserver and
kube-scheduler do.

A rule is read from JSON once, and evaluated thousands of times. A rule of the wrong shape matches
nothing, so it never admits more nodes than a readable rule. Source: component-helpers' nodeaffinity
and apimachinery's labels packages, Kubernetes v1.36.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, Protocol

LABEL_SELECTOR_OPERATORS: Final = frozenset({"In", "NotIn", "Exists", "DoesNotExist"})
NODE_SELECTOR_OPERATORS: Final = LABEL_SELECTOR_OPERATORS | {"Gt", "Lt"}
NO_SCHEDULE: Final = "NoSchedule"
PREFER_NO_SCHEDULE: Final = "PreferNoSchedule"
_WHOLE_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)
UNSCHEDULABLE_TAINT: Final = "node.kubernetes.io/unschedulable"


class Requirement(NamedTuple):
    """One expression of a selector. Expressions with the same values in another order are equal."""

    key: str
    operator: str
    values: frozenset[str]


class NodeTerm(NamedTuple):
    """One node selector term: all its expressions and fields must match.

    A term without any matches nothing, and is read as None.
    """

    expressions: tuple[Requirement, ...]
    # On `metadata.name`, the only field.
    fields: tuple[Requirement, ...]


class Taint(NamedTuple):
    """A node's taint; `effect` is NoSchedule, PreferNoSchedule or NoExecute."""

    key: str
    value: str
    effect: str


class Toleration(NamedTuple):
    """One of `spec.tolerations`; "" stands for absent, and `operator` is never absent."""

    key: str
    operator: str
    value: str
    effect: str


class NodeRules(NamedTuple):
    """A pod's `spec.nodeSelector`, required node affinity and `spec.tolerations`."""

    # Sorted by key.
    node_selector: tuple[tuple[str, str], ...] = ()
    # None: no required node affinity. Empty: it matches nothing.
    required_node_terms: tuple[NodeTerm, ...] | None = None
    tolerations: tuple[Toleration, ...] = ()


class HasNodeRules(Protocol):
    """`NodeRules`, or a pod's whole spec."""

    @property
    def node_selector(self) -> tuple[tuple[str, str], ...]:
        """Labels that the node must have."""

    @property
    def required_node_terms(self) -> tuple[NodeTerm, ...] | None:
        """Terms of which one must match the node; None: there are none."""

    @property
    def tolerations(self) -> tuple[Toleration, ...]:
        """What the pod tolerates."""


CORDON: Final = Taint(UNSCHEDULABLE_TAINT, "", NO_SCHEDULE)


def read_requirement(expression: object) -> Requirement | None:
    """Read one matchExpressions or matchFields entry; None if it is malformed."""
    if not isinstance(expression, dict):
        return None
    key = expression.get("key")
    operator = expression.get("operator")
    values = expression.get("values")
    if not isinstance(key, str) or not isinstance(operator, str):
        return None
    if values is None:
        return Requirement(key, operator, frozenset())
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        return None
    return Requirement(key, operator, frozenset(values))


def _read_requirements(expressions: object) -> tuple[Requirement, ...] | None:
    """Read a list of expressions; None if it, or any expression, is malformed."""
    if not isinstance(expressions, list | tuple):
        return None
    requirements = []
    for expression in expressions:
        requirement = read_requirement(expression)
        if requirement is None:
            return None
        requirements.append(requirement)
    return tuple(requirements)


def read_label_selector(selector: object) -> frozenset[Requirement] | None:
    """Return all requirements of a metav1.LabelSelector; None if it is malformed.

    `{}` has no requirements, so it matches everything.
    """
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
        requirements.update(found)
    return frozenset(requirements)


def read_node_term(term: object) -> NodeTerm | None:
    """Read a node selector term. None: it is empty or malformed, and so matches nothing."""
    if not isinstance(term, dict):
        return None
    expressions = _read_requirements(term.get("matchExpressions") or ())
    fields = _read_requirements(term.get("matchFields") or ())
    if expressions is None or fields is None:
        return None
    if not expressions and not fields:
        return None
    return NodeTerm(expressions, fields)


def read_node_terms(terms: object) -> tuple[NodeTerm, ...]:
    """Read `nodeSelectorTerms`, without terms that match nothing. () matches nothing."""
    if not isinstance(terms, list | tuple):
        return ()
    read_terms = [read_node_term(term) for term in terms]
    return tuple([term for term in read_terms if term is not None])


def read_tolerations(tolerations: Iterable[object]) -> tuple[Toleration, ...]:
    """Read `tolerations`; malformed tolerations are left out."""
    read_ones = [_read_toleration(toleration) for toleration in tolerations]
    return tuple([toleration for toleration in read_ones if toleration is not None])


def _read_toleration(toleration: object) -> Toleration | None:
    if not isinstance(toleration, dict):
        return None
    parts = Toleration(
        key=toleration.get("key") or "",
        operator=toleration.get("operator") or "Equal",
        value=toleration.get("value") or "",
        effect=toleration.get("effect") or "",
    )
    return parts if all(isinstance(part, str) for part in parts) else None


def read_node_rules(
    node_selector: Mapping[str, str], required_node_terms: object, tolerations: Iterable[object]
) -> NodeRules:
    """Read the parts as they are in JSON.

    required_node_terms: `nodeSelectorTerms`; None: no required node affinity.
    """
    terms = None if required_node_terms is None else read_node_terms(required_node_terms)
    return NodeRules(tuple(sorted(node_selector.items())), terms, read_tolerations(tolerations))


def is_empty_term(term: object) -> bool:
    """Whether a node selector term has no expression.

    It matches no node. Whoever adds expressions to terms must leave it as it is.
    """
    if not isinstance(term, dict):
        return True
    return not term.get("matchExpressions") and not term.get("matchFields")


def requirement_matches(
    key: str, operator: str, values: frozenset[str], labels: Mapping[str, str]
) -> bool:
    """Whether `labels` match an expression. Gt and Lt compare integers, in node selectors only."""
    value = labels.get(key)
    if operator == "In":
        return value in values
    if operator == "NotIn":
        return value not in values
    if operator == "Exists":
        return value is not None
    if operator == "DoesNotExist":
        return value is None
    if operator in ("Gt", "Lt") and value is not None and len(values) == 1:
        (wanted,) = values
        # Python's int() reads texts that Go refuses: "1_000", " 7".
        if not (_WHOLE_NUMBER.fullmatch(value) and _WHOLE_NUMBER.fullmatch(wanted)):
            return False
        return int(value) > int(wanted) if operator == "Gt" else int(value) < int(wanted)
    return False


def selector_matches(selector: Iterable[Requirement] | None, labels: Mapping[str, str]) -> bool:
    """Whether labels meet every requirement of a label selector. None matches nothing."""
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
        # kube-apiserver accepts only this field and these two operators.
        if key != "metadata.name" or operator not in ("In", "NotIn"):
            return False
        is_named = name in values
        if is_named != (operator == "In"):
            return False
    return True


def node_matches(rules: HasNodeRules, name: str, labels: Mapping[str, str]) -> bool:
    """Whether a node meets the pod's node selector and required node affinity.

    name, labels: of the node. Its taints and its cordon aren't looked at.
    """
    for key, value in rules.node_selector:
        if labels.get(key) != value:
            return False
    terms = rules.required_node_terms
    return terms is None or any(node_term_matches(term, name, labels) for term in terms)


def tolerates(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    """Whether one of the tolerations tolerates the taint.

    The operators Lt and Gt, which need an alpha feature gate, tolerate nothing.
    """
    for key, operator, value, effect in tolerations:
        if effect and effect != taint.effect:
            continue
        if key and key != taint.key:
            continue
        if operator == "Exists":
            return True
        if operator == "Equal" and key and value == taint.value:
            return True
    return False


def untolerated(taints: Iterable[Taint], tolerations: Iterable[Toleration]) -> Taint | None:
    """Return the first taint that keeps a pod with these tolerations off the node; None: none does.

    PreferNoSchedule keeps no pod off.
    """
    for taint in taints:
        if taint.effect != PREFER_NO_SCHEDULE and not tolerates(tolerations, taint):
            return taint
    return None


def tolerates_cordon(tolerations: Iterable[Toleration]) -> bool:
    """Whether the tolerations include cordoned nodes."""
    return tolerates(tolerations, CORDON)


def count_unwanted(taints: Iterable[Taint], tolerations: Iterable[Toleration]) -> int:
    """How many PreferNoSchedule taints are not tolerated."""
    return sum(
        taint.effect == PREFER_NO_SCHEDULE and not tolerates(tolerations, taint) for taint in taints
    )
