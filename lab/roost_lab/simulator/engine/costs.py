"""Add up what nodes cost, and share it out: to users by hub and image, to builds, to placeholders, and to nobody.

A node's price is shared by the pods on it after their dominant share, the greatest of their requests as a share of what
the node has; where those add up to more than the node, in proportion. What is left is idle. So the parts of each moment
add up to the price of the nodes that are there, and all costs to the whole.
Each call takes constant time: a node has a meter of what a pod with all of it would have paid since it joined.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from roost_lab.simulator.engine.pods import BUILD, PLACEHOLDER, USER

if TYPE_CHECKING:
    from collections.abc import Mapping

    from roost_lab.simulator.engine.entities import SimNode, SimPod
    from roost_lab.simulator.engine.node_groups import NodeGroup

USERS, BUILDS, PLACEHOLDERS, IDLE = "users", "builds", "placeholders", "idle"
BY_USE, BY_POOL, BY_HUB, BY_IMAGE = "use", "pool", "hub", "image"
# Images by name, the costliest; the others are one entry.
MOST_IMAGES: Final = 50
OTHERS: Final = "all others"
_USE_OF: Final = {USER: USERS, BUILD: BUILDS, PLACEHOLDER: PLACEHOLDERS}
_SECONDS_AN_HOUR: Final = 3600.0


class _NodeMeter:
    __slots__ = ("meter", "now", "pods", "pool", "price", "shares")

    def __init__(self, group: NodeGroup, now: float) -> None:
        self.pool = group.pool
        # A second.
        self.price = group.price / _SECONDS_AN_HOUR
        self.now = now
        # What a pod with a share of 1 would have paid.
        self.meter = 0.0
        # Pod's key -> its share, and the meter when it came.
        self.pods: dict[str, tuple[float, float]] = {}
        self.shares = 0.0


class CostMeter:
    """The costs of one replay. Time never goes back."""

    def __init__(self, hub: str) -> None:
        """hub: of attempts that name none."""
        self._hub = hub
        self._nodes: dict[str, _NodeMeter] = {}
        self._users: dict[str, SimPod] = {}
        self._is_closed = False
        self._costs: dict[str, dict[str, float]] = {
            BY_USE: dict.fromkeys((USERS, BUILDS, PLACEHOLDERS, IDLE), 0.0),
            BY_POOL: {},
            BY_HUB: {},
            BY_IMAGE: {},
        }

    def joined(self, node: SimNode, group: NodeGroup, now: float) -> None:
        """A node is paid from now on."""
        if not self._is_closed:
            self._nodes[node.name] = _NodeMeter(group, now)

    def bound(self, pod: SimPod, node: SimNode, now: float) -> None:
        """A pod came to a node."""
        meter = self._nodes.get(node.name)
        if meter is None:
            return
        self._pass(meter, now)
        share = dominant_share(dict(pod.state.spec.requests), node.state.allocatable)
        meter.pods[pod.key] = share, meter.meter
        meter.shares += share
        self._users[pod.key] = pod

    def left(self, pod: SimPod, node: SimNode, now: float) -> None:
        """A pod left a node."""
        meter = self._nodes.get(node.name)
        if meter is not None and pod.key in meter.pods:
            self._pass(meter, now)
            self._charge(meter, pod)

    def node_left(self, node: SimNode, now: float) -> None:
        """A node is paid no longer; the pods on it leave."""
        meter = self._nodes.pop(node.name, None)
        if meter is not None:
            self._pass(meter, now)
            for key in list(meter.pods):
                self._charge(meter, self._users[key])

    def spent(self, now: float) -> float:
        """What all nodes have cost until now."""
        return sum(self._costs[BY_POOL].values()) + sum(
            meter.price * (now - meter.now) for meter in self._nodes.values()
        )

    def close(self, now: float) -> dict[str, dict[str, float]]:
        """All costs until now: by use, by pool, and of users by hub and by image. What comes later costs nothing."""
        for meter in self._nodes.values():
            self._pass(meter, now)
            for key in list(meter.pods):
                self._charge(meter, self._users[key])
        self._nodes.clear()
        self._is_closed = True
        ranked = sorted(self._costs[BY_IMAGE].items(), key=lambda entry: (-entry[1], entry[0]))
        rest = sum(cost for _, cost in ranked[MOST_IMAGES:])
        images = dict(ranked[:MOST_IMAGES]) | ({OTHERS: rest} if ranked[MOST_IMAGES:] else {})
        return {**self._costs, BY_IMAGE: images}

    def _pass(self, meter: _NodeMeter, now: float) -> None:
        spent = meter.price * (now - meter.now)
        meter.now = now
        meter.meter += spent / max(1.0, meter.shares)
        self._add(BY_POOL, meter.pool, spent)
        self._add(BY_USE, IDLE, spent * max(0.0, 1.0 - meter.shares))

    def _charge(self, meter: _NodeMeter, pod: SimPod) -> None:
        share, since = meter.pods.pop(pod.key)
        # Without a remainder of rounding.
        meter.shares = meter.shares - share if meter.pods else 0.0
        del self._users[pod.key]
        cost = share * (meter.meter - since)
        self._add(BY_USE, _USE_OF[pod.kind], cost)
        if pod.launch is not None:
            self._add(BY_HUB, pod.launch.attempt.hub or self._hub, cost)
            self._add(BY_IMAGE, pod.launch.attempt.image, cost)

    def _add(self, table: str, name: str, cost: float) -> None:
        costs = self._costs[table]
        costs[name] = costs.get(name, 0.0) + cost


def dominant_share(requests: Mapping[str, int], allocatable: Mapping[str, int]) -> float:
    """The greatest of the requests as a share of what the node has, 0..1."""
    return min(
        1.0, max((requests[name] / has for name, has in allocatable.items() if has and name in requests), default=0.0)
    )
