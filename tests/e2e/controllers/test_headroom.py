"""Placeholders by the clock and in whole nodes, as rendered, on a real API server: numbers, sizes and rights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.harness.waiting import wait_until
from tests.stack import Stack

if TYPE_CHECKING:
    from tests.harness.api import Object
    from tests.harness.controlplane import ControlPlane
    from tests.harness.nodes import FakeNodes
    from tests.harness.pods import PodKeeper

pytestmark = pytest.mark.e2e

SOON_SECONDS = 60.0
# A node counts after a minute, and its size after another.
SIZED_SECONDS = 240.0


def _stateful_set(stack: Stack, name: str) -> Object:
    path = f"/apis/apps/v1/namespaces/{stack.namespace}/statefulsets/hub-roost-placeholder-{name}"
    return stack.cluster.api.get(path)


def _requests(stack: Stack, name: str) -> object:
    return _stateful_set(stack, name)["spec"]["template"]["spec"]["containers"][0]["resources"].get("requests")


def test_windows_set_the_number_and_applying_the_manifests_again_does_not_put_it_back(
    control_plane: ControlPlane, namespace: str
) -> None:
    term = {
        "name": "term",
        "replicas": 7,
        "timeZone": "Europe/Berlin",
        "start": "2020-01-01T00:00",
        "end": "2099-01-01T00:00",
    }
    over = {**term, "name": "over", "replicas": 50, "end": "2020-02-01T00:00"}
    placeholders = {
        "name": "default",
        "replicas": 2,
        "resources": {"requests": {"cpu": "100m"}},
        "windows": [term, over],
    }
    values: dict[str, Any] = {"placeholders": [placeholders], "singleuser": {"image": {"name": "nb", "tag": "1"}}}
    with Stack(control_plane, namespace, values, controllers=True, webhook=False, scheduler=False) as stack:
        assert "replicas" not in stack.find("StatefulSet")["spec"]
        wait_until(lambda: _stateful_set(stack, "default")["spec"]["replicas"] == 7, SOON_SECONDS, "seven placeholders")
        stack.apply({})
        assert _stateful_set(stack, "default")["spec"]["replicas"] == 7

        # Somebody else's number is set right.
        path = f"/apis/apps/v1/namespaces/{namespace}/statefulsets/hub-roost-placeholder-default"
        control_plane.api.patch(path, {"spec": {"replicas": 3}})
        wait_until(
            lambda: _stateful_set(stack, "default")["spec"]["replicas"] == 7, SOON_SECONDS, "seven placeholders again"
        )
        told = control_plane.api.list(f"/api/v1/namespaces/{namespace}/events")
        assert any(event["reason"] == "HeadroomChanged" and "window term" in event["message"] for event in told)


def test_a_placeholder_for_a_whole_node_asks_for_what_the_node_has(
    control_plane: ControlPlane, namespace: str, fake_nodes: FakeNodes, pod_keeper: PodKeeper
) -> None:
    pool = {"pool": namespace}
    placeholders = {
        "name": "whole",
        "replicas": 2,
        "countBy": "nodes",
        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
        "nodeSelector": pool,
    }
    values: dict[str, Any] = {
        "placeholders": [placeholders],
        "singleuser": {"image": {"name": "nb", "tag": "1"}},
        "prePuller": {"enabled": False},
        "imageGate": {"mode": "off"},
    }
    for name in ("one", "two"):
        fake_nodes.create(f"{name}-{namespace}", labels=pool, cpu="4", memory="8Gi")
    with Stack(control_plane, namespace, values, controllers=True, webhook=False) as stack:
        # Else an upgrade would put it back.
        pod = stack.find("StatefulSet")["spec"]["template"]["spec"]
        assert "resources" not in pod["containers"][0]
        wait_until(lambda: _stateful_set(stack, "whole")["spec"]["replicas"] == 2, SOON_SECONDS, "a placeholder a node")
        wait_until(
            lambda: _requests(stack, "whole") == {"cpu": "3960m", "memory": "8110Mi"},
            SIZED_SECONDS,
            "placeholders as large as nodes",
            explain=lambda: (_requests(stack, "whole"), stack.controllers[0].process.tail()),
        )

        def sit_apart() -> bool:
            path = f"/api/v1/namespaces/{namespace}/pods"
            found = control_plane.api.list(path, labelSelector="component=user-placeholder")
            sizes = [pod["spec"]["containers"][0]["resources"].get("requests", {}).get("cpu") for pod in found]
            return sizes == ["3960m"] * 2 and len({pod["spec"].get("nodeName") for pod in found} - {None}) == 2

        wait_until(sit_apart, SIZED_SECONDS, "one placeholder on each node", explain=stack.controllers[0].process.tail)
        assert stack.controllers[0].metric("roost_controllers_actions_total", kind="ResizeSet", outcome="done") == 1

        stack.apply({})
        assert _requests(stack, "whole") == {"cpu": "3960m", "memory": "8110Mi"}
        assert _stateful_set(stack, "whole")["spec"]["replicas"] == 2
