"""Share one budget among the hubs of this process: whoever has taken least goes first, and nobody waits for the idle.

Each hub keeps a budget of its own, too. While the total suffices for all, nothing else is noticed. When it doesn't:

- Hubs that wait are served as if water filled them: one that took less in the last minute comes before one that took
  more, and among equals the one that has waited longest. So what a hub may have grows evenly (max-min fair), and what
  idle hubs don't take goes to the others.
- A part of the total is kept for hubs that took less and don't wait now. So a hub that begins to act while another one
  has a storm of writes needn't wait until that one's minute is over.

Guarantees, for this process alone: never more than its part of the total within any minute; a hub that waits is served
before all that took more than it. Another replica knows nothing of what was taken here.
"""

from __future__ import annotations

import math
from collections import deque
from typing import TYPE_CHECKING, Final

from roost.controllers.runtime.budget import WINDOW_SECONDS, MinuteBudget

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

# For all hubs together: what five may at most, and as many requests as kube-scheduler may send by default. When many
# hubs come at once, each node needs a label for each, and until then their gates only prefer.
WRITES_PER_MINUTE_OF_ALL: Final = 3000
# The part of the total that is kept for hubs that took less.
KEPT_PART: Final = 4
# While others come first: they have their turns in the meantime.
OTHERS_SECONDS: Final = 1.0


class FairShares:
    """The total, and who takes from it. Not thread-safe: all turns are done in one thread."""

    def __init__(self, per_minute: int, clock: Callable[[], float]) -> None:
        self._per_minute = per_minute
        self._led, self._served = 1, 1
        self._clock = clock
        self._taken: deque[tuple[float, Share]] = deque()
        # Of the hubs that this process acts for.
        self._acting: tuple[Share, ...] = ()
        # Raised whenever what a hub may take can have changed.
        self.version = 0

    def share(self, per_minute: int, *, starts_spent: bool = False) -> Share:
        """Make the budget of one hub, at most `per_minute` of the total."""
        return Share(self, MinuteBudget(per_minute, self._clock, starts_spent=starts_spent), self._clock)

    def divide(self, acting: Iterable[Share], served: int) -> None:
        """Divide among the hubs that this process acts for, of so many; other replicas have the others' part."""
        self._acting = tuple(acting)
        self._led = max(1, len(self._acting))
        self._served = max(self._led, served)
        self.version += 1

    @property
    def per_minute(self) -> int:
        """The most takes of all hubs together within any minute; at least 1, unless the total is 0."""
        return -(-self._per_minute * self._led // self._served)

    @property
    def left(self) -> int:
        """How many all hubs together may take now."""
        horizon = self._clock() - WINDOW_SECONDS
        while self._taken and self._taken[0][0] < horizon:
            self._taken.popleft()[1].taken -= 1
            self.version += 1
        return max(0, self.per_minute - len(self._taken))

    def left_for(self, share: Share) -> int:
        """How many of the total this hub may take now, before others' turn comes."""
        left = self.left
        claimed = kept = 0
        for other in self._acting:
            if other is share:
                continue
            if other.wanted:
                if other.rank < share.rank:
                    claimed += min(other.wanted, other.own.left, max(1, share.taken - other.taken))
            elif other.taken < share.taken:
                kept += min(other.own.per_minute, share.taken - other.taken)
        return max(0, left - claimed - min(kept, self.per_minute // KEPT_PART))

    def take(self, share: Share) -> None:
        """Count one for the hub."""
        self._taken.append((self._clock(), share))
        share.taken += 1
        self.version += 1

    def seconds_until_next(self) -> float:
        """Seconds until the total changes; infinity if nothing is taken."""
        if not self._taken:
            return math.inf
        return max(0.0, self._taken[0][0] + WINDOW_SECONDS - self._clock() + 0.001)


class Share:
    """One hub's budget: its own, within a total that it shares with other hubs. Not thread-safe."""

    def __init__(self, shares: FairShares, own: MinuteBudget, clock: Callable[[], float]) -> None:
        """own: what the hub may take if it is alone."""
        self.own = own
        # Taken from the total within the last minute, as of the last look at it.
        self.taken = 0
        # Actions held back since the last turn began.
        self.wanted = 0
        self._shares = shares
        self._clock = clock
        self._waits_since = math.inf
        # What was left of the total, as of that version: a plan may have thousands of actions.
        self._left = (-1, 0)

    @property
    def rank(self) -> tuple[int, float]:
        """Who has less comes first: taken within the last minute, and since when it waits."""
        return self.taken, self._waits_since

    @property
    def per_minute(self) -> int:
        """The most takes within any minute."""
        return self.own.per_minute

    @property
    def left(self) -> int:
        """How many may be taken now."""
        if self._shares.left <= 0:
            return 0
        if self._left[0] != self._shares.version:
            self._left = (self._shares.version, self._shares.left_for(self))
        return min(self.own.left, self._left[1])

    def take(self) -> bool:
        """Take one before its action; False if none is left."""
        if self.left <= 0 or not self.own.take():
            return False
        self._shares.take(self)
        # It has been served, and what else it wants waits from now.
        self._waits_since = math.inf
        return True

    def spend_all(self) -> None:
        """Use up the hub's coming minute, and nothing of the total."""
        self.own.spend_all()

    def begin_turn(self) -> None:
        """Forget what was wanted in the last turn: it is requested again, or no longer wanted."""
        if not self.wanted:
            self._waits_since = math.inf
        self.wanted = 0
        self._shares.version += 1

    def hold_back(self) -> float:
        """Note that the hub wants one more now; return the seconds until it may be taken."""
        if self.own.left <= 0:
            # Its own budget is used up, which is no matter of the others.
            return self.own.seconds_until_next()
        if self._waits_since == math.inf:
            self._waits_since = self._clock()
        self.wanted += 1
        if self._shares.left <= 0:
            return self._shares.seconds_until_next()
        return min(OTHERS_SECONDS, self._shares.seconds_until_next())
