"""Run the autoscaler whenever a real one could find something new, and drain expired nodes.

A node that is `Assumptions.node_expire_hours` old is cordoned, whatever else happens (Karpenter's
expiry has no budget either), and removed when the last pod that must not be moved has left. If that
leaves fewer nodes than `min_nodes`, others are requested at once, up to `max_nodes`; draining nodes
count towards `max_nodes` only. Source: Karpenter's documentation (Disruption, Expiration: forceful)
and expiration/controller.go, v1.8.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING, Protocol

from roost_core.objects.selectors import CORDON
from roost_lab.simulator.engine.autoscaler import NodeScaler
from roost_lab.simulator.engine.cluster_autoscaler import ClusterAutoscaler
from roost_lab.simulator.engine.karpenter import Karpenter
from roost_lab.simulator.engine.pods import PLACEHOLDER
from roost_lab.simulator.setup.assumptions import Assumptions, Autoscaler
from roost_lab.units import HOUR_SECONDS

if TYPE_CHECKING:
    from roost_core.objects.node import Node
    from roost_lab.simulator.engine.bounds import BoundsMeter
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

    def change_node(self, node: SimNode, state: Node) -> None:
        """Labels or taints of a node change."""

    def nodes_changed(self) -> None:
        """A node is about to go: tell the controllers."""

    def remove_node(self, node: SimNode) -> None:
        """A node goes, with the placeholders that are on it.

        No users are on it. With them, their launches would end, too: see `Hub.lose`.
        """

    def evict(self, pod: SimPod) -> None:
        """A placeholder is evicted."""


class Scaling:
    """The autoscaler of one replay, from its creation on."""

    def __init__(
        self,
        cluster: Cluster,
        nodes: NodeLife,
        *,
        template: Node,
        unschedulable: Mapping[str, SimPod],
        bounds: BoundsMeter,
    ) -> None:
        """template: a new node. unschedulable: the pods that no node fits, as they change."""
        self._cluster = cluster
        self._nodes = nodes
        self._unschedulable = unschedulable
        self._bounds = bounds
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
        if node.state.unschedulable:
            # As another event: this one may still be removing the pod that left.
            self._cluster.at(now, self._remove_drained, node)

    def nodes_joined(self, nodes: Iterable[SimNode]) -> None:
        """Nodes joined now; none, perhaps, at the beginning."""
        cluster = self._cluster
        self._run_at(self._scaler.turn_after(cluster.now, pods_wait=False))
        if cluster.assumed.node_expire_hours:
            for node in nodes:
                cluster.at(
                    cluster.now + cluster.assumed.node_expire_hours * HOUR_SECONDS,
                    self._drain,
                    node,
                )

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

    # Draining

    def _drain(self, node: SimNode) -> None:
        """Cordon a node, and evict its placeholders."""
        cluster = self._cluster
        if cluster.nodes.get(node.name) is not node:
            return
        taints = (*node.state.taints, CORDON)
        self._nodes.change_node(node, replace(node.state, unschedulable=True, taints=taints))
        for pod in list(node.pods.values()):
            if pod.kind == PLACEHOLDER:
                self._nodes.evict(pod)
        self._nodes.nodes_changed()
        self._bounds.drains(cluster.now)
        self._keep_least()
        self._remove_drained(node)

    def _remove_drained(self, node: SimNode) -> None:
        cluster = self._cluster
        # Users and builds are never created again: they end where they are.
        if cluster.nodes.get(node.name) is not node or any(
            pod.kind != PLACEHOLDER for pod in node.pods.values()
        ):
            return
        self._nodes.remove_node(node)
        self._keep_least()
        self._run_at(self._scaler.turn_after(cluster.now, pods_wait=False))

    def _keep_least(self) -> None:
        """Request the nodes that are missing from the least because of draining."""
        state = self._cluster.state
        assumed = self._cluster.assumed
        staying = sum(not row.node.unschedulable for row in state.rows.values()) + len(self.booting)
        node_count = len(state.rows) + len(self.booting)
        self._request(max(0, min(assumed.min_nodes - staying, assumed.max_nodes - node_count)))
