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
    """Sentences. {left}: `about` or `about_range`; {usual}: `usual` or `usual_range`; {others}: a number."""

    room: str
    room_unknown: str
    gives_way: str
    download: str
    download_after_one: str
    download_after_several: str
    left: str
    longer: str
    # Of a duration; of the median in these words, the least and the greatest duration.
    about: str
    about_range: str
    # Of a duration; of the least and the greatest.
    usual: str
    usual_range: str
    a_few_seconds: str
    seconds: str
    a_minute: str
    minutes: str

    def duration(self, seconds: float, whole: Callable[[float], int] = round) -> str:
        """A rounded duration: nobody waits by the second. whole: round or math.ceil."""
        fives = whole(seconds / 5)
        if fives < 2:
            return self.a_few_seconds
        if fives < 12:
            return self.seconds.format(5 * fives)
        halves = whole(seconds / 30)
        if halves <= 2:
            return self.a_minute
        return self.minutes.format(f"{halves / 2:g}" if halves < 10 else whole(seconds / _MINUTE))

    def with_estimate(self, text: str, estimate: Estimate, **more: object) -> str:
        """Fill a sentence in. A range of one value is no range."""
        low, median = self.duration(estimate.low), self.duration(estimate.median)
        # Nobody minds a server that comes early. Rounded to the nearest, narrow ranges would hold too rarely.
        high = self.duration(estimate.high, ceil)
        about = median if median == self.a_few_seconds else self.about.format(median)
        if low == high:
            return text.format(left=about, usual=self.usual.format(median), **more)
        left = self.about_range.format(about, low, high)
        return text.format(left=left, usual=self.usual_range.format(low, high), **more)


ENGLISH: Final = Texts(
    room="No node can take your server yet. It waits for a new one, which usually takes {usual}.",
    room_unknown="No node can take your server yet. It waits for a new one, which can take some minutes.",
    gives_way="Room is being made for your server: a placeholder gives up its own.",
    download="The image of your server is being downloaded to its node. Left: {left}.",
    download_after_one="The image of your server is downloaded to its node after another one. Left: {left}.",
    download_after_several="The image of your server is downloaded to its node after {others} others. Left: {left}.",
    left="Still downloading the image of your server. Left: {left}.",
    longer="The download takes longer than it usually does, but goes on.",
    about="about {}",
    about_range="{} ({} to {})",
    usual="about {}",
    usual_range="{} to {}",
    a_few_seconds="a few seconds",
    seconds="{} seconds",
    a_minute="1 minute",
    minutes="{} minutes",
)
