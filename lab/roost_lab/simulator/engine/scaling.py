"""Run the autoscaler whenever a real one could find something new, and drain expired nodes.

A node that is `Assumptions.node_expire_hours` old is cordoned, whatever else happens (Karpenter's
expiry has no budget either), and removed when the last pod that must not be moved has left. If that
leaves fewer nodes than `min_nodes`, others are requested at once, up to `max_nodes`; draining nodes
count towards `max_nodes` only. Source: Karpenter's documentation (Disruption, Expiration: forceful)
and expiration/controller.go, v1.8.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING, Final

from roost_core.objects.selectors import CORDON
from roost_lab.simulator.engine.autoscaler import NodeScaler
from roost_lab.simulator.engine.cluster_autoscaler import ClusterAutoscaler
from roost_lab.simulator.engine.karpenter import Karpenter
from roost_lab.simulator.engine.pods import PLACEHOLDER
from roost_lab.simulator.setup.assumptions import Assumptions, Autoscaler

if TYPE_CHECKING:
    from roost_core.objects.node import Node
    from roost_lab.simulator.engine.entities import SimNode
    from roost_lab.simulator.engine.world import World

_HOUR: Final = 3600.0


def make_node_scaler(assumptions: Assumptions, template: Node, since: float) -> NodeScaler:
    """The autoscaler that the assumptions name. template: a new node. since: when its loop
    began.
    """
    if assumptions.autoscaler is Autoscaler.CLUSTER_AUTOSCALER:
        return ClusterAutoscaler(assumptions, template, since)
    if assumptions.autoscaler is Autoscaler.KARPENTER:
        return Karpenter(assumptions, template, since)
    return NodeScaler()


class Scaling:
    """The autoscaler of one replay, from its creation on."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._scaler = make_node_scaler(world.assumed, world.template(), world.now)
        # Name of a node that boots -> when it was requested.
        self.booting: dict[str, float] = {}
        self._requested = 0
        self._looks_at: float | None = None

    def pod_waits(self) -> None:
        """A pod fits no node."""
        self._look_at(self._scaler.turn_after(self._world.now, pods_wait=True))

    def pods_changed(self, node: SimNode) -> None:
        """Pods came to a node, or left it."""
        now = self._world.now
        self._scaler.pods_changed(node.name, now)
        # Users keep their node; one with placeholders alone may go once there is room elsewhere.
        if not node.users or self._scaler.room_matters:
            self._look_at(self._scaler.turn_after(now, pods_wait=False))
        if node.state.unschedulable:
            # Not while the pod that left is being removed.
            self._world.at(now, self._remove_drained, node)

    def nodes_joined(self, nodes: Iterable[SimNode]) -> None:
        """Nodes joined now; none, perhaps, at the beginning."""
        world = self._world
        self._look_at(self._scaler.turn_after(world.now, pods_wait=False))
        for node in nodes if world.assumed.node_expire_hours else ():
            world.at(world.now + world.assumed.node_expire_hours * _HOUR, self._drain, node)

    def _look_at(self, moment: float | None) -> None:
        if (
            moment is not None
            and moment < inf
            and (self._looks_at is None or moment < self._looks_at)
        ):
            self._looks_at = moment
            self._world.at(moment, self._look, moment)

    def _look(self, due: float) -> None:
        if self._looks_at != due:
            # An earlier run replaced it.
            return
        self._looks_at = None
        world = self._world
        now = self._world.now
        waiting = [pod.state for pod in world.scheduling.unschedulable.values()]
        decision = self._scaler.look(world.state, waiting, self.booting, now)
        for name in decision.give_up:
            del self.booting[name]
        self._request(decision.request)
        self._look_at(decision.look_again)
        for name in decision.remove:
            node = world.nodes.get(name)
            if node is not None:
                world.remove_node(node)

    def _request(self, number: int) -> None:
        """Request so many nodes from the cloud."""
        world = self._world
        for _ in range(number):
            self._requested += 1
            name = f"asked-{self._requested}"
            self.booting[name] = world.now
            world.at(world.now + world.boot_seconds(), self._joined, name)

    def _joined(self, name: str) -> None:
        # A node that was given up doesn't join.
        if self.booting.pop(name, None) is not None:
            self._world.join()

    # Draining

    def _drain(self, node: SimNode) -> None:
        """Cordon a node, and evict its placeholders."""
        world = self._world
        if world.nodes.get(node.name) is not node:
            return
        taints = (*node.state.taints, CORDON)
        world.change_node(node, replace(node.state, unschedulable=True, taints=taints))
        for pod in list(node.pods.values()):
            if pod.kind == PLACEHOLDER:
                world.evict(pod)
        world.nodes_changed()
        world.bounds.drains(world.now)
        self._keep_least()
        self._remove_drained(node)

    def _remove_drained(self, node: SimNode) -> None:
        world = self._world
        # Users and builds are never created again: they end where they are.
        if world.nodes.get(node.name) is not node or any(
            pod.kind != PLACEHOLDER for pod in node.pods.values()
        ):
            return
        world.remove_node(node)
        self._keep_least()
        self._look_at(self._scaler.turn_after(world.now, pods_wait=False))

    def _keep_least(self) -> None:
        """Request the nodes that are missing from the least because of draining."""
        state = self._world.state
        assumed = self._world.assumed
        staying = sum(not row.node.unschedulable for row in state.rows.values()) + len(self.booting)
        there = len(state.rows) + len(self.booting)
        self._request(max(0, min(assumed.min_nodes - staying, assumed.max_nodes - there)))
