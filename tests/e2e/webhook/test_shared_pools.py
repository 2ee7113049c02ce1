"""Two hubs on the same nodes: their users gather together, and each hub's warm set knows of the
other's pods.
"""

from typing import Any

import pytest

from tests.harness.controlplane import ControlPlane
from tests.harness.nodes import FakeNodes
from tests.harness.waiting import wait_until
from tests.stack import Stack

pytestmark = pytest.mark.e2e


def user(name: str, image: str, **spec: Any) -> dict[str, Any]:
    container = {"name": "main", "image": image, "resources": {"requests": {"cpu": "100m"}}}
    metadata = {"name": name, "labels": {"component": "singleuser-server"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [container], **spec},
    }


def test_a_warm_set_carries_the_pods_of_both_hubs_and_knows_the_images_that_both_brought(
    control_plane: ControlPlane, namespace: str, fake_nodes: FakeNodes
) -> None:
    pool, other_namespace = {"pool": namespace}, control_plane.create_namespace()
    for name in (namespace, other_namespace):
        control_plane.api.patch(f"/api/v1/namespaces/{name}", {"metadata": {"labels": pool}})
    classes = {"user": {"warm": {"podsPerNode": 4}}}
    values = {
        "placeholders": [],
        "sharedPools": {"namespaceSelector": {"matchLabels": pool}},
        "podClasses": classes,
    }
    # The set is made of the oldest nodes first, then by name.
    fake_nodes.create("node-1")
    fake_nodes.create("node-2")
    image = "quay.io/jupyter/r-notebook:2026"
    with Stack(control_plane, namespace, values, scheduler=False) as stack:
        # Hub B's pods as its own hub would bind them.
        theirs = [("quay.io/jupyter/b:1", "node-1")] * 3 + [(image, "node-2")]
        for number, (its, node) in enumerate(theirs):
            control_plane.api.create(user(f"b-{number}", its, nodeName=node), other_namespace)

        def preferred() -> list[str]:
            given = stack.cluster.api.create(user("asks", image), namespace, dryRun="All")
            terms = given["spec"]["affinity"]["nodeAffinity"][
                "preferredDuringSchedulingIgnoredDuringExecution"
            ]
            fields = [term["preference"].get("matchFields") for term in terms]
            return [found[0]["values"][0] for found in fields if found]

        # Four pods and this one need two nodes with room for four; the one that holds the image
        # comes first.
        wait_until(
            lambda: preferred() == ["node-2", "node-1"],
            20,
            "the webhook to see hub B",
            explain=preferred,
        )
        assert not stack.webhooks[0].process.log_lines("forbidden")
    control_plane.api.delete(f"/api/v1/namespaces/{other_namespace}")
