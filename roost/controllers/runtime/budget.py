"""Limit writes: at most so many actions within any minute, whatever plans request."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from typing import Final

WINDOW_SECONDS: Final = 60.0
# For all controllers of one hub together, Events included. API servers cope with more; a runaway
# controller is stopped by it.
WRITES_PER_MINUTE: Final = 600


class MinuteBudget:
    """At most `per_minute` takes within any 60 s. Not thread-safe: one loop owns it."""

    def __init__(self, per_minute: int, clock: Callable[[], float]) -> None:
        self.per_minute = per_minute
        self._clock = clock
        self._taken: deque[float] = deque()

    def spend_all(self) -> None:
        """Use up the coming minute: an earlier leader may have used up the last one."""
        self._taken = deque([self._clock()] * self.per_minute)

    @property
    def left(self) -> int:
        """How many may be taken now."""
        horizon = self._clock() - WINDOW_SECONDS
        while self._taken and self._taken[0] < horizon:
            self._taken.popleft()
        return max(0, self.per_minute - len(self._taken))

    def take(self) -> bool:
        """Take one before its action; False if none is left."""
        if self.left <= 0:
            return False
        self._taken.append(self._clock())
        return True

    def seconds_until_next(self) -> float:
        """Seconds until one may be taken: 0.0 if one may now, infinity if `per_minute` is 0."""
        if self.left > 0:
            return 0.0
        if self.per_minute <= 0:
            return math.inf
        # Slightly more than a minute: one taken exactly a minute ago still counts.
        return self._taken[0] + WINDOW_SECONDS - self._clock() + 0.001
