"""All sentences that users read on the spawn page.

In a sentence, {left} stands for what is left, {usual} for a duration or a range, {others} for a
number.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import Final

from roost.controllers.start_notices.estimates import Estimate

ROOM: Final = "Starting a new machine for your server; usually {usual}."
# Whether one is being started isn't known: none was seen to start.
ROOM_UNKNOWN: Final = "Waiting for a machine with room for your server; this can take some minutes."
TOO_LARGE: Final = (
    "No machine here is large enough for your server. It starts only if a larger one is added."
)
SCHEDULER: Final = (
    "Waiting for the cluster's scheduler. Your server starts by itself when that is back."
)
GIVES_WAY: Final = "Making room for your server."
DOWNLOAD: Final = "Downloading your server's image. {left}."
DOWNLOAD_AFTER_ONE: Final = "One download is ahead of yours. {left}."
DOWNLOAD_AFTER_SEVERAL: Final = "{others} downloads are ahead of yours. {left}."
STILL: Final = "Still downloading your server's image. {left}."
LONGER: Final = "The download is taking longer than usual. It is still running."
# In texts on what holds a server up, {usual} is how long so far, and {others} an init container's
# name. The kubelet's own words stand beside them on the page.
VOLUME: Final = "Waiting for your server's volume, for {usual} so far."
VOLUME_ELSEWHERE: Final = (
    "Waiting for your server's volume, for {usual} so far. Another machine still has it."
)
SANDBOX: Final = "Waiting for the machine to set your server up, for {usual} so far."
ADDRESS: Final = "Waiting for a network address for your server, for {usual} so far."
PREPARING: Final = "Preparing your server. The step {others} has taken {usual} so far."
_A_FEW_SECONDS: Final = "a few seconds"
_SECONDS: Final = "{} seconds"
_MINUTES: Final = "{} minutes"


def with_estimate(text: str, estimate: Estimate, **more: object) -> str:
    """Fill a sentence in."""
    median = _duration(estimate.median)
    usual = _range(estimate.low, estimate.high)
    left = "A few seconds left" if median == _A_FEW_SECONDS else f"About {median} left"
    if usual != _duration(estimate.low):
        left = f"{left} ({usual})"
    return text.format(left=left, usual=usual, **more)


def with_passed(text: str, passed: float, step: str) -> str:
    """Fill a sentence in that says how long something has lasted. step: an init container."""
    return text.format(usual=_duration(passed), others=step)


def _duration(seconds: float, to_whole: Callable[[float], int] = round) -> str:
    """A rounded duration: nobody waits by the second. to_whole: round or math.ceil."""
    unit, number = _rounded(seconds, to_whole)
    return "1 minute" if (unit, number) == (_MINUTES, "1") else unit.format(number)


def _range(low: float, high: float) -> str:
    """From `low` to `high` seconds, with one unit where both have the same; a range of one value is
    no range.
    """
    # Nobody minds a server that comes early. Rounded to the nearest, narrow ranges would hold too
    # rarely.
    first = _duration(low)
    last = _duration(high, ceil)
    unit, number = _rounded(low, round)
    last_unit, last_number = _rounded(high, ceil)
    if first == last:
        return first
    if unit == last_unit and number:
        return unit.format(f"{number} to {last_number}")
    return f"{first} to {last}"


def _rounded(seconds: float, to_whole: Callable[[float], int]) -> tuple[str, str]:
    """The unit, as a sentence's part, and the number in it; "" where no number is said."""
    fives = to_whole(seconds / 5)
    if fives < 2:
        return _A_FEW_SECONDS, ""
    if fives < 12:
        return _SECONDS, str(5 * fives)
    halves = max(2, to_whole(seconds / 30))
    return _MINUTES, f"{halves / 2:g}" if halves < 10 else str(to_whole(seconds / 60))
