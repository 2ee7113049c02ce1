"""Pods created per second through a real API server: with the rules in Go, with Roost, and with the
rules in CEL.

`python -m benchmarks.admission`. Each way has its own namespace, all stand side by side, and every
round goes through all of them: so a slow moment of the machine hits all alike. 16 clients; the pods
are deleted between the rounds. The webhook entries are those that `roost render` makes, but for the
URL and `failurePolicy: Fail`, so that nothing slips by unseen.
"""

from __future__ import annotations

import argparse
import base64
import sys
import time
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Final

from benchmarks import equality
from benchmarks.figures import machine, ratios, say, spread, table, verdict
from benchmarks.policy import RELEASE, rendered
from benchmarks.programs import program
from benchmarks.servers import run_json
from benchmarks.stage import NAMESPACES, Stage, make_pods
from roost_core.objects.fields import JSONObject
from roost_core.objects.pod import DEFAULT_SCHEDULER
from tests.harness.controlplane import ControlPlane
from tests.harness.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.servers import Server

WAYS: Final = tuple(NAMESPACES)
TITLES: Final = {"rules": "the rules in Go", "roost": "Roost", "policy": "MutatingAdmissionPolicy"}
# How to tell from a stored pod that it was placed.
MARK: Final = f'"schedulerName":"{RELEASE}.'
GOAL_THROUGHPUT = 1.0
GOAL_P99 = 1.1


def register(stage: Stage, server: Server) -> None:
    """Have the API server call `server` for the pods of its namespace."""
    ca = base64.b64encode(stage.servers.certificates.ca.read_bytes()).decode()
    settings = (
        f"webhook.url={server.url}",
        "webhook.certificates.mode=secret",
        f"webhook.certificates.caBundle={ca}",
        "webhook.failurePolicy=Fail",
    )
    for manifest in rendered(NAMESPACES[server.name], *settings):
        if manifest["kind"] == "MutatingWebhookConfiguration":
            stage.cluster.api.create(manifest)


def register_policy(stage: Stage) -> None:
    """Have the API server itself apply the static rules: the chart's `admission.mode: policy`."""
    for manifest in rendered(NAMESPACES["policy"], "admission.mode=policy"):
        if manifest["kind"].startswith("MutatingAdmissionPolicy"):
            stage.cluster.api.create(manifest)


def wait_until_called(stage: Stage) -> None:
    """Return once each way places the pods of its namespace."""
    pod = make_pods()[0]

    def is_marked(way: str) -> bool:
        stored = stage.cluster.api.create(pod, NAMESPACES[way], dryRun="All")
        return bool(stored["spec"]["schedulerName"] != DEFAULT_SCHEDULER)

    for way in WAYS:
        wait_until(partial(is_marked, way), 30, f"pods in {NAMESPACES[way]} to be placed")


def measure(stage: Stage, rounds: int, pods: int) -> dict[str, list[JSONObject]]:
    """Create pods in each way in each round; what `createpods` prints."""
    files = [str(path) for path in stage.write_pods(stage.cluster.folder / "pods")]
    found: dict[str, list[JSONObject]] = {way: [] for way in WAYS}
    for number in range(-1, rounds):
        turn = number % len(WAYS)
        for way in (*WAYS[turn:], *WAYS[:turn]):
            command = [
                str(program("createpods")),
                f"-kubeconfig={stage.cluster.kubeconfig}",
                "-clients=16",
            ]
            command += [
                f"-namespace={NAMESPACES[way]}",
                f"-count={pods}",
                "-seconds=60",
                f"-prefix=round{number + 1}",
            ]
            result = run_json([*command, f"-mark={MARK}", *files])
            time.sleep(0.2)  # deletions reach the watches
            if number < 0:
                continue  # warm-up: caches, connections, compiled expressions
            found[way].append(result)
            figures = (
                f"{result['pods_per_second']:6.0f} pods/s p50 {result['p50_ms']:6.2f} p99"
                f" {result['p99_ms']:6.2f} ms"
            )
            say(
                f"  round {number + 1}, {TITLES[way]:24} {figures}, placed"
                f" {result['marked']}/{result['pods']}"
            )
    return found


def report(found: dict[str, list[JSONObject]]) -> str:
    """The table and the ratios."""
    rows = [
        [
            TITLES[way],
            spread(result["pods_per_second"] for result in results),
            spread(result["p50_ms"] for result in results),
            spread(result["p99_ms"] for result in results),
            str(sum(result["marked"] for result in results)),
            str(sum(result["failed"] for result in results)),
        ]
        for way, results in found.items()
    ]
    head = ["way", "pods/s", "p50 ms", "p99 ms", "placed", "failed"]
    lines = [table(head, rows), ""]
    for peer in ("rules", "policy"):
        throughput = ratios(
            [r["pods_per_second"] for r in found["roost"]],
            [r["pods_per_second"] for r in found[peer]],
        )
        tail = ratios([r["p99_ms"] for r in found["roost"]], [r["p99_ms"] for r in found[peer]])
        goals = ("", "")
        if peer == "rules":
            goals = (
                f" ({verdict(median(throughput), at_least=GOAL_THROUGHPUT)})",
                f" ({verdict(median(tail), at_most=GOAL_P99)})",
            )
        lines.append(
            f"Roost / {TITLES[peer]}: pods/s {spread(throughput)}x{goals[0]}, p99"
            f" {spread(tail)}x{goals[1]}"
        )
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.admission", description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--pods", type=int, default=1000, help="a way and a round")
    parser.add_argument("--nodes", type=int, default=20)
    given = parser.parse_args(argv)
    if equality.main():
        return 1
    print(
        f"admission: {machine()}; {given.rounds} rounds of {given.pods} pods a way, 16 clients;"
        f" {given.nodes} nodes"
    )
    with ControlPlane(controllers=()) as cluster:
        stage = Stage(cluster, nodes=given.nodes)
        servers = (stage.servers.start_go(), stage.servers.start_roost())
        for server in servers:
            register(stage, server)
        register_policy(stage)
        wait_until_called(stage)
        print(report(measure(stage, given.rounds, given.pods)))
        print(
            "MutatingAdmissionPolicy: the chart's admission.mode policy; no ring, no bound on load,"
            " gate prefers"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
