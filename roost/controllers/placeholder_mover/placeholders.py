"""Group Roost's own placeholders by set, and say whether nodes have room for more."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from roost_core.objects.requests import PODS
from roost_core.placement.labels import (
    OWN_COMPONENT_LABEL,
    OWN_INSTANCE_LABEL,
    OWN_PART,
    OWN_PLACEHOLDER,
    PART_OF_LABEL,
    PLACEHOLDER_SET_LABEL,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from roost.controllers.contract.placeholder_sets import PlaceholderSet
    from roost.controllers.contract.snapshot import Snapshot
    from roost.controllers.placeholder_mover.pod_index import PodIndex
    from roost.controllers.placeholder_mover.settings import MoverSettings
    from roost_core.objects.node import Node
    from roost_core.objects.pod import Pod, PodSpec


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
