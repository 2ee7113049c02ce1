"""In a tie pods of each class keep off nodes that run builds: what the webhook adds decides at the
real scheduler.
"""

from collections.abc import Iterator

import pytest

from roost_core.objects.fields import JSONObject
from tests.harness.controlplane import ControlPlane
from tests.harness.nodes import FakeNodes
from tests.recorded_data import object_of
from tests.stack import Stack

pytestmark = pytest.mark.e2e

COMPONENTS = {
    "user": "singleuser-server",
    "build": "binderhub-build",
    "placeholder": "user-placeholder",
}
VALUES: JSONObject = object_of("values-of-ties")
NO_AVOID: JSONObject = {name: {"avoid": {"build": None}} for name in COMPONENTS}


@pytest.fixture(scope="module", params=["by default", "without avoid"])
def hub(
    request: pytest.FixtureRequest, control_plane: ControlPlane
) -> Iterator[tuple[Stack, FakeNodes, str]]:
    """A hub, and which of the nodes `busy`, with less on it, and `calm` a pod should go to."""
    name = control_plane.create_namespace()
    is_default = request.param == "by default"
    classes = (
        VALUES["podClasses"]
        if is_default
        else {**NO_AVOID, "user": {**NO_AVOID["user"], "warm": None}}
    )
    values = {**VALUES, "podClasses": classes}
    with FakeNodes(control_plane.api) as nodes, Stack(control_plane, name, values) as stack:
        yield stack, nodes, "calm" if is_default else "busy"
    control_plane.api.delete(f"/api/v1/namespaces/{name}")


def pod(name: str, component: str, cpu: str, **where: str) -> JSONObject:
    requests = {"cpu": cpu, "memory": f"{cpu}G"}
    container = {"name": "main", "image": "example.org/x:1", "resources": {"requests": requests}}
    metadata = {"name": name, "labels": {"component": component}}
    return {"metadata": metadata, "spec": {"nodeSelector": where, "containers": [container]}}


@pytest.mark.parametrize(
    ("comes", "is_there"),
    [("user", "build"), ("build", "build"), ("placeholder", "build"), ("build", "user")],
)
def test_of_like_nodes_a_pod_takes_the_one_without_builds_and_a_build_the_one_without_users(
    hub: tuple[Stack, FakeNodes, str], comes: str, is_there: str
) -> None:
    stack, nodes, expected = hub
    case = f"{comes}-beside-{is_there}"
    # To a scheduler that packs `busy` is the fuller one, to one that spreads the emptier.
    for name in ("busy", "calm"):
        nodes.create(f"{case}-{name}", cpu="10", labels={"case": f"{stack.namespace}-{case}"})
    stack.create_pod(
        pod(
            f"{case}-there", COMPONENTS[is_there], "1", **{"kubernetes.io/hostname": f"{case}-busy"}
        )
    )
    other = pod(f"{case}-other", "other", "0" if comes == "user" else "2")
    stack.create_pod({**other, "spec": {**other["spec"], "nodeName": f"{case}-calm"}})
    assert stack.wait_for_node(f"{case}-there") == f"{case}-busy"

    stack.create_pod(pod(f"{case}-comes", COMPONENTS[comes], "1", case=f"{stack.namespace}-{case}"))
    assert stack.wait_for_node(f"{case}-comes") == f"{case}-{expected}"
