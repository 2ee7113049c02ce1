"""Run the autoscaler whenever a real one could find something new."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import TYPE_CHECKING, Protocol

from roost_lab.simulator.engine.cluster_autoscaler import ClusterAutoscaler
from roost_lab.simulator.engine.karpenter import Karpenter
from roost_lab.simulator.engine.node_scaler import NodeScaler
from roost_lab.simulator.setup.assumptions import Assumptions, Autoscaler

if TYPE_CHECKING:
    from roost_core.objects.node import Node
    from roost_lab.simulator.engine.cluster import Cluster
    from roost_lab.simulator.engine.entities import SimNode, SimPod


def make_node_scaler(assumptions: Assumptions, template: Node, since: float) -> NodeScaler:
    """The autoscaler that the assumptions name. template: a new node. since: when its loop
    began.
    """
    if assumptions.autoscaler is Autoscaler.CLUSTER_AUTOSCALER:
        return ClusterAutoscaler(assumptions, template, since)
    if assumptions.autoscaler is Autoscaler.KARPENTER:
        return Karpenter(assumptions, template, since)
    return NodeScaler()


class NodeLife(Protocol):
    """What an autoscaler asks for: nodes that come and go."""

    def boot_seconds(self) -> float:
        """How long the next node takes to boot."""

    def join(self) -> SimNode:
        """A node joins and is ready."""

    def remove_node(self, node: SimNode) -> None:
        """A node goes, with the placeholders that are on it.

        No users are on it. With them, their launches would end, too: see `Hub.lose`.
        """


class Scaling:
    """The autoscaler of one replay, from its creation on."""

    def __init__(
        self,
        cluster: Cluster,
        nodes: NodeLife,
        *,
        template: Node,
        unschedulable: Mapping[str, SimPod],
    ) -> None:
        """template: a new node. unschedulable: the pods that no node fits, as they change."""
        self._cluster = cluster
        self._nodes = nodes
        self._unschedulable = unschedulable
        self._scaler = make_node_scaler(cluster.assumed, template, cluster.now)
        # Name of a node that boots -> when it was requested.
        self.booting: dict[str, float] = {}
        self._requested = 0
        self._next_run: float | None = None

    def pod_waits(self) -> None:
        """A pod fits no node."""
        self._run_at(self._scaler.turn_after(self._cluster.now, pods_wait=True))

    def pods_changed(self, node: SimNode) -> None:
        """Pods came to a node, or left it."""
        now = self._cluster.now
        self._scaler.pods_changed(node.name, now)
        # Users keep their node; one with placeholders alone may go once there is room elsewhere.
        if not node.users or self._scaler.room_matters:
            self._run_at(self._scaler.turn_after(now, pods_wait=False))

    def nodes_joined(self) -> None:
        """Nodes joined now; none, perhaps, at the beginning."""
        self._run_at(self._scaler.turn_after(self._cluster.now, pods_wait=False))

    def _run_at(self, moment: float | None) -> None:
        if (
            moment is not None
            and moment < inf
            and (self._next_run is None or moment < self._next_run)
        ):
            self._next_run = moment
            self._cluster.at(moment, self._run, moment)

    def _run(self, due: float) -> None:
        if self._next_run != due:
            # An earlier run took its place.
            return
        self._next_run = None
        cluster = self._cluster
        now = self._cluster.now
        waiting = [pod.state for pod in self._unschedulable.values()]
        decision = self._scaler.look(cluster.state, waiting, self.booting, now)
        for name in decision.give_up:
            del self.booting[name]
        self._request(decision.request)
        self._run_at(decision.look_again)
        for name in decision.remove:
            node = cluster.nodes.get(name)
            if node is not None:
                self._nodes.remove_node(node)

    def _request(self, number: int) -> None:
        """Request so many nodes from the cloud."""
        cluster = self._cluster
        for _ in range(number):
            self._requested += 1
            name = f"asked-{self._requested}"
            self.booting[name] = cluster.now
            cluster.at(cluster.now + self._nodes.boot_seconds(), self._joined, name)

    def _joined(self, name: str) -> None:
        # A node that was given up doesn't join.
        if self.booting.pop(name, None) is not None:
            self._nodes.join()
