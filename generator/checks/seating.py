"""Lint `seating`: whether anybody can be booked for it."""

from __future__ import annotations

from generator.checks.contract import LintReport
from generator.values.lookups import child
from generator.values.release_name import Release


def check(report: LintReport, _release: Release) -> None:
    """Check that bookings, by which people are seated, are on."""
    is_on = child(report.values, "seating", "enabled") is True
    if is_on and child(report.values, "events", "enabled") is not True:
        reason = "events.enabled is false, so nobody can be booked, and no room is kept."
        report.warn(("seating", "enabled"), reason, "Set events.enabled to true.")
