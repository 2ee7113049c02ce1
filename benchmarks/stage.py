"""Set up what the servers under test look at: a real API server with nodes, builder pods, one namespace for each peer.

Owns the scene that all cluster benchmarks share. Each peer has a namespace of its own, with the same builder pods, and
the nodes carry each peer's image labels: so all of them can stand side by side, and a round needs no change of
configuration.
"""

from __future__ import annotations

import copy
import json
import os
import shutil
import ssl
import subprocess
import sys
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchmarks.certificates import make_certificates
from benchmarks.figures import say
from benchmarks.policy import RELEASE, pulled_labels, write_policy
from benchmarks.programs import program
from tests.harness.nodes import FakeNodes
from tests.harness.pods import running_status
from tests.harness.ports import ReservedPort
from tests.harness.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.harness.controlplane import ControlPlane
    from tests.harness.processes import Process

Object = dict[str, Any]
REPO: Final = Path(__file__).resolve().parent.parent
PODS: Final = REPO / "benchmarks" / "pods"
NAMESPACES: Final = {peer: f"bench-{peer}" for peer in ("none", "empty", "rules", "roost", "policy")}
REPOSITORIES: Final = 40
PARALLEL_REQUESTS: Final = 8


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
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        found = {line.partition(":")[0]: line.split()[1] for line in lines if line.startswith(("VmRSS", "VmHWM"))}
        return float(found["VmRSS"]) / 1024, float(found["VmHWM"]) / 1024

    def cpu_seconds(self) -> float:
        """Processor time used so far, by all threads."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Stage:
    """The cluster as the benchmarks want it; close the control plane and all of it is gone."""

    def __init__(self, cluster: ControlPlane, *, nodes: int = 20, builders: bool = True) -> None:
        self.cluster = cluster
        self.certificates = make_certificates(cluster.folder / "benchmark-certificates")
        self.node_names = [f"bench-node-{number:05d}" for number in range(nodes)]
        self.nodes = FakeNodes(cluster.api)
        self.policies = {
            peer: write_policy(cluster.folder / f"policy-{peer}" / "policy.json", namespace)
            for peer, namespace in NAMESPACES.items()
            if peer in ("rules", "roost")
        }
        for namespace in NAMESPACES.values():
            cluster.create_namespace(namespace)
        labels = {"hub.jupyter.org/node-purpose": "user"}
        for namespace in NAMESPACES.values():
            labels |= dict.fromkeys(pulled_labels(namespace), "true")
        # Half of the nodes hold the images.
        self.nodes.create_many(self.node_names[::2], cpu="16", memory="64Gi", labels=labels)
        bare = {"hub.jupyter.org/node-purpose": "user"}
        self.nodes.create_many(self.node_names[1::2], cpu="16", memory="64Gi", labels=bare)
        if builders:
            self._create_builders()

    def _create_builders(self) -> None:
        wanted = [(NAMESPACES[peer], node) for peer in ("rules", "roost") for node in self.node_names]

        def create(place: tuple[str, str]) -> None:
            namespace, node = place
            labels = {"component": "image-builder", "app": "binder", "name": "hub-dind"}
            spec = {"nodeName": node, "containers": [{"name": "dind", "image": "docker:dind"}]}
            pod = self.cluster.create_pod(
                {"metadata": {"name": f"dind-{node}", "labels": labels}, "spec": spec}, namespace
            )
            path = f"/api/v1/namespaces/{namespace}/pods/dind-{node}/status"
            self.cluster.api.patch(path, {"status": running_status(pod, "10.1.2.3")})

        with ThreadPoolExecutor(PARALLEL_REQUESTS) as pool:
            list(pool.map(create, wanted))

    # Servers

    def start_go(self, peer: str, *, cores: Sequence[int] | None = None) -> Server:
        """Start the Go webhook: peer "rules", "lean" or "empty"; `cores` also sets GOMAXPROCS."""
        port = ReservedPort()
        arguments = [f"-mode={peer}", f"-cert={self.certificates.certificate}", f"-key={self.certificates.key}"]
        arguments.append(f"-port={port.number}")
        if peer != "empty":
            arguments += [f"-policy={self.policies['rules']}", f"-kubeconfig={self.cluster.kubeconfig}"]
        environment = {"GOMAXPROCS": str(len(cores))} if cores else {}
        number = port.release()
        ready, url = f"https://127.0.0.1:{number}/readyz", f"https://127.0.0.1:{number}/mutate"
        command = pinned([str(program("webhook")), *arguments], cores)
        return self._start(peer, command, environment, url, ready)

    def start_roost(self, *, cores: Sequence[int] | None = None) -> Server:
        """Start `roost webhook` with given certificate files, watching the cluster."""
        port, ops = ReservedPort(), ReservedPort()
        arguments = ["-m", "roost", "webhook"]
        arguments += ["--policy", str(self.policies["roost"]), "--release", RELEASE, "--namespace", NAMESPACES["roost"]]
        arguments += ["--kubeconfig", str(self.cluster.kubeconfig), "--bind-address", "127.0.0.1"]
        arguments += ["--certificate-mode", "secret", "--certificate-folder", str(self.certificates.folder)]
        arguments += ["--port", str(port.release()), "--metrics-port", str(ops.release())]
        url, ready = f"https://127.0.0.1:{port.number}/mutate", f"http://127.0.0.1:{ops.number}/readyz"
        environment = {"PYTHONPATH": str(REPO)}
        command = pinned([sys.executable, *arguments], cores)
        return self._start("roost", command, environment, url, ready)

    def _start(self, name: str, command: list[str], environment: dict[str, str], url: str, ready_url: str) -> Server:
        started = time.monotonic()
        process = self.cluster.run.start(f"webhook-{name}", Path(command[0]), command[1:], environment=environment)
        tls = ssl.create_default_context(cafile=str(self.certificates.ca)) if ready_url.startswith("https") else None

        def is_ready() -> bool:
            if not process.is_running:
                raise RuntimeError(process.epitaph("before it was ready"))
            with suppress(OSError), urllib.request.urlopen(ready_url, timeout=5, context=tls):
                return True
            return False

        wait_until(is_ready, 60, f"{name} to be ready", interval_seconds=0.01, explain=process.tail)
        return Server(name, process, url, time.monotonic() - started)

    # Reviews

    def write_reviews(self, folder: Path, namespace: str) -> list[Path]:
        """AdmissionReviews as the API server would send them for the benchmarks' pods: users, builds and placeholders.

        Two users to one build to one placeholder; builds of 40 repositories. The object is what the API server itself
        makes of the pod before it calls webhooks, by a dry run.
        """
        folder.mkdir(parents=True, exist_ok=True)
        files = []
        defaulted: dict[str, Object] = {}
        for number, pod in enumerate(self.pods()):
            kind = pod["metadata"]["labels"]["component"]
            if kind not in defaulted:
                stored = self.cluster.api.create(pod, namespace, dryRun="All")
                for field in ("uid", "resourceVersion", "creationTimestamp", "generation"):
                    stored["metadata"].pop(field, None)
                stored["status"] = {}
                defaulted[kind] = stored
            review_object = copy.deepcopy(defaulted[kind])
            review_object["metadata"] |= {
                key: pod["metadata"][key] for key in ("name", "annotations") if key in pod["metadata"]
            }
            path = folder / f"{number:03d}-{kind}.json"
            path.write_text(json.dumps(_review(review_object, namespace, number)))
            files.append(path)
        return files

    def pods(self) -> list[Object]:
        """POST bodies: 2 users, a build, a placeholder, and so on for each repository."""
        user, build, placeholder = (
            json.loads((PODS / f"{name}.json").read_text()) for name in ("user", "build", "placeholder")
        )
        found: list[Object] = []
        for number in range(REPOSITORIES):
            one = copy.deepcopy(build)
            one["metadata"]["name"] = f"build-repository-{number}"
            one["metadata"]["annotations"]["binder-repo"] = f"https://github.com/benchmark-org/repository-{number}"
            found += [user, one, user, placeholder]
        return found

    def write_pods(self, folder: Path) -> list[Path]:
        """The POST bodies as files, for `createpods`."""
        folder.mkdir(parents=True, exist_ok=True)
        files = []
        for number, pod in enumerate(self.pods()):
            path = folder / f"{number:03d}.json"
            path.write_text(json.dumps(pod))
            files.append(path)
        return files


def _review(pod: Object, namespace: str, number: int) -> Object:
    kind = {"group": "", "version": "v1", "kind": "Pod"}
    resource = {"group": "", "version": "v1", "resource": "pods"}
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": f"00000000-0000-4000-8000-{number:012d}",
            "kind": kind,
            "resource": resource,
            "requestKind": kind,
            "requestResource": resource,
            "name": pod["metadata"]["name"],
            "namespace": namespace,
            "operation": "CREATE",
            "userInfo": {
                "username": f"system:serviceaccount:{namespace}:hub",
                "uid": "dd69f0d1-2c22-4778-86a2-2aabb918661b",
                "groups": ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"],
            },
            "object": pod,
            "oldObject": None,
            "dryRun": False,
            "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
        },
    }


def pinned(command: list[str], cores: Sequence[int] | None) -> list[str]:
    """The command, held to these cores where taskset exists (Linux)."""
    taskset = shutil.which("taskset")
    if not cores or taskset is None:
        return command
    return [taskset, "--cpu-list", ",".join(map(str, cores)), *command]


def run_json(command: Sequence[str], cores: Sequence[int] | None = None, timeout_seconds: float = 300.0) -> Object:
    """Run one of our load programs and read the JSON object it prints."""
    done = subprocess.run(
        pinned(list(command), cores), capture_output=True, text=True, timeout=timeout_seconds, check=False
    )
    if done.returncode != 0:
        raise RuntimeError(f"{Path(command[0]).name} failed: {done.stderr.strip()[-2000:]}")
    result: Object = json.loads(done.stdout)
    if result["failed"]:
        say(f"  {result['failed']} failed, the first with: {result['fault']}")
    return result
