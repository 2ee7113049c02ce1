"""The checks of the values, one file each, and the table of them.

Each finds what fits the schema and yet doesn't do what it says. Copy `disruption.py` for a new one,
and add it here.
"""

from __future__ import annotations

from collections.abc import Sequence
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
    webhook,
)
from generator.checks.contract import Check, LintReport
from generator.faults import Fault
from generator.values.helm_release import Release
from generator.values.merge import Merged

CHECKS: Final[tuple[Check, ...]] = (
    admission.check,
    certificates.check,
    classes.check,
    controllers.check,
    disruption.check,
    events.check,
    feature_gates.check,
    gate.check,
    names.check,
    placeholders.check,
    ports.check,
    priorities.check,
    reach.check,
    recorder.check,
    scheduler.check,
    resources.check,
    webhook.check,
)
# What hints and nothing else.
HINTS: Final[tuple[Check, ...]] = (image.check, moving_tags.check)


def lint(merged: Merged, release: Release) -> list[Fault]:
    """Every fault and warning, with file and line; `merged` must fit the schema."""
    return [fault for fault in _find(merged, release, CHECKS) if fault.severity != "hint"]


def find_hints(merged: Merged, release: Release) -> list[Fault]:
    """Every hint: what works as it is written and might work better.

    Only `roost validate` shows them.
    """
    found = _find(merged, release, (*CHECKS, *HINTS), with_hints=True)
    return [fault for fault in found if fault.severity == "hint"]


def _find(
    merged: Merged, release: Release, checks: Sequence[Check], *, with_hints: bool = False
) -> list[Fault]:
    if merged.values.get("enabled") is False:
        return []
    report = LintReport(merged.values, merged.places, merged.defaults, with_hints=with_hints)
    for check in checks:
        check(report, release)
    return report.faults
