"""Make dates of stored moments: every number gives one, so that none can end a report."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

US: Final = 1_000_000
# 9999-12-31T23:59:59.999999Z, the last that a date can tell.
MOST_US: Final = 253_402_300_800 * US - 1


def as_date(at_us: int) -> datetime:
    """The date (UTC) of µs since 1970; what lies before 1970 or after 9999 is shown as the nearest within."""
    seconds, rest_us = divmod(min(max(at_us, 0), MOST_US), US)
    # By whole numbers: a float would round the last moments into the year 10000.
    return datetime.fromtimestamp(seconds, UTC).replace(microsecond=rest_us)
