"""Let the autoscaler look at the world whenever a real one could find something new."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from simulator.autoscaler import make_node_scaler

if TYPE_CHECKING:
    from simulator.world import SimNode, World


class Scaling:
    """The autoscaler of one replay, from the moment at which it is made."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._scaler = make_node_scaler(world.assumed, world.template("template"), world.now)
        # Nodes on their way, and when each was asked for.
        self.booting: dict[str, float] = {}
        self._asked = 0
        self._looks_at: float | None = None

    def pod_waits(self) -> None:
        """A pod fits nowhere."""
        self._look_at(self._scaler.turn_after(self._world.now, pods_wait=True))

    def pods_changed(self, node: SimNode) -> None:
        """Pods came to a node, or left it."""
        now = self._world.now
        self._scaler.pods_changed(node.name, now)
        # Users hold their node; one with placeholders alone may also wait for room elsewhere.
        if not node.users or self._scaler.room_matters:
            self._look_at(self._scaler.turn_after(now, pods_wait=False))

    def nodes_changed(self) -> None:
        """A node came."""
        self._look_at(self._scaler.turn_after(self._world.now, pods_wait=False))

    def _look_at(self, moment: float | None) -> None:
        if moment is not None and moment < inf and (self._looks_at is None or moment < self._looks_at):
            self._looks_at = moment
            self._world.at(moment, self._look, moment)

    def _look(self, due: float) -> None:
        if self._looks_at != due:
            # It looked earlier.
            return
        self._looks_at = None
        world, now = self._world, self._world.now
        waiting = [pod.state for pod in world.unschedulable.values()]
        found = self._scaler.look(world.state, waiting, self.booting, now)
        for name in found.give_up:
            del self.booting[name]
        for _ in range(found.request):
            self._asked += 1
            name = f"asked-{self._asked}"
            self.booting[name] = now
            world.at(now + world.boot_seconds(), self._joined, name)
        self._look_at(found.look_again)
        for name in found.remove:
            node = world.nodes.get(name)
            if node is not None:
                world.remove_node(node)

    def _joined(self, name: str) -> None:
        # One that was given up doesn't come.
        if self.booting.pop(name, None) is not None:
            self._world.join()
