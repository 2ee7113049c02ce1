"""Lint node terms, label expressions and tolerations, also those of profiles, which the schema doesn't cover."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from generator.checks.contract import LintReport, at, listing, mapping, text
from generator.schema.check import fits
from generator.values.sources import Places

if TYPE_CHECKING:
    from generator.faults import Path
    from generator.values.merge import Values


def overrides(profile: object) -> Iterator[Values]:
    """`kubespawner_override` of a profile and of the choices of its options; {} where there is none."""
    yield mapping(at(profile, "kubespawner_override"))
    for option in mapping(at(profile, "profile_options")).values():
        for choice in mapping(at(option, "choices")).values():
            yield mapping(at(choice, "kubespawner_override"))


def lint_term(report: LintReport, path: Path, term: dict[str, object]) -> None:
    """Check a node selector term."""
    if not listing(term.get("matchExpressions")) and not listing(term.get("matchFields")):
        report.error(path, term, "an expression: a term without any matches nothing")
    lint_expressions(report, (*path, "matchExpressions"), term)


def lint_expressions(report: LintReport, path: Path, term: dict[str, object]) -> None:
    """Check the `matchExpressions` of a term or a label selector."""
    for index, expression in enumerate(listing(term.get("matchExpressions"))):
        operator, values = at(expression, "operator"), listing(at(expression, "values"))
        here = (*path, index, "values")
        if operator in {"In", "NotIn"} and not values:
            report.error(here, values, f"at least one value for {text(operator)}")
        elif operator in {"Exists", "DoesNotExist"} and values:
            report.error(here, values, f"no values for {text(operator)}")
        elif operator in {"Gt", "Lt"} and not (len(values) == 1 and text(values[0]).removeprefix("-").isdecimal()):
            report.error(here, values, f"one integer in quotes for {text(operator)}")


def lint_tolerations(report: LintReport, path: Path, tolerations: object) -> None:
    """Check a list of tolerations."""
    for index, entry in enumerate(listing(tolerations)):
        toleration, here = mapping(entry), (*path, index)
        operator = toleration.get("operator")
        if operator == "Exists" and toleration.get("value"):
            report.error((*here, "value"), toleration.get("value"), "nothing for operator Exists")
        if not toleration.get("key") and operator != "Exists":
            report.error((*here, "operator"), operator, "Exists where key is empty")
        if toleration.get("tolerationSeconds") is not None and toleration.get("effect") != "NoExecute":
            report.error((*here, "effect"), toleration.get("effect"), "NoExecute where tolerationSeconds is set")


def lint_toleration(toleration: object) -> str:
    """What is wrong with one of a profile's tolerations; "" for nothing."""
    if not fits(toleration, "toleration"):
        return "is not a toleration as in a pod"
    report = LintReport({}, Places(()))
    lint_tolerations(report, (), [toleration])
    return _first(report)


def lint_required_term(term: object) -> str:
    """What is wrong with one of a profile's required node terms; "" for nothing."""
    if not fits(term, "nodeTerm"):
        return "is not a node selector term as in a pod"
    report = LintReport({}, Places(()))
    lint_term(report, (), mapping(term))
    return _first(report)


def _first(report: LintReport) -> str:
    for fault in report.faults:
        return f"({fault.key}: found {fault.found}, expected {fault.expected})"
    return ""
