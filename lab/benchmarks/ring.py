"""Reviews with 1,000 nodes: builds, whose ring has all of them, and 50 pods a second while nodes
change.

`python -m benchmarks.ring`. First in one process, without HTTP: whole reviews, in processor time.
Then over TLS at a steady pace (open loop: a slow answer
doesn't delay the next review), with 0 and with 100 node changes a second, in turns. The nodes come
from `watchsource`, which plays the API server: a real one and etcd would take the cores whose
stalls are measured.
"""

from __future__ import annotations

import argparse
import copy
import json
import sys
import time
import urllib.request
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Final, TypeVar

import yaml

from benchmarks.figures import machine, quantile, ratios, say, spread, table, verdict
from benchmarks.policy import pulled_labels, write_policy
from benchmarks.programs import program
from benchmarks.servers import Servers, load_cores, pinned, server_cores
from benchmarks.stage import make_pods, review_of
from roost_core.objects.fields import JSONObject
from roost_core.objects.node import Node
from roost_core.placement.nodes import Nodes
from tests.harness.ports import ReservedPort
from tests.harness.processes import RunFolder
from tests.harness.waiting import wait_until
from webhook.facts.facts import Facts
from webhook.review import Reviewer
from webhook.webhook_settings import read_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.servers import Server

T = TypeVar("T")
NAMESPACE: Final = "bench-ring"
REPEATS: Final = 20
GOAL_MS = 5.0
GOAL_CHURN = 1.2


# In one process


def time_reviews(
    policy: Path, nodes: int, reviews: Sequence[bytes]
) -> tuple[list[float], list[float]]:
    """Whole reviews, in µs of processor time: the first of each repository, and the median of those
    after it.
    """
    settings = read_settings(policy.read_bytes())
    facts = _facts(nodes)
    reviewer = Reviewer(lambda: settings, lambda: facts, time.monotonic, lambda *_: None)
    first = []
    repeated = []
    for body in reviews:
        first.append(_microseconds(partial(reviewer.review, body)))
        repeated.append(
            median(_microseconds(partial(reviewer.review, body)) for _ in range(REPEATS))
        )
    return first, repeated


def _microseconds(call: Callable[[], object]) -> float:
    return _timed(call)[1]


def _timed(call: Callable[[], T]) -> tuple[T, float]:
    """What `call` returns, and the µs of processor time it took this thread: others' work meanwhile
    isn't ours.
    """
    started = time.thread_time_ns()
    result = call()
    return result, (time.thread_time_ns() - started) / 1e3


def _node_names(nodes: int) -> list[str]:
    return [f"bench-node-{number:05d}" for number in range(nodes)]


def _labels(number: int) -> dict[str, str]:
    return dict.fromkeys(pulled_labels(NAMESPACE), "true") if number % 2 == 0 else {}


def _facts(nodes: int) -> Facts:
    names = _node_names(nodes)
    return Facts(
        nodes=Nodes([Node(name=name, labels=_labels(number)) for number, name in enumerate(names)]),
        builder_nodes={"build": frozenset(names)},
    )


def report_in_process(folder: Path, policy: Path, nodes: int, rounds: int) -> str:
    """Every round has new caches, so every first review is a first."""
    builds = [
        pod for pod in make_pods() if pod["metadata"]["labels"]["component"] == "binderhub-build"
    ]
    bodies = [path.read_bytes() for path in write_reviews(folder / "builds", builds)]
    firsts: list[list[float]] = []
    repeats: list[list[float]] = []
    for number in range(rounds):
        first, repeated = time_reviews(policy, nodes, bodies)
        firsts.append(first)
        repeats.append(repeated)
        say(f"  round {number + 1} of {rounds} in one process")
    row = [
        spread(median(times) / 1e3 for times in firsts),
        spread(quantile(times, 0.95) / 1e3 for times in firsts),
        spread(median(times) for times in repeats),
    ]
    first_ms = median(median(times) / 1e3 for times in firsts)
    return "\n".join(
        [
            table(["first, median ms", "first, 95th percentile ms", "repeated, µs"], [row]),
            "",
            f"first review: {first_ms:.2f} ms, goal < {GOAL_MS:g} ms",
        ]
    )


def write_reviews(folder: Path, pods: Sequence[JSONObject]) -> list[Path]:
    """One review a pod, in files."""
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for number, given in enumerate(pods):
        pod = copy.deepcopy(given)
        pod["metadata"]["namespace"] = NAMESPACE
        pod["spec"].setdefault("schedulerName", "default-scheduler")
        path = folder / f"{number:03d}.json"
        path.write_text(json.dumps(review_of(pod, NAMESPACE, number)))
        files.append(path)
    return files


# While nodes change


class WatchSource:
    """`watchsource` in a process of its own, on the cores of the load."""

    def __init__(self, run: RunFolder, nodes: int) -> None:
        port = ReservedPort()
        arguments = [
            f"-nodes={nodes}",
            f"-namespace={NAMESPACE}",
            f"-images={','.join(pulled_labels(NAMESPACE))}",
        ]
        command = pinned(
            [str(program("watchsource")), *arguments, f"-port={port.release()}"], load_cores()
        )
        self.url = f"http://127.0.0.1:{port.number}"
        self._process = run.start("watchsource", Path(command[0]), command[1:])
        wait_until(self._answers, 30, "watchsource to listen", explain=self._process.tail)
        self.kubeconfig = run.path / "watchsource.kubeconfig"
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "watchsource",
            "clusters": [{"name": "watchsource", "cluster": {"server": self.url}}],
            "users": [{"name": "nobody", "user": {}}],
            "contexts": [
                {"name": "watchsource", "context": {"cluster": "watchsource", "user": "nobody"}}
            ],
        }
        self.kubeconfig.write_text(yaml.safe_dump(config))

    def set_rate(self, changes_per_second: int) -> None:
        """0: rest, with all nodes as they were at first."""
        request = urllib.request.Request(
            f"{self.url}/rate?per_second={changes_per_second}", method="POST"
        )
        with urllib.request.urlopen(request, timeout=10):
            pass
        time.sleep(1.0)  # the change of pace has reached the watches

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/readyz", timeout=5):
                return True
        except OSError:
            return False


def measure_churn(
    servers: Servers,
    source: WatchSource,
    server: Server,
    files: Sequence[Path],
    given: argparse.Namespace,
) -> dict[int, list[JSONObject]]:
    """Load the webhook at rest and under churn, in turns; by node changes a second."""
    found: dict[int, list[JSONObject]] = {0: [], given.churn: []}
    flags = (f"-rate={given.rate}", "-connections=16", f"-count={given.reviews}", "-seconds=120")
    for number in range(given.rounds):
        # Rest and churn change places each round: a trend of the machine's load then helps neither.
        for pace in (0, given.churn) if number % 2 == 0 else (given.churn, 0):
            source.set_rate(pace)
            result = servers.load(server, files, *flags)
            found[pace].append(result)
            say(
                f"  round {number + 1}, {pace:3} changes/s, p50 {result['p50_ms']:6.2f} p99"
                f" {result['p99_ms']:6.2f} max {result['max_ms']:6.1f} ms"
            )
    source.set_rate(0)
    return found


def report_churn(found: dict[int, list[JSONObject]], churn: int) -> str:
    """The table and the ratio."""
    columns = ("p50_ms", "p99_ms", "max_ms", "cpu_us")
    rows = [
        [
            str(pace),
            *(spread(result[column] for result in results) for column in columns),
            str(sum(result["failed"] for result in results)),
        ]
        for pace, results in sorted(found.items())
    ]
    head = ["node changes/s", "p50 ms", "p99 ms", "max ms", "CPU µs a review", "failed"]
    shares = ratios(
        [result["p99_ms"] for result in found[churn]], [result["p99_ms"] for result in found[0]]
    )
    goal = verdict(median(shares), at_most=GOAL_CHURN)
    ratio = f"p99 at {churn} changes/s / at rest: {spread(shares)}x  {goal}"
    return "\n".join([table(head, rows), "", ratio])


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ring", description=__doc__)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--rate", type=int, default=50, help="reviews a second")
    parser.add_argument("--reviews", type=int, default=1000, help="a pace and a round")
    parser.add_argument("--churn", type=int, default=100, help="node changes a second")
    given = parser.parse_args(argv)
    print(f"ring: {machine()}; {given.nodes} nodes, {given.rounds} rounds")
    run = RunFolder()
    try:
        policy = write_policy(run.path / "policy" / "release.json", NAMESPACE)
        print(report_in_process(run.path, policy, given.nodes, given.rounds))
        print(f"\n{given.rate} reviews a second over TLS, {given.reviews} a run")
        source = WatchSource(run, given.nodes)
        servers = Servers(run, source.kubeconfig, {"roost": policy}, {"roost": NAMESPACE})
        server = servers.start_roost(cores=server_cores())
        fresh, _ = server.memory_mib()
        print(f"with {given.nodes} nodes: ready in {server.ready_seconds:.2f} s, {fresh:.0f} MiB")
        files = write_reviews(run.path / "mixed", make_pods())
        print(report_churn(measure_churn(servers, source, server, files, given), given.churn))
        _, peak = server.memory_mib()
        print(f"memory after it: {peak:.0f} MiB at most")
    finally:
        run.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
