"""Sum up spans and stays in numbers. Pure; the database counts, this turns counts into percentiles, shares and means.

Spans are counted in steps (STEPS), so that a million of them are a few thousand numbers: a percentile is at most one
part in a hundred above the true one, or 10 ms, and never below it. Whole seconds up to 1000 are exact.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from math import ceil
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

# What is told apart by it.
Name = TypeVar("Name", str, tuple[str, str], tuple[str, ...])
US: Final = 1_000_000
# (Spans up to this, are counted in steps of this, so many more steps come before than if all were as long).
STEPS: Final[tuple[tuple[int, int, int], ...]] = (
    (10 * US, 10_000, 0),
    (100 * US, 100_000, 900),
    (1000 * US, US, 1800),
)
# The last step holds for all that are longer; 50 days and more are one.
LONGEST_STEP_US: Final = 10 * US
LONGEST_BEFORE: Final = 2700
_LAST_EDGE_US: Final = 2**42 - 1
LONGEST_US: Final = _LAST_EDGE_US + 1 - LONGEST_STEP_US
LAST_INDEX: Final = LONGEST_BEFORE + _LAST_EDGE_US // LONGEST_STEP_US + 1
# Upper bounds of OpenMetrics' buckets, in seconds; each is an edge of a step, so that counts below it are exact.
BOUNDS_SECONDS: Final = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0)


def edge_at(index: int) -> int:
    """The edge of a step by its number, in µs: the longest span that counts in it."""
    if index >= LAST_INDEX:
        return _LAST_EDGE_US
    steps = ((step_us, before) for longest_us, step_us, before in STEPS if index <= longest_us // step_us + before)
    step_us, before = next(steps, (LONGEST_STEP_US, LONGEST_BEFORE))
    return (index - before) * step_us


@dataclass(slots=True)
class Spans:
    """How long things took: counts by the edge of their step, and the exact sum."""

    counts: Counter[int] = field(default_factory=Counter)
    sum_us: int = 0

    def add(self, edge_us: int, count: int, sum_us: int) -> None:
        """Count so many more spans of one step."""
        self.counts[edge_us] += count
        self.sum_us += sum_us

    def merge(self, other: Spans) -> None:
        """Count another's spans too."""
        self.counts.update(other.counts)
        self.sum_us += other.sum_us

    @property
    def count(self) -> int:
        """How many."""
        return self.counts.total()

    @property
    def mean_us(self) -> float | None:
        """Their mean, None of nothing."""
        return self.sum_us / self.count if self.counts else None

    def percentile_us(self, share: float) -> int | None:
        """The least edge that at least `share` (0 to 1] of the spans don't exceed; None of nothing."""
        # The count as a whole number first: 0.95 x 20 is 19, whatever floats make of it.
        wanted = max(1, ceil(round(share * self.count, 9)))
        seen = 0
        for edge_us in sorted(self.counts):
            seen += self.counts[edge_us]
            if seen >= wanted:
                return edge_us
        return None

    def at_most(self, bounds_seconds: Sequence[float] = BOUNDS_SECONDS) -> list[int]:
        """How many are no longer than each bound; exact for bounds that are edges."""
        bounds_us = [round(bound * US) for bound in bounds_seconds]
        return [sum(count for edge, count in self.counts.items() if edge <= bound) for bound in bounds_us]


class Steps(NamedTuple):
    """A time cut into equal steps."""

    from_us: int
    step_us: int
    number: int

    @property
    def to_us(self) -> int:
        """Where the last one ends."""
        return self.from_us + self.step_us * self.number

    def starts(self) -> list[int]:
        """Where each begins, in µs."""
        return [self.from_us + index * self.step_us for index in range(self.number)]


# People's steps: 10 s to a week.
STEP_SECONDS: Final = (10, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400, 604_800)


def cut(from_us: int, to_us: int, most: int) -> Steps:
    """The finest steps of people's lengths that cover the time with at most `most` of them, on round moments."""
    for seconds in STEP_SECONDS:
        step_us = seconds * US
        start_us = from_us // step_us * step_us
        number = max(1, -(-(to_us - start_us) // step_us))
        if number <= most:
            break
    else:
        step_us = STEP_SECONDS[-1] * US * -(-number // most)
        start_us = from_us // step_us * step_us
        number = max(1, -(-(to_us - start_us) // step_us))
    return Steps(start_us, step_us, number)


@dataclass(slots=True)
class Edges:
    """Arrivals and departures by step: how many, and the sum of their moments after the step's start, in µs."""

    counts: Counter[int] = field(default_factory=Counter)
    after_us: Counter[int] = field(default_factory=Counter)

    def add(self, step: int, count: int, after_us: int) -> None:
        """Count `count` arrivals (negative: departures) in one step; `after_us` has their sign too."""
        self.counts[step] += count
        self.after_us[step] += after_us


def means(edges: Edges, steps: Steps) -> list[float]:
    """How many were there on average in each step.

    Who is there at the start has arrived in step 0 at its very start. Who arrives `after` the start of a step is there
    for the rest of it, and in every later one: exact however short the stay.
    """
    found = []
    there = 0
    for step in range(steps.number):
        came = edges.counts[step]
        mean = there + came - edges.after_us[step] / steps.step_us
        # Sums of whole numbers; only the division is inexact.
        found.append(max(0.0, round(mean, 9)))
        there += came
    return found


class Span(NamedTuple):
    """A stretch of time, in µs."""

    from_us: int
    to_us: int


def unite(spans: Iterable[Span]) -> list[Span]:
    """The same time as stretches that don't touch, in order."""
    united: list[Span] = []
    for span in sorted(spans):
        if united and span.from_us <= united[-1].to_us:
            united[-1] = Span(united[-1].from_us, max(united[-1].to_us, span.to_us))
        else:
            united.append(span)
    return united


def covered(steps: Steps, spans: Iterable[Span]) -> list[bool]:
    """Which steps lie in the spans by half or more: what is said of them would be a guess."""
    inside = [0] * steps.number
    for span in unite(spans):
        first = max(0, (span.from_us - steps.from_us) // steps.step_us)
        last = min(steps.number - 1, (span.to_us - steps.from_us) // steps.step_us)
        for step in range(first, last + 1):
            start_us = steps.from_us + step * steps.step_us
            inside[step] += max(0, min(span.to_us, start_us + steps.step_us) - max(span.from_us, start_us))
    return [2 * amount >= steps.step_us for amount in inside]


def share(part: int, rest: int) -> float | None:
    """part of part and rest, 0 to 1; None of nothing."""
    return part / (part + rest) if part + rest else None


def busiest(amounts: Mapping[Name, float], most: int) -> list[Name]:
    """The names with the largest amounts, at most so many, largest first, equals by name."""
    return sorted(amounts, key=lambda name: (-amounts[name], name))[:most]
