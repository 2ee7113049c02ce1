"""Lint whether somebody pulls popular images, and whether an image can become popular."""

from __future__ import annotations

from generator.checks.contract import LintReport
from generator.values.lookups import child, mapping, number
from generator.values.release_name import Release
from roost_core.placement.labels import USER_CLASS


def check(report: LintReport, _release: Release) -> None:
    """Find popular images that are switched on and do nothing."""
    popular = mapping(report.values.get("popularImages"))
    classes = mapping(report.values.get("podClasses"))
    if popular.get("enabled") is not True:
        return
    path = ("popularImages", "enabled")
    if child(report.values, "controllers", "enabled") is not True:
        report.warn(
            path, "only the controllers pull popular images.", "Set controllers.enabled to true."
        )
    if not classes.get(USER_CLASS) or number(popular.get("perNode")) == 0:
        reason = "without podClasses.user, or with perNode 0, no image is ever popular."
        report.warn(path, reason, "Set it to false, or keep the class and raise perNode.")
