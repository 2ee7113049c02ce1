"""Compare learned placeholders with a fixed number: `python -m benchmarks.learned_headroom`.

Launches: a made-up campus hub with a weekly timetable of lectures (default), or `--trace FILE`, anything that
`roost simulate --trace` takes. Compared, in pairs on the same launches: 25 placeholders at all times, and numbers
learned in the replay itself, which begins without a history, so each forecast sees only what happened before it.
Both beside zero-to-jupyterhub's packing and beside the warm set.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from benchmarks.figures import say, table
from benchmarks.policy import REPO
from roost_lab.simulator.setup.shipped import policy_files

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# Monday, 2026-03-02.
BEGIN: Final = 1_772_409_600
FIXED: Final = 25
# Launches of the hours of a working day, beside lectures.
HOURS: Final = (1, 1, 1, 1, 1, 2, 4, 8, 12, 14, 14, 12, 10, 12, 14, 13, 11, 9, 8, 8, 8, 6, 4, 2)
LAUNCHES_PER_DAY: Final = 600
WEEKEND_SHARE: Final = 0.3


class Lecture(NamedTuple):
    """One lecture a week: its weekday, 0 for Monday, when it begins (hours, UTC), and how many people come."""

    weekday: int
    hour: float
    people: int


TIMETABLE: Final = (
    Lecture(0, 9, 120),
    Lecture(0, 14, 60),
    Lecture(1, 10, 80),
    Lecture(2, 9, 120),
    Lecture(3, 13.25, 40),
    Lecture(4, 11, 150),
)
FIGURES: Final = ("wait_p95", "wait_p99", "waited_for_node", "cold", "node_hours")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print each arm's figures, seed by seed, and the changes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trace", help="launches to replay instead of the made-up timetable")
    parser.add_argument("--weeks", type=int, default=4)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--quantile", type=float, action="append", help="of learned numbers; default: 0.9")
    parser.add_argument("--most", type=int, default=150, help="`learn.max`")
    parser.add_argument("--packed-only", action="store_true", help="leave out the warm set")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        arms = list(_arms(home, options.quantile or [0.9], options.most, with_warm=not options.packed_only))
        rows = []
        seeds = range(1, options.seeds + 1)
        if options.trace:
            runs = _simulate(Path(options.trace), arms, options.seeds)
        else:
            runs = [run for seed in seeds for run in _simulate(_write_timetable(home, seed, options.weeks), arms, 1)]
        for seed, figures in zip(seeds, runs, strict=True):
            rows += [[str(seed), name, *(_show(one[key]) for key in FIGURES)] for name, one in figures.items()]
        say(table(("seed", "policy", *FIGURES), rows))
    return 0


def _arms(home: Path, quantiles: Sequence[float], most: int, *, with_warm: bool) -> Iterator[str]:
    """Yield `--values` of each arm."""
    files = policy_files()
    warm = REPO / "benchmarks" / "policies" / "warm-alone.yaml"
    bases = {"packed": files["z2jh-placeholders-packed"], **({"warm": warm} if with_warm else {})}
    for name, base in bases.items():
        for quantile in (None, *quantiles):
            learn = {"quantile": quantile, "min": 0, "max": most, "timeZone": "UTC"}
            entry: dict[str, Any] = {
                "name": "default",
                "replicas": FIXED,
                "resources": {"requests": {"cpu": "10m", "memory": "550M"}},
                "learn": None if quantile is None else learn,
            }
            # What the base switches off is needed to learn; the mover stays off.
            values: dict[str, Any] = {"placeholders": [entry], "controllers": {"enabled": True}}
            path = home / f"{name}-{FIXED if quantile is None else f'learned-{quantile}'}.json"
            path.write_text(json.dumps(values))
            yield f"{base},{path}"


def _write_timetable(home: Path, seed: int, weeks: int) -> Path:
    path = home / f"timetable-{seed}.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in sorted(_launches(seed, weeks), key=_moment)))
    return path


def _moment(line: dict[str, Any]) -> str:
    return str(line["timestamp"])


def _launches(seed: int, weeks: int) -> Iterator[dict[str, Any]]:
    """Yield launches of a hub whose users come all day, and in crowds as lectures begin."""
    chance = random.Random(seed)  # noqa: S311 - not for secrets
    for day in range(7 * weeks):
        share = WEEKEND_SHARE if day % 7 >= 5 else 1.0
        for hour, weight in enumerate(HOURS):
            mean_gap = 3600 / (share * LAUNCHES_PER_DAY * weight / sum(HOURS))
            moment = chance.expovariate(1 / mean_gap)
            while moment < 3600:
                yield _launch(BEGIN + day * 86_400 + hour * 3600 + moment, f"own-{chance.randrange(20)}", chance)
                moment += chance.expovariate(1 / mean_gap)
        for number, lecture in enumerate(TIMETABLE):
            if day % 7 == lecture.weekday:
                for _ in range(round(lecture.people * chance.uniform(0.8, 1.2))):
                    moment = BEGIN + day * 86_400 + lecture.hour * 3600 + chance.gauss(60, 150)
                    yield _launch(moment, f"course-{number}", chance)


def _launch(moment: float, image: str, chance: random.Random) -> dict[str, Any]:
    return {
        "timestamp": datetime.fromtimestamp(moment, UTC).isoformat().replace("+00:00", "Z"),
        "schema": "roost.hub.jupyter.org/launch",
        "version": 3,
        "class": "user",
        "image": f"registry.invalid/{image}:1",
        # Fifteen minutes of the culler, and about an hour of work.
        "seconds": 900 + 3600 * chance.lognormvariate(0, 0.8),
        "ready_seconds": 0,
        "status": "success",
    }


def _simulate(trace: Path, arms: Sequence[str], seeds: int) -> list[dict[str, dict[str, float]]]:
    """Run the replays; return each policy's figures, seed by seed."""
    command = [sys.executable, "-m", "roost", "simulate", "--trace", str(trace), "--seeds", str(seeds), "--jobs", "1"]
    command += ["--format", "json", *(f"--values={arm}" for arm in arms)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "COLUMNS": "200"})
    if done.returncode:
        raise SystemExit(done.stderr)
    policies = json.loads(done.stdout)["worlds"][0]["policies"]
    return [
        {name: {key: figures[key]["by_seed"][index] for key in FIGURES} for name, figures in policies.items()}
        for index in range(seeds)
    ]


def _show(figure: float) -> str:
    return f"{figure:,.1f}".removesuffix(".0")


if __name__ == "__main__":
    sys.exit(main())
