"""Read what a node holds, how full it is, and whether popular images may be pulled there.

Views are kept from plan to plan and rebuilt only for nodes that changed, so that a plan for 5,000 nodes reads few of
them.

Pulls don't work against the kubelet, which deletes unused images when the disk is fuller than
imageGCHighThresholdPercent (85): pulling ends well below that, and nothing is pulled to a node under pressure. Nor
against an image cleaner (BinderHub's cordons its node while it deletes), nor against an autoscaler: a node that is
marked for removal gets nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from roost.controllers.popular_images.settings import DISK_BYTES_PER_IMAGE_BYTE
from roost_core.objects.images import normalise_reference, split_reference
from roost_core.objects.leaving_taints import LEAVING_TAINTS
from roost_core.objects.node import node_admits
from roost_core.objects.requests import EPHEMERAL_STORAGE, PODS
from roost_core.objects.selectors import NodeRules, read_tolerations, untolerated
from roost_core.placement.pullers import serving

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from roost.controllers.popular_images.settings import PopularSettings
    from roost_core.objects.node import Node
    from roost_core.objects.selectors import Toleration

# Conditions that make a kubelet evict pods and delete images.
PRESSURES: Final = ("DiskPressure", "MemoryPressure", "PIDPressure")
# Of any hub: nodes join with it, and lose it once their own images are present.
STARTUP_TAINT_PREFIX: Final = "startup-taint.cluster-autoscaler.kubernetes.io/"


@dataclass(frozen=True, slots=True)
class NodeView:
    """One node, as derived from its Node."""

    state: Node
    # Normalised references of its images, by tag and by digest.
    holds: frozenset[str]
    # Sum over its images, as reported, each counted once.
    image_bytes: int
    # If its list may be cut: the smallest listed size; else 0.
    unseen_below_bytes: int
    # Its list may be cut: the size of unlisted images is unknown.
    is_cut: bool
    # Bytes of disk that images may fill; None: the node doesn't report its disk's size.
    disk_bytes: int | None
    # Bit i: a pod with the i-th of the plan's rules may run here.
    admits: int
    # Bit i: the i-th puller serves it.
    pullers: int
    # It has all images of those pullers, by the gate's labels.
    is_managed_complete: bool
    # Why nothing may be pulled here, by the node's own state; "" if something may be.
    closed: str
    most_pods: int


class NodeViews:
    """Makes views for one set of rules."""

    def __init__(self, settings: PopularSettings, rules: Sequence[NodeRules], *, same_rules: bool) -> None:
        """rules: of the pods whose images may be wanted; same_rules: earlier views were made for the same."""
        self._settings = settings
        self._rules = rules
        self._same_rules = same_rules
        self._tolerations = read_tolerations(settings.pull_pod.tolerations)

    def view(self, state: Node, before: NodeView | None) -> NodeView:
        """Return the view of `state`; as much as possible is reused from an earlier view."""
        if before is not None and before.state is state and self._same_rules:
            return before
        settings = self._settings
        if before is not None and before.state.images == state.images:
            holds, image_bytes = before.holds, before.image_bytes
        else:
            holds, image_bytes = _read_images(state)
        is_cut = 0 <= settings.reported_images <= state.image_count
        disk = state.allocatable.get(EPHEMERAL_STORAGE)
        if self._same_rules and before is not None and _is_alike(before.state, state):
            admits, pullers, is_complete = before.admits, before.pullers, before.is_managed_complete
        else:
            admits = sum(1 << bit for bit, rules in enumerate(self._rules) if node_admits(rules, state))
            serving_pullers = serving(settings.managed.pullers, state)
            pullers = sum(1 << bit for bit, puller in enumerate(settings.managed.pullers) if puller in serving_pullers)
            is_complete = all(
                state.labels.get(label) == "true"
                for puller in settings.managed.labelling
                if puller in serving_pullers
                for label in puller.labels
            )
        return NodeView(
            state=state,
            holds=holds,
            image_bytes=image_bytes,
            unseen_below_bytes=min(state.images.values(), default=0) if is_cut else 0,
            is_cut=is_cut,
            disk_bytes=None if disk is None else int(disk * settings.disk_share),
            admits=admits,
            pullers=pullers,
            is_managed_complete=is_complete,
            closed=_closed(state, settings, self._tolerations),
            most_pods=state.allocatable.get(PODS, 110),
        )


def _is_alike(one: Node, other: Node) -> bool:
    """Whether the same pods may run on both."""
    return (one.labels, one.taints, one.unschedulable, one.leaving) == (
        other.labels,
        other.taints,
        other.unschedulable,
        other.leaving,
    )


def disk_bytes_of(image_bytes: int) -> int:
    """Estimate, rather high, the disk space of images with this many reported bytes."""
    return int(image_bytes * DISK_BYTES_PER_IMAGE_BYTE)


def image_sizes(images: Mapping[str, int]) -> Iterable[tuple[str, int]]:
    """Return (normalised name, bytes) of a node's listed images."""
    return zip(map(_normal, images), images.values(), strict=True)


def _closed(state: Node, settings: PopularSettings, tolerations: tuple[Toleration, ...]) -> str:
    if state.leaving:
        return "leaving"
    if not state.ready:
        return "not-ready"
    if state.unschedulable:
        return "cordoned"
    for condition in PRESSURES:
        if state.conditions.get(condition) == "True":
            return "pressure"
    for taint in state.taints:
        if taint.key in LEAVING_TAINTS:
            return "leaving"
        if taint.key in settings.startup_taints or taint.key.startswith(STARTUP_TAINT_PREFIX):
            return "starting"
    if untolerated(state.taints, tolerations) is not None:
        return "tainted"
    return ""


def _read_images(state: Node) -> tuple[frozenset[str], int]:
    images = state.images
    # A node lists up to five names of an image, all with the same size. Two images of one repository with exactly the
    # same size count as one.
    distinct = set(zip(map(_repository, images), images.values(), strict=True))
    return frozenset(map(_normal, images)), sum(size for _, size in distinct)


# Most nodes hold the same images under the same names.
@lru_cache(maxsize=65536)
def _normal(name: str) -> str:
    return normalise_reference(name)


@lru_cache(maxsize=65536)
def _repository(name: str) -> str:
    return split_reference(normalise_reference(name))[0]
