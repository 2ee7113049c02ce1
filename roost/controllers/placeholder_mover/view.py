"""Bundle what every part of the mover's plan reads."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from roost_core.placement.labels import PLACEHOLDER_SET_LABEL

if TYPE_CHECKING:
    from roost.controllers.contract.placeholder_sets import PlaceholderSet
    from roost.controllers.contract.snapshot import Moment, Snapshot
    from roost.controllers.placeholder_mover.node_fitness import NodeJudge
    from roost.controllers.placeholder_mover.placeholders import PlaceholderMap
    from roost.controllers.placeholder_mover.settings import MoverSettings
    from roost_core.objects.node import Node


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
