"""How fast the simulator is, and how its memory grows.

`python -m benchmarks.simulator [--parts launches trace memory]`. Times are processor time of one
process on one core, so neighbours on the machine matter less to them. Each measurement of memory is
a fresh process.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
from itertools import islice
from typing import TYPE_CHECKING, Final

from benchmarks.figures import figure, machine, say, spread, table
from benchmarks.root import ROOT
from roost_lab.simulator.setup.assumptions import Assumptions, Autoscaler
from roost_lab.simulator.setup.policy import load_policy
from roost_lab.simulator.sweep.replay import replay
from roost_lab.simulator.sweep.survey import trace_of
from roost_lab.traces.synthetic import synthetic_attempts
from tests.recorded_data import LAUNCHES

if TYPE_CHECKING:
    from collections.abc import Sequence

PARTS: Final = ("launches", "trace", "memory")
TEN_DAYS_SECONDS: Final = 60.0
MOST_LAUNCHES: Final = 8000


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
        verdict = "reached" if max(seconds) < TEN_DAYS_SECONDS else "MISSED"
        first = results[0]
        rows.append(
            [
                name,
                f"{first['attempts']:.0f}",
                f"{first['admitted']:.0f}",
                spread(seconds),
                spread(result["admitted"] / result["cpu_seconds"] for result in results),
                spread(result["peak_mib"] for result in results),
                verdict,
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
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
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
    if "launches" in given.parts:
        launches(given.nodes, given.rounds)
    if "trace" in given.parts:
        trace(given.policies, given.rounds)
    if "memory" in given.parts:
        memory(given.days, given.launches_per_day)
    return 0


if __name__ == "__main__":
    sys.exit(main())
