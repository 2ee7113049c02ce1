"""Placeholders move to a new node on a real control plane, and leave it when it may go: everything
as rendered, only kubelets are played.
"""

import datetime as dt
from collections.abc import Callable

import pytest

from roost_core.objects.fields import JSONObject
from roost_core.placement.labels import attract_label
from tests.e2e.pods import IMAGE, SINGLEUSER, USER, pod
from tests.harness.controlplane import ControlPlane
from tests.harness.nodes import FakeNodes
from tests.harness.pods import PodKeeper
from tests.harness.waiting import wait_until
from tests.stack import Stack

pytestmark = pytest.mark.e2e

PLACEHOLDERS = 6
EVICTIONS_PER_MINUTE = 3
# Two minutes of evictions, after a new leader's minute without any; and a machine that does other
# things, too.
MOVED_SECONDS = 300.0


def test_placeholders_go_to_a_new_node_at_the_budgets_pace_and_leave_it_when_others_suffice(
    control_plane: ControlPlane, namespace: str, fake_nodes: FakeNodes, pod_keeper: PodKeeper
) -> None:
    api, pool = control_plane.api, {"pool": namespace}
    requests = {"cpu": "100m", "memory": "1Gi"}
    default = {
        "name": "default",
        "replicas": PLACEHOLDERS,
        "resources": {"requests": requests},
        "nodeSelector": pool,
    }
    times = {"markAfterSeconds": 2, "keepMarkSeconds": 5, "flapSeconds": 5}
    values = {
        "singleuser": {**SINGLEUSER, "nodeSelector": pool},
        "placeholders": [default],
        "placeholderMover": {"evictionsPerMinute": EVICTIONS_PER_MINUTE, **times},
    }

    def pods(component: str) -> list[JSONObject]:
        return api.list(
            f"/api/v1/namespaces/{namespace}/pods", labelSelector=f"component={component}"
        )

    def count_on(node: str) -> int:
        return sum(one["spec"].get("nodeName") == node for one in pods("user-placeholder"))

    def marked() -> list[str]:
        label = attract_label("hub", namespace, "default")
        return [node["metadata"]["name"] for node in api.list("/api/v1/nodes", labelSelector=label)]

    def explain() -> object:
        gauges = [
            line for line in controllers.get("/metrics")[1].splitlines() if "placeholder" in line
        ]
        return (
            {
                one["metadata"]["name"]: one["spec"].get("nodeName")
                for one in pods("user-placeholder")
            },
            marked(),
            "\n".join(
                line for line in gauges if not line.startswith("#") and "_bucket" not in line
            ),
            controllers.process.tail(),
        )

    def wait(state: Callable[[], bool], what: str, seconds: float = 90.0) -> None:
        wait_until(state, seconds, what, explain=explain)

    def add_users(numbers: range) -> None:
        """They all go to the old node."""
        for index in numbers:
            stack.create_pod(pod(f"user-{index}", requests=requests, nodeSelector=pool))
            assert stack.wait_for_node(f"user-{index}", 60) == old

    def is_there(body: JSONObject) -> bool:
        return "deletionTimestamp" not in body["metadata"]

    def users() -> set[str]:
        return {one["metadata"]["uid"] for one in pods(USER)}

    with Stack(control_plane, namespace, values, controllers=True) as stack:
        controllers = stack.controllers[-1]
        old, new = f"old-{namespace}", f"new-{namespace}"
        fake_nodes.create(old, labels=pool, memory="12Gi", images={IMAGE: 1_500_000_000})
        wait(lambda: count_on(old) == PLACEHOLDERS, "all placeholders on the only node")
        wait(lambda: marked() == [old], "the only node to be marked")
        add_users(range(4))
        before = users()

        fake_nodes.create(new, labels=pool, memory="12Gi", images={IMAGE: 1_500_000_000})
        wait(lambda: marked() == [new], "the new node to be marked")
        wait(lambda: count_on(new) == PLACEHOLDERS, "all on the new node", MOVED_SECONDS)
        moments = [one["metadata"]["creationTimestamp"] for one in pods("user-placeholder")]
        created = sorted(map(dt.datetime.fromisoformat, moments))
        # Whole seconds, and each successor comes a moment after its eviction.
        assert (created[EVICTIONS_PER_MINUTE] - created[0]).total_seconds() >= 57
        assert controllers.metric("roost_controllers_evictions_total") == PLACEHOLDERS, (
            "each placeholder moved once"
        )
        gauge = "roost_controllers_placeholders"
        wait(
            lambda: controllers.metric(gauge, set="default", state="marked") == PLACEHOLDERS,
            "the metrics to say so",
        )
        assert users() == before

        # Where the placeholders were is room, and users fill it up, not the node with the
        # placeholders.
        assert count_on(old) == 0
        add_users(range(4, 9))
        assert count_on(new) == PLACEHOLDERS

        # The class ends. Only placeholders use the new node, and the old one has room for nine.
        for index in range(6):
            api.delete(f"/api/v1/namespaces/{namespace}/pods/user-{index}")
        before = {one["metadata"]["uid"] for one in pods(USER) if is_there(one)}
        wait(lambda: marked() == [old], "the old node to be marked")
        wait(lambda: count_on(old) == PLACEHOLDERS, "all on the old node", MOVED_SECONDS)
        assert {one["metadata"]["uid"] for one in pods(USER) if is_there(one)} == before
