"""A cluster that grows by Karpenter, with all of Roost: webhook, scheduler, controllers, pullers and placeholders."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import pytest

from roost_core.placement.labels import pulled_label, startup_taint
from tests.harness.binaries import HarnessUnavailableError
from tests.harness.controlplane import ControlPlane
from tests.harness.fixtures import give_up
from tests.harness.karpenter import Karpenter
from tests.harness.nodes import FakeNodes
from tests.harness.pods import PodKeeper
from tests.harness.scheduler import start_scheduler
from tests.harness.waiting import wait_until
from tests.stack import Stack

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.harness.api import Object

pytestmark = pytest.mark.e2e

RELEASE = "hub"
USERS = {"hub.jupyter.org/node-purpose": "user"}
IMAGE = "quay.io/jupyter/scipy-notebook:2026-11-03"
IMAGES = {IMAGE: 1_500_000_000}
IMAGE_VALUES = {"name": IMAGE.rpartition(":")[0], "tag": IMAGE.rpartition(":")[2]}
# Karpenter looks at a node it means to remove for 15 seconds more, and works in rounds of 10.
LEAVING_SECONDS = 180.0
# Two rounds of Karpenter's: after these it has made up its mind about a pending pod.
DECIDED_SECONDS = 8.0
# For the controllers to see, plan and write, on a machine that does other things, too.
SOON_SECONDS = 30.0


def _is_puller(pod: Object) -> bool:
    return bool(pod["metadata"].get("labels", {}).get("app.kubernetes.io/component") == "puller")


class Site:
    """A hub in a cluster that grows, with a node pool that is gone afterwards."""

    def __init__(
        self, cluster: ControlPlane, karpenter: Karpenter, keeper: PodKeeper, values: Mapping[str, Any]
    ) -> None:
        self.cluster = cluster
        self.karpenter = karpenter
        self.keeper = keeper
        self.namespace = cluster.create_namespace()
        self.taint = startup_taint(RELEASE, self.namespace)
        self.label = pulled_label(RELEASE, self.namespace, IMAGE)
        self.nodes = FakeNodes(cluster.api)
        self.values = values
        self.stack = Stack(cluster, self.namespace, values, release=RELEASE, controllers=True)

    def create_pool(self, **more: Any) -> None:
        details = {"labels": USERS, "instance_types": ["small"], "startup_taints": [f"{self.taint}:NoSchedule"]}
        self.karpenter.create_node_pool("users", **{**details, **more})

    def pull(self, node: str) -> None:
        """The node's kubelet has pulled the image, and says so."""
        self.nodes.set_images(node, IMAGES)

    def add_user(self, name: str, cpu: str = "1") -> None:
        container = {"name": "notebook", "image": IMAGE, "resources": {"requests": {"cpu": cpu}}}
        spec = {"nodeSelector": USERS, "terminationGracePeriodSeconds": 0, "containers": [container]}
        metadata = {"name": name, "labels": {"component": "singleuser-server"}}
        self.stack.create_pod({"metadata": metadata, "spec": spec})

    def node_of(self, pod: str) -> str | None:
        found: str | None = self.cluster.pod(pod, self.namespace)["spec"].get("nodeName")
        return found

    def pods_on(self, node: str, component: str = "") -> list[str]:
        """Names of pods of users and placeholders on a node, or of one component."""
        selector = f"component={component}" if component else "component"
        path = f"/api/v1/namespaces/{self.namespace}/pods"
        found = self.cluster.api.list(path, labelSelector=selector, fieldSelector=f"spec.nodeName={node}")
        return [pod["metadata"]["name"] for pod in found]

    def placeholders_on(self, node: str) -> int:
        return len(self.pods_on(node, "user-placeholder"))

    def node_names(self) -> list[str]:
        return sorted(node["metadata"]["name"] for node in self.karpenter.nodes())

    def taints(self, node: str) -> set[str]:
        return {taint["key"] for taint in self.nodes.get(node)["spec"].get("taints", [])}

    def wait_for_new_node(self, known: set[str]) -> str:
        nodes = self.karpenter.wait_for_nodes(len(known) + 1)
        (name,) = {str(node["metadata"]["name"]) for node in nodes} - known
        return name

    def explain(self) -> object:
        pods = self.cluster.api.list(f"/api/v1/namespaces/{self.namespace}/pods")
        return (
            {pod["metadata"]["name"]: pod["spec"].get("nodeName") for pod in pods},
            {name: self.taints(name) for name in self.node_names()},
            self.stack.controllers[-1].process.tail(6),
            self.karpenter.process.tail(4),
        )


def values_for(*, placeholders: int, mode: str = "startupTaint") -> dict[str, Any]:
    one = {"name": "default", "replicas": placeholders, "resources": {"requests": {"cpu": "1"}}, "nodeSelector": USERS}
    return {
        "singleuser": {"image": IMAGE_VALUES, "nodeSelector": USERS},
        "imageGate": {"mode": mode},
        "placeholders": [one] if placeholders else [],
        "placeholderMover": {"markAfterSeconds": 2, "keepMarkSeconds": 5, "flapSeconds": 5},
    }


@pytest.fixture(scope="module")
def growing(request: pytest.FixtureRequest) -> Iterator[tuple[ControlPlane, Karpenter, PodKeeper]]:
    """A cluster without nodes, the cluster's own scheduler and Karpenter; pullers' pods never get their images."""
    with contextlib.ExitStack() as stack:
        try:
            cluster = stack.enter_context(ControlPlane())
            stack.enter_context(start_scheduler(cluster))
            keeper = stack.enter_context(PodKeeper(cluster.api, hold=_is_puller))
            karpenter = stack.enter_context(Karpenter(cluster))
        except HarnessUnavailableError as error:
            give_up(error)
        yield cluster, karpenter, keeper
        cluster.keep_logs = request.session.testsfailed > 0


@contextlib.contextmanager
def hub(growing: tuple[ControlPlane, Karpenter, PodKeeper], values: Mapping[str, Any]) -> Iterator[Site]:
    site = Site(*growing, values)
    try:
        with site.stack:
            yield site
    finally:
        site.cluster.api.delete(f"/api/v1/namespaces/{site.namespace}")
        for pool in site.cluster.api.list("/apis/karpenter.sh/v1/nodepools"):
            site.karpenter.delete_node_pool(pool["metadata"]["name"])
        site.nodes.delete_all()


def stays_so(site: Site, *, claims: int) -> None:
    """Karpenter has decided, and decided so."""
    with pytest.raises(AssertionError, match="waited"):
        wait_until(lambda: len(site.karpenter.node_claims()) != claims, DECIDED_SECONDS, "another node")


def test_a_placeholder_that_is_pre_empted_makes_one_node_that_nobody_uses_before_its_images_are_there(
    growing: tuple[ControlPlane, Karpenter, PodKeeper],
) -> None:
    with hub(growing, values_for(placeholders=3)) as site:
        site.create_pool()
        first = site.wait_for_new_node(set())
        assert site.taint in site.taints(first)
        stays_so(site, claims=1)
        assert site.pods_on(first) == []
        site.pull(first)
        wait_until(lambda: site.placeholders_on(first) == 3, 60, "placeholders on the first node", explain=site.explain)
        assert site.taint not in site.taints(first)

        # 3.9 CPU, three placeholders of 1: a user takes the place of one, which then needs another node.
        site.add_user("user-1")
        assert site.stack.wait_for_node("user-1", 60) == first
        second = site.wait_for_new_node({first})
        assert site.taint in site.taints(second)
        # The next one does the same, though a whole node is empty: its images aren't there.
        site.add_user("user-2")
        assert site.stack.wait_for_node("user-2", 60) == first
        stays_so(site, claims=2)
        assert site.pods_on(second) == []
        assert site.taint in site.taints(second)

        site.pull(second)
        wait_until(lambda: site.placeholders_on(second) >= 2, SOON_SECONDS, "both there", explain=site.explain)
        assert site.taint not in site.taints(second)
        assert len(site.karpenter.node_claims()) == 2
        assert site.node_of("user-1") == site.node_of("user-2") == first


def test_an_empty_node_leaves_though_pullers_marks_and_soft_terms_are_there(
    growing: tuple[ControlPlane, Karpenter, PodKeeper],
) -> None:
    with hub(growing, values_for(placeholders=2)) as site:
        site.create_pool(consolidate_after="1s", consolidation_policy="WhenEmptyOrUnderutilized")
        first = site.wait_for_new_node(set())
        site.pull(first)
        wait_until(lambda: site.placeholders_on(first) == 2, 60, "placeholders on the first node", explain=site.explain)
        site.add_user("user", cpu="3")
        assert site.stack.wait_for_node("user", 60) == first
        second = site.wait_for_new_node({first})
        site.pull(second)
        wait_until(
            lambda: site.placeholders_on(second) == 2, 60, "placeholders on the second node", explain=site.explain
        )

        site.cluster.api.delete(f"/api/v1/namespaces/{site.namespace}/pods/user")
        wait_until(
            lambda: site.node_names() == [second],
            LEAVING_SECONDS,
            "the empty node to leave",
            explain=site.explain,
        )
        assert site.placeholders_on(second) == 2


def test_without_any_placeholder_a_user_whom_the_gate_keeps_off_asks_for_a_node_and_gets_it(
    growing: tuple[ControlPlane, Karpenter, PodKeeper],
) -> None:
    with hub(growing, values_for(placeholders=0, mode="requireLabel")) as site:
        site.create_pool(startup_taints=())
        # A node that was there before, with its image, and room for one.
        full = f"full-{site.namespace}"
        site.nodes.create(full, cpu="1100m", labels=USERS, images=IMAGES)
        wait_until(
            lambda: site.nodes.get(full)["metadata"]["labels"].get(site.label) == "true", 60, "the image's label"
        )
        site.add_user("user-1")
        assert site.stack.wait_for_node("user-1", 60) == full
        site.add_user("user-2")
        second = site.wait_for_new_node(set())
        # Its image never comes: nobody plays the kubelet.
        assert site.stack.wait_for_node("user-2", 60) == second
