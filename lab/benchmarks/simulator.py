"""How fast the simulator is, beside the real kube-scheduler deciding on the same pods, and how its
memory grows.

`python -m benchmarks.simulator [--parts decisions launches trace memory]`. Our own times are
processor time of one process on one core, so neighbours on the machine matter less to them;
kube-scheduler's are what the clock and its own histogram say, on all cores. Each measurement of
memory is a fresh process.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from dataclasses import replace
from functools import cache
from itertools import islice
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from benchmarks import scheduling
from benchmarks.figures import figure, machine, ratios, say, spread, table, verdict
from benchmarks.policy import REPO
from benchmarks.scene import NAMESPACE
from roost_core.objects.node import read_node
from roost_core.objects.pod_reader import read_pod
from roost_core.scheduler.cycle import schedule
from roost_core.scheduler.plugins import NEWEST_MINOR
from roost_core.scheduler.profile import read_profiles
from roost_core.scheduler.state import ClusterState
from roost_lab.simulator.setup.assumptions import Assumptions, Autoscaler
from roost_lab.simulator.setup.policy import load_policy
from roost_lab.simulator.sweep.replay import replay
from roost_lab.simulator.sweep.survey import trace_of
from roost_lab.traces.synthetic import synthetic_attempts
from tests.harness.controlplane import ControlPlane
from tests.harness.nodes import FakeNodes
from tests.recorded_data import LAUNCHES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from roost_core.objects.pod import Pod, PodSpec
    from roost_core.scheduler.profile import Profile

PARTS: Final = ("decisions", "launches", "trace", "memory")
# Goals.
TIMES_KUBE_SCHEDULER: Final = 20.0
TEN_DAYS_SECONDS: Final = 60.0
GOAL_NODES: Final = 100
MOST_LAUNCHES: Final = 8000
_LABELS: Final = {"hub.jupyter.org/node-purpose": "user"}


# Decisions, beside kube-scheduler


def our_decisions(nodes: Sequence[Mapping[str, Any]], pods: int) -> float:
    """Decide and bind the pods that `benchmarks.scheduling` makes; seconds of processor time a pod,
    their reading out.

    nodes: as the API server has them.
    """
    specs: dict[PodSpec, PodSpec] = {}
    read = [
        read_pod(scheduling.user_pod(number, scheduling.WITH_TERMS, len(nodes)), specs=specs)
        for number in range(pods)
    ]
    return _decide(ClusterState(map(read_node, nodes)), read)


@cache
def _profiles() -> Mapping[str, Profile]:
    return read_profiles(scheduling.configuration(scheduling.WITH_TERMS), NEWEST_MINOR)


def _decide(state: ClusterState, pods: Sequence[Pod]) -> float:
    profile = _profiles()[pods[0].scheduler_name]
    began = time.process_time()
    start = 0
    for pod in pods:
        decision = schedule(pod, state, profile, start=start)
        start = decision.next_start
        if decision.node is None:
            raise RuntimeError(f"{pod.name} fits nowhere: {decision.message}")
        state.add_pod(replace(pod, node_name=decision.node))
    return (time.process_time() - began) / len(pods)


def decisions(sizes: Sequence[int], pods: int, rounds: int) -> None:
    """Ours and kube-scheduler's in turns, on the same nodes and pods."""
    rows = []
    told = []
    for size in sizes:
        ours: list[float] = []
        theirs: list[Mapping[str, float]] = []
        with ControlPlane(controllers=()) as cluster:
            cluster.create_namespace(NAMESPACE)
            names = [f"node-{number:04d}" for number in range(size)]
            FakeNodes(cluster.api).create_many(names, cpu="16", memory="64Gi", labels=_LABELS)
            nodes = cluster.api.list("/api/v1/nodes")
            say(f"  {size} nodes stand")
            for number in range(rounds):
                ours.append(1 / our_decisions(nodes, pods))
                theirs.append(scheduling.run_once(cluster, scheduling.WITH_TERMS, pods, size))
                said = (
                    f"{ours[-1]:.0f} decisions/s, kube-scheduler"
                    f" {theirs[-1]['pods_per_second']:.0f} pods/s"
                )
                say(f"  round {number + 1}: {said}, algorithm {theirs[-1]['algorithm_ms']:.2f} ms")
        bound = [run["pods_per_second"] for run in theirs]
        alone = [1e3 / run["algorithm_ms"] for run in theirs]
        of_cpu = [1e3 / run["cpu_ms"] for run in theirs]
        times = ratios(ours, bound)
        rows.append([str(size), *map(spread, (ours, bound, alone, of_cpu, times))])
        rows[-1] += [spread(ratios(ours, alone)), spread(ratios(ours, of_cpu))]
        if size == GOAL_NODES:
            told.append(verdict(median(times), at_least=TIMES_KUBE_SCHEDULER))
    head = [
        "nodes",
        "ours a second of CPU",
        "kube-scheduler binds/s",
        "its algorithm alone/s",
        "binds a second of CPU",
    ]
    head += ["ours / binds", "ours / algorithm", "ours / binds of CPU"]
    print(f"\nDecisions, {pods} pods a round, {rounds} rounds\n\n" + table(head, rows))
    print("\n".join(told))


# Whole launches


def launches(sizes: Sequence[int], rounds: int) -> None:
    """Whole launches in worlds of so many nodes."""
    rows = []
    policy = load_policy("z2jh")
    for size in sizes:
        # Users fill a third of the nodes' memory, so that most nodes fit and are scored.
        a_day = 22 * size / 36 * 60 * 24
        world = Assumptions(
            min_nodes=size, max_nodes=size, autoscaler=Autoscaler.NONE, quota_per_repository=0
        )
        found = []
        for seed in range(rounds):
            attempts = synthetic_attempts(seed, 5.0, a_day)
            taken = list(islice(attempts, min(66 * size, MOST_LAUNCHES)))
            result = replay(iter(taken), policy, world, seed)
            found.append(result.admitted / result.cpu_seconds)
            say(f"  {size} nodes: {found[-1]:.0f} launches/s, {result.admitted} launches")
        rows.append(
            [str(size), str(66 * size), spread(found), spread(1e6 / seconds for seconds in found)]
        )
    head = ["nodes", "users they hold", "launches/s, one core", "µs a launch"]
    print(f"\nWhole launches, policy z2jh, {rounds} rounds\n\n" + table(head, rows))


# The given trace


def trace(policies: Sequence[str], rounds: int) -> None:
    """All attempts of the recorded ten days, under each policy."""
    files = [str(LAUNCHES)]
    rows = []
    for name in policies:
        results = [_child("trace", name, str(seed), *files) for seed in range(rounds)]
        seconds = [result["cpu_seconds"] for result in results]
        said = "reached" if max(seconds) < TEN_DAYS_SECONDS else "MISSED"
        first = results[0]
        rows.append(
            [
                name,
                f"{first['attempts']:.0f}",
                f"{first['admitted']:.0f}",
                spread(seconds),
                spread(result["admitted"] / result["cpu_seconds"] for result in results),
                spread(result["peak_mib"] for result in results),
                said,
            ]
        )
    head = [
        "policy",
        "attempts",
        "admitted",
        "CPU s",
        "launches/s",
        "peak MiB",
        f"goal < {TEN_DAYS_SECONDS:.0f} s",
    ]
    print(f"\nThe whole trace, reading it included, {rounds} seeds\n\n" + table(head, rows))


# Memory


def memory(days: Sequence[float], a_day: float) -> None:
    """Peak memory of replays of longer and longer traces, which are made as they are played."""
    rows = []
    for number in days:
        found = _child("memory", str(number), str(a_day))
        say(f"  {number:g} days: {found['peak_mib']:.1f} MiB")
        cells = [f"{found[name]:.0f}" for name in ("attempts", "images")]
        rows.append(
            [f"{number:g}", *cells, figure(found["peak_mib"], 4), figure(found["cpu_seconds"])]
        )
    head = ["days", "attempts", "distinct images", "peak MiB", "CPU s"]
    print(f"\nMemory, policy z2jh, {a_day:g} made-up launches a day\n\n" + table(head, rows))


# One measurement in a process of its own


def _child(*arguments: str) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.simulator", "--child", *arguments]
    done = subprocess.run(command, cwd=REPO, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"`{' '.join(command[1:])}` failed:\n{done.stderr[-2000:]}")
    found: dict[str, float] = json.loads(done.stdout)
    return found


def _measure(kind: str, *arguments: str) -> dict[str, float]:
    if kind == "trace":
        name, seed, *files = arguments
        attempts = trace_of(tuple(files)).open(int(seed))
        result = replay(attempts, load_policy(name), Assumptions(), int(seed))
    else:
        result = replay(
            synthetic_attempts(0, float(arguments[0]), float(arguments[1])),
            load_policy("z2jh"),
            Assumptions(),
            0,
        )
    return {
        "attempts": result.attempts,
        "admitted": result.admitted,
        "images": result.bounds.get("cold_compulsory", 0),
        "cpu_seconds": result.cpu_seconds,
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def main(argv: list[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.simulator", description=__doc__)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--nodes", type=int, nargs="+", default=(20, 100, 1000))
    parser.add_argument("--pods", type=int, default=300, help="decisions a round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--policies", nargs="+", default=("z2jh",), help="under which the trace is played"
    )
    parser.add_argument(
        "--days", type=float, nargs="+", default=(1, 10, 40), help="of made-up launches, for memory"
    )
    parser.add_argument("--launches-per-day", type=float, default=13_000, help="for memory")
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    given = parser.parse_args(argv)
    if given.child:
        print(json.dumps(_measure(*given.child)))
        return 0
    print(f"simulator: {machine()}")
    if "decisions" in given.parts:
        decisions(given.nodes, given.pods, given.rounds)
    if "launches" in given.parts:
        launches(given.nodes, given.rounds)
    if "trace" in given.parts:
        trace(given.policies, given.rounds)
    if "memory" in given.parts:
        memory(given.days, given.launches_per_day)
    return 0


if __name__ == "__main__":
    sys.exit(main())
