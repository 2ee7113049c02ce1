"""Model the StatefulSets of placeholders: each keeps `replicas` pods, and creates them again."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from roost_lab.simulator.engine.entities import SimPod
    from roost_lab.simulator.setup.policy import PlaceholderStatefulSet


class PlaceholderSets:
    """All sets of one replay."""

    def __init__(
        self,
        sets: Iterable[PlaceholderStatefulSet],
        post: Callable[[PlaceholderStatefulSet, str], SimPod],
        remove: Callable[[SimPod], None],
    ) -> None:
        """post: create a pod of a set by its name. remove: delete one."""
        self._post = post
        self._remove = remove
        # All three by the set's name. The pods of a set are by their own names.
        self.sets: dict[str, PlaceholderStatefulSet] = {
            placeholders.name: placeholders for placeholders in sets
        }
        self.replicas: dict[str, int] = {
            name: placeholders.replicas for name, placeholders in self.sets.items()
        }
        self.pods: dict[str, dict[str, SimPod]] = {name: {} for name in self.sets}

    def fill(self, name: str) -> None:
        """Create or delete pods up to the set's replicas; the last ones are deleted first."""
        replicas = self.replicas[name]
        pods = self.pods[name]
        placeholders = self.sets[name]
        for index in range(replicas):
            pod_name = f"{name}-{index}"
            if pod_name not in pods:
                pod = self._post(placeholders, pod_name)
                pod.owner = placeholders
                pods[pod_name] = pod
        for index in range(len(pods) - 1, replicas - 1, -1):
            surplus = pods.pop(f"{name}-{index}", None)
            if surplus is not None:
                # Without an owner, a pod that is removed isn't created again.
                surplus.owner = None
                self._remove(surplus)

    def scale(self, name: str, replicas: int) -> None:
        """Change a set's replicas."""
        self.replicas[name] = replicas
        self.fill(name)

    def pod_gone(self, pod: SimPod) -> None:
        """A placeholder was deleted: its set creates it again."""
        if pod.owner is not None:
            self.pods[pod.owner.name].pop(pod.state.name, None)
            self.fill(pod.owner.name)
