"""Lint tolerations and node terms of profiles, which the schema of the values doesn't cover."""

from __future__ import annotations

from generator.schema.check import why_unfit


def lint_toleration(toleration: object) -> str:
    """What is wrong with one of a profile's tolerations; "" for nothing."""
    why = why_unfit(toleration, "toleration")
    return f"is not a toleration as in a pod ({why})" if why else ""


def lint_required_term(term: object) -> str:
    """What is wrong with one of a profile's required node terms; "" for nothing."""
    why = why_unfit(term, "nodeTerm")
    return f"is not a node selector term as in a pod ({why})" if why else ""
