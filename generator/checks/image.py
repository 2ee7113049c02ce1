"""The images of Roost's programs: a hint where no registry has them."""

from __future__ import annotations

from generator.checks.contract import LintReport, at
from generator.values.release import Release


def check(report: LintReport, _release: Release) -> None:
    """Hint at an image that no registry has."""
    paths = [("image", "name"), ("recorder", "image", "name")]
    for path in paths if at(report.values, "recorder", "enabled") is True else paths[:1]:
        if report.is_default(path):
            reason = "no registry has this image, so nodes can run Roost only if they were given it."
            fix = "Build it, push it to your registry, and name it here: docs/install-helm.md#the-image."
            report.hint(path, reason, fix)
