"""Several hubs over the same nodes, on a real control plane: nothing clashes, and who leaves takes
only its own.
"""

import contextlib
import itertools
import subprocess
from typing import Any

import pytest

from roost_core.objects.fields import JSONObject
from roost_core.placement.labels import attract_prefix, pulled_label, pulled_prefix, startup_taint
from tests.e2e.pods import IMAGE, SINGLEUSER
from tests.harness.api import ApiError
from tests.harness.controlplane import ControlPlane
from tests.harness.nodes import FakeNodes
from tests.harness.pods import PodKeeper
from tests.harness.waiting import wait_until
from tests.stack import ROOST, Stack

pytestmark = pytest.mark.e2e

IMAGES = {IMAGE: 1_500_000_000}
PLACEHOLDERS = 2
SOON_SECONDS = 120.0


def values_for(pool: dict[str, str], **gate: Any) -> dict[str, Any]:
    resources = {"requests": {"cpu": "100m", "memory": "1Gi"}}
    return {
        "singleuser": {**SINGLEUSER, "nodeSelector": pool},
        "imageGate": gate,
        "placeholders": [
            {
                "name": "default",
                "replicas": PLACEHOLDERS,
                "resources": resources,
                "nodeSelector": pool,
            }
        ],
        "placeholderMover": {
            "evictionsPerMinute": 2,
            "markAfterSeconds": 1,
            "keepMarkSeconds": 5,
            "flapSeconds": 5,
        },
    }


class Marks:
    def __init__(self, cluster: ControlPlane, stack: Stack) -> None:
        self.cluster = cluster
        self.stack = stack
        self.hub = (stack.release, stack.namespace)

    def on(self, node: str) -> dict[str, set[str]]:
        body = self.cluster.api.get(f"/api/v1/nodes/{node}")
        prefixes = (pulled_prefix(*self.hub), attract_prefix(*self.hub))
        return {
            "labels": {key for key in body["metadata"]["labels"] if key.startswith(prefixes)},
            "taints": {taint["key"] for taint in body["spec"].get("taints", ())}
            & {startup_taint(*self.hub)},
        }

    def wait_for_images(self, node: str) -> None:
        label = pulled_label(*self.hub, IMAGE)
        wait_until(
            lambda: label in self.on(node)["labels"] and not self.on(node)["taints"],
            SOON_SECONDS,
            f"{node} to hold the image for {self.hub}",
            explain=lambda: (self.on(node), self.stack.controllers[-1].process.tail()),
        )

    def wait_for_mark(self, *nodes: str) -> None:
        prefix = attract_prefix(*self.hub)

        def is_marked() -> bool:
            return any(key.startswith(prefix) for node in nodes for key in self.on(node)["labels"])

        wait_until(is_marked, SOON_SECONDS, f"a node that attracts the placeholders of {self.hub}")


def cleanup(cluster: ControlPlane, stack: Stack) -> str:
    """`roost cleanup` as an operator runs it; its controllers have ended before."""
    for replica in stack.controllers:
        replica.process.stop()
    command = [
        str(ROOST),
        "cleanup",
        f"--release={stack.release}",
        f"--namespace={stack.namespace}",
    ]
    command.append(f"--kubeconfig={cluster.kubeconfig}")
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_hubs_of_one_name_and_hubs_of_one_namespace_share_nodes_and_none_touches_anothers_marks(
    control_plane: ControlPlane, namespace: str, fake_nodes: FakeNodes, pod_keeper: PodKeeper
) -> None:
    pool, other_namespace = {"pool": namespace}, control_plane.create_namespace()
    # The same name in two namespaces, two names in one namespace; each gate of another mode.
    stacks = [
        Stack(control_plane, namespace, values_for(pool), controllers=True),
        Stack(
            control_plane, other_namespace, values_for(pool, mode="startupTaint"), controllers=True
        ),
        Stack(control_plane, namespace, values_for(pool), release="hub.two", controllers=True),
    ]
    taint = startup_taint("hub", other_namespace)
    nodes = [f"{letter}-{namespace}" for letter in "ab"]
    for node in nodes:
        fake_nodes.create(
            node, labels=pool, images=IMAGES, taints=[f"{taint}:NoSchedule"], memory="64Gi"
        )
    with contextlib.ExitStack() as running:
        for stack in stacks:
            running.enter_context(stack)
        marks = [Marks(control_plane, stack) for stack in stacks]

        # No object of one is an object of another.
        objects = [(*stack.manifests, *stack.deployments.values()) for stack in stacks]
        identities = [
            {
                (body["kind"], body["metadata"].get("namespace"), body["metadata"]["name"])
                for body in of_stack
            }
            for of_stack in objects
        ]
        for mine, others in itertools.combinations(identities, 2):
            assert not mine & others
        leases = {}
        for stack in stacks:
            name = stack.deployments["controllers"]["metadata"]["name"]
            path = f"/apis/coordination.k8s.io/v1/namespaces/{stack.namespace}/leases/{name}"
            leases[path] = control_plane.api.get(path)["spec"]["holderIdentity"]
        assert len(leases) == len(stacks)
        assert len(set(leases.values())) == len(stacks)

        for mark in marks:
            for node in nodes:
                mark.wait_for_images(node)
            mark.wait_for_mark(*nodes)
        first = marks[0]

        # Whoever tries to write another's marks is refused by the API server.
        account = stacks[0].find("ServiceAccount", "hub-roost-controllers")["metadata"]["name"]
        api = control_plane.api_as(control_plane.service_account_token(namespace, account))
        for stack in stacks[1:]:
            foreign = pulled_label(stack.release, stack.namespace, IMAGE)
            with pytest.raises(ApiError) as refused:
                api.patch(f"/api/v1/nodes/{nodes[0]}", {"metadata": {"labels": {foreign: None}}})
            assert refused.value.status in (403, 422)
            name = placeholder_of(control_plane, stack)
            eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
            with pytest.raises(ApiError) as refused:
                api.request(
                    "POST", f"/api/v1/namespaces/{stack.namespace}/pods/{name}/eviction", eviction
                )
            assert refused.value.status in (403, 422)

        # One leaves: the others' marks stay, also after their next looks.
        kept = [{node: mark.on(node) for node in nodes} for mark in marks[1:]]
        assert "change node" in cleanup(control_plane, stacks[0])
        for node in nodes:
            assert first.on(node) == {"labels": set(), "taints": set()}
        for one, before in zip(marks[1:], kept, strict=True):
            for node in nodes:
                assert one.on(node)["taints"] == before[node]["taints"]
                images = {
                    key for key in before[node]["labels"] if key.startswith(pulled_prefix(*one.hub))
                }
                assert images <= one.on(node)["labels"]
        # And they go on working.
        fake_nodes.create(
            f"c-{namespace}",
            labels=pool,
            images=IMAGES,
            taints=[f"{taint}:NoSchedule"],
            memory="64Gi",
        )
        for mark in marks[1:]:
            mark.wait_for_images(f"c-{namespace}")
        assert first.on(f"c-{namespace}")["labels"] == set()
        for stack in stacks:
            assert not stack.controllers[0].process.log_lines("failed"), (
                "a write of one clashed with another's"
            )
    control_plane.api.delete(f"/api/v1/namespaces/{other_namespace}")


def placeholder_of(cluster: ControlPlane, stack: Stack) -> str:
    selector = f"app.kubernetes.io/component=placeholder,app.kubernetes.io/instance={stack.release}"

    def find() -> str:
        pods: list[JSONObject] = cluster.api.list(
            f"/api/v1/namespaces/{stack.namespace}/pods", labelSelector=selector
        )
        return str(pods[0]["metadata"]["name"]) if pods else ""

    return wait_until(find, SOON_SECONDS, f"a placeholder of {stack.release} in {stack.namespace}")
