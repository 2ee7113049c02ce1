"""Two hubs on the same nodes: their users gather together, and each hub's warm set knows of the other's pods."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from tests.harness.waiting import wait_until
from tests.stack import Stack

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.harness.controlplane import ControlPlane
    from tests.harness.nodes import FakeNodes

pytestmark = pytest.mark.e2e

IMAGE = "quay.io/jupyter/scipy-notebook:2026-11-03"


@pytest.fixture
def other_namespace(control_plane: ControlPlane) -> Iterator[str]:
    name = control_plane.create_namespace()
    yield name
    control_plane.api.delete(f"/api/v1/namespaces/{name}")


def user(name: str, *, node: str = "", image: str = IMAGE) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "terminationGracePeriodSeconds": 0,
        "containers": [{"name": "main", "image": image, "resources": {"requests": {"cpu": "100m"}}}],
    }
    if node:
        spec["nodeSelector"] = {"kubernetes.io/hostname": node}
    metadata = {"name": name, "labels": {"component": "singleuser-server"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def users_gather_on(
    control_plane: ControlPlane, namespaces: tuple[str, str], fake_nodes: FakeNodes, values: dict[str, Any]
) -> str:
    """Where hub A's next user goes, with 8 users of hub B on node-1 and one of A's on node-2."""
    fake_nodes.create("node-1")
    fake_nodes.create("node-2")
    with ExitStack() as running:
        first, second = (running.enter_context(Stack(control_plane, name, values)) for name in namespaces)
        for number in range(8):
            second.create_pod(user(f"b-{number}", node="node-1"))
        first.create_pod(user("a-0", node="node-2"))
        for number in range(8):
            assert second.wait_for_node(f"b-{number}") == "node-1"
        assert first.wait_for_node("a-0") == "node-2"
        first.create_pod(user("a-1"))
        return first.wait_for_node("a-1")


@pytest.mark.usefixtures("pod_keeper")
@pytest.mark.parametrize("case", [(True, "node-1"), (False, "node-2")])
def test_users_of_all_hubs_that_share_nodes_gather(
    control_plane: ControlPlane,
    namespace: str,
    other_namespace: str,
    fake_nodes: FakeNodes,
    case: tuple[bool, str],
) -> None:
    are_shared, node = case
    pool = {"pool": namespace}
    for name in (namespace, other_namespace):
        control_plane.api.patch(f"/api/v1/namespaces/{name}", {"metadata": {"labels": pool}})
    shared = {"sharedPools": {"namespaceSelector": {"matchLabels": pool}}} if are_shared else {}
    # By the users' own terms alone.
    values = {"placeholders": [], "podClasses": {"user": {"warm": None}}, **shared}
    assert users_gather_on(control_plane, (namespace, other_namespace), fake_nodes, values) == node


def test_a_warm_set_carries_the_pods_of_both_hubs_and_knows_the_images_that_both_brought(
    control_plane: ControlPlane,
    namespace: str,
    other_namespace: str,
    fake_nodes: FakeNodes,
) -> None:
    pool = {"pool": namespace}
    for name in (namespace, other_namespace):
        control_plane.api.patch(f"/api/v1/namespaces/{name}", {"metadata": {"labels": pool}})
    values = {
        "placeholders": [],
        "sharedPools": {"namespaceSelector": {"matchLabels": pool}},
        "podClasses": {"user": {"warm": {"podsPerNode": 4}}},
    }
    # The set is made of the oldest nodes first, then by name.
    fake_nodes.create("node-1")
    fake_nodes.create("node-2")
    image = "quay.io/jupyter/r-notebook:2026"
    with Stack(control_plane, namespace, values, scheduler=False) as stack:
        # Hub B's pods as its own hub would bind them.
        for number in range(3):
            body = user(f"b-{number}", image="quay.io/jupyter/b:1")
            body["spec"]["nodeName"] = "node-1"
            control_plane.api.create(body, other_namespace)
        body = user("b-3", image=image)
        body["spec"]["nodeName"] = "node-2"
        control_plane.api.create(body, other_namespace)

        def preferred() -> list[str]:
            given = stack.cluster.api.create(user("asks", image=image), namespace, dryRun="All")
            terms = given["spec"]["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
            fields = [term["preference"].get("matchFields") for term in terms]
            return [found[0]["values"][0] for found in fields if found]

        # Four pods and this one need two nodes with room for four; the one that holds the image comes first.
        wait_until(lambda: preferred() == ["node-2", "node-1"], 20, "the webhook to see hub B", explain=preferred)
        assert not stack.webhooks[0].process.log_lines("forbidden")
