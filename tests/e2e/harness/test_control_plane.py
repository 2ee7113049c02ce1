"""The test control plane itself: what other tests take for granted."""

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.controlplane import ControlPlane
from tests.harness.fixtures import require_binary
from tests.harness.processes import RunFolder, is_alive
from tests.harness.waiting import wait_until

pytestmark = pytest.mark.e2e
REPOSITORY = Path(__file__).resolve().parents[3]


CHILD = """
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
