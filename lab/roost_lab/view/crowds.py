"""Find when many people come at once, as to a class, and tell what they waited for. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate
from statistics import median
from typing import Final, NamedTuple

from roost_lab.pages.dates import as_date
from roost_lab.pages.phrases import show_span
from roost_lab.report.statistics import Span
from roost_lab.units import MINUTE_US, US

# People of a class come within about this time, around its begin.
CROWD_US: Final = 15 * MINUTE_US
# Fewer people in that time are no crowd.
FEWEST_PEOPLE: Final = 20
# A crowd has at least so many times the people of a usual stretch of that length.
TIMES_USUAL: Final = 3
MOST_CROWDS: Final = 12
# Classes begin at such a minute: the middle of the arrivals is rounded to it.
BEGIN_US: Final = 5 * MINUTE_US
FOR_NODE, FOR_IMAGE, FOR_SERVER = "for a node", "for an image", "for their server"


class Wait(NamedTuple):
    """How long a start took, and what it waited for most of all."""

    created_us: int
    wait_us: int
    # One of FOR_NODE, FOR_IMAGE and FOR_SERVER.
    reason: str
    # The pod's name: a person who tries again has the same.
    name: str


def find_crowds(arrivals: Sequence[int], span: Span) -> list[Span]:
    """Stretches of CROWD_US in which many people came, in order of time.

    arrivals: when people came (µs), within the span, in order of time. A crowd has more people than
    come in TIMES_USUAL usual stretches together; two crowds have no time in common.
    """
    minutes = [0] * ((span.to_us - span.from_us) // MINUTE_US + 1)
    for at_us in arrivals:
        minutes[(at_us - span.from_us) // MINUTE_US] += 1
    length = CROWD_US // MINUTE_US
    usual = median(sum(minutes[n : n + length]) for n in range(0, len(minutes), length))
    fewest = max(FEWEST_PEOPLE, TIMES_USUAL * usual + 1)
    before = [0, *accumulate(minutes)]
    # People who come within CROWD_US from a minute on.
    people = [before[min(n + length, len(minutes))] - before[n] for n in range(len(minutes))]
    found: list[Span] = []
    while len(found) < MOST_CROWDS:
        most = max(people)
        if most < fewest:
            break
        minute = people.index(most)
        from_us = span.from_us + minute * MINUTE_US
        found.append(Span(from_us, from_us + CROWD_US))
        first = max(0, minute - length + 1)
        people[first : minute + length] = [0] * len(people[first : minute + length])
    return sorted(found)


def begin_of(arrivals: Sequence[int]) -> int:
    """When the crowd's class began, as far as arrivals show it: their middle, to five minutes."""
    return round(median(arrivals) / BEGIN_US) * BEGIN_US


def tell_crowd(starts: Sequence[Wait], slow_us: int) -> str:
    """What a crowd waited for: "10:00: 176 people come; 118 wait longer than 30 s for a node, at
    most 4 min 10 s.".

    starts: of one crowd, in order of time. slow_us: shorter waits aren't told.
    """
    clock = as_date(begin_of([start.created_us for start in starts])).strftime("%-H:%M")
    waits = _by_person(starts)
    people = f"{clock}: {len(waits):,} people come"
    slow = [wait for wait in waits if wait.wait_us > slow_us]
    if not slow:
        return f"{people}; nobody waits longer than {show_span(slow_us)}."
    counts = Counter(wait.reason for wait in slow)
    reasons = [reason for reason in (FOR_NODE, FOR_IMAGE, FOR_SERVER) if counts[reason]]
    wait_long = f"{len(slow):,} {'waits' if len(slow) == 1 else 'wait'} longer than"
    if len(reasons) == 1:
        parts = f"{wait_long} {show_span(slow_us)} {reasons[0]}"
    else:
        counted = ", ".join(f"{counts[reason]:,} {reason}" for reason in reasons)
        parts = f"{wait_long} {show_span(slow_us)}: {counted}"
    longest_us = max(wait.wait_us for wait in slow)
    return f"{people}; {parts}, at most {show_span(round(longest_us / US) * US)}."


def people_of(starts: Sequence[Wait]) -> int:
    """How many people these starts are of."""
    return len({start.name for start in starts})


def _by_person(starts: Sequence[Wait]) -> list[Wait]:
    """One wait for each person: from the first try to the end of the last one."""
    waits: dict[str, Wait] = {}
    for start in starts:
        first = waits.setdefault(start.name, start)
        wait_us = start.created_us + start.wait_us - first.created_us
        longest = start.reason if start.wait_us > first.wait_us else first.reason
        waits[start.name] = first._replace(wait_us=max(first.wait_us, wait_us), reason=longest)
    return list(waits.values())


def people_in(arrivals: Sequence[int], crowd: Span) -> slice:
    """The places of a crowd's people among the arrivals, which are in order of time."""
    return slice(bisect_left(arrivals, crowd.from_us), bisect_left(arrivals, crowd.to_us))
