"""What an autoscaler is to a replay: when it looks, and what it then says is to be done with the nodes.

Machines without a clock: `look` is given the moment, the cluster and the pods that fit nowhere, and tells what to do
and when to look again. A real autoscaler looks every few seconds; between two changes it finds the same, so looking
again at the first turn of its loop (`turn_after`) behind a change, and when `look` says so, gives the same nodes at the
same moments.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from roost_core.scheduler.objects import PodState
    from roost_core.scheduler.state import ClusterState

# A rounding error must not cost a whole turn of the loop.
ROUNDING: Final = 1e-6


class ScalingDecision(NamedTuple):
    """What is to be done now."""

    # Nodes to ask the cloud for.
    request: int = 0
    # Nodes to take away at once; the pods on them are evicted and made anew by whoever owns them.
    remove: tuple[str, ...] = ()
    # Nodes on their way that never came: they are given back.
    give_up: tuple[str, ...] = ()
    # When to look again though nothing changes; None: no need.
    look_again: float | None = None


class NodeScaler(Protocol):
    """Adds and removes the nodes of one group."""

    # At the last look a node's pods would have had to move for it to go: so room on any other node matters, and the
    # next turn behind a change of any node is worth a look. Else only changes of nodes without users are.
    room_matters: bool

    def turn_after(self, now: float, *, pods_wait: bool) -> float:
        """When it will see what happens now. pods_wait: it is a pod that fits nowhere."""
        ...

    def pods_changed(self, node: str, now: float) -> None:
        """A pod came to a node or left it; pods of DaemonSets aside."""
        ...

    def look(
        self, state: ClusterState, unschedulable: Iterable[PodState], booting: Mapping[str, float], now: float
    ) -> ScalingDecision:
        """One turn of its loop. booting: nodes that were asked for and haven't joined, with the moments of asking."""
        ...


class NoAutoscaler:
    """The nodes stay as they are."""

    room_matters = False

    def turn_after(self, now: float, *, pods_wait: bool) -> float:
        """Never."""
        del now, pods_wait
        return inf

    def pods_changed(self, node: str, now: float) -> None:
        """Nothing follows."""

    def look(
        self, state: ClusterState, unschedulable: Iterable[PodState], booting: Mapping[str, float], now: float
    ) -> ScalingDecision:
        """Nothing to do."""
        del state, unschedulable, booting, now
        return ScalingDecision()
