"""Alerts on metrics that nothing of these values has scraped: a hint."""

from __future__ import annotations

from generator.checks.contract import LintReport
from generator.values.lookups import child
from generator.values.release_name import Release


def check(report: LintReport, _release: Release) -> None:
    """Hint at alerts without a ServiceMonitor: without metrics one of them fires for ever."""
    rules = ("monitoring", "prometheusRule", "enabled")
    monitors = ("monitoring", "serviceMonitor", "enabled")
    if child(report.values, *rules) is True and child(report.values, *monitors) is False:
        reason = (
            "alerts are on, and nothing here has Roost's metrics scraped. Without them"
            " RoostControllersWithoutLeader fires for ever, and others never."
        )
        fix = "Switch it on, or have a ServiceMonitor of your own select Roost's Services."
        report.hint(monitors, reason, fix)
