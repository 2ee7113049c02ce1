"""Put launches in order of time, and give those of one rounded time their moments inside it."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final

from roost.simulator.trace.records import EXACT, MINUTE, SECOND

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from roost.simulator.chance import Chance
    from roost.simulator.trace.records import LaunchDetails, Record

# A record so far ahead of those before is believed once the next one agrees: a single wrong year must not make all the
# rest late, nor the replay a hundred years long.
LEAP_SECONDS: Final = 31 * 86400.0
LATE: Final = "its time is before that of lines long past: the file isn't in order of time"
LEAPT: Final = "its time is more than 31 days from its neighbours'"
_MOST_REMEMBERED: Final = 4096


def in_order(records: Iterable[Record], window_seconds: float, skip: Callable[[Record, str], None]) -> Iterator[Record]:
    """Sort records that are out of order by up to `window_seconds`; `skip` gets those that come later, and leaps.

    Holds the records of `window_seconds`. Equal times keep the order of lines.
    """
    heap: list[Record] = []
    newest = released = float("-inf")
    leapt: Record | None = None
    for record in records:
        arrived: tuple[Record, ...] = (record,)
        if leapt is not None:
            if abs(record.stamp - leapt.stamp) <= LEAP_SECONDS:
                arrived = (leapt, record)
            else:
                skip(leapt, LEAPT)
            leapt = None
        if len(arrived) == 1 and record.stamp > newest + LEAP_SECONDS:
            leapt = record
            continue
        for one in arrived:
            if one.stamp < released:
                skip(one, LATE)
                continue
            heappush(heap, one)
            newest = max(newest, one.stamp)
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
    """Gives launches of one rounded time moments uniformly inside it, from the seed, in the order of the file.

    The n draws belong to the time and the place among its launches, so a trace cut in days, or begun later, has the
    same moments.
    """

    def __init__(self, chance: Chance) -> None:
        self._chance = chance
        # Rounded time -> draws taken; several files may have launches at the same one.
        self._taken: dict[int, int] = {}

    def spread(self, records: Iterable[Record]) -> Iterator[tuple[float, int, LaunchDetails]]:
        """(moment, line, launch) of records in order of time; holds those of one rounded time."""
        group: list[Record] = []
        group_stamp = float("-inf")
        # A time off the minute: times of this file are not rounded to minutes.
        finest = MINUTE
        for record in records:
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
        self, group: list[Record], finest: int, next_stamp: float
    ) -> Iterator[tuple[float, int, LaunchDetails]]:
        stamp = group[0].stamp
        span = min(float(finest or SECOND), next_stamp - stamp)
        key, uniform = int(stamp), self._chance.uniform
        taken = self._taken.get(key, 0)
        if len(self._taken) > _MOST_REMEMBERED:
            self._taken.clear()
        self._taken[key] = taken + len(group)
        offsets = sorted(uniform("spread", f"{key}/{taken + index}") for index in range(len(group)))
        for offset, record in zip(offsets, group, strict=True):
            yield stamp + span * offset, record.line, record.launch
