"""What a replay says while it is played, for whoever wants to write it down.

A journal only listens: the replay is the same with and without one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from roost_core.objects.node import Node
    from roost_core.scheduler.cycle import Decision
    from roost_lab.simulator.engine.entities import SimNode, SimPod
    from roost_lab.simulator.engine.node_images import Pull


class Journal(Protocol):
    """Is called as things happen. now: Unix time."""

    def node_changed(self, node: SimNode, state: Node, now: float) -> None:
        """A node joins, or its object becomes `state`; the node still has the object before."""
        ...

    def node_left(self, node: SimNode, now: float) -> None:
        """A node goes; its pods are gone next."""
        ...

    def pod_unfit(self, pod: SimPod, decision: Decision | None, now: float) -> None:
        """A pod fits no node. decision: None when that was known from another pod like it."""
        ...

    def pod_preempted(self, pod: SimPod, by: SimPod, now: float) -> None:
        """A pod is pre-empted for another; it is gone later."""
        ...

    def pod_evicted(self, pod: SimPod, now: float) -> None:
        """A pod is evicted; it is gone next."""
        ...

    def pod_bound(self, pod: SimPod, node: SimNode, now: float) -> None:
        """A pod is bound to a node."""
        ...

    def image_pulled(self, pod: SimPod, image: str, pull: Pull, begins: float) -> None:
        """A user's pod needs an image. pull: known in advance; begins: when the pod asks for it, Unix time."""
        ...

    def pod_ready(self, pod: SimPod, now: float) -> None:
        """A pod's containers run."""
        ...

    def pod_gone(self, pod: SimPod, now: float) -> None:
        """A pod is gone."""
        ...
