"""Run real kube-schedulers against a control plane of the harness.

Owns the little that must differ from a rendered configuration for a process outside the cluster:
the way to the API server, and a port of its own.
"""

import contextlib
import http.client
import itertools
import os
import shutil
import ssl
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import yaml

from tests.harness.binaries import HarnessUnavailableError, ensure_binary
from tests.harness.controlplane import ControlPlane
from tests.harness.ports import LOOPBACK, ReservedPort
from tests.harness.processes import Process

_numbers = itertools.count(1)


class Scheduler:
    """One kube-scheduler process; its `process` has `log()`, `wait_for_log`, `freeze`, `resume`,
    `kill` and `stop`.

    Use it as a context manager, or call `stop`. It ends with its control plane at the latest.
    """

    def __init__(self, process: Process, port: ReservedPort, config_path: Path) -> None:
        self.process = process
        self.config_path = config_path
        self._port = port

    @property
    def log_path(self) -> Path:
        return self.process.log_path

    def log(self) -> str:
        return self.process.log()

    def log_lines(self, text: str) -> list[str]:
        return self.process.log_lines(text)

    def wait_for_log(self, text: str, timeout_seconds: float = 30.0) -> str:
        return self.process.wait_for_log(text, timeout_seconds)

    def wait_serving(self) -> None:
        """Wait until it has accepted its configuration and serves; it may still be waiting for the
        Lease.
        """
        self.wait_for_log("Serving securely")

    def wait_leading(self, timeout_seconds: float = 60.0) -> None:
        # client-go's words; 1.33 writes them small
        self.wait_for_log("uccessfully acquired lease", timeout_seconds)

    def metrics(self) -> str:
        tls = ssl._create_unverified_context()  # noqa: S323 (its certificate is its own, on loopback)
        with contextlib.closing(
            http.client.HTTPSConnection(LOOPBACK, self._port.number, timeout=10, context=tls)
        ) as connection:
            connection.request("GET", "/metrics")
            return connection.getresponse().read().decode()

    def kill(self) -> None:
        """SIGKILL: its Lease stays until it runs out."""
        self.process.kill()
        self._port.release()

    def stop(self, grace_seconds: float = 5.0) -> None:
        """SIGTERM: it gives its Lease back."""
        self.process.stop(grace_seconds)
        self._port.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()


def start_scheduler(
    cluster: ControlPlane,
    config: Path | Mapping[str, Any] | None = None,
    *,
    kubeconfig: Path | None = None,
    flags: Sequence[str] = (),
    minor: str | None = None,
    leader_elect: bool | None = None,
    host: str = "",
) -> Scheduler:
    """Start a kube-scheduler.

    config: a KubeSchedulerConfiguration, as a file or as data; None: the default one, without
    leader election. Only `clientConnection.kubeconfig` is set in it, since a program outside the
    cluster finds no mounted token. kubeconfig: as whom it runs; admin by default. leader_elect:
    None leaves the configuration's own choice, which is on unless it says otherwise. flags: added
    last, so they win. minor: another than the cluster's. host: the name that it takes its host to
    have, as in a pod with this `hostname`; needs root.
    """
    program = ensure_binary("kube-scheduler", minor or cluster.minor)
    number = next(_numbers)
    data = _read(config)
    data["clientConnection"] = {
        **data.get("clientConnection", {}),
        "kubeconfig": str(kubeconfig or cluster.kubeconfig),
    }
    if leader_elect is not None:
        data["leaderElection"] = {**data.get("leaderElection", {}), "leaderElect": leader_elect}
    config_path = cluster.folder / f"scheduler-{number}.yaml"
    config_path.write_text(yaml.safe_dump(data))
    port = ReservedPort()
    arguments = [
        f"--config={config_path}",
        f"--bind-address={LOOPBACK}",
        f"--secure-port={port.number}",
        "--permit-port-sharing=true",  # beside our reservation
        "--authentication-skip-lookup=true",
        "--authorization-always-allow-paths=/healthz,/readyz,/livez,/metrics",
        f"--cert-dir={cluster.folder / f'scheduler-{number}-certificates'}",
        *flags,
    ]
    if host:
        arguments = [
            "--uts",
            "sh",
            "-c",
            'hostname "$0" && exec "$@"',
            host,
            str(program),
            *arguments,
        ]
        program = _unshare()
    process = cluster.run.start(f"kube-scheduler-{number}", program, arguments)
    cluster.on_stop(port.release)
    return Scheduler(process, port, config_path)


def _unshare() -> Path:
    program = shutil.which("unshare")
    if program is None or os.geteuid() != 0:
        raise HarnessUnavailableError(
            "a host's name of its own needs root and the command unshare (util-linux)"
        )
    return Path(program)


def scheduler_config(*profiles: Mapping[str, Any], leader_elect: bool = False) -> dict[str, Any]:
    """A KubeSchedulerConfiguration of these profiles; none: one profile with all defaults."""
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": leader_elect},
        **({"profiles": [dict(profile) for profile in profiles]} if profiles else {}),
    }


def _read(config: Path | Mapping[str, Any] | None) -> dict[str, Any]:
    if config is None:
        return scheduler_config()
    return dict(yaml.safe_load(config.read_text()) if isinstance(config, Path) else config)
