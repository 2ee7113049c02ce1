"""A hub in a cluster that grows by a real Karpenter, all of Roost around it; its node pool is gone afterwards."""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Self

import pytest

from roost_core.placement.labels import pulled_label, startup_taint
from tests.harness.api import Object
from tests.harness.controlplane import ControlPlane
from tests.harness.fixtures import or_give_up
from tests.harness.karpenter import Karpenter
from tests.harness.nodes import FakeNodes
from tests.harness.pods import PodKeeper
from tests.harness.scheduler import start_scheduler
from tests.stack import Stack

RELEASE = "hub"
USERS = {"hub.jupyter.org/node-purpose": "user"}
IMAGE = "quay.io/jupyter/scipy-notebook:2026-11-03"
SINGLEUSER = {"image": {"name": IMAGE.rpartition(":")[0], "tag": IMAGE.rpartition(":")[2]}, "nodeSelector": USERS}
# Karpenter looks at a node it means to remove for 15 seconds more, and works in rounds of 10.
LEAVING_SECONDS = 180.0


@contextlib.contextmanager
def growing_cluster(
    request: pytest.FixtureRequest, hold: Callable[[Object], bool] = lambda _: False
) -> Iterator[tuple[ControlPlane, Karpenter]]:
    """A cluster without nodes, Kubernetes' own scheduler, and Karpenter. hold: pods that stay as they are."""
    with contextlib.ExitStack() as stack:
        with or_give_up():
            cluster = stack.enter_context(ControlPlane())
            stack.enter_context(start_scheduler(cluster))
            stack.enter_context(PodKeeper(cluster.api, hold=hold))
            karpenter = stack.enter_context(Karpenter(cluster))
        yield cluster, karpenter
        cluster.keep_logs = request.session.testsfailed > 0


class GrowingHub:
    """`with GrowingHub.of(cluster, karpenter, values) as hub:`; a subclass says more of what is placed."""

    def __init__(self, cluster: ControlPlane, karpenter: Karpenter, values: Mapping[str, Any]) -> None:
        self.cluster = cluster
        self.karpenter = karpenter
        self.namespace = cluster.create_namespace()
        self.taint = startup_taint(RELEASE, self.namespace)
        self.label = pulled_label(RELEASE, self.namespace, IMAGE)
        self.nodes = FakeNodes(cluster.api)
        self.stack = Stack(cluster, self.namespace, values, release=RELEASE, controllers=True)

    @classmethod
    @contextlib.contextmanager
    def of(cls, cluster: ControlPlane, karpenter: Karpenter, values: Mapping[str, Any]) -> Iterator[Self]:
        """The hub while its programs run; afterwards its pools and nodes are gone."""
        hub = cls(cluster, karpenter, values)
        try:
            with hub.stack:
                yield hub
        finally:
            cluster.api.delete(f"/api/v1/namespaces/{hub.namespace}")
            for pool in cluster.api.list("/apis/karpenter.sh/v1/nodepools"):
                karpenter.delete_node_pool(pool["metadata"]["name"])
            hub.nodes.delete_all()

    def create_pool(self, **more: Any) -> None:
        """Machines of 3.9 CPU for users, with the startup taint."""
        details = {"labels": USERS, "instance_types": ["small"], "startup_taints": [f"{self.taint}:NoSchedule"]}
        self.karpenter.create_node_pool("users", **{**details, **more})

    def pull(self, node: str) -> None:
        """The node's kubelet has pulled the image, and says so."""
        self.nodes.set_images(node, {IMAGE: 1_500_000_000})

    def add_user(self, name: str, cpu: str = "1", **more: Object) -> None:
        container = {"name": "notebook", "image": IMAGE, "resources": {"requests": {"cpu": cpu}}}
        spec = {"nodeSelector": USERS, "terminationGracePeriodSeconds": 0, "containers": [container], **more}
        metadata = {"name": name, "labels": {"component": "singleuser-server"}}
        self.stack.create_pod({"metadata": metadata, "spec": spec})

    def pods(self, selector: str, node: str = "") -> list[Object]:
        """The hub's pods that a selector of labels takes, on one node or on all."""
        path = f"/api/v1/namespaces/{self.namespace}/pods"
        on_node = {"fieldSelector": f"spec.nodeName={node}"} if node else {}
        return self.cluster.api.list(path, labelSelector=selector, **on_node)

    def node_names(self) -> list[str]:
        return sorted(node["metadata"]["name"] for node in self.karpenter.nodes())

    def taints(self, node: str) -> set[str]:
        return {taint["key"] for taint in self.nodes.get(node)["spec"].get("taints", [])}

    def explain(self) -> object:
        """How it stands, for a failure."""
        return (
            {pod["metadata"]["name"]: pod["spec"].get("nodeName") for pod in self.pods("")},
            {name: self.taints(name) for name in self.node_names()},
            self.stack.controllers[-1].process.tail(6),
            self.karpenter.process.tail(4),
        )
