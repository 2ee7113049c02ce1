"""Popular images on real kubelets: brought where they are missing, by the controllers as rendered.

Users of two hubs run on one node; a second node joins with nothing. Nothing is made faster for the test: the kubelet
reports its images, and Roost plans, at their own intervals.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from roost_core.placement.labels import OWN_COMPONENT_LABEL, OWN_POPULAR_PULLER
from tests.harness.api import Object
from tests.harness.controlplane import ControlPlane
from tests.harness.fixtures import kubelet_cluster, or_give_up, pause_registry
from tests.harness.real_nodes import RealNode
from tests.harness.registry import PushedImage, RealRegistry
from tests.harness.waiting import wait_until
from tests.stack import Stack

pytestmark = pytest.mark.e2e

# A node's images are reported within 40 s, a leader saves up its bytes for a while, and then the pull and its report.
ARRIVES_SECONDS = 180.0
# The disk is known: without it nothing would be brought.
KUBELET = {"localStorageCapacityIsolation": True}
ROOMY = {"diskHeadroomPercent": 84, "perNode": 5}


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    with kubelet_cluster() as cluster:
        yield cluster


@pytest.fixture(scope="module")
def registry() -> Iterator[RealRegistry]:
    with pause_registry() as registry:
        yield registry


@pytest.fixture(scope="module")
def busy_node(cluster: ControlPlane, registry: RealRegistry) -> Iterator[RealNode]:
    """Where the users are."""
    with or_give_up(), RealNode(cluster, "busy", registry, kubelet=KUBELET) as node:
        yield node


class Hubs:
    """Two hubs in namespaces of their own, one Roost for both, and images that no other test has."""

    def __init__(self, cluster: ControlPlane, registry: RealRegistry) -> None:
        self.cluster = cluster
        self.namespaces = (cluster.create_namespace(), cluster.create_namespace())
        self.home = self.namespaces[0]
        self.popular = self._push(registry, "popular")
        self.rare = self._push(registry, "rare")
        self._users = 0

    def _push(self, registry: RealRegistry, name: str) -> PushedImage:
        return registry.push_program(f"{self.home}/{name}:1", size_bytes=3_000_000)

    def values(self, **popular_images: Any) -> dict[str, Any]:
        selector = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": list(self.namespaces)}
        return {
            "placeholders": [
                {"name": "placeholders", "replicas": 0, "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}}}
            ],
            "prePuller": {"enabled": False},
            "imageGate": {"mode": "off"},
            "podClasses": {"user": {"match": {"namespaceSelector": {"matchExpressions": [selector]}}}},
            "popularImages": {"enabled": True, **ROOMY, **popular_images},
        }

    def create_user(self, namespace: str, image: str, node: str) -> str:
        """A user's pod on a node; returns its name."""
        self._users += 1
        name = f"jupyter-{self._users}"
        self.cluster.api.create(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    "name": name,
                    "namespace": namespace,
                    "labels": {"component": "singleuser-server", "app": "jupyterhub"},
                },
                "spec": {
                    "nodeName": node,
                    "terminationGracePeriodSeconds": 0,
                    "automountServiceAccountToken": False,
                    "containers": [{"name": "notebook", "image": image, "imagePullPolicy": "IfNotPresent"}],
                },
            }
        )
        return name

    def wait_running(self, namespace: str, name: str) -> Object:
        """Wait for a user's pod to run."""
        path = f"/api/v1/namespaces/{namespace}/pods/{name}"
        wait_until(lambda: self.cluster.api.get(path)["status"]["phase"] == "Running", 120, f"{name} to run")
        return self.cluster.api.get(path)

    def start_user(self, namespace: str, image: str, node: str) -> Object:
        """A user's pod on a node; returns once it runs."""
        return self.wait_running(namespace, self.create_user(namespace, image, node))

    def fill(self, node: RealNode) -> None:
        """One user of the popular image in each hub, so that it takes both to make it popular; one of the rare one."""
        for namespace in self.namespaces:
            self.start_user(namespace, self.popular.reference, node.name)
        self.start_user(self.home, self.rare.reference, node.name)

    def pull_pods(self) -> list[Object]:
        selector = f"{OWN_COMPONENT_LABEL}={OWN_POPULAR_PULLER}"
        return self.cluster.api.list(f"/api/v1/namespaces/{self.home}/pods", labelSelector=selector)

    def pulled_message(self, pod: Object) -> str:
        """What the kubelet said of the pod's image."""
        metadata = pod["metadata"]
        events = self.cluster.api.list(
            f"/api/v1/namespaces/{metadata['namespace']}/events",
            fieldSelector=f"involvedObject.name={metadata['name']},reason=Pulled",
        )
        return str(events[0]["message"]) if events else ""

    def clear(self) -> None:
        for namespace in self.namespaces:
            self.cluster.api.delete(f"/api/v1/namespaces/{namespace}")
        for namespace in self.namespaces:
            path = f"/api/v1/namespaces/{namespace}/pods"
            wait_until(lambda path=path: not self.cluster.api.list(path), 120, f"{path} to be empty")  # type: ignore[misc] # a default binds the loop's value


@pytest.fixture
def hubs(cluster: ControlPlane, registry: RealRegistry) -> Iterator[Hubs]:
    hubs = Hubs(cluster, registry)
    yield hubs
    registry.up()
    registry.bytes_per_second = None
    hubs.clear()


def digests_on(node: RealNode) -> set[str]:
    """Digests of all that containerd holds on a node."""
    return set(node.images().values())


def test_an_image_that_two_hubs_use_is_brought_to_the_empty_node_and_a_rare_one_is_not(
    cluster: ControlPlane, registry: RealRegistry, busy_node: RealNode, hubs: Hubs
) -> None:
    hubs.fill(busy_node)
    with (
        RealNode(cluster, "empty", registry, kubelet=KUBELET) as empty,
        Stack(cluster, hubs.home, hubs.values(), scheduler=False, webhook=False, controllers=True) as stack,
    ):
        (controllers,) = stack.controllers
        wait_until(
            lambda: hubs.popular.digest in digests_on(empty),
            ARRIVES_SECONDS,
            "the popular image on the empty node",
            explain=lambda: f"{controllers.process.tail()}\n{hubs.pull_pods()}",
        )
        # Nothing is left of the pull, and nothing more is pulled.
        wait_until(lambda: not hubs.pull_pods(), 60, "the pulling pod to be cleared away")
        wait_until(lambda: hubs.popular.reference in empty.status_images(), 60, "the kubelet to report the image")
        wait_until(
            lambda: controllers.metric("roost_controllers_popular_images_missing") == 0, 60, "nothing to be missing"
        )
        assert controllers.metric("roost_controllers_popular_images") == 1
        assert hubs.rare.digest not in digests_on(empty)
        events = cluster.api.list("/api/v1/namespaces/default/events", fieldSelector="involvedObject.name=empty")
        assert "PopularImagePulled" in {event["reason"] for event in events}
        # The kubelet knows the tag: a user starts without the registry, and the pull was worth it.
        registry.down()
        user = hubs.start_user(hubs.home, hubs.popular.reference, "empty")
        assert "already present on machine" in hubs.pulled_message(user)
        wait_until(
            lambda: controllers.metric("roost_controllers_popular_images_pulled", used="yes") == 1,
            60,
            "its use to count",
        )
