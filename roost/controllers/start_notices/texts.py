"""All sentences that users read on the spawn page.

Words in braces are filled in. {left}: how much time is left. {usual}: how long it takes as a rule,
perhaps a range. {others}: how many downloads. {passed}: how long it has taken so far. {step}: the
name of an init container.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import Final, NamedTuple

from roost.controllers.start_notices.estimates import Estimate

ROOM: Final = "Starting a new machine for your server; usually {usual}."
# While no new machine was seen to start, nobody knows whether one is coming.
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
# What holds a server up after it got its machine. The spawn page also shows the kubelet's message,
# which has the details.
VOLUME: Final = "Waiting for your server's volume, for {passed} so far."
VOLUME_ELSEWHERE: Final = (
    "Waiting for your server's volume, for {passed} so far. Another machine still has it."
)
SANDBOX: Final = "Waiting for the machine to set your server up, for {passed} so far."
ADDRESS: Final = "Waiting for a network address for your server, for {passed} so far."
PREPARING: Final = "Preparing your server. The step {step} has taken {passed} so far."
# Units of a duration, with the place of its number.
_A_FEW_SECONDS: Final = "a few seconds"
_SECONDS: Final = "{} seconds"
_MINUTES: Final = "{} minutes"


class _Rounded(NamedTuple):
    """A duration as people say it: "about 20 seconds", not 18.3."""

    # One of the units above.
    unit: str
    # "" in "a few seconds".
    number: str

    def __str__(self) -> str:
        is_one_minute = self.unit == _MINUTES and self.number == "1"
        return "1 minute" if is_one_minute else self.unit.format(self.number)


def with_estimate(text: str, estimate: Estimate, **more: object) -> str:
    """Fill in {left} and {usual} by an estimate. more: what else the sentence has in braces."""
    median = str(_rounded(estimate.median))
    usual, is_range = _range(estimate.low, estimate.high)
    left = "A few seconds left" if median == _A_FEW_SECONDS else f"About {median} left"
    if is_range:
        left = f"{left} ({usual})"
    return text.format(left=left, usual=usual, **more)


def with_passed(text: str, passed: float, step: str) -> str:
    """Fill in {passed}, which is given in seconds, and {step}."""
    return text.format(passed=_rounded(passed), step=step)


def _range(low: float, high: float) -> tuple[str, bool]:
    """Words for "from `low` to `high` seconds", and whether they name a range.

    Ends that round to the same are said once: that is no range.
    """
    first = _rounded(low)
    # The upper end is rounded up. People don't mind a server that comes earlier than announced, but
    # narrow ranges would too often be exceeded.
    last = _rounded(high, ceil)
    if first == last:
        return str(first), False
    if first.unit == last.unit:
        return first.unit.format(f"{first.number} to {last.number}"), True
    return f"{first} to {last}", True


def _rounded(seconds: float, to_whole: Callable[[float], int] = round) -> _Rounded:
    """Round to 5 seconds, to half a minute from one minute on, to a minute from 5 minutes on.

    to_whole: round or math.ceil.
    """
    fives = to_whole(seconds / 5)
    if fives < 2:
        return _Rounded(_A_FEW_SECONDS, "")
    if fives < 12:
        return _Rounded(_SECONDS, str(5 * fives))
    half_minutes = to_whole(seconds / 30)
    if half_minutes < 10:
        return _Rounded(_MINUTES, f"{half_minutes / 2:g}")
    return _Rounded(_MINUTES, str(to_whole(seconds / 60)))
