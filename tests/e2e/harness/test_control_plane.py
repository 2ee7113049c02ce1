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

from tests.harness import (
    MINORS,
    NEWEST_MINOR,
    ApiError,
    ControlPlane,
    FakeNodes,
    HarnessUnavailableError,
    ReservedPort,
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


def test_a_service_account_may_only_do_what_its_role_says(control_plane: ControlPlane, namespace: str) -> None:
    api = control_plane.api_as(control_plane.service_account_token(namespace, "default"))
    with pytest.raises(ApiError) as refused:
        api.list("/api/v1/nodes")
    assert refused.value.status == 403


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
