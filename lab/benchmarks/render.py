"""`roost render` against `helm template` of the same chart: wall time of whole processes, paired in
one run.

`python -m benchmarks.render`. Default values, and 200 placeholder sets. Both write to a file, as in
CI.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Final

import yaml

from benchmarks.figures import machine, ratios, say, spread, table, verdict
from benchmarks.root import ROOT
from benchmarks.servers import python_environment
from roost_core.scheduler.plugins import NEWEST_MINOR
from tests.harness.binaries import ensure_binary

if TYPE_CHECKING:
    from collections.abc import Sequence

SETS: Final = 200
KUBE_VERSION: Final = f"v1.{NEWEST_MINOR}.2"


def values_of_many_sets() -> str:
    """A values file with 200 placeholder sets, as a hub with many node pools and profiles would
    have.
    """
    sets = [
        {
            "name": f"pool-{number}",
            "replicas": number % 7,
            "resources": {
                "requests": {"cpu": f"{50 + number}m", "memory": f"{1 + number % 16}Gi"},
                "limits": {},
            },
            "nodeSelector": {"node.kubernetes.io/instance-type": f"m-{number % 9}"},
            "tolerations": [
                {
                    "key": "hub.jupyter.org/dedicated",
                    "operator": "Equal",
                    "value": "user",
                    "effect": "NoSchedule",
                }
            ],
            "requiredNodeTerms": [],
            "labels": {"pool": f"pool-{number}"},
            "annotations": {},
        }
        for number in range(SETS)
    ]
    return yaml.dump({"placeholders": sets}, Dumper=yaml.CSafeDumper)


def commands(values: Path | None) -> dict[str, list[str]]:
    """The two command lines."""
    chart = ["-f", str(values)] if values else []
    roost = Path(sys.executable).with_name("roost")
    ours = [str(roost)] if roost.exists() else [sys.executable, "-m", "roost"]
    return {
        "roost render": [
            *ours,
            "render",
            "--release",
            "hub",
            "-n",
            "hub",
            "--kube-version",
            KUBE_VERSION,
            *chart,
        ],
        "helm template": [
            str(ensure_binary("helm")),
            *(
                "template",
                "hub",
                str(ROOT / "chart"),
                "--namespace",
                "hub",
                "--kube-version",
                KUBE_VERSION,
                *chart,
            ),
        ],
    }


def run_once(command: Sequence[str], output: Path) -> tuple[float, float]:
    """Run a whole process; seconds by the clock, and of processor time."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with output.open("wb") as file:
        started = time.perf_counter()
        environment = {**os.environ, **python_environment()}
        subprocess.run(command, stdout=file, stderr=subprocess.DEVNULL, check=True, env=environment)
        seconds = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def count_objects(output: Path) -> int:
    """How many objects a file of manifests holds."""
    return sum(bool(document) for document in yaml.load_all(output.read_text(), yaml.CSafeLoader))


def measure(
    title: str, values: Path | None, folder: Path, rounds: int, goal: float
) -> tuple[list[list[str]], str]:
    """Rows of the table, and the line of the ratio."""
    found: dict[str, list[tuple[float, float]]] = {}
    outputs = {name: folder / f"{name.split()[0]}.yaml" for name in commands(values)}
    for number in range(-1, rounds):
        pair = list(commands(values).items())
        for name, command in pair if number % 2 else reversed(pair):
            took = run_once(command, outputs[name])
            if number >= 0:  # the first fills the file cache
                found.setdefault(name, []).append(took)
    say(f"  {title}: {rounds} rounds")
    rows = [
        [
            title,
            name,
            spread(seconds * 1e3 for seconds, _ in samples),
            spread(processor * 1e3 for _, processor in samples),
            str(count_objects(outputs[name])),
        ]
        for name, samples in sorted(found.items())
    ]
    clock, processor = (
        ratios(
            [run[part] for run in found["roost render"]],
            [run[part] for run in found["helm template"]],
        )
        for part in (0, 1)
    )
    told = verdict(median(clock), at_most=goal)
    return rows, f"{title}: roost / helm, wall {spread(clock)}x  {told}; CPU {spread(processor)}x"


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.render", description=__doc__)
    parser.add_argument("--rounds", type=int, default=25)
    given = parser.parse_args(argv)
    print(f"render: {machine()}; {given.rounds} rounds")
    with tempfile.TemporaryDirectory(prefix="roost-render-") as scratch:
        many = Path(scratch) / "many.yaml"
        many.write_text(values_of_many_sets())
        parts = [
            measure("default values", None, Path(scratch), given.rounds, 1.5),
            measure(f"{SETS} placeholder sets", many, Path(scratch), given.rounds, 1.0),
        ]
    print(
        table(
            ["values", "program", "wall ms", "CPU ms", "objects"],
            [row for rows, _ in parts for row in rows],
        )
    )
    print("\n".join(["", *(line for _, line in parts)]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
