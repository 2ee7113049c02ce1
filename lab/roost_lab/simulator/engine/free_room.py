"""Try pods on existing, booting or hypothetical nodes, as autoscalers do: with filters alone.

Required terms about other pods are not looked at: no policy has any.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from roost_core.objects.node import Node
from roost_core.objects.pod import Pod, PodSpec
from roost_core.objects.requests import PODS
from roost_core.objects.selectors import Taint, node_matches, untolerated
from roost_core.placement.labels import STARTUP_PREFIXES
from roost_core.scheduler.node_rows import NodeRow

_DAEMON_SET: Final = "DaemonSet"


class Room:
    """A node with what is left on it, to try pods on."""

    __slots__ = ("free", "free_pods", "labels", "name", "pods", "taints")

    def __init__(self, name: str, node: Node, *, ignored_taints: tuple[str, ...] = ()) -> None:
        self.name = name
        self.labels = node.labels
        self.taints: tuple[Taint, ...] = node.taints
        if ignored_taints and self.taints:
            self.taints = tuple(
                taint for taint in self.taints if not taint.key.startswith(ignored_taints)
            )
        self.free = dict(node.allocatable)
        self.free_pods = self.free.pop(PODS, 0)
        # Pods that were placed here.
        self.pods: list[Pod] = []

    @classmethod
    def of(cls, row: NodeRow, ignored_taints: tuple[str, ...] = ()) -> Room:
        """A node of the cluster; pods nominated to it count as placed."""
        room = cls(row.name, row.node, ignored_taints=ignored_taints)
        free = room.free
        for name, amount in row.requested.items():
            free[name] = free.get(name, 0) - amount
        room.free_pods -= len(row.pods)
        for pod in row.nominated.values():
            room.take(pod)
        room.pods.clear()
        return room

    def fits(self, spec: PodSpec) -> bool:
        """Whether a pod with that spec fits here."""
        if self.free_pods < 1:
            return False
        free = self.free
        for name, amount in spec.requests:
            if amount and amount > free.get(name, 0):
                return False
        return not (self.taints and untolerated(self.taints, spec.tolerations)) and node_matches(
            spec, self.name, self.labels
        )

    def take(self, pod: Pod) -> None:
        """Place a pod here."""
        free = self.free
        for name, amount in pod.spec.requests:
            free[name] = free.get(name, 0) - amount
        self.free_pods -= 1
        self.pods.append(pod)

    def give_back(self, pod: Pod) -> None:
        """Remove the last pod that was placed."""
        for name, amount in pod.spec.requests:
            self.free[name] += amount
        self.free_pods += 1
        self.pods.pop()


def place(pods: Iterable[Pod], rooms: Sequence[Room]) -> list[Pod]:
    """Put each pod into the first room where it fits; returns those that fit nowhere."""
    unplaced = []
    hopeless: set[int] = set()
    for pod in pods:
        # If one pod of a spec fits nowhere, no other of the same spec does.
        if id(pod.spec) in hopeless:
            unplaced.append(pod)
            continue
        for room in rooms:
            if room.fits(pod.spec):
                room.take(pod)
                break
        else:
            hopeless.add(id(pod.spec))
            unplaced.append(pod)
    return unplaced


def place_all(pods: Iterable[Pod], find: Callable[[Pod], Room | None]) -> bool:
    """Put every pod into the room that `find` gives; if one has none, leave the rooms as they were:
    False.
    """
    taken: list[tuple[Room, Pod]] = []
    for pod in pods:
        room = find(pod)
        if room is not None:
            room.take(pod)
            taken.append((room, pod))
        else:
            for used, placed in reversed(taken):
                used.give_back(placed)
            return False
    return True


def is_daemon(pod: Pod) -> bool:
    """Whether a DaemonSet owns the pod: it is deleted with its node, and requests none."""
    return pod.owner is not None and pod.owner.kind == _DAEMON_SET


def pods_waiting(unschedulable: Iterable[Pod], cutoff: int) -> list[Pod]:
    """The pods that may request a node, the highest priority first.

    Not those that wait for a pre-emption to make room, those below the cut-off, and DaemonSets'
    pods.
    """
    unbound = (
        pod
        for pod in unschedulable
        if not pod.nominated_node and not pod.node_name and not is_daemon(pod)
    )
    return sorted((pod for pod in unbound if pod.priority >= cutoff), key=lambda pod: -pod.priority)


def rooms_coming(template: Node, number: int, first: int = 0) -> list[Room]:
    """`number` nodes on their way, after the template; startup taints are ignored."""
    return [
        Room(f"coming {first + index}", template, ignored_taints=STARTUP_PREFIXES)
        for index in range(number)
    ]
