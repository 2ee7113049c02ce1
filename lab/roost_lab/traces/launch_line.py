"""A launch as a line of any format describes it, before it has its place in the trace."""

from datetime import UTC, datetime
from typing import Final, NamedTuple

# Resolution of a time in seconds: exact, whole seconds, whole minutes.
EXACT: Final = 0
SECOND: Final = 1
MINUTE: Final = 60
# The longest text that says what was launched, in characters.
LONGEST: Final = 4096
_EARLIEST: Final = datetime(2000, 1, 1, tzinfo=UTC).timestamp()
_LATEST: Final = datetime(2100, 1, 1, tzinfo=UTC).timestamp()


class UnusableLine(Exception):  # noqa: N818 - it is counted, not reported as an error
    """A line can't be used; the text is the reason."""


class LaunchDetails(NamedTuple):
    """What was launched: an Attempt without number and moment."""

    repository: str
    image: str
    image_bytes: int | None = None
    session_seconds: float | None = None
    cpu_millicores: int | None = None
    memory_bytes: int | None = None
    # The namespace of its hub; "": not known.
    hub: str = ""
    # What is noted about it though it is used.
    notes: tuple[str, ...] = ()


class LaunchLine(NamedTuple):
    """A launch with its time and line. They compare by time, then by line."""

    # Seconds since 1970, UTC, as stamped.
    stamp: float
    # Its number in the file, from 1.
    line: int
    # EXACT, SECOND or MINUTE: a whole minute may be either a time to the second or one rounded down
    # to the minute.
    resolution: int
    launch: LaunchDetails


def read_stamp(text: object) -> tuple[float, int]:
    """(seconds since 1970, resolution) of an ISO 8601 time, UTC unless it says otherwise.

    Raises UnusableLine.
    """
    if not isinstance(text, str) or len(text) > 40 or "T" not in text[:12]:
        raise UnusableLine("`timestamp` isn't an ISO 8601 time")
    try:
        moment = datetime.fromisoformat(text)
        stamp = (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise UnusableLine("`timestamp` isn't an ISO 8601 time") from None
    if not _EARLIEST <= stamp < _LATEST:
        raise UnusableLine("`timestamp` is not between the years 2000 and 2100")
    if "." in text or "," in text:
        return stamp, EXACT
    return stamp, SECOND if stamp % 60 else MINUTE
