"""What a check says of the cluster."""

from __future__ import annotations

from typing import Literal, NamedTuple

Severity = Literal["error", "warning", "unknown"]


class Finding(NamedTuple):
    """One thing that is wrong, or that can't be told."""

    # error: Roost, or a promise of it, doesn't work. unknown: the API server didn't say.
    severity: Severity
    # What was seen, with the names of objects.
    evidence: str
    fix: str


class Outcome(NamedTuple):
    """What a check looked at, and what it found; nothing found is good."""

    check: str
    looked_at: str
    findings: tuple[Finding, ...]
