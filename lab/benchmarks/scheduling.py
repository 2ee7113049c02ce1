"""What `percentageOfNodesToScore: 100` costs: the real kube-scheduler with Roost's configuration,
100 and default.

`python -m benchmarks.scheduling`. Fake nodes; users' pods with the terms that Roost gives them. For
each percentage in turns: pods are created, a scheduler starts, and all get bound. Two figures: pods
bound a second, and the seconds of the scheduling algorithm alone, from kube-scheduler's own
histogram. Its client's rate limit (50 requests a second by default) is lifted, or it would be all
one sees.
"""

from __future__ import annotations

import argparse
import copy
import re
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from statistics import median
from typing import TYPE_CHECKING, Any, Final

import yaml

from benchmarks.figures import machine, ratios, say, spread, table
from benchmarks.policy import RELEASE, rendered
from benchmarks.stage import make_pods
from roost_core.placement.labels import scheduler_name
from tests.harness.controlplane import ControlPlane
from tests.harness.nodes import FakeNodes
from tests.harness.scheduler import start_scheduler
from tests.harness.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.harness.scheduler import Scheduler

NAMESPACE: Final = "bench-scheduling"
# 0: kube-scheduler's own choice, 50 - nodes/125 percent, at least 5.
PERCENTAGES: Final = (100, 0)
ALGORITHM: Final = "scheduler_scheduling_algorithm_duration_seconds"


def user_pod(number: int) -> dict[str, Any]:
    """A user as Roost leaves it: the user profile, its preferred node term, and the pull of other
    users.
    """
    pod = copy.deepcopy(make_pods()[0])
    pod["metadata"]["name"] = f"user-{number}"
    spec = pod["spec"]
    spec["schedulerName"] = scheduler_name(RELEASE, NAMESPACE, "user")
    # A volume claim that nobody provides would keep the pod pending.
    spec["volumes"] = []
    spec["containers"][0]["volumeMounts"] = []
    term = {
        "labelSelector": {"matchLabels": {"component": "singleuser-server"}},
        "topologyKey": "kubernetes.io/hostname",
    }
    spec["affinity"]["podAffinity"] = {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 100, "podAffinityTerm": term}
        ]
    }
    return pod


def configuration(percentage: int) -> dict[str, Any]:
    """The rendered KubeSchedulerConfiguration with this percentage, without the client's rate
    limit.
    """
    for manifest in rendered(NAMESPACE):
        if manifest["kind"] == "ConfigMap" and "config.yaml" in manifest["data"]:
            found: dict[str, Any] = yaml.safe_load(manifest["data"]["config.yaml"])
            found["percentageOfNodesToScore"] = percentage
            found["clientConnection"] = {"qps": 5000, "burst": 5000}
            return found
    raise RuntimeError("found no scheduler configuration in what roost render gives")


def run_once(cluster: ControlPlane, percentage: int, pods: int) -> dict[str, float]:
    """Bind the pods; pods a second, and milliseconds of algorithm and of the whole process's CPU a
    pod.
    """
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: cluster.api.create(user_pod(number), NAMESPACE), range(pods)))
    with start_scheduler(cluster, configuration(percentage), leader_elect=False) as scheduler:
        scheduler.wait_serving()
        # From the first bound pod on: its start, and its first lists, are not what is measured.
        first = wait_until(
            lambda: _algorithm(scheduler)[0], 60, "the first pod to be bound", interval_seconds=0.01
        )
        started = time.monotonic()
        cpu_before = _cpu_seconds(scheduler)
        wait_until(
            lambda: _algorithm(scheduler)[0] >= pods,
            180,
            "all pods to be bound",
            interval_seconds=0.05,
        )
        elapsed = time.monotonic() - started
        count, seconds = _algorithm(scheduler)
        cpu_seconds = _cpu_seconds(scheduler) - cpu_before
    cluster.api.delete(f"/api/v1/namespaces/{NAMESPACE}/pods", gracePeriodSeconds=0)
    wait_until(
        lambda: not cluster.api.list(f"/api/v1/namespaces/{NAMESPACE}/pods"),
        60,
        "the pods to be gone",
    )
    return {
        "pods_per_second": (count - first) / elapsed,
        "algorithm_ms": seconds / count * 1e3,
        "cpu_ms": cpu_seconds / (count - first) * 1e3,
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
    parser.add_argument("--pods", type=int, default=300, help="a percentage and a round")
    parser.add_argument("--rounds", type=int, default=4)
    given = parser.parse_args(argv)
    print(
        f"scheduling: {machine()}; {given.rounds} rounds of {given.pods} pods on {given.nodes}"
        " nodes"
    )
    found: dict[int, list[Mapping[str, float]]] = {percentage: [] for percentage in PERCENTAGES}
    with ControlPlane(controllers=()) as cluster:
        cluster.create_namespace(NAMESPACE)
        names = [f"node-{number:04d}" for number in range(given.nodes)]
        labels = {"hub.jupyter.org/node-purpose": "user"}
        FakeNodes(cluster.api).create_many(names, cpu="16", memory="64Gi", labels=labels)
        say(f"  {given.nodes} nodes stand")
        for number in range(given.rounds):
            for percentage in PERCENTAGES if number % 2 else reversed(PERCENTAGES):
                result = run_once(cluster, percentage, given.pods)
                found[percentage].append(result)
                said = (
                    f"{result['pods_per_second']:.0f} pods/s, algorithm"
                    f" {result['algorithm_ms']:.2f} ms a pod"
                )
                say(f"  round {number + 1}, percentageOfNodesToScore {percentage}: {said}")
    rows = [
        [
            str(percentage) + (" (kube-scheduler's own choice)" if percentage == 0 else ""),
            spread(result["pods_per_second"] for result in results),
            spread(result["algorithm_ms"] for result in results),
        ]
        for percentage, results in found.items()
    ]
    print(table(["percentageOfNodesToScore", "pods bound/s", "algorithm, ms a pod"], rows))
    cost = ratios(
        [result["algorithm_ms"] for result in found[100]],
        [result["algorithm_ms"] for result in found[0]],
    )
    rate = ratios(
        [result["pods_per_second"] for result in found[100]],
        [result["pods_per_second"] for result in found[0]],
    )
    print(
        f"\n100 / default: algorithm {spread(cost)}x, pods bound a second {spread(rate)}x (median"
        f" {median(rate):.2f})"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
