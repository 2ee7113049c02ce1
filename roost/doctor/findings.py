"""The results of a check of `roost doctor`, and the type of a check."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final, Literal, NamedTuple

from roost.doctor.conditions import Condition
from roost.doctor.install import Install
from roost_core.kube.client import ApiError, ClusterError

Severity = Literal["error", "warning", "unknown"]


class Finding(NamedTuple):
    """A fault, or what the API server didn't say."""

    # error: Roost, or a promise of it, doesn't work. unknown: the API server didn't say.
    severity: Severity
    # What was seen, with the names of objects.
    evidence: str
    fix: str
    # What the fault brings about. Findings that follow from it are shown below this finding.
    brings: frozenset[Condition] = frozenset()
    # What the fault may follow from.
    follows: frozenset[Condition] = frozenset()
    # Whether users feel it: they wait, start cold, or are refused.
    is_felt: bool = False
    # Whether it follows from the values alone. Then `roost validate` reports it, too.
    is_of_values: bool = False


# Each makes a finding of its severity. Arguments: evidence and fix, then the fields that follow.
error: Final = partial(Finding, "error")
warning: Final = partial(Finding, "warning")
unknown: Final = partial(Finding, "unknown")


def could_not_read(cause: ClusterError) -> Finding:
    """The finding of a check whose request the API server refused, or didn't answer."""
    fix = "Try again."
    if isinstance(cause, ApiError) and cause.status in (401, 403):
        fix = "Run it with an account that may, or look there yourself."
    return unknown(str(cause), fix)


class CheckOutcome(NamedTuple):
    """What a check looked at, and what it found. Without findings, all is well."""

    check: str
    looked_at: str
    findings: tuple[Finding, ...]


# First a text that says what the check looked at, then each finding.
CheckReport = Iterator[str | Finding]
# Raises ClusterError where the API server doesn't answer, and changes nothing.
Check = Callable[[Install], CheckReport]
