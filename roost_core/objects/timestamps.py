"""Parse the API's timestamps into Unix time, and durations as Go writes them."""

import re
from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Final

_MOMENT: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(\.\d+)?(?:[Zz]|([+-])(\d\d):(\d\d))", re.ASCII
)

# Durations as Go writes them: 1h2m3.5s, 250ms, 17µs.
_SPAN_PART: Final = re.compile(r"(\d+(?:\.\d+)?)(ns|us|µs|μs|ms|s|m|h)")
_SPAN_US: Final = {
    "ns": Fraction(1, 1000),
    "us": Fraction(1),
    "µs": Fraction(1),
    "μs": Fraction(1),
    "ms": Fraction(1000),
    "s": Fraction(1_000_000),
    "m": Fraction(60_000_000),
    "h": Fraction(3_600_000_000),
}


def read_moment(text: object) -> float | None:
    """Return the Unix time of an RFC 3339 timestamp in the API's form; None for anything else."""
    return _seconds_of(text) if isinstance(text, str) else None


def event_moment(event: Mapping[str, object]) -> float:
    """When an Event of the core API last occurred, in Unix time; 0: it doesn't say."""
    return _first_moment(event, ("lastTimestamp", "eventTime", "firstTimestamp"))


def event_beginning(event: Mapping[str, object]) -> float:
    """When an Event of the core API first occurred, in Unix time; 0: it doesn't say."""
    return _first_moment(event, ("firstTimestamp", "eventTime", "lastTimestamp"))


def _first_moment(event: Mapping[str, object], keys: Iterable[str]) -> float:
    for key in keys:
        moment = read_moment(event.get(key))
        if moment:
            return moment
    return 0.0


# Remembered, because an object repeats its timestamps each time that it changes.
@lru_cache(maxsize=4096)
def _seconds_of(text: str) -> float | None:
    match = _MOMENT.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(match[index]) for index in range(1, 7))
    # Days since 1970 in the Gregorian calendar, by Howard Hinnant's days_from_civil. Its years
    # begin in March, so that a leap day is a year's last day. Its eras have 400 years, or 146,097
    # days.
    if month <= 2:
        year -= 1
        months_since_march = month + 9
    else:
        months_since_march = month - 3
    era, year_of_era = divmod(year, 400)
    day_of_year = (153 * months_since_march + 2) // 5 + day - 1
    day_of_era = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year
    days = era * 146097 + day_of_era - 719468
    seconds = float(days * 86400 + hour * 3600 + minute * 60 + second)
    if match[7]:
        seconds += float(match[7])
    if match[8]:
        offset_seconds = int(match[9]) * 3600 + int(match[10]) * 60
        if match[8] == "+":
            seconds -= offset_seconds
        else:
            seconds += offset_seconds
    return seconds


def read_span(text: str) -> int | None:
    """Microseconds of a duration as Go writes it (`1m2.5s`); None for anything else."""
    total = Fraction(0)
    end = 0
    for match in _SPAN_PART.finditer(text):
        if match.start() != end:
            return None
        total += Fraction(match[1]) * _SPAN_US[match[2]]
        end = match.end()
    return int(total) if text and end == len(text) else None
