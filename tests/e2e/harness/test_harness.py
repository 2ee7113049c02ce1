"""The harness itself: what other tests take for granted of control planes and real nodes."""

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.harness.binaries import MINORS, NEWEST_MINOR, REAL_NODE
from tests.harness.cgroups import left_groups, make_group, remove_group
from tests.harness.controlplane import ControlPlane
from tests.harness.fixtures import or_give_up, require_binary
from tests.harness.processes import RunFolder, is_alive
from tests.harness.real_nodes import RealNode, require_real_nodes
from tests.harness.registry import RealRegistry
from tests.harness.waiting import wait_until

pytestmark = pytest.mark.e2e
REPOSITORY = Path(__file__).resolve().parents[3]
PULL_SECONDS = 90.0
CLUSTER = ("etcd", "kube-apiserver", "kube-controller-manager")
WITH_SCHEDULER = """
    import signal, sys, threading, time
    signal.signal(signal.SIGINT, signal.default_int_handler)    # ignored by the children of a shell's background job
    from tests.harness.controlplane import ControlPlane
    from tests.harness.scheduler import start_scheduler
    plane = ControlPlane()
    starter = threading.Thread(target=plane.start)    # its end must not take the programs along
    starter.start()
    starter.join()
    scheduler = start_scheduler(plane)
    scheduler.process.freeze()
    processes = (plane.etcd, plane.apiserver, plane.controller_manager, scheduler.process)
    print(plane.folder, *(process.pid for process in processes), flush=True)
    time.sleep(600)
"""
WITH_NODE = """
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
    print(plane.folder, *node.pids(), flush=True)
    time.sleep(600)
"""


@contextlib.contextmanager
def child(program: str, *needed: str) -> Iterator[tuple[subprocess.Popen[str], Path, list[int]]]:
    """A test run of its own: its process, its folder and the processes that it started."""
    for name in (*CLUSTER, *needed):
        require_binary(name)
    command = [sys.executable, "-c", textwrap.dedent(program)]
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True) as found:
        try:
            assert found.stdout is not None
            folder, *pids = found.stdout.readline().split()
            yield found, Path(folder), [int(pid) for pid in pids]
        finally:
            found.kill()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process that its parent died")
def test_programs_die_with_a_parent_that_was_killed_and_the_next_run_sweeps_its_folder() -> None:
    with child(WITH_SCHEDULER, "kube-scheduler") as (run, folder, pids):
        assert [is_alive(pid) for pid in pids] == [True] * 4
        os.kill(run.pid, signal.SIGKILL)
        run.wait()
        wait_until(lambda: not any(is_alive(pid) for pid in pids), 5, "the programs to be gone")
    assert folder.exists()
    RunFolder().close()
    assert not folder.exists()


def test_ctrl_c_stops_everything_and_removes_the_folder() -> None:
    with child(WITH_SCHEDULER, "kube-scheduler") as (run, folder, pids):
        run.send_signal(signal.SIGINT)
        run.wait(20)
        assert not any(is_alive(pid) for pid in pids)
    assert not folder.exists()


def test_nodes_die_with_a_test_run_that_was_killed_pods_and_shims_included() -> None:
    with or_give_up():
        require_real_nodes()
    with child(WITH_NODE, *REAL_NODE) as (run, _, pids):
        # init, containerd, kubelet; the pod's shim, sandbox and container
        assert [is_alive(pid) for pid in pids] == [True] * 6
        os.kill(run.pid, signal.SIGKILL)
        run.wait()
        wait_until(lambda: not any(is_alive(pid) for pid in pids), 20, "the node's processes to be gone")
        assert left_groups(run.pid)
    remove_group(make_group())  # whoever makes a group removes those of the dead
    assert not left_groups(run.pid)


def test_logs_are_kept_when_a_program_does_not_start_and_the_error_ends_with_its_words(
    capfd: pytest.CaptureFixture[str],
) -> None:
    require_binary("kube-apiserver")
    with pytest.raises(RuntimeError, match=r"(?s)kube-apiserver ended with status 1.*unknown flag: --no-such-flag"):
        ControlPlane(apiserver_flags=["--no-such-flag"]).start()
    kept = Path(capfd.readouterr().err.strip().rpartition(" ")[2])
    assert "no-such-flag" in (kept / "kube-apiserver.log").read_text()


def container(name: str, image: str, mount: str, *command: str) -> dict[str, Any]:
    mounts = [{"name": mount, "mountPath": f"/mounted/{mount}"}]
    return {"name": name, "image": image, "volumeMounts": mounts, **({"command": [*command]} if command else {})}


def create(cluster: ControlPlane, namespace: str, name: str, *containers: dict[str, Any], **spec: object) -> None:
    body = {"nodeName": "node-a", "containers": list(containers), **spec}
    cluster.create_pod({"metadata": {"name": name}, "spec": body}, namespace)


@pytest.mark.parametrize(
    "minor", [pytest.param(one, marks=[] if one == NEWEST_MINOR else [pytest.mark.minors]) for one in MINORS[2:]]
)
def test_kubelets_from_1_35_on_mount_an_image_and_leave_nothing(minor: str, real_registry: RealRegistry) -> None:
    groups_before = left_groups(os.getpid())
    with or_give_up(), ControlPlane(minor) as cluster:
        with RealNode(cluster, "node-a", real_registry, labels={"pool": "user"}) as node:
            program = real_registry.push_program("me/program:1")
            data = real_registry.push("me/data:1", files={"/data.txt": b"hello"})  # nothing in it to run
            reads = container("main", program.reference, "data", "/in-pod", "read", "/mounted/data/data.txt")
            volumes = [{"name": "data", "image": {"reference": data.reference}}]
            namespace = cluster.create_namespace()
            create(cluster, namespace, "once", reads, volumes=volumes, restartPolicy="Never")
            cluster.wait_for_pod_phase("once", namespace, "Succeeded", timeout_seconds=PULL_SECONDS)
            found = node.wait_ready()
            assert found["status"]["nodeInfo"]["kubeletVersion"].startswith(f"v{minor}.")
            assert found["metadata"]["labels"]["pool"] == "user"
            assert data.reference in node.images()
            pids, folder = node.pids(), str(node.folder)
        assert not [pid for pid in pids if is_alive(pid)]
        assert folder not in Path("/proc/mounts").read_text()
        assert left_groups(os.getpid()) <= groups_before
        assert node.node() is None


@pytest.mark.minors
@pytest.mark.parametrize("minor", MINORS[:2])
def test_an_older_kubelet_beside_the_newest_api_server_mounts_no_image_and_runs_one_without_a_program_of_its_own(
    minor: str, real_registry: RealRegistry
) -> None:
    with or_give_up(), ControlPlane() as cluster, RealNode(cluster, "node-a", real_registry, minor=minor):
        program = real_registry.push_program("me/program:1")
        data = real_registry.push("me/data:1", files={"/data.txt": b"hello"})
        namespace = cluster.create_namespace()
        images = [{"name": "data", "image": {"reference": data.reference}}]
        create(cluster, namespace, "mounts", container("main", program.reference, "data"), volumes=images)
        # As the puller does with prePuller.method: noop.
        copies = container("copy", program.reference, "tools", "/in-pod", "copy", "/mounted/tools/in-pod")
        reads = container("main", data.reference, "tools", "/mounted/tools/in-pod", "read", "/data.txt")
        volumes = [{"name": "tools", "emptyDir": {}}]
        create(cluster, namespace, "runs", reads, volumes=volumes, initContainers=[copies], restartPolicy="Never")
        cluster.wait_for_pod_phase("runs", namespace, "Succeeded", timeout_seconds=PULL_SECONDS)
        events = f"/api/v1/namespaces/{namespace}/events"

        def said() -> str:
            found = cluster.api.list(events, fieldSelector="involvedObject.name=mounts,reason=FailedMount")
            return found[0]["message"] if found else ""

        assert "no volume plugin matched" in wait_until(said, PULL_SECONDS, "the kubelet to give up")
        assert cluster.pod("mounts", namespace)["status"]["phase"] == "Pending"
