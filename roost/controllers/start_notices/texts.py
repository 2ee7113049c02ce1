"""All sentences that users read on the spawn page, in English. Another language is another `Texts`."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from roost.controllers.start_notices.estimates import Estimate

_MINUTE: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    """Sentences. {left}: `left` or `left_range`; {usual}: a duration or a range; {others}: a number."""

    room: str
    room_unknown: str
    gives_way: str
    download: str
    download_after_one: str
    download_after_several: str
    still: str
    longer: str
    # Of a duration; of that sentence and a range.
    left: str
    left_a_few_seconds: str
    left_range: str
    a_few_seconds: str
    seconds: str
    a_minute: str
    minutes: str
    # Of two numbers with one unit, or of two durations.
    to: str

    def duration(self, seconds: float, whole: Callable[[float], int] = round) -> str:
        """A rounded duration: nobody waits by the second. whole: round or math.ceil."""
        unit, number = self._rounded(seconds, whole)
        return self.a_minute if (unit, number) == (self.minutes, "1") else unit.format(number)

    def range(self, low: float, high: float) -> str:
        """From `low` to `high` seconds, with one unit where both have the same; a range of one value is no range."""
        # Nobody minds a server that comes early. Rounded to the nearest, narrow ranges would hold too rarely.
        first, last = self.duration(low), self.duration(high, ceil)
        (unit, number), (last_unit, last_number) = self._rounded(low, round), self._rounded(high, ceil)
        if first == last:
            return first
        if unit == last_unit and number:
            return unit.format(self.to.format(number, last_number))
        return self.to.format(first, last)

    def with_estimate(self, text: str, estimate: Estimate, **more: object) -> str:
        """Fill a sentence in."""
        median, usual = self.duration(estimate.median), self.range(estimate.low, estimate.high)
        left = self.left_a_few_seconds if median == self.a_few_seconds else self.left.format(median)
        if usual != self.duration(estimate.low):
            left = self.left_range.format(left, usual)
        return text.format(left=left, usual=usual, **more)

    def _rounded(self, seconds: float, whole: Callable[[float], int]) -> tuple[str, str]:
        """The unit, as a sentence's part, and the number in it; "" where no number is said."""
        fives = whole(seconds / 5)
        if fives < 2:
            return self.a_few_seconds, ""
        if fives < 12:
            return self.seconds, str(5 * fives)
        halves = max(2, whole(seconds / 30))
        return self.minutes, f"{halves / 2:g}" if halves < 10 else str(whole(seconds / _MINUTE))


ENGLISH: Final = Texts(
    room="Starting a new machine for your server; usually {usual}.",
    # Whether one is being started isn't known: none was seen to start.
    room_unknown="Waiting for a machine with room for your server; this can take some minutes.",
    gives_way="Making room for your server.",
    download="Downloading your server's image. {left}.",
    download_after_one="One download is ahead of yours. {left}.",
    download_after_several="{others} downloads are ahead of yours. {left}.",
    still="Still downloading your server's image. {left}.",
    longer="The download is taking longer than usual. It is still running.",
    left="About {} left",
    left_a_few_seconds="A few seconds left",
    left_range="{} ({})",
    a_few_seconds="a few seconds",
    seconds="{} seconds",
    a_minute="1 minute",
    minutes="{} minutes",
    to="{} to {}",
)
