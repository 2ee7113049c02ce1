"""Draw a day of lectures, always with 25 placeholders and as `roost import` writes them: `-m benchmarks.lecture_day`.

The launches are those of `benchmarks.learned_headroom`'s hub "lecture"; the day is the ninth, when a week was seen.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.figures import say
from benchmarks.hub_scenarios import DAY, HOUR
from benchmarks.learned_headroom import FIXED, HUBS, IMPORTED, policies
from roost_lab.simulator.engine.world import World
from roost_lab.simulator.setup.checks import make_assumptions
from tools.write_drawings import IMAGES, svg, text

SCENARIO: Final = next(one for one in HUBS if one.name == "lecture")
BEFORE_DAYS: Final = 8
FIRST_HOUR, LAST_HOUR, STEP_SECONDS = 7, 19, 120
LEFT, WIDTH, HEIGHT = 45, 690, 130


class Moment(NamedTuple):
    """How many there are at a time."""

    users: int
    placeholders: int
    nodes: int


def played(arm: str, seed: int) -> list[Moment]:
    """The ninth day under an arm, every two minutes."""
    policy = dict(policies(SCENARIO))[arm]
    world = World(policy, make_assumptions(dict(SCENARIO.world), SCENARIO.name), seed)
    launches = SCENARIO.launches(seed, BEFORE_DAYS + 1.0)
    day = launches[0].moment // DAY * DAY + BEFORE_DAYS * DAY
    found: list[Moment] = []

    def look(_: object) -> None:
        kinds = [pod.kind for node in world.nodes.values() for pod in node.pods.values()]
        found.append(Moment(kinds.count("user"), kinds.count("placeholder"), len(world.nodes)))

    for seconds in range(FIRST_HOUR * 3600, LAST_HOUR * 3600 + 1, STEP_SECONDS):
        world.at(day + seconds, look)
    world.play(launches)
    return found


def panel(top: float, title: str, day: Sequence[Moment], most: int) -> Iterator[str]:
    """Lines of users, placeholders and nodes, each node as the ten pods that it is drawn as."""

    def y(count: float) -> float:
        return top + 20 + HEIGHT * (1 - count / most)

    hours = sum(one.nodes for one in day[:-1]) * STEP_SECONDS / HOUR
    yield text(15, top, f"{title}: {hours:.0f} node-hours from {FIRST_HOUR}:00 to {LAST_HOUR}:00", "bold")
    for count in range(0, most + 1, 50):
        yield f'<path class="grid" d="M{LEFT} {y(count):.1f}H{LEFT + WIDTH}"/>'
        yield text(15, y(count) + 4, str(count), "small")
    lines = {"users": [one.users for one in day], "places": [one.placeholders for one in day]}
    lines["node"] = [10 * one.nodes for one in day]
    for kind, numbers in lines.items():
        points = (f"{LEFT + WIDTH * place / (len(day) - 1):.1f} {y(count):.1f}" for place, count in enumerate(numbers))
        look = 'class="line node" style="fill:none"' if kind == "node" else f'class="line {kind}"'
        yield f'<path {look} d="M{"L".join(points)}"/>'
    for hour in range(FIRST_HOUR, LAST_HOUR + 1, 2):
        x = LEFT + WIDTH * (hour - FIRST_HOUR) / (LAST_HOUR - FIRST_HOUR)
        yield text(x - 15, top + HEIGHT + 38, f"{hour:02}:00", "small")


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the drawing."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--output", type=Path, default=IMAGES / "lecture-day.svg")
    options = parser.parse_args(arguments)
    days = {arm: played(arm, options.seed) for arm in (FIXED, IMPORTED)}
    most = max(max(one.users, one.placeholders, 10 * one.nodes) for day in days.values() for one in day)
    titles = {FIXED: "Always 25 placeholders", IMPORTED: "As roost import writes them"}
    parts = [part for place, arm in enumerate(days) for part in panel(24 + 195 * place, titles[arm], days[arm], most)]
    y = 24 + 195 * 2
    parts += [
        f'<path class="line users" d="M45 {y}h28"/>',
        text(80, y + 4, "users"),
        f'<path class="line places" d="M150 {y}h28"/>',
        text(185, y + 4, "placeholders"),
        f'<path class="line node" style="fill:none" d="M300 {y}h28"/>',
        text(335, y + 4, "nodes, ten times their number"),
    ]
    label = "A day with two lectures: users, placeholders and nodes, with a fixed number and as learned"
    options.output.write_text(svg(y + 18, label, parts), encoding="utf-8")
    for arm, day in days.items():
        say(
            f"{arm}: at most {max(one.placeholders for one in day)} placeholders, {max(one.nodes for one in day)} nodes"
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
