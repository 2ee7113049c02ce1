"""Limit writes: at most so many actions within any minute, however many the plans have."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from typing import Final

WINDOW_SECONDS: Final = 60.0
# For all controllers of one hub together, with their Events. API servers cope with more. The limit
# stops a controller that writes without end because of a fault.
WRITES_PER_MINUTE: Final = 600


class MinuteBudget:
    """Allows at most `per_minute` actions within any 60 s. Not thread-safe: one loop owns it.

    clock: seconds of a monotonic clock.
    """

    def __init__(self, per_minute: int, clock: Callable[[], float]) -> None:
        self.per_minute = per_minute
        self._clock = clock
        # When each action of the last minute was taken, the oldest first.
        self._taken: deque[float] = deque()

    def spend_all(self) -> None:
        """Allow nothing for the next minute: an earlier leader may have used up the last minute."""
        self._taken = deque([self._clock()] * self.per_minute)

    @property
    def left(self) -> int:
        """How many actions are allowed now."""
        horizon = self._clock() - WINDOW_SECONDS
        while self._taken and self._taken[0] < horizon:
            self._taken.popleft()
        return max(0, self.per_minute - len(self._taken))

    def take(self) -> bool:
        """Count an action before it is carried out. False: none is allowed now."""
        if self.left <= 0:
            return False
        self._taken.append(self._clock())
        return True

    def seconds_until_next(self) -> float:
        """Seconds until an action is allowed: 0.0 now, infinity if `per_minute` is 0."""
        if self.left > 0:
            return 0.0
        if self.per_minute <= 0:
            return math.inf
        # Slightly more than a minute: an action of exactly a minute ago still counts.
        return self._taken[0] + WINDOW_SECONDS - self._clock() + 0.001
