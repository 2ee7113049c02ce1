"""Turn counts from the database into percentiles, shares and means. Pure.

Spans are counted in steps (STEPS), so that a million spans become a few thousand numbers. A
percentile is never below the true one, and at most 1 % or 10 ms above it. Whole seconds up to 1000
are exact.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import ceil
from typing import Final, NamedTuple, TypeVar

from roost_lab.units import US

Name = TypeVar("Name", str, tuple[str, str], tuple[str, ...])
# Of fewer spans percentiles say no more than each of them does.
FEWEST: Final = 20


class StepsOfLength(NamedTuple):
    """Spans up to `longest_us` that are counted in steps of one length.

    A span counts in the step of the number `ceil(span_us / step_us) + shift`.
    """

    longest_us: int
    step_us: int
    # Shorter spans have shorter steps, so more of them. 10 s are 1000 steps of 10 ms, but 100 of
    # 100 ms: 900 are added.
    shift: int


STEPS: Final[tuple[StepsOfLength, ...]] = (
    StepsOfLength(longest_us=10 * US, step_us=10_000, shift=0),
    StepsOfLength(longest_us=100 * US, step_us=100_000, shift=900),
    StepsOfLength(longest_us=1000 * US, step_us=US, shift=1800),
)
# The step of all longer spans; 50 days and more are one step.
LONGEST_STEP_US: Final = 10 * US
LONGEST_SHIFT: Final = 2700
_LAST_EDGE_US: Final = 2**42 - 1
LONGEST_US: Final = _LAST_EDGE_US + 1 - LONGEST_STEP_US
LAST_INDEX: Final = LONGEST_SHIFT + _LAST_EDGE_US // LONGEST_STEP_US + 1


def edge_at(index: int) -> int:
    """The edge of a step by its number, in µs: the longest span that counts in it."""
    if index >= LAST_INDEX:
        return _LAST_EDGE_US
    for steps in STEPS:
        last_index = steps.longest_us // steps.step_us + steps.shift
        if index <= last_index:
            return (index - steps.shift) * steps.step_us
    return (index - LONGEST_SHIFT) * LONGEST_STEP_US


@dataclass(slots=True)
class Spans:
    """Durations: counts by the edge of their step in µs, and the exact sum."""

    counts: Counter[int] = field(default_factory=Counter)
    sum_us: int = 0

    def add(self, edge_us: int, count: int, sum_us: int) -> None:
        """Add `count` spans of one step."""
        self.counts[edge_us] += count
        self.sum_us += sum_us

    def __add__(self, other: Spans) -> Spans:
        return Spans(self.counts + other.counts, self.sum_us + other.sum_us)

    def __bool__(self) -> bool:
        return bool(self.counts)

    @property
    def count(self) -> int:
        """The number of spans."""
        return self.counts.total()

    @property
    def mean_us(self) -> float | None:
        """The mean in µs; None without spans."""
        return self.sum_us / self.count if self.counts else None

    def percentile_seconds(self, share: float) -> float | None:
        """As `percentile_us`, in seconds."""
        span_us = self.percentile_us(share)
        return None if span_us is None else span_us / US

    def percentile_us(self, share: float) -> int | None:
        """The smallest edge that at least `share` (0 to 1] of the spans don't exceed; None without
        spans.
        """
        # Rounded first: 0.95 x 20 is 19, whatever floats make of it.
        rank = max(1, ceil(round(share * self.count, 9)))
        number = 0
        for edge_us in sorted(self.counts):
            number += self.counts[edge_us]
            if number >= rank:
                return edge_us
        return None


class Steps(NamedTuple):
    """A time cut into equal steps."""

    from_us: int
    step_us: int
    number: int

    @property
    def to_us(self) -> int:
        """The end of the last step."""
        return self.from_us + self.step_us * self.number

    def starts(self) -> list[int]:
        """The start of each step, in µs."""
        return [self.from_us + index * self.step_us for index in range(self.number)]


# Lengths that people use: 10 s to a week.
STEP_SECONDS: Final = (
    10,
    30,
    60,
    120,
    300,
    600,
    900,
    1800,
    3600,
    7200,
    10_800,
    21_600,
    43_200,
    86_400,
    604_800,
)
_WEEK: Final = STEP_SECONDS[-1]


def cut(from_us: int, to_us: int, most: int, offset_us: int = 0) -> Steps:
    """The finest steps (of STEP_SECONDS, or weeks) that cover the time, at most `most`, and begin
    at round times.

    offset_us: by how much the clocks that tell what is round are ahead of UTC.
    """
    for seconds in itertools.chain(STEP_SECONDS, itertools.count(2 * _WEEK, _WEEK)):
        steps = _cover(from_us + offset_us, to_us + offset_us, seconds * US)
        if steps.number <= most:
            return steps._replace(from_us=steps.from_us - offset_us)
    raise AssertionError("in the end a step covers all of the time")


def _cover(from_us: int, to_us: int, step_us: int) -> Steps:
    """The steps of one length that cover the time, from a multiple of that length on."""
    start_us = from_us // step_us * step_us
    # The last step may reach beyond the end.
    whole_steps, rest_us = divmod(to_us - start_us, step_us)
    number = whole_steps + 1 if rest_us else whole_steps
    return Steps(start_us, step_us, max(1, number))


@dataclass(slots=True)
class Edges:
    """Arrivals and departures by step: how many, and the sum of their times after the step's start,
    in µs.
    """

    counts: Counter[int] = field(default_factory=Counter)
    after_us: Counter[int] = field(default_factory=Counter)

    def add(self, step: int, count: int, after_us: int) -> None:
        """Count `count` arrivals (negative: departures) in one step; `after_us` has their sign
        too.
        """
        self.counts[step] += count
        self.after_us[step] += after_us


def means(edges: Edges, steps: Steps) -> list[float]:
    """How many were present on average in each step; exact however short the stay.

    What is present at the start arrives at the very start of step 0.
    """
    result = []
    present = 0
    for step in range(steps.number):
        arrived = edges.counts[step]
        mean = present + arrived - edges.after_us[step] / steps.step_us
        # Sums of whole numbers; only the division is inexact.
        result.append(max(0.0, round(mean, 9)))
        present += arrived
    return result


class Span(NamedTuple):
    """A stretch of time, in µs."""

    from_us: int
    to_us: int


def unite(spans: Iterable[Span]) -> list[Span]:
    """The time of all spans, as stretches that neither overlap nor touch, in order."""
    united: list[Span] = []
    for span in sorted(spans):
        if united and span.from_us <= united[-1].to_us:
            united[-1] = Span(united[-1].from_us, max(united[-1].to_us, span.to_us))
        else:
            united.append(span)
    return united


def covered(steps: Steps, spans: Iterable[Span]) -> list[bool]:
    """Whether each step lies in the spans by half or more: any number for it would be a guess."""
    inside = [0] * steps.number
    for span in unite(spans):
        first = max(0, (span.from_us - steps.from_us) // steps.step_us)
        last = min(steps.number - 1, (span.to_us - steps.from_us) // steps.step_us)
        for step in range(first, last + 1):
            start_us = steps.from_us + step * steps.step_us
            inside[step] += max(
                0, min(span.to_us, start_us + steps.step_us) - max(span.from_us, start_us)
            )
    return [2 * amount >= steps.step_us for amount in inside]


def busiest(amounts: Mapping[Name, float], most: int) -> list[Name]:
    """At most `most` names with the largest amounts, largest first; equal ones by name."""
    return sorted(amounts, key=lambda name: (-amounts[name], name))[:most]
