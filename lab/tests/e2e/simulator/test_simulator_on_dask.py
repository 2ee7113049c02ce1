"""A sweep on a real Dask scheduler and real workers on the loopback, one of them killed midway."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.tests.simulated import job, slow_start_work, work
from roost_lab.simulator.sweep.dask_cluster import DaskCluster
from roost_lab.simulator.sweep.run import LocalProcesses, ReplayEnd, SweepError, run_sweep
from tests.harness.ports import ReservedPort
from tools.root import ROOT

distributed = pytest.importorskip("distributed", reason="no distributed: make setup")


class Cluster:
    """A scheduler and its workers, each a process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.address = f"tcp://127.0.0.1:{ReservedPort().release()}"
        self.processes: list[subprocess.Popen[bytes]] = []
        port = self.address.rpartition(":")[2]
        self._start(
            "scheduler", "--host", "127.0.0.1", "--port", port, "--no-dashboard", "--no-show"
        )

    def add_worker(self) -> subprocess.Popen[bytes]:
        return self._start(
            "worker", self.address, "--nthreads", "1", "--no-nanny", "--no-dashboard"
        )

    def _start(self, kind: str, *arguments: str) -> subprocess.Popen[bytes]:
        path = f"{ROOT}:{ROOT / 'lab'}"
        environment = {
            **os.environ,
            "PYTHONPATH": path,
            "DASK_DISTRIBUTED__WORKER__MEMORY__TERMINATE": "False",
        }
        log = (self.folder / f"{kind}-{len(self.processes)}.log").open("wb")
        with log:
            command = [sys.executable, "-m", f"distributed.cli.dask_{kind}", *arguments]
            process = subprocess.Popen(
                command, cwd=self.folder, env=environment, stdout=log, stderr=log
            )
        self.processes.append(process)
        return process

    def wait_for(self, workers: int) -> None:
        with distributed.Client(self.address, timeout=60, set_as_default=False) as client:
            if workers:
                client.wait_for_workers(workers, timeout=60)

    def close(self) -> None:
        for process in reversed(self.processes):
            process.kill()
        for process in self.processes:
            process.wait()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path)
    try:
        yield made
    finally:
        made.close()


def test_a_worker_killed_midway_loses_nothing(cluster: Cluster) -> None:
    victim = cluster.add_worker()
    cluster.add_worker()
    cluster.wait_for(2)
    jobs = [job(name, seed) for seed in range(1, 7) for name in ("z2jh", "warm-alone")]
    seen: list[ReplayEnd] = []

    def report(event: ReplayEnd) -> None:
        seen.append(event)
        if len(seen) == 3:
            # Both are at work: each replay takes a while.
            os.kill(victim.pid, signal.SIGKILL)

    found = run_sweep(jobs, DaskCluster(cluster.address), work=slow_start_work, report=report)
    assert (victim.wait(10), found) == (
        -signal.SIGKILL,
        run_sweep(jobs, LocalProcesses(2), work=work),
    )
    assert len(seen) == len(jobs)


def test_nothing_stays_on_the_cluster_after_an_interrupted_sweep(cluster: Cluster) -> None:
    cluster.add_worker()
    cluster.wait_for(1)

    def stop(_event: ReplayEnd) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_sweep(
            [job(seed=seed) for seed in range(1, 20)],
            DaskCluster(cluster.address),
            work=work,
            report=stop,
        )
    until = time.monotonic() + 30
    with distributed.Client(cluster.address, timeout=60, set_as_default=False) as client:
        while (
            left := client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks))
        ) and (time.monotonic() < until):
            time.sleep(0.1)
    assert left == 0


def test_a_cluster_without_workers_and_an_address_without_scheduler_are_clear_errors(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.wait_for(0)
    with pytest.raises(SweepError, match="the scheduler has no workers"):
        run_sweep([job()], DaskCluster(cluster.address), work=work)
    monkeypatch.setattr("roost_lab.simulator.sweep.dask_cluster.CONNECT_SECONDS", 1)
    with pytest.raises(SweepError, match="no scheduler answers"):
        run_sweep([job()], DaskCluster(f"tcp://127.0.0.1:{ReservedPort().release()}"), work=work)
