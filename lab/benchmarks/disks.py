"""What kubelets' thresholds for images cost: `python -m benchmarks.disks`.

Two days of mybinder.org's recorded launches, under zero-to-jupyterhub's user-scheduler with 25
placeholders and under Roost's defaults with as many, with disks of several sizes. Played are
`imageGCHighThresholdPercent`, `imageGCLowThresholdPercent` and `imageMaximumGCAge`. Waits end when
servers answer, as in `benchmarks.felt_day`. Nothing but images is on these disks, so no pod is
evicted.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from benchmarks.felt_day import FELT
from benchmarks.figures import say, table
from roost_lab.simulator.engine.results import TOTAL, RunResult
from roost_lab.simulator.engine.world import World
from roost_lab.simulator.setup.checks import make_assumptions
from roost_lab.simulator.setup.policy import load_policy
from roost_lab.simulator.sweep.survey import trace_of
from roost_lab.traces.attempt import Attempt
from roost_lab.units import DAY_SECONDS, HOUR_SECONDS
from tests.recorded_data import LAUNCHES

POLICIES: Final = ("z2jh-placeholders-packed", "roost")
GB: Final = 10**9
DAYS: Final = 2


@dataclass(frozen=True, slots=True)
class Disk:
    """One row: a disk, and what its kubelet is set to."""

    size_gb: int
    high_percent: int = 85
    low_percent: int = 80
    # imageMaximumGCAge; 0: off.
    most_unused_hours: int = 0

    @property
    def settings(self) -> str:
        """The kubelet's, in words."""
        age = f", {self.most_unused_hours}h" if self.most_unused_hours else ""
        return f"{self.high_percent}, {self.low_percent}{age}"


DISKS: Final = (
    *(Disk(size, high, low) for size in (200, 100) for high, low in ((85, 80), (70, 60), (50, 40))),
    *(Disk(1000, most_unused_hours=age) for age in (0, 24)),
)


def play(policy: str, disk: Disk, seed: int) -> RunResult:
    """Replay the trace's first two days."""
    setting = {
        **FELT,
        "node_disk_bytes": disk.size_gb * GB,
        "gc_high": disk.high_percent / 100,
        "gc_low": disk.low_percent / 100,
        "gc_max_age_seconds": disk.most_unused_hours * HOUR_SECONDS,
    }
    world = World(load_policy(policy), make_assumptions(setting, "disks"), seed)
    return world.play(_of_first_days(seed))


def _of_first_days(seed: int) -> Iterator[Attempt]:
    begin = None
    for attempt in trace_of((str(LAUNCHES),)).open(seed):
        begin = attempt.moment if begin is None else begin
        if attempt.moment >= begin + DAYS * DAY_SECONDS:
            return
        yield attempt


def _p95(result: RunResult) -> float:
    return result.waits[TOTAL].quantile(0.95)


def main() -> int:
    """Replay, and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    seed = parser.parse_args().seed
    rows = []
    for disk in DISKS:
        hub, roost = (play(policy, disk, seed) for policy in POLICIES)
        rows.append(
            [
                str(disk.size_gb),
                disk.settings,
                f"{hub.cold:,}, {roost.cold:,}",
                f"{_p95(hub):.1f}, {_p95(roost):.1f}",
                f"{hub.images_collected:,}, {roost.images_collected:,}",
                f"{hub.greatest_disk_bytes / GB:.0f}, {roost.greatest_disk_bytes / GB:.0f}",
            ]
        )
        say(f"{disk}: {rows[-1]}")
    head = ["disk, GB", "high, low and greatest age", "cold starts: without Roost, with it"]
    head += ["p95 of waits, s", "images that kubelets removed", "fullest disk, GB"]
    print(table(head, rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
