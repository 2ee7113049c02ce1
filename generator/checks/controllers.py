"""Lint the controllers: whether they run, and may label nodes."""

from __future__ import annotations

from generator.checks.contract import LintReport
from generator.values.lookups import child, mapping, number
from generator.values.release_name import Release


def check(report: LintReport, _release: Release) -> None:
    """Find what the image gate lacks where the controllers don't run, or may not write."""
    controllers = mapping(report.values.get("controllers"))
    mode = child(report.values, "imageGate", "mode")
    if controllers.get("enabled") is not True:
        path = ("controllers", "enabled")
        if mode == "startupTaint":
            reason = "with startupTaint nothing removes the taint: new nodes never accept users."
            report.refuse(path, reason, "Set it to true, or use another imageGate.mode.")
        elif mode == "requireLabel":
            reason = (
                "nobody labels nodes, so requireLabel only prefers; what controllers wrote before"
                " stays on nodes."
            )
            fix = (
                "Set it to true, or imageGate.mode to off; take what was written away with `roost"
                " cleanup`."
            )
            report.warn(path, reason, fix)
        return
    if number(controllers.get("replicas")) == 0:
        reason = "with 0 nobody labels nodes or moves placeholders, and requireLabel only prefers."
        report.warn(("controllers", "replicas"), reason, "Use 2, or controllers.enabled: false.")
    if report.values.get("clusterResources") is False:
        reason = (
            "false: somebody else must let the controllers patch nodes, or nothing labels them."
        )
        report.warn(
            ("clusterResources",),
            reason,
            "Set controllers.enabled to false where that isn't granted.",
        )
