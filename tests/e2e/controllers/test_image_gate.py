"""The image gate on a real API server: fake nodes, puller pods whose statuses the tests write, all else as rendered."""

import datetime as dt
from collections.abc import Mapping
from typing import Any

import pytest

from roost.controllers.image_gate.node_labels import LEFT_SET_SECONDS
from roost_core.placement.labels import pulled_label, puller_container, startup_taint
from tests.harness.api import STRATEGIC, Object
from tests.harness.controlplane import ControlPlane
from tests.harness.nodes import FakeNodes
from tests.harness.waiting import wait_until
from tests.stack import Stack

pytestmark = pytest.mark.e2e

SCIPY = "quay.io/jupyter/scipy-notebook:2026-11-03"
GPU = "quay.io/jupyter/pytorch-notebook:cuda12"
PAUSE = "registry.k8s.io/pause:3.10.1"
# For the controllers to see, plan and write, on a machine that does other things, too.
SOON_SECONDS = 30.0


def values_for(*images: str, mode: str = "requireLabel", **gate: Any) -> dict[str, Any]:
    """A hub with these images, and no placeholders."""
    named = [dict(zip(("name", "tag"), image.rsplit(":", 1), strict=True)) for image in images]
    return {
        "singleuser": {"image": named[0]},
        "prePuller": {"extraImages": {f"extra-{index}": one for index, one in enumerate(named[1:])}},
        "imageGate": {"mode": mode, **gate},
        "placeholders": [],
        "placeholderMover": {"enabled": False},
    }


class Hub:
    """A hub's stack without webhook and scheduler, and the kubelets' part played by hand."""

    def __init__(self, cluster: ControlPlane, namespace: str, values: Mapping[str, Any], release: str = "hub") -> None:
        self.cluster = cluster
        self.namespace = namespace
        self.release = release
        self.stack = Stack(
            cluster, namespace, values, release=release, controllers=True, webhook=False, scheduler=False
        )

    def __enter__(self) -> "Hub":
        self.stack.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stack.stop()

    def label(self, image: str) -> str:
        return pulled_label(self.release, self.namespace, image)

    def labels(self, node: str) -> set[str]:
        """This hub's labels on a node that say "the image is there"."""
        return {key for key, value in self.values(node).items() if value == "true"}

    def values(self, node: str) -> dict[str, str]:
        """This hub's labels on a node, with what they say."""
        prefix = self.label("any").partition("/")[0]
        found = self.cluster.api.get(f"/api/v1/nodes/{node}")["metadata"].get("labels", {})
        return {key: value for key, value in found.items() if key.startswith(f"{prefix}/")}

    def wait_for_labels(self, node: str, *images: str, timeout_seconds: float = SOON_SECONDS) -> None:
        """Wait until the node carries the labels of these images and no others."""
        wanted = set(map(self.label, images))
        wait_until(
            lambda: self.labels(node) == wanted,
            timeout_seconds,
            f"{node} to carry just the labels of {images}",
            explain=lambda: (self.labels(node), self.stack.controllers[-1].process.tail()),
        )

    def taints(self, node: str) -> set[str]:
        return {taint["key"] for taint in self.cluster.api.get(f"/api/v1/nodes/{node}")["spec"].get("taints", [])}

    def puller(self, node: str) -> Object:
        """The pod of the rendered DaemonSet for a node, bound there."""
        pods = f"/api/v1/namespaces/{self.namespace}/pods"

        def find() -> Object | None:
            found = self.cluster.api.list(pods, labelSelector="app.kubernetes.io/component=puller")
            return next((pod for pod in found if node in str(pod["spec"]["affinity"])), None)

        pod = wait_until(find, 30, f"a puller pod for {node}")
        if not pod["spec"].get("nodeName"):
            binding = {
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": {"name": pod["metadata"]["name"]},
                "target": {"apiVersion": "v1", "kind": "Node", "name": node},
            }
            self.cluster.api.request("POST", f"{pods}/{pod['metadata']['name']}/binding", binding)
        # What stands in statuses when the gate first looks at a node may be old: then it waits for the node's list.
        waiting = "roost_controllers_gate_nodes_waiting"
        wait_until(lambda: self.stack.controllers[-1].metric(waiting) > 0, SOON_SECONDS, "the gate to know the node")
        return pod

    def say(self, pod: Object, states: Mapping[str, Object]) -> None:
        """The kubelet writes container states, by image; the others are still being created."""
        statuses = [
            {
                "name": container["name"],
                "image": container["image"],
                "imageID": "",
                "ready": False,
                "restartCount": 0,
                "state": next(
                    (state for image, state in states.items() if puller_container(image) == container["name"]),
                    {"waiting": {"reason": "ContainerCreating"}},
                ),
            }
            for container in pod["spec"]["containers"]
        ]
        path = f"/api/v1/namespaces/{self.namespace}/pods/{pod['metadata']['name']}/status"
        self.cluster.api.patch(path, {"status": {"containerStatuses": statuses}}, content_type=STRATEGIC)

    def say_pulled(self, pod: Object, node: str, image: str) -> None:
        """The kubelet writes the event that it pulled an image."""
        moment = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        meta = pod["metadata"]
        self.cluster.api.create(
            {
                "apiVersion": "v1",
                "kind": "Event",
                "metadata": {"generateName": f"{meta['name']}."},
                "involvedObject": {
                    "kind": "Pod",
                    "name": meta["name"],
                    "namespace": self.namespace,
                    "uid": meta["uid"],
                },
                "reason": "Pulled",
                "message": f'Successfully pulled image "{image}" in 2s (2s including waiting). Image size: 1 bytes.',
                "type": "Normal",
                "source": {"component": "kubelet", "host": node},
                "firstTimestamp": moment,
                "lastTimestamp": moment,
                "count": 1,
            },
            self.namespace,
        )

    def wait_for_plan(self) -> None:
        """Wait until the gate has planned once more."""
        replica = self.stack.controllers[-1]

        def plans() -> float:
            return replica.metric("roost_controllers_plan_duration_seconds_count", controller="image-gate")

        before = plans()
        wait_until(lambda: plans() > before, 30 + SOON_SECONDS, "one more plan")

    def events(self, reason: str, namespace: str | None = None) -> list[str]:
        """What Roost has told, by reason."""
        found = self.cluster.api.list(
            f"/api/v1/namespaces/{namespace or self.namespace}/events", fieldSelector=f"reason={reason}"
        )
        return [event["message"] for event in found]


RUNNING: Object = {"running": {"startedAt": "2026-11-21T10:00:00Z"}}


@pytest.mark.parametrize("mode", ["requireLabel", "prefer", "startupTaint"])
def test_a_label_follows_its_image_by_event_by_status_and_by_the_nodes_own_list(
    mode: str, control_plane: ControlPlane, namespace: str, fake_nodes: FakeNodes
) -> None:
    node = f"{namespace}-a"
    key = startup_taint("hub", namespace)
    with Hub(control_plane, namespace, values_for(SCIPY, GPU, mode=mode)) as hub:
        fake_nodes.create(node, images={PAUSE: 1000}, taints=[f"{key}:NoSchedule"])
        puller = hub.puller(node)
        hub.say_pulled(puller, node, SCIPY)
        hub.wait_for_labels(node, SCIPY)
        assert hub.taints(node) == {key}
        hub.say(puller, {SCIPY: RUNNING, GPU: RUNNING})
        hub.wait_for_labels(node, SCIPY, GPU)
        wait_until(lambda: not hub.taints(node), SOON_SECONDS, "the startup taint to go")
        wait_until(lambda: hub.events("StartupTaintLifted", "default"), SOON_SECONDS, "an Event that says so")
        # Twice: a plan that was being made at the first doesn't know of it.
        for size_bytes in (10**9, 10**9 + 1):
            fake_nodes.set_images(node, {PAUSE: 1000, SCIPY: 10**9, GPU: size_bytes})
            hub.wait_for_plan()
        assert hub.stack.controllers[-1].metric("roost_controllers_gate_images_held", image=GPU) == 1.0
        fake_nodes.set_images(node, {PAUSE: 1000, SCIPY: 10**9})
        hub.wait_for_labels(node, SCIPY)


def test_switched_off_the_gate_leaves_nothing_of_its_own_and_everything_of_others(
    control_plane: ControlPlane, namespace: str, fake_nodes: FakeNodes
) -> None:
    """Two releases in one namespace: one is switched off, the other doesn't notice."""
    node, values = f"{namespace}-a", values_for(SCIPY)
    foreign = {pulled_label("hub", "elsewhere", SCIPY): "true", "pool": "user"}
    with Hub(control_plane, namespace, values) as one, Hub(control_plane, namespace, values, "other") as other:
        taints = [f"{startup_taint(release, namespace)}:NoSchedule" for release in ("hub", "third")]
        fake_nodes.create(node, images={PAUSE: 1000, SCIPY: 10**9}, labels=foreign, taints=taints)
        one.wait_for_labels(node, SCIPY)
        other.wait_for_labels(node, SCIPY)
        wait_until(lambda: one.taints(node) == {startup_taint("third", namespace)}, SOON_SECONDS, "one taint to go")
        one.stack.apply(values_for(SCIPY, mode="off"))
        one.stack.restart_controllers()
        wait_until(lambda: not one.values(node), LEFT_SET_SECONDS + 60, "no label to be left")
        assert other.labels(node) == {other.label(SCIPY)}
        assert foreign.items() <= control_plane.api.get(f"/api/v1/nodes/{node}")["metadata"]["labels"].items()
        assert one.taints(node) == {startup_taint("third", namespace)}


def test_a_dry_run_prints_what_would_be_done_and_does_nothing(
    control_plane: ControlPlane, namespace: str, fake_nodes: FakeNodes
) -> None:
    node, key = f"{namespace}-a", startup_taint("hub", namespace)
    stack = Stack(control_plane, namespace, values_for(SCIPY), webhook=False, scheduler=False)
    with stack:
        fake_nodes.create(node, images={PAUSE: 1000, SCIPY: 10**9}, taints=[f"{key}:NoSchedule"])
        printed = stack.plan()
        wanted = (
            f"change node {node}: +{pulled_label('hub', namespace, SCIPY)}=true, -taint {key} (1 image is on the node)"
        )
        assert wanted in printed
        found = control_plane.api.get(f"/api/v1/nodes/{node}")
        assert pulled_label("hub", namespace, SCIPY) not in found["metadata"]["labels"]
        assert found["spec"]["taints"] == [{"key": key, "effect": "NoSchedule"}]
