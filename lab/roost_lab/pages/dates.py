"""Convert stored times to dates. Every number has a date, so that no record can break a report."""

from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

from roost_lab.units import US

# 9999-12-31T23:59:59.999999Z, the last time of a date.
MAX_US: Final = 253_402_300_800 * US - 1


def as_date(at_us: int, zone: tzinfo = UTC) -> datetime:
    """The date of µs since 1970; times before 1970 or after 9999 (UTC) become the nearest one in
    between.
    """
    seconds, fraction_us = divmod(min(max(at_us, 0), MAX_US), US)
    # In integers: a float would round the last microseconds up to the year 10000.
    date = datetime.fromtimestamp(seconds, UTC).replace(microsecond=fraction_us)
    try:
        return date.astimezone(zone)
    except OverflowError:
        return date


def offset_us(at_us: int, zone: tzinfo) -> int:
    """How far the zone's clocks are ahead of UTC at that time, in µs."""
    return (as_date(at_us, zone).utcoffset() or timedelta()) // timedelta(microseconds=1)
