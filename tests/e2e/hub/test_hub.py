"""Users start servers through a real JupyterHub and its proxy, with Roost and without."""

from collections.abc import Iterator
from typing import Any, Final

import pytest

from tests.harness.controlplane import CONTROLLERS, ControlPlane
from tests.harness.hub.hub import RealHub
from tests.harness.hub.people import Visit, start
from tests.harness.hub.user_pods import PORT, UserPods
from tests.harness.nodes import FakeNodes
from tests.harness.scheduler import start_scheduler
from tests.stack import Stack

pytestmark = pytest.mark.e2e

LIGHT, OTHER, BIG = "quay.io/hub/light:1", "quay.io/hub/other:1", "quay.io/hub/big:1"
PULLS: Final = {LIGHT: 1.0, OTHER: 2.0, BIG: 3.0}
PROFILES: Final[list[dict[str, Any]]] = [
    {"display_name": "Light", "slug": "light", "default": True},
    {"display_name": "Other", "slug": "other", "kubespawner_override": {"image": OTHER}},
    {"display_name": "Big", "slug": "big", "kubespawner_override": {"image": BIG, "mem_guarantee": "2G"}},
    {"display_name": "Huge", "slug": "huge", "kubespawner_override": {"mem_guarantee": "500G", "start_timeout": 5}},
]
SPAWNER: Final[dict[str, Any]] = {
    "image": LIGHT,
    "mem_guarantee": "1G",
    "port": PORT,
    "start_timeout": 60,
    "profile_list": PROFILES,
}
VALUES: Final[dict[str, Any]] = {
    "singleuser": {"image": {"name": LIGHT.partition(":")[0], "tag": "1"}, "memory": {"guarantee": "1G"}},
    "placeholders": [{"name": "default", "replicas": 2, "resources": {"requests": {"memory": "1Gi"}}}],
    "prePuller": {"enabled": False},
    "imageGate": {"mode": "off"},
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    with ControlPlane(controllers=CONTROLLERS) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def nodes(cluster: ControlPlane) -> Iterator[FakeNodes]:
    with FakeNodes(cluster.api) as nodes:
        labels = {"hub.jupyter.org/node-purpose": "user"}
        nodes.create_many(["user-a", "user-b", "user-c"], cpu="16", memory="64Gi", labels=labels)
        yield nodes


@pytest.fixture(scope="module")
def pods(cluster: ControlPlane, nodes: FakeNodes) -> Iterator[UserPods]:
    with UserPods(cluster, PULLS) as pods:
        yield pods


def faults(visits: list[Visit]) -> list[Visit]:
    """Those who reached neither their server nor the hub's own error."""
    return [visit for visit in visits if visit.fault or not (visit.answered_at or visit.failure)]


def test_users_of_three_profiles_reach_their_servers(cluster: ControlPlane, pods: UserPods) -> None:
    namespace = cluster.create_namespace("with-roost")
    with Stack(cluster, namespace, VALUES, controllers=True), RealHub(cluster, namespace, **SPAWNER) as hub:
        visits = start(hub.url, [f"ada{number}" for number in range(12)], ["light", "other", "big"], gap=0.2)
        assert faults(visits) == []
        print([round(visit.seconds, 2) for visit in visits])
        hub.stop_servers()
