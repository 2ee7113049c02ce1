"""Read the settings of popular images from controllers.json."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from roost.controllers.contract.bookings import BookingSettings, read_booking_settings
from roost.controllers.contract.buffered_room import BufferedSet, read_buffered_sets
from roost_core.placement.labels import startup_taint
from roost_core.placement.pullers import Pullers, read_mappings, read_pullers
from roost_core.placement.settings import PodClass, read_pod_classes
from roost_core.placement.settings_reader import Reader

if TYPE_CHECKING:
    from collections.abc import Mapping

    from roost_core.placement.settings_reader import Document

# kubelets' default of nodeStatusMaxImages: a node reports this many images, the largest.
REPORTED_IMAGES: Final = 50
# The assumed size of an image that no node lists: repo2docker's median of 1.6 GB on disk, compressed.
ASSUMED_IMAGE_BYTES: Final = 570_000_000
# Bytes on disk for each byte that a node reports: containerd reports compressed layers, and keeps them beside their
# unpacked content, which is 2.8 times as large. Shared layers count once per image, so this errs on the high side.
DISK_BYTES_PER_IMAGE_BYTE: Final = 3.8
# After this time, a user that has left counts half.
HALF_LIFE_SECONDS: Final = 86_400.0
# An image with at least this many users, decayed, is popular.
MIN_USERS: Final = 2.0
# Concurrent pulls, and the most bytes a minute over all nodes (2 GiB).
PARALLEL_PER_NODE: Final = 1
PARALLEL_PER_CLUSTER: Final = 3
BYTES_PER_MINUTE: Final = 2 * 2**30
# Concurrent pulls of booked events' images: those who come would pull them all the same, and at once.
BOOKED_PARALLEL: Final = 20
# Longer than the slowest pulls seen (13 minutes to unpack on slow disks).
PULL_SECONDS: Final = 1800.0
# After this much longer, the pod ends by itself: there may be no leader to delete it.
PULL_SLACK_SECONDS: Final = 600.0
# A node without users for this long is not about to be removed by an autoscaler, or it would be gone.
EMPTY_NODE_SECONDS: Final = 3600.0
# A node that joined this recently was added for users to come.
NEW_NODE_SECONDS: Final = 600.0

_KEYS: Final = ("enabled", "perNode", "diskHeadroomPercent", "nodeStatusMaxImages")


class PullMethod(StrEnum):
    """How a pod pulls an image: `prePuller.method`, with `auto` resolved."""

    IMAGE_VOLUME = "imageVolume"
    NOOP = "noop"


# Of documents that older charts wrote; newer ones give theirs.
RESTRICTED_POD: Final = MappingProxyType(
    {
        "runAsNonRoot": True,
        "runAsUser": 65534,
        "runAsGroup": 65534,
        "fsGroup": 65534,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
)
RESTRICTED_CONTAINER: Final = MappingProxyType(
    {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PullPod:
    """What pods that pull have in common, among themselves and with the puller's DaemonSets."""

    method: PullMethod
    # Roost's own image, which has the static pause program.
    image: str
    # Run in the container that mounts the images.
    pause_image: str
    pull_secrets: tuple[str, ...] = ()
    # As in a manifest.
    tolerations: tuple[Mapping[str, object], ...] = ()
    priority_class: str = ""
    service_account: str = ""
    # Security contexts of the pod and of its containers, as in a manifest.
    pod_security: Mapping[str, object] = field(default_factory=lambda: RESTRICTED_POD)
    container_security: Mapping[str, object] = field(default_factory=lambda: RESTRICTED_CONTAINER)


@dataclass(frozen=True, slots=True, kw_only=True)
class PopularSettings:
    """`popularImages`, and what else the plan needs of the release."""

    release: str
    namespace: str
    classes: Mapping[str, PodClass]
    # `enabled`. False: only the images of booked events are pulled.
    counts_users: bool = True
    # None: no events can be booked.
    events: BookingSettings | None = None
    # Of these sets no pod says which nodes keep their room.
    buffered: tuple[BufferedSet, ...] = ()
    # How many of the most wanted images a node should have.
    per_node: int
    # Share of a node's disk that images may fill, 0 to 1.
    disk_share: float
    # kubelets' nodeStatusMaxImages: a node that lists this many may hold more. Negative: nodes list all.
    reported_images: int = REPORTED_IMAGES
    half_life_seconds: float = HALF_LIFE_SECONDS
    min_users: float = MIN_USERS
    parallel_per_node: int = PARALLEL_PER_NODE
    parallel_per_cluster: int = PARALLEL_PER_CLUSTER
    bytes_per_minute: int = BYTES_PER_MINUTE
    # Pullers of managed images, which aren't pulled here.
    managed: Pullers = field(default_factory=Pullers)
    startup_taints: frozenset[str] = frozenset()
    pull_pod: PullPod = field(default_factory=lambda: PullPod(method=PullMethod.IMAGE_VOLUME, image="", pause_image=""))


def read_popular_settings(read: Reader, document: Document) -> PopularSettings | None:
    """Read controllers.json; None when popular images and events are switched off. Faults go to the reader."""
    popular = read.mapping(document.get("popularImages"), "popularImages")
    is_on = bool(popular) and read.flag(popular.get("enabled", False), "popularImages.enabled")
    # Headroom reads the same, and reports its faults.
    events = read_booking_settings(Reader(), document)
    if not is_on and events is None:
        return None
    read.known(popular, "popularImages", _KEYS)
    release = read.text(document.get("release"), "release")
    namespace = read.text(document.get("namespace"), "namespace")
    classes = read_pod_classes(read, document)

    def whole(key: str, low: int, high: int) -> int:
        return read.whole(popular.get(key), f"popularImages.{key}", low, high)

    return PopularSettings(
        release=release,
        namespace=namespace,
        classes=classes,
        counts_users=is_on,
        events=events,
        buffered=read_buffered_sets(document),
        per_node=whole("perNode", 0, 1000),
        disk_share=whole("diskHeadroomPercent", 0, 100) / 100,
        reported_images=whole("nodeStatusMaxImages", -1, 100_000),
        managed=read_pullers(read, document),
        startup_taints=frozenset({startup_taint(release, namespace)}),
        pull_pod=_read_pull_pod(read, document.get("puller")),
    )


def _read_pull_pod(read: Reader, value: object) -> PullPod:
    puller = read.mapping(value, "puller")
    return PullPod(
        method=read.choice(puller.get("method"), "puller.method", PullMethod),
        image=read.text(puller.get("image"), "puller.image"),
        pause_image=read.text(puller.get("pauseImage"), "puller.pauseImage"),
        pull_secrets=tuple(
            read.text(name, f"puller.pullSecrets[{index}]")
            for index, name in enumerate(read.items(puller.get("pullSecrets"), "puller.pullSecrets"))
        ),
        tolerations=read_mappings(read, puller.get("tolerations"), "puller.tolerations"),
        priority_class=read.text(puller.get("priorityClassName"), "puller.priorityClassName"),
        service_account=read.text(puller.get("serviceAccountName"), "puller.serviceAccountName"),
        pod_security=read.mapping(puller.get("podSecurityContext", RESTRICTED_POD), "puller.podSecurityContext"),
        container_security=read.mapping(puller.get("securityContext", RESTRICTED_CONTAINER), "puller.securityContext"),
    )
