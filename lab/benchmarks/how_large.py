"""How many people and nodes Roost's programs carry together: a table of memory and processor time.

`python -m benchmarks.how_large --nodes 50 500 5000`. A real API server has the nodes and four
users' pods on each. The webhook, the controllers and kube-scheduler run as rendered; kubelets are
nobody. Then many people come at once, each by a TLS connection of their own, and after that people
come evenly for some minutes. Half of them run the hub's image, half an image of BinderHub's.
"""

from __future__ import annotations

import argparse
import base64
import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import yaml

from benchmarks.figures import figure, machine, quantile, say, table
from benchmarks.policy import RELEASE, rendered_scheduler_config, write_policy
from benchmarks.programs import program
from benchmarks.scene import (
    NAMESPACE,
    Size,
    all_nodes,
    built_image,
    make_shapes,
    manifests,
    one_user,
    store_shapes,
    write_to_etcd,
)
from benchmarks.servers import Servers, cpu_seconds, memory_mib, python_environment, run_json
from benchmarks.stage import make_pods
from roost_core.objects.pod import DEFAULT_SCHEDULER
from roost_core.objects.timestamps import read_moment
from roost_core.placement.labels import base_name, object_name
from tests.harness.controlplane import ControlPlane
from tests.harness.pods import running_status
from tests.harness.ports import LOOPBACK, ReservedPort
from tests.harness.scheduler import start_scheduler
from tests.harness.waiting import wait_until
from tests.stack import Replica

if TYPE_CHECKING:
    from collections.abc import Sequence

    from roost_core.objects.fields import JSONObject
    from tests.harness.processes import Process

USERS_OF_A_NODE: Final = 4
# As the chart has it: an answer that takes longer is no answer.
WEBHOOK_SECONDS: Final = 2
# Promise 8.
LATE_SECONDS: Final = 30
MARK: Final = f'"schedulerName":"{RELEASE}.'
PODS_PATH: Final = f"/api/v1/namespaces/{NAMESPACE}/pods"


class Came(NamedTuple):
    """People who came, and what became of them."""

    people: int
    # Whose pod the webhook placed within its time.
    placed: int
    # From the first creation until the last of them had a node.
    seconds: float
    # How long each waited for a node, whole seconds.
    waits: list[float]


class Programs(NamedTuple):
    """What runs of Roost."""

    webhook: Process
    controllers: Process
    scheduler: Process

    def cpu_seconds(self) -> list[float]:
        """Processor time of each so far."""
        return [cpu_seconds(process) for process in self]

    def memory_mib(self) -> list[float]:
        """The most that each has had resident."""
        return [memory_mib(process.pid)[1] for process in self]


def people(prefix: str) -> list[JSONObject]:
    """Two users' pods as a hub sends them; one runs an image that no puller brings."""
    pods = []
    for image in (None, built_image(1)):
        pod = make_pods()[0]
        pod["metadata"]["name"] = prefix
        # A volume claim that nobody provides would keep the pod pending.
        pod["spec"]["volumes"] = []
        container = pod["spec"]["containers"][0]
        container["volumeMounts"] = []
        if image is not None:
            container["image"] = image
        pods.append(pod)
    return pods


def start_controllers(cluster: ControlPlane, hub: Sequence[JSONObject]) -> Process:
    """`roost controllers` as rendered, on loopback; ready."""
    folder = cluster.folder / "controllers"
    folder.mkdir()
    for manifest in hub:
        if manifest["kind"] == "ConfigMap":
            for name, text in manifest["data"].items():
                (folder / name).write_text(text)
    deployment = next(
        manifest
        for manifest in hub
        if manifest["kind"] == "Deployment"
        and manifest["metadata"]["labels"]["app.kubernetes.io/component"] == "controllers"
    )
    pod = deployment["spec"]["template"]["spec"]
    command = [
        word.replace("/etc/roost/release", str(folder)).replace("/etc/roost/scheduler", str(folder))
        for word in pod["containers"][0]["command"]
        if not word.startswith("--port=")
    ]
    port = ReservedPort()
    account = cluster.service_account_kubeconfig(NAMESPACE, pod["serviceAccountName"])
    process: Process = cluster.run.start(
        "controllers",
        Path(sys.executable),
        [
            "-m",
            *command,
            f"--kubeconfig={account}",
            f"--bind-address={LOOPBACK}",
            f"--port={port.release()}",
        ],
        environment=python_environment(),
    )

    Replica(process, port.number).wait_ready(180)
    return process


class Hub:
    """A cluster of so many nodes with Roost and its users."""

    def __init__(self, cluster: ControlPlane, nodes: int) -> None:
        self.cluster = cluster
        self._folder = cluster.folder
        size = Size(nodes=nodes, pods=0)
        cluster.create_namespace(NAMESPACE)
        servers = Servers(
            cluster.run,
            cluster.kubeconfig,
            {"roost": write_policy(cluster.folder / "policy" / "release.json", NAMESPACE)},
            {"roost": NAMESPACE},
        )
        webhook = servers.start_roost()
        ca = base64.b64encode(servers.certificates.ca.read_bytes()).decode()
        hub = manifests(
            Size(nodes=10, pods=100),
            f"webhook.url={webhook.url}",
            "webhook.certificates.mode=secret",
            f"webhook.certificates.caBundle={ca}",
        )
        applied = [
            manifest
            for manifest in hub
            if manifest["kind"] not in ("Deployment", "DaemonSet", "StatefulSet")
        ]
        cluster.kubectl("apply", "--server-side", "-f", "-", input=yaml.safe_dump_all(applied))
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
        cluster.api.create(account, "kube-system")
        node = store_shapes(cluster, {"node": make_shapes(hub)["node"]})["node"]
        write_to_etcd(cluster.etcd_url, all_nodes({"node": node}, size), are_watched=True)
        self._hold_lease("scheduler")
        controllers = start_controllers(cluster, hub)
        wait_until(self._is_placing, 60, "the webhook to place pods")
        self._settle_users(size)
        # The cluster's own: for pods that the webhook didn't answer for in time.
        start_scheduler(cluster).wait_serving()
        self._scheduler = start_scheduler(
            cluster, rendered_scheduler_config(NAMESPACE), leader_elect=False
        )
        self._scheduler.wait_serving()
        self.programs = Programs(webhook.process, controllers, self._scheduler.process)

    def _hold_lease(self, part: str) -> None:
        """Hold the Lease that tells the webhook of the scheduler: this one elects no leader."""
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec = {"holderIdentity": "bench", "leaseDurationSeconds": 86400, "renewTime": now}
        leases = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
        self.cluster.api.patch(f"{leases}/{object_name(base_name(RELEASE), part)}", {"spec": spec})

    def _placed(self) -> JSONObject:
        """A user's pod as it is stored, by a dry run."""
        pod = people("placed")[1]
        stored: JSONObject = self.cluster.api.create(pod, NAMESPACE, dryRun="All")
        return stored

    def _is_placing(self) -> bool:
        return bool(self._placed()["spec"]["schedulerName"] != DEFAULT_SCHEDULER)

    def _settle_users(self, size: Size) -> None:
        """Users who are there already, with the terms that the webhook gives them."""
        user = self._placed()
        user["spec"] |= {"nodeName": "node", "volumes": []}
        user["status"] = {**running_status(user, "10.128.0.2"), "hostIP": "10.0.0.2"}
        count = USERS_OF_A_NODE * size.nodes
        users = (one_user(user, number, number % size.nodes) for number in range(count))
        write_to_etcd(self.cluster.etcd_url, users, are_watched=True)

    def come_at_once(self, count: int) -> Came:
        """So many people, each by a connection of their own."""
        files = []
        for number, pod in enumerate(people("x")):
            path = self._folder / f"person-{number}.json"
            path.write_text(json.dumps(pod))
            files.append(str(path))
        command = [str(program("createpods")), f"-kubeconfig={self.cluster.kubeconfig}", "-keep"]
        command += [f"-namespace={NAMESPACE}", f"-clients={count}", f"-count={count}"]
        started = time.monotonic()
        result = run_json([*command, "-prefix=burst", f"-mark={MARK}", *files])
        waits = self._wait_for_nodes("burst-", count)
        return Came(result["pods"], result["marked"], time.monotonic() - started, waits)

    def come_evenly(self, count: int, seconds: float) -> Came:
        """So many people in this time, at the same distance."""
        pods = people("x")

        def create(number: int) -> bool:
            due_at = started + seconds * number / count
            time.sleep(max(0.0, due_at - time.monotonic()))
            pod = pods[number % 2]
            pod = {**pod, "metadata": {**pod["metadata"], "name": f"even-{number}"}}
            return bool(
                self.cluster.api.create(pod, NAMESPACE)["spec"]["schedulerName"]
                != DEFAULT_SCHEDULER
            )

        started = time.monotonic()
        with ThreadPoolExecutor(16) as pool:
            placed = sum(pool.map(create, range(count)))
        waits = self._wait_for_nodes("even-", count)
        return Came(count, placed, time.monotonic() - started, waits)

    def _wait_for_nodes(self, prefix: str, count: int) -> list[float]:
        waits: list[float] = []

        def have_nodes() -> bool:
            found = [
                pod
                for pod in self.cluster.api.list(PODS_PATH, fieldSelector="status.phase=Pending")
                if pod["metadata"]["name"].startswith(prefix)
            ]
            bound = [pod for pod in found if pod["spec"].get("nodeName")]
            waits[:] = [_wait(pod) for pod in bound]
            return len(bound) == count

        wait_until(have_nodes, 900, f"{count} people to have a node", interval_seconds=0.5)
        return waits


def _wait(pod: JSONObject) -> float:
    created = read_moment(pod["metadata"]["creationTimestamp"]) or 0.0
    scheduled = next(
        condition["lastTransitionTime"]
        for condition in pod["status"]["conditions"]
        if condition["type"] == "PodScheduled"
    )
    return (read_moment(scheduled) or 0.0) - created


def measure(nodes: int, given: argparse.Namespace) -> list[str]:
    """A row of the table."""
    with ControlPlane(controllers=()) as cluster:
        hub = Hub(cluster, nodes)
        say(f"  {nodes} nodes: ready")
        # What the programs do at first isn't rest.
        time.sleep(given.settle)
        at_first = hub.programs.cpu_seconds()
        time.sleep(given.settle)
        before = hub.programs.cpu_seconds()
        at_once = hub.come_at_once(given.at_once)
        after = hub.programs.cpu_seconds()
        say(f"  {nodes} nodes: {at_once.placed} placed, {at_once.seconds:.1f} s")
        evenly = hub.come_evenly(given.evenly, 60 * given.minutes)
        memory = hub.programs.memory_mib()
    rest = [
        100 * (then - first) / given.settle for then, first in zip(before, at_first, strict=True)
    ]
    person = [
        1000 * (then - first) / at_once.people for then, first in zip(after, before, strict=True)
    ]
    late = sum(wait > LATE_SECONDS for wait in evenly.waits)
    return [
        f"{nodes:,}",
        f"{at_once.placed} of {at_once.people}",
        figure(at_once.seconds),
        f"{quantile(evenly.waits, 0.99):.0f}, {max(evenly.waits):.0f}; {late}",
        *(
            f"{figure(mib)}, {figure(share, 2)} %, {figure(mib_a_person)}"
            for mib, share, mib_a_person in zip(memory, rest, person, strict=True)
        ),
    ]


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.how_large", description=__doc__)
    parser.add_argument("--nodes", type=int, nargs="+", default=[50, 500, 5000])
    parser.add_argument("--at-once", type=int, default=500, help="people")
    parser.add_argument("--evenly", type=int, default=1000, help="people")
    parser.add_argument("--minutes", type=float, default=2.0, help="in which they come evenly")
    parser.add_argument("--settle", type=float, default=20.0, help="seconds before, and of, rest")
    given = parser.parse_args(argv)
    print(f"how_large: {machine()}; {USERS_OF_A_NODE} users' pods a node before")
    programs = ("webhook", "controllers", "kube-scheduler")
    head = [
        "nodes",
        f"of {given.at_once} at once, answered within {WEBHOOK_SECONDS} s",
        "s until all of them had a node",
        f"wait of {given.evenly} in {given.minutes:g} min, s: p99, most; later than promised",
        *(f"{name}: MiB, of a core at rest, ms a person" for name in programs),
    ]
    print(table(head, [measure(nodes, given) for nodes in given.nodes]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
