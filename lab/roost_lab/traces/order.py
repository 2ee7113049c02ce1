"""Sort launches by time, and spread those with one rounded time inside it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from heapq import heappop, heappush
from typing import Final

from roost_lab.traces.chance import Chance
from roost_lab.traces.launch_line import EXACT, MINUTE, SECOND, LaunchDetails, LaunchLine
from roost_lab.units import DAY_SECONDS

# A launch so far ahead of those before is believed once the next one agrees: a single wrong year
# must not make all the rest late, nor the replay a hundred years long.
LEAP_SECONDS: Final = 31 * DAY_SECONDS
LATE: Final = "its time is before that of lines long past: the file isn't in order of time"
LEAPT: Final = "its time is more than 31 days from its neighbours'"
_MOST_REMEMBERED: Final = 4096


def in_order(
    launches: Iterable[LaunchLine], window_seconds: float, skip: Callable[[LaunchLine, str], None]
) -> Iterator[LaunchLine]:
    """Sort launches that are out of order by up to `window_seconds`; `skip` gets those that come
    later, and leaps.

    Memory holds the launches of `window_seconds`. Equal times keep the order of lines.
    """
    heap: list[LaunchLine] = []
    newest = released = float("-inf")
    leapt: LaunchLine | None = None
    for line in launches:
        arrived: tuple[LaunchLine, ...] = (line,)
        if leapt is not None:
            if abs(line.stamp - leapt.stamp) <= LEAP_SECONDS:
                arrived = (leapt, line)
            else:
                skip(leapt, LEAPT)
            leapt = None
        if len(arrived) == 1 and line.stamp > newest + LEAP_SECONDS:
            leapt = line
            continue
        for launch in arrived:
            if launch.stamp < released:
                skip(launch, LATE)
                continue
            heappush(heap, launch)
            newest = max(newest, launch.stamp)
        due = newest - window_seconds
        while heap and heap[0][0] < due:
            released = heap[0][0]
            yield heappop(heap)
    if leapt is not None:
        if newest == float("-inf"):
            heap.append(leapt)
        else:
            skip(leapt, LEAPT)
    while heap:
        yield heappop(heap)


class Spreader:
    """Gives launches of one rounded time moments uniformly inside it, from the seed, in the order
    of the file.

    The n draws belong to the time and the place among its launches, so a trace cut in days, or
    begun later, has the same moments.
    """

    def __init__(self, chance: Chance) -> None:
        self._chance = chance
        # Rounded time -> draws taken; several files may have launches at the same one.
        self._taken: dict[int, int] = {}

    def spread(self, launches: Iterable[LaunchLine]) -> Iterator[tuple[float, int, LaunchDetails]]:
        """(moment, line, launch) of launches in order of time; holds those of one rounded time."""
        group: list[LaunchLine] = []
        group_stamp = float("-inf")
        # A time off the minute: times of this file are not rounded to minutes.
        finest = MINUTE
        for record in launches:
            stamp, line, resolution, launch = record
            if stamp != group_stamp:
                if group:
                    yield from self._placed(group, finest, stamp)
                    group = []
                group_stamp = stamp
            finest = min(finest, resolution)
            if resolution == EXACT:
                if group:
                    yield from self._placed(group, SECOND, stamp)
                    group = []
                yield stamp, line, launch
            else:
                group.append(record)
        if group:
            yield from self._placed(group, finest, float("inf"))

    def _placed(
        self, group: list[LaunchLine], finest: int, next_stamp: float
    ) -> Iterator[tuple[float, int, LaunchDetails]]:
        stamp = group[0].stamp
        span = min(float(finest or SECOND), next_stamp - stamp)
        key = int(stamp)
        uniform = self._chance.uniform
        taken = self._taken.get(key, 0)
        if len(self._taken) > _MOST_REMEMBERED:
            self._taken.clear()
        self._taken[key] = taken + len(group)
        offsets = sorted(uniform("spread", f"{key}/{taken + index}") for index in range(len(group)))
        for offset, record in zip(offsets, group, strict=True):
            yield stamp + span * offset, record.line, record.launch
