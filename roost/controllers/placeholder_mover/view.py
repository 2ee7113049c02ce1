"""What every part of the mover's plan reads: the cluster at one time, with pods by node and
placeholders by set.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from roost.controllers.contract.pod_kinds import is_popular_puller, is_puller
from roost.controllers.contract.snapshot import Moment, Snapshot
from roost.controllers.placeholder_mover.settings import MoverSettings
from roost_core.objects.node import Node
from roost_core.objects.pod import Pod, PodSpec
from roost_core.objects.requests import PODS
from roost_core.placement.kubelet_pulls import PULL_FAULTS
from roost_core.placement.labels import (
    OWN_COMPONENT_LABEL,
    OWN_INSTANCE_LABEL,
    OWN_PART,
    OWN_PLACEHOLDER,
    PART_OF_LABEL,
    PLACEHOLDER_SET_LABEL,
)
from roost_core.release.placeholder_sets import PlaceholderSet


@dataclass(slots=True)
class Placeholders:
    """The placeholders of one set."""

    # On a node, and not on their way out.
    bound: list[Pod] = field(default_factory=list)
    # All others: pending, being deleted, finished.
    unsettled: list[Pod] = field(default_factory=list)
    # Of both: namespace/name.
    keys: set[str] = field(default_factory=set)

    @property
    def spec(self) -> PodSpec | None:
        """The newest placeholder's spec; None when there is none."""
        newest = max((*self.bound, *self.unsettled), key=lambda pod: pod.created, default=None)
        return None if newest is None else newest.spec


class MoverView:
    """The cluster at one time."""

    def __init__(self, snapshot: Snapshot, settings: MoverSettings, now: Moment) -> None:
        self.snapshot = snapshot
        self.settings = settings
        self.now = now
        # Seconds until another plan may differ although nothing in the cluster changes.
        self.waits: list[float] = []
        self.by_set: dict[str, Placeholders] = {
            placeholder_set.name: Placeholders() for placeholder_set in settings.sets
        }
        # None without sets: then only marks are removed.
        self.newest_first: Sequence[Node] = sorted(
            snapshot.nodes.values() if settings.sets else (),
            key=lambda node: (-node.created, node.name),
        )
        # Nodes where a pod pre-empted others: it waits for their room, or a placeholder is leaving
        # for it. Some may be gone: a pod can keep its nomination for ever.
        self.preempted_on: set[str] = set()
        # Nodes on which a puller's pod is at work: not done, and not failing to pull.
        self.pulling_on: set[str] = set()
        # Pods that take room, by node.
        self._pods_on: dict[str, list[Pod]] = {}
        self._users: dict[str, int] = {}
        sets = {placeholder_set.name: placeholder_set for placeholder_set in settings.sets}
        for pod in snapshot.pods.values():
            node = pod.node_name
            if not node:
                if pod.nominated_node:
                    self.preempted_on.add(pod.nominated_node)
            elif not pod.is_finished:
                self._pods_on.setdefault(node, []).append(pod)
                if pod.phase == "Pending" and _is_pulling(pod):
                    self.pulling_on.add(node)
            placeholder_set = sets.get(pod.labels.get(PLACEHOLDER_SET_LABEL, ""))
            if placeholder_set is None or not _is_own(pod, snapshot, placeholder_set):
                continue
            if pod.preempted and node:
                self.preempted_on.add(node)
            placeholders = self.by_set[placeholder_set.name]
            placeholders.keys.add(pod.key)
            is_settled = node and not pod.leaving and not pod.is_finished
            (placeholders.bound if is_settled else placeholders.unsettled).append(pod)

    def count_room(self, node: Node, spec: PodSpec) -> int:
        """Count how many more pods of this spec the node has room for, by what pods request."""
        left = self._left_on(node)
        counts = [node.allocatable.get(PODS, 0) - len(self._pods_on.get(node.name, ()))]
        counts += [
            left[resource] // amount
            for resource, amount in spec.requests
            if amount and resource not in self.snapshot.claimable
        ]
        return max(0, min(counts))

    def requested_share(self, node: Node) -> float:
        """The greatest share of one of the node's resources that its pods request, 0.0 to 1.0."""
        left = self._left_on(node)
        return max(
            (
                1.0 - left[resource] / amount
                for resource, amount in node.allocatable.items()
                if amount
            ),
            default=0.0,
        )

    def _left_on(self, node: Node) -> Counter[str]:
        """What is left of each resource; below 0 if more is requested."""
        left = Counter(node.allocatable)
        for pod in self._pods_on.get(node.name, ()):
            for resource, amount in pod.spec.requests:
                left[resource] -= amount
        return left

    def has_room(self, node: Node, spec: PodSpec) -> bool:
        """Whether the node has the requested resources left for one more pod of this spec."""
        return self.count_room(node, spec) > 0

    def is_full(self, placeholder_set: PlaceholderSet, node: Node) -> bool:
        """Whether the node has no room for one more placeholder of the set."""
        spec = self.by_set[placeholder_set.name].spec
        return spec is not None and not self.has_room(node, spec)

    def count_users(self, node: str) -> int:
        """Count the pods of users on a node."""
        if node not in self._users:
            namespaces = self.snapshot.namespaces
            pod_classes = (
                self.settings.class_of(pod, namespaces)
                for pod in self._pods_on.get(node, ())
                if PLACEHOLDER_SET_LABEL not in pod.labels
            )
            self._users[node] = sum(
                pod_class is not None and pod_class.name in self.settings.user_classes
                for pod_class in pod_classes
            )
        return self._users[node]

    def is_unused(self, placeholder_set: PlaceholderSet, node: Node) -> bool:
        """Whether the node holds nothing but placeholders and what runs on each node.

        Placeholders of other sets, and of other hubs' releases, count alike.
        """
        placeholders = self.by_set[placeholder_set.name]
        return all(
            pod.key in placeholders.keys
            or _is_placeholder(pod)
            or (pod.owner is not None and pod.owner.kind in _ON_EACH_NODE)
            for pod in self._pods_on.get(node.name, ())
        )

    def count_others(self, placeholder_set: PlaceholderSet, node: Node) -> int:
        """Count the placeholders of other sets and of other releases on a node."""
        keys = self.by_set[placeholder_set.name].keys
        return sum(
            pod.key not in keys and _is_placeholder(pod) for pod in self._pods_on.get(node.name, ())
        )


# Owners of pods that leave with their node: static pods belong to a Node.
_ON_EACH_NODE: Final = frozenset({"DaemonSet", "Node"})


def _is_pulling(pod: Pod) -> bool:
    """Whether it is a puller's pod whose pulls don't fail."""
    if not (is_puller(pod.labels) or is_popular_puller(pod.labels)):
        return False
    return all(container.waiting_reason not in PULL_FAULTS for container in pod.containers)


def _is_placeholder(pod: Pod) -> bool:
    """Whether its labels say that it is a placeholder of a release of Roost."""
    labels = pod.labels
    return (
        labels.get(PART_OF_LABEL) == OWN_PART and labels.get(OWN_COMPONENT_LABEL) == OWN_PLACEHOLDER
    )


def _is_own(pod: Pod, snapshot: Snapshot, placeholder_set: PlaceholderSet) -> bool:
    """Whether the set's StatefulSet created the pod: labels can be copied, its uid can't."""
    stateful_set = snapshot.stateful_sets.get(placeholder_set.stateful_set)
    return (
        stateful_set is not None
        and bool(stateful_set.uid)
        and pod.namespace == snapshot.namespace
        and pod.labels.get(PART_OF_LABEL) == OWN_PART
        and pod.labels.get(OWN_COMPONENT_LABEL) == OWN_PLACEHOLDER
        and pod.labels.get(OWN_INSTANCE_LABEL) == snapshot.release
        and pod.owner is not None
        and (pod.owner.kind, pod.owner.name, pod.owner.uid)
        == ("StatefulSet", stateful_set.name, stateful_set.uid)
    )
