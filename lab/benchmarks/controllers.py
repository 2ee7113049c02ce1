"""The controllers at 1,000 nodes and 20,000 pods on a real API server; single plans at 5,000 nodes
and 100,000 pods.

`python -m benchmarks.controllers`. One `roost controllers` replica as rendered, every controller
on; etcd and the API server are real, kubelets and hubs are played by this process: each node's
status is written anew every five minutes, and users come and go. What is counted: memory, time to
ready, processor time at rest and under that churn, requests to the API server (by its own audit
log), and the time from "the image is there" to the node's label. `--plans-only` and
`--cluster-only` run one half.
"""

from __future__ import annotations

import argparse
import datetime as dt
import gc
import json
import sys
import threading
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Final

import yaml

from benchmarks.figures import figure, machine, quantile, say, spread, table
from benchmarks.policy import IMAGES, RELEASE, pulled_labels
from benchmarks.scene import (
    NAMESPACE,
    OWNER_UID,
    Size,
    all_nodes,
    all_pods,
    heartbeat,
    make_shapes,
    manifests,
    node_name,
    one_node,
    one_puller,
    one_user,
    puller_name,
    store_shapes,
    write_to_etcd,
)
from benchmarks.servers import cpu_seconds, memory_mib, python_environment
from roost.controllers.contract.snapshot import Moment, Snapshot, StatefulSetState
from roost.controllers.controllers_settings import parse_settings
from roost.controllers.runtime.loop import RESYNC_SECONDS
from roost.controllers.runtime.watching.pods import PodReader
from roost_core.objects.fields import JSONObject
from roost_core.objects.node import read_node
from roost_core.objects.timestamps import read_moment
from roost_core.placement.labels import attract_label
from roost_core.scheduler.plugins import NEWEST_MINOR
from tests.harness.api import STRATEGIC, ApiError
from tests.harness.controlplane import ControlPlane
from tests.harness.ports import LOOPBACK, ReservedPort
from tests.harness.waiting import wait_until
from tests.stack import read_page

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from roost.controllers.contract.planner import Planner
    from tests.harness.api import Api
    from tests.harness.processes import Process

# When the newest node of the plans joined.
LATER: Final = "2026-11-21T08:00:00Z"
GOAL_PLAN_SECONDS: Final = 0.5
GOAL_CPU_PERCENT: Final = 2.0
HEARTBEAT_SECONDS: Final = 300.0
# As the rendered probes and the ServiceMonitor ask.
PROBE_SECONDS: Final = 5.0
SCRAPE_SECONDS: Final = 30.0
USER_AGENT: Final = "roost"
LABEL_SECONDS: Final = 60.0


# Plans alone


def make_planners(hub: Sequence[JSONObject]) -> tuple[Planner[Any], ...]:
    """Every controller, with the settings that the chart renders."""
    return parse_settings(*_documents(hub), NEWEST_MINOR).planners


def _documents(hub: Sequence[JSONObject]) -> tuple[JSONObject, JSONObject]:
    data = {
        key: text
        for manifest in hub
        if manifest["kind"] == "ConfigMap"
        for key, text in manifest["data"].items()
    }
    settings: JSONObject = json.loads(data["release.json"])
    scheduler: JSONObject = yaml.load(data["config.yaml"], Loader=yaml.CSafeLoader)
    return settings, scheduler


def make_snapshot(hub: Sequence[JSONObject], size: Size) -> Snapshot:
    """The scene as the watches would have read it."""
    shapes = make_shapes(hub)
    settings, scheduler = _documents(hub)
    read = PodReader(parse_settings(settings, scheduler, NEWEST_MINOR).shared).read
    pods = {}
    for body in all_pods(shapes, size):
        pod = read(body)
        if pod is not None:
            pods[pod.key] = pod
    nodes = {body["metadata"]["name"]: read_node(body) for body in all_nodes(shapes, size)}
    # The newest node, marked and empty: the mover has to judge whether placeholders would now go
    # there.
    newest = one_node(shapes["node"], size.nodes)
    newest["metadata"]["labels"][attract_label(RELEASE, NAMESPACE, "default")] = "true"
    newest["metadata"]["creationTimestamp"] = LATER
    for condition in newest["status"]["conditions"]:
        condition["lastTransitionTime"] = LATER
    nodes[newest["metadata"]["name"]] = read_node(newest)
    sets = [manifest["metadata"] for manifest in hub if manifest["kind"] == "StatefulSet"]
    stateful_sets = {
        placeholder_set["name"]: StatefulSetState(
            placeholder_set["name"], OWNER_UID, size.placeholders
        )
        for placeholder_set in sets
    }
    return Snapshot(RELEASE, NAMESPACE, nodes, pods, stateful_sets)


def time_plans(size: Size, rounds: int) -> str:
    """The first plan of each controller, which has no memory yet, and later ones; processor
    time.
    """
    hub = manifests(size)
    snapshot = make_snapshot(hub, size)
    # As the program does once the cluster is listed.
    gc.collect()
    gc.freeze()
    say(f"  snapshot of {len(snapshot.nodes)} nodes and {len(snapshot.pods)} pods")
    wall = (read_moment(LATER) or 0.0) + 3600.0
    rows = []
    for planner in make_planners(hub):
        found = []
        for number in range(rounds + 1):
            began_at = time.thread_time()
            planned = planner.plan(snapshot, Moment(wall + 30.0 * number, 30.0 * number))
            found.append(time.thread_time() - began_at)
        later = found[1:]
        goal = "reached" if max(found[0], median(later)) < GOAL_PLAN_SECONDS else "MISSED"
        rows.append(
            [planner.name, figure(found[0]), spread(later), str(len(planned.actions)), goal]
        )
        say(f"  {planner.name}: {found[0]:.3f} s, then {median(later):.3f} s")
    head = [
        "controller",
        "first plan, s",
        "later plans, s",
        "actions of the last",
        f"goal < {GOAL_PLAN_SECONDS:g} s",
    ]
    return table(head, rows)


# A replica on a real API server


class Replica:
    """`roost controllers` as rendered, on loopback."""

    def __init__(self, cluster: ControlPlane, hub: Sequence[JSONObject]) -> None:
        folder = cluster.folder / "controllers"
        folder.mkdir()
        data = {
            key: text
            for manifest in hub
            if manifest["kind"] == "ConfigMap"
            for key, text in manifest["data"].items()
        }
        for name, text in data.items():
            (folder / name).write_text(text)
        deployment = next(
            manifest
            for manifest in hub
            if manifest["kind"] == "Deployment"
            and manifest["metadata"]["labels"]["app.kubernetes.io/component"] == "controllers"
        )
        pod = deployment["spec"]["template"]["spec"]
        command = [
            word.replace("/etc/roost/release", str(folder)).replace(
                "/etc/roost/scheduler", str(folder)
            )
            for word in pod["containers"][0]["command"]
        ]
        self._port = ReservedPort()
        account = cluster.service_account_kubeconfig(NAMESPACE, pod["serviceAccountName"])
        arguments = [
            "-m",
            *command[:2],
            *(word for word in command[2:] if not word.startswith("--port=")),
        ]
        arguments += [
            f"--kubeconfig={account}",
            f"--bind-address={LOOPBACK}",
            f"--port={self._port.release()}",
        ]
        began_at = time.monotonic()
        self.process: Process = cluster.run.start(
            "controllers", Path(sys.executable), arguments, environment=python_environment()
        )
        wait_until(
            self._is_ready,
            180,
            "the controllers to be ready",
            interval_seconds=0.02,
            explain=self.process.tail,
        )
        self.ready_seconds = time.monotonic() - began_at
        self.ready_cpu_seconds = cpu_seconds(self.process)

    def _is_ready(self) -> bool:
        if not self.process.is_running:
            raise RuntimeError(self.process.epitaph("before it was ready"))
        return read_page(self._port.number, "/readyz")[0] == 200

    def page(self, path: str) -> str:
        """A page of its port."""
        return read_page(self._port.number, path)[1]

    def memory_mib(self) -> tuple[float, float]:
        """Resident memory now, and at its highest."""
        return memory_mib(self.process.pid)

    def plans(self) -> tuple[float, float]:
        """How many plans were made, and the seconds they took."""
        totals = {"count": 0.0, "sum": 0.0}
        for line in self.page("/metrics").splitlines():
            for what in totals:
                if line.startswith(f"roost_controllers_plan_duration_seconds_{what}"):
                    totals[what] += float(line.rpartition(" ")[2])
        return totals["count"], totals["sum"]


class Life:
    """What happens on a cluster by itself, from threads: kubelets report, users come and go, probes
    ask.
    """

    def __init__(
        self, cluster: ControlPlane, shapes: Mapping[str, JSONObject], size: Size, replica: Replica
    ) -> None:
        self._cluster = cluster
        self._shapes = shapes
        self._size = size
        self._replica = replica
        self._over = threading.Event()
        self.counts: Counter[str] = Counter()
        self._first_user = size.users_in_all
        self._first_gone = 0

    @contextmanager
    def going_on(self, sessions_per_second: float) -> Iterator[None]:
        """Let it happen meanwhile; with 0 sessions a second only kubelets and probes."""
        self._over.clear()
        works = [self._kubelets, self._probes]
        if sessions_per_second:
            works.append(lambda: self._users(sessions_per_second))
        threads = [threading.Thread(target=work, daemon=True) for work in works]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._over.set()
            for thread in threads:
                thread.join()

    def _kubelets(self) -> None:
        number = 0
        pace = HEARTBEAT_SECONDS / self._size.nodes
        due_at = time.monotonic()
        while not self._over.wait(max(0.0, due_at - time.monotonic())):
            heartbeat(self._cluster.api, node_name(number % self._size.nodes), _now())
            self.counts["heartbeats"] += 1
            number += 1
            due_at += pace

    def _probes(self) -> None:
        turn = 0
        while not self._over.wait(PROBE_SECONDS):
            self._replica.page("/readyz")
            if turn % 2 == 0:
                self._replica.page("/livez")
            if turn % int(SCRAPE_SECONDS / PROBE_SECONDS) == 0:
                self._replica.page("/metrics")
            turn += 1

    def _users(self, per_second: float) -> None:
        due_at = time.monotonic()
        while not self._over.wait(max(0.0, due_at - time.monotonic())):
            self._launch()
            self._end()
            due_at += 1.0 / per_second

    def _launch(self) -> None:
        number = self._first_user
        api = self._cluster.api
        self._first_user += 1
        pod = one_user(self._shapes["user"], number, number % self._size.nodes)
        status = pod.pop("status")
        metadata = pod["metadata"]
        node = pod["spec"].pop("nodeName")
        pod["metadata"] = {
            key: metadata[key]
            for key in ("name", "namespace", "labels", "annotations")
            if key in metadata
        }
        path = api.path_of(pod)
        api.create(pod)
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": metadata["name"]},
            "target": target,
        }
        api.request("POST", f"{path}/binding", binding)
        waiting = {"state": {"waiting": {"reason": "PodInitializing"}}}
        starting = [
            {**container, **waiting, "ready": False, "started": False}
            for container in status["containerStatuses"]
        ]
        created = {"phase": "Pending", "containerStatuses": starting}
        for reported in (created, status):
            api.patch(
                f"{path}/status",
                {"status": reported},
                content_type=STRATEGIC,
                fieldManager="kubelet",
            )
        self.counts["launches"] += 1

    def _end(self) -> None:
        number = self._first_gone
        api = self._cluster.api
        self._first_gone += 1
        path = f"/api/v1/namespaces/{NAMESPACE}/pods/jupyter-user-{number}"
        api.delete(path)
        stopped = {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}
        try:
            api.patch(f"{path}/status", stopped, content_type=STRATEGIC, fieldManager="kubelet")
        except ApiError as error:
            if error.status != 404:
                raise
        api.delete(path, {"gracePeriodSeconds": 0})
        self.counts["ends"] += 1


def _now() -> str:
    return dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class AuditLog:
    """The API server's word on who asked what, read from where we last stood."""

    def __init__(self, cluster: ControlPlane) -> None:
        self._path = cluster.folder / "audit.log"
        self._offset = 0

    def skip(self) -> None:
        """Leave aside all that was asked so far."""
        self._offset = self._path.stat().st_size

    def count(self) -> Counter[str]:
        """Requests of Roost's since then, by verb and resource."""
        with self._path.open("rb") as file:
            file.seek(self._offset)
            text = file.read()
        self._offset += len(text)
        events = [json.loads(line) for line in text.splitlines()]
        return Counter(
            # Requests such as those for the server's version are about no resource.
            f"{event['verb']} {event.get('objectRef', {}).get('resource', event['requestURI'])}"
            for event in events
            if event.get("userAgent", "").startswith(USER_AGENT)
        )


def rest(
    replica: Replica, life: Life, audit: AuditLog, seconds: float, sessions_per_second: float
) -> list[str]:
    """One row: what the replica uses while the cluster lives for so long."""
    before = cpu_seconds(replica.process)
    plans_before = replica.plans()
    counts_before = Counter(life.counts)
    audit.skip()
    began_at = time.monotonic()
    with life.going_on(sessions_per_second):
        time.sleep(seconds)
    # Whatever came late in this window counts as well.
    elapsed = time.monotonic() - began_at
    percent = (cpu_seconds(replica.process) - before) / elapsed * 100
    asked = audit.count()
    happened = life.counts - counts_before
    plans, plan_seconds = (
        now - then for now, then in zip(replica.plans(), plans_before, strict=True)
    )
    hourly = {what: number / elapsed * 3600 for what, number in asked.items()}
    say(
        f"  {dict(happened)}; an hour:"
        f" { ({what: round(number) for what, number in sorted(hourly.items())}) }"
    )
    leases = sum(number for what, number in hourly.items() if what.endswith(" leases"))
    return [
        f"{happened['heartbeats'] / elapsed:.1f}",
        f"{happened['launches'] / elapsed:.2f}",
        f"{elapsed:.0f}",
        f"{percent:.2f} %",
        f"{plan_seconds / elapsed * 100:.2f} %",
        f"{plans:.0f}",
        f"{sum(hourly.values()):.0f}",
        f"{leases:.0f}",
    ]


def time_labels(
    cluster: ControlPlane, shapes: Mapping[str, JSONObject], first: int, nodes: int
) -> list[float]:
    """Seconds from a puller's word that an image is there to the node's label, one node after the
    other.
    """
    wanted = pulled_labels(NAMESPACE)[0]
    api = cluster.api
    found = []
    for number in range(first, first + nodes):
        name = node_name(number)
        pod = puller_name(number)
        path = f"/api/v1/namespaces/{NAMESPACE}/pods/{pod}/status"
        statuses = shapes["puller"]["status"]["containerStatuses"]
        change = {"status": {"phase": "Running", "containerStatuses": statuses}}
        began_at = time.monotonic()
        api.patch(path, change, content_type=STRATEGIC, fieldManager="kubelet")
        images = one_node(shapes["node"], number)["status"]["images"]
        api.patch(
            f"/api/v1/nodes/{name}/status", {"status": {"images": images}}, fieldManager="kubelet"
        )

        def has_label(path: str = f"/api/v1/nodes/{name}") -> bool:
            return wanted in api.get(path)["metadata"]["labels"]

        wait_until(has_label, LABEL_SECONDS, f"the label on {name}", interval_seconds=0.02)
        found.append(time.monotonic() - began_at)
    return found


def empty_nodes(shapes: Mapping[str, JSONObject], first: int, nodes: int) -> Iterator[JSONObject]:
    """Nodes that joined just now, with their pullers: no image there, no label."""
    ours = set(pulled_labels(NAMESPACE))
    for number in range(first, first + nodes):
        node = one_node(shapes["node"], number)
        node["metadata"]["labels"] = {
            key: value for key, value in node["metadata"]["labels"].items() if key not in ours
        }
        node["status"] = {
            **node["status"],
            "images": [
                image for image in node["status"]["images"] if not set(image["names"]) & set(IMAGES)
            ],
        }
        yield node
        puller = one_puller(shapes["puller"], number)
        waiting = {
            "state": {"waiting": {"reason": "ContainerCreating"}},
            "ready": False,
            "started": False,
            "imageID": "",
        }
        statuses = [{**container, **waiting} for container in puller["status"]["containerStatuses"]]
        puller["status"] = {**puller["status"], "phase": "Pending", "containerStatuses": statuses}
        yield puller


def count_objects(api: Api) -> int:
    """Nodes and pods that the API server knows, without sending them all."""
    count = 0
    for path in ("/api/v1/nodes", "/api/v1/pods"):
        page = api.get(path, limit=1)
        count += len(page["items"]) + int(page["metadata"].get("remainingItemCount", 0))
    return count


def measure_cluster(size: Size, given: argparse.Namespace) -> str:
    """Everything that needs a cluster."""
    hub = manifests(size)
    with ControlPlane(controllers=(), audit_level="Metadata") as cluster:
        cluster.create_namespace(NAMESPACE)
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
        cluster.api.create(account, "kube-system")
        applied = [
            manifest for manifest in hub if manifest["kind"] not in ("Deployment", "DaemonSet")
        ]
        cluster.kubectl("apply", "--server-side", "-f", "-", input=yaml.safe_dump_all(applied))
        (stateful_set,) = cluster.api.list(f"/apis/apps/v1/namespaces/{NAMESPACE}/statefulsets")
        shapes = store_shapes(cluster, make_shapes(hub, stateful_set["metadata"]["uid"]))
        began_at = time.monotonic()
        written = write_to_etcd(cluster.etcd_url, all_nodes(shapes, size))
        written += write_to_etcd(cluster.etcd_url, all_pods(shapes, size))
        say(f"  {written} objects in etcd after {time.monotonic() - began_at:.0f} s")
        wait_until(
            lambda: count_objects(cluster.api) == written,
            120,
            f"the API server to know of {written} objects",
        )
        sizes = ", ".join(
            f"{name} {len(json.dumps(shape)) / 1000:.1f} kB" for name, shape in shapes.items()
        )
        lines = [f"objects as stored: {sizes}"]

        replica = Replica(cluster, hub)
        memory = replica.memory_mib()
        lines.append(
            f"ready after {replica.ready_seconds:.1f} s ({replica.ready_cpu_seconds:.1f} s of them"
            f" on a processor) with {memory[0]:.0f} MiB"
        )
        wait_until(lambda: "leader 1" in replica.page("/metrics"), 60, "the replica to lead")
        # What it does at first, such as marks, isn't rest.
        time.sleep(given.settle)
        life = Life(cluster, shapes, size, replica)
        audit = AuditLog(cluster)
        rows = [rest(replica, life, audit, given.seconds, 0.0)]
        rows.append(rest(replica, life, audit, given.seconds, given.sessions))
        head = [
            "heartbeats/s",
            "launches/s and ends/s",
            "seconds",
            "CPU of a core",
            "of it plans",
            "plans",
        ]
        head += ["requests/h (audit log)", "of them Lease"]
        lines += ["", table(head, rows), "", f"goal: CPU < {GOAL_CPU_PERCENT:g} % of a core"]
        if given.labels:
            write_to_etcd(cluster.etcd_url, empty_nodes(shapes, size.nodes, given.labels))
            time.sleep(2 * RESYNC_SECONDS)
            with life.going_on(given.sessions):
                samples = time_labels(cluster, shapes, size.nodes, given.labels)
            lines.append(
                f"from the puller's word to the label: p50 {figure(median(samples))} s, p99"
                f" {figure(quantile(samples, 0.99))} s, {len(samples)} nodes in turns, under the"
                " same churn"
            )
        now, peak = replica.memory_mib()
        lines.append(f"memory at the end: {now:.0f} MiB, at most {peak:.0f} MiB")
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.controllers", description=__doc__)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=20_000)
    parser.add_argument("--seconds", type=float, default=180.0, help="of rest, and of churn")
    parser.add_argument(
        "--settle", type=float, default=60.0, help="seconds before it is called rest"
    )
    parser.add_argument(
        "--sessions", type=float, default=1.0, help="launches a second, and as many ends"
    )
    parser.add_argument("--labels", type=int, default=100, help="nodes whose image arrives")
    parser.add_argument("--plan-nodes", type=int, default=5000)
    parser.add_argument("--plan-pods", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5, help="of plans")
    parser.add_argument("--plans-only", action="store_true")
    parser.add_argument("--cluster-only", action="store_true")
    given = parser.parse_args(argv)
    print(f"controllers: {machine()}")
    if not given.cluster_only:
        size = Size(nodes=given.plan_nodes, pods=given.plan_pods)
        print(
            f"\nplans, {size.nodes} nodes, {size.pods} pods, processor time, {given.rounds}"
            " rounds\n"
        )
        print(time_plans(size, given.rounds), flush=True)
    if not given.plans_only:
        size = Size(nodes=given.nodes, pods=given.pods)
        print(f"\na replica, {size.nodes} nodes, {size.pods} pods\n", flush=True)
        print(measure_cluster(size, given))
    return 0


if __name__ == "__main__":
    sys.exit(main())
