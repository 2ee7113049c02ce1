"""Read the settings of popular images from release.json."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from roost.controllers.contract.release import ReleaseDocument

# An image with at least this many users is popular.
MIN_USERS: Final = 2.0
# After so long, a user that has left counts half.
HALF_LIFE_SECONDS: Final = 86_400.0
# Concurrent pulls over all nodes; one on a node.
PARALLEL: Final = 3
# The most bytes a minute over all nodes.
BYTES_PER_MINUTE: Final = 2 * 2**30

_KEYS: Final = ("enabled", "perNode", "diskHeadroomPercent", "nodeStatusMaxImages")


class PullMethod(StrEnum):
    """How a pod pulls an image: `prePuller.method`, with `auto` resolved."""

    IMAGE_VOLUME = "imageVolume"
    NOOP = "noop"


@dataclass(frozen=True, slots=True, kw_only=True)
class PopularSettings:
    """`popularImages`, and what else the plan needs of the release."""

    # Says whose pods are users', which events and sets there are, and which images pullers bring:
    # not these.
    release: ReleaseDocument
    # `enabled`. False: only the images of booked events are pulled.
    counts_users: bool
    # How many of the most used images a node should have.
    per_node: int
    # Share of a node's disk that images may fill, 0 to 1: `diskHeadroomPercent`, despite its name.
    disk_share: float
    # kubelets' nodeStatusMaxImages: a node that lists this many may hold more. Negative: nodes list
    # all.
    reported_images: int
    # How the pods pull, as the puller's DaemonSets do.
    method: PullMethod
    # Roost's own image, which has the static pause program; and the one that runs where images are
    # mounted.
    image: str
    pause_image: str
    pull_secrets: tuple[str, ...]
    annotations: Mapping[str, str]
    priority_class: str
    service_account: str
    # As in a manifest:
    pod_tolerations: tuple[Mapping[str, object], ...]
    pod_security: Mapping[str, object]
    container_security: Mapping[str, object]
    min_users: float = MIN_USERS
    parallel: int = PARALLEL
    bytes_per_minute: int = BYTES_PER_MINUTE


def read_popular_settings(release: ReleaseDocument) -> PopularSettings:
    """Read `popularImages`, `events` and `prePuller` of release.json."""
    read = release.read
    popular = read.mapping(release.document.get("popularImages"), "popularImages")
    read.known(popular, "popularImages", _KEYS)
    puller = read.mapping(release.document.get("prePuller"), "prePuller")

    def integer(key: str) -> int:
        return read.integer(popular.get(key), f"popularImages.{key}")

    return PopularSettings(
        release=release,
        counts_users=read.flag(popular.get("enabled"), "popularImages.enabled"),
        per_node=integer("perNode"),
        disk_share=integer("diskHeadroomPercent") / 100,
        reported_images=integer("nodeStatusMaxImages"),
        method=read.choice(puller.get("method"), "prePuller.method", PullMethod),
        image=read.text(puller.get("image"), "prePuller.image"),
        pause_image=read.text(puller.get("pauseImage"), "prePuller.pauseImage"),
        pull_secrets=tuple(
            read.text(name, f"prePuller.pullSecrets[{index}]")
            for index, name in enumerate(
                read.items(puller.get("pullSecrets"), "prePuller.pullSecrets")
            )
        ),
        pod_tolerations=read.mappings(puller.get("tolerations"), "prePuller.tolerations"),
        annotations={
            key: str(text)
            for key, text in read.mapping(
                puller.get("annotations"), "prePuller.annotations"
            ).items()
        },
        priority_class=read.text(puller.get("priorityClassName"), "prePuller.priorityClassName"),
        service_account=read.text(puller.get("serviceAccountName"), "prePuller.serviceAccountName"),
        pod_security=read.mapping(puller.get("podSecurityContext"), "prePuller.podSecurityContext"),
        container_security=read.mapping(puller.get("securityContext"), "prePuller.securityContext"),
    )
