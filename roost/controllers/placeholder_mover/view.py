"""Bundle what every part of the mover's plan reads: pods, indexed from plan to plan, and placeholders by set.

The index is only a cache: after `follow`, it answers as one built from these pods alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import compress
from operator import is_not
from typing import TYPE_CHECKING, Final

from roost.controllers.contract.pod_kinds import is_popular_puller, is_puller
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

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from roost.controllers.contract.placeholder_sets import PlaceholderSet
    from roost.controllers.contract.snapshot import Moment, Snapshot
    from roost.controllers.placeholder_mover.node_fitness import NodeJudge
    from roost.controllers.placeholder_mover.settings import MoverSettings
    from roost_core.objects.node import Node
    from roost_core.objects.pod import Pod, PodSpec

_NO_PODS: Final[Mapping[str, Pod]] = {}


class PodIndex:
    """The pods of one snapshot."""

    def __init__(self) -> None:
        """Start empty."""
        self._reset()

    def _reset(self) -> None:
        self._pods: dict[str, Pod] = {}
        # Keys of pods with a set's label, whoever created them.
        self._placeholders: set[str] = set()
        # By key of a pod that pre-empted others: the node that it waits for.
        self._nominated: dict[str, str] = {}
        # By key of a puller's pod at work: its node.
        self._pulling: dict[str, str] = {}
        self._by_node: dict[str, dict[str, Pod]] = {}

    def follow(self, pods: Mapping[str, Pod]) -> None:
        """Index exactly these pods, by `namespace/name`; the cost is that of the changes, plus one comparison a pod."""
        try:
            indexed = self._pods
            # As a comprehension would find them; hubs have thousands of pods, of which few change between plans.
            for key in list(compress(pods, map(is_not, map(indexed.get, pods), pods.values()))):
                self._remove(key)
                self._add(key, pods[key])
            if len(indexed) != len(pods):
                for key in indexed.keys() - pods.keys():
                    self._remove(key)
        except Exception:
            # It may have been done by half: the next plan starts from scratch.
            self._reset()
            raise

    def _add(self, key: str, pod: Pod) -> None:
        self._pods[key] = pod
        if PLACEHOLDER_SET_LABEL in pod.labels:
            self._placeholders.add(key)
        node = pod.node_name
        if not node:
            if pod.nominated_node:
                self._nominated[key] = pod.nominated_node
            return
        if not pod.is_finished:
            self._by_node.setdefault(node, {})[key] = pod
        if pod.phase == "Pending" and (is_puller(pod.labels) or is_popular_puller(pod.labels)) and not _is_stuck(pod):
            self._pulling[key] = node

    def _remove(self, key: str) -> None:
        pod = self._pods.pop(key, None)
        if pod is None:
            return
        self._placeholders.discard(key)
        self._nominated.pop(key, None)
        self._pulling.pop(key, None)
        node_pods = self._by_node.get(pod.node_name)
        if node_pods is not None:
            node_pods.pop(key, None)
            if not node_pods:
                del self._by_node[pod.node_name]

    def placeholders(self, pods: Mapping[str, Pod]) -> Iterator[Pod]:
        """Yield the pods with a set's label in the order of `pods`, which must be those followed last."""
        return (pods[key] for key in filter(self._placeholders.__contains__, pods))

    @property
    def nominated_to(self) -> Collection[str]:
        """Nodes on which pods that pre-empted others wait for room."""
        return self._nominated.values()

    @property
    def pulling_on(self) -> frozenset[str]:
        """Nodes on which a puller's pod is at work: not done, and not failing to pull."""
        return frozenset(self._pulling.values())

    def on_node(self, node: str) -> Collection[Pod]:
        """The pods that take room on a node."""
        return self._by_node.get(node, _NO_PODS).values()


def _is_stuck(pod: Pod) -> bool:
    return any(container.waiting_reason in PULL_FAULTS for container in pod.containers)


@dataclass(slots=True)
class Placeholders:
    """The placeholders of one set."""

    # On a node, and not on their way out.
    bound: list[Pod] = field(default_factory=list)
    # All others: pending, being deleted, finished.
    unsettled: list[Pod] = field(default_factory=list)

    @property
    def spec(self) -> PodSpec | None:
        """The newest placeholder's spec; None when there is none."""
        newest = max((*self.bound, *self.unsettled), key=lambda pod: pod.created, default=None)
        return None if newest is None else newest.spec


class PlaceholderMap:
    """The placeholders of a release in one snapshot, by set."""

    def __init__(self, snapshot: Snapshot, settings: MoverSettings, pods: PodIndex) -> None:
        """Group the snapshot's placeholders; pods: has followed the snapshot."""
        self._pods = pods
        self.by_set: dict[str, Placeholders] = {each.name: Placeholders() for each in settings.sets}
        # Nodes on which a pod that pre-empted others waits for its room, or a placeholder makes room for one. A pod may
        # keep its nomination for ever, to a node that went long ago.
        self.preempted_on: set[str] = set(pods.nominated_to)
        owners = {each.name: _owner_of(each, snapshot) for each in settings.sets}
        for pod in pods.placeholders(snapshot.pods):
            name = pod.labels.get(PLACEHOLDER_SET_LABEL)
            if name is None or name not in owners or not _is_own(pod, snapshot, owners[name]):
                continue
            if pod.preempted and pod.node_name:
                self.preempted_on.add(pod.node_name)
            is_settled = pod.node_name and not pod.leaving and not pod.is_finished
            (self.by_set[name].bound if is_settled else self.by_set[name].unsettled).append(pod)

    def pods_on(self, node: str) -> Collection[Pod]:
        """The pods that take room on a node."""
        return self._pods.on_node(node)

    def has_room(self, node: Node, spec: PodSpec) -> bool:
        """Whether the node has the requested resources left for one more pod of this spec."""
        pods = self.pods_on(node.name)
        if len(pods) >= node.allocatable.get(PODS, 0):
            return False
        return all(
            amount <= node.allocatable.get(resource, 0) - _requested(pods, resource)
            for resource, amount in spec.requests
            if amount
        )


def _requested(pods: Iterable[Pod], resource: str) -> int:
    return sum(amount for pod in pods for name, amount in pod.spec.requests if name == resource)


def _owner_of(placeholder_set: PlaceholderSet, snapshot: Snapshot) -> tuple[str, str] | None:
    """Name and uid of the set's StatefulSet; None while there is none."""
    stateful_set = snapshot.stateful_sets.get(placeholder_set.stateful_set)
    return None if stateful_set is None or not stateful_set.uid else (stateful_set.name, stateful_set.uid)


def _is_own(pod: Pod, snapshot: Snapshot, owner: tuple[str, str] | None) -> bool:
    """Whether our StatefulSet created the pod: labels can be copied, its uid can't."""
    return (
        owner is not None
        and pod.namespace == snapshot.namespace
        and pod.labels.get(PART_OF_LABEL) == OWN_PART
        and pod.labels.get(OWN_COMPONENT_LABEL) == OWN_PLACEHOLDER
        and pod.labels.get(OWN_INSTANCE_LABEL) == snapshot.release
        and pod.owner is not None
        and pod.owner.kind == "StatefulSet"
        and (pod.owner.name, pod.owner.uid) == owner
    )


@dataclass(frozen=True, slots=True)
class View:
    """The cluster at one time, and what the plan derived from it."""

    snapshot: Snapshot
    settings: MoverSettings
    judge: NodeJudge
    placeholders: PlaceholderMap
    now: Moment
    _users: dict[str, int] = field(default_factory=dict)

    def is_full(self, placeholder_set: PlaceholderSet, node: Node) -> bool:
        """Whether the node has no room for one more placeholder of the set."""
        spec = self.placeholders.by_set[placeholder_set.name].spec
        return spec is not None and not self.placeholders.has_room(node, spec)

    def count_users(self, node: str) -> int:
        """Count the pods of users on a node."""
        if node not in self._users:
            classes = self.settings.classifier()
            pod_classes = (
                classes.classify(pod.labels, pod.namespace, self.snapshot.namespaces)
                for pod in self.placeholders.pods_on(node)
                if PLACEHOLDER_SET_LABEL not in pod.labels
            )
            self._users[node] = sum(
                pod_class is not None and pod_class.name in self.settings.user_classes for pod_class in pod_classes
            )
        return self._users[node]
