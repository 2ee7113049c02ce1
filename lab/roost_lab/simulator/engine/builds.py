"""Model builds: the cached layers that they find on their node, and how long they take.

A machine without a clock: each call has its moment, never an earlier one than before. Which node a
build goes to is the scheduler's choice; whether there is one at all is the trace's, of which the
archive says nothing.
"""

from __future__ import annotations

from heapq import heappop, heappush
from math import log
from typing import TYPE_CHECKING, Final, NamedTuple

from roost_lab.simulator.engine.histogram import Histogram
from roost_lab.traces.pushes import PUSHED

if TYPE_CHECKING:
    from roost_lab.simulator.engine.results import RunResult
    from roost_lab.simulator.setup.assumptions import Assumptions
    from roost_lab.traces.chance import Chance

# The share of images first seen in a trace that had never been launched before: they were built
# then. The others had been, and wait in the registry. mybinder.org, May 2019: 905 of 3,008 specs
# weren't seen since November 2018.
NEW_SHARE: Final = 0.3
# 90 % of the standard normal distribution are below.
_P90: Final = 1.2815515655446004


class Build(NamedTuple):
    """One build, known in advance."""

    seconds: float
    # The node held layers of the repository.
    hit: bool
    # The node also held the current environment, which isn't built again.
    quick: bool


class _RunningBuild(NamedTuple):
    """A build under way. Sorted: the one that ends first comes first, of equals the older one."""

    ends_at: float
    # Its place in the order of all builds.
    number: int
    node: str
    repository: str
    environment: int


class BuildWorld:
    """All builds of one replay, and the caches of builder nodes.

    The n-th build of a repository changes the environment, and lasts, as long under every policy.
    """

    def __init__(self, assumptions: Assumptions, chance: Chance) -> None:
        self._world = assumptions
        self._chance = chance
        self._sigma = (
            log(assumptions.build_cold_p90_seconds / assumptions.build_cold_median_seconds) / _P90
        )
        # Repository -> builds begun, and number of its environments.
        self._begun: dict[str, tuple[int, int]] = {}
        # Node -> repository -> the environment whose layers it holds.
        self._caches: dict[str, dict[str, int]] = {}
        # A heap.
        self._running: list[_RunningBuild] = []
        # Images that are in the registry, or will never have to be built.
        self._built: set[str] = set()
        self.builds = 0
        self.hits = 0
        self.quick = 0
        self.seconds = Histogram()
        self.by_node: dict[str, int] = {}

    # Which images need a build

    def needs_build(self, image: str) -> bool:
        """Whether an image must be built before it can be launched: until `built` was called for
        it.
        """
        if image in self._built:
            return False
        if _is_pushed(image) or self._chance.uniform("never launched before", image) < NEW_SHARE:
            return True
        self._built.add(image)
        return False

    def built(self, image: str) -> None:
        """The image is in the registry from now on."""
        self._built.add(image)

    # Building

    def begin(self, repository: str, node: str, now: float) -> Build:
        """A build begins on a node. Others find its layers once it has ended."""
        self._settle(now)
        number, environment = self._begun.get(repository, (0, 0))
        whose = f"{repository}\0{number}"
        if (
            number
            and self._chance.uniform("environment changed", whose) < self._world.build_changed_share
        ):
            environment += 1
        self._begun[repository] = (number + 1, environment)
        held = self._caches.get(node, {}).get(repository)
        is_quick = held == environment
        world = self._world
        median = world.build_warm_median_seconds if is_quick else world.build_cold_median_seconds
        # One draw for both: what is slow to build is slow to check.
        seconds = self._chance.log_normal("build", whose, median, self._sigma)
        running = _RunningBuild(now + seconds, self.builds, node, repository, environment)
        heappush(self._running, running)
        self.builds += 1
        self.hits += held is not None
        self.quick += is_quick
        self.seconds.add(seconds)
        self.by_node[node] = self.by_node.get(node, 0) + 1
        return Build(seconds, held is not None, is_quick)

    def node_left(self, node: str, now: float) -> None:
        """A node was removed, with its layers and builds."""
        self._settle(now)
        self._caches.pop(node, None)
        if any(build.node == node for build in self._running):
            # Sorted, it is a heap again.
            self._running = sorted(build for build in self._running if build.node != node)

    def holders(self, repository: str, now: float) -> list[str]:
        """The nodes that hold layers of the repository."""
        self._settle(now)
        return [node for node, cache in self._caches.items() if repository in cache]

    def _settle(self, now: float) -> None:
        while self._running and self._running[0].ends_at <= now:
            build = heappop(self._running)
            # When two builds run at once, the one that ends last counts.
            self._caches.setdefault(build.node, {})[build.repository] = build.environment

    # Figures

    @property
    def busiest_share(self) -> float:
        """Share of builds, 0..1, on the node with the most."""
        return max(self.by_node.values()) / self.builds if self.builds else 0.0

    def write(self, result: RunResult) -> None:
        """Write the figures into a result."""
        result.builds = self.builds
        result.build_cache_hits = self.hits
        result.build_seconds = self.seconds
        result.busiest_builder_share = self.busiest_share


def _is_pushed(image: str) -> bool:
    _, mark, moment = image.rpartition(PUSHED)
    return bool(mark) and moment.isdecimal()
