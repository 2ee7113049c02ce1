"""The hour of lab/tests/e2e/simulator/test_simulator_hour_warm.py, with some of its nodes real:
kubelet and containerd.

python -m benchmarks.hour_on_kubelets [--kubelets 2]

Users on those nodes are real containers, whose images come from a slow registry; the webhook learns
of them what their kubelets report. Exit code 1: more than 2 % of the placements or of the webhook's
choices are unexplained.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.figures import machine, say
from lab.tests.e2e.simulator.hour_in_step import in_step, unexplained
from lab.tests.e2e.simulator.played_hour import LAUNCHES, play
from tests.harness.binaries import HarnessUnavailableError

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Play, and print what was found."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--kubelets", type=int, default=2, help="Real nodes, of five; each takes a third of a core."
    )
    arguments = parser.parse_args(argv)
    try:
        seen = play(arguments.kubelets)
    except HarnessUnavailableError as error:
        say(str(error))
        return 2
    with tempfile.TemporaryDirectory() as folder:
        world = in_step(seen, {}, Path(folder))
    causes = Counter(world.outcome.users.values())
    choices = world.admission_counts
    names = {f"node-{number}" for number in range(1, arguments.kubelets + 1)}
    users = seen.followed.users
    real = {number: user for number, user in users.items() if user.node in names}
    waits = [user.ran_at - user.decided_at for user in real.values() if user.ran_at < math.inf]
    say(machine())
    say(
        f"users: {len(users)} of {LAUNCHES} bound, {len(real)} by real kubelets, {len(waits)} of"
        " which ran"
    )
    if waits:
        say(
            f"from binding to running there: median {statistics.median(waits):.1f} s, at most"
            f" {max(waits):.1f} s"
        )
    say(f"in step: users {dict(causes)}, placeholders {dict(world.outcome.placeholders)}")
    say(
        "of those by real kubelets:"
        f" {dict(Counter(world.outcome.users[number] for number in real))}"
    )
    say(
        f"the webhook's choices: {dict(choices)}; facts older by"
        f" {[round(age, 2) for age in sorted(world.ages)]} s"
    )
    unnamed = (unexplained(found, seen.real) for found in (world.outcome.users, world.admissions))
    return int(max(map(len, unnamed)) > LAUNCHES * 0.02)


if __name__ == "__main__":
    sys.exit(main())
