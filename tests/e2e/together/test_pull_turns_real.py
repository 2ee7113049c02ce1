"""Pullers of several hubs on one real kubelet: it pulls one image at a time, and each hub in turn.

Roost has no queue of its own for these pods.
"""

from __future__ import annotations

import itertools
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from tests.harness.binaries import HarnessUnavailableError, ensure_binary
from tests.harness.fixtures import PAUSE, give_up, kubelet_cluster
from tests.harness.real_nodes import RealNode
from tests.harness.registry import RealRegistry
from tests.harness.waiting import wait_until
from tests.stack import Stack

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.harness.controlplane import ControlPlane

pytestmark = pytest.mark.e2e

IMAGE_BYTES = 6_000_000
# Three seconds an image: long enough for a second hub's pod to ask for its own meanwhile.
BYTES_PER_SECOND = 2_000_000
# Of the puller's init container, under the name in the values.
ROOST = "docker.io/library/roost:0.1.0"


class Transfer(NamedTuple):
    """The layer of one image, from the registry's first byte to its last."""

    image: str
    began: float
    ended: float


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    with kubelet_cluster() as cluster:
        yield cluster


@pytest.fixture
def registry() -> Iterator[RealRegistry]:
    try:
        pause = ensure_binary("pause")
        with RealRegistry() as registry:
            registry.push_program(PAUSE.partition("/")[2])
            registry.push(ROOST.partition("/")[2], files={"/usr/local/lib/roost/pause": pause})
            yield registry
    except HarnessUnavailableError as error:
        give_up(error)


@pytest.fixture
def node(cluster: ControlPlane, registry: RealRegistry) -> Iterator[RealNode]:
    try:
        with RealNode(cluster, "node-1", registry, labels={"pool": "user"}) as node:
            yield node
    except HarnessUnavailableError as error:
        give_up(error)


def values_for(names: list[str]) -> dict[str, Any]:
    images = [{"name": f"quay.io/{name}", "tag": "1"} for name in names]
    return {
        "singleuser": {"image": images[0], "nodeSelector": {"pool": "user"}},
        "placeholders": [],
        "prePuller": {"extraImages": {f"extra-{index}": image for index, image in enumerate(images[1:])}},
    }


def transfers(registry: RealRegistry, images: list[str]) -> list[Transfer]:
    """Those that are done, in the order of their ends."""
    found = [
        Transfer(image, request.moment, request.ended)
        for request in list(registry.requests)
        for image in images
        if request.path.startswith(f"/v2/{image}/blobs/") and request.bytes_served >= IMAGE_BYTES // 2
    ]
    return sorted(found, key=lambda transfer: transfer.ended)


@pytest.mark.usefixtures("node")
def test_a_hub_with_one_image_waits_for_one_of_another_hub_and_not_for_all(
    cluster: ControlPlane, registry: RealRegistry
) -> None:
    many, one = cluster.create_namespace(), cluster.create_namespace()
    several, single = [f"{many}/image-{index}" for index in range(4)], f"{one}/image"
    images = [*several, single]
    for image in images:
        registry.push(f"{image}:1", size_bytes=IMAGE_BYTES)
    with ExitStack() as hubs:
        # Init containers and sandboxes first, so that only the hubs' images are slow.
        registry.bytes_per_second = BYTES_PER_SECOND
        hubs.enter_context(Stack(cluster, many, values_for(several), webhook=False, scheduler=False))
        wait_until(lambda: asked_for(registry, several), 90, "the first hub's pod to pull", interval_seconds=0.05)
        hubs.enter_context(Stack(cluster, one, values_for([single]), webhook=False, scheduler=False))
        wait_until(lambda: len(transfers(registry, images)) == len(images), 180, "all images to be pulled")
    done = transfers(registry, images)
    for earlier, later in itertools.pairwise(done):
        assert later.began >= earlier.ended, f"pulled at once: {done}"
    order = [transfer.image for transfer in done]
    assert order.index(single) < len(images) - 1, f"the other hub's images all came first: {order}"


def asked_for(registry: RealRegistry, images: list[str]) -> bool:
    return any(request.path.startswith(f"/v2/{image}/") for request in list(registry.requests) for image in images)
