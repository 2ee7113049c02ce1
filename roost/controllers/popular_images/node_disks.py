"""What a node holds, and whether images may be pulled to it: by its own state, and by its disk."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from roost.controllers.popular_images.settings import PopularSettings
from roost_core.objects.image_references import normalise_reference, split_reference
from roost_core.objects.leaving_taints import ANY_LEAVING_TAINTS
from roost_core.objects.node import Node
from roost_core.objects.requests import EPHEMERAL_STORAGE
from roost_core.objects.selectors import read_tolerations, untolerated
from roost_core.placement.labels import PULLED_LABEL_PREFIX, PULLING, STARTUP_PREFIXES
from roost_core.release.image_gate import serving

# Bytes on disk for each byte that a node reports: containerd reports compressed layers, and keeps
# them beside their unpacked content, which is 2.8 times as large. Shared layers count once per
# image, so this errs on the high side.
DISK_BYTES_PER_IMAGE_BYTE: Final = 3.8
# Conditions that make a kubelet evict pods and delete images.
PRESSURES: Final = ("DiskPressure", "MemoryPressure", "PIDPressure")


class NodeDisk(NamedTuple):
    """What a node holds, and whether something may be pulled there; kept while its Node doesn't
    change.
    """

    node: Node
    # Bytes by normalised reference of its images.
    holds: Mapping[str, int]
    # Sum over its images, as reported, each counted once.
    image_bytes: int
    # Its list may be cut: the number and size of unlisted images is unknown.
    is_cut: bool
    # What the puller brings there, normalised.
    managed: frozenset[str]
    # Why nothing may be pulled here, by the node's own state; "" if something may be.
    closed: str
    # Why nothing may be pulled here, by the node's disk; "" if something may be.
    full: str

    @property
    def uid(self) -> str:
        """The node's uid."""
        return self.node.uid


def read_disk(node: Node, settings: PopularSettings) -> NodeDisk:
    """Say what a node holds, and whether something may be pulled there."""
    holds: dict[str, int] = {}
    # A node lists up to five names of an image, all with the same size. Two images of one
    # repository with exactly the same size count as one.
    distinct: set[tuple[str, int]] = set()
    for name, size in node.images.items():
        reference, repository = _read_name(name)
        holds[reference] = size
        distinct.add((repository, size))
    image_bytes = sum(size for _, size in distinct)
    is_cut = 0 <= settings.reported_images <= node.image_count
    pullers = serving(settings.release.gate.pullers, node)
    return NodeDisk(
        node=node,
        holds=holds,
        image_bytes=image_bytes,
        is_cut=is_cut,
        managed=frozenset().union(*(puller.references for puller in pullers)),
        closed=_why_closed(node, settings),
        full=_why_full(node, settings, image_bytes, is_cut=is_cut),
    )


def free_disk_bytes(node: Node, settings: PopularSettings, image_bytes: int) -> float | None:
    """How much of the share of a node's disk that images may fill is left beside these.

    image_bytes: as reported, so the disk space is estimated, rather high. Negative: they fill more.
    None: the disk's size is unknown.
    """
    disk_bytes = node.allocatable.get(EPHEMERAL_STORAGE)
    if disk_bytes is None:
        return None
    return disk_bytes * settings.disk_share - int(image_bytes * DISK_BYTES_PER_IMAGE_BYTE)


def _why_closed(node: Node, settings: PopularSettings) -> str:
    taints = {taint.key for taint in node.taints}
    if node.leaving or taints & ANY_LEAVING_TAINTS:
        return "leaving"
    if not node.ready:
        return "not-ready"
    if node.unschedulable:
        return "cordoned"
    if any(node.conditions.get(condition) == "True" for condition in PRESSURES):
        return "pressure"
    # The puller's images come first.
    is_pulling = any(
        key.startswith(PULLED_LABEL_PREFIX) and value == PULLING
        for key, value in node.labels.items()
    )
    if is_pulling or any(key.startswith(STARTUP_PREFIXES) for key in taints):
        return "starting"
    if not node.taints:
        return ""
    tolerations = read_tolerations(settings.pod_tolerations)
    return "" if untolerated(node.taints, tolerations) is None else "tainted"


def _why_full(node: Node, settings: PopularSettings, image_bytes: int, *, is_cut: bool) -> str:
    free = free_disk_bytes(node, settings, image_bytes)
    if free is None:
        return "disk-unknown"
    if free <= 0:
        return "full"
    # Any number of smaller images may fill the remaining disk.
    return "disk-unknown" if is_cut else ""


# Most nodes hold the same images under the same names.
@lru_cache(maxsize=65536)
def _read_name(name: str) -> tuple[str, str]:
    """The normalised reference of an image's name, and its repository."""
    reference = normalise_reference(name)
    return reference, split_reference(reference)[0]
