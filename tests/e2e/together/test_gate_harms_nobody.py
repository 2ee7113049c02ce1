"""With the gate nobody loses a server, or is spread otherwise, who would have been let alone
without it.
"""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from roost_core.objects.fields import JSONObject
from roost_core.placement.labels import pulled_label
from tests.e2e.pods import IMAGE, SINGLEUSER, USER, pod
from tests.harness.controlplane import ControlPlane
from tests.harness.nodes import FakeNodes
from tests.harness.pods import PodKeeper
from tests.harness.waiting import wait_until
from tests.stack import Stack

pytestmark = pytest.mark.e2e

ZONE = "topology.kubernetes.io/zone"
VALUES: JSONObject = {
    "placeholders": [],
    "singleuser": SINGLEUSER,
    # Nobody is let through for having waited.
    "imageGate": {"openAfterSeconds": 600},
}


def user(name: str, component: str = USER, *, cpu: str = "3", **spec: Any) -> JSONObject:
    return pod(name, component, requests={"cpu": cpu}, **spec)


@pytest.fixture
def stack(
    control_plane: ControlPlane, namespace: str, fake_nodes: FakeNodes, pod_keeper: PodKeeper
) -> Iterator[Stack]:
    """A node that holds the image, and one that is pulling it."""
    fake_nodes.create("holds", cpu="4", labels={ZONE: "a"}, images={IMAGE: 10**9})
    with Stack(control_plane, namespace, VALUES, controllers=True) as stack:
        label = pulled_label("hub", namespace, IMAGE)

        def says(name: str, value: str) -> bool:
            """Whether the node is ready for pods, and says this of the image."""
            node = control_plane.api.get(f"/api/v1/nodes/{name}")
            return node["metadata"]["labels"].get(label) == value and not node["spec"].get("taints")

        wait_until(lambda: says("holds", "true"), 30, "one node to be known to hold the image")
        fake_nodes.create("pulls", cpu="4", labels={ZONE: "b"}, images={})
        wait_until(lambda: says("pulls", "pulling"), 30, "the other to be known to pull it")
        yield stack
    # With one below 0 left, every gate of this cluster would only prefer.
    for name in ("above", "below"):
        control_plane.api.delete(f"/apis/scheduling.k8s.io/v1/priorityclasses/{namespace}-{name}")


def priority_class(stack: Stack, value: int) -> str:
    name = f"{stack.namespace}-{'below' if value < 0 else 'above'}"
    group = "scheduling.k8s.io/v1"
    stack.cluster.api.create(
        {"apiVersion": group, "kind": "PriorityClass", "metadata": {"name": name}, "value": value}
    )
    return name


def uid_of(stack: Stack, name: str) -> str:
    return str(
        stack.cluster.api.get(f"/api/v1/namespaces/{stack.namespace}/pods/{name}")["metadata"][
            "uid"
        ]
    )


@pytest.mark.parametrize(("resident", "newcomer"), [(0, 1000), (-100, 0)])
def test_a_user_goes_to_the_node_that_pulls_rather_than_to_delete_a_pod_of_lower_priority(
    stack: Stack, resident: int, newcomer: int
) -> None:
    classes = {value: priority_class(stack, value) for value in (resident, newcomer) if value}
    place: JSONObject = {"schedulerName": stack.scheduler_name("user"), "nodeSelector": {ZONE: "a"}}
    stack.create_pod(user("resident", "batch", priorityClassName=classes.get(resident), **place))
    assert stack.wait_for_node("resident") == "holds"
    uid = uid_of(stack, "resident")
    # The webhook hears of a new PriorityClass within moments.
    time.sleep(1)
    stack.create_pod(user("newcomer", priorityClassName=classes.get(newcomer)))
    assert stack.wait_for_node("newcomer") == "pulls"
    assert uid_of(stack, "resident") == uid


def test_a_build_starts_beside_a_pod_of_lower_priority_rather_than_to_delete_it_for_requests(
    stack: Stack,
) -> None:
    below, scheduler = priority_class(stack, -100), stack.scheduler_name("user")
    for name, zone, kind in (("resident", "a", below), ("other", "b", None)):
        place: JSONObject = {
            "schedulerName": scheduler,
            "nodeSelector": {ZONE: zone},
            "priorityClassName": kind,
        }
        stack.create_pod(user(name, "batch", cpu="3950m", **place))
    assert [stack.wait_for_node(name) for name in ("resident", "other")] == ["holds", "pulls"]
    uid = uid_of(stack, "resident")
    build: JSONObject = user("build", "binderhub-build")
    build["spec"]["containers"][0]["resources"] = {}

    def given() -> JSONObject:
        tried = stack.cluster.api.create(build, stack.namespace, dryRun="All")
        resources: JSONObject = tried["spec"]["containers"][0]["resources"]
        return resources

    wait_until(lambda: given() == {}, 20, "the webhook to hear of the PriorityClass", explain=given)
    stack.create_pod(build)
    assert stack.wait_for_node("build")
    assert uid_of(stack, "resident") == uid


def test_pods_that_must_be_spread_are_spread_over_the_zone_that_pulls_too(stack: Stack) -> None:
    users = {"matchLabels": {"component": "singleuser-server"}}
    constraint = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": users,
    }
    nodes = []
    for number in range(4):
        stack.create_pod(user(f"user-{number}", cpu="1", topologySpreadConstraints=[constraint]))
        nodes.append(stack.wait_for_node(f"user-{number}"))
    assert sorted(nodes) == ["holds", "holds", "pulls", "pulls"]
