"""Placeholders move to a new node on a real control plane: everything as rendered, only kubelets are played."""

import datetime as dt
from collections.abc import Iterator
from typing import Any

import pytest

from roost_core.placement.labels import attract_label
from tests.harness.api import Object
from tests.harness.controlplane import ControlPlane
from tests.harness.nodes import FakeNodes
from tests.harness.pods import PodKeeper
from tests.harness.waiting import wait_until
from tests.stack import Stack

pytestmark = pytest.mark.e2e

IMAGE = "quay.io/jupyter/scipy-notebook:2026-11-03"
IMAGES = {IMAGE: 1_500_000_000}
PLACEHOLDERS = 6
EVICTIONS_PER_MINUTE = 3
# Two minutes of evictions, after a new leader's minute without any; and a machine that does other things, too.
MOVED_SECONDS = 300.0


class Pool:
    """One hub with a pool of its own on the shared cluster."""

    def __init__(self, cluster: ControlPlane, namespace: str, nodes: FakeNodes, **more: Any) -> None:
        self.cluster = cluster
        self.namespace = namespace
        self.nodes = nodes
        self.pool = {"pool": namespace}
        name, tag = IMAGE.rsplit(":", 1)
        default_set = {
            "name": "default",
            "replicas": PLACEHOLDERS,
            "resources": {"requests": {"cpu": "100m", "memory": "1Gi"}},
            "nodeSelector": self.pool,
        }
        values = {
            "singleuser": {"image": {"name": name, "tag": tag}, "nodeSelector": self.pool},
            "placeholders": [{**default_set, **more.pop("placeholders", {})}],
            "placeholderMover": {
                "evictionsPerMinute": EVICTIONS_PER_MINUTE,
                "markAfterSeconds": 2,
                "keepMarkSeconds": 5,
                "flapSeconds": 5,
            },
            **more,
        }
        self.stack = Stack(cluster, namespace, values, controllers=True)

    def add_node(self, name: str, **details: Any) -> str:
        """A node of the pool, by a name of its own, with its images."""
        full = f"{name}-{self.namespace}"
        self.nodes.create(full, labels=self.pool, **{"memory": "12Gi", "images": IMAGES, **details})
        return full

    def add_user(self, name: str) -> Object:
        resources = {"requests": {"cpu": "100m", "memory": "1Gi"}}
        return self.stack.create_pod(
            {
                "metadata": {"name": name, "labels": {"component": "singleuser-server"}},
                "spec": {
                    "nodeSelector": self.pool,
                    "containers": [{"name": "notebook", "image": IMAGE, "resources": resources}],
                },
            }
        )

    def pods(self, component: str) -> list[Object]:
        path = f"/api/v1/namespaces/{self.namespace}/pods"
        return self.cluster.api.list(path, labelSelector=f"component={component}")

    def placeholders(self) -> list[Object]:
        return self.pods("user-placeholder")

    def count_on(self, node: str) -> int:
        return sum(pod["spec"].get("nodeName") == node for pod in self.placeholders())

    def marked(self) -> list[str]:
        label = attract_label("hub", self.namespace, "default")
        return [node["metadata"]["name"] for node in self.cluster.api.list("/api/v1/nodes", labelSelector=label)]

    def explain(self) -> object:
        gauges = [line for line in self.stack.controllers[-1].get("/metrics")[1].splitlines() if "placeholder" in line]
        return (
            {pod["metadata"]["name"]: pod["spec"].get("nodeName") for pod in self.placeholders()},
            self.marked(),
            "\n".join(line for line in gauges if not line.startswith("#") and "_bucket" not in line),
            self.stack.controllers[-1].process.tail(),
        )


@pytest.fixture
def hub(control_plane: ControlPlane, namespace: str, fake_nodes: FakeNodes, pod_keeper: PodKeeper) -> Iterator[Pool]:
    pool = Pool(control_plane, namespace, fake_nodes)
    with pool.stack:
        yield pool


def test_a_new_node_attracts_placeholders_at_the_budgets_pace_and_users_pack_where_they_were(hub: Pool) -> None:
    old = hub.add_node("old")
    wait_until(lambda: hub.count_on(old) == PLACEHOLDERS, 90, "all placeholders on the only node", explain=hub.explain)
    wait_until(lambda: hub.marked() == [old], 90, "the only node to be marked", explain=hub.explain)
    for index in range(3):
        hub.add_user(f"user-{index}")
        assert hub.stack.wait_for_node(f"user-{index}", 60) == old
    users = {pod["metadata"]["uid"] for pod in hub.pods("singleuser-server")}

    new = hub.add_node("new")
    wait_until(lambda: hub.marked() == [new], 90, "the new node to be marked", explain=hub.explain)
    wait_until(lambda: hub.count_on(new) == PLACEHOLDERS, MOVED_SECONDS, "all on the new node", explain=hub.explain)

    created = sorted(dt.datetime.fromisoformat(pod["metadata"]["creationTimestamp"]) for pod in hub.placeholders())
    # Whole seconds, and each successor comes a moment after its eviction.
    assert (created[EVICTIONS_PER_MINUTE] - created[0]).total_seconds() >= 57
    controllers = hub.stack.controllers[0]
    assert controllers.metric("roost_controllers_evictions_total") == PLACEHOLDERS, "each placeholder moved once"
    wait_until(
        lambda: controllers.metric("roost_controllers_placeholders", set="default", state="marked") == PLACEHOLDERS,
        60,
        "the metrics to say so",
        explain=hub.explain,
    )
    assert {pod["metadata"]["uid"] for pod in hub.pods("singleuser-server")} == users

    # Where the placeholders were is room, and users fill it up, not the node with the placeholders.
    assert hub.count_on(old) == 0
    for index in range(3, 9):
        hub.add_user(f"user-{index}")
        assert hub.stack.wait_for_node(f"user-{index}", 60) == old
    assert hub.count_on(new) == PLACEHOLDERS
