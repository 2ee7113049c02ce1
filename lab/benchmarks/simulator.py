"""How fast the simulator is: `python -m benchmarks.simulator [--rounds 3]`.

Ten recorded days of mybinder.org are replayed, each time in a fresh process. Times are processor
time of one core, so neighbours on the machine matter less to them.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
from typing import Final

from benchmarks.figures import machine, spread, table
from benchmarks.root import ROOT
from roost_lab.simulator.setup.assumptions import Assumptions
from roost_lab.simulator.setup.policy import load_policy
from roost_lab.simulator.sweep.replay import replay
from roost_lab.simulator.sweep.survey import trace_of
from tests.recorded_data import LAUNCHES

POLICY: Final = "z2jh"


def _measure(seed: int) -> dict[str, float]:
    """Read the trace, and replay it in this process."""
    attempts = trace_of((str(LAUNCHES),)).open(seed)
    result = replay(attempts, load_policy(POLICY), Assumptions(), seed)
    return {
        "attempts": result.attempts,
        "admitted": result.admitted,
        "cpu_seconds": result.cpu_seconds,
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def _in_fresh_process(seed: int) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.simulator", "--child", str(seed)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"`{' '.join(command[1:])}` failed:\n{done.stderr[-2000:]}")
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main(argv: list[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.simulator", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="each with another seed")
    parser.add_argument("--child", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args(argv)
    if given.child is not None:
        print(json.dumps(_measure(given.child)))
        return 0
    results = [_in_fresh_process(seed) for seed in range(given.rounds)]
    first = results[0]
    row = [
        f"{first['attempts']:.0f}",
        f"{first['admitted']:.0f}",
        spread(result["cpu_seconds"] for result in results),
        spread(result["admitted"] / result["cpu_seconds"] for result in results),
        spread(result["peak_mib"] for result in results),
    ]
    print(f"simulator: {machine()}\n\nThe whole trace, policy {POLICY}, {given.rounds} seeds\n")
    print(table(["attempts", "admitted", "CPU s", "launches/s", "peak MiB"], [row]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
