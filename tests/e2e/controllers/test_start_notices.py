"""Start notices on a real kubelet with a slow registry, read by the real KubeSpawner's progress
page.
"""

import re
from collections.abc import Iterator
from typing import Any, Final

import pytest

from roost.controllers.start_notices.settings import MOST_NOTICES
from tests.e2e.spawned import Spawn, SpawnPages
from tests.harness.controlplane import ControlPlane
from tests.harness.fixtures import kubelet_cluster, pause_registry
from tests.harness.real_nodes import RealNode
from tests.harness.registry import PushedImage, RealRegistry
from tests.stack import Stack

pytestmark = pytest.mark.e2e

BYTES_PER_SECOND: Final = 1_000_000
LARGE_BYTES: Final = 24_000_000
DOWNLOADS: Final = "Downloading your server's image. "
VALUES: Final[dict[str, Any]] = {
    "placeholders": [],
    "prePuller": {"enabled": False},
    "imageGate": {"mode": "off"},
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    with kubelet_cluster() as cluster:
        yield cluster


@pytest.fixture(scope="module")
def registry() -> Iterator[RealRegistry]:
    with pause_registry() as registry:
        yield registry


def page_settings(namespace: str, image: PushedImage) -> dict[str, Any]:
    return {
        "namespace": namespace,
        "image": image.reference,
        # That of the image.
        "cmd": [],
        "start_timeout": 120,
        "events_enabled": True,
        "slow_spawn_message_threshold": 0,
    }


def notices(spawned: Spawn) -> list[str]:
    """Roost's own lines on the page."""
    ours = r" left\b|Waiting for a machine|Starting a new machine|Making room|is taking longer"
    return [shown.message for shown in spawned.shown if re.search(ours, shown.message)]


def test_the_spawn_page_shows_downloads_and_nothing_of_warm_starts(
    cluster: ControlPlane, registry: RealRegistry
) -> None:
    namespace = cluster.create_namespace()
    image = registry.push_program(f"{namespace}/large:1", size_bytes=LARGE_BYTES)
    registry.bytes_per_second = BYTES_PER_SECOND
    with (
        RealNode(cluster, "first", registry),
        RealNode(cluster, "second", registry),
        Stack(cluster, namespace, VALUES, scheduler=False, webhook=False, controllers=True),
        SpawnPages(cluster, **page_settings(namespace, image)) as pages,
    ):
        (cold,) = pages.start("ada", node_selector={"kubernetes.io/hostname": "first"})
        assert any(DOWNLOADS in line for line in notices(cold)), cold.shown
        (warm,) = pages.start("bob", node_selector={"kubernetes.io/hostname": "first"})
        assert notices(warm) == [], warm.shown
        # What the first download took is what the next one is expected to take.
        (again,) = pages.start("eve", node_selector={"kubernetes.io/hostname": "second"})
        first = next(shown for shown in again.shown if DOWNLOADS in shown.message)
        said = re.search(r"About (\d+) seconds left", first.message)
        assert said is not None, first.message
        left = again.up_at - first.at
        assert abs(int(said[1]) - left) <= max(5.0, 0.3 * left), (first, left)
        assert len(notices(again)) <= MOST_NOTICES
