"""What Roost's pods cost the real kube-scheduler, beside pods of the cluster's own profile.

`python -m benchmarks.scheduling --nodes 5000 --users 4`. Fake nodes, with so many users' pods on
each. In turns: pods are created, a scheduler starts, and all get bound. Three figures: pods bound a
second, the milliseconds of the scheduling algorithm alone, from kube-scheduler's own histogram, and
those of the process's processor time. Its client's rate limit (50 requests a second by default) is
lifted, or it would be all one sees.
"""

from __future__ import annotations

import argparse
import copy
import re
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final, NamedTuple

from benchmarks.figures import machine, say, spread, table
from benchmarks.policy import RELEASE, rendered_scheduler_config
from benchmarks.scene import (
    NAMESPACE,
    Size,
    all_nodes,
    make_shapes,
    manifests,
    node_name,
    one_user,
    store_shapes,
    write_to_etcd,
)
from benchmarks.stage import make_pods
from roost_core.placement.labels import scheduler_name
from roost_core.placement.warm_sets import with_weights
from tests.harness.controlplane import ControlPlane
from tests.harness.pods import running_status
from tests.harness.scheduler import scheduler_config, start_scheduler
from tests.harness.waiting import wait_until
from webhook.patch import named_node

if TYPE_CHECKING:
    from collections.abc import Mapping

    from roost_core.objects.fields import JSONObject
    from tests.harness.scheduler import Scheduler

ALGORITHM: Final = "scheduler_scheduling_algorithm_duration_seconds"
# For the shapes alone.
SMALL: Final = Size(nodes=10, pods=100)
# Nodes that the warm set of a pod names.
WARM_NODES: Final = 10
# Pods one after the other that have the same warm set.
SAME_SET: Final = 40


class Way(NamedTuple):
    """Whose profile binds the pods, and which terms they have."""

    title: str
    is_roosts: bool
    # 0: kube-scheduler's own choice, 50 - nodes/125 percent, at least 5.
    percentage: int
    has_pod_terms: bool = False


ROOST: Final = Way("Roost, as with more than 500 nodes", is_roosts=True, percentage=100)
WITH_TERMS: Final = ROOST._replace(title="Roost, with `join` and `avoid`", has_pod_terms=True)
WAYS: Final = (
    Way("the cluster's own profile", is_roosts=False, percentage=0),
    Way("the same, all nodes scored", is_roosts=False, percentage=100),
    ROOST,
    WITH_TERMS,
)


def user_pod(number: int, way: Way, nodes: int) -> JSONObject:
    """A user as the hub sends it, or as Roost leaves it. nodes: how many there are."""
    pod = copy.deepcopy(make_pods()[0])
    pod["metadata"] |= {"name": f"user-{number}", "namespace": NAMESPACE}
    spec = pod["spec"]
    # A volume claim that nobody provides would keep the pod pending.
    spec["volumes"] = []
    spec["containers"][0]["volumeMounts"] = []
    if not way.is_roosts:
        return pod
    spec["schedulerName"] = scheduler_name(RELEASE, NAMESPACE, "user")
    affinity = spec["affinity"]
    first = number // SAME_SET * WARM_NODES
    names = [node_name((first + place) % nodes) for place in range(min(nodes, WARM_NODES))]
    affinity["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"] += [
        {"weight": weight, "preference": named_node(name)} for name, weight in with_weights(names)
    ]
    if way.has_pod_terms:
        affinity["podAffinity"] = _preferred(100, "singleuser-server")
        affinity["podAntiAffinity"] = _preferred(1, "binderhub-build")
    return pod


def _preferred(weight: int, component: str) -> JSONObject:
    term = {
        "labelSelector": {"matchLabels": {"component": component}},
        "topologyKey": "kubernetes.io/hostname",
    }
    return {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": weight, "podAffinityTerm": term}
        ]
    }


def configuration(way: Way) -> JSONObject:
    """The KubeSchedulerConfiguration of a way, without the client's rate limit."""
    found = rendered_scheduler_config(NAMESPACE) if way.is_roosts else scheduler_config()
    found["percentageOfNodesToScore"] = way.percentage
    found["clientConnection"] = {"qps": 5000, "burst": 5000}
    return found


def write_scene(cluster: ControlPlane, nodes: int, users_of_a_node: int) -> None:
    """Nodes, and users as Roost leaves them with more than 500 nodes."""
    user = user_pod(0, ROOST, nodes)
    user["spec"]["nodeName"] = "node"
    user["status"] = {**running_status(user, "10.128.0.2"), "hostIP": "10.0.0.2"}
    shapes = store_shapes(cluster, {"node": make_shapes(manifests(SMALL))["node"], "user": user})
    write_to_etcd(cluster.etcd_url, all_nodes(shapes, Size(nodes=nodes, pods=0)))
    shapes["user"]["spec"]["volumes"] = []
    users = (
        one_user(shapes["user"], number, number % nodes)
        for number in range(nodes * users_of_a_node)
    )
    write_to_etcd(cluster.etcd_url, users)


def run_once(cluster: ControlPlane, way: Way, pods: int, nodes: int) -> dict[str, float]:
    """Bind the pods; pods a second, and milliseconds of algorithm and of the whole process's CPU a
    pod.
    """
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: cluster.api.create(user_pod(number, way, nodes)), range(pods)))
    with start_scheduler(cluster, configuration(way), leader_elect=False) as scheduler:
        scheduler.wait_serving()
        # From the first bound pod on: its start, and its first lists, are not what is measured.
        first = wait_until(
            lambda: _algorithm(scheduler)[0],
            300,
            "the first pod to be bound",
            interval_seconds=0.01,
        )
        started = time.monotonic()
        cpu_before = _cpu_seconds(scheduler)
        wait_until(
            lambda: _algorithm(scheduler)[0] >= pods,
            900,
            "all pods to be bound",
            interval_seconds=0.05,
        )
        elapsed = time.monotonic() - started
        count, seconds = _algorithm(scheduler)
        cpu_seconds = _cpu_seconds(scheduler) - cpu_before
    for number in range(pods):
        path = f"/api/v1/namespaces/{NAMESPACE}/pods/user-{number}"
        cluster.api.delete(path, {"gracePeriodSeconds": 0})
    return {
        "pods_per_second": (count - first) / elapsed,
        "algorithm_ms": seconds / count * 1e3,
        "cpu_ms": cpu_seconds / max(1.0, count - first) * 1e3,
    }


def _algorithm(scheduler: Scheduler) -> tuple[float, float]:
    """How many pods the algorithm has placed, and the seconds it took."""
    found = dict(
        re.findall(
            rf"^{ALGORITHM}_(count|sum)(?:{{[^}}]*}})? (\S+)$", scheduler.metrics(), re.MULTILINE
        )
    )
    return float(found.get("count", 0)), float(found.get("sum", 0))


def _cpu_seconds(scheduler: Scheduler) -> float:
    """What the process has used, with its watches, bindings and these very questions."""
    found = re.search(r"^process_cpu_seconds_total (\S+)$", scheduler.metrics(), re.MULTILINE)
    return float(found[1]) if found else 0.0


def main(argv: list[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scheduling", description=__doc__)
    parser.add_argument("--nodes", type=int, default=500)
    parser.add_argument("--users", type=int, default=0, help="on each node before")
    parser.add_argument("--pods", type=int, default=300, help="a way and a round")
    parser.add_argument("--rounds", type=int, default=4)
    given = parser.parse_args(argv)
    print(
        f"scheduling: {machine()}; {given.rounds} rounds of {given.pods} pods on {given.nodes}"
        f" nodes with {given.users} users each"
    )
    results: dict[Way, list[Mapping[str, float]]] = {way: [] for way in WAYS}
    with ControlPlane(controllers=()) as cluster:
        cluster.create_namespace(NAMESPACE)
        write_scene(cluster, given.nodes, given.users)
        say(f"  {given.nodes} nodes stand")
        for number in range(given.rounds):
            for way in WAYS if number % 2 else reversed(WAYS):
                result = run_once(cluster, way, given.pods, given.nodes)
                results[way].append(result)
                figures = (
                    f"{result['pods_per_second']:.0f} pods/s, algorithm"
                    f" {result['algorithm_ms']:.2f} ms, processor {result['cpu_ms']:.2f} ms a pod"
                )
                say(f"  round {number + 1}, {way.title}: {figures}")
    rows = [
        [
            way.title,
            *(
                spread(result[figure] for result in results[way])
                for figure in ("pods_per_second", "algorithm_ms", "cpu_ms")
            ),
        ]
        for way in WAYS
    ]
    head = ["pods", "bound/s", "algorithm, ms a pod", "processor time, ms a pod"]
    print(table(head, rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
