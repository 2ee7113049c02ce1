"""Count durations in bins that grow by a constant factor: constant memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf, log
from typing import Final

# Durations up to this one share bin 0.
LEAST_SECONDS: Final = 0.01
# The end of a bin divided by its beginning. A quantile is off by half a bin at most: 1 %.
FACTOR: Final = 1.02
_SCALE: Final = 1.0 / log(FACTOR)


@dataclass(slots=True)
class Histogram:
    """Durations in seconds."""

    # Bin -> number of durations in it. Bin 0 has everything up to LEAST_SECONDS.
    bins: dict[int, int] = field(default_factory=dict)
    count: int = 0
    total: float = 0.0
    greatest: float = 0.0
    least: float = inf

    def add(self, seconds: float) -> None:
        """Count a duration; a negative one counts as 0."""
        index = 0
        if seconds > LEAST_SECONDS:
            index = 1 + int(log(seconds / LEAST_SECONDS) * _SCALE)
        self.bins[index] = self.bins.get(index, 0) + 1
        self.count += 1
        if seconds > 0:
            self.total += seconds
            self.greatest = max(self.greatest, seconds)
            self.least = min(self.least, seconds)
        else:
            self.least = 0.0

    @property
    def mean(self) -> float:
        """Exact; 0 when nothing was counted."""
        return self.total / self.count if self.count else 0.0

    def quantile(self, share: float) -> float:
        """The seconds that a share of all durations (0 to 1) doesn't exceed; 0 when empty.

        It is the middle of a bin, but never less than the shortest duration or more than the
        longest.
        """
        wanted = share * self.count
        number = 0
        for index in sorted(self.bins):
            number += self.bins[index]
            if number >= wanted:
                middle = 0.0
                if index > 0:
                    # The geometric middle.
                    middle = LEAST_SECONDS * FACTOR ** (index - 0.5)
                return max(self.least, min(middle, self.greatest))
        return 0.0
