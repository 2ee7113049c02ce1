"""The test control plane itself: what other tests take for granted."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from kubernetes.client import CoreV1Api

from tests.harness import (
    MINORS,
    NEWEST_MINOR,
    ApiError,
    ControlPlane,
    FakeNodes,
    HarnessUnavailableError,
    PodKeeper,
    ProgramExitedError,
    ReservedPort,
    WaitError,
    ensure_binary,
    scheduler_config,
    start_scheduler,
    wait_until,
)
from tests.harness.fixtures import give_up, require_binary
from tests.harness.processes import RunFolder, is_alive

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.e2e
REPOSITORY = Path(__file__).resolve().parents[3]


def pod(name: str, **spec: object) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "main", "image": "example/image:1"}], **spec}}


def on(node: str) -> dict[str, Any]:
    """A spec that keeps a pod away from the nodes of other tests on the same cluster."""
    return {"nodeSelector": {"kubernetes.io/hostname": node}}


def test_a_pod_bound_by_the_real_scheduler_runs_and_goes_when_deleted(
    control_plane: ControlPlane, namespace: str, fake_nodes: FakeNodes, pod_keeper: PodKeeper
) -> None:
    node = f"{namespace}-a"
    fake_nodes.create(node, images={"example/image:1": 10**9})
    with start_scheduler(control_plane):
        control_plane.create_pod(pod("user", **on(node)), namespace)
        assert control_plane.wait_for_pod_node("user", namespace) == node
        running = control_plane.wait_for_pod_phase("user", namespace)
    assert running["status"]["containerStatuses"][0]["ready"] is True
    assert running["status"]["startTime"]
    path = f"/api/v1/namespaces/{namespace}/pods/user"
    control_plane.api.delete(path)
    wait_until(lambda: control_plane.api.find(path) is None, 10, "the pod to be gone")


def test_controllers_turn_a_statefulset_into_running_pods(
    control_plane: ControlPlane, namespace: str, fake_nodes: FakeNodes, pod_keeper: PodKeeper
) -> None:
    node = f"{namespace}-a"
    fake_nodes.create(node)
    labels = {"app": "placeholder"}
    template = {"metadata": {"labels": labels}, "spec": pod("unused", **on(node))["spec"]}
    spec = {"replicas": 3, "serviceName": "s", "selector": {"matchLabels": labels}, "template": template}
    manifest = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "s"}, "spec": spec}
    with start_scheduler(control_plane):
        control_plane.api.create(manifest, namespace)
        control_plane.kubectl("rollout", "status", "--namespace", namespace, "statefulset/s", "--timeout=60s")


def test_a_scheduler_runs_as_a_service_account_and_hands_its_lease_on(
    control_plane: ControlPlane, namespace: str
) -> None:
    api = control_plane.api
    api.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "scheduler"}}, namespace)
    subject = {"kind": "ServiceAccount", "name": "scheduler", "namespace": namespace}
    binding = {"apiVersion": "rbac.authorization.k8s.io/v1", "subjects": [subject]}
    cluster_wide = [f"{namespace}-{role}" for role in ("kube", "volume")]
    for name, role in zip(cluster_wide, ("system:kube-scheduler", "system:volume-scheduler"), strict=True):
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
        api.create({**binding, "kind": "ClusterRoleBinding", "metadata": {"name": name}, "roleRef": reference})
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "lease"}
    rule = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "create", "update"]}
    meta = {"metadata": {"name": "lease"}}
    api.create({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", **meta, "rules": [rule]}, namespace)
    api.create({**binding, "kind": "RoleBinding", **meta, "roleRef": reference}, namespace)
    try:
        kubeconfig = control_plane.service_account_kubeconfig(namespace, "scheduler")
        config = {
            **scheduler_config({"schedulerName": namespace}),
            "leaderElection": {
                "leaderElect": True,
                "resourceNamespace": namespace,
                "resourceName": "scheduler",
                "leaseDuration": "2s",
                "renewDeadline": "1500ms",
                "retryPeriod": "500ms",
            },
        }
        with start_scheduler(control_plane, config, kubeconfig=kubeconfig) as first:
            first.wait_leading()
            with start_scheduler(control_plane, config, kubeconfig=kubeconfig) as second:
                second.wait_serving()
                assert not second.log_lines("Successfully acquired lease")
                first.kill()
                second.wait_leading()
                assert "scheduler_" in second.metrics()
            assert not [line for one in (first, second) for line in one.log_lines("forbidden")]
    finally:
        for name in cluster_wide:
            api.delete(f"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/{name}")


def test_a_service_account_may_only_do_what_its_role_says(control_plane: ControlPlane, namespace: str) -> None:
    api = control_plane.api_as(control_plane.service_account_token(namespace, "default"))
    with pytest.raises(ApiError) as refused:
        api.list("/api/v1/nodes")
    assert refused.value.status == 403


def test_the_official_client_reaches_the_cluster(control_plane: ControlPlane, namespace: str) -> None:
    found = CoreV1Api(control_plane.client()).read_namespace(namespace)
    assert found.metadata is not None
    assert found.metadata.name == namespace


def test_a_node_holds_what_the_test_says(control_plane: ControlPlane, namespace: str, fake_nodes: FakeNodes) -> None:
    name = f"{namespace}-a"
    node = fake_nodes.create(name, cpu="2", labels={"pool": "user"}, taints=["hub=x:NoSchedule"], images={"i:1": 5})
    assert node["spec"]["taints"] == [{"key": "hub", "value": "x", "effect": "NoSchedule"}]
    assert node["status"]["allocatable"]["cpu"] == "2"
    assert fake_nodes.set_images(name, {"i:2": 7})["status"]["images"] == [{"names": ["i:2"], "sizeBytes": 7}]
    assert "pool" not in fake_nodes.set_labels(name, {"pool": None, "other": "1"})["metadata"]["labels"]
    assert fake_nodes.set_ready(name, ready=False)["status"]["conditions"][0]["status"] == "False"
    fake_nodes.delete(name)
    assert control_plane.api.find(f"/api/v1/nodes/{name}") is None


def test_a_held_pod_starts_when_it_is_released_and_ends_when_told(
    control_plane: ControlPlane, namespace: str, fake_nodes: FakeNodes
) -> None:
    fake_nodes.create(f"{namespace}-a")
    with PodKeeper(control_plane.api, hold=lambda pod: pod["metadata"]["name"] == "slow") as keeper:
        for name in ("slow", "fast"):
            control_plane.create_pod(pod(name, nodeName=f"{namespace}-a"), namespace)
        control_plane.wait_for_pod_phase("fast", namespace)
        assert control_plane.pod("slow", namespace)["status"]["phase"] == "Pending"
        keeper.release()
        control_plane.wait_for_pod_phase("slow", namespace)
        keeper.finish(namespace, "slow")
        control_plane.wait_for_pod_phase("slow", namespace, "Succeeded")


def test_two_control_planes_run_at_once_and_leave_nothing() -> None:
    with contextlib.ExitStack() as stack:
        planes = [stack.enter_context(start_plane(audit_level="Metadata")) for _ in range(2)]
        planes[0].create_namespace("only-here")
        assert planes[1].api.find("/api/v1/namespaces/only-here") is None
        assert any(event["verb"] == "create" for event in planes[0].audit_events())
        pids = [process.pid for plane in planes for process in (plane.etcd, plane.apiserver)]
        folders = [plane.folder for plane in planes]
        assert all(is_alive(pid) for pid in pids)
    assert not any(is_alive(pid) for pid in pids)
    assert not any(folder.exists() for folder in folders)


@pytest.mark.minors
@pytest.mark.parametrize("minor", MINORS)
def test_every_supported_minor_binds_a_pod(minor: str) -> None:
    with (
        start_plane(minor=minor) as plane,
        FakeNodes(plane.api) as nodes,
        start_scheduler(plane),
    ):
        assert plane.api.get("/version")["gitVersion"].startswith(f"v{minor}.")
        nodes.create("a")
        plane.create_pod(pod("user"), plane.create_namespace("hub"))
        assert plane.wait_for_pod_node("user", "hub") == "a"


@contextlib.contextmanager
def start_plane(minor: str = NEWEST_MINOR, audit_level: str | None = None) -> Iterator[ControlPlane]:
    """A small cluster of the test's own."""
    try:
        plane = ControlPlane(minor, controllers=(), audit_level=audit_level).start()
    except HarnessUnavailableError as error:
        give_up(error)
    try:
        yield plane
    finally:
        plane.stop()


CHILD = """
    import signal, sys, threading, time
    signal.signal(signal.SIGINT, signal.default_int_handler)    # ignored by the children of a shell's background job
    from tests.harness import ControlPlane, start_scheduler
    plane = ControlPlane()
    starter = threading.Thread(target=plane.start)    # its end must not take the programs along
    starter.start()
    starter.join()
    scheduler = start_scheduler(plane)
    scheduler.freeze()
    processes = (plane.etcd, plane.apiserver, plane.controller_manager, scheduler.process)
    print(plane.folder, *(process.pid for process in processes), flush=True)
    time.sleep(600)
"""


@contextlib.contextmanager
def child_with_cluster() -> Iterator[tuple[subprocess.Popen[str], Path, list[int]]]:
    for name in ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"):
        require_binary(name)
    command = [sys.executable, "-c", textwrap.dedent(CHILD)]
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None
            folder, *pids = child.stdout.readline().split()
            yield child, Path(folder), [int(pid) for pid in pids]
        finally:
            child.kill()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process that its parent died")
def test_programs_die_with_a_parent_that_was_killed_and_the_next_run_sweeps_its_folder() -> None:
    with child_with_cluster() as (child, folder, pids):
        assert len(pids) == 4
        assert all(is_alive(pid) for pid in pids)
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        wait_until(lambda: not any(is_alive(pid) for pid in pids), 5, "the programs to be gone")
    assert folder.exists()
    RunFolder().close()
    assert not folder.exists()


def test_ctrl_c_stops_everything_and_removes_the_folder() -> None:
    with child_with_cluster() as (child, folder, pids):
        child.send_signal(signal.SIGINT)
        child.wait(20)
        assert not any(is_alive(pid) for pid in pids)
    assert not folder.exists()


def test_logs_are_kept_when_a_program_does_not_start_and_the_error_ends_with_its_words(
    capfd: pytest.CaptureFixture[str],
) -> None:
    require_binary("kube-apiserver")
    with pytest.raises(RuntimeError, match=r"(?s)kube-apiserver ended with status 1.*unknown flag: --no-such-flag"):
        ControlPlane(apiserver_flags=["--no-such-flag"]).start()
    kept = Path(capfd.readouterr().err.strip().rpartition(" ")[2])
    assert "no-such-flag" in (kept / "kube-apiserver.log").read_text()


def test_a_program_that_can_not_run_is_refused_with_the_reason(tmp_path: Path) -> None:
    run = RunFolder()
    try:
        with pytest.raises(ProgramExitedError, match=r"nothing did not start: .*No such file"):
            run.start("nothing", tmp_path / "nothing")
    finally:
        run.close()


def test_a_wait_in_vain_says_what_it_saw() -> None:
    with pytest.raises(WaitError, match=r"waited 0\.1 s for rain; found sunshine"):
        wait_until(lambda: False, 0.1, "rain", explain=lambda: "sunshine")


def test_reserved_ports_differ_between_threads() -> None:
    with contextlib.ExitStack() as stack:
        ports: list[int] = []

        def reserve() -> None:
            ports.extend(stack.enter_context(ReservedPort()).number for _ in range(20))

        threads = [threading.Thread(target=reserve) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(set(ports)) == 80


def test_without_go_the_reason_names_the_fix(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    with pytest.raises(HarnessUnavailableError, match=r"no `go` command on PATH.* Install Go 1\.21 or newer"):
        ensure_binary("etcd")


def test_without_apt_the_reason_names_debians_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(HarnessUnavailableError, match=r"no promtool on PATH.* Debian's package prometheus"):
        ensure_binary("promtool")


def test_kubebuilder_assets_are_used_when_the_minor_fits(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    server = tmp_path / "kube-apiserver"
    server.write_text("#!/bin/sh\necho Kubernetes v1.35.9\n")
    server.chmod(0o700)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    assert ensure_binary("kube-apiserver", "1.35") == server
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "/bin")
    with pytest.raises(HarnessUnavailableError):
        ensure_binary("kube-apiserver", "1.36")
