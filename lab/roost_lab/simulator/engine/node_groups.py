"""The groups of nodes in a replay: what a new node of each looks like, and how many there may be.

A group is what an autoscaler treats as one: a pool, or a pool's part in one zone, for a cloud's node group has one
zone. Without a pools file there is one group, of the assumptions' only pool.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import cycle
from typing import TYPE_CHECKING, Final

from roost_core.objects.node import Node
from roost_core.objects.requests import CPU, EPHEMERAL_STORAGE, MEMORY, PODS
from roost_core.objects.selectors import Taint
from roost_core.placement.labels import HOSTNAME_LABEL
from roost_lab.simulator.engine.pool import node_labels

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from roost_core.scheduler.state import ClusterState
    from roost_lab.simulator.setup.assumptions import Assumptions
    from roost_lab.simulator.setup.policy import Policy
    from roost_lab.simulator.setup.pools import Pool

ZONE_LABEL: Final = "topology.kubernetes.io/zone"
_EFFECT: Final = "NoSchedule"
_ENDLESS_BYTES: Final = 10**15


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeGroup:
    """One group."""

    # Of its pool; "" without a pools file.
    pool: str = ""
    zone: str = ""
    # With the machine, the boot time and the limits of its pool.
    assumed: Assumptions
    labels: Mapping[str, str]
    taints: tuple[Taint, ...] = ()
    # Extended resources of a node.
    resources: tuple[tuple[str, int], ...] = ()
    # Of a node for an hour.
    price: float = 0.0
    interruptions_per_hour: float = 0.0
    priority: int | None = None

    @property
    def name(self) -> str:
        """Pool and zone."""
        return f"{self.pool}-{self.zone}" if self.zone else self.pool


def make_node(policy: Policy, group: NodeGroup, name: str, now: float) -> Node:
    """A new node as its group's template describes it, with its taints."""
    taints = group.taints
    # Whoever gives new nodes the startup taint does so in the pools that pullers bring images to.
    if not group.pool or any(puller.node_selector.items() <= group.labels.items() for puller in policy.pullers):
        taints = (*taints, *(Taint(taint, "", _EFFECT) for taint in policy.startup_taints))
    assumptions = group.assumed
    allocatable = {
        CPU: assumptions.node_cpu_millicores,
        MEMORY: assumptions.node_memory_bytes,
        PODS: assumptions.node_pods,
        EPHEMERAL_STORAGE: assumptions.node_disk_bytes or _ENDLESS_BYTES,
        **dict(group.resources),
    }
    labels = {**group.labels, HOSTNAME_LABEL: name}
    return Node(
        name,
        labels,
        taints,
        uid=name,
        created=now,
        allocatable=allocatable,
        conditions={"Ready": "True"},
        ready_since=now,
    )


def make_groups(policy: Policy, assumptions: Assumptions) -> tuple[NodeGroup, ...]:
    """All groups of a replay; at least one."""
    if assumptions.pools is None:
        return (NodeGroup(assumed=assumptions, labels=node_labels(policy)),)
    return tuple(_group(pool, zone, assumptions) for pool in assumptions.pools.pools for zone in pool.zones or ("",))


def _group(pool: Pool, zone: str, assumptions: Assumptions) -> NodeGroup:
    labels = dict(pool.labels)
    if zone:
        labels[ZONE_LABEL] = zone
    return NodeGroup(
        pool=pool.name,
        zone=zone,
        assumed=replace(
            assumptions,
            node_cpu_millicores=pool.cpu_millicores,
            node_memory_bytes=pool.memory_bytes,
            node_pods=pool.pods,
            node_disk_bytes=pool.disk_bytes,
            min_nodes=pool.min_nodes,
            max_nodes=pool.max_nodes,
            boot_median_seconds=pool.boot_seconds,
            boot_sigma=pool.boot_sigma,
        ),
        labels=labels,
        taints=pool.taints,
        resources=pool.resources,
        price=pool.price,
        interruptions_per_hour=pool.interruptions_per_hour,
        priority=pool.priority,
    )


def most_users_per_node(assumptions: Assumptions) -> int:
    """The most users that any node can hold, at least 1: for bounds, which must hold for every machine and profile."""
    profiles = () if assumptions.pools is None else assumptions.pools.profiles
    cpu, memory = assumptions.user_cpu_millicores, assumptions.user_memory_bytes
    asked = [
        (
            cpu if profile.cpu_millicores is None else profile.cpu_millicores,
            memory if profile.memory_bytes is None else profile.memory_bytes,
        )
        for profile in profiles
    ]
    return max(_users(assumptions, *each) for each in asked or [(cpu, memory)])


def _users(node: Assumptions, cpu_millicores: int, memory_bytes: int) -> int:
    cpu, memory = node.node_cpu_millicores // max(1, cpu_millicores), node.node_memory_bytes // max(1, memory_bytes)
    return max(1, min(node.node_pods, cpu, memory))


@dataclass(slots=True)
class Fleet:
    """All groups as an autoscaler sees them, with the group of each node that is there or on its way."""

    groups: Sequence[NodeGroup]
    # A new node of each group.
    templates: Sequence[Node]
    # Name of a node, or of one that boots -> place of its group; absent: the first.
    places: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of_one(cls, assumptions: Assumptions, template: Node) -> Fleet:
        """One group."""
        return cls((NodeGroup(assumed=assumptions, labels=template.labels),), (template,))

    def place_of(self, node: str) -> int:
        """Place of a node's group."""
        return self.places.get(node, 0)

    def pool_of(self, node: str) -> str:
        """The name of a node's pool."""
        return self.groups[self.places.get(node, 0)].pool

    def by_pool(self) -> dict[str, list[int]]:
        """Each pool's groups, by their places."""
        places: dict[str, list[int]] = {}
        for place, group in enumerate(self.groups):
            places.setdefault(group.pool, []).append(place)
        return places

    def places_of(self, pool: str) -> Iterator[int]:
        """The places of a pool's groups, over and over, so that new nodes are spread over its zones."""
        return cycle(self.by_pool()[pool])

    def count_by_group(self, nodes: Iterable[str]) -> list[int]:
        """How many of the nodes are in each group."""
        counts = [0] * len(self.groups)
        for node in nodes:
            counts[self.places.get(node, 0)] += 1
        return counts

    def count_by_pool(self, nodes: Iterable[str]) -> dict[str, int]:
        """How many of the nodes are in each pool."""
        counts = {group.pool: 0 for group in self.groups}
        for node in nodes:
            counts[self.pool_of(node)] += 1
        return counts

    def room_by_pool(self, state: ClusterState, booting: Iterable[str]) -> dict[str, int]:
        """How many nodes each pool may still get; below 0 where there are too many."""
        there = self.count_by_pool([*state.rows, *booting])
        return {group.pool: group.assumed.max_nodes - there[group.pool] for group in self.groups}

    def spare_by_pool(self, state: ClusterState, booting: Iterable[str]) -> dict[str, int]:
        """How many nodes each pool has beyond its least; draining ones aren't counted."""
        staying = (name for name, row in state.rows.items() if not row.node.unschedulable)
        there = self.count_by_pool([*staying, *booting])
        return {group.pool: there[group.pool] - group.assumed.min_nodes for group in self.groups}
