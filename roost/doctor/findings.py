"""What a check of `roost doctor` finds, and how it is called."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final, Literal, NamedTuple

from roost.doctor.conditions import Condition
from roost.doctor.install import Install
from roost_core.kube.client import ApiError, ClusterError

Severity = Literal["error", "warning", "unknown"]


class Finding(NamedTuple):
    """One thing that is wrong, or that can't be told."""

    # error: Roost, or a promise of it, doesn't work. unknown: the API server didn't say.
    severity: Severity
    # What was seen, with the names of objects.
    evidence: str
    fix: str
    # What it brings about. Findings that follow from that stand below this one.
    brings: frozenset[Condition] = frozenset()
    # What it may follow from.
    follows: frozenset[Condition] = frozenset()
    # Whether users feel it: they wait, start cold, or are refused.
    is_felt: bool = False
    # Whether it follows from the values alone, so that their own checks tell it, too.
    is_of_values: bool = False


# Each makes a finding of its severity, from evidence and fix.
error: Final = partial(Finding, "error")
warning: Final = partial(Finding, "warning")
unknown: Final = partial(Finding, "unknown")


def could_not_read(cause: ClusterError) -> Finding:
    """The finding of a check that the API server refused something, or didn't answer."""
    is_refused = isinstance(cause, ApiError) and cause.status in (401, 403)
    fix = "Run it with an account that may, or look there yourself." if is_refused else "Try again."
    return unknown(str(cause), fix)


class CheckOutcome(NamedTuple):
    """What a check looked at, and what it found; nothing found is good."""

    check: str
    looked_at: str
    findings: tuple[Finding, ...]


# First what the check looks at, for people, then each finding.
CheckReport = Iterator[str | Finding]
# Raises ClusterError where the API server doesn't answer, and changes nothing.
Check = Callable[[Install], CheckReport]
