"""What all parts of a replay share: its time, and the cluster as the API server has it.

`World` adds what happens to pods and nodes. A part gets the cluster, and besides only what it asks
the world to do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

from roost_core.scheduler.state import ClusterState
from roost_core.scheduler.surroundings import Surroundings
from roost_lab.simulator.engine.totals import Measures
from roost_lab.traces.chance import Chance

if TYPE_CHECKING:
    from roost_core.objects.pod import Pod
    from roost_lab.simulator.engine.entities import SimNode, SimPod
    from roost_lab.simulator.engine.journal import Journal
    from roost_lab.simulator.setup.assumptions import Assumptions


class Cluster:
    """One replay's time, nodes and pods."""

    def __init__(
        self,
        assumptions: Assumptions,
        measures: Measures,
        seed: int,
        journal: Journal,
        namespaces: Mapping[str, Mapping[str, str]],
    ) -> None:
        """measures: what is counted. journal: is told what happens. namespaces: their labels."""
        self.assumed = assumptions
        self.measures = measures
        self.journal = journal
        self.chance = Chance(seed)
        # Seconds since 1970.
        self.now = 0.0
        self.state = ClusterState(surroundings=Surroundings(namespaces=namespaces))
        self.nodes: dict[str, SimNode] = {}
        # Every pod as the API server has it, by `namespace/name`.
        self.pods: dict[str, Pod] = {}
        # Those of users, builds and placeholders.
        self.sim_pods: dict[str, SimPod] = {}
        # What sets learned before the replay, by name.
        self.histories: Mapping[str, str] = {}
        self._heap: list[tuple[float, int, Callable[[Any], None], Any]] = []
        self._events = 0

    def at(self, moment: float, call: Callable[[Any], None], argument: Any = None) -> None:  # noqa: ANN401 - its argument
        """Schedule `call(argument)`, not before now."""
        self._events += 1
        heappush(self._heap, (max(moment, self.now), self._events, call, argument))

    def happens_until(self, moment: float) -> bool:
        """Whether something is scheduled up to a moment."""
        return bool(self._heap) and self._heap[0][0] <= moment

    def make_next(self) -> None:
        """Go to the time of what is scheduled next, and make it happen."""
        moment, _, call, argument = heappop(self._heap)
        self.now = moment
        call(argument)
