"""Start the webhooks under test on loopback, and read their processor time and memory."""

from __future__ import annotations

import json
import os
import ssl
import subprocess
import sys
import time
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.certificates import make_certificates
from benchmarks.figures import say
from benchmarks.policy import RELEASE
from benchmarks.programs import program
from benchmarks.root import ROOT
from roost_core.objects.fields import JSONObject
from tests.harness.ports import ReservedPort
from tests.harness.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.harness.processes import Process, RunFolder


class Server:
    """One webhook process that answers on `url`."""

    def __init__(self, name: str, process: Process, url: str, ready_seconds: float) -> None:
        self.name = name
        self.process = process
        self.url = url
        # From the start of the process to its first "ready".
        self.ready_seconds = ready_seconds

    def memory_mib(self) -> tuple[float, float]:
        """Resident memory now, and at its highest."""
        return memory_mib(self.process.pid)

    def cpu_seconds(self) -> float:
        """Processor time used so far, by all threads."""
        return cpu_seconds(self.process)


def memory_mib(pid: int) -> tuple[float, float]:
    """Resident memory of a process now, and at its highest."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    found = {
        line.partition(":")[0]: line.split()[1]
        for line in lines
        if line.startswith(("VmRSS", "VmHWM"))
    }
    return float(found["VmRSS"]) / 1024, float(found["VmHWM"]) / 1024


def cpu_seconds(process: Process) -> float:
    """Processor time that a process has used so far, user and system."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Servers:
    """Starts webhooks that follow a policy file and watch what a kubeconfig leads to."""

    def __init__(
        self,
        run: RunFolder,
        kubeconfig: Path,
        policies: Mapping[str, Path],
        namespaces: Mapping[str, str],
    ) -> None:
        """policies and namespaces: of `rules` (the Go webhook) and of `roost`."""
        self._run = run
        self._kubeconfig = kubeconfig
        self._policies = policies
        self._namespaces = namespaces
        self.certificates = make_certificates(run.path / "benchmark-certificates")

    def start_go(self) -> Server:
        """Start the Go webhook."""
        port = ReservedPort()
        arguments = [
            f"-cert={self.certificates.certificate}",
            f"-key={self.certificates.key}",
            f"-policy={self._policies['rules']}",
            f"-kubeconfig={self._kubeconfig}",
            f"-port={port.number}",
        ]
        number = port.release()
        ready = f"https://127.0.0.1:{number}/readyz"
        url = f"https://127.0.0.1:{number}/mutate"
        return self._start("rules", [str(program("webhook")), *arguments], {}, url, ready)

    def start_roost(self) -> Server:
        """Start `roost webhook` with given certificate files."""
        port = ReservedPort()
        ops = ReservedPort()
        arguments = ["-m", "roost", "webhook"]
        arguments += ["--settings", str(self._policies["roost"]), "--release", RELEASE]
        arguments += ["--namespace", self._namespaces["roost"]]
        arguments += ["--kubeconfig", str(self._kubeconfig), "--bind-address", "127.0.0.1"]
        arguments += ["--certificate-folder", str(self.certificates.folder)]
        arguments += ["--port", str(port.release()), "--metrics-port", str(ops.release())]
        url = f"https://127.0.0.1:{port.number}/mutate"
        ready = f"http://127.0.0.1:{ops.number}/readyz"
        return self._start("roost", [sys.executable, *arguments], python_environment(), url, ready)

    def _start(
        self, name: str, command: list[str], environment: dict[str, str], url: str, ready_url: str
    ) -> Server:
        started = time.monotonic()
        process = self._run.start(
            f"webhook-{name}", Path(command[0]), command[1:], environment=environment
        )
        tls = (
            ssl.create_default_context(cafile=str(self.certificates.ca))
            if ready_url.startswith("https")
            else None
        )

        def is_ready() -> bool:
            if not process.is_running:
                raise RuntimeError(process.epitaph("before it was ready"))
            with suppress(OSError), urllib.request.urlopen(ready_url, timeout=5, context=tls):
                return True
            return False

        wait_until(is_ready, 60, f"{name} to be ready", interval_seconds=0.01, explain=process.tail)
        return Server(name, process, url, time.monotonic() - started)


def python_environment() -> dict[str, str]:
    """What Roost's programs get beside our own environment: this checkout, compiled once (as pip
    does), buffers.
    """
    return {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "", "PYTHONUNBUFFERED": ""}


def run_json(command: Sequence[str]) -> JSONObject:
    """Run one of our load programs and read the JSON object it prints."""
    done = subprocess.run(list(command), capture_output=True, text=True, timeout=300, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{Path(command[0]).name} failed: {done.stderr.strip()[-2000:]}")
    result: JSONObject = json.loads(done.stdout)
    if result["failed"]:
        say(f"  {result['failed']} failed, the first with: {result['fault']}")
    return result
