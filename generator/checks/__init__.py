"""The checks of the values, one file each, and the table of them.

Each finds what fits the schema and yet doesn't do what it says. Copy `disruption.py` for a new one,
and add it here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Final, cast

from generator.checks.contract import Check, LintReport
from generator.faults import Fault
from generator.values.helm_release import Release
from generator.values.merge import Merged


def _checks(names: Iterable[str]) -> tuple[Check, ...]:
    return tuple(cast("Check", import_module(f"{__name__}.{name}").check) for name in names)


CHECKS: Final = _checks(
    (
        *(
            "admission",
            "certificates",
            "classes",
            "controllers",
            "disruption",
            "events",
            "feature_gates",
            "gate",
        ),
        *(
            "names",
            "placeholders",
            "ports",
            "priorities",
            "reach",
            "recorder",
            "scheduler",
            "resources",
            "webhook",
        ),
    )
)
# What hints and nothing else.
HINTS: Final = _checks(("image", "moving_tags"))


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
