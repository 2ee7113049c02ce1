"""Decide which images a node holds, from three reports of its kubelet, each with its own delay.

`status.images` of the node is reliable but late: kubelets query their runtime every 30 s and post
changes every 10 s (some are configured to wait minutes), and list the 50 largest images only.
`Pulled` events of the puller's pods come within a second. Statuses of the puller's containers come
when the kubelet has processed the whole pod, that is, when the last of its images was pulled or
failed.

So an event or a status establishes a fact at once, and the list confirms it. A confirmed fact is
revoked as soon as the list lacks the image. Before that, the absence may be the list's lag, and
counts only after LIST_LAGS' age. From a list that may be cut, absence proves nothing.

Memory may be lost at any time. Then a node's label counts as an unconfirmed fact, and old events
and statuses count for nothing, because the image may have been deleted since.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Final, NamedTuple

from roost.controllers.contract.pod_kinds import is_puller, is_z2jh_puller
from roost.controllers.contract.snapshot import Moment, Snapshot
from roost.controllers.image_gate.settings import GateSettings, PullerPods
from roost_core.objects.image_references import normalise_reference
from roost_core.objects.node import Node
from roost_core.objects.pod import ContainerState, Pod
from roost_core.placement.beliefs import LIST_LAGS
from roost_core.placement.kubelet_pulls import (
    AFTER_PULL_FAULTS,
    PULL_FAULTS,
    PULLED,
    PullEvent,
    image_in_message,
)
from roost_core.placement.labels import OWN_INSTANCE_LABEL
from roost_core.release.image_gate import ManagedImage

# kubelet's nodeStatusMaxImages.
LISTED_IMAGES: Final = 50
Z2JH_CONTAINER: Final = "image-pull-"


class Listing(Enum):
    """What a node's image list says about an image."""

    YES = "there"
    NO = "not there"
    # The list is empty, or was cut and the image may be below the cut.
    SILENT = "silent"


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


# A pod's uid, and the Unix time of its `Pulled` event, or None for a container's status.
Token = tuple[str, float | None]


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
        return image in self.images and (self.pod.uid, None) not in self.tokens.get(
            image, NO_TOKENS
        )


class Fact(NamedTuple):
    """What is known about one image on one node."""

    holds: bool
    # Steady seconds: the last change, or the first look.
    since: float
    # The node's list has shown it since.
    confirmed: bool
    # Those taken into account.
    tokens: frozenset[Token]


NO_TOKENS: Final[frozenset[Token]] = frozenset()


def find_evidence(
    snapshot: Snapshot, settings: GateSettings, before: Mapping[str, PodEvidence]
) -> dict[str, PodEvidence]:
    """Return what each puller pod reports, by uid. before: an earlier result, whose unchanged
    entries are reused.
    """
    is_of_roost = settings.puller_pods is PullerPods.ROOST
    pullers = {
        pod.uid: pod
        for pod in snapshot.pods.values()
        # An evicted pod is no evidence: its containers count as terminated although they never
        # started.
        if pod.containers
        and not pod.is_finished
        and pod.node_name
        and pod.namespace == settings.namespace
        and (is_puller if is_of_roost else is_z2jh_puller)(pod.labels)
        # Another release's pods in the same namespace have other images, secrets and faults.
        and (not is_of_roost or pod.labels.get(OWN_INSTANCE_LABEL) == settings.release)
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
            others = [
                image
                for image in pod.spec.volume_images
                if normalise_reference(image) not in settings.images
            ]
            renamed = next(iter(others), container.image)
            faults[managed.normalised] = PullFault(managed.reference, managed, RENAMED, renamed)
        elif (
            container.running
            or container.ready
            or (container.terminated and bool(container.image_id))
            or container.waiting_reason in AFTER_PULL_FAULTS
        ):
            tokens.setdefault(managed.normalised, set()).add((pod.uid, None))
        elif container.waiting_reason in PULL_FAULTS:
            faults[managed.normalised] = _fault(container, managed)
    images = frozenset(image.normalised for image in _images_of_pod(pod, settings))
    return PodEvidence(
        pod, events, {name: frozenset(seen) for name, seen in tokens.items()}, faults, images
    )


def _images_of_pod(pod: Pod, settings: GateSettings) -> list[ManagedImage]:
    images = (_image_of(container, settings) for container in pod.containers)
    return [image for image in images if image is not None]


def _image_of(container: ContainerState, settings: GateSettings) -> ManagedImage | None:
    """The managed image that the container pulls."""
    if settings.puller_pods is PullerPods.ROOST:
        return settings.by_container.get(container.name)
    if not (container.init and container.name.startswith(Z2JH_CONTAINER)):
        return None
    return settings.images.get(normalise_reference(container.image))


def _fault(container: ContainerState, image: ManagedImage) -> PullFault:
    # The message names what could not be pulled: an image volume's, or the image that the container
    # runs.
    named = image_in_message(container.waiting_message)
    if named and normalise_reference(named) == image.normalised:
        named = image.reference
    runs_it = normalise_reference(container.image) == image.normalised
    reference = named or (container.image if container.init and not runs_it else image.reference)
    return PullFault(reference, image, container.waiting_reason, container.waiting_message)


def look_up(node: Node, image: ManagedImage, known_bytes: int | None) -> Listing:
    """Look an image up in the node's list. known_bytes: its size by an earlier list, None if no
    list had it.
    """
    listed = node.images
    for spelling in image.spellings:
        if spelling in listed:
            return Listing.YES
    # An empty list: the kubelet hasn't queried its runtime yet, or is configured to list nothing.
    if not listed:
        return Listing.SILENT
    if (node.image_count or len(listed)) < LISTED_IMAGES:
        return Listing.NO
    return (
        Listing.NO
        if known_bytes is not None and known_bytes > min(listed.values())
        else Listing.SILENT
    )


def weigh(
    before: Fact | None, listing: Listing, tokens: frozenset[Token], *, labelled: bool, now: Moment
) -> Fact:
    """Decide whether the node holds the image, from the fact so far and what is reported now.

    before: None at the first look at the node. labelled: it has the image's label.
    """
    if listing is Listing.YES:
        return Fact(True, now.steady if before is None else before.since, True, tokens)
    if before is None:
        is_reported = labelled or any(
            at is not None and abs(now.wall - at) < LIST_LAGS.age_seconds for _, at in tokens
        )
        return Fact(
            is_reported or (listing is Listing.SILENT and bool(tokens)), now.steady, False, tokens
        )
    if _has_news(before.tokens, tokens):
        return Fact(True, now.steady, False, tokens)
    has_waited = now.steady - before.since >= LIST_LAGS.age_seconds
    if before.holds and listing is Listing.NO and (before.confirmed or has_waited):
        return Fact(False, now.steady, False, tokens)
    return before if before.tokens == tokens else before._replace(tokens=tokens)


def seconds_until_doubt(fact: Fact, listing: Listing, now: Moment) -> float | None:
    """Seconds until the image's absence from the list becomes proof; None: that can't happen."""
    if not fact.holds or fact.confirmed or listing is not Listing.NO:
        return None
    return max(0.0, fact.since + LIST_LAGS.age_seconds - now.steady)


def _has_news(known: frozenset[Token], tokens: frozenset[Token]) -> bool:
    """Whether there is a new report: a status only repeats what an event of the same pod
    reported.
    """
    fresh = tokens - known
    if not fresh:
        return False
    pods = {uid for uid, _ in known}
    return any(at is not None or uid not in pods for uid, at in fresh)
