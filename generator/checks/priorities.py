"""Priorities: placeholders give way to pullers and these to users, and autoscalers see all."""

from __future__ import annotations

from generator.checks.contract import LintReport
from generator.checks.placeholders import is_wanted, placeholder_sets
from generator.values.lookups import mapping, number
from generator.values.release_name import Release
from roost_core.placement.labels import USER_CLASS
from roost_core.placement.priorities import AUTOSCALER_CUTOFF


def check(report: LintReport, _release: Release) -> None:
    """Find placeholders and pullers that never give way, or that no autoscaler sees."""
    priorities = mapping(report.values.get("priorityClasses"))
    user, placeholder, puller = (
        number(priorities.get(name)) for name in (USER_CLASS, "placeholder", "puller")
    )
    path = ("priorityClasses", "placeholder")
    if priorities.get("enabled") is not True:
        if any(map(is_wanted, placeholder_sets(report))):
            reason = "without priority classes placeholders rank with users, and never give way."
            report.warn(
                ("priorityClasses", "enabled"), reason, "Set it to true, or placeholders: []."
            )
        return
    if placeholder >= user:
        expected = f"less than priorityClasses.{USER_CLASS} ({user})"
        report.error(path, priorities.get("placeholder"), expected, "Use -10.")
    if placeholder < AUTOSCALER_CUTOFF:
        reason = (
            f"below {AUTOSCALER_CUTOFF}, cluster-autoscaler's default cutoff: it adds no nodes for"
            " such pods."
        )
        report.warn(
            path,
            reason,
            f"Use {AUTOSCALER_CUTOFF}, or lower --expendable-pods-priority-cutoff there.",
        )
    path = ("priorityClasses", "puller")
    if puller >= user:
        expected = f"less than priorityClasses.{USER_CLASS} ({user:.0f})"
        report.error(path, priorities.get("puller"), expected, "A puller must not push users out.")
    elif puller <= placeholder:
        reason = (
            f"not above priorityClasses.placeholder ({placeholder:.0f}): a node full of them pulls"
            " no image."
        )
        report.warn(path, reason, "Use a number between the two.")
