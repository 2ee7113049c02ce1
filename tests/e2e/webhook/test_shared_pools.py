"""Two hubs on the same nodes: their users gather together, and each hub's warm set knows of the other's pods."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.harness.api import ApiError
from tests.harness.controlplane import ControlPlane
from tests.harness.nodes import FakeNodes
from tests.harness.waiting import wait_until
from tests.stack import Stack

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


def test_a_warm_set_carries_the_pods_of_both_hubs_and_knows_the_images_that_both_brought(
    control_plane: ControlPlane, namespace: str, other_namespace: str, fake_nodes: FakeNodes
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


def test_users_start_although_a_quota_forbids_affinities_across_namespaces(
    control_plane: ControlPlane, namespace: str
) -> None:
    """Kubernetes' documented guard: with a term that names a namespace each user would be refused."""
    guard = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "no-terms-across-namespaces"},
        "spec": {
            "hard": {"pods": "0"},
            "scopeSelector": {"matchExpressions": [{"scopeName": "CrossNamespacePodAffinity", "operator": "Exists"}]},
        },
    }
    control_plane.api.create(guard, namespace)
    path = f"/api/v1/namespaces/{namespace}/resourcequotas/no-terms-across-namespaces"
    # As the controller of quotas, which doesn't run here, would.
    control_plane.api.patch(f"{path}/status", {"status": {"hard": {"pods": "0"}, "used": {"pods": "0"}}})
    values = {"placeholders": [], "sharedPools": {"namespaceSelector": {"matchLabels": {"pool": namespace}}}}
    with Stack(control_plane, namespace, values, scheduler=False) as stack:
        across = user("bob")
        term = {"topologyKey": "kubernetes.io/hostname", "namespaceSelector": {}, "labelSelector": {}}
        preferred = [{"weight": 1, "podAffinityTerm": term}]
        across["spec"]["affinity"] = {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
        with pytest.raises(ApiError, match="exceeded quota"):
            stack.create_pod(across)
        created = stack.create_pod(user("ada"))
        terms = created["spec"]["affinity"]["podAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
        assert ["namespaceSelector" in term["podAffinityTerm"] for term in terms] == [False]
        assert not stack.webhooks[0].process.log_lines("forbidden")
