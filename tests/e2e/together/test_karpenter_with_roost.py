"""A cluster that grows by Karpenter, with all of Roost: webhook, scheduler, controllers, pullers and placeholders."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.growing_hub import IMAGE, LEAVING_SECONDS, SINGLEUSER, USERS, GrowingHub, growing_cluster
from tests.harness.api import Object
from tests.harness.controlplane import ControlPlane
from tests.harness.karpenter import Karpenter
from tests.harness.waiting import wait_until

pytestmark = pytest.mark.e2e

# Two rounds of Karpenter's: after these it has made up its mind about a pending pod.
DECIDED_SECONDS = 8.0
# For the controllers to see, plan and write, on a machine that does other things, too.
SOON_SECONDS = 30.0
BUILDS = {"component": "binderhub-build"}
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def _is_puller(pod: Object) -> bool:
    return bool(pod["metadata"].get("labels", {}).get("app.kubernetes.io/component") == "puller")


class Hub(GrowingHub):
    """A hub with placeholder pods."""

    def node_of(self, pod: str) -> str | None:
        found: str | None = self.cluster.pod(pod, self.namespace)["spec"].get("nodeName")
        return found

    def placeholders_on(self, node: str) -> int:
        return len(self.pods("component=user-placeholder", node))

    def add_build(self, name: str) -> None:
        """A build that asks for more than a user: Karpenter finds its node first."""
        container = {"name": "build", "image": IMAGE, "resources": {"requests": {"cpu": "1200m"}}}
        spec = {"nodeSelector": USERS, "terminationGracePeriodSeconds": 0, "containers": [container]}
        self.stack.create_pod({"metadata": {"name": name, "labels": BUILDS}, "spec": spec})

    def wait_for_new_node(self, known: set[str]) -> str:
        nodes = self.karpenter.wait_for_nodes(len(known) + 1)
        (name,) = {str(node["metadata"]["name"]) for node in nodes} - known
        return name


def values_for(*, placeholders: int, mode: str = "startupTaint") -> dict[str, Any]:
    one = {"name": "default", "replicas": placeholders, "resources": {"requests": {"cpu": "1"}}, "nodeSelector": USERS}
    return {
        "singleuser": SINGLEUSER,
        "imageGate": {"mode": mode},
        "placeholders": [one] if placeholders else [],
        "placeholderMover": {"markAfterSeconds": 2, "keepMarkSeconds": 5, "flapSeconds": 5},
    }


@pytest.fixture(scope="module")
def growing(request: pytest.FixtureRequest) -> Iterator[tuple[ControlPlane, Karpenter]]:
    """A cluster in which pullers' pods never get their images."""
    with growing_cluster(request, hold=_is_puller) as found:
        yield found


def stays_so(site: Hub, *, claims: int) -> None:
    """Karpenter has decided, and decided so."""
    with pytest.raises(AssertionError, match="waited"):
        wait_until(lambda: len(site.karpenter.node_claims()) != claims, DECIDED_SECONDS, "another node")


def test_a_placeholder_that_is_pre_empted_makes_one_node_that_nobody_uses_before_its_images_are_there(
    growing: tuple[ControlPlane, Karpenter],
) -> None:
    with Hub.of(*growing, values_for(placeholders=3)) as site:
        site.create_pool()
        first = site.wait_for_new_node(set())
        assert site.taint in site.taints(first)
        stays_so(site, claims=1)
        assert site.pods("component", first) == []
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
        assert site.pods("component", second) == []
        assert site.taint in site.taints(second)

        site.pull(second)
        wait_until(lambda: site.placeholders_on(second) >= 2, SOON_SECONDS, "both there", explain=site.explain)
        assert site.taint not in site.taints(second)
        assert len(site.karpenter.node_claims()) == 2
        assert site.node_of("user-1") == site.node_of("user-2") == first


def test_an_empty_node_leaves_though_pullers_marks_and_soft_terms_are_there(
    growing: tuple[ControlPlane, Karpenter],
) -> None:
    with Hub.of(*growing, values_for(placeholders=2)) as site:
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
            lambda: site.node_names() == [second], LEAVING_SECONDS, "the empty node to leave", explain=site.explain
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
            lambda: site.nodes.get(full)["metadata"]["labels"].get(site.label) == "true", 60, "the image's label"
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

        site.add_build("build-1")
        site.add_user("user-1")
        assert "podAntiAffinity" not in site.cluster.pod("user-1", site.namespace)["spec"]["affinity"]
        site.stack.wait_for_node("user-1", 60)
        assert site.stack.wait_for_node("build-1", 60) == site.node_of("user-1")
        stays_so(site, claims=2)

        # With it Karpenter keeps the two apart, as if it were required.
        site.add_user("fills", cpu="1600m")
        site.stack.wait_for_node("fills", 60)
        builds = {"labelSelector": {"matchLabels": BUILDS}, "topologyKey": "kubernetes.io/hostname"}
        term = {"weight": 1, "podAffinityTerm": builds}
        site.add_build("build-2")
        site.add_user("user-2", affinity={"podAntiAffinity": {PREFERRED: [term]}})
        site.karpenter.wait_for_nodes(4)
