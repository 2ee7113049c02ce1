"""Count durations in bins that grow by a constant factor: constant memory, and histograms can be added."""

from __future__ import annotations

from math import inf, log
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# Shorter durations share one bin.
LEAST_SECONDS: Final = 0.01
# A bin's end divided by its beginning; quantiles are at most half of that off.
FACTOR: Final = 1.02
_SCALE: Final = 1.0 / log(FACTOR)


class Histogram:
    """Durations in seconds."""

    __slots__ = ("bins", "count", "greatest", "least", "total")

    def __init__(self) -> None:
        # Number by bin; bin 0 is everything up to LEAST_SECONDS.
        self.bins: dict[int, int] = {}
        self.count = 0
        self.total = 0.0
        self.greatest = 0.0
        self.least = inf

    def add(self, seconds: float, number: int = 1) -> None:
        """Count `number` equal durations; negative ones count as 0."""
        if number <= 0:
            return
        index = _bin_of(seconds)
        self.bins[index] = self.bins.get(index, 0) + number
        self.count += number
        if seconds > 0:
            self.total += seconds * number
            self.greatest = max(self.greatest, seconds)
            self.least = min(self.least, seconds)
        else:
            self.least = 0.0

    def merge(self, other: Histogram) -> None:
        """Add another histogram."""
        for index, number in other.bins.items():
            self.bins[index] = self.bins.get(index, 0) + number
        self.count += other.count
        self.total += other.total
        self.greatest = max(self.greatest, other.greatest)
        self.least = min(self.least, other.least)

    @property
    def mean(self) -> float:
        """Exact; 0 when nothing was counted."""
        return self.total / self.count if self.count else 0.0

    def quantile(self, share: float) -> float:
        """The duration that so large a share (0..1) doesn't exceed: the middle of its bin; 0 when empty.

        Never less than the shortest of all, nor more than the longest.
        """
        wanted, seen = share * self.count, 0
        for index in sorted(self.bins):
            seen += self.bins[index]
            if seen >= wanted and seen:
                return max(self.least, min(middle(index), self.greatest))
        return 0.0

    def to_json(self) -> dict[str, object]:
        """A JSON object that `from_json` takes."""
        bins = {str(index): self.bins[index] for index in sorted(self.bins)}
        least = self.least if self.count else None
        return {"bins": bins, "total": self.total, "greatest": self.greatest, "least": least}

    @classmethod
    def from_json(cls, stored: Mapping[str, object]) -> Histogram:
        """The opposite of `to_json`. Raises KeyError, TypeError or ValueError for anything else."""
        new = cls()
        bins, total, greatest, least = stored["bins"], stored["total"], stored["greatest"], stored["least"]
        if not isinstance(bins, dict) or not isinstance(total, int | float) or not isinstance(greatest, int | float):
            raise TypeError("no histogram")
        if least is not None and not isinstance(least, int | float):
            raise TypeError("no histogram")
        new.bins = {int(index): int(number) for index, number in bins.items()}
        new.count, new.total, new.greatest = sum(new.bins.values()), float(total), float(greatest)
        new.least = inf if least is None else float(least)
        return new


def _bin_of(seconds: float) -> int:
    return 0 if seconds <= LEAST_SECONDS else 1 + int(log(seconds / LEAST_SECONDS) * _SCALE)


def middle(index: int) -> float:
    """The duration in seconds that stands for a bin: 0 for the first, else its geometric middle."""
    return 0.0 if index == 0 else float(LEAST_SECONDS * FACTOR ** (index - 0.5))


def merged(histograms: Iterable[Histogram]) -> Histogram:
    """The sum of histograms."""
    new = Histogram()
    for histogram in histograms:
        new.merge(histogram)
    return new
