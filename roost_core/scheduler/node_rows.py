"""One node with its pods, and the sums of what they request, take and count in scores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self, TypeVar

from roost_core.objects.node import Node
from roost_core.objects.pod import HostPort, Pod
from roost_core.objects.requests import CPU, MEMORY, PODS

_Key = TypeVar("_Key")


class NodeRow:
    """One node with what its pods add up to. `copy` gives one to try things on."""

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
        self.pods: dict[str, Pod] = {}
        # Bound nowhere yet; pre-emption makes room for them here.
        self.nominated: dict[str, Pod] = {}
        self.ports: dict[HostPort, int] = {}
        # What its pods request.
        self.requested: dict[str, int] = {}
        # The same as scores count it: containers that request no CPU or memory count, too.
        self.scored: dict[str, int] = {}
        # (bytes, nodes) by image name, as this node's entry saw them; None: always the present
        # ones.
        self.image_view: Mapping[str, tuple[int, int]] | None = None
        self.set_node(node)

    def set_node(self, node: Node) -> None:
        """Replace what is known of the node itself."""
        self.node = node
        self.name = node.name
        self.labels = node.labels
        self.allocatable = node.allocatable
        self.max_pods = node.allocatable.get(PODS, 0)

    def add(self, pod: Pod) -> None:
        """Count a pod in."""
        self.pods[pod.key] = pod
        self._count(pod, 1)

    def remove(self, pod: Pod) -> None:
        """Count a pod out that was counted in."""
        del self.pods[pod.key]
        self._count(pod, -1)

    def _count(self, pod: Pod, sign: int) -> None:
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
        """A row of its own with the same pods; nominations are shared."""
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
    """Add to a count; zero is the same as absent, so that going back gives what was there."""
    number = counts.get(key, 0) + by
    if number:
        counts[key] = number
    else:
        counts.pop(key, None)
