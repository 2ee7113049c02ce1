"""The image gate on a real API server: switched off it leaves nothing, and a dry run does
nothing.
"""

from typing import Any

import pytest

from roost.controllers.image_gate.node_labels import LEFT_SET_SECONDS
from roost_core.placement.labels import pulled_label, pulled_prefix, startup_taint
from tests.harness.controlplane import ControlPlane
from tests.harness.nodes import FakeNodes
from tests.harness.waiting import wait_until
from tests.stack import Stack

pytestmark = pytest.mark.e2e

SCIPY = "quay.io/jupyter/scipy-notebook:2026-11-03"
IMAGES = {"registry.k8s.io/pause:3.10.1": 1000, SCIPY: 10**9}
# For the controllers to see, plan and write, on a machine that does other things, too.
SOON_SECONDS = 30.0
VALUES: dict[str, Any] = {
    "singleuser": {"image": dict(zip(("name", "tag"), SCIPY.rsplit(":", 1), strict=True))},
    "placeholders": [],
    "placeholderMover": {"enabled": False},
}
WITHOUT: dict[str, Any] = {"webhook": False, "scheduler": False}


def test_switched_off_the_gate_leaves_nothing_of_its_own_and_everything_of_others(
    control_plane: ControlPlane, namespace: str, fake_nodes: FakeNodes
) -> None:
    """Two releases in one namespace: one is switched off, the other doesn't notice."""
    node = f"{namespace}-a"
    foreign = {pulled_label("hub", "elsewhere", SCIPY): "true", "pool": "user"}
    kept = startup_taint("third", namespace)

    def labels(release: str) -> dict[str, str]:
        """What a release says of the node's images."""
        found = fake_nodes.get(node)["metadata"]["labels"]
        return {
            key: value
            for key, value in found.items()
            if key.startswith(pulled_prefix(release, namespace))
        }

    def taints() -> set[str]:
        return {taint["key"] for taint in fake_nodes.get(node)["spec"].get("taints", [])}

    with (
        Stack(control_plane, namespace, VALUES, controllers=True, **WITHOUT) as one,
        Stack(control_plane, namespace, VALUES, release="other", controllers=True, **WITHOUT),
    ):
        both = [f"{startup_taint('hub', namespace)}:NoSchedule", f"{kept}:NoSchedule"]
        fake_nodes.create(node, images=IMAGES, labels=foreign, taints=both)
        held = {
            release: {pulled_label(release, namespace, SCIPY): "true"}
            for release in ("hub", "other")
        }
        wait_until(
            lambda: {release: labels(release) for release in held} == held,
            SOON_SECONDS,
            "both labels",
        )
        wait_until(lambda: taints() == {kept}, SOON_SECONDS, "one taint to go")
        one.apply({"imageGate": {"mode": "off"}})
        one.restart_controllers()
        wait_until(lambda: not labels("hub"), LEFT_SET_SECONDS + 60, "no label to be left")
        assert labels("other") == held["other"]
        assert foreign.items() <= fake_nodes.get(node)["metadata"]["labels"].items()
        assert taints() == {kept}


def test_a_dry_run_prints_what_would_be_done_and_does_nothing(
    control_plane: ControlPlane, namespace: str, fake_nodes: FakeNodes
) -> None:
    node, key, label = (
        f"{namespace}-a",
        startup_taint("hub", namespace),
        pulled_label("hub", namespace, SCIPY),
    )
    with Stack(control_plane, namespace, VALUES, **WITHOUT) as stack:
        fake_nodes.create(node, images=IMAGES, taints=[f"{key}:NoSchedule"])
        assert (
            f"change node {node}: +{label}=true, -taint {key} (1 image is on the node)"
            in stack.plan()
        )
        found = fake_nodes.get(node)
        assert label not in found["metadata"]["labels"]
        assert found["spec"]["taints"] == [{"key": key, "effect": "NoSchedule"}]
