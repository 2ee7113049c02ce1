"""Whether a failed pull tells that its node can't pull the image: not where the node holds it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from webhook.facts.placed_pod import PlacedPod
from webhook.facts.warm import WarmFacts
from webhook.watching.nodes import WatchedNodes


def is_proven(warm: Mapping[str, WarmFacts], node: str, image: str) -> bool:
    """Whether what pods showed proves that the node holds the image."""
    return any(known.proves(node, image) for known in warm.values())


class PullEvidence:
    """What excuses a node when a pull fails there: its own list of images, and pods that run there.

    A pod with `Always` asks a registry although the node holds the image.

    - The node lists the image, or a pod runs there with it: the node is excused.
    - It lists all its images, and this image isn't among them: the pull counts. With `Always` it
      counts only if no pod has run there with the image.
    - It lists 50 images (there may be more) or none, or can't be read: the pull counts. With
      `Always` the node is excused.
    """

    def __init__(
        self,
        warm: Mapping[str, WarmFacts],
        changed_class: str,
        changes: Mapping[str, PlacedPod | None],
        nodes: WatchedNodes,
    ) -> None:
        """warm: of all classes, before the changes of the pods of `changed_class`."""
        self._warm = warm
        self._changed_class = changed_class
        self._changes = changes
        self._nodes = nodes

    def excuses_failure(self, pod: PlacedPod, image: str) -> bool:
        """Whether the node isn't at fault for a pull that the pod says fails."""
        if self._is_there(pod.node, image):
            return True
        return image in pod.always and self._may_hold(pod.node, image)

    def excuses_lost_start(self, pod: PlacedPod, image: str) -> bool:
        """Whether the node isn't at fault for a pod that was given up before it started."""
        if self._nodes.lists(pod.node, image) or is_proven(self._warm, pod.node, image):
            return True
        return image in pod.always and self._may_hold(pod.node, image)

    def with_lacking_images(self, pod: PlacedPod | None) -> PlacedPod | None:
        """The pod, whose failing images are now only those that its node certainly lacks."""
        if pod is None or not pod.failing:
            return pod
        lacking = [
            image
            for image in pod.failing
            if image not in pod.always and not self._is_there(pod.node, image)
        ]
        return pod._replace(failing=tuple(lacking))

    def _is_there(self, node: str, image: str) -> bool:
        """Whether the node holds the image now."""
        return self._nodes.lists(node, image) or (node, image) in self._running

    def _may_hold(self, node: str, image: str) -> bool:
        return is_proven(self._warm, node, image) or self._nodes.may_hold_more(node)

    @cached_property
    def _running(self) -> frozenset[tuple[str, str]]:
        """(node, image) of pods that have started: kubelets remove no image in use."""
        running: set[tuple[str, str]] = set()
        for name, known in self._warm.items():
            pods: Mapping[str, PlacedPod | None] = known.pods
            if name == self._changed_class:
                pods = {**pods, **self._changes}
            for pod in pods.values():
                if pod is not None and not pod.is_starting:
                    running.update((pod.node, image) for image in pod.images)
        return frozenset(running)
