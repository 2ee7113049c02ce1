"""The real nodes themselves: what tests of image handling take for granted."""

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.harness.api import Object
from tests.harness.binaries import MINORS, REAL_NODE
from tests.harness.cgroups import left_groups, make_group, remove_group
from tests.harness.controlplane import ControlPlane
from tests.harness.fixtures import or_give_up, require_binary
from tests.harness.processes import is_alive
from tests.harness.real_nodes import RealNode, require_real_nodes
from tests.harness.registry import RealRegistry
from tests.harness.scheduler import start_scheduler
from tests.harness.waiting import wait_until

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


def running_pods(cluster: ControlPlane, namespace: str, count: int) -> list[Object] | None:
    """All pods of a namespace, once so many run."""
    found = [p for p in cluster.api.list(f"/api/v1/namespaces/{namespace}/pods") if p["status"]["phase"] == "Running"]
    return found if len(found) == count else None


def test_two_real_nodes_run_pods_at_once_and_leave_nothing(
    control_plane: ControlPlane, namespace: str, real_registry: RealRegistry, request: pytest.FixtureRequest
) -> None:
    groups_before = left_groups(os.getpid())
    names = [f"{namespace}-a", f"{namespace}-b"]
    nodes = [RealNode(control_plane, name, real_registry, labels={"pool": namespace}) for name in names]
    for node in nodes:
        request.addfinalizer(node.stop)
        with or_give_up():
            node.start()
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


CHILD = """
    import time
    from tests.harness.controlplane import ControlPlane
    from tests.harness.real_nodes import RealNode
    from tests.harness.registry import RealRegistry
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
    with or_give_up():
        require_real_nodes()
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
@pytest.mark.parametrize("minor", MINORS[2:])
def test_kubelets_from_1_35_on_mount_an_image(minor: str, real_registry: RealRegistry) -> None:
    with or_give_up(), ControlPlane(minor) as cluster, RealNode(cluster, "node-a", real_registry) as node:
        program = real_registry.push_program("me/program:1")
        data = real_registry.push("me/data:1", files={"/data.txt": b"hello"})
        reads = container("main", program.reference, ["data"], command=["/in-pod", "read", "/mounted/data/data.txt"])
        once = pod("once", node.name, reads, volumes=[image_volume("data", data.reference)], restartPolicy="Never")
        namespace = cluster.create_namespace()
        cluster.create_pod(once, namespace)
        cluster.wait_for_pod_phase("once", namespace, "Succeeded", timeout_seconds=PULL_SECONDS)
        assert node.wait_ready()["status"]["nodeInfo"]["kubeletVersion"].startswith(f"v{minor}.")


@pytest.mark.minors
@pytest.mark.parametrize("minor", MINORS[:2])
def test_an_older_kubelet_beside_the_newest_api_server_mounts_no_image_and_runs_one_without_a_program_of_its_own(
    minor: str, real_registry: RealRegistry
) -> None:
    with or_give_up(), ControlPlane() as cluster, RealNode(cluster, "node-a", real_registry, minor=minor) as node:
        program = real_registry.push_program("me/program:1")
        data = real_registry.push("me/data:1", files={"/data.txt": b"hello"})
        namespace = cluster.create_namespace()
        mounts = container("main", program.reference, ["data"])
        cluster.create_pod(pod("mounts", node.name, mounts, volumes=[image_volume("data", data.reference)]), namespace)
        # As the puller does with prePuller.method: noop.
        copies = container("copy", program.reference, ["tools"], command=["/in-pod", "copy", "/mounted/tools/in-pod"])
        reads = container("main", data.reference, ["tools"], command=["/mounted/tools/in-pod", "read", "/data.txt"])
        volumes = [{"name": "tools", "emptyDir": {}}]
        runs = pod("runs", node.name, reads, volumes=volumes, initContainers=[copies], restartPolicy="Never")
        cluster.create_pod(runs, namespace)
        cluster.wait_for_pod_phase("runs", namespace, "Succeeded", timeout_seconds=PULL_SECONDS)
        events = f"/api/v1/namespaces/{namespace}/events"

        def said() -> str:
            found = cluster.api.list(events, fieldSelector="involvedObject.name=mounts,reason=FailedMount")
            return found[0]["message"] if found else ""

        assert "no volume plugin matched" in wait_until(said, PULL_SECONDS, "the kubelet to give up")
        assert cluster.pod("mounts", namespace)["status"]["phase"] == "Pending"
