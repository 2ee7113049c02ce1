"""The promises, on the real API server with the real kube-scheduler: fake nodes, everything else as
rendered.
"""

import collections
import time
from collections.abc import Iterator
from typing import Any

import pytest

from roost_core.placement.labels import HOME_TARGET_ANNOTATION, pulled_label
from tests.binderhub_ring import rank_nodes
from tests.e2e.install.test_doctor import asked
from tests.e2e.pods import IMAGE, SINGLEUSER, USER, pod
from tests.harness.binaries import MINORS, OLDEST_MINOR
from tests.harness.controlplane import ControlPlane
from tests.harness.fixtures import or_give_up
from tests.harness.nodes import FakeNodes
from tests.harness.pods import PodKeeper
from tests.harness.waiting import wait_until
from tests.stack import Stack

pytestmark = pytest.mark.e2e

OTHER_IMAGE = "registry.k8s.io/pause:3.10.1"
NO_PLACEHOLDERS: dict[str, Any] = {"placeholders": []}


def user(name: str, **details: Any) -> dict[str, Any]:
    return pod(name, USER, **{"requests": {"cpu": "100m", "memory": "256Mi"}, **details})


def build(name: str, repository: str) -> dict[str, Any]:
    return pod(
        name, "binderhub-build", image="repo2docker:1", annotations={"binder-repo": repository}
    )


class TestUsersGather:
    """Promise 2."""

    @pytest.fixture
    def stack(self, control_plane: ControlPlane, namespace: str) -> Iterator[Stack]:
        with Stack(control_plane, namespace, {"placeholders": []}) as stack:
            yield stack

    def test_a_user_goes_to_the_node_with_most_users_although_another_holds_more_placeholders(
        self, stack: Stack, fake_nodes: FakeNodes, pod_keeper: PodKeeper
    ) -> None:
        fake_nodes.create_many(["busy", "placeholders", "empty"], cpu="32", memory="128Gi")
        placeholder = {"cpu": "500m", "memory": "2Gi"}
        for index in range(6):
            stack.create_pod(user(f"first-{index}", node="busy"))
        for index in range(5):
            stack.create_pod(user(f"second-{index}", node="placeholders"))
        for index in range(25):
            stack.create_pod(
                pod(
                    f"placeholder-{index}",
                    "user-placeholder",
                    node="placeholders",
                    requests=placeholder,
                )
            )
        for index in range(5):
            stack.create_pod(
                pod(f"near-{index}", "user-placeholder", node="busy", requests=placeholder)
            )
        stack.wait_for_node("near-4")

        for index in range(4):
            stack.create_pod(user(f"new-{index}"))
        assert {stack.wait_for_node(f"new-{index}") for index in range(4)} == {"busy"}


@pytest.mark.parametrize("mode", ["requireLabel", "prefer"])
def test_among_placeholders_no_user_binds_or_preempts_on_an_unpulled_node_unless_the_gate_prefers(
    mode: str,
    control_plane: ControlPlane,
    namespace: str,
    fake_nodes: FakeNodes,
    pod_keeper: PodKeeper,
) -> None:
    with started(control_plane, namespace, mode, fake_nodes) as stack:
        check_gate(stack, mode, fake_nodes)


# The newest minor is that of all other tests.
@pytest.mark.each_minor
@pytest.mark.parametrize(
    "minor",
    [
        pytest.param(one, marks=[] if one == OLDEST_MINOR else [pytest.mark.minors])
        for one in MINORS
    ],
)
def test_every_supported_minor_keeps_users_off_unpulled_nodes_and_brings_builds_together(
    minor: str,
) -> None:
    with or_give_up(), ControlPlane(minor) as cluster, PodKeeper(cluster.api):
        with (
            FakeNodes(cluster.api) as nodes,
            started(cluster, cluster.create_namespace(), "requireLabel", nodes) as stack,
        ):
            check_gate(stack, "requireLabel", nodes)
            for replica, program in (
                (stack.webhooks[0], "webhook"),
                (stack.controllers[0], "controllers"),
            ):
                assert replica.metric(f"roost_{program}_watch_errors_total") == 0.0, (
                    replica.process.tail()
                )
            # Every kind is served, and no field of Roost's pods is dropped.
            assert asked(cluster, stack.namespace, "features") == []
        builds = TestBuildsMeet()
        with (
            FakeNodes(cluster.api) as nodes,
            Stack(cluster, cluster.create_namespace(), NO_PLACEHOLDERS) as stack,
        ):
            builds.add_builders(stack, nodes, builds.NODES)
            for repository, homes in builds.builds(stack, "first", copies=2).items():
                assert homes == [rank_nodes(repository, builds.NODES)[0]] * 2


def started(cluster: ControlPlane, namespace: str, mode: str, fake_nodes: FakeNodes) -> Stack:
    """A release with eight placeholders and, to begin with, one node that has the image and room
    for four.
    """
    placeholder = {"cpu": "1", "memory": "1Gi"}
    values = {
        "imageGate": {"mode": mode},
        "placeholderMover": {"enabled": False},
        "singleuser": SINGLEUSER,
        "placeholders": [
            {"name": "default", "replicas": 8, "resources": {"requests": placeholder}}
        ],
    }
    fake_nodes.create("old", cpu="4", images={IMAGE: 10**9, OTHER_IMAGE: 1000})
    return Stack(cluster, namespace, values, controllers=True)


def check_gate(stack: Stack, mode: str, fake_nodes: FakeNodes) -> None:
    """Promise 1; with `prefer` the newest node, without the image, loses its placeholders to users:
    the old pain.
    """
    api, placeholder = stack.cluster.api, {"cpu": "1", "memory": "1Gi"}
    label = pulled_label("hub", stack.namespace, IMAGE)

    def says(node: str, value: str | None) -> bool:
        return bool(api.get(f"/api/v1/nodes/{node}")["metadata"]["labels"].get(label) == value)

    wait_until(lambda: says("old", "true"), 30, "the old node to be known to hold the image")
    pods_path = f"/api/v1/namespaces/{stack.namespace}/pods"

    def placeholders_on(node: str) -> int:
        pods = api.list(pods_path, labelSelector="component=user-placeholder")
        return sum(
            item["spec"].get("nodeName") == node and item["status"]["phase"] == "Running"
            for item in pods
        )

    wait_until(lambda: placeholders_on("old") == 4, 30, "four placeholders to run on the old node")
    # Pre-emption takes the node of the youngest victim, and starts are told in whole seconds.
    time.sleep(1.1)
    # As kubelets register: not ready at first, and so out of reach until the controllers have seen
    # the node.
    fake_nodes.create("new", cpu="4", images={OTHER_IMAGE: 1000}, ready=False)
    closed = "pulling" if mode == "requireLabel" else None
    wait_until(lambda: says("new", closed), 30, "the controllers to see the new node")
    fake_nodes.set_ready("new")
    fake_nodes.set_taints("new", [])
    wait_until(lambda: placeholders_on("new") == 4, 30, "four placeholders to run on the new node")

    priority = next(
        m["metadata"]["name"]
        for m in stack.manifests
        if m["kind"] == "PriorityClass" and m["value"] == 0
    )
    nodes = []
    for index in range(3):
        stack.create_pod(user(f"user-{index}", requests=placeholder, priorityClassName=priority))
        # One after the other: of several pre-emptors at once, kube-scheduler 1.36 may leave one
        # waiting for another event, although its victim is gone.
        nodes.append(stack.wait_for_node(f"user-{index}"))
    if mode == "requireLabel":
        assert nodes == ["old"] * 3
        assert placeholders_on("new") == 4
    else:
        assert "new" in nodes


class TestBuildsMeet:
    """Promise 3."""

    NODES = tuple(f"builder-{letter}" for letter in "abcde")
    REPOSITORIES = tuple(f"https://github.com/example/repository-{number}" for number in range(40))

    def add_builders(self, stack: Stack, fake_nodes: FakeNodes, nodes: tuple[str, ...]) -> None:
        fake_nodes.create_many(nodes, cpu="64", memory="512Gi", pods=400)
        # Until a builder is Ready the ring is made of all nodes: with one more, that ring has
        # another size.
        fake_nodes.create("without-builder", cpu="1", memory="1Gi")
        for node in nodes:
            body = pod(f"dind-{node}", "image-builder", image="docker:dind")
            body["metadata"]["labels"]["app"] = "binder"
            body["spec"]["nodeName"] = node
            stack.create_pod(body)
        self.wait_for_ring(stack, len(nodes))
        # The scheduler watches nodes by itself, and may learn of one later than the webhook does.
        for node in nodes:
            stack.create_pod(pod(f"first-on-{node}", node=node))
            assert stack.wait_for_node(f"first-on-{node}") == node

    @staticmethod
    def wait_for_ring(stack: Stack, size: int) -> None:
        (webhook,) = stack.webhooks
        name = "roost_webhook_ring_nodes"
        wait_until(
            lambda: webhook.metric(name) == size,
            30,
            f"the ring to hold {size} nodes",
            explain=lambda: webhook.get("/metrics")[1],
        )

    def builds(self, stack: Stack, tag: str, copies: int) -> dict[str, list[str]]:
        """The nodes of each repository's builds. Each lands where the webhook wants it."""
        names = {
            f"build-{tag}-{number}-{copy}": repository
            for copy in range(copies)
            for number, repository in enumerate(self.REPOSITORIES)
        }
        for name, repository in names.items():
            stack.create_pod(build(name, repository))
        homes: dict[str, list[str]] = collections.defaultdict(list)
        for name, repository in names.items():
            home = stack.wait_for_node(name, timeout_seconds=60)
            metadata = stack.cluster.pod(name, stack.namespace)["metadata"]
            assert home == metadata["annotations"].get(HOME_TARGET_ANNOTATION), name
            homes[repository].append(home)
        return homes

    def test_builds_land_on_the_first_node_of_their_ring_and_losing_a_node_moves_only_its_builds(
        self,
        control_plane: ControlPlane,
        namespace: str,
        fake_nodes: FakeNodes,
        pod_keeper: PodKeeper,
    ) -> None:
        with Stack(control_plane, namespace, NO_PLACEHOLDERS) as stack:
            self.add_builders(stack, fake_nodes, self.NODES)
            before = self.builds(stack, "first", copies=5)
            for repository, homes in before.items():
                assert homes == [rank_nodes(repository, self.NODES)[0]] * 5

            lost = self.NODES[2]
            control_plane.api.delete(
                f"/api/v1/namespaces/{namespace}/pods/dind-{lost}", gracePeriodSeconds=0
            )
            fake_nodes.delete(lost)
            self.wait_for_ring(stack, len(self.NODES) - 1)
            after = self.builds(stack, "second", copies=1)
            for repository, (home,) in after.items():
                was = before[repository][0]
                expected = rank_nodes(repository, self.NODES)[1] if was == lost else was
                assert home == expected
