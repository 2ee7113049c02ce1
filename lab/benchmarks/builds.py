"""Compare where builds go: no home, BinderHub's own ring, Roost's home. `python -m
benchmarks.builds`.

mybinder.org's recorded launches, users under Roost's defaults with 25 placeholders, every user node
with a builder. The recorded traces show no pushes, so they are added: a repository is pushed to on
a day with a probability, from its first launch on, and its next launch builds the new commit. A
build is warm if its node holds layers of an earlier build of its repository. Two bounds stand
beside: builds less distinct repositories, and those of whose repository any node that lived held
layers, which is all that a choice of node can reach.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from unittest import mock

from benchmarks.figures import say, table
from roost_lab.simulator.engine.builds import Build, BuildWorld
from roost_lab.simulator.engine.world import World
from roost_lab.simulator.setup.checks import make_assumptions
from roost_lab.simulator.setup.policy import load_policy
from roost_lab.simulator.setup.shipped_policies import policy_files
from roost_lab.simulator.sweep.survey import trace_of
from roost_lab.traces.chance import Chance
from roost_lab.traces.pushes import with_pushes
from roost_lab.units import DAY_SECONDS
from tests.recorded_data import LAUNCHES
from webhook.rendezvous import best_nodes, encode_name
from webhook.rules import home

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from roost_lab.simulator.setup.assumptions import Assumptions
    from roost_lab.simulator.setup.policy import Policy

# Without Roost, build pods request nothing, and neither users nor placeholders avoid them.
_BARE: Final[dict[str, Any]] = {"profile": "", "resources": {"cpu": None, "memory": None}}
_OTHERS: Final = {name: {"avoid": {"build": None}} for name in ("user", "placeholder")}
REMEMBERING: Final = "the same, and before them the node that built the repository last"
ARMS: Final[dict[str, dict[str, Any]]] = {
    "no home (the default scheduler, builds off each other)": {
        **_OTHERS,
        "build": {**_BARE, "home": None, "avoid": {"build": 100}},
    },
    "BinderHub's own ring: its first node": {
        **_OTHERS,
        "build": {**_BARE, "home": {"weights": [100]}, "avoid": {"build": None}},
    },
    "Roost's: the first three": {},
    REMEMBERING: {},
}


class Run(NamedTuple):
    """What one replay came to."""

    builds: int
    warm: int
    # Warm, and with the environment as it was: these are quicker.
    quick: int
    # Of whose repository some living node held layers, and builds less distinct repositories.
    reachable: int
    repeated: int
    p50: float
    p95: float
    mean: float
    busiest_share: float
    node_hours: float


class PushedBuilds(BuildWorld):
    """Builds of a trace with pushes: what was pushed was never built before."""

    def __init__(self, assumptions: Assumptions, chance: Chance) -> None:
        super().__init__(assumptions, chance)
        self.pushed: set[str] = set()
        self.reachable = 0
        # Repository -> the node of the build that began last.
        self.last: dict[str, str] = {}

    def push(self, image: str, second: int) -> str:
        """What a push makes of an image, as a trace names a commit."""
        pushed = f"{image}@{second:040x}"
        self.pushed.add(pushed)
        return pushed

    def needs_build(self, image: str) -> bool:
        """As in the replays, but for what was pushed."""
        return image not in self._built if image in self.pushed else super().needs_build(image)

    def begin(self, repository: str, node: str, now: float) -> Build:
        """As in the replays; notes whether any node held layers."""
        self.reachable += bool(self.holders(repository, now))
        self.last[repository] = node
        return super().begin(repository, node, now)


class PushedWorld(World):
    """A replay in which repositories are pushed to."""

    builds_type = PushedBuilds


def policy_of(arm: str) -> Policy:
    """Roost's defaults, with the arm's builds."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "builds.yaml"
        path.write_text(json.dumps({"podClasses": ARMS[arm]}), encoding="utf-8")
        return load_policy(arm, [str(policy_files()["roost"]), str(path)])


@contextmanager
def remembered(last: Mapping[str, str]) -> Iterator[None]:
    """Webhooks take a repository's last node before its ring, if it is one of the nodes that they
    may choose.
    """
    ring = best_nodes

    def best(key: str, nodes: Iterable[bytes], count: int) -> list[str]:
        names = list(nodes)
        first = ring(key, names, count)
        known = last.get(key)
        if known is None or encode_name(known) not in names:
            return first
        return [known, *(node for node in first if node != known)][:count]

    with mock.patch.object(home, "best_nodes", best):
        yield


def run(policy: Policy, days: float, pushes_per_day: float, seed: int) -> Run:
    """One replay of the trace's first days."""
    assumptions = make_assumptions({"with_builds": True}, "builds")
    chance = Chance(seed)
    attempts = list(trace_of((str(LAUNCHES),)).open(seed))
    chosen = takewhile(
        lambda attempt: attempt.moment < attempts[0].moment + days * DAY_SECONDS, attempts
    )
    world = PushedWorld(policy, assumptions, seed)
    builds = world.builds
    assert isinstance(builds, PushedBuilds)
    with remembered(builds.last if policy.name == REMEMBERING else {}):
        result = world.play(with_pushes(chosen, chance, pushes_per_day, builds.push))
    return Run(
        builds=result.builds,
        warm=result.build_cache_hits,
        quick=builds.quick,
        reachable=builds.reachable,
        repeated=round(result.bounds["build_cache_hits"]),
        p50=result.build_seconds.quantile(0.5),
        p95=result.build_seconds.quantile(0.95),
        mean=result.build_seconds.total / max(1, result.builds),
        busiest_share=result.busiest_builder_share,
        node_hours=result.node_hours,
    )


def show(found: dict[str, list[Run]]) -> str:
    """A row an arm: medians over the seeds, least and greatest."""

    def cells(runs: Sequence[Run]) -> list[str]:
        rows = []
        for values in zip(*runs, strict=True):
            middle, least, most = (
                f"{value:,.4g}" for value in (median(values), min(values), max(values))
            )
            rows.append(middle if least == most else f"{middle} ({least} to {most})")
        return rows

    head = [
        "a build's node",
        "builds",
        "warm",
        "quick",
        "bound: a living node had layers",
        "bound: not the repository's first",
    ]
    head += ["median, s", "p95, s", "mean, s", "on the busiest node", "node-hours"]
    return table(head, [[arm, *cells(runs)] for arm, runs in found.items()])


def main(arguments: Sequence[str] | None = None) -> int:
    """Replay, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--days", type=float, default=10.0)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument(
        "--pushes-per-day", type=float, default=0.1, help="probability, for each repository"
    )
    options = parser.parse_args(arguments)
    found: dict[str, list[Run]] = {}
    for seed in range(1, options.seeds + 1):
        for arm in ARMS:
            found.setdefault(arm, []).append(
                run(policy_of(arm), options.days, options.pushes_per_day, seed)
            )
            say(f"seed {seed}, {arm}: {found[arm][-1]}")
    print(
        f"{options.days:g} days, {options.pushes_per_day:g} pushes a day, {options.seeds}"
        f" seeds\n\n{show(found)}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
