"""Compare the memory of a central release that serves many hubs with that of a release with one hub.

    python -m benchmarks.many_hubs --hubs 50 --users 40 --nodes 200

Each hub has users and placeholders that are bound to nodes; each node reports 40 images. Both run on the same control
plane, one after the other. All hubs but one are installed before their namespaces are labelled, and then come at once:
lines say when the webhook knew them, when all their Leases were held, when every node had every hub's label, and what
that cost. The last lines say how long a hub more takes until its rules are in force, and how long the API server takes
for a pod of a served hub and for one of a namespace that nobody serves.
"""

from __future__ import annotations

import argparse
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Final

import yaml

from roost_core.placement.labels import CENTRAL_LABEL, PULLED_LABEL_PREFIX, central_name
from tests.harness.controlplane import ControlPlane
from tests.harness.nodes import FakeNodes
from tests.harness.waiting import wait_until
from tests.stack import Stack, render

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.harness.processes import Process

CENTRAL: Final = ("roost", "roost-system")
IMAGES: Final = {f"quay.io/example/image-{number}:1": 1_000_000_000 for number in range(40)}
PLACEHOLDERS: Final = 3
PARALLEL_REQUESTS: Final = 8
PARALLEL_HUBS: Final = 3
CPU_SECONDS: Final = 20
AT_ONCE_SECONDS: Final = 900
# What the central programs need of a hub.
SERVED: Final = {"ServiceAccount", "ConfigMap", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"}
ASKED: Final = 100
# Values of every hub.
OWN: Final[dict[str, Any]] = {
    "placeholders": [],
    "singleuser": {"image": {"name": "quay.io/example/image-0", "tag": "1"}},
}


def memory_mib(process: Process) -> float:
    """Resident memory of a process, MiB."""
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))


def cpu_seconds(pid: int) -> float:
    """Processor time of a process so far."""
    user_ticks, system_ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user_ticks) + int(system_ticks)) / os.sysconf("SC_CLK_TCK")


def threads(process: Process) -> int:
    """Threads of a process."""
    return len(list(Path(f"/proc/{process.pid}/task").iterdir()))


def user(name: str, component: str, node: str, image: str) -> dict[str, Any]:
    """A pod that is bound already; component: its class's."""
    container = {"name": "main", "image": image, "resources": {"requests": {"cpu": "10m", "memory": "1Mi"}}}
    spec = {"containers": [container], **({"nodeName": node} if node else {})}
    metadata = {"name": name, "labels": {"component": component, "app": "jupyterhub"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


class Site:
    """A cluster with nodes, and the namespaces of its hubs."""

    def __init__(self, cluster: ControlPlane, nodes: int, users: int) -> None:
        self.cluster = cluster
        self.nodes = [f"node-{number:04d}" for number in range(nodes)]
        self.users = users
        FakeNodes(cluster.api).create_many(self.nodes, cpu="64", memory="256Gi", pods=1000, images=IMAGES)

    def add_hub(self, number: int) -> str:
        """A namespace with a hub's pods; returns its name."""
        namespace = self.cluster.create_namespace(f"hub-{number:03d}")
        names = [(f"jupyter-{index}", "singleuser-server") for index in range(self.users)]
        names += [(f"placeholder-{index}", "user-placeholder") for index in range(PLACEHOLDERS)]
        images = list(IMAGES)
        with ThreadPoolExecutor(PARALLEL_REQUESTS) as pool:
            for index, (name, component) in enumerate(names):
                node = self.nodes[(number * len(names) + index) % len(self.nodes)]
                body = user(name, component, node, images[(number + index) % len(images)])
                pool.submit(self.cluster.api.create, body, namespace)
        return namespace

    def allow(self, namespace: str) -> None:
        """Say that the central release may serve a namespace."""
        labels = {CENTRAL_LABEL: central_name(*CENTRAL)}
        self.cluster.api.patch(f"/api/v1/namespaces/{namespace}", {"metadata": {"labels": labels}})

    def labels(self) -> int:
        """How many of nodes' labels say that the node holds a hub's image, of all hubs."""
        nodes = self.cluster.api.list("/api/v1/nodes")
        names = (name for node in nodes for name in node["metadata"].get("labels", {}))
        return sum(name.startswith(PULLED_LABEL_PREFIX) for name in names)

    def serve(self, namespace: str) -> None:
        """Apply what the central webhook needs of a hub."""
        central = {"release": CENTRAL[0], "namespace": CENTRAL[1], "controllers": True}
        values = {"hubs": {"central": central}, **OWN}
        # A folder of its own: hubs are rendered at the same time, and equal values are one file.
        folder = self.cluster.folder / namespace
        folder.mkdir()
        manifests = render(values, release="hub", namespace=namespace, folder=folder)
        wanted = [manifest for manifest in manifests if manifest["kind"] in SERVED]
        self.cluster.kubectl("apply", "--server-side", "-f", "-", input=yaml.safe_dump_all(wanted))

    def asked_ms(self, namespace: str) -> float:
        """The median time that the creation of a pod takes, as a dry run."""
        times = []
        for number in range(ASKED):
            began = time.perf_counter()
            self.cluster.api.create(user(f"asks-{number}", "singleuser-server", "", "i"), namespace, dryRun="All")
            times.append(1000 * (time.perf_counter() - began))
        return median(times)


def programs_of(stack: Stack) -> dict[str, Process]:
    """Its programs, by name."""
    return {
        "webhook": stack.webhooks[0].process,
        "controllers": stack.controllers[0].process,
        "scheduler": stack.schedulers[0].process,
    }


def show(what: str, stack: Stack) -> dict[str, float]:
    """Print and return the memory of each program, MiB, once it no longer grows."""
    programs = programs_of(stack)
    before = 0.0
    while (now := sum(map(memory_mib, programs.values()))) > before * 1.01:
        before = now
        time.sleep(5)
    began = {name: cpu_seconds(process.pid) for name, process in programs.items()}
    asked = stack.controllers[0].metric("roost_controllers_api_requests_total")
    time.sleep(CPU_SECONDS)
    asked = stack.controllers[0].metric("roost_controllers_api_requests_total") - asked
    found = {name: memory_mib(process) for name, process in programs.items()}
    for name, process in programs.items():
        busy = 1000 * (cpu_seconds(process.pid) - began[name]) / CPU_SECONDS
        print(f"{what}: {name} {found[name]:.0f} MiB, {threads(process)} threads, {busy:.0f} m of a core while idle")
    print(f"{what}: the controllers ask the API server {asked / CPU_SECONDS:.1f} times a second while idle")
    return found


def come_at_once(site: Site, stack: Stack, hubs: Sequence[str]) -> None:
    """Let the central release serve these installed hubs, and print how long each step takes."""
    webhook, controllers = stack.webhooks[0], stack.controllers[0]
    own_labels = site.labels()
    before = {name: cpu_seconds(process.pid) for name, process in programs_of(stack).items()}
    began = time.monotonic()
    for namespace in hubs:
        site.allow(namespace)
    steps: dict[str, Callable[[], bool]] = {
        "known to the webhook": lambda: webhook.metric("roost_webhook_hubs") == len(hubs),
        # Its own Lease, and each hub's.
        "leading for all": lambda: controllers.metric("roost_controllers_leader") == len(hubs) + 1,
        "all labels there": lambda: site.labels() - own_labels == len(hubs) * len(site.nodes),
    }
    for what, is_done in steps.items():
        wait_until(is_done, AT_ONCE_SECONDS, what, explain=controllers.process.tail)
        print(f"{len(hubs)} hubs at once: {what} after {time.monotonic() - began:.0f} s")
    spent = {name: cpu_seconds(process.pid) - before[name] for name, process in programs_of(stack).items()}
    print("which took CPU:", ", ".join(f"{name} {seconds:.0f} s" for name, seconds in spent.items()), flush=True)


def main() -> None:
    """Run the comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hubs", type=int, default=50)
    parser.add_argument("--users", type=int, default=40, help="of each hub")
    parser.add_argument("--nodes", type=int, default=200)
    options = parser.parse_args()
    with ControlPlane() as cluster:
        site = Site(cluster, options.nodes, options.users)
        first = site.add_hub(0)
        with Stack(cluster, first, OWN, controllers=True) as stack:
            one = show("one release, one hub", stack)
        cluster.create_namespace(CENTRAL[1])
        hubs = [site.add_hub(number) for number in range(1, options.hubs + 1)]
        values = {"hubs": {"serve": True}, "placeholders": []}
        with Stack(cluster, CENTRAL[1], values, release=CENTRAL[0], controllers=True) as stack:
            with ThreadPoolExecutor(PARALLEL_HUBS) as pool:
                list(pool.map(site.serve, hubs[:-1]))
            come_at_once(site, stack, hubs[:-1])
            labels = site.labels()
            began = time.monotonic()
            site.allow(hubs[-1])
            site.serve(hubs[-1])
            webhook = stack.webhooks[0]
            wait_until(
                lambda: webhook.metric("roost_webhook_hubs") == options.hubs,
                AT_ONCE_SECONDS,
                "the last hub",
                explain=webhook.process.tail,
            )
            in_force = time.monotonic() - began
            # Nothing is idle before.
            wait_until(lambda: site.labels() == labels + len(site.nodes), AT_ONCE_SECONDS, "the last hub's labels")
            many = show(f"a central release, {options.hubs} hubs", stack)
            print("ratio:", ", ".join(f"{name} {many[name] / one[name]:.2f}" for name in one))
            print(f"one hub more is in force {in_force:.1f} s after its manifests were sent")
            print(f"a pod of a served hub {site.asked_ms(hubs[0]):.1f} ms, of {first} {site.asked_ms(first):.1f} ms")


if __name__ == "__main__":
    main()
