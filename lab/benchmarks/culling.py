"""Node-hours by the hub's culler: `python -m benchmarks.culling [--seeds 10] [--weeks 2]`.

A university's term (`benchmarks.terms`), each seed another university, without Roost
(zero-to-jupyterhub's scheduler, no placeholders) and as `roost import` writes it. Servers end by
`cull.timeout` and `cull.every`: zero-to-jupyterhub's 3600 and 600, and less of each. Paired: in
each seed all meet the same launches, image sizes and boots. `--stopped` is the share of people who
stop their server themselves, which nobody published.
"""

from __future__ import annotations

import argparse
from statistics import median
from typing import TYPE_CHECKING, Final, NamedTuple

from benchmarks import terms as drawn
from benchmarks.figures import table
from benchmarks.term_figures import IMPORTED, NONE
from benchmarks.term_playing import AUTOSCALERS, policy_of, term_of
from roost_lab.simulator.engine.world import World
from roost_lab.simulator.setup.assumptions import Autoscaler
from roost_lab.simulator.setup.checks import make_assumptions
from roost_lab.simulator.sweep.rehearsal import quantile

if TYPE_CHECKING:
    from collections.abc import Sequence


class Culling(NamedTuple):
    """Seconds of `cull.timeout` and `cull.every`."""

    timeout: int
    every: int


AS_IS: Final = Culling(3600, 600)
ARMS: Final = (AS_IS, Culling(3600, 60), Culling(1800, 600), Culling(1800, 60))


class Played(NamedTuple):
    """Of one replay."""

    node_hours: float
    p95: float


def play(seed: int, arm: str, culling: Culling, options: argparse.Namespace) -> Played:
    """Play a term's beginning under one culler. options: of the command."""
    term = term_of(seed, options.weeks)
    assumed = {
        "autoscaler": Autoscaler(options.autoscaler),
        "cull_timeout_seconds": float(culling.timeout),
        "cull_every_seconds": float(culling.every),
        # What a term's lengths begin with.
        "sessions_cull_timeout_seconds": 60.0 * drawn.LEAST_MINUTES,
        "stopped_share": options.stopped,
    }
    world = World(policy_of(term, arm), make_assumptions(assumed, "options"), seed)
    waits: list[float] = []
    world.measures.on_wait = lambda _number, seconds, _is_up: waits.append(seconds)
    result = world.play(term.attempts)
    return Played(result.node_hours, quantile(sorted(waits), 0.95))


def _row(
    arm: str, culling: Culling, played: Sequence[Played], first: Sequence[Played]
) -> list[str]:
    hours = [run.node_hours for run in played]
    changes = [
        100 * (ours.node_hours / theirs.node_hours - 1)
        for ours, theirs in zip(played, first, strict=True)
    ]
    return [
        arm,
        str(culling.timeout),
        str(culling.every),
        f"{median(hours):.0f}",
        f"{median(changes):+.1f} ({min(changes):+.1f} to {max(changes):+.1f})",
        f"{median(run.p95 for run in played):.1f}",
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Play all, and print a table."""
    parser = argparse.ArgumentParser("python -m benchmarks.culling", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    add = parser.add_argument
    add("--seeds", type=int, default=10, help="universities")
    add("--weeks", type=int, default=2, help="of classes, the beginning of a term of five")
    add("--autoscaler", choices=AUTOSCALERS, default=AUTOSCALERS[0])
    add("--stopped", type=float, default=0.0, help="share who stop their server, 0 to 1")
    options = parser.parse_args(arguments)
    rows = []
    for arm in (NONE, IMPORTED):
        first: list[Played] = []
        for culling in ARMS:
            played = [play(seed, arm, culling, options) for seed in range(1, options.seeds + 1)]
            first = first or played
            rows.append(_row(arm, culling, played, first))
    print(
        f"{options.seeds} terms, {options.weeks} weeks, {options.stopped:.0%} stop their servers:"
    )
    heads = ("arm", "cull.timeout", "cull.every", "node-hours", "change, %", "p95, s")
    print(table(heads, rows))


if __name__ == "__main__":
    main()
