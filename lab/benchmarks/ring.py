"""Reviews with 1,000 nodes: builds, whose ring has all of them, and 50 pods a second while nodes
change.

`python -m benchmarks.ring`. First in one process, without HTTP: whole reviews, beside the Go
webhook in the same run, in processor time. Then over TLS at a steady pace (open loop: a slow answer
doesn't delay the next review), with 0 and with 100 node changes a second, in turns. The nodes come
from `watchsource`, which plays the API server: a real one and etcd would take the cores whose
stalls are measured.
"""

from __future__ import annotations

import argparse
import copy
import json
import subprocess
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
from webhook.facts import Facts
from webhook.review import Reviewer
from webhook.settings import read_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.servers import Server

T = TypeVar("T")
NAMESPACE: Final = "bench-ring"
REPEATS: Final = 20
GOAL_MS, GOAL_CHURN = 5.0, 1.2


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
    first, repeated = [], []
    for body in reviews:
        first.append(_microseconds(partial(reviewer.review, body)))
        repeated.append(
            median(_microseconds(partial(reviewer.review, body)) for _ in range(REPEATS))
        )
    return first, repeated


def time_go(policy: Path, facts: Path, files: Sequence[Path]) -> tuple[list[float], list[float]]:
    """The same whole reviews by the Go webhook, in µs of all its threads."""
    command = [
        str(program("webhook")),
        "-mode=rules",
        f"-policy={policy}",
        f"-facts={facts}",
        f"-time={REPEATS}",
    ]
    done = subprocess.run([*command, *map(str, files)], capture_output=True, text=True, check=True)
    told = [json.loads(line) for line in done.stdout.splitlines()]
    return [one["first_us"] for one in told], [one["repeated_us"] for one in told]


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


def _write_facts(path: Path, nodes: int) -> Path:
    """The same facts as objects, for the Go webhook."""
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    names = _node_names(nodes)
    objects = {
        "nodes": [
            {"metadata": {"name": name, "labels": _labels(number)}, "status": ready}
            for number, name in enumerate(names)
        ],
        "pods": [
            {
                "metadata": {
                    "name": f"dind-{name}",
                    "namespace": NAMESPACE,
                    "labels": {"component": "image-builder", "app": "binder"},
                },
                "spec": {"nodeName": name},
                "status": ready,
            }
            for name in names
        ],
    }
    path.write_text(json.dumps(objects))
    return path


def report_in_process(folder: Path, policy: Path, nodes: int, rounds: int) -> str:
    """Rounds of ours and Go's in turns; every round has new processes or caches, so every first is
    a first.
    """
    builds = [
        pod for pod in make_pods() if pod["metadata"]["labels"]["component"] == "binderhub-build"
    ]
    files = write_reviews(folder / "builds", builds)
    bodies = [path.read_bytes() for path in files]
    facts = _write_facts(folder / "facts.json", nodes)
    found: dict[str, list[tuple[list[float], list[float]]]] = {"review": [], "review in Go": []}
    for number in range(rounds):
        found["review"].append(time_reviews(policy, nodes, bodies))
        found["review in Go"].append(time_go(policy, facts, files))
        say(f"  round {number + 1} of {rounds} in one process")
    rows = []
    for what, results in found.items():
        first, repeated = [one[0] for one in results], [one[1] for one in results]
        rows.append(
            [
                what,
                spread(median(one) / 1e3 for one in first),
                spread(quantile(one, 0.95) / 1e3 for one in first),
                spread(median(one) for one in repeated),
            ]
        )
    head = ["what", "first, median ms", "first, 95th percentile ms", "repeated, µs"]
    ours, go = found["review"], found["review in Go"]
    first_ms = median(median(one[0]) / 1e3 for one in ours)
    shares = ratios([median(one[0]) for one in ours], [median(one[0]) for one in go])
    again = ratios([median(one[1]) for one in ours], [median(one[1]) for one in go])
    return "\n".join(
        [
            table(head, rows),
            "",
            f"first review: {first_ms:.2f} ms, goal < {GOAL_MS:g} ms; Roost / Go {spread(shares)}x",
            f"repeated: Roost / Go {spread(again)}x",
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
    peers: Sequence[Server],
    files: Sequence[Path],
    given: argparse.Namespace,
) -> dict[tuple[str, int], list[JSONObject]]:
    """Load each server at rest and under churn, in turns."""
    found: dict[tuple[str, int], list[JSONObject]] = {}
    flags = (f"-rate={given.rate}", "-connections=16", f"-count={given.reviews}", "-seconds=120")
    for number in range(given.rounds):
        # Rest and churn change places each round: a trend of the machine's load then helps neither.
        paces = (0, given.churn) if number % 2 == 0 else (given.churn, 0)
        for pace in paces:
            source.set_rate(pace)
            turn = number % len(peers)
            for server in (*peers[turn:], *peers[:turn]):
                result = servers.load(server, files, *flags)
                found.setdefault((server.name, pace), []).append(result)
                said = (
                    f"p50 {result['p50_ms']:6.2f} p99 {result['p99_ms']:6.2f} max"
                    f" {result['max_ms']:6.1f} ms"
                )
                say(f"  round {number + 1}, {pace:3} changes/s, {server.name:6} {said}")
    source.set_rate(0)
    return found


def report_churn(found: dict[tuple[str, int], list[JSONObject]], churn: int) -> str:
    """The table and the ratios."""
    rows = [
        [
            name,
            str(pace),
            spread(one["p50_ms"] for one in results),
            spread(one["p99_ms"] for one in results),
            spread(one["max_ms"] for one in results),
            spread(one["cpu_us"] for one in results),
            str(sum(one["failed"] for one in results)),
        ]
        for (name, pace), results in sorted(found.items())
    ]
    head = ["server", "node changes/s", "p50 ms", "p99 ms", "max ms", "CPU µs a review", "failed"]
    lines = [table(head, rows), ""]
    for name in ("roost", "rules", "empty"):
        shares = ratios(
            [one["p99_ms"] for one in found[name, churn]], [one["p99_ms"] for one in found[name, 0]]
        )
        goal = f"  {verdict(median(shares), at_most=GOAL_CHURN)}" if name == "roost" else ""
        lines.append(f"{name}: p99 at {churn} changes/s / at rest: {spread(shares)}x{goal}")
    lines.append(
        "`empty` watches nothing: what it shows is the machine's own noise, and the load's"
    )
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ring", description=__doc__)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--rate", type=int, default=50, help="reviews a second")
    parser.add_argument("--reviews", type=int, default=1000, help="a server, a pace and a round")
    parser.add_argument("--churn", type=int, default=100, help="node changes a second")
    given = parser.parse_args(argv)
    print(f"ring: {machine()}; {given.nodes} nodes, {given.rounds} rounds")
    run = RunFolder()
    try:
        policy = write_policy(run.path / "policy" / "release.json", NAMESPACE)
        print(report_in_process(run.path, policy, given.nodes, given.rounds))
        print(f"\n{given.rate} reviews a second over TLS, {given.reviews} a run")
        source = WatchSource(run, given.nodes)
        servers = Servers(
            run, source.kubeconfig, dict.fromkeys(("rules", "roost"), policy), {"roost": NAMESPACE}
        )
        cores = server_cores()
        peers = [
            servers.start_roost(cores=cores),
            *(servers.start_go(one, cores=cores) for one in ("rules", "empty")),
        ]
        said = ", ".join(
            f"{one.name} ready in {one.ready_seconds:.2f} s, {one.memory_mib()[0]:.0f} MiB"
            for one in peers
        )
        print(f"with {given.nodes} nodes: {said}")
        files = write_reviews(run.path / "mixed", make_pods())
        print(report_churn(measure_churn(servers, source, peers, files, given), given.churn))
        print(
            "memory after it:"
            f" {', '.join(f'{one.name} {one.memory_mib()[1]:.0f} MiB at most' for one in peers)}"
        )
    finally:
        run.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
