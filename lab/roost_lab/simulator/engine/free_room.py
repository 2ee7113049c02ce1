"""Try pods on existing, booting or hypothetical nodes, as autoscalers do: with filters alone.

Required pod affinity and anti-affinity are left out, since no policy has any.
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
    """A node with the resources that are left on it, to try pods on."""

    __slots__ = ("free", "free_pods", "labels", "name", "pods", "taints")

    def __init__(self, name: str, node: Node, *, ignored_taints: tuple[str, ...] = ()) -> None:
        """Begin without pods. ignored_taints: beginnings of the keys of taints to leave out."""
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
        """The room of a node of the cluster. Pods nominated to it take room, too."""
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
        if self.taints and untolerated(self.taints, spec.tolerations):
            return False
        return node_matches(spec, self.name, self.labels)

    def take(self, pod: Pod) -> None:
        """Place a pod here."""
        free = self.free
        for name, amount in pod.spec.requests:
            free[name] = free.get(name, 0) - amount
        self.free_pods -= 1
        self.pods.append(pod)

    def give_back(self, pod: Pod) -> None:
        """Remove a pod, which must be the last that was placed."""
        for name, amount in pod.spec.requests:
            self.free[name] += amount
        self.free_pods += 1
        self.pods.pop()


def place(pods: Iterable[Pod], rooms: Sequence[Room]) -> list[Pod]:
    """Put each pod into the first room where it fits; returns those that fit nowhere."""
    unplaced = []
    # If a pod fits nowhere, no other pod with the same spec does: rooms only get fuller.
    specs_without_room: set[int] = set()
    for pod in pods:
        room = None
        if id(pod.spec) not in specs_without_room:
            room = _first_room(pod.spec, rooms)
        if room is not None:
            room.take(pod)
        else:
            specs_without_room.add(id(pod.spec))
            unplaced.append(pod)
    return unplaced


def _first_room(spec: PodSpec, rooms: Sequence[Room]) -> Room | None:
    """The first room where a pod with that spec fits; None where it fits nowhere."""
    for room in rooms:
        if room.fits(spec):
            return room
    return None


def place_all(pods: Iterable[Pod], find: Callable[[Pod], Room | None]) -> bool:
    """Put every pod into the room that `find` gives for it; returns whether all have one.

    If `find` gives None for a pod, all rooms are left as they were.
    """
    placed: list[tuple[Room, Pod]] = []
    for pod in pods:
        room = find(pod)
        if room is None:
            for used_room, placed_pod in reversed(placed):
                used_room.give_back(placed_pod)
            return False
        room.take(pod)
        placed.append((room, pod))
    return True


def is_daemon(pod: Pod) -> bool:
    """Whether a DaemonSet owns the pod: it goes with its node, and needs no other node."""
    return pod.owner is not None and pod.owner.kind == _DAEMON_SET


def pods_waiting(unschedulable: Iterable[Pod], cutoff: int) -> list[Pod]:
    """The pods for which an autoscaler adds nodes, the highest priority first.

    Pods that wait for a pre-emption to make room aren't among them, nor are DaemonSets' pods.

    cutoff: nor are pods of a lower priority.
    """
    waiting = []
    for pod in unschedulable:
        has_node = bool(pod.nominated_node or pod.node_name)
        if not has_node and not is_daemon(pod) and pod.priority >= cutoff:
            waiting.append(pod)
    return sorted(waiting, key=lambda pod: -pod.priority)


def rooms_coming(template: Node, number: int, first: int = 0) -> list[Room]:
    """The rooms of `number` nodes that have not joined yet.

    template: what they will be like; its startup taints are left out. first: the number in the name
    of the first room.
    """
    return [
        Room(f"coming {first + index}", template, ignored_taints=STARTUP_PREFIXES)
        for index in range(number)
    ]
