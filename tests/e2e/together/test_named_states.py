"""Where the next user and the next placeholder go in the states that zero-to-jupyterhub's issue
1414 names.
"""

from collections.abc import Iterator
from typing import Any, Final

import pytest
import yaml

from roost_core.placement.labels import OPT_OUT_ANNOTATION
from tests.e2e.pods import SINGLEUSER, USER, pod
from tests.harness.controlplane import ControlPlane
from tests.harness.nodes import FakeNodes
from tests.harness.pods import PodKeeper
from tests.harness.scheduler import scheduler_config, start_scheduler
from tests.harness.waiting import wait_until
from tests.recorded_data import rows
from tests.stack import Stack
from tools.root import ROOT

pytestmark = pytest.mark.e2e

Z2JH: Final = ROOT / "lab/roost_lab/simulator/policies/z2jh.yaml"
# A letter a slot: placeholder, user, free. The older node first.
STATES: Final = ("PPP++ UU+++", "PPPU+ UU+++", "PPP++ PU+++", "PPPU+ PUU++")
COMPONENTS: Final = {"P": "user-placeholder", "U": USER, "D": "data"}
OLDER, NEWER = "node-1", "node-2"


@pytest.fixture
def stack(
    control_plane: ControlPlane, namespace: str, fake_nodes: FakeNodes, pod_keeper: PodKeeper
) -> Iterator[Stack]:
    user_scheduler = yaml.safe_load(Z2JH.read_text())["scheduler"]["profiles"]["user"]
    config = scheduler_config({"schedulerName": "user-scheduler", **user_scheduler})
    # A hub of one image, which the puller brings to every node.
    values = {"placeholders": [], "singleuser": SINGLEUSER}
    with start_scheduler(control_plane, config), Stack(control_plane, namespace, values) as stack:
        yield stack


WITHOUT_ROOST: Final[dict[str, Any]] = {
    "schedulerName": "user-scheduler",
    "annotations": {OPT_OUT_ANNOTATION: "true"},
}


def create(stack: Stack, name: str, kind: str, without_roost: bool, node: str = "") -> str:
    """Create a pod of one slot; its node."""
    details = WITHOUT_ROOST if without_roost else {}
    stack.create_pod(pod(name, COMPONENTS[kind], node=node, requests={"cpu": "1"}, **details))
    return stack.wait_for_node(name)


def remove(stack: Stack, **query: str) -> None:
    path = f"/api/v1/namespaces/{stack.namespace}/pods"
    for body in stack.cluster.api.list(path, **query):
        stack.cluster.api.delete(f"{path}/{body['metadata']['name']}", {"gracePeriodSeconds": 0})
    wait_until(lambda: not stack.cluster.api.list(path, **query), 30, "the pods to go")


def next_nodes(stack: Stack, slots: dict[str, str], without_roost: bool) -> tuple[str, str]:
    for node, kinds in slots.items():
        for number, kind in enumerate(kinds.replace("+", "")):
            assert create(stack, f"{node}-{number}", kind, without_roost, node) == node
    found = []
    for kind in "UP":
        found.append(create(stack, "next", kind, without_roost))
        remove(stack, fieldSelector="metadata.name=next")
    remove(stack, labelSelector=f"component in ({','.join(COMPONENTS.values())})")
    return found[0], found[1]


@pytest.mark.parametrize("state", STATES)
def test_the_next_user_joins_users_where_packing_alone_follows_placeholders(
    state: str, stack: Stack, fake_nodes: FakeNodes
) -> None:
    slots = dict(zip((OLDER, NEWER), state.split(), strict=True))
    fake_nodes.create_many(slots, cpu="5")
    before, _ = next_nodes(stack, slots, without_roost=True)
    user, placeholder = next_nodes(stack, slots, without_roost=False)
    assert user == max(slots, key=lambda node: slots[node].count("U"))
    assert (before, user, placeholder) == (OLDER, NEWER, NEWER)


def test_an_authors_terms_about_pods_decide_before_packing(
    stack: Stack, fake_nodes: FakeNodes
) -> None:
    fake_nodes.create_many((OLDER, NEWER), cpu="5")
    for number, kind in enumerate("PPPPD"):
        create(stack, f"there-{number}", kind, True, NEWER if kind == "D" else OLDER)
    assert create(stack, "next", "U", False) == OLDER
    remove(stack, fieldSelector="metadata.name=next")
    stack.create_pod(pod("asks", requests={"cpu": "1"}, **rows("webhook/own-terms")[0]))
    assert stack.wait_for_node("asks") == NEWER
