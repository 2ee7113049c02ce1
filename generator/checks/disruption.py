"""Budgets that let no node be drained."""

from __future__ import annotations

from generator.checks.contract import LintReport, mapping, named_by, of_core_pod
from generator.values.helm_release import Release


def check(report: LintReport, _release: Release) -> None:
    """Find disruption budgets that keep nodes from being drained."""
    for part in ("scheduler", "webhook", "controllers"):
        budget = mapping(of_core_pod(report, part, "pdb"))
        if budget.get("enabled") is True and budget.get("maxUnavailable") in {0, "0%"}:
            reason = f"no node with a pod of the {part} can be drained."
            report.warn((*named_by(report, part, "pdb"), "maxUnavailable"), reason, "Use 1.")
