"""The interface of an autoscaler in a replay: when it runs, and which nodes it then adds and
removes.

An autoscaler here has no clock. `look` is given the moment, the cluster and the pods that fit
nowhere. It tells what to do, and when to look again. A real autoscaler looks every few seconds, and
finds the same until something changes. So here it looks at the first turn of its loop after a
change (`turn_after`), and when `look` says so: the nodes and the moments are the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import ceil, inf
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from roost_core.objects.pod import Pod
    from roost_core.scheduler.state import ClusterState

# A rounding error must not cost a whole run of the loop.
ROUNDING: Final = 1e-6


class Booting(NamedTuple):
    """Requested nodes that haven't joined."""

    # Nodes that are given up now.
    late: tuple[str, ...]
    coming: tuple[str, ...]
    # When each of `coming` will be given up.
    moments: list[float]


def read_booting(booting: Mapping[str, float], patience: float, now: float) -> Booting:
    """Tell nodes that are late from those that may come.

    booting: by name, the times of their requests. patience: seconds until one is given up.
    """
    late = tuple(name for name, asked in booting.items() if asked + patience <= now + ROUNDING)
    coming = tuple(name for name in booting if name not in late)
    return Booting(late, coming, [booting[name] + patience for name in coming])


def next_turn(since: float, seconds: float, now: float) -> float:
    """The first turn at `now` or later of a loop of so many seconds that began at `since`."""
    return since + ceil((now - since) / seconds - ROUNDING) * seconds


class ScalingDecision(NamedTuple):
    """What one run of the autoscaler decides."""

    # How many nodes to request.
    request: int = 0
    # Nodes to remove at once; their pods are evicted, and created again by their owners.
    remove: tuple[str, ...] = ()
    # Requested nodes that never joined and are given up.
    give_up: tuple[str, ...] = ()
    # When to run again even if nothing changes; None: no need.
    look_again: float | None = None


class NodeScaler:
    """Adds and removes nodes; this one none: the nodes stay as they are."""

    # Whether each change of a node is worth a run: in the last run a node could go only if its pods
    # moved, and so if other nodes had room. Otherwise only changes of nodes without users are.
    room_matters: bool = False

    def turn_after(self, now: float, *, pods_wait: bool) -> float:
        """When it will notice a change of now. pods_wait: the change is a pod that fits no node."""
        del now, pods_wait
        return inf

    def pods_changed(self, node: str, now: float) -> None:
        """A pod came to a node or left it; pods of DaemonSets aside."""

    def look(
        self,
        state: ClusterState,
        unschedulable: Iterable[Pod],
        booting: Mapping[str, float],
        now: float,
    ) -> ScalingDecision:
        """One run of its loop. booting: nodes that haven't joined, with the times of their
        requests.
        """
        del state, unschedulable, booting, now
        return ScalingDecision()
