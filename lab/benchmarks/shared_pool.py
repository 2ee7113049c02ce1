"""Replay several hubs on one pool of nodes: what it is worth that each hub's release counts the
pods of all.

`python -m benchmarks.shared_pool`: a recorded weekday of mybinder.org, each repository's launches
at one of the hubs, so that no two hubs share an image. The world is that of `benchmarks.felt_day`:
waits end when servers answer. Compared: zero-to-jupyterhub with its
placeholders packed; Roost's defaults, each hub for itself; and the same with `sharedPools`. Each
hub has the same number of placeholders on all sides.
"""

from __future__ import annotations

import argparse
import json
from hashlib import blake2b
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from benchmarks.felt_day import felt_world
from benchmarks.figures import say, table
from benchmarks.hub_scenarios import mybinder
from benchmarks.studies import values_files
from generator.values.merge import SetOptions
from roost_lab.simulator.engine.results import TOTAL
from roost_lab.simulator.setup.policy import load_policy
from roost_lab.simulator.sweep.replay import replay

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from roost_lab.simulator.engine.results import RunResult
    from roost_lab.simulator.setup.policy import Policy
    from roost_lab.traces.attempt import Attempt

SHARED: Final = {"namespaceSelector": {"matchLabels": {"hub.jupyter.org/pool": "users"}}}
BEFORE, SHARING = "z2jh, placeholders packed", "Roost, sharedPools"
# Shipped policy, and values over it.
ARMS: Final[Mapping[str, tuple[str, Mapping[str, Any]]]] = {
    BEFORE: ("z2jh-placeholders-packed", {}),
    "Roost, each hub for itself": ("roost", {}),
    SHARING: ("roost", {"sharedPools": SHARED}),
}
FIGURES: Final[Mapping[str, Callable[[RunResult], float]]] = {
    "cold starts": lambda run: run.cold,
    "wait p95, s": lambda run: run.waits[TOTAL].quantile(0.95),
    "wait p99, s": lambda run: run.waits[TOTAL].quantile(0.99),
    "node-hours": lambda run: run.node_hours,
}


def split(launches: Sequence[Attempt], hubs: int) -> list[Attempt]:
    """The launches, each repository's at one of so many hubs."""

    def hub(name: str) -> str:
        return f"hub-{int.from_bytes(blake2b(name.encode(), digest_size=8).digest()) % hubs + 1}"

    return [launch._replace(hub=hub(launch.repository)) for launch in launches]


def policy_of(arm: str, placeholders: int) -> Policy:
    """The policy of an arm with so many placeholders a hub."""
    name, values = ARMS[arm]
    requests = {"cpu": "10m", "memory": "550M"}
    sets = [{"name": "default", "replicas": placeholders, "resources": {"requests": requests}}]
    replaced = {"placeholders": sets, **values}
    return load_policy(
        name,
        values_files(name),
        SetOptions(
            json_values=tuple(f"{key}={json.dumps(value)}" for key, value in replaced.items())
        ),
    )


def show(runs: Mapping[str, Sequence[RunResult]]) -> str:
    """A table: medians over seeds with the least and the greatest, and the change against the first
    arm.
    """
    first, *_ = runs.values()
    rows = []
    for arm, mine in runs.items():
        cells = [arm]
        for read in FIGURES.values():
            values = list(map(read, mine))
            change = median(
                after / before - 1 for after, before in zip(values, map(read, first), strict=True)
            )
            told = f"{median(values):,.4g} ({min(values):,.4g} to {max(values):,.4g})"
            cells.append(told if mine is first else f"{told} {change:+.0%}")
        rows.append(cells)
    return table(["", *FIGURES], rows)


def main(arguments: Sequence[str] | None = None) -> int:
    """Replay and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--hubs", type=int, default=4)
    parser.add_argument("--placeholders", type=int, default=6, help="of each hub")
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args(arguments)
    hubs = [f"hub-{number}" for number in range(1, options.hubs + 1)]
    runs: dict[str, list[RunResult]] = {arm: [] for arm in ARMS}
    for seed in range(1, options.seeds + 1):
        launches = split(mybinder(seed, 1.0), options.hubs)
        for arm, found in runs.items():
            found.append(
                replay(
                    launches, policy_of(arm, options.placeholders), felt_world(), seed, hubs=hubs
                )
            )
            say(f"  seed {seed}: {arm}: {found[-1].cold:,} cold starts")
    print(
        f"{options.hubs} hubs, {options.placeholders} placeholders each, {options.seeds}"
        f" seeds\n\n{show(runs)}"
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
