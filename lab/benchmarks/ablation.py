"""Take one part of Roost away, hub by hub, and see what the hub loses: each part must earn its
place.

`python -m benchmarks.ablation`: all scenarios of `benchmarks.hub_scenarios` under Roost's default
values, and again without each of `PARTS`. A figure is the change when the part goes, in the median
of the seeds' differences, with the least and the greatest: "+40 %" of cold starts means that the
part saves them. A part whose absence costs less than `EARNS` of cold starts, of the wait's p95 or
of node-hours in every scenario is marked, and is no default.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from functools import cache
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from benchmarks.figures import say, table
from benchmarks.hub_scenarios import SCENARIOS
from benchmarks.never_worse import (
    AUTOSCALERS,
    HUB,
    Case,
    Job,
    Run,
    add_scenario_options,
    play_all,
    policy_of,
    roost_values,
)
from generator.importing.profile_pools import LEARN

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchmarks.hub_scenarios import Scenario
    from roost_lab.simulator.setup.policy import Policy

LEARNING: Final = "learned placeholders"
# Values over the defaults, each without a part.
PARTS: Final[dict[str, dict[str, Any]]] = {
    "no warm set": {"podClasses": {"user": {"warm": None}}},
    "no gate": {"imageGate": {"mode": "off"}},
    "no puller, no gate": {"prePuller": {"enabled": False}, "imageGate": {"mode": "off"}},
    "no mover": {"placeholderMover": {"enabled": False}},
    "no join": {"podClasses": {"user": {"join": {"user": None}}}},
    "no placeholders": {"placeholders": []},
}
# With a part that is off by default.
OPT_IN: Final[dict[str, dict[str, Any]]] = {
    "popular images": {"popularImages": {"enabled": True}},
    # As `roost import` writes it, with the weeks before the replay known.
    LEARNING: {"learn": LEARN},
    # Of weight 2: 1 is left out beside Karpenter's nodes.
    "users avoid placeholders": {"podClasses": {"user": {"avoid": {"placeholder": 2}}}},
    "placeholders avoid users": {"podClasses": {"placeholder": {"avoid": {"user": 2}}}},
}
DEFAULTS: Final = "defaults"
# How its row is called.
AGAINST_HUB: Final = "defaults, against the hub alone"
EARNS: Final = 0.03
FIGURES: Final = ("cold", "p95", "p99", "node_hours")


class Change(NamedTuple):
    """What a figure becomes without a part, relative to what it is with it: in the median, at least
    and at most.
    """

    middle: float
    least: float
    greatest: float


def _policy_of_job(scenario: Scenario, job: Job) -> Policy:
    return _policy(scenario, job.arm, job.case.placeholders)


@cache
def _policy(scenario: Scenario, arm: str, placeholders: int) -> Policy:
    overlay = {**PARTS, **OPT_IN}.get(arm)
    if overlay is None:
        return policy_of(scenario, arm, placeholders, "")
    if arm == LEARNING:
        overlay = {
            "placeholders": [
                placeholder_set | overlay
                for placeholder_set in roost_values(scenario, placeholders)["placeholders"]
            ]
        }
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "overlay.yaml")
        file.write_text(json.dumps(overlay), encoding="utf-8")
        return policy_of(scenario, arm, placeholders, str(file))


def change(before: Mapping[int, Run], after: Mapping[int, Run], name: str) -> Change | None:
    """Over the seeds of both; None where there is nothing to compare with, as with no cold start at
    all.
    """
    pairs = [(getattr(before[seed], name), getattr(after[seed], name)) for seed in after]
    if not all(was for was, _ in pairs):
        return None
    changes = [now / was - 1.0 for was, now in pairs]
    return Change(median(changes), min(changes), max(changes))


def earns(changes: Mapping[str, Change | None]) -> bool:
    """Whether the figures without a part say that its absence costs EARNS or more of one of
    them.
    """
    found = (changes[name] for name in ("cold", "p95", "node_hours"))
    return any(figure is not None and figure.middle >= EARNS for figure in found)


def main(arguments: Sequence[str] | None = None) -> int:
    """Replay and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    all_parts = [*PARTS, *OPT_IN]
    add_scenario_options(parser)
    parser.add_argument(
        "--parts",
        nargs="*",
        choices=all_parts,
        default=all_parts,
        metavar="PART",
        help=", ".join(all_parts),
    )
    parser.add_argument(
        "--placeholders", type=int, default=25, help="of those that a scenario has, else its most"
    )
    parser.add_argument("--seeds", type=int, default=10)
    options = parser.parse_args(arguments)
    scenarios = {
        scenario.name: scenario for scenario in SCENARIOS if scenario.name in options.scenarios
    }
    todo: list[Job] = []
    for name, scenario in scenarios.items():
        number = (
            options.placeholders
            if options.placeholders in scenario.placeholders
            else max(scenario.placeholders)
        )
        case = Case(name, AUTOSCALERS[0], number)
        for seed in range(1, options.seeds + 1):
            arms = (HUB, DEFAULTS, *options.parts)
            todo += [
                Job(case, arm, seed, options.days or scenario.days, knows=arm == LEARNING)
                for arm in arms
            ]
    runs: dict[Case, dict[str, dict[int, Run]]] = {}
    for number, (job, done) in enumerate(
        play_all(scenarios, todo, options.jobs, _policy_of_job), 1
    ):
        runs.setdefault(job.case, {}).setdefault(job.arm, {})[job.seed] = done
        say(f"  {number}/{len(todo)} {job.case.scenario}: {job.arm}, seed {job.seed}")
    print(_show(runs, options.parts, options.seeds))
    return 0


def _show(
    runs: Mapping[Case, Mapping[str, Mapping[int, Run]]], arms: Sequence[str], seeds: int
) -> str:
    head = ["hub", "placeholders", "", "cold starts", "wait p95", "wait p99", "node-hours"]
    rows = []
    earned = dict.fromkeys(arms, False)
    for case, runs_by_arm in sorted(runs.items()):
        defaults = runs_by_arm[DEFAULTS]
        against_hub = {name: change(runs_by_arm[HUB], defaults, name) for name in FIGURES}
        rows.append([case.scenario, str(case.placeholders), AGAINST_HUB, *_texts(against_hub)])
        for arm in arms:
            changes = {name: change(defaults, runs_by_arm[arm], name) for name in FIGURES}
            rows.append(["", "", arm, *_texts(changes)])
            earned[arm] |= earns(changes)
    lines = [f"{seeds} seeds: change in the median (least to greatest)", "", table(head, rows), ""]
    lines += [
        f"{arm}: costs less than {EARNS:.0%} everywhere"
        for arm in arms
        if arm in PARTS and not earned[arm]
    ]
    return "\n".join(lines)


def _texts(changes: Mapping[str, Change | None]) -> list[str]:
    return [_text(changes[name]) for name in FIGURES]


def _text(found: Change | None) -> str:
    if found is None:
        return "-"
    middle, least, greatest = (f"{100 * value:+.1f}" for value in found)
    return f"{middle} % ({least} to {greatest})"


if __name__ == "__main__":
    sys.exit(main())
