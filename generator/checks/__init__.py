"""The checks of the values, one file each, and the table of them.

Each finds what fits the schema and yet doesn't do what it says. Copy `disruption.py` for a new one, and add it here.
"""

from __future__ import annotations

from typing import Final

from generator.checks import (
    admission,
    certificates,
    classes,
    controllers,
    disruption,
    events,
    feature_gates,
    gate,
    image,
    moving_tags,
    names,
    placeholders,
    ports,
    priorities,
    reach,
    recorder,
    resources,
    scheduler,
    unlisted_images,
    webhook,
)
from generator.checks.contract import Check, LintReport
from generator.faults import Fault
from generator.values.merge import Merged
from generator.values.release import Release

CHECKS: Final[tuple[Check, ...]] = (
    admission.CHECK,
    certificates.CHECK,
    classes.CHECK,
    controllers.CHECK,
    disruption.CHECK,
    events.CHECK,
    feature_gates.CHECK,
    gate.CHECK,
    image.CHECK,
    moving_tags.CHECK,
    names.CHECK,
    placeholders.CHECK,
    ports.CHECK,
    priorities.CHECK,
    reach.CHECK,
    recorder.CHECK,
    scheduler.CHECK,
    resources.CHECK,
    unlisted_images.CHECK,
    webhook.CHECK,
)


def lint(merged: Merged, release: Release) -> list[Fault]:
    """Every fault and warning, with file and line; `merged` must fit the schema."""
    return [fault for fault in _find(merged, release) if fault.severity != "hint"]


def find_hints(merged: Merged) -> list[Fault]:
    """Every hint: what works as it is written and might work better. Only `roost validate` shows them."""
    return [fault for fault in _find(merged, Release()) if fault.severity == "hint"]


def _find(merged: Merged, release: Release) -> list[Fault]:
    if merged.values.get("enabled") is False:
        return []
    report = LintReport(merged.values, merged.places, merged.defaults)
    for check in CHECKS:
        check(report, release)
    return report.faults
