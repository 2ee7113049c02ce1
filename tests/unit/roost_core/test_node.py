"""A node as all programs see it: one reading, and one meaning of a node that leaves."""

from typing import Any

import pytest

from roost.controllers.popular_images.plan import read_disk
from roost_core.objects.node import node_admits, read_node
from roost_core.objects.selectors import NodeRules, Toleration
from roost_core.placement.nodes import Nodes
from tests.popular_builders import popular_settings

READY = {"conditions": [{"type": "Ready", "status": "True"}]}
TOLERATES_ALL = NodeRules(tolerations=(Toleration("", "Exists", "", ""),))


def body(taint: str = "", **metadata: str) -> dict[str, Any]:
    taints = [{"key": taint, "effect": "NoSchedule"}] if taint else []
    return {"metadata": {"name": "n", **metadata}, "spec": {"taints": taints}, "status": READY}


@pytest.mark.parametrize(
    ("item", "leaves"),
    [
        (body(), False),
        (body(deletionTimestamp="2026-11-21T17:50:29Z"), True),
        (body("ToBeDeletedByClusterAutoscaler"), True),
        (body("karpenter.sh/disrupted"), True),
        # It may stay.
        (body("DeletionCandidateOfClusterAutoscaler"), False),
        (body("dedicated"), False),
    ],
)
def test_webhook_and_controllers_plan_nothing_on_a_node_that_leaves(item: dict[str, Any], leaves: bool) -> None:
    node = read_node(item)
    assert node.leaving is leaves
    assert node.unschedulable is False
    # As the webhook asks: may the ring, the warm set and the gate's holders name it?
    assert Nodes([node]).is_usable("n") is not leaves
    # As the controllers ask: may anything be pulled to it?
    view = read_disk(node, popular_settings())
    assert (view.closed == "leaving") is (leaves or "DeletionCandidate" in str(item))


def test_a_node_that_leaves_admits_whom_a_cordon_lets_through() -> None:
    leaving = read_node(body(deletionTimestamp="2026-11-21T17:50:29Z"))
    assert not node_admits(NodeRules(), leaving)
    assert node_admits(TOLERATES_ALL, leaving)
