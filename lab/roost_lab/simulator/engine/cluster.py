"""What all parts of a replay share: its time, and the cluster as the API server has it.

`World` is a cluster to which things happen: pods come and go, nodes join and leave. A part, such as
the kubelets, gets the cluster, and a protocol with the few things that it asks the world to do.
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
        """Begin an empty cluster at the time 0.

        measures: counts what happens. journal: is told what happens. namespaces: name -> labels.
        """
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
        # Pods of users, builds and placeholders, with what the replay knows of them besides.
        self.sim_pods: dict[str, SimPod] = {}
        # Name of a placeholder set -> the history that it learned before the replay.
        self.histories: Mapping[str, str] = {}
        # A heap of what is scheduled: moment, number in the order of scheduling, call, argument.
        self._scheduled: list[tuple[float, int, Callable[[Any], None], Any]] = []
        self._number = 0

    def at(self, moment: float, call: Callable[[Any], None], argument: Any = None) -> None:  # noqa: ANN401 - its argument
        """Schedule `call(argument)` at a moment, or now if the moment is past."""
        self._number += 1
        heappush(self._scheduled, (max(moment, self.now), self._number, call, argument))

    def is_scheduled_until(self, moment: float) -> bool:
        """Whether something is scheduled at a moment or before."""
        return bool(self._scheduled) and self._scheduled[0][0] <= moment

    def run_next(self) -> None:
        """Go to the time of the call that is scheduled next, and make it.

        Raises IndexError where none is scheduled.
        """
        moment, _, call, argument = heappop(self._scheduled)
        self.now = moment
        call(argument)
