"""What a CPU request that is raised for a start gives JupyterLab next to busy pods.

`python -m benchmarks.startup_boost`: a real kubelet runs the pods on one core. Four busy pods
or four other starts run beside. Each pod requests 0.05 CPU, unless its arm says otherwise. The
raise is Kubernetes' in-place resize: made once the pod is there, given back once the server
answers. Needs root, cgroup v1, the programs of the tests, and the internet once.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from benchmarks.figures import machine, say, spread, table
from benchmarks.lab_start import (
    LIMIT_SECONDS,
    MOST,
    Group,
    Hub,
    ensure_lab,
    server_command,
    server_environment,
    wait_for_answer,
)
from tests.harness.api import STRATEGIC
from tests.harness.cgroups import hierarchies, left_groups
from tests.harness.controlplane import ControlPlane
from tests.harness.images import make_image
from tests.harness.ports import LOOPBACK, ReservedPort
from tests.harness.real_nodes import RealNode
from tests.harness.registry import RealRegistry
from tests.harness.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Sequence

NODE: Final = "user-a"
NAMESPACE: Final = "default"
PODS: Final = f"/api/v1/namespaces/{NAMESPACE}/pods"
SMALL: Final = "50m"
# Ten times as much.
RAISED: Final = "500m"
HOME: Final = Path("/home/user")
BUSY: Final = (f"{sys.base_prefix}/bin/python3", "-c", "while True: pass")
RUN_SECONDS: Final = 60.0


class Arm(NamedTuple):
    """A start that is measured, and what runs next to it."""

    name: str
    busy: int = 0
    at_once: int = 1
    request: str = SMALL
    is_raised: bool = False


ARMS: Final = (
    Arm("alone"),
    Arm("4 busy pods", busy=4),
    Arm("4 busy pods, raised for the start", busy=4, is_raised=True),
    Arm("4 busy pods, as much at all times", busy=4, request=RAISED),
    Arm("5 starts at once", at_once=5),
    Arm("5 starts at once, all raised", at_once=5, is_raised=True),
)


class Measured(NamedTuple):
    """Seconds from the pod's creation to HTTP 200, of each start; and from a resize's request until
    the kubelet had done it, of each raise and each return.
    """

    starts: list[float]
    raises: list[float]
    returns: list[float]


class Node:
    """A kubelet whose pods share one core."""

    def __init__(self, cluster: ControlPlane, image: str, hub: str) -> None:
        self._cluster = cluster
        self._image = image
        self._hub = hub
        self._number = 0

    def measure(self, arm: Arm) -> Measured:
        """Play an arm once. Raises RuntimeError if a server doesn't answer, WaitError if a resize
        isn't done.
        """
        for _ in range(arm.busy):
            self._create("busy", BUSY, {}, SMALL)
        self._wait_running(arm.busy)
        found = Measured([], [], [])
        with ThreadPoolExecutor(arm.at_once) as pool:
            starts = [pool.submit(self._start, arm, found) for _ in range(arm.at_once)]
        for start in starts:
            start.result()
        self._remove_pods()
        return found

    def _start(self, arm: Arm, found: Measured) -> None:
        lab = ensure_lab()
        port = ReservedPort().release()
        url = f"http://{LOOPBACK}:{port}/user/u/"
        environment = server_environment(lab, self._hub, HOME, url)
        began = time.monotonic()
        pod = self._create("user", server_command(lab), environment, arm.request)
        if arm.is_raised:
            found.raises.append(self._resize(pod, RAISED))
        seconds = wait_for_answer(f"{url}api", began)
        if seconds >= LIMIT_SECONDS:
            raise RuntimeError(f"{arm.name}: {pod} didn't answer within {LIMIT_SECONDS:.0f} s")
        found.starts.append(seconds)
        if arm.is_raised:
            found.returns.append(self._resize(pod, SMALL))

    def _resize(self, pod: str, cpu: str) -> float:
        """Seconds until the kubelet had given a pod another CPU request."""
        path = f"{PODS}/{pod}"
        container = {"name": "main", "resources": {"requests": {"cpu": cpu}}}
        change = {"spec": {"containers": [container]}}
        began = time.monotonic()
        self._cluster.api.patch(f"{path}/resize", change, content_type=STRATEGIC)

        def is_done() -> bool:
            statuses = self._cluster.api.get(path)["status"].get("containerStatuses", [{}])
            return bool(statuses[0].get("resources", {}).get("requests", {}).get("cpu") == cpu)

        wait_until(is_done, RUN_SECONDS, f"the kubelet to give {pod} {cpu}")
        return time.monotonic() - began

    def _create(
        self, kind: str, command: Sequence[str], environment: dict[str, str], cpu: str
    ) -> str:
        self._number += 1
        name = f"{kind}-{self._number}"
        folders = program_folders()
        container: dict[str, Any] = {
            "name": "main",
            "image": self._image,
            "command": list(command),
            "env": [{"name": key, "value": value} for key, value in environment.items()],
            "resources": {"requests": {"cpu": cpu}},
            "volumeMounts": [
                *(
                    {"name": f"folder-{number}", "mountPath": folder, "readOnly": True}
                    for number, folder in enumerate(folders)
                ),
                {"name": "home", "mountPath": str(HOME)},
                {"name": "scratch", "mountPath": "/tmp"},  # noqa: S108 (inside the container)
            ],
        }
        spec = {
            "nodeName": NODE,
            # The server's port is one of the machine's.
            "hostNetwork": True,
            "terminationGracePeriodSeconds": 0,
            "containers": [container],
            "volumes": [
                *(
                    {"name": f"folder-{number}", "hostPath": {"path": folder}}
                    for number, folder in enumerate(folders)
                ),
                {"name": "home", "emptyDir": {}},
                {"name": "scratch", "emptyDir": {}},
            ],
        }
        manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
        self._cluster.api.create(manifest, NAMESPACE)
        return name

    def _pods(self) -> list[dict[str, Any]]:
        return self._cluster.api.list(PODS)

    def _wait_running(self, number: int) -> None:
        def is_running() -> bool:
            running = [pod for pod in self._pods() if pod["status"]["phase"] == "Running"]
            return len(running) == number

        wait_until(is_running, RUN_SECONDS, f"{number} busy pods to run")

    def _remove_pods(self) -> None:
        self._cluster.api.delete(PODS)
        wait_until(lambda: not self._pods(), RUN_SECONDS, "the pods to go")


def program_folders() -> list[str]:
    """The machine's own programs and libraries: pods see them, so that no image holds them."""
    system = ("/usr", "/lib", "/lib64", "/bin", "/etc")
    return [*system, sys.base_prefix, str(ensure_lab())]


def confine(group: str) -> None:
    """Let all pods of a kubelet share the first core, before the rest of the machine.

    Raises LookupError without cgroup v1.
    """
    Group(group).set("cpu.shares", MOST)
    (cpuset,) = [folder for folder in hierarchies() if (folder / group / "cpuset.cpus").exists()]
    pods = cpuset / group / "kubepods"
    # A group has no more cores than the group that it is in, so the inner groups come first.
    for below in (pods / "besteffort", pods / "burstable", pods):
        (below / "cpuset.cpus").write_text("0")


def play(rounds: int) -> dict[str, list[Measured]]:
    """Measure each arm so often, in turns."""
    server = ThreadingHTTPServer((LOOPBACK, 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    played: dict[str, list[Measured]] = {arm.name: [] for arm in ARMS}
    with ControlPlane() as cluster, RealRegistry() as registry:
        image = registry.push_image("empty:1", make_image())
        with RealNode(cluster, NODE, registry):
            (group,) = left_groups(os.getpid())
            confine(group)
            node = Node(cluster, image.reference, f"http://{LOOPBACK}:{server.server_port}")
            # Brings the files into memory.
            node.measure(ARMS[0])
            for number in range(rounds):
                for arm in ARMS:
                    found = node.measure(arm)
                    played[arm.name].append(found)
                    say(f"{number + 1} {arm.name}: {max(found.starts):.1f} s")
    return played


def main() -> None:
    """Play the rounds and print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5, help="how often each arm is played")
    options = parser.parse_args()
    ensure_lab()
    say(machine())
    played = play(options.rounds)
    rows = [
        [name, spread([max(found.starts) for found in measured])]
        for name, measured in played.items()
    ]
    print(table(["next to the start", "s to 200, of the last"], rows))
    every = [found for measured in played.values() for found in measured]
    print(f"a raise takes {spread([taken for found in every for taken in found.raises])} s")
    print(f"a return takes {spread([taken for found in every for taken in found.returns])} s")


if __name__ == "__main__":
    main()
