"""What a failed pull says of its node: where the node holds the image, it says nothing."""

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
    """What speaks for a node when a pull fails there: its own list of images, and pods that run
    there. A pod with `Always` asks a registry although the node holds the image.

    - The node lists the image, or a pod runs there with it: the failed pull says nothing.
    - It lists all its images, and this image isn't among them: the pull counts; with `Always` only
      if no pod has run there with the image.
    - It lists 50 images or none, or can't be read: the pull counts; with `Always` it says nothing.
    """

    def __init__(
        self,
        warm: Mapping[str, WarmFacts],
        changed_class: str,
        changes: Mapping[str, PlacedPod | None],
        nodes: WatchedNodes,
    ) -> None:
        """warm: before these changes of the pods of one class."""
        self._warm = warm
        self._changed_class = changed_class
        self._changes = changes
        self._nodes = nodes

    def is_no_fault(self, pod: PlacedPod, image: str) -> bool:
        """Whether the pull that this pod says fails says nothing of its node."""
        if self._is_there(pod.node, image):
            return True
        return image in pod.always and self._may_hold(pod.node, image)

    def is_no_loss(self, pod: PlacedPod, image: str) -> bool:
        """Whether it says nothing of its node that this pod was given up before it started."""
        if self._nodes.lists(pod.node, image) or is_proven(self._warm, pod.node, image):
            return True
        return image in pod.always and self._may_hold(pod.node, image)

    def with_what_lacks(self, pod: PlacedPod | None) -> PlacedPod | None:
        """The pod with those failing images alone that its node certainly lacks."""
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
        """Nodes and images of pods that have started: kubelets remove no image in use."""
        running: set[tuple[str, str]] = set()
        for name, known in self._warm.items():
            pods = known.pods if name != self._changed_class else {**known.pods, **self._changes}
            running |= {
                (pod.node, image)
                for pod in pods.values()
                if pod is not None and not pod.is_starting
                for image in pod.images
            }
        return frozenset(running)
