"""Count a controller's notices within a minute.

All controllers share a minute's writes, and the image gate can't wait for the next minute.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

_MINUTE_SECONDS: Final = 60.0


class NoticeCount(NamedTuple):
    """The notices of one minute."""

    # When it began, in steady seconds.
    since: float = -math.inf
    notices: int = 0

    def at(self, steady: float) -> NoticeCount:
        """The count of the minute that a time is in."""
        return NoticeCount(steady) if steady - self.since >= _MINUTE_SECONDS else self

    def plus(self, more: int) -> NoticeCount:
        """The count after so many more."""
        return self._replace(notices=self.notices + more)

    def seconds_left(self, steady: float) -> float:
        """Seconds until the next minute begins."""
        return _MINUTE_SECONDS - (steady - self.since)
