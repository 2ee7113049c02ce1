"""Drive the autoscaler's rules from the world's events."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simulator.world import SimNode, SimPod, World


class Scaler:
    """Thin."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.booting = 0
        self.looks_at: float | None = None
        self.scaled_up_at = -1e9

    def _grid(self, moment: float) -> float:
        loop = self.world.assumed.autoscaler_loop_seconds
        return ceil(moment / loop) * loop

    def pod_waits(self, _pod: SimPod) -> None:
        """A pod fits nowhere."""
        self._look_at(self.world.now)

    def pods_changed(self, node: SimNode) -> None:
        """Pods came to a node or left it."""
        if not node.users:
            self._look_at(self.world.now + self.world.assumed.unneeded_seconds)

    def _look_at(self, moment: float) -> None:
        moment = self._grid(moment)
        if self.looks_at is None or moment < self.looks_at:
            self.looks_at = moment
            self.world.at(moment, self._look, moment)

    def _look(self, due: float) -> None:
        if self.looks_at != due:
            return
        self.looks_at = None
        world = self.world
        waiting = [p for p in world.unschedulable.values() if not p.state.nominated_node]
        need = ceil(len(waiting) / world._pods_per_node()) - self.booting
        for pod in waiting:
            pod.waited_for_node = True
        for _ in range(need):
            self.booting += 1
            self.scaled_up_at = world.now
            world.at(world.now + world.boot_seconds(), self._joined)
        for node in list(world.nodes.values()):
            if len(world.nodes) <= world.assumed.min_nodes:
                break
            if node.empty_since is not None:
                due = max(node.empty_since, self.scaled_up_at) + world.assumed.unneeded_seconds
                if due <= world.now:
                    world.remove_node(node)
                else:
                    self._look_at(due)

    def _joined(self, _: object) -> None:
        self.booting -= 1
        self.world.join()


def make_scaler(world: World) -> Scaler:
    """The autoscaler that the assumptions name."""
    return Scaler(world)
