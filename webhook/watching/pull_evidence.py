"""Whether a failed pull proves that the node lacks the image.

Rules avoid nodes that can't pull an image. But a pull may fail although the node holds the image.
Then the registry or the pull secret is at fault, and the node is excused.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from webhook.facts.placed_pod import PlacedPod
from webhook.facts.warm import WarmFacts
from webhook.watching.nodes import WatchedNodes


def is_proven(warm: Mapping[str, WarmFacts], node: str, image: str) -> bool:
    """Whether it is sure that the node holds the image: a pod ran there with it, or the node said
    so.
    """
    return any(known.proves(node, image) for known in warm.values())


class PullEvidence:
    """What excuses a node when a pull fails there: its list of images, and pods that ran there.

    With imagePullPolicy `Always`, a pull may fail although the node holds the image: the kubelet
    asks the registry all the same. So the node is excused more easily.

    | the node | `IfNotPresent` | `Always` |
    |---|---|---|
    | lists the image, or a pod runs there with it | excused | excused |
    | lists all its images, and not this image | at fault | excused if a pod ran there with it |
    | lists 50 images (there may be more) or none, or can't be read | at fault | excused |
    """

    def __init__(
        self,
        warm: Mapping[str, WarmFacts],
        changed_class: str,
        changes: Mapping[str, PlacedPod | None],
        nodes: WatchedNodes,
    ) -> None:
        """changes: of the pods of `changed_class`. warm: of all classes, without these changes."""
        self._warm = warm
        self._changed_class = changed_class
        self._changes = changes
        self._nodes = nodes

    def excuses_failure(self, pod: PlacedPod, image: str) -> bool:
        """Whether the node isn't at fault for a pull that fails, as the pod's status says."""
        return self._is_there(pod.node, image) or self._always_excuses(pod, image)

    def excuses_lost_start(self, pod: PlacedPod, image: str) -> bool:
        """Whether the node isn't at fault for a pod that was deleted before it started.

        That tells less than a failed pull. So any pod that ran there with the image excuses the
        node, whatever the policy.
        """
        has_shown = self._nodes.lists(pod.node, image) or is_proven(self._warm, pod.node, image)
        return has_shown or self._always_excuses(pod, image)

    def with_lacking_images(self, pod: PlacedPod | None) -> PlacedPod | None:
        """The pod, with those of its failing images only that its node certainly lacks.

        With `Always`, a failed pull proves nothing: the node may hold the image.
        """
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

    def _always_excuses(self, pod: PlacedPod, image: str) -> bool:
        """Whether `Always` excuses the node: it may hold the image although its list lacks it."""
        if image not in pod.always:
            return False
        return is_proven(self._warm, pod.node, image) or self._nodes.may_hold_more(pod.node)

    @cached_property
    def _running(self) -> frozenset[tuple[str, str]]:
        """(node, image) of pods that run now: no kubelet removes an image in use."""
        running: set[tuple[str, str]] = set()
        for name, known in self._warm.items():
            pods: Mapping[str, PlacedPod | None] = known.pods
            if name == self._changed_class:
                pods = {**pods, **self._changes}
            for pod in pods.values():
                if pod is not None and not pod.is_starting:
                    running.update((pod.node, image) for image in pod.images)
        return frozenset(running)
