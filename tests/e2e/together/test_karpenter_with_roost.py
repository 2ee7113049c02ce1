"""A cluster that grows by Karpenter, with all of Roost: webhook, scheduler, controllers, pullers
and placeholders.
"""

import contextlib
import json
from collections.abc import Iterator, Mapping
from typing import Any, Self

import pytest

from generator.values.release_name import Release
from roost.doctor.placeholder_room import PlaceholderRoom
from roost_core.kube.account import connect
from roost_core.objects.fields import JSONObject
from roost_core.objects.node import read_node
from roost_core.objects.pod import PREFERRED
from roost_core.placement.labels import RELEASE_KEY, pulled_label, startup_taint
from tests.e2e.pods import IMAGE, SINGLEUSER, USER, pod
from tests.harness.controlplane import ControlPlane
from tests.harness.fixtures import or_give_up
from tests.harness.karpenter import Karpenter
from tests.harness.nodes import NODES, FakeNodes
from tests.harness.pods import PodKeeper
from tests.harness.scheduler import start_scheduler
from tests.harness.waiting import wait_until
from tests.stack import Stack

pytestmark = pytest.mark.e2e

# Two rounds of Karpenter's: after these it has made up its mind about a pending pod.
DECIDED_SECONDS = 8.0
# For the controllers to see, plan and write, on a machine that does other things, too.
SOON_SECONDS = 30.0
BUILD = "binderhub-build"
RELEASE = "hub"
USERS = {"hub.jupyter.org/node-purpose": "user"}
# Karpenter looks at a node it means to remove for 15 seconds more, and works in rounds of 10.
LEAVING_SECONDS = 180.0


def _is_puller(pod: JSONObject) -> bool:
    return bool(pod["metadata"].get("labels", {}).get("app.kubernetes.io/component") == "puller")


class Hub:
    """`with Hub.of(cluster, karpenter, values) as hub:`; its node pools are gone afterwards."""

    def __init__(
        self, cluster: ControlPlane, karpenter: Karpenter, values: Mapping[str, Any]
    ) -> None:
        self.cluster = cluster
        self.karpenter = karpenter
        self.namespace = cluster.create_namespace()
        self.taint = startup_taint(RELEASE, self.namespace)
        self.label = pulled_label(RELEASE, self.namespace, IMAGE)
        self.nodes = FakeNodes(cluster.api)
        self.stack = Stack(cluster, self.namespace, values, release=RELEASE, controllers=True)

    @classmethod
    @contextlib.contextmanager
    def of(
        cls, cluster: ControlPlane, karpenter: Karpenter, values: Mapping[str, Any]
    ) -> Iterator[Self]:
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
        details = {
            "labels": USERS,
            "instance_types": ["small"],
            "startup_taints": [f"{self.taint}:NoSchedule"],
        }
        self.karpenter.create_node_pool("users", **{**details, **more})

    def pull(self, node: str) -> None:
        self.nodes.set_images(node, {IMAGE: 1_500_000_000})

    def add_user(self, name: str, cpu: str = "1", component: str = USER, **more: Any) -> None:
        self.stack.create_pod(
            pod(name, component, requests={"cpu": cpu}, nodeSelector=USERS, **more)
        )

    def pods(self, selector: str, node: str = "") -> list[JSONObject]:
        path = f"/api/v1/namespaces/{self.namespace}/pods"
        on_node = {"fieldSelector": f"spec.nodeName={node}"} if node else {}
        return self.cluster.api.list(path, labelSelector=selector, **on_node)

    def node_names(self) -> list[str]:
        return sorted(node["metadata"]["name"] for node in self.karpenter.nodes())

    def taints(self, node: str) -> set[str]:
        return {taint["key"] for taint in self.nodes.get(node)["spec"].get("taints", [])}

    def explain(self) -> object:
        return (
            {pod["metadata"]["name"]: pod["spec"].get("nodeName") for pod in self.pods("")},
            {name: self.taints(name) for name in self.node_names()},
            self.stack.controllers[-1].process.tail(6),
            self.karpenter.process.tail(4),
        )

    def node_of(self, pod: str) -> str | None:
        found: str | None = self.cluster.pod(pod, self.namespace)["spec"].get("nodeName")
        return found

    def placeholders_on(self, node: str) -> int:
        return len(self.pods("component=user-placeholder", node))

    def misfits(self, people: int) -> list[str]:
        """Why a booking of so many doesn't fit the cluster."""
        client = connect(self.cluster.kubeconfig)
        path = f"/api/v1/namespaces/{self.namespace}/configmaps/{RELEASE}-roost-release"
        (entry,) = json.loads(client.get(path)["data"][RELEASE_KEY])["placeholders"]
        seats = PlaceholderRoom(entry, [read_node(body) for body in client.get(NODES)["items"]])
        return [
            reason for reason, _ in seats.misfits(client, Release(RELEASE, self.namespace), people)
        ]

    def wait_for_new_node(self, known: set[str]) -> str:
        nodes = self.karpenter.wait_for_nodes(len(known) + 1)
        (name,) = {str(node["metadata"]["name"]) for node in nodes} - known
        return name


def values_for(*, placeholders: int, mode: str = "startupTaint") -> dict[str, Any]:
    one = {
        "name": "default",
        "replicas": placeholders,
        "resources": {"requests": {"cpu": "1"}},
        "nodeSelector": USERS,
    }
    return {
        "singleuser": {**SINGLEUSER, "nodeSelector": USERS},
        "imageGate": {"mode": mode},
        "placeholders": [one] if placeholders else [],
        "placeholderMover": {"markAfterSeconds": 2, "keepMarkSeconds": 5, "flapSeconds": 5},
    }


@pytest.fixture(scope="module")
def growing(request: pytest.FixtureRequest) -> Iterator[tuple[ControlPlane, Karpenter]]:
    """A cluster in which pullers' pods never get their images."""
    with contextlib.ExitStack() as stack:
        with or_give_up():
            cluster = stack.enter_context(ControlPlane())
            stack.enter_context(start_scheduler(cluster))
            stack.enter_context(PodKeeper(cluster.api, hold=_is_puller))
            karpenter = stack.enter_context(Karpenter(cluster))
        yield cluster, karpenter
        cluster.keep_logs = request.session.testsfailed > 0


def stays_so(site: Hub, *, claims: int) -> None:
    with pytest.raises(AssertionError, match="waited"):
        wait_until(
            lambda: len(site.karpenter.node_claims()) != claims, DECIDED_SECONDS, "another node"
        )


def test_a_pre_empted_placeholder_makes_a_node_that_nobody_uses_before_its_images_are_there(
    growing: tuple[ControlPlane, Karpenter],
) -> None:
    with Hub.of(*growing, values_for(placeholders=3)) as site:
        site.create_pool()
        first = site.wait_for_new_node(set())
        assert site.taint in site.taints(first)
        stays_so(site, claims=1)
        assert site.pods("component", first) == []
        site.pull(first)
        wait_until(
            lambda: site.placeholders_on(first) == 3,
            60,
            "placeholders on the first node",
            explain=site.explain,
        )
        assert site.taint not in site.taints(first)

        # 3.9 CPU, three placeholders of 1: a user takes the place of one, which then needs another
        # node.
        site.add_user("user-1")
        assert site.stack.wait_for_node("user-1", 60) == first
        second = site.wait_for_new_node({first})
        assert site.taint in site.taints(second)
        # The next one does the same, though a whole node is empty: its images aren't there.
        site.add_user("user-2")
        assert site.stack.wait_for_node("user-2", 60) == first
        stays_so(site, claims=2)
        assert site.pods("component", second) == []
        assert site.taint in site.taints(second)

        site.pull(second)
        wait_until(
            lambda: site.placeholders_on(second) >= 2,
            SOON_SECONDS,
            "both there",
            explain=site.explain,
        )
        assert site.taint not in site.taints(second)
        assert len(site.karpenter.node_claims()) == 2
        assert site.node_of("user-1") == site.node_of("user-2") == first

        site.cluster.api.patch(
            "/apis/karpenter.sh/v1/nodepools/users", {"spec": {"limits": {"cpu": "8"}}}
        )
        (told,) = site.misfits(9)
        assert told.startswith(
            "NodePool users: never room for more than 8 of 9 placeholders of set default"
        ), told
        assert site.misfits(8) == []


def test_an_empty_node_leaves_though_pullers_marks_and_soft_terms_are_there(
    growing: tuple[ControlPlane, Karpenter],
) -> None:
    with Hub.of(*growing, values_for(placeholders=2)) as site:
        site.create_pool(consolidate_after="1s", consolidation_policy="WhenEmptyOrUnderutilized")
        first = site.wait_for_new_node(set())
        site.pull(first)
        wait_until(
            lambda: site.placeholders_on(first) == 2,
            60,
            "placeholders on the first node",
            explain=site.explain,
        )
        site.add_user("user", cpu="3")
        assert site.stack.wait_for_node("user", 60) == first
        second = site.wait_for_new_node({first})
        site.pull(second)
        wait_until(
            lambda: site.placeholders_on(second) == 2,
            60,
            "placeholders on the second node",
            explain=site.explain,
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
    growing: tuple[ControlPlane, Karpenter],
) -> None:
    with Hub.of(*growing, values_for(placeholders=0, mode="requireLabel")) as site:
        site.create_pool(startup_taints=())
        # A node that was there before, with its image, and room for one.
        full = f"full-{site.namespace}"
        site.nodes.create(full, cpu="1100m", labels=USERS, images={IMAGE: 1_500_000_000})
        wait_until(
            lambda: site.nodes.get(full)["metadata"]["labels"].get(site.label) == "true",
            60,
            "the image's label",
        )
        site.add_user("user-1")
        assert site.stack.wait_for_node("user-1", 60) == full
        site.add_user("user-2")
        second = site.wait_for_new_node(set())
        # Its image never comes: nobody plays the kubelet.
        assert site.stack.wait_for_node("user-2", 60) == second


def test_users_and_builds_that_wait_together_cost_no_node_more_for_the_anti_affinity_is_left_out(
    growing: tuple[ControlPlane, Karpenter],
) -> None:
    with Hub.of(*growing, values_for(placeholders=0, mode="off")) as site:
        site.create_pool(startup_taints=())
        site.add_user("first", cpu="3500m")
        site.wait_for_new_node(set())
        site.stack.wait_for_node("first", 60)

        site.add_user("build-1", "1200m", BUILD)
        site.add_user("user-1")
        assert (
            "podAntiAffinity" not in site.cluster.pod("user-1", site.namespace)["spec"]["affinity"]
        )
        site.stack.wait_for_node("user-1", 60)
        assert site.stack.wait_for_node("build-1", 60) == site.node_of("user-1")
        stays_so(site, claims=2)

        # With it Karpenter keeps the two apart, as if it were required.
        site.add_user("fills", cpu="1600m")
        site.stack.wait_for_node("fills", 60)
        builds = {
            "labelSelector": {"matchLabels": {"component": BUILD}},
            "topologyKey": "kubernetes.io/hostname",
        }
        term = {"weight": 1, "podAffinityTerm": builds}
        site.add_user("build-2", "1200m", BUILD)
        site.add_user("user-2", affinity={"podAntiAffinity": {PREFERRED: [term]}})
        site.karpenter.wait_for_nodes(4)
