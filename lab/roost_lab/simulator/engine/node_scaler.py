"""The interface of an autoscaler in a replay: when it runs, and which nodes it adds and removes.

An autoscaler here has no clock. `look` is given the moment, the cluster and the pods that fit
nowhere. It returns what to do, and when to look again.

A real autoscaler looks every few seconds, and finds the same until something changes. Here it looks
at the first turn of its loop after a change (`turn_after`), and when `look` asked for it. So it
adds and removes the same nodes at the same moments.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import ceil, inf
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from roost_core.objects.pod import Pod
    from roost_core.scheduler.state import ClusterState

# Seconds. A rounding error must not delay a decision by a whole turn of the loop.
ROUNDING: Final = 1e-6


class Booting(NamedTuple):
    """Requested nodes that haven't joined."""

    # Names of nodes that are given up now.
    late: tuple[str, ...]
    # Names of nodes that may still join.
    coming: tuple[str, ...]
    # When each of `coming` will be given up.
    moments: list[float]


def read_booting(booting: Mapping[str, float], patience: float, now: float) -> Booting:
    """Sort requested nodes into those that are given up and those that may still join.

    booting: name -> when it was requested. patience: seconds after which a node is given up.
    """
    late = tuple(
        name for name, requested_at in booting.items() if requested_at + patience <= now + ROUNDING
    )
    coming = tuple(name for name in booting if name not in late)
    return Booting(late, coming, [booting[name] + patience for name in coming])


def next_turn(since: float, seconds: float, now: float) -> float:
    """When the next turn of a loop begins: now, or later.

    since: when the loop began. seconds: how long a turn takes.
    """
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
    """Adds and removes nodes. This one leaves the nodes as they are; subclasses change them."""

    # Whether a change of any node is a reason to run again. It is when the last run found a node
    # that could go if its pods had room elsewhere. Otherwise only changes of nodes without users
    # are a reason.
    room_matters: bool = False

    def turn_after(self, now: float, *, pods_wait: bool) -> float:
        """When it will notice a change that happens now.

        pods_wait: whether the change is that a pod fits no node.
        """
        del now, pods_wait
        return inf

    def pods_changed(self, node: str, now: float) -> None:
        """A pod came to a node or left it; this isn't called for pods of DaemonSets."""

    def look(
        self,
        state: ClusterState,
        unschedulable: Iterable[Pod],
        booting: Mapping[str, float],
        now: float,
    ) -> ScalingDecision:
        """Decide what to do now.

        booting: name of a requested node that hasn't joined -> when it was requested.
        """
        del state, unschedulable, booting, now
        return ScalingDecision()
