"""Tell the plan of popular images what will really be launched: an oracle, for how much any better guess could win.

Nobody can run it; it bounds what a better count of what is popular could bring, with the same plan, limits and pulls.
Refused attempts count as well: whether one is refused depends on the policy.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import replace
from typing import TYPE_CHECKING

from roost.controllers.contract.planner import MemoryPlanner
from roost.controllers.popular_images.memory import PopularMemory
from roost.controllers.popular_images.plan import GAUGES, LaunchReader, note_popular_images, plan_pulls
from roost.controllers.popular_images.popularity import Use, count_users
from roost.controllers.popular_images.settings import read_popular_settings
from roost.simulator.engine.pods import image_reference
from roost_core.placement.documents import Reader
from roost_core.placement.images import normalise_reference

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from roost.controllers.contract.actions import Planned
    from roost.controllers.contract.planner import Planner
    from roost.controllers.contract.snapshot import Moment, Snapshot
    from roost.controllers.popular_images.popularity import Rules
    from roost.simulator.trace.attempt import Attempt
    from roost_core.placement.documents import Document


class Foresight:
    """Hands attempts on, and knows those of the next hours; memory grows with these, not with the trace."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        # Moment and image of what is known and lies beyond the window, and of what lies in it.
        self._beyond: deque[tuple[float, str]] = deque()
        self._within: deque[tuple[float, str]] = deque()
        self._launches: Counter[str] = Counter()

    def hand_on(self, attempts: Iterable[Attempt]) -> Iterator[Attempt]:
        """The same attempts in the same order; each comes when all of the hours behind it have been read."""
        read = iter(attempts)
        ahead: deque[Attempt] = deque()
        for attempt in read:
            ahead.append(attempt)
            self._beyond.append((attempt.moment, normalise_reference(image_reference(attempt.image))))
            while ahead[0].moment + self._seconds < attempt.moment:
                yield ahead.popleft()
        yield from ahead

    def launches(self, now: float) -> Mapping[str, int]:
        """How often each image will be asked for after `now`, within the hours. `now` never goes back.

        To be asked no later than the moment of the attempt that was handed on last.
        """
        beyond, within, counts = self._beyond, self._within, self._launches
        while beyond and beyond[0][0] <= now + self._seconds:
            within.append(beyond.popleft())
            counts[within[-1][1]] += 1
        while within and within[0][0] <= now:
            _, image = within.popleft()
            counts[image] -= 1
            if not counts[image]:
                del counts[image]
        return counts


def make_oracle(name: str, document: Document, launches: Callable[[float], Mapping[str, int]]) -> Planner:
    """The planner of popular images, with a demand that is known. Raises ValueError where the document has it off."""
    settings = read_popular_settings(Reader(), document)
    if settings is None:
        raise ValueError("popular images are off")

    def plan(snapshot: Snapshot, memory: PopularMemory, now: Moment) -> Planned[PopularMemory]:
        pods = snapshot.pods.values()
        counted = count_users(memory.popularity, pods, LaunchReader(settings), settings.half_life_seconds, now.steady)
        # Where pods may run is learnt from those that ran: in a replay all users may run alike.
        weights: Counter[Rules] = Counter()
        for launch, number in counted.launches.items():
            weights[launch.rules] += number
        for use in counted.gone:
            weights[use.rules] += 0
        rules = min(weights, key=lambda one: (-weights[one], repr(one)), default=None)
        demand = {} if rules is None else {Use(image, rules): float(n) for image, n in launches(now.wall).items()}
        return plan_pulls(snapshot, replace(memory, popularity=counted), settings, now, demand)

    return MemoryPlanner(name, plan, PopularMemory(), note=note_popular_images, gauges=GAUGES)
