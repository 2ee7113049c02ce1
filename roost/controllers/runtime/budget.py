"""Bound what is written: at most so many actions within any minute, whatever the plans ask for."""

from __future__ import annotations

import math
from collections import deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

WINDOW_SECONDS: Final = 60.0
# All controllers together, Events included. An API server takes more, and a controller that runs wild is stopped by it.
WRITES_PER_MINUTE: Final = 600


class MinuteBudget:
    """Never more than `per_minute` takes within any 60 s. Not thread-safe: one loop owns it."""

    def __init__(self, per_minute: int, clock: Callable[[], float], *, starts_spent: bool = False) -> None:
        """Prepare. starts_spent: count the minute before as used up, by a leader before us that we know nothing of."""
        self.per_minute = per_minute
        self._clock = clock
        self._taken: deque[float] = deque()
        if starts_spent:
            self.spend_all()

    def spend_all(self) -> None:
        """Take whatever is left: the coming minute has nothing."""
        self._taken = deque([self._clock()] * self.per_minute)

    @property
    def left(self) -> int:
        """How many may be taken now."""
        self._forget()
        return self.per_minute - len(self._taken)

    def take(self) -> bool:
        """Take one, before the action it is for; False when none is left."""
        if self.left <= 0:
            return False
        self._taken.append(self._clock())
        return True

    def seconds_until_next(self) -> float:
        """Seconds until one more may be taken: 0.0 when one may now, infinity when none ever may."""
        if self.left > 0:
            return 0.0
        if not self._taken:
            return math.inf
        # A little later than the minute: one taken exactly a minute ago still counts.
        return self._taken[0] + WINDOW_SECONDS - self._clock() + 0.001

    def _forget(self) -> None:
        horizon = self._clock() - WINDOW_SECONDS
        while self._taken and self._taken[0] < horizon:
            self._taken.popleft()
