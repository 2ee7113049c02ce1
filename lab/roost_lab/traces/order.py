"""Sort launches by time, and spread launches that have the same rounded time.

Times are seconds since 1970.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from heapq import heappop, heappush
from typing import Final

from roost_lab.traces.chance import Chance
from roost_lab.traces.launch_line import EXACT, MINUTE, SECOND, LaunchDetails, LaunchLine
from roost_lab.units import DAY_SECONDS

# A launch so far ahead of those before counts only if the next launch is near it. So a single line
# with a wrong year doesn't make all later lines late, or the replay a hundred years long.
LEAP_SECONDS: Final = 31 * DAY_SECONDS
LATE: Final = "its time is before that of lines long past: the file isn't in order of time"
LEAPT: Final = "its time is more than 31 days from its neighbours'"
_MOST_REMEMBERED: Final = 4096


def in_order(
    launches: Iterable[LaunchLine], window_seconds: float, skip: Callable[[LaunchLine, str], None]
) -> Iterator[LaunchLine]:
    """Sort launches that are out of order by up to `window_seconds`.

    Memory holds the launches of `window_seconds`. Launches of equal times stay in the order of
    lines. skip: called with a launch that isn't used, and the reason: it comes too late, LATE, or
    its time is far from those of its neighbours, LEAPT.
    """
    # Launches that aren't given out yet: a heap, the earliest first.
    heap: list[LaunchLine] = []
    newest = float("-inf")
    # The time of the last launch that was given out.
    released = float("-inf")
    # A launch far ahead of all others, until the next one shows whether it counts.
    leapt: LaunchLine | None = None
    for launch in launches:
        accepted = [launch]
        if leapt is not None:
            if abs(launch.stamp - leapt.stamp) <= LEAP_SECONDS:
                accepted = [leapt, launch]
            else:
                skip(leapt, LEAPT)
            leapt = None
        if len(accepted) == 1 and launch.stamp > newest + LEAP_SECONDS:
            leapt = launch
            continue
        for accepted_launch in accepted:
            if accepted_launch.stamp < released:
                skip(accepted_launch, LATE)
                continue
            heappush(heap, accepted_launch)
            newest = max(newest, accepted_launch.stamp)
        due = newest - window_seconds
        while heap and heap[0].stamp < due:
            released = heap[0].stamp
            yield heappop(heap)
    if leapt is not None:
        has_others = newest > float("-inf")
        if has_others:
            skip(leapt, LEAPT)
        else:
            heap.append(leapt)
    while heap:
        yield heappop(heap)


class Spreader:
    """Gives launches that have the same rounded time different moments in that minute or second.

    The moments are uniformly random, and in the order of the file. A draw depends on the seed, the
    rounded time, and the launch's place among the launches of that time. So a trace that is cut
    into days, or that begins later, has the same moments.
    """

    def __init__(self, chance: Chance) -> None:
        self._chance = chance
        # Rounded time -> its draws so far: several files may have launches of the same time.
        self._taken: dict[int, int] = {}

    def spread(self, launches: Iterable[LaunchLine]) -> Iterator[tuple[float, int, LaunchDetails]]:
        """The moment, the number of the line, and the launch, for each launch.

        launches: in order of time. Memory holds the launches of one rounded time.
        """
        # Launches of the same rounded time.
        group: list[LaunchLine] = []
        group_stamp = float("-inf")
        # Times are taken as rounded to the minute, until one isn't a whole minute.
        finest = MINUTE
        for launch_line in launches:
            stamp, line, resolution, launch = launch_line
            if stamp != group_stamp:
                if group:
                    yield from self._spread_group(group, finest, stamp)
                    group = []
                group_stamp = stamp
            finest = min(finest, resolution)
            if resolution == EXACT:
                if group:
                    yield from self._spread_group(group, SECOND, stamp)
                    group = []
                yield stamp, line, launch
            else:
                group.append(launch_line)
        if group:
            yield from self._spread_group(group, finest, float("inf"))

    def _spread_group(
        self, group: list[LaunchLine], finest: int, next_stamp: float
    ) -> Iterator[tuple[float, int, LaunchDetails]]:
        """Spread launches of one rounded time, up to the next time of the file at most.

        finest: the finest resolution so far.
        """
        stamp = group[0].stamp
        span = min(float(finest or SECOND), next_stamp - stamp)
        key = int(stamp)
        first = self._taken.get(key, 0)
        if len(self._taken) > _MOST_REMEMBERED:
            self._taken.clear()
        self._taken[key] = first + len(group)
        offsets = sorted(
            self._chance.uniform("spread", f"{key}/{number}")
            for number in range(first, first + len(group))
        )
        for offset, launch_line in zip(offsets, group, strict=True):
            yield stamp + span * offset, launch_line.line, launch_line.launch
