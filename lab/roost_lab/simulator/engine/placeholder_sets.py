"""Model the StatefulSet controller for sets of placeholders: `replicas` pods, created again when they are deleted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from roost_lab.simulator.engine.entities import SimPod
    from roost_lab.simulator.engine.releases import HubRelease
    from roost_lab.simulator.setup.policy import SimulatedSet


class PlaceholderSets:
    """All sets of one replay."""

    def __init__(self, release: HubRelease, sets: Iterable[SimulatedSet]) -> None:
        self._release = release
        # By name of the set; the pods by their own names.
        self.sets: dict[str, SimulatedSet] = {placeholders.name: placeholders for placeholders in sets}
        self.replicas: dict[str, int] = {name: placeholders.replicas for name, placeholders in self.sets.items()}
        self.pods: dict[str, dict[str, SimPod]] = {name: {} for name in self.sets}

    def fill(self, name: str) -> None:
        """Create or delete pods up to the set's replicas; the last ones are deleted first."""
        replicas, pods = self.replicas[name], self.pods[name]
        placeholders = self.sets[name]
        for index in range(replicas):
            pod_name = f"{name}-{index}"
            if pod_name not in pods:
                pod = self._release.post_placeholder(placeholders, pod_name)
                pod.owner = placeholders
                pods[pod_name] = pod
        for index in range(len(pods) - 1, replicas - 1, -1):
            surplus = pods.pop(f"{name}-{index}", None)
            if surplus is not None:
                # It isn't created again.
                surplus.owner = None
                self._release.remove(surplus)
        if placeholders.revision:
            self.roll(name)

    def scale(self, name: str, replicas: int) -> None:
        """Change a set's replicas."""
        self.replicas[name] = replicas
        self.fill(name)

    def resize(self, name: str, container: str, requests: Mapping[str, str]) -> None:
        """Change the requests of a set's pods."""
        self.sets[name] = self.sets[name].resized(container, requests)
        self.roll(name)

    def is_rolling(self, name: str) -> bool:
        """Whether some of its pods still have other requests than the set."""
        revision = self.sets[name].revision
        return bool(revision) and any(_revision_of(pod) != revision for pod in self.pods[name].values())

    def roll(self, name: str) -> None:
        """A rolling update: from the last pod on, each is replaced when those after it are ready."""
        there, revision = self.pods[name], self.sets[name].revision
        for index in range(len(there) - 1, -1, -1):
            pod = there.get(f"{name}-{index}")
            if pod is not None and _revision_of(pod) != revision:
                self._release.remove(pod)
            if pod is None or pod.bound_at is None or _revision_of(pod) != revision:
                return

    def pod_gone(self, pod: SimPod) -> None:
        """A placeholder was deleted: its set creates it again."""
        if pod.owner is not None:
            self.pods[pod.owner.name].pop(pod.state.name, None)
            self.fill(pod.owner.name)


def _revision_of(pod: SimPod) -> int:
    return 0 if pod.owner is None else pod.owner.revision
