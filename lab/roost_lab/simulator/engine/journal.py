"""The interface by which a replay tells what happens, for whoever writes it down."""

from __future__ import annotations

from collections.abc import Iterable

from roost_core.objects.node import Node
from roost_core.scheduler.cycle import SchedulingDecision
from roost_lab.simulator.engine.entities import SimNode, SimPod


class Journal:
    """Is told as things happen. This one keeps nothing; others override its methods.

    No journal changes the replay. now: seconds since 1970.
    """

    def node_changed(self, node: SimNode, state: Node, now: float) -> None:
        """A node joins, or its object becomes `state`."""

    def node_left(self, node: SimNode, now: float) -> None:
        """A node goes; its pods are gone next."""

    def pod_unfit(self, pod: SimPod, decision: SchedulingDecision | None, now: float) -> None:
        """A pod fits no node. decision: None where another pod like it had shown that."""

    def pod_removed(self, pod: SimPod, by: SimPod | None, now: float) -> None:
        """A pod is pre-empted for another, or evicted (by: None); it is gone later."""

    def pod_gone(self, pod: SimPod, now: float) -> None:
        """A pod is gone."""

    def ended(self, pods: Iterable[SimPod]) -> None:
        """The replay ends; these pods are still there."""
