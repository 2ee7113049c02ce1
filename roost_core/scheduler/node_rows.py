"""A node with its pods, and the sums of what the pods request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self, TypeVar

from roost_core.objects.node import Node
from roost_core.objects.pod import HostPort, Pod
from roost_core.objects.requests import CPU, MEMORY, PODS

_Key = TypeVar("_Key")


class NodeRow:
    """A node with its pods and their sums. To try a change, change a `copy`."""

    __slots__ = (
        "allocatable",
        "image_view",
        "labels",
        "max_pods",
        "name",
        "node",
        "nominated",
        "pods",
        "ports",
        "requested",
        "scored",
    )

    def __init__(self, node: Node) -> None:
        # Pods that are bound to the node, by key.
        self.pods: dict[str, Pod] = {}
        # Pods that aren't bound yet, and for which pre-emption makes room here.
        self.nominated: dict[str, Pod] = {}
        # How many pods use a port of the node.
        self.ports: dict[HostPort, int] = {}
        # The sum of the pods' requests, by resource. Filters use it.
        self.requested: dict[str, int] = {}
        # The same for scores. There, a container that requests no CPU or no memory counts as if it
        # requested some.
        self.scored: dict[str, int] = {}
        # By name of an image: its bytes, and how many nodes hold it, as kube-scheduler last counted
        # them for this node. None: the present counts are used. See `ClusterState.stale_images`.
        self.image_view: Mapping[str, tuple[int, int]] | None = None
        self.set_node(node)

    def set_node(self, node: Node) -> None:
        """Replace the node; its pods stay."""
        self.node = node
        self.name = node.name
        self.labels = node.labels
        self.allocatable = node.allocatable
        self.max_pods = node.allocatable.get(PODS, 0)

    def add(self, pod: Pod) -> None:
        """Add a pod."""
        self.pods[pod.key] = pod
        self._count(pod, 1)

    def remove(self, pod: Pod) -> None:
        """Remove a pod that was added before."""
        del self.pods[pod.key]
        self._count(pod, -1)

    def _count(self, pod: Pod, sign: int) -> None:
        """Add a pod's requests and ports to the sums (sign 1), or subtract them (sign -1)."""
        spec = pod.spec
        requested = self.requested
        scored = self.scored
        for name, amount in spec.requests:
            if amount:
                bump(requested, name, sign * amount)
                if name not in (CPU, MEMORY):
                    bump(scored, name, sign * amount)
        if spec.non_zero_cpu:
            bump(scored, CPU, sign * spec.non_zero_cpu)
        if spec.non_zero_memory:
            bump(scored, MEMORY, sign * spec.non_zero_memory)
        for port in spec.host_ports:
            bump(self.ports, port, sign)

    def copy(self) -> Self:
        """A copy of the row. Changes of its pods don't change this row; nominations are shared."""
        new = type(self).__new__(type(self))
        for name in (
            "node",
            "name",
            "labels",
            "allocatable",
            "max_pods",
            "nominated",
            "image_view",
        ):
            setattr(new, name, getattr(self, name))
        for name in ("pods", "ports", "requested", "scored"):
            setattr(new, name, dict(getattr(self, name)))
        return new


def bump(counts: dict[_Key, int], key: _Key, by: int) -> None:
    """Add to a count. A count of 0 is removed, so that adding -`by` restores the mapping."""
    number = counts.get(key, 0) + by
    if number:
        counts[key] = number
    else:
        counts.pop(key, None)
