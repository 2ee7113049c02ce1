"""A whole day of a busy hub, played at speed on a real control plane: what the recorder has of it, moment by moment.

python -m benchmarks.recorder_day [--day 7] [--minutes 20] [--real-share 0.02] [--keep roost.db]

Launches and their hours are those of a trace of mybinder.org (made up, where it isn't there), their stays drawn; each
is a pod that Roost's webhook and scheduler place, beside placeholders, on nodes that join and leave. A share runs on a
real kubelet that pulls from a slow registry. Exit code 1: something was lost, or a moment differs from the notes that
were taken beside the recorder.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.figures import machine, say
from lab.tests.e2e.recorder.day_comparison import compare
from lab.tests.e2e.recorder.played_day import (
    USERS_PER_NODE,
    PlayedDay,
    Size,
    fraction,
    launches_of,
    plan_sessions,
    real_images,
)
from tests.harness.binaries import HarnessUnavailableError
from tests.recorded_data import LAUNCHES

if TYPE_CHECKING:
    from collections.abc import Sequence

DAY_MINUTES = 24 * 60.0


def main(argv: Sequence[str] | None = None) -> int:
    """Play, and print what was found."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--trace", type=Path, default=LAUNCHES)
    parser.add_argument("--day", type=int, default=7, help="Of the trace; 0 is its first.")
    parser.add_argument("--share", type=float, default=1.0, help="Of the launches; fewer for a slow machine.")
    parser.add_argument("--minutes", type=float, default=20.0, help="In which the day is played.")
    parser.add_argument("--users-per-node", type=int, default=USERS_PER_NODE, help="Fewer make more nodes.")
    parser.add_argument("--placeholders", type=int, default=25)
    parser.add_argument("--real-share", type=float, default=0.02, help="Of the pods that a real kubelet runs.")
    parser.add_argument("--real-images", type=int, default=40)
    parser.add_argument("--keep", type=Path, help="Copy the recorder's database here.")
    arguments = parser.parse_args(argv)
    launches = launches_of(arguments.trace, arguments.day)
    launches = [launch for index, launch in enumerate(launches) if fraction("share", index) < arguments.share]
    speed = DAY_MINUTES / arguments.minutes
    images = real_images(arguments.real_images)
    sessions = plan_sessions(launches, speed, arguments.real_share, images)
    size = Size(
        sessions=sessions,
        speed=speed,
        placeholders=arguments.placeholders,
        real_images=images,
        users_per_node=arguments.users_per_node,
    )
    origin = f"{arguments.trace.name}, day {arguments.day}"
    print(f"{machine()}; {len(launches):,} launches ({origin}), {speed:g} times as fast\n", flush=True)
    try:
        with PlayedDay(size, say=say) as day:
            day.play()
            if arguments.keep:
                shutil.copy(day.database, arguments.keep)
            found = compare(day)
            print(f"played in {day.played_seconds / 60:.1f} min; {day.refused:,} launches refused by their quota")
            print("\n".join(found.lines()))
            changes, rows = (day.counters[name] for name in ("changes", "rows"))
            print(
                f"recorder: {changes:,.0f} changes told, {rows:,.0f} rows sent, {day.recorder_mib:.0f} MiB at the end"
            )
    except HarnessUnavailableError as error:
        print(f"no day can be played here: {error}", file=sys.stderr)
        return 1
    for difference in found.differences[:50]:
        print(difference, file=sys.stderr)
    return 1 if found.differences else 0


if __name__ == "__main__":
    sys.exit(main())
