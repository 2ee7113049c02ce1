"""Warm sets on the real API server with the real kube-scheduler: where a user goes whose image some node holds."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from roost_core.placement.labels import WARM_TARGET_ANNOTATION
from tests.harness.waiting import wait_until
from tests.stack import Stack

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.harness.controlplane import ControlPlane
    from tests.harness.nodes import FakeNodes
    from tests.harness.pods import PodKeeper

pytestmark = pytest.mark.e2e

COMMON, RARE, NEW = (f"registry.example/{name}:1" for name in ("common", "rare", "new"))
# Nodes of 8 cores: eight slots each.
USER_RESOURCES = {"requests": {"cpu": "1", "memory": "256Mi"}}


def user(name: str, image: str, node: str = "") -> dict[str, Any]:
    """A user's pod; `node` ties it there by its own selector."""
    return {
        "metadata": {"name": name, "labels": {"component": "singleuser-server"}},
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "notebook", "image": image, "resources": USER_RESOURCES}],
            **({"nodeSelector": {"kubernetes.io/hostname": node}} if node else {}),
        },
    }


class TestWithFourUsersOnOneNodeAndTwoOnAnOlder:
    """The fuller one holds the common image, the older one the rare one."""

    @pytest.fixture
    def stack(
        self, control_plane: ControlPlane, namespace: str, fake_nodes: FakeNodes, pod_keeper: PodKeeper
    ) -> Iterator[Stack]:
        fake_nodes.create("older", cpu="8", memory="32Gi")
        # Ages are told in seconds; by name it would come last.
        time.sleep(1.1)
        for name in ("fuller", "next"):
            fake_nodes.create(name, cpu="8", memory="32Gi")
        with Stack(control_plane, namespace, {"placeholders": [], "podClasses": {"user": {"warm": None}}}) as stack:
            for index in range(4):
                stack.create_pod(user(f"common-{index}", COMMON, "fuller"))
            for index in range(2):
                stack.create_pod(user(f"rare-{index}", RARE, "older"))
            for name in ("common-3", "rare-1"):
                stack.wait_for_node(name)
            yield stack

    @staticmethod
    def _follow(stack: Stack, warm: dict[str, int], image: str, first: str) -> None:
        """Set the rule, and wait until the webhook would send a user with this image to node `first`."""
        stack.apply({"podClasses": {"user": {"warm": warm}}})
        body = {"apiVersion": "v1", "kind": "Pod", **user("probe", image)}

        def target() -> str:
            probe = stack.cluster.api.create(body, stack.namespace, dryRun="All")
            found: str = probe["metadata"]["annotations"].get(WARM_TARGET_ANNOTATION, "")
            return found

        wait_until(lambda: target() == first, 30, f"the webhook to prefer {first} for {image}", explain=target)

    def _place(self, stack: Stack, name: str, image: str) -> str:
        stack.create_pod(user(name, image))
        return stack.wait_for_node(name)

    def test_without_the_rule_a_user_goes_where_most_users_are_whatever_is_there(self, stack: Stack) -> None:
        assert self._place(stack, "ada", RARE) == "fuller"

    def test_a_user_goes_to_the_node_of_the_set_that_holds_the_image_else_to_its_emptiest(self, stack: Stack) -> None:
        # Six users, the seventh and two more slots: two nodes.
        self._follow(stack, {"podsPerNode": 0, "spare": 2, "nodes": 10}, RARE, "older")
        assert self._place(stack, "ada", RARE) == "older"
        assert self._place(stack, "ben", COMMON) == "fuller"
        assert self._place(stack, "eve", NEW) == "older"

    def test_a_node_that_the_load_does_not_need_gets_nobody_though_it_holds_the_image_and_is_fuller(
        self, stack: Stack
    ) -> None:
        self._follow(stack, {"podsPerNode": 0, "spare": 0, "nodes": 10}, COMMON, "older")
        assert self._place(stack, "ada", COMMON) == "older"
