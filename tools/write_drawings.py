"""Draw what a replay of a made-up hub's Monday shows: its warm set, its gate, its placeholders over
the day.

.venv/bin/python -m tools.write_drawings [--check]

The drawings show moments of the replay: boxes are its pods, and the numbers are its own.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.drawing import svg, text
from roost_lab.recorder.store.database import Store
from roost_lab.simulator.sweep.recording import record_job
from roost_lab.simulator.sweep.request import load_policies, make_worlds
from roost_lab.simulator.sweep.run import make_jobs
from roost_lab.simulator.sweep.survey import trace_of
from roost_lab.units import HOUR_SECONDS, US
from roost_lab.view.reading import read_moment
from tools.generated_file import write_or_check
from tools.root import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from roost_lab.view.moment import ClusterMoment, NodeBox

IMAGES: Final = ROOT / "docs" / "images"
MONDAY: Final = datetime(2026, 11, 2, tzinfo=UTC)
GI: Final = 2**30
# Images of the hub: the share of launches, and bytes.
COURSES: Final = {
    "quay.io/hub/scipy:1": (0.5, 3 * GI),
    "quay.io/hub/r:1": (0.3, 4 * GI),
    "quay.io/hub/gis:1": (0.2, 5 * GI),
}
# Classes begin with so many people at these hours; others come over the day.
CLASSES: Final = {9: 60, 13: 45}
VALUES: Final = """
singleuser:
  image: {name: quay.io/hub/scipy, tag: "1"}
  profileList:
    - kubespawner_override: {image: "quay.io/hub/r:1"}
    - kubespawner_override: {image: "quay.io/hub/gis:1"}
placeholders:
  - name: default
    replicas: 4
    resources: {requests: {cpu: 500m, memory: 2Gi}}
    windows:
      - {name: classes, start: "30 8 * * 1-5", end: "0 15 * * 1-5", timeZone: UTC, replicas: 16}
"""
# A node takes 13 users. Its pulls and its boot take the usual times.
WORLD: Final = (
    "node_cpu_millicores=7910",
    "node_memory_bytes=30G",
    "user_cpu_millicores=500",
    "user_memory_bytes=2G",
)


def launches() -> Iterator[str]:
    """A Monday's launches, as lines of a trace; the same every time."""
    chance = random.Random(1)  # noqa: S311 - the same every time
    times = [
        hour * HOUR_SECONDS + chance.triangular(-300, 600, 0)
        for hour, people in CLASSES.items()
        for _ in range(people)
    ]
    times += [chance.triangular(6, 22, 13) * HOUR_SECONDS for _ in range(150)]
    images = list(COURSES)
    weights = [share for share, _ in COURSES.values()]
    for number, seconds in enumerate(sorted(times)):
        image = chance.choices(images, weights)[0]
        entry = {
            "timestamp": (MONDAY + timedelta(seconds=seconds)).isoformat(timespec="microseconds"),
            "schema": "roost.hub.jupyter.org/launch",
            "version": 3,
            "class": "user",
            "name": f"hub/user-{number}",
            "image": image,
            "image_bytes": COURSES[image][1],
            "cpu_millicores": 500,
            "memory_bytes": 2 * GI,
            "ready_seconds": 2.0,
            "seconds": chance.triangular(20, 150, 70) * 60,
        }
        yield json.dumps(entry) + "\n"


def replayed(folder: Path) -> Store:
    """The record of that Monday under Roost."""
    values = folder / "monday.yaml"
    trace = folder / "launches.jsonl"
    record = folder / "monday.db"
    values.write_text(VALUES, encoding="utf-8")
    trace.write_text("".join(launches()), encoding="utf-8")
    policies, _ = load_policies((), (str(values),))
    worlds = [(world.setting, world.assumptions) for world in make_worlds(WORLD)]
    (job,) = make_jobs(policies, [1], worlds, trace_of((str(trace),)))
    record_job(record, job)
    return Store.open_for_reading(str(record))


def moments(store: Store, step_seconds: int) -> Iterator[ClusterMoment]:
    """The cluster every so often, from 7:00 to 18:00."""
    for seconds in range(7 * HOUR_SECONDS, 18 * HOUR_SECONDS, step_seconds):
        at_us = round((MONDAY + timedelta(seconds=seconds)).timestamp()) * US
        if moment := read_moment(store, at_us, at_us):
            yield moment


SLOTS: Final = 13


def square(x: float, y: float, kind: str) -> str:
    """A pod, or room for one."""
    return f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="17" height="17" rx="3"/>'


def legend(y: float) -> list[str]:
    """What the squares are."""
    kinds = (
        (15, "user", "user"),
        (85, "placeholder", "placeholder: gives way to a user"),
        (345, "free", "room"),
    )
    return [
        part
        for x, kind, words in kinds
        for part in (square(x, y, kind), text(x + 24, y + 13, words))
    ]


def node_box(node: NodeBox, place: int, words: Sequence[str]) -> list[str]:
    """A node with its pods, and what to see in it."""
    x = 15 + place * 184
    pods = ["placeholder" if pod.kind == "placeholder" else "user" for pod in node.pods]
    pods.sort(reverse=True)  # users first
    squares = pods + ["free"] * (SLOTS - len(pods))
    closed = " closed" if node.pulling else ""
    return [
        f'<rect class="node{closed}" x="{x}" y="42" width="176" height="132" rx="6"/>',
        text(x + 12, 64, node.name, "bold"),
        *(
            square(x + 12 + 22 * (slot % 7), 76 + 23 * (slot // 7), kind)
            for slot, kind in enumerate(squares)
        ),
        *(text(x + 12, 140 + 18 * line, word, "small") for line, word in enumerate(words)),
    ]


def clock(moment: ClusterMoment) -> str:
    """Its time of the day."""
    return datetime.fromtimestamp(moment.at_us / US, UTC).strftime("%H:%M")


def users_of(node: NodeBox) -> int:
    """How many users a node has."""
    return sum(pod.kind == "user" for pod in node.pods)


def warm_set(moment: ClusterMoment) -> str:
    """Four nodes: users fill the oldest that hold their image, and placeholders keep room on the
    newest.
    """
    parts = [text(15, 27, f"Monday, {clock(moment)}: nodes from the oldest to the newest", "bold")]
    for place, node in enumerate(moment.nodes):
        held = f"holds {len(node.held)} of {len(COURSES)} images"
        users = users_of(node)
        role = "users go here first" if users > SLOTS / 2 else "keeps room"
        parts += node_box(node, place, (held, role))
    return svg(
        216, "Users on the two oldest nodes, placeholders on the two newest", [*parts, *legend(188)]
    )


def gate(moment: ClusterMoment) -> str:
    """The newest nodes while one of them is pulling."""
    nodes = list(moment.nodes)[-4:]
    parts = [
        text(
            15,
            27,
            f"Monday, {clock(moment)}, a class has begun: {nodes[-1].name} is new, and still"
            " pulling",
            "bold",
        )
    ]
    for place, node in enumerate(nodes):
        pulling = ", ".join(sorted(image.rpartition("/")[2] for image in node.pulling))
        words = (
            (f"pulling {pulling}:", "closed to its users")
            if pulling
            else (f"holds {len(node.held)} of {len(COURSES)} images", "open")
        )
        parts += node_box(node, place, words)
    return svg(
        216,
        "Users start on open nodes; the node that is pulling has placeholders only",
        [*parts, *legend(188)],
    )


def monday(day: Sequence[ClusterMoment]) -> str:
    """Users and placeholders over the day."""
    counts = [
        [sum(pod.kind == kind for node in moment.nodes for pod in node.pods) for moment in day]
        for kind in ("user", "placeholder")
    ]
    most = max(map(max, counts))
    left = 45
    top = 40
    width = 690
    height = 170

    def x(place: int) -> float:
        return left + width * place / (len(day) - 1)

    def y(count: float) -> float:
        return top + height * (1 - count / most)

    parts = [
        text(
            15, 24, "A Monday: users, and the placeholders that keep room for the next ones", "bold"
        )
    ]
    for count in range(0, most + 1, 20):
        parts += [
            f'<path class="grid" d="M{left} {y(count):.1f}H{left + width}"/>',
            text(15, y(count) + 4, str(count), "small"),
        ]
    for place, moment in enumerate(day):
        if clock(moment).endswith(":00") and int(clock(moment)[:2]) % 2 == 1:
            parts.append(text(x(place) - 15, top + height + 20, clock(moment), "small"))
    for kind, numbers in zip(("users", "places"), counts, strict=True):
        points = "L".join(f"{x(place):.1f} {y(count):.1f}" for place, count in enumerate(numbers))
        parts.append(f'<path class="line {kind}" d="M{points}"/>')
    parts += [
        '<path class="line users" d="M45 247h28"/>',
        text(80, 251, "users"),
        '<path class="line places" d="M150 247h28"/>',
        text(185, 251, "placeholders: 16 from 8:30 to 15:00, else 4. Users take their room"),
    ]
    return svg(266, "Users over a Monday, and placeholders that dip when a class begins", parts)


def main(argv: list[str] | None = None) -> int:
    """Write them, or with --check say which aren't what the replay gives now."""
    with tempfile.TemporaryDirectory() as made:
        store = replayed(Path(made))
        day = list(moments(store, 60))
        store.close()
    quiet = next(moment for moment in day if clock(moment) == "12:40")
    # The newest node is closed, and one that is open has room.
    begun = next(
        moment
        for moment in day
        if len(moment.nodes) > 3
        and moment.nodes[-1].pulling
        and moment.nodes[-1].pods
        and 0 < users_of(moment.nodes[-2]) < SLOTS
    )
    drawings = {"warm-set": warm_set(quiet), "gate": gate(begun), "monday": monday(day[::5])}
    files = ((IMAGES / f"{name}.svg", drawing) for name, drawing in drawings.items())
    return write_or_check(
        files, sys.argv[1:] if argv is None else argv, ".venv/bin/python -m tools.write_drawings"
    )


if __name__ == "__main__":
    sys.exit(main())
