"""Replay ten days of mybinder.org as people felt them: with the policy that really ran, and with
Roost.

`python -m benchmarks.flagship`: the trace of 2019-05-22 to 31 in the world `mybinder-2019`, whose
waits end when servers answer. Compared are zero-to-jupyterhub's user-scheduler with 25
placeholders, which that cluster had, and Roost's defaults with as many. Three tables: what each
gives; where the seconds of the mean wait went, with those that placement can't touch; and the waits
that were published, beside those of the days that the world was fitted to and of the other days.

`--results FILE` keeps each replay as a JSON line; a run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Final

from benchmarks.figures import say, table
from roost_lab.simulator.engine.results import ANSWER, NODE_WAIT, PULL, PULL_WAIT, QUEUE, START
from roost_lab.simulator.engine.world import World
from roost_lab.simulator.setup.checks import make_assumptions
from roost_lab.simulator.setup.policy import load_policy
from roost_lab.simulator.setup.worlds import MYBINDER, PUBLISHED, WORLDS
from roost_lab.simulator.sweep.run import code_fingerprint
from roost_lab.simulator.sweep.survey import trace_of
from roost_lab.traces.attempt import Attempt
from roost_lab.units import DAY_SECONDS
from tests.recorded_data import LAUNCHES

# What really ran, and Roost with as many placeholders.
BEFORE, AFTER = "z2jh-placeholders-packed", "roost"
POLICIES: Final = (BEFORE, AFTER)
# Parts of a wait that no choice of a node changes.
UNTOUCHED: Final = (START, ANSWER)
QUANTILES: Final = (0.5, 0.9, 0.95, 0.99)
# The first day begins with cold caches, and is in neither half. The others alternate.
FITTED, JUDGED = "days 2, 4, 6, 8, 10: fitted", "days 3, 5, 7, 9: judged"
TIB: Final = 2**40


@dataclass(frozen=True)
class FeltReplay:
    """One policy and seed."""

    policy: str
    seed: int
    cold: int
    started: int
    given_up: int
    timeouts: int
    node_hours: float
    registry_bytes: int
    # Seconds by QUANTILES, of servers that came up.
    quantiles: tuple[float, ...]
    # Seconds of the mean wait by part.
    parts: Mapping[str, float]
    # FITTED and JUDGED -> seconds by the shares of PUBLISHED.
    halves: Mapping[str, tuple[float, ...]]


def play(policy: str, seed: int, days: float) -> FeltReplay:
    """Replay so many days of the trace."""
    assumptions = make_assumptions(WORLDS[MYBINDER], MYBINDER)
    moments: dict[int, float] = {}
    world = World(load_policy(policy), assumptions, seed)
    ended: list[tuple[int, float]] = []

    def note(number: int, seconds: float, is_up: bool) -> None:
        if is_up:
            ended.append((number, seconds))

    world.measures.on_wait = note
    result = world.play(_noted(trace_of((str(LAUNCHES),)).open(seed), moments, days))
    first_day = min(moments.values()) // DAY_SECONDS
    by_half: dict[str, list[float]] = {FITTED: [], JUDGED: []}
    for number, seconds in ended:
        day = int(moments[number] // DAY_SECONDS - first_day)
        if day:
            by_half[FITTED if day % 2 else JUDGED].append(seconds)
    return FeltReplay(
        policy=policy,
        seed=seed,
        cold=result.cold,
        started=result.started,
        given_up=result.given_up,
        timeouts=result.timeouts,
        node_hours=result.node_hours,
        registry_bytes=result.registry_bytes,
        quantiles=quantiles((seconds for _, seconds in ended), QUANTILES),
        parts={part: waits.mean for part, waits in result.waits.items()},
        halves={half: quantiles(waits, PUBLISHED) for half, waits in by_half.items()},
    )


def _noted(
    attempts: Iterable[Attempt], moments: dict[int, float], days: float
) -> Iterator[Attempt]:
    """The attempts of the first days; notes when each came, by number."""
    end = math.inf
    for attempt in attempts:
        if not moments:
            end = (attempt.moment // DAY_SECONDS + days) * DAY_SECONDS
        if attempt.moment >= end:
            return
        moments[attempt.number] = attempt.moment
        yield attempt


def quantiles(seconds: Iterable[float], shares: Iterable[float]) -> tuple[float, ...]:
    """The least of these waits that a share of them doesn't exceed, for each share."""
    ordered = sorted(seconds)
    if not ordered:
        return tuple(0.0 for _ in shares)
    return tuple(ordered[max(0, math.ceil(share * len(ordered)) - 1)] for share in shares)


# Tables


def show(replays: Sequence[FeltReplay]) -> str:
    """What each policy gives: medians over the seeds, least and greatest in brackets."""
    head = ["policy", "cold starts", "wait, p50, s", "wait, p90, s", "wait, p95, s"]
    head += ["wait, p99, s", "node-hours", "given up", "from registries, TiB"]
    rows = []
    for policy, own in _by_policy(replays):
        row = [policy, _spread([replay.cold for replay in own], 0)]
        row += [
            _spread([replay.quantiles[place] for replay in own], 1)
            for place in range(len(QUANTILES))
        ]
        row.append(_spread([replay.node_hours for replay in own], 0))
        row.append(_spread([replay.given_up for replay in own], 0))
        row.append(_spread([replay.registry_bytes / TIB for replay in own], 2))
        rows.append(row)
    return table(head, rows)


def show_parts(replays: Sequence[FeltReplay]) -> str:
    """Where the seconds of the mean wait went, in the median of the seeds."""
    parts = {
        "queue": (QUEUE,),
        "for room": (NODE_WAIT,),
        "behind other pulls": (PULL_WAIT,),
        "pulling": (PULL,),
        "what placement can't touch: start and answer": UNTOUCHED,
    }
    head = ["seconds of the mean wait", *(policy for policy, _ in _by_policy(replays))]
    rows = []
    for name, own_parts in parts.items():
        row = [name]
        for _, own in _by_policy(replays):
            row.append(f"{median(_sum(replay, own_parts) for replay in own):.2f}")
        rows.append(row)
    every = [part for own_parts in parts.values() for part in own_parts]
    rows.append(["all"])
    rows.append(["share that placement can't touch"])
    for _, own in _by_policy(replays):
        rows[-2].append(f"{median(_sum(replay, every) for replay in own):.2f}")
        share = median(_sum(replay, UNTOUCHED) / _sum(replay, every) for replay in own)
        rows[-1].append(f"{100 * share:.0f} %")
    return table(head, rows)


def show_published(replays: Sequence[FeltReplay]) -> str:
    """The waits that were published beside those of both halves of the days."""
    own = dict(_by_policy(replays))[BEFORE]
    head = ["of 100 launches", "published, s", FITTED, JUDGED, "off, of the days judged"]
    rows = []
    for place, (share, seconds) in enumerate(PUBLISHED.items()):
        fitted, judged = (
            median(replay.halves[half][place] for replay in own) for half in (FITTED, JUDGED)
        )
        off = f"{100 * (judged / seconds - 1):+.0f} %"
        rows.append(
            [f"{100 * share:g} at most", f"{seconds:g}", f"{fitted:.1f}", f"{judged:.1f}", off]
        )
    return table(head, rows)


def _by_policy(replays: Sequence[FeltReplay]) -> list[tuple[str, list[FeltReplay]]]:
    return [
        (policy, [replay for replay in replays if replay.policy == policy])
        for policy in dict.fromkeys(replay.policy for replay in replays)
    ]


def _sum(replay: FeltReplay, parts: Iterable[str]) -> float:
    return sum(replay.parts[part] for part in parts)


def _spread(values: Sequence[float], digits: int) -> str:
    least, greatest = min(values), max(values)
    middle = f"{median(values):,.{digits}f}"
    return (
        middle if len(values) == 1 else f"{middle} ({least:,.{digits}f} to {greatest:,.{digits}f})"
    )


# Replays that are kept


def _key(policy: str, seed: int, days: float) -> str:
    inputs = {"code": code_fingerprint(), "days": days, "policy": policy, "seed": seed}
    return json.dumps({**inputs, "world": dict(WORLDS[MYBINDER])}, sort_keys=True)


def _read(path: Path | None) -> dict[str, FeltReplay]:
    found: dict[str, FeltReplay] = {}
    if path is None or not path.exists():
        return found
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            entry = json.loads(line)
        except json.JSONDecodeError:
            # It was cut off in writing, and is played again.
            continue
        replay = entry["replay"]
        replay["quantiles"] = tuple(replay["quantiles"])
        replay["halves"] = {half: tuple(waits) for half, waits in replay["halves"].items()}
        found[entry["key"]] = FeltReplay(**replay)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Replay and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--days", type=float, default=10.0, help="of the trace, from its first on")
    parser.add_argument("--results", type=Path, metavar="FILE", help="keep replays, and go on")
    options = parser.parse_args(arguments)
    kept = _read(options.results)
    replays = []
    for seed in range(1, options.seeds + 1):
        for policy in POLICIES:
            key = _key(policy, seed, options.days)
            if key not in kept:
                kept[key] = play(policy, seed, options.days)
                if options.results is not None:
                    with options.results.open("a", encoding="utf-8") as file:
                        file.write(json.dumps({"key": key, "replay": asdict(kept[key])}) + "\n")
            replays.append(kept[key])
            say(f"  seed {seed}, {policy}: {kept[key].cold:,} cold starts")
    print(show(replays))
    print(f"\n{show_parts(replays)}\n\n{show_published(replays)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
