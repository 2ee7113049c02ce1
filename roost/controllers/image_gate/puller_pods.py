"""Read what the puller's pods report of the node where they run: images that they pulled, and
pulls that fail.

The kubelet writes both: `Pulled` events, and statuses of the containers, each of which pulls one
image.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from roost.controllers.contract.pod_kinds import (
    is_puller,
    is_z2jh_continuous_puller,
    is_z2jh_puller,
)
from roost.controllers.contract.snapshot import Snapshot
from roost.controllers.image_gate.settings import GateSettings, PullerPods
from roost_core.objects.image_references import normalise_reference
from roost_core.objects.pod import ContainerState, Pod
from roost_core.placement.kubelet_pulls import (
    AFTER_PULL_FAULTS,
    PULL_FAULTS,
    PULLED,
    PullEvent,
    image_in_message,
)
from roost_core.placement.labels import OWN_INSTANCE_LABEL
from roost_core.release.image_gate import ManagedImage

_Z2JH_CONTAINER: Final = "image-pull-"
# A puller's pod is created within seconds of its node; longer without one is worth an Event.
NO_PULLER_SECONDS: Final = 120.0
# The reason of a fault whose message is another image, by which admission replaced the one that was
# asked for.
RENAMED: Final = "RenamedByAdmission"


class PullFault(NamedTuple):
    """A pull that failed, at least for now."""

    # What can't be pulled: the managed image, or the puller's own as the pod has it.
    reference: str
    # The managed image that waits for it.
    image: ManagedImage
    reason: str
    message: str
    # The kubelet asked for it although the node may hold it.
    is_always: bool = False


# A pod's uid, and the Unix time of its `Pulled` event, or None for a container's status.
Token = tuple[str, float | None]
NO_TOKENS: Final[frozenset[Token]] = frozenset()


class PodEvidence(NamedTuple):
    """What one puller pod reports about its node's images."""

    pod: Pod
    # (normalised reference, Unix time) of each `Pulled` event.
    events: tuple[tuple[str, float], ...]
    tokens: Mapping[str, frozenset[Token]]
    # By normalised reference.
    faults: Mapping[str, PullFault]
    # The images that its containers pull, normalised.
    images: frozenset[str] = frozenset()

    def still_brings(self, image: str) -> bool:
        """Whether the pod has yet to pull an image."""
        # What a container's status says, once it has started.
        by_status: Token = (self.pod.uid, None)
        is_pulled = by_status in self.tokens.get(image, NO_TOKENS)
        return image in self.images and not is_pulled


def find_evidence(
    snapshot: Snapshot, settings: GateSettings, before: Mapping[str, PodEvidence]
) -> dict[str, PodEvidence]:
    """Return what each puller pod reports, by uid. before: an earlier result, whose unchanged
    entries are reused.
    """
    pullers = {
        pod.uid: pod
        for pod in snapshot.pods.values()
        if pod.containers and _is_evidence(pod, settings)
    }
    events = _events_by_pod(snapshot.pull_events.values(), pullers, settings)
    evidence: dict[str, PodEvidence] = {}
    for uid, pod in pullers.items():
        pod_events = events.get(uid, ())
        earlier = before.get(uid)
        if earlier is None or earlier.pod is not pod or earlier.events != pod_events:
            earlier = _read_pod(pod, pod_events, settings)
        evidence[uid] = earlier
    return evidence


def expects_puller(evidence: Iterable[PodEvidence], settings: GateSettings) -> bool:
    """Whether a puller's pod can be expected on new nodes: those of a hook are created at upgrades
    only.
    """
    if settings.puller_pods is PullerPods.ROOST:
        return settings.has_puller
    return any(is_z2jh_continuous_puller(pod_evidence.pod.labels) for pod_evidence in evidence)


def _is_evidence(pod: Pod, settings: GateSettings) -> bool:
    """Whether a pod is a puller's of this release and has reached its node."""
    # An evicted pod is no evidence: its containers count as terminated although they never started.
    if pod.is_finished or not pod.node_name or pod.namespace != settings.namespace:
        return False
    if settings.puller_pods is not PullerPods.ROOST:
        return is_z2jh_puller(pod.labels)
    # Another release's pods in the same namespace have other images, secrets and faults.
    return is_puller(pod.labels) and pod.labels.get(OWN_INSTANCE_LABEL) == settings.release


def _events_by_pod(
    events: Iterable[PullEvent], pullers: Mapping[str, Pod], settings: GateSettings
) -> dict[str, tuple[tuple[str, float], ...]]:
    times_by_pod: dict[str, dict[str, float]] = {}
    normalised: dict[str, str] = {}
    for event in events:
        if event.reason != PULLED or event.pod_uid not in pullers:
            continue
        image = normalised.get(event.image)
        if image is None:
            image = normalised[event.image] = normalise_reference(event.image)
        if image in settings.images:
            times = times_by_pod.setdefault(event.pod_uid, {})
            times[image] = max(event.at, times.get(image, event.at))
    return {uid: tuple(sorted(times.items())) for uid, times in times_by_pod.items()}


def _read_pod(
    pod: Pod, events: tuple[tuple[str, float], ...], settings: GateSettings
) -> PodEvidence:
    tokens: dict[str, set[Token]] = {}
    faults: dict[str, PullFault] = {}
    runs = {normalise_reference(image) for image in (*pod.spec.images, *pod.spec.volume_images)}
    for name, at in events:
        tokens.setdefault(name, set()).add((pod.uid, at))
    for container in pod.containers:
        managed = _image_of(container, settings)
        if managed is None:
            if container.init and container.waiting_reason in PULL_FAULTS and is_puller(pod.labels):
                # Roost's own image, which every container of the pod waits for.
                for image in _images_of_pod(pod, settings):
                    faults.setdefault(image.normalised, _fault(container, image))
            continue
        if runs and managed.normalised not in runs:
            # What comes to the node is no evidence for the image that was asked for.
            others = (
                image
                for image in pod.spec.volume_images
                if normalise_reference(image) not in settings.images
            )
            renamed = next(others, container.image)
            faults[managed.normalised] = PullFault(managed.reference, managed, RENAMED, renamed)
        elif _has_image(container):
            tokens.setdefault(managed.normalised, set()).add((pod.uid, None))
        elif container.waiting_reason in PULL_FAULTS:
            faults[managed.normalised] = _fault(container, managed)
    images = frozenset(image.normalised for image in _images_of_pod(pod, settings))
    return PodEvidence(
        pod, events, {name: frozenset(found) for name, found in tokens.items()}, faults, images
    )


def _has_image(container: ContainerState) -> bool:
    """Whether the container is beyond the pull of its image."""
    return (
        container.running
        or container.ready
        or (container.terminated and bool(container.image_id))
        or container.waiting_reason in AFTER_PULL_FAULTS
    )


def _images_of_pod(pod: Pod, settings: GateSettings) -> list[ManagedImage]:
    images = (_image_of(container, settings) for container in pod.containers)
    return [image for image in images if image is not None]


def _image_of(container: ContainerState, settings: GateSettings) -> ManagedImage | None:
    """The managed image that the container pulls."""
    if settings.puller_pods is PullerPods.ROOST:
        return settings.by_container.get(container.name)
    if not container.name.startswith(_Z2JH_CONTAINER):
        return None
    return settings.images.get(normalise_reference(container.image))


def _fault(container: ContainerState, image: ManagedImage) -> PullFault:
    # The message names what could not be pulled: an image volume's, or the image that the container
    # runs.
    named = image_in_message(container.waiting_message)
    if named and normalise_reference(named) == image.normalised:
        named = image.reference
    if not named:
        runs_it = normalise_reference(container.image) == image.normalised
        named = container.image if container.init and not runs_it else image.reference
    return PullFault(
        named, image, container.waiting_reason, container.waiting_message, container.pulls_always
    )
