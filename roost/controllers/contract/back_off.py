"""How long a plan, or what carries it out, waits after failures."""

from __future__ import annotations

from typing import NamedTuple


class BackOff(NamedTuple):
    """After failures, nothing of the kind is tried before `until`, in steady seconds."""

    # In a row.
    failures: int
    until: float


def backed_off(
    before: BackOff | None, first_seconds: float, most_seconds: float, steady: float
) -> BackOff:
    """Wait after one more failure, twice as long as after the one before; failures within the wait
    count once.
    """
    if before is not None and before.until > steady:
        return before
    failures = 1 if before is None else before.failures + 1
    return BackOff(
        failures, steady + min(most_seconds, first_seconds * 2.0 ** min(failures - 1, 30))
    )
