"""Find which images each node holds, from three reports of its kubelet, each with its own delay.

`status.images` of the node is reliable but late: kubelets query their runtime every 30 s and post
changes every 10 s (some are configured to wait minutes). They list the 50 largest images only, and
five names of each. A runtime may list a name without a registry under the registry that it found.
`Pulled` events of the puller's pods come within a second. Statuses of the puller's containers come
when the kubelet has processed the whole pod, that is, when the last of its images was pulled or
failed.

So an event or a status establishes a fact at once, and the list confirms it. A confirmed fact is
revoked as soon as the list lacks the image. Before that, the absence may be the list's lag, and
counts only after LIST_LAGS' age. Absence proves nothing where the list may be cut, or may have
the image by another name.

Memory may be lost at any time. Then a node's label counts as an unconfirmed fact, and old events
and statuses count for nothing, because the image may have been deleted since.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Final, NamedTuple

from roost.controllers.contract.pod_kinds import gate_labels
from roost.controllers.contract.snapshot import Moment, Snapshot
from roost.controllers.image_gate.puller_pods import (
    NO_PULLER_SECONDS,
    NO_TOKENS,
    RENAMED,
    PodEvidence,
    PullFault,
    Token,
)
from roost.controllers.image_gate.settings import GateSettings
from roost_core.objects.image_references import names_registry
from roost_core.objects.node import Node
from roost_core.objects.selectors import Taint
from roost_core.placement.beliefs import LIST_LAGS
from roost_core.placement.labels import HELD
from roost_core.release.image_gate import ManagedImage

# Shared empty values: most of thousands of nodes have nothing to remember.
_NO_TIMES: Final[Mapping[str, float]] = {}
_NO_FAULTS: Final[Mapping[str, PullFault]] = {}
_NO_BYTES: Final[Mapping[str, int]] = {}


class Listing(Enum):
    """What a node's image list says about an image."""

    YES = "there"
    NO = "not there"
    # The list is empty, or was cut and the image or its name may be below the cut, or the image may
    # be listed by another name.
    SILENT = "silent"


class Fact(NamedTuple):
    """What is known about one image on one node."""

    holds: bool
    # Steady seconds: the last change, or the first look.
    since: float
    # The node's list has shown it since.
    confirmed: bool
    # The reports that were taken into account.
    tokens: frozenset[Token]
    # Its size when the node's list last showed it.
    listed_bytes: int | None = None


class NodeFacts(NamedTuple):
    """What is known about one node, remembered until the next plan. Times are steady seconds;
    images are named by their normalised references.
    """

    # The node is Ready: only then does its kubelet report the present state.
    is_reporting: bool
    # The node was Ready in an earlier plan.
    was_ready: bool
    # As first read: later jumps of the clock don't move it.
    ready_since: float | None
    # The taint that keeps the puller's pods away; not looked for while the node isn't reporting.
    puller_taint: Taint | None
    # The images that belong on it, and what is known of each.
    wanted: tuple[ManagedImage, ...]
    images: Mapping[str, Fact]
    # Images that it lacks; empty where the gate is off.
    absent: tuple[ManagedImage, ...]
    # Images that it lacks and that the puller can bring; empty while the node isn't reporting.
    missing: tuple[ManagedImage, ...]
    # Since when something is missing.
    waiting_since: float | None
    # By absent image: since when no puller's pod on the node is there to pull it.
    unattended_since: Mapping[str, float]
    # Missing images, if no puller's pod has come to the node for long.
    unserved: tuple[ManagedImage, ...]
    # By missing image.
    faults: Mapping[str, PullFault]
    # Names without a registry that were pulled, and that the list has had the time to show and
    # doesn't.
    unlisted: tuple[ManagedImage, ...]
    # Labels of images that don't belong on the node, and since when that is known.
    unwanted: Mapping[str, float]
    # Sizes in its list that differ from those known before.
    image_bytes: Mapping[str, int]
    # Seconds until any of this may change although nothing is reported; inf: it can't.
    wait_seconds: float

    @property
    def awaited(self) -> tuple[ManagedImage, ...]:
        """The images that the puller can bring, or has brought."""
        return self.wanted if self.is_reporting and self.puller_taint is None else ()

    @property
    def failing(self) -> frozenset[str]:
        """Labels of the images that can't be pulled now."""
        return frozenset(image.label for image in self.missing if image.normalised in self.faults)


@dataclass(frozen=True, kw_only=True)
class PlanContext:
    """What all nodes of one plan share."""

    settings: GateSettings
    now: Moment
    snapshot: Snapshot
    # Nothing is remembered: this replica has just begun to lead.
    is_first: bool
    # A puller's pod can be expected on every node that it tolerates.
    expects_puller: bool

    @cached_property
    def required_labels(self) -> frozenset[str]:
        """The image labels that pending pods require."""
        keys: set[str] = set()
        for pod in self.snapshot.pods.values():
            if pod.node_name or pod.is_finished or pod.leaving:
                continue
            keys.update(key for key, _ in pod.spec.node_selector)
            for term in pod.spec.required_node_terms or ():
                # NotIn also matches nodes without the label.
                keys.update(rule.key for rule in term.expressions if rule.operator != "NotIn")
        return frozenset(key for key in keys if key.startswith(self.settings.label_prefix))

    @cached_property
    def users(self) -> frozenset[tuple[str, str]]:
        """Pairs of a node and an image label: a pod is or will be on the node, and the label would
        keep it off while the node is pulling.
        """
        users: set[tuple[str, str]] = set()
        for pod in self.snapshot.pods.values():
            # Nominated: kube-scheduler chose the node, and waits, for example, for a volume.
            node = pod.node_name or pod.nominated_node
            if node and not pod.is_finished:
                labels = gate_labels(pod.spec, self.settings.label_prefix)
                users.update((node, label) for label in labels)
        return frozenset(users)


class ObservedNode(NamedTuple):
    """One node as one plan sees it."""

    node: Node
    # What the puller's pods there report.
    evidence: tuple[PodEvidence, ...]
    # What was known of this very node; None at first.
    before: NodeFacts | None
    context: PlanContext


class _WeighedImages(NamedTuple):
    """What a node's reports tell of the images that belong on it."""

    # By normalised reference.
    facts: dict[str, Fact]
    # Sizes that nodes hadn't listed so, by normalised reference.
    new_bytes: dict[str, int]
    # Images that were pulled, and that the node lists under another name.
    unlisted: list[ManagedImage]
    # Seconds until the absence of an image from the list means something.
    waits: list[float]


_NOTHING_WEIGHED: Final = _WeighedImages({}, {}, [], [])


def find_facts(observed: ObservedNode, image_bytes: Mapping[str, int]) -> NodeFacts:
    """Find what is known about a node now. image_bytes: sizes by the lists of all nodes so far."""
    node = observed.node
    before = observed.before
    settings = observed.context.settings
    now = observed.context.now
    is_reporting = node.ready and not node.deleting
    ready_since = before.ready_since if before is not None else None
    if ready_since is None:
        ready_since = observed.context.snapshot.sight_of(node, now).ready_since
    wanted = settings.images_for(node)

    images: Mapping[str, Fact] = before.images if before is not None else {}
    reported = _NOTHING_WEIGHED
    if is_reporting:
        reported = _weigh_images(observed, wanted, image_bytes)
        images = reported.facts
    waits = list(reported.waits)
    absent = tuple(
        image
        for image in wanted
        if image.normalised not in images or not images[image.normalised].holds
    )

    waiting_since = _begin_of_wait(observed, ready_since)
    if before is None and is_reporting:
        # At a new leader's first look, the puller's pod may know since when images are awaited.
        awaited = {
            image.normalised: images[image.normalised]._replace(since=waiting_since)
            for image in absent
        }
        images = {**images, **awaited}
    puller_taint = settings.taint_against_pullers(node) if is_reporting else None
    missing = absent if is_reporting and puller_taint is None else ()
    unserved: tuple[ManagedImage, ...] = ()
    if missing and not observed.evidence:
        seconds_left = waiting_since + NO_PULLER_SECONDS - now.steady
        if seconds_left > 0:
            waits.append(seconds_left)
        else:
            unserved = missing
    return NodeFacts(
        is_reporting=is_reporting,
        was_ready=before is not None and (before.was_ready or before.is_reporting),
        ready_since=ready_since,
        puller_taint=puller_taint,
        wanted=wanted,
        images=images,
        absent=absent if settings.labels_nodes else (),
        missing=missing,
        waiting_since=waiting_since if missing else None,
        unattended_since=_find_unattended(observed, absent) if is_reporting else _NO_TIMES,
        unserved=unserved,
        faults=_find_faults(observed, missing),
        unlisted=tuple(reported.unlisted),
        unwanted=_find_unwanted(observed, wanted),
        image_bytes=reported.new_bytes or _NO_BYTES,
        wait_seconds=min(waits, default=math.inf),
    )


def _weigh_images(
    observed: ObservedNode, wanted: Iterable[ManagedImage], image_bytes: Mapping[str, int]
) -> _WeighedImages:
    node = observed.node
    now = observed.context.now
    earlier: Mapping[str, Fact] = observed.before.images if observed.before is not None else {}
    reported = _WeighedImages({}, {}, [], [])
    for image in wanted:
        name = image.normalised
        known_bytes = image_bytes.get(name)
        report = _observe_image(observed, image, known_bytes, earlier.get(name))
        fact = _weigh(earlier.get(name), report, now)
        reported.facts[name] = fact
        if report.listed_bytes is not None and report.listed_bytes != known_bytes:
            reported.new_bytes[name] = report.listed_bytes
        if fact.holds and not fact.confirmed:
            seconds_left = fact.since + LIST_LAGS.age_seconds - now.steady
            may_be_elsewhere = _may_be_listed_elsewhere(node, image) and node.lists_all_images
            if report.listing is Listing.NO or (may_be_elsewhere and seconds_left > 0):
                # After that time, it counts as absent, or as unlisted.
                reported.waits.append(max(0.0, seconds_left))
            elif may_be_elsewhere:
                reported.unlisted.append(image)
    return reported


def _begin_of_wait(observed: ObservedNode, ready_since: float | None) -> float:
    """Since when a node has waited for the images that it lacks, in steady seconds."""
    before = observed.before
    if before is not None and before.waiting_since is not None:
        return before.waiting_since
    now = observed.context.now
    if ready_since is None or not observed.evidence or not observed.context.is_first:
        return now.steady
    # A new leader's first look: the puller's pod was created when its images began to be awaited.
    created = max(evidence.pod.created for evidence in observed.evidence)
    return max(ready_since, now.began(created, math.inf))


class _ImageReport(NamedTuple):
    """What is reported now about one image on one node."""

    listing: Listing
    # Its size in the node's list; None: not listed.
    listed_bytes: int | None
    # What the puller's pods report.
    tokens: frozenset[Token]
    # The node has the label that says that it holds the image.
    labelled: bool


def _observe_image(
    observed: ObservedNode, image: ManagedImage, known_bytes: int | None, before: Fact | None
) -> _ImageReport:
    """Gather what is reported about an image. known_bytes: its size by an earlier list of any node,
    None if no list had it. before: what was known of it.
    """
    node = observed.node
    name = image.normalised
    tokens = NO_TOKENS.union(*(pod.tokens.get(name, NO_TOKENS) for pod in observed.evidence))
    labelled = node.labels.get(image.label) == HELD
    for spelling in image.spellings:
        if spelling in node.images:
            return _ImageReport(Listing.YES, node.images[spelling], tokens, labelled)
    # Were the image there, the node's list would show it: it is larger than others in the list.
    would_be_listed = (
        bool(node.images) and known_bytes is not None and known_bytes > min(node.images.values())
    )
    # A list that has shown the image by this name would do so again.
    hides_elsewhere = _may_be_listed_elsewhere(node, image) and not (before and before.confirmed)
    shows_name = not (_may_be_cut(node, before) or hides_elsewhere)
    is_unlisted = shows_name and (node.reports_all_images or would_be_listed)
    is_absent = is_unlisted or _is_refuted(observed, image)
    return _ImageReport(Listing.NO if is_absent else Listing.SILENT, None, tokens, labelled)


def _may_be_cut(node: Node, before: Fact | None) -> bool:
    """Whether the node cut the names of an image, and this image's name may be one of those cut.

    Not if the list has shown this image before, and its size is that of no image with cut names.
    """
    if not node.has_cut_names:
        return False
    return before is None or not before.confirmed or before.listed_bytes in node.cut_sizes


def _may_be_listed_elsewhere(node: Node, image: ManagedImage) -> bool:
    """Whether the node may list the image under a registry that its runtime chose."""
    return node.resolves_short_names_elsewhere and not names_registry(image.reference)


def _is_refuted(observed: ObservedNode, image: ManagedImage) -> bool:
    """Whether the kubelet failed to pull this very image, which it tries if the node lacks it.

    With `Always` it tries anyway, so that says nothing.
    """
    faults = (pod.faults.get(image.normalised) for pod in observed.evidence)
    return any(
        fault is not None
        and fault.reference == image.reference
        and fault.reason != RENAMED
        and not fault.is_always
        for fault in faults
    )


def _weigh(before: Fact | None, report: _ImageReport, now: Moment) -> Fact:
    """Decide whether the node holds the image, from the fact so far and what is reported now.

    before: None at the first look at the node.
    """
    listing = report.listing
    tokens = report.tokens
    if listing is Listing.YES:
        since = now.steady if before is None else before.since
        return Fact(True, since, True, tokens, report.listed_bytes)
    if before is None:
        is_reported = report.labelled or any(
            at is not None and abs(now.wall - at) < LIST_LAGS.age_seconds for _, at in tokens
        )
        holds = is_reported or (listing is Listing.SILENT and bool(tokens))
        return Fact(holds, now.steady, False, tokens)
    if _has_news(before.tokens, tokens):
        return Fact(True, now.steady, False, tokens)
    has_waited = now.steady - before.since >= LIST_LAGS.age_seconds
    if before.holds and listing is Listing.NO and (before.confirmed or has_waited):
        return Fact(False, now.steady, False, tokens)
    return before if before.tokens == tokens else before._replace(tokens=tokens)


def _has_news(known: frozenset[Token], tokens: frozenset[Token]) -> bool:
    """Whether there is a new report.

    A status (a token without a time) isn't new if a report of the same pod is known: it repeats
    what the pod's event reported.
    """
    new_tokens = tokens - known
    if not new_tokens:
        return False
    known_pods = {uid for uid, _ in known}
    return any(at is not None or uid not in known_pods for uid, at in new_tokens)


def _find_unattended(
    observed: ObservedNode, absent: tuple[ManagedImage, ...]
) -> Mapping[str, float]:
    """Return the absent images that no puller's pod is there to pull, and since when."""
    since = observed.before.unattended_since if observed.before is not None else _NO_TIMES
    attended: set[str] = set()
    for pod in observed.evidence:
        attended.update(pod.images)
    return {
        image.normalised: since.get(image.normalised, observed.context.now.steady)
        for image in absent
        if image.normalised not in attended
    }


def _find_faults(
    observed: ObservedNode, missing: tuple[ManagedImage, ...]
) -> Mapping[str, PullFault]:
    """Return why missing images can't be pulled. If several pods report it, the last counts."""
    if not missing:
        return _NO_FAULTS
    faults: dict[str, PullFault] = {}
    for image in missing:
        for pod in observed.evidence:
            if image.normalised in pod.faults:
                faults[image.normalised] = pod.faults[image.normalised]
    return faults


def _find_unwanted(observed: ObservedNode, wanted: tuple[ManagedImage, ...]) -> Mapping[str, float]:
    """Return labels of this hub's images that don't belong on the node, and since when that is
    known.
    """
    settings = observed.context.settings
    prefix = settings.label_prefix
    ours = [label for label in observed.node.labels if label.startswith(prefix)]
    if not ours:
        return _NO_TIMES
    belonging = {image.label for image in wanted} if settings.labels_nodes else set()
    since = observed.before.unwanted if observed.before is not None else _NO_TIMES
    now = observed.context.now.steady
    return {label: since.get(label, now) for label in ours if label not in belonging}
