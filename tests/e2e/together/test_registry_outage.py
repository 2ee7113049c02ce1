"""A registry is down, or refuses one tenant's pull secret: users still start on the node that holds
their image, on a real control plane.
"""

import itertools
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from roost_core.objects.fields import JSONObject
from tests.e2e.pods import IMAGE, SINGLEUSER, USER, pod
from tests.harness.api import STRATEGIC, ApiError
from tests.harness.controlplane import ControlPlane
from tests.harness.nodes import FakeNodes
from tests.harness.pods import PodKeeper
from tests.harness.scheduler import start_scheduler
from tests.harness.waiting import wait_until
from tests.stack import Stack

pytestmark = pytest.mark.e2e

# No puller brings it, as BinderHub's.
BUILT = "quay.io/binder/r2d-example:abc123"
SIZES = {IMAGE: 1_500_000_000, BUILT: 3_000_000_000}
HOLDER = "a"
FOLLOWERS = 4
THEIRS = [{"name": "theirs"}]


class Registry:
    """It refuses: kubelets that ask it tell their pods of it."""

    def __init__(self, cluster: ControlPlane) -> None:
        self._api = cluster.api
        # Whether everybody is refused, or who has these pull secrets.
        self.is_down = False
        self.refused: list[dict[str, str]] | None = None

    def refuses(self, body: JSONObject) -> bool:
        """Whether a bound pod waits in vain; its status says so then."""
        spec = body["spec"]
        container = spec["containers"][0]
        is_held = spec["nodeName"] == HOLDER and container.get("imagePullPolicy") != "Always"
        has_leave = not self.is_down and spec.get("imagePullSecrets", []) != self.refused
        if container["image"] != BUILT or is_held or has_leave:
            return False
        threading.Thread(target=self._tell, args=[body], daemon=True).start()
        return True

    def _tell(self, body: JSONObject) -> None:
        metadata = body["metadata"]
        waiting = {"reason": "ErrImagePull", "message": "dial tcp: i/o timeout"}
        told = [
            {
                "name": container["name"],
                "image": container["image"],
                "imageID": "",
                "ready": False,
                "restartCount": 0,
                "state": {"waiting": waiting},
            }
            for container in body["spec"]["containers"]
        ]
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}/status"
        change = {"metadata": {"uid": metadata["uid"]}, "status": {"containerStatuses": told}}
        try:
            self._api.patch(path, change, content_type=STRATEGIC)
        except ApiError as error:
            if error.status not in (404, 409, 422):
                raise


class Hubs:
    """A namespace that Roost serves, and one that it doesn't, over the same nodes."""

    def __init__(self, stack: Stack, plain: str, registry: Registry) -> None:
        self.registry = registry
        self.served = stack.namespace
        self.plain = plain
        self._cluster = stack.cluster
        self._numbers = itertools.count()

    def spawn(self, namespace: str, policy: str, **spec: Any) -> str:
        """Let a user come; where it is bound."""
        name = f"user-{next(self._numbers)}"
        body = pod(name, USER, requests={"cpu": "100m"}, **spec)
        body["spec"]["containers"][0] |= {"image": BUILT, "imagePullPolicy": policy}
        self._cluster.create_pod(body, namespace)
        path = f"/api/v1/namespaces/{namespace}/pods/{name}"
        node: str = wait_until(
            lambda: self._cluster.api.get(path)["spec"].get("nodeName"), 30, f"{name} to be bound"
        )
        expected = "Pending" if policy == "Always" else "Running"

        def has_come_so_far() -> bool:
            status = self._cluster.api.get(path)["status"]
            is_told = any("waiting" in one["state"] for one in status.get("containerStatuses", ()))
            return status["phase"] == "Running" or is_told

        wait_until(has_come_so_far, 30, f"{name} to run, or to be told why not")
        assert self._cluster.api.get(path)["status"]["phase"] == expected, f"{name} on {node}"
        return node


@pytest.fixture
def hubs(control_plane: ControlPlane, namespace: str, fake_nodes: FakeNodes) -> Iterator[Hubs]:
    registry = Registry(control_plane)
    for name in ("a", "b", "c"):
        images = SIZES if name == HOLDER else {IMAGE: SIZES[IMAGE]}
        fake_nodes.create(name, cpu="8", images=images)
    values = {"singleuser": SINGLEUSER, "placeholders": []}
    with (
        PodKeeper(control_plane.api, hold=registry.refuses),
        start_scheduler(control_plane),
        Stack(control_plane, namespace, values, controllers=True) as stack,
    ):
        yield Hubs(stack, control_plane.create_namespace(), registry)


def test_users_go_on_starting_where_their_image_is_while_its_registry_is_down(hubs: Hubs) -> None:
    hubs.registry.is_down = True
    for namespace in (hubs.plain, hubs.served):
        assert hubs.spawn(namespace, "Always") == HOLDER
        followers = [hubs.spawn(namespace, "IfNotPresent") for _ in range(FOLLOWERS)]
        assert followers == [HOLDER] * FOLLOWERS


def test_a_wrong_pull_secret_of_one_tenant_turns_nobody_else_away(hubs: Hubs) -> None:
    hubs.registry.refused = THEIRS
    for namespace in (hubs.plain, hubs.served):
        assert hubs.spawn(namespace, "Always", imagePullSecrets=THEIRS) == HOLDER
        followers = [hubs.spawn(namespace, "IfNotPresent") for _ in range(FOLLOWERS)]
        assert followers == [HOLDER] * FOLLOWERS
