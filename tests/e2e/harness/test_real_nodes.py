"""The real nodes themselves: what tests of image handling take for granted."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.harness import (
    MINORS,
    ControlPlane,
    HarnessUnavailableError,
    RealNode,
    RealRegistry,
    start_scheduler,
    wait_until,
)
from tests.harness.binaries import REAL_NODE
from tests.harness.cgroups import left_groups, make_group, remove_group
from tests.harness.fixtures import give_up, require_binary
from tests.harness.processes import is_alive
from tests.harness.real_nodes import condition, require_real_nodes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tests.harness.api import Object
    from tests.harness.registry import PushedImage

    StartRealNode = Callable[..., RealNode]

pytestmark = pytest.mark.e2e
REPOSITORY = Path(__file__).resolve().parents[3]
PULL_SECONDS = 90.0


def container(name: str, image: str, mounts: Sequence[str] = (), **more: object) -> dict[str, Any]:
    return {
        "name": name,
        "image": image,
        "volumeMounts": [{"name": mount, "mountPath": f"/mounted/{mount}"} for mount in mounts],
        **more,
    }


def image_volume(name: str, reference: str) -> dict[str, Any]:
    return {"name": name, "image": {"reference": reference}}


def pod(name: str, node: str, *containers: dict[str, Any], **spec: object) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"nodeName": node, "containers": list(containers), **spec}}


def events(cluster: ControlPlane, namespace: str, name: str, reason: str) -> list[str]:
    path = f"/api/v1/namespaces/{namespace}/events"
    found = cluster.api.list(path, fieldSelector=f"involvedObject.name={name},reason={reason}")
    return [str(event["message"]) for event in found]


def pulled(cluster: ControlPlane, namespace: str, name: str, image: PushedImage) -> str | None:
    """What the kubelet said when it had pulled an image for a pod."""
    said = events(cluster, namespace, name, "Pulled")
    return next((m for m in said if m.startswith(f'Successfully pulled image "{image.reference}"')), None)


def running_pods(cluster: ControlPlane, namespace: str, count: int) -> list[Object] | None:
    """All pods of a namespace, once so many run."""
    found = [p for p in cluster.api.list(f"/api/v1/namespaces/{namespace}/pods") if p["status"]["phase"] == "Running"]
    return found if len(found) == count else None


def waiting(pod: Object, container: str) -> Object:
    """Why a container waits: reason and message; empty when it doesn't."""
    states = [c["state"] for c in pod["status"].get("containerStatuses", []) if c["name"] == container]
    return dict(states[0].get("waiting", {})) if states else {}


def test_two_real_nodes_run_pods_at_once_and_leave_nothing(
    control_plane: ControlPlane, namespace: str, real_registry: RealRegistry, start_real_node: StartRealNode
) -> None:
    groups_before = left_groups(os.getpid())
    names = [f"{namespace}-a", f"{namespace}-b"]
    nodes = [start_real_node(name, labels={"pool": namespace}) for name in names]
    program = real_registry.push_program("me/program:1")
    data = real_registry.push("me/data:1", files={"/data.txt": b"hello"})  # nothing in it to run
    reads = ["/in-pod", "read", "/mounted/data/data.txt"]
    reader = container("reader", program.reference, ["data"], command=reads)
    template = {
        "metadata": {"labels": {"app": "everywhere"}},
        "spec": {
            "nodeSelector": {"pool": namespace},
            "initContainers": [reader],
            "containers": [container("main", program.reference)],
            "volumes": [image_volume("data", data.reference)],
        },
    }
    everywhere = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "everywhere"},
        "spec": {"selector": {"matchLabels": {"app": "everywhere"}}, "template": template},
    }
    for node in nodes:
        assert node.wait_ready()["metadata"]["labels"]["pool"] == namespace
    with start_scheduler(control_plane):
        control_plane.api.create(everywhere, namespace)
        pods = wait_until(lambda: running_pods(control_plane, namespace, 2), PULL_SECONDS, "a pod on each node")
    assert sorted(p["spec"]["nodeName"] for p in pods) == names
    for node in nodes:
        assert data.reference in node.images()
    pids = [pid for node in nodes for pid in node.pids()]
    assert len(pids) == 2 * 6  # init, containerd, kubelet; the pod's shim, sandbox and container
    folders = [str(node.folder) for node in nodes]
    for node in nodes:
        node.stop()
    assert not [pid for pid in pids if is_alive(pid)]
    assert not [line for line in Path("/proc/mounts").read_text().splitlines() if any(f in line for f in folders)]
    assert left_groups(os.getpid()) <= groups_before
    assert not [node for node in nodes if node.node() is not None]


def test_of_several_image_volumes_those_that_exist_are_pulled_and_only_their_containers_start(
    control_plane: ControlPlane, namespace: str, real_registry: RealRegistry, start_real_node: StartRealNode
) -> None:
    node = start_real_node(f"{namespace}-a")
    program = real_registry.push_program("me/program:1")
    first, last = (real_registry.push(f"me/{name}:1", size_bytes=1000) for name in ("first", "last"))
    missing = real_registry.reference("me/missing:1")
    several = pod(
        "several",
        node.name,
        *(container(name, program.reference, [name]) for name in ("first", "missing", "last")),
        volumes=[
            image_volume("first", first.reference),
            image_volume("missing", missing),
            image_volume("last", last.reference),
        ],
    )
    node.wait_ready()
    control_plane.create_pod(several, namespace)

    def both_run(found: Object) -> bool:
        statuses = found["status"].get("containerStatuses", [])
        return {c["name"] for c in statuses if "running" in c["state"]} == {"first", "last"}

    found = control_plane.wait_for_pod("several", namespace, both_run, "run what can run", PULL_SECONDS)
    assert found["status"]["phase"] == "Pending"
    assert waiting(found, "missing")["reason"] in ("ErrImagePull", "ImagePullBackOff")
    assert f"{missing}: not found" in waiting(found, "missing")["message"]
    assert pulled(control_plane, namespace, "several", first)
    assert pulled(control_plane, namespace, "several", last)
    order = [r.path.split("/")[3] for r in real_registry.requests if "/manifests/1" in r.path]
    assert [name for name, _ in zip(order, ["", *order], strict=False)][:3] == ["first", "missing", "last"]


def test_a_registry_that_is_down_or_wants_credentials_is_named_as_the_reason(
    control_plane: ControlPlane, namespace: str, real_registry: RealRegistry, start_real_node: StartRealNode
) -> None:
    node = start_real_node(f"{namespace}-a")
    program = real_registry.push_program("me/program:1")
    node.wait_ready()
    real_registry.require_credentials("user", "right")
    for name in ("right", "wrong"):
        secret = {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "kubernetes.io/dockerconfigjson",
            "metadata": {"name": name},
            "data": real_registry.pull_secret("user", name),
        }
        control_plane.api.create(secret, namespace)

    def reason_with(name: str, text: str, **spec: object) -> None:
        control_plane.create_pod(pod(name, node.name, container("main", program.reference), **spec), namespace)

        def is_told(found: Object) -> bool:
            return text in waiting(found, "main").get("message", "")

        control_plane.wait_for_pod(name, namespace, is_told, f"wait because of {text!r}", PULL_SECONDS)

    reason_with("nobody", "no basic auth credentials")
    reason_with("wrong", "401 Unauthorized", imagePullSecrets=[{"name": "wrong"}])
    real_registry.down()
    reason_with("down", "connection refused", imagePullSecrets=[{"name": "right"}])
    real_registry.up()
    control_plane.wait_for_pod_phase("down", namespace, timeout_seconds=PULL_SECONDS)  # tried again by itself


def test_pods_outlive_a_restart_of_their_kubelet_and_end_when_the_power_goes(
    control_plane: ControlPlane, namespace: str, real_registry: RealRegistry, start_real_node: StartRealNode
) -> None:
    node = start_real_node(f"{namespace}-a")
    # Of any host: nodes ask this registry for every image.
    real_registry.push_program("me/program:1")
    node.wait_ready()
    control_plane.create_pod(pod("user", node.name, container("main", "quay.io/me/program:1")), namespace)
    before = control_plane.wait_for_pod_phase("user", namespace, timeout_seconds=PULL_SECONDS)
    node.restart_kubelet()
    control_plane.create_pod(pod("next", node.name, container("main", "quay.io/me/program:1")), namespace)
    control_plane.wait_for_pod_phase("next", namespace, timeout_seconds=PULL_SECONDS)
    after = control_plane.pod("user", namespace)["status"]["containerStatuses"][0]
    assert after["containerID"] == before["status"]["containerStatuses"][0]["containerID"]
    pids = node.pids()
    node.kill()
    assert not [pid for pid in pids if is_alive(pid)]
    assert node.node() is not None


def test_a_kubelet_needs_no_more_than_a_kubelet_may(real_registry: RealRegistry) -> None:
    strict = ["--authorization-mode=Node", "--enable-admission-plugins=NodeRestriction"]  # added to RBAC
    try:
        with ControlPlane(apiserver_flags=strict) as cluster, RealNode(cluster, "node-a", real_registry) as node:
            program = real_registry.push_program("me/program:1")
            cluster.create_namespace("hub")
            cluster.create_pod(pod("user", "node-a", container("main", program.reference)), "hub")
            cluster.wait_for_pod_phase("user", "hub", timeout_seconds=PULL_SECONDS)
            assert condition(node.wait_ready(), "Ready") == "True"
            assert "forbidden" not in node.log()
    except HarnessUnavailableError as error:
        give_up(error)


CHILD = """
    import time
    from tests.harness import ControlPlane, RealNode, RealRegistry
    plane, registry = ControlPlane().start(), RealRegistry().start()
    image = registry.push_program("me/program:1")
    node = RealNode(plane, "node-a", registry).start()
    node.wait_ready()
    plane.create_pod({"metadata": {"name": "p"}, "spec": {"nodeName": "node-a", "containers": [
        {"name": "c", "image": image.reference}]}}, plane.create_namespace("hub"))
    plane.wait_for_pod_phase("p", "hub", timeout_seconds=90)
    print(*node.pids(), flush=True)
    time.sleep(600)
"""


@contextlib.contextmanager
def child_with_node() -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    try:
        require_real_nodes()
    except HarnessUnavailableError as error:
        give_up(error)
    for name in ("etcd", "kube-apiserver", "kube-controller-manager", *REAL_NODE):
        require_binary(name)
    command = [sys.executable, "-c", textwrap.dedent(CHILD)]
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None
            yield child, [int(pid) for pid in child.stdout.readline().split()]
        finally:
            child.kill()


def test_nodes_die_with_a_test_run_that_was_killed_pods_and_shims_included() -> None:
    with child_with_node() as (child, pids):
        assert len(pids) == 6
        assert all(is_alive(pid) for pid in pids)
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        wait_until(lambda: not any(is_alive(pid) for pid in pids), 20, "the node's processes to be gone")
        assert left_groups(child.pid)
    remove_group(make_group())  # whoever makes a group removes those of the dead
    assert not left_groups(child.pid)


@pytest.mark.minors
@pytest.mark.parametrize("minor", MINORS)
def test_every_supported_minor_s_kubelet_mounts_an_image(minor: str, real_registry: RealRegistry) -> None:
    try:
        with (
            ControlPlane(minor) as cluster,
            RealNode(cluster, "node-a", real_registry) as node,
        ):
            program = real_registry.push_program("me/program:1")
            data = real_registry.push("me/data:1", files={"/data.txt": b"hello"})
            reads = container(
                "main", program.reference, ["data"], command=["/in-pod", "read", "/mounted/data/data.txt"]
            )
            once = pod("once", node.name, reads, volumes=[image_volume("data", data.reference)], restartPolicy="Never")
            namespace = cluster.create_namespace()
            cluster.create_pod(once, namespace)
            cluster.wait_for_pod_phase("once", namespace, "Succeeded", timeout_seconds=PULL_SECONDS)
            assert node.wait_ready()["status"]["nodeInfo"]["kubeletVersion"].startswith(f"v{minor}.")
    except HarnessUnavailableError as error:
        give_up(error)
