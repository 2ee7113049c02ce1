"""A real autoscaler meets what Roost renders: Karpenter, with machines that are Node objects only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from roost_core.placement.labels import pulled_label, startup_taint
from tests.harness.nodes import FakeNodes
from tests.harness.waiting import wait_until
from tests.stack import render

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from tests.harness.api import Object
    from tests.harness.controlplane import ControlPlane
    from tests.harness.karpenter import Karpenter

pytestmark = pytest.mark.e2e

RELEASE = "hub"
USERS = {"hub.jupyter.org/node-purpose": "user"}
IMAGE = "quay.io/jupyter/scipy-notebook:2026-11-03"
# Karpenter looks at a node it means to remove for 15 seconds more, and works in rounds of 10.
LEAVING_SECONDS = 150.0
# Two rounds of Karpenter's: after these it has made up its mind about a pending pod.
DECIDED_SECONDS = 5.0


class Site:
    """A cluster that grows, for one test: its own namespace, and a node pool that is gone afterwards."""

    def __init__(self, cluster: ControlPlane, karpenter: Karpenter) -> None:
        self.cluster = cluster
        self.karpenter = karpenter
        self.namespace = cluster.create_namespace()
        self.taint = startup_taint(RELEASE, self.namespace)
        self.nodes = FakeNodes(cluster.api)

    def create_pod(self, name: str, cpu: str = "1", **spec: Any) -> None:
        spec = {"nodeSelector": USERS, "terminationGracePeriodSeconds": 0, **spec}
        spec["containers"] = [{"name": "main", "image": IMAGE, "resources": {"requests": {"cpu": cpu}}}]
        metadata = {"name": name, "labels": {"component": "singleuser-server"}}
        self.cluster.create_pod({"metadata": metadata, "spec": spec}, self.namespace)

    def delete_pod(self, name: str) -> None:
        self.cluster.api.delete(f"/api/v1/namespaces/{self.namespace}/pods/{name}")

    def node_of(self, pod: str) -> str:
        return self.cluster.wait_for_pod_node(pod, self.namespace, 60)

    def node_names(self) -> list[str]:
        return sorted(node["metadata"]["name"] for node in self.karpenter.nodes())

    def lift_startup_taint(self, node: str) -> None:
        taints = self.nodes.get(node)["spec"].get("taints", [])
        self.nodes.set_taints(node, [taint for taint in taints if taint["key"] != self.taint])


@pytest.fixture
def site(growing: tuple[ControlPlane, Karpenter]) -> Iterator[Site]:
    cluster, karpenter = growing
    site = Site(cluster, karpenter)
    yield site
    cluster.api.delete(f"/api/v1/namespaces/{site.namespace}")
    for pool in cluster.api.list("/apis/karpenter.sh/v1/nodepools"):
        karpenter.delete_node_pool(pool["metadata"]["name"])


def test_pending_users_make_one_node_that_joins_with_the_startup_taint(site: Site) -> None:
    site.karpenter.create_node_pool("users", labels=USERS, startup_taints=[f"{site.taint}:NoSchedule"])
    users = ["user-1", "user-2", "user-3"]
    for user in users:
        site.create_pod(user)

    (node,) = site.karpenter.wait_for_nodes(1)
    assert {"key": site.taint, "effect": "NoSchedule"} in node["spec"]["taints"]
    assert node["metadata"]["labels"].items() >= USERS.items()
    # Karpenter counts on the taint to go: it makes no second node for those who wait behind it.
    stays_so(site, nodes=1)
    assert [site.cluster.pod(user, site.namespace)["spec"].get("nodeName") for user in users] == [None] * 3

    site.lift_startup_taint(node["metadata"]["name"])
    assert {site.node_of(user) for user in users} == {node["metadata"]["name"]}
    assert len(site.karpenter.node_claims()) == 1


def test_a_user_who_requires_an_images_label_makes_no_node_but_a_placeholder_does(site: Site) -> None:
    site.karpenter.create_node_pool("users", labels=USERS)
    label = pulled_label(RELEASE, site.namespace, IMAGE)
    terms = [{"matchExpressions": [{"key": label, "operator": "In", "values": ["true"]}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    site.create_pod("user", affinity={"nodeAffinity": required})

    def refusal() -> str | None:
        told = [
            event.get("message", "") for event in site.cluster.api.list(f"/api/v1/namespaces/{site.namespace}/events")
        ]
        return next((message for message in told if "does not have known values" in message), None)

    assert label in wait_until(refusal, 60, "Karpenter to refuse a node for the user")
    assert not site.karpenter.node_claims()

    site.create_pod("placeholder")
    (node,) = site.karpenter.wait_for_nodes(1)
    name = node["metadata"]["name"]
    assert site.node_of("placeholder") == name
    assert site.cluster.pod("user", site.namespace)["spec"].get("nodeName") is None
    site.nodes.set_labels(name, {label: "true"})
    assert site.node_of("user") == name


def test_an_empty_node_leaves_though_daemons_and_placeholders_with_soft_terms_are_there(
    site: Site, tmp_path: Path
) -> None:
    site.karpenter.create_node_pool(
        "users",
        labels=USERS,
        instance_types=["small"],  # 3.9 CPU
        consolidate_after="1s",
        consolidation_policy="WhenEmptyOrUnderutilized",
    )
    site.cluster.api.create(daemon_set({"cpu": "100m"}), site.namespace)
    for manifest in rendered_placeholders(site.namespace, tmp_path, replicas=2, cpu="1"):
        site.cluster.api.create(manifest, site.namespace)
    (node,) = site.karpenter.wait_for_nodes(1)
    first = node["metadata"]["name"]
    wait_until(lambda: len(pods_on(site, first)) == 3, 60, "two placeholders and a daemon", explain=site.node_names)

    # The user takes both placeholders' place, and they ask for another node; or, on a busy machine, Karpenter has made
    # one for the user before the placeholders have gone.
    site.create_pod("user", cpu="3")
    left = site.node_of("user")
    second = next(name for node in site.karpenter.wait_for_nodes(2) if (name := node["metadata"]["name"]) != left)
    wait_until(lambda: len(pods_on(site, second)) == 3, 60, "two placeholders and a daemon", explain=site.node_names)
    site.delete_pod("user")
    wait_until(
        lambda: site.node_names() == [second],
        LEAVING_SECONDS,
        "the empty node to leave",
        explain=lambda: (site.node_names(), site.karpenter.process.tail(5)),
    )
    assert [pod["status"]["phase"] for pod in pods_on(site, second)] == ["Running"] * 3


def test_a_capacity_buffer_holds_a_node_until_it_is_scaled_down(site: Site, tmp_path: Path) -> None:
    site.karpenter.create_node_pool(
        "users", labels=USERS, startup_taints=[f"{site.taint}:NoSchedule"], consolidate_after="1s"
    )
    template, buffer = rendered_buffer(site.namespace, tmp_path, replicas=3, cpu="1")
    site.cluster.api.create(template, site.namespace, fieldValidation="Strict")
    site.cluster.api.create(buffer, site.namespace, fieldValidation="Strict")

    (node,) = site.karpenter.wait_for_nodes(1)
    assert {"key": site.taint, "effect": "NoSchedule"} in node["spec"]["taints"]
    site.lift_startup_taint(node["metadata"]["name"])
    path = site.cluster.api.path_of(buffer, site.namespace)
    wait_until(lambda: condition_of(site, path, "Provisioning") == "True", 60, "the buffer to be provisioned")
    site.create_pod("user", cpu="2")
    assert site.node_of("user") == node["metadata"]["name"], "a user takes a placeholder without waiting"
    site.karpenter.wait_for_nodes(2)  # the buffer is filled up again

    site.delete_pod("user")
    site.cluster.api.patch(path, {"spec": {"replicas": 0}})
    for name in site.node_names():  # Karpenter leaves a node alone while its startup taint stands
        site.lift_startup_taint(name)
    wait_until(lambda: not site.node_names(), LEAVING_SECONDS, "the buffer's nodes to leave", explain=site.node_names)


def stays_so(site: Site, *, nodes: int) -> None:
    """Karpenter has decided, and decided so."""
    with pytest.raises(AssertionError, match="waited"):
        wait_until(lambda: len(site.karpenter.node_claims()) != nodes, DECIDED_SECONDS, "another node")


def condition_of(site: Site, path: str, kind: str) -> str | None:
    conditions = site.cluster.api.get(path).get("status", {}).get("conditions", [])
    return next((condition["status"] for condition in conditions if condition["type"] == kind), None)


def pods_on(site: Site, node: str) -> list[Object]:
    return site.cluster.api.list("/api/v1/pods", fieldSelector=f"spec.nodeName={node}")


def daemon_set(requests: Mapping[str, str]) -> Object:
    containers = [{"name": "main", "image": "daemon:1", "resources": {"requests": dict(requests)}}]
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "daemon"},
        "spec": {
            "selector": {"matchLabels": {"name": "daemon"}},
            "template": {
                "metadata": {"labels": {"name": "daemon"}},
                "spec": {"tolerations": [{"operator": "Exists"}], "containers": containers},
            },
        },
    }


def rendered_placeholders(namespace: str, folder: Path, *, replicas: int, cpu: str) -> list[Object]:
    """Roost's placeholders with all their soft terms, for the cluster's own scheduler."""
    entry = {
        "name": "placeholders",
        "replicas": replicas,
        "resources": {"requests": {"cpu": cpu}},
        "nodeSelector": USERS,
    }
    # Karpenter takes a soft term that would part them from users for a requirement: the harder case.
    values = {"placeholders": [entry], "podClasses": {"placeholder": {"avoid": {"user": 1}}}}
    rendered = render(values, release=RELEASE, namespace=namespace, folder=folder)
    kinds = ("PriorityClass", "PodDisruptionBudget", "StatefulSet")
    manifests = [
        manifest for manifest in rendered if manifest["kind"] in kinds and "placeholder" in manifest["metadata"]["name"]
    ]
    assert sorted(manifest["kind"] for manifest in manifests) == ["PodDisruptionBudget", "PriorityClass", "StatefulSet"]
    for manifest in manifests:
        if manifest["kind"] == "StatefulSet":
            assert manifest["spec"]["template"]["spec"]["affinity"]["podAntiAffinity"]
            del manifest["spec"]["template"]["spec"]["schedulerName"]
    return manifests


def rendered_buffer(namespace: str, folder: Path, *, replicas: int, cpu: str) -> tuple[Object, Object]:
    """The PodTemplate of Roost's placeholders and the CapacityBuffer over it."""
    entry = {
        "name": "placeholders",
        "replicas": replicas,
        "resources": {"requests": {"cpu": cpu}},
        "nodeSelector": USERS,
    }
    backend = {"placeholder": {"backend": "capacityBuffer"}, "placeholderMover": {"enabled": False}}
    rendered = render({**backend, "placeholders": [entry]}, release=RELEASE, namespace=namespace, folder=folder)
    (template,) = (manifest for manifest in rendered if manifest["kind"] == "PodTemplate")
    (buffer,) = (manifest for manifest in rendered if manifest["kind"] == "CapacityBuffer")
    assert not any(manifest["kind"] == "StatefulSet" for manifest in rendered)
    return template, buffer
