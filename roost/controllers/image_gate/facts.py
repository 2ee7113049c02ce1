"""Tell which images a node holds, from what its kubelet says in three places, each at its own speed.

`status.images` of the node is the truth, but late: kubelets look at their runtime every 30 s and post what changed
every 10 s (some are told: every few minutes), and show the 50 largest images only. `Pulled` events of the puller's pods
come within a second. Statuses of the puller's containers come when its kubelet is through with the whole pod, which is
when the last of its images has come or failed.

So an event or a status makes a fact at once. The list confirms it, and only what the list has confirmed can be taken
back at once when the image is missing there; before that, an image's absence may be the list's lag, and counts only
after LIST_LAG_SECONDS. Absence is nothing where the list may have been cut.

Memory may be lost at any moment: a node's label is then taken for an unconfirmed fact, and old events and statuses for
none, as nobody knows whether the image has been deleted since.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

from roost.controllers.contract.pull_failures import AFTER_PULL_FAULTS, PULL_FAULTS
from roost.controllers.contract.pullers import PULLED, is_puller, is_z2jh_puller
from roost.controllers.image_gate.settings import GateSettings, PullerPods
from roost_core.placement.images import normalise_reference
from roost_core.placement.labels import OWN_INSTANCE_LABEL

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from roost.controllers.contract.snapshot import Moment, PullEvent, Snapshot
    from roost_core.placement.pullers import ManagedImage
    from roost_core.scheduler.objects import ContainerState, NodeState, PodState

# kubelet's nodeStatusMaxImages.
LISTED_IMAGES: Final = 50
# kubelet's nodeStatusReportFrequency (5 min), and the 30 s for which it keeps what its runtime said.
LIST_LAG_SECONDS: Final = 330.0
Z2JH_CONTAINER: Final = "image-pull-"


class Listing(Enum):
    """What a node's own list says of an image."""

    YES = "there"
    NO = "not there"
    # The list is empty, or was cut and the image may be below the cut.
    SILENT = "silent"


class Fault(NamedTuple):
    """A pull that a kubelet gave up for now."""

    # What can't be pulled: the managed image, or the puller's own as the pod has it.
    reference: str
    # The managed image that waits for it.
    image: ManagedImage
    reason: str
    message: str


# Of one pod's uid: the moment of a `Pulled` event, or None for a container's status.
Token = tuple[str, float | None]


class PodEvidence(NamedTuple):
    """What one puller pod says of its node's images."""

    pod: PodState
    # Moments of `Pulled` events, by normalised reference.
    events: tuple[tuple[str, float], ...]
    tokens: Mapping[str, frozenset[Token]]
    # By normalised reference.
    faults: Mapping[str, Fault]
    # What its containers are there to pull, normalised.
    images: frozenset[str] = frozenset()

    def still_brings(self, image: str) -> bool:
        """Tell whether the pod is to pull an image, and hasn't done so yet."""
        return image in self.images and (self.pod.uid, None) not in self.tokens.get(image, NO_TOKENS)


class Fact(NamedTuple):
    """What is known of one image on one node."""

    holds: bool
    # Steady seconds: when the last news came, or when it was first looked at.
    since: float
    # The list has shown it since.
    confirmed: bool
    # What has been counted already.
    tokens: frozenset[Token]


NO_TOKENS: Final[frozenset[Token]] = frozenset()


def find_evidence(
    snapshot: Snapshot, settings: GateSettings, before: Mapping[str, PodEvidence]
) -> dict[str, PodEvidence]:
    """What each puller pod says, by the pod's uid. `before`: an earlier answer; what didn't change stays one object."""
    pullers = {
        pod.uid: pod
        for pod in snapshot.pods.values()
        # A pod that was evicted tells nothing: its containers count as ended though they never began.
        if pod.containers
        and not pod.is_finished
        and pod.node_name
        and pod.namespace == settings.namespace
        and _is_followed(pod, settings)
    }
    events = _events_by_pod(snapshot.pull_events.values(), pullers, settings)
    found: dict[str, PodEvidence] = {}
    for uid, pod in pullers.items():
        said = events.get(uid, ())
        known = before.get(uid)
        if known is not None and known.pod is pod and known.events == said:
            found[uid] = known
        else:
            found[uid] = _read_pod(pod, said, settings)
    return found


def _is_followed(pod: PodState, settings: GateSettings) -> bool:
    if settings.puller_pods is PullerPods.ROOST:
        # Another release's in the same namespace tells of its own images, secrets and faults.
        return is_puller(pod.labels) and pod.labels.get(OWN_INSTANCE_LABEL) == settings.release
    return is_z2jh_puller(pod.labels)


def _events_by_pod(
    events: Iterable[PullEvent], pullers: Mapping[str, PodState], settings: GateSettings
) -> dict[str, tuple[tuple[str, float], ...]]:
    found: dict[str, dict[str, float]] = {}
    normalised: dict[str, str] = {}
    for event in events:
        if event.reason != PULLED or event.pod_uid not in pullers:
            continue
        image = normalised.get(event.image)
        if image is None:
            image = normalised[event.image] = normalise_reference(event.image)
        if image in settings.images:
            moments = found.setdefault(event.pod_uid, {})
            moments[image] = max(event.at, moments.get(image, event.at))
    return {uid: tuple(sorted(moments.items())) for uid, moments in found.items()}


def _read_pod(pod: PodState, events: tuple[tuple[str, float], ...], settings: GateSettings) -> PodEvidence:
    tokens: dict[str, set[Token]] = {}
    faults: dict[str, Fault] = {}
    for image, at in events:
        tokens.setdefault(image, set()).add((pod.uid, at))
    for container in pod.containers:
        managed = _image_of(container, settings)
        if managed is None:
            if container.init and container.waiting_reason in PULL_FAULTS and is_puller(pod.labels):
                # Roost's own image, which every container of the pod waits for.
                for one in _images_of_pod(pod, settings):
                    faults.setdefault(one.normalised, _fault(container, one))
            continue
        if _was_pulled(container):
            tokens.setdefault(managed.normalised, set()).add((pod.uid, None))
        elif container.waiting_reason in PULL_FAULTS:
            faults[managed.normalised] = _fault(container, managed)
    images = frozenset(one.normalised for one in _images_of_pod(pod, settings))
    return PodEvidence(pod, events, {image: frozenset(found) for image, found in tokens.items()}, faults, images)


def _images_of_pod(pod: PodState, settings: GateSettings) -> list[ManagedImage]:
    found = [_image_of(container, settings) for container in pod.containers]
    return [image for image in found if image is not None]


def _image_of(container: ContainerState, settings: GateSettings) -> ManagedImage | None:
    """The managed image that the container is there to pull."""
    if settings.puller_pods is PullerPods.ROOST:
        return settings.by_container.get(container.name)
    if not (container.init and container.name.startswith(Z2JH_CONTAINER)):
        return None
    return settings.images.get(normalise_reference(container.image))


def _was_pulled(container: ContainerState) -> bool:
    return (
        container.running
        or container.ready
        or (container.terminated and bool(container.image_id))
        or container.waiting_reason in AFTER_PULL_FAULTS
    )


def _fault(container: ContainerState, image: ManagedImage) -> Fault:
    # The message names what could not be pulled: an image volume's, or the image that the container runs.
    named = _quoted_image(container.waiting_message)
    if named and normalise_reference(named) == image.normalised:
        named = image.reference
    return Fault(
        named or (container.image if container.init and not _runs(container, image) else image.reference),
        image,
        container.waiting_reason,
        container.waiting_message,
    )


def _runs(container: ContainerState, image: ManagedImage) -> bool:
    return normalise_reference(container.image) == image.normalised


def _quoted_image(message: str) -> str:
    _, word, rest = message.partition('image "')
    text, quote, _ = rest.partition('"')
    return text if word and quote else ""


def look_up(node: NodeState, image: ManagedImage, known_bytes: int | None) -> Listing:
    """Ask the node's own list for an image. known_bytes: the size that a list gave it before, None if none did."""
    listed = node.images
    for spelling in image.spellings:
        if spelling in listed:
            return Listing.YES
    # Nothing listed at all: the kubelet hasn't looked yet, or was told to list nothing.
    if not listed:
        return Listing.SILENT
    if (node.image_count or len(listed)) < LISTED_IMAGES:
        return Listing.NO
    return Listing.NO if known_bytes is not None and known_bytes > min(listed.values()) else Listing.SILENT


def weigh(before: Fact | None, listing: Listing, tokens: frozenset[Token], *, labelled: bool, now: Moment) -> Fact:
    """Say whether the image is there, from what was known and what is said now.

    before: None when the node is looked at for the first time. labelled: it carries the image's label.
    """
    if listing is Listing.YES:
        return Fact(True, now.steady if before is None else before.since, True, tokens)
    if before is None:
        said = labelled or any(_is_recent(token, now) for token in tokens)
        return Fact(said or (listing is Listing.SILENT and bool(tokens)), now.steady, False, tokens)
    if _has_news(before.tokens, tokens):
        return Fact(True, now.steady, False, tokens)
    if before.holds and listing is Listing.NO and (before.confirmed or _has_waited(before, now)):
        return Fact(False, now.steady, False, tokens)
    return before if before.tokens == tokens else before._replace(tokens=tokens)


def seconds_until_doubt(fact: Fact, listing: Listing, now: Moment) -> float | None:
    """Seconds until the list's silence on this fact becomes proof; None: no need to look again."""
    if not fact.holds or fact.confirmed or listing is not Listing.NO:
        return None
    return max(0.0, fact.since + LIST_LAG_SECONDS - now.steady)


def _has_waited(fact: Fact, now: Moment) -> bool:
    return now.steady - fact.since >= LIST_LAG_SECONDS


def _is_recent(token: Token, now: Moment) -> bool:
    _, at = token
    return at is not None and abs(now.wall - at) < LIST_LAG_SECONDS


def _has_news(known: frozenset[Token], tokens: frozenset[Token]) -> bool:
    """Whether something was said that hasn't been counted: a status says again what an event of that pod said."""
    fresh = tokens - known
    if not fresh:
        return False
    pods = {uid for uid, _ in known}
    return any(at is not None or uid not in pods for uid, at in fresh)
