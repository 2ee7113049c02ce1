"""One cause is told once: the tree of what findings bring about and what they follow from.

Guarantee: each finding stands in the tree exactly once, whatever brings about what.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from roost.doctor.conditions import Condition, brought
from roost.doctor.findings import CheckOutcome, Finding


class CauseTree(NamedTuple):
    """A finding with its check, and what follows from it."""

    check: str
    finding: Finding
    consequences: tuple[tuple[str, Finding], ...]


def group_by_cause(outcomes: Iterable[CheckOutcome]) -> list[CauseTree]:
    """Each first cause with all that follows from it, directly or not, in the order of checks."""
    findings = [(outcome.check, finding) for outcome in outcomes for finding in outcome.findings]
    effects = [brought(finding.brings) for _, finding in findings]
    causes = [_cause(number, findings, effects) for number in range(len(findings))]
    below: dict[int, list[tuple[str, Finding]]] = {}
    for number, pair in enumerate(findings):
        root = _root(number, causes)
        if root != number:
            below.setdefault(root, []).append(pair)
    return [
        CauseTree(check, finding, tuple(below.get(number, ())))
        for number, (check, finding) in enumerate(findings)
        if _root(number, causes) == number
    ]


def _cause(
    number: int, findings: Sequence[tuple[str, Finding]], effects: Sequence[frozenset[Condition]]
) -> int | None:
    """The first other finding that brings about what this one follows from."""
    follows = findings[number][1].follows
    return next(
        (other for other, brings in enumerate(effects) if other != number and follows & brings),
        None,
    )


def _root(number: int, causes: Sequence[int | None]) -> int:
    """The first cause of a finding; of a circle, its first finding."""
    passed = [number]
    while (cause := causes[passed[-1]]) is not None:
        if cause in passed:
            return min(passed[passed.index(cause) :])
        passed.append(cause)
    return passed[-1]
