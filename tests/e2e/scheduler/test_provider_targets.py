"""Warm sets with a scheduler that isn't Roost's: the real kube-scheduler, set as each provider lets
one set it.
"""

import subprocess
import time
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from roost_core.placement.labels import WARM_TARGET_ANNOTATION
from tests.harness.controlplane import ControlPlane
from tests.harness.nodes import FakeNodes
from tests.harness.pods import PodKeeper
from tests.harness.scheduler import scheduler_config, start_scheduler
from tests.harness.waiting import wait_until
from tests.stack import ROOST, Stack

pytestmark = pytest.mark.e2e

COMMON, RARE, NEW = (f"registry.example/{name}:1" for name in ("common", "rare", "new"))
DEFAULT = "default-scheduler"
# The name that GKE gives pods with its profile optimize-utilization. Google doesn't publish that
# scheduler's configuration: stock weights with MostAllocated stand for it.
GKE = "gke.io/optimize-utilization-scheduler"
# `join` would send users to the fullest node: the webhook leaves it out of pods with warm nodes.
WARM = {"join": {"user": 100}, "warm": {"podsPerNode": 0, "spare": 2, "nodes": 10}}


# One strategy for all pods: the whole of what EKS takes.
MOST_ALLOCATED = {
    "type": "MostAllocated",
    "resources": [{"name": name, "weight": 1} for name in ("cpu", "memory")],
}


def packing(name: str) -> dict[str, Any]:
    """The stock profile, but for NodeResourcesFit's strategy."""
    arguments = {"scoringStrategy": MOST_ALLOCATED}
    return {
        "schedulerName": name,
        "pluginConfig": [{"name": "NodeResourcesFit", "args": arguments}],
    }


def rendered_profiles(namespace: str) -> list[dict[str, Any]]:
    """The profiles of Roost's own scheduler, as docs/any-cloud.md gives them to AKS."""
    command = [str(ROOST), "render", "--release", "hub", "--namespace", namespace]
    done: subprocess.CompletedProcess[str] = subprocess.run(
        command, capture_output=True, text=True, check=True
    )
    for document in yaml.safe_load_all(done.stdout):
        if document["kind"] == "ConfigMap" and "config.yaml" in document["data"]:
            profiles: list[dict[str, Any]] = yaml.safe_load(document["data"]["config.yaml"])[
                "profiles"
            ]
            return profiles
    raise AssertionError("no configuration is rendered")


def profiles(target: str, namespace: str) -> tuple[list[dict[str, Any]], str]:
    if target == "none":
        return [{"schedulerName": DEFAULT}], DEFAULT
    if target == "aks":
        # The hub itself names the profile (KubeSpawner.scheduler_name).
        return [{"schedulerName": DEFAULT}, *rendered_profiles(namespace)], f"hub.{namespace}.user"
    if target == "eks":
        return [packing(DEFAULT)], DEFAULT
    return [{"schedulerName": DEFAULT}, packing(GKE)], GKE


@pytest.mark.parametrize("target", ["none", "eks", "aks", "gke"])
class TestWithAnotherScheduler:
    @pytest.fixture
    def stack(
        self,
        target: str,
        control_plane: ControlPlane,
        namespace: str,
        fake_nodes: FakeNodes,
        pod_keeper: PodKeeper,
    ) -> Iterator[Stack]:
        fake_nodes.create("older", cpu="8", memory="32Gi")
        # Ages are told in seconds; by name it would come last.
        time.sleep(1.1)
        for name in ("fuller", "next"):
            fake_nodes.create(name, cpu="8", memory="32Gi")
        configured, self.scheduler_name = profiles(target, namespace)
        classes = {"user": {"join": {"user": None}, "warm": None}}
        values = {"scheduler": {"target": target}, "placeholders": [], "podClasses": classes}
        with (
            start_scheduler(control_plane, scheduler_config(*configured)) as scheduler,
            Stack(control_plane, namespace, values, scheduler=False) as stack,
        ):
            scheduler.wait_serving()
            for index in range(4):
                stack.create_pod(self._user(f"common-{index}", COMMON, "fuller"))
            for index in range(2):
                stack.create_pod(self._user(f"rare-{index}", RARE, "older"))
            for name in ("common-3", "rare-1"):
                stack.wait_for_node(name)
            yield stack

    def _user(self, name: str, image: str, node: str = "") -> dict[str, Any]:
        """A user's pod; `node` ties it there by its own selector. Eight have room on a node."""
        resources = {"requests": {"cpu": "1", "memory": "256Mi"}}
        spec: dict[str, Any] = {
            "terminationGracePeriodSeconds": 0,
            "schedulerName": self.scheduler_name,
            "containers": [{"name": "notebook", "image": image, "resources": resources}],
        }
        if node:
            spec["nodeSelector"] = {"kubernetes.io/hostname": node}
        return {
            "metadata": {"name": name, "labels": {"component": "singleuser-server"}},
            "spec": spec,
        }

    def _place(self, stack: Stack, name: str, image: str) -> str:
        created = stack.create_pod(self._user(name, image))
        assert created["spec"]["schedulerName"] == self.scheduler_name
        return stack.wait_for_node(name)

    def test_a_user_goes_by_the_warm_set_whatever_the_scheduler_itself_would_do(
        self, stack: Stack, target: str
    ) -> None:
        # By itself stock spreads, and a packing one fills the fullest; neither knows of an image on
        # one node.
        assert self._place(stack, "without", RARE) == {"none": "next"}.get(target, "fuller")
        stack.cluster.api.delete(f"/api/v1/namespaces/{stack.namespace}/pods/without")
        stack.apply({"podClasses": {"user": WARM}})
        probe = {"apiVersion": "v1", "kind": "Pod", **self._user("probe", RARE)}

        def warm_target() -> str:
            stored = stack.cluster.api.create(probe, stack.namespace, dryRun="All")
            return str(stored["metadata"]["annotations"].get(WARM_TARGET_ANNOTATION, ""))

        wait_until(
            lambda: warm_target() == "older",
            30,
            f"the webhook to prefer older for {RARE}",
            explain=warm_target,
        )
        assert self._place(stack, "ada", RARE) == "older"
        assert self._place(stack, "ben", COMMON) == "fuller"
        # Nobody holds it: the emptier one of the set, not the empty node beyond it.
        assert self._place(stack, "eve", NEW) == "older"
