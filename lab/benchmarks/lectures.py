"""Lectures: what people wait, and node-hours, under zero-to-jupyterhub, and under Roost without and
with a booking.

`python -m benchmarks.lectures [--seeds 10]`: made-up lectures, 100 people and
more within five minutes, on made-up weekdays of smaller and larger hubs. Paired: in each seed all
meet the same launches, image sizes and boot times. The goal: a p95 of 30 s at zero-to-jupyterhub's
node-hours + 10 %.
"""

from __future__ import annotations

import argparse
import json
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from benchmarks.figures import table
from benchmarks.studies import values_files
from generator.values.files import read_values
from generator.values.merge import SetOptions
from roost_core.release.bookings import Event, LocalStarts, first_start_after
from roost_lab.simulator.setup.assumptions import Assumptions
from roost_lab.simulator.setup.policy import load_policy
from roost_lab.simulator.sweep.rehearsal import make_days, play_days

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from roost_lab.simulator.setup.policy import Policy
    from roost_lab.simulator.sweep.rehearsal import Days

IMAGE: Final = "quay.io/me/course:1"
# People; launches a day beside theirs; the hour (UTC) of Tuesday, 24 November 2026.
LECTURES: Final = ((100, 500, 9), (120, 2000, 9), (120, 2000, 15), (200, 2000, 9), (300, 6000, 12))
FIRST: Final = "z2jh"
POLICIES: Final = (FIRST, "roost")
# Bookings: name -> the shipped policy, and how many placeholders there are at other times; None: as
# it says.
BOOKED: Final[Mapping[str, tuple[str, int | None]]] = {
    "roost, booked": ("roost", None),
    "roost, booked, none else": ("roost", 0),
}
# As large as a user, see `Assumptions`.
SIZE: Final = {"requests": {"cpu": "10m", "memory": "550M"}}


def _booked(name: str, event: Event, start: str) -> Policy:
    policy, replicas = BOOKED[name]
    files = values_files(policy)
    values: Any = read_values(files).values
    entry = {
        "name": event.name,
        "people": event.people,
        "start": start,
        "timeZone": "UTC",
        "image": IMAGE,
    }
    events = {**values["events"], "enabled": True, "booked": [entry]}
    settings = [f"events={json.dumps(events)}"]
    if replicas is not None:
        placeholder_set = {"name": "default", "replicas": replicas, "resources": SIZE}
        settings.append(f"placeholders={json.dumps([placeholder_set])}")
    return load_policy(name, files, SetOptions(json_values=settings))


def _span(amounts: Sequence[float], digits: int, unit: str = "") -> str:
    return (
        f"{median(amounts):.{digits}f} ({min(amounts):.{digits}f} to"
        f" {max(amounts):.{digits}f}){unit}"
    )


def _row(what: str, name: str, days: Days, first: Days) -> list[str]:
    pairs = zip(days.node_hours_by_seed, first.node_hours_by_seed, strict=True)
    more = [100 * (ours / theirs - 1) for ours, theirs in pairs]
    p95 = days.p95_by_seed
    hours = days.node_hours_by_seed
    return [
        what,
        name,
        _span(p95, 1),
        _span(hours, 1),
        "" if days is first else _span(more, 0, " %"),
    ]


def main() -> None:
    """Play all lectures and print one row for each policy."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=10)
    options = parser.parse_args()
    rows = []
    for people, launches, hour in LECTURES:
        text = f"2026-11-24T{hour:02}:00"
        event = Event("lecture", people, LocalStarts(text, "UTC"), IMAGE, "default")
        start = first_start_after(event, 0) or 0
        days = make_days(event, start, seeds=options.seeds, launches=launches)
        played = {name: play_days(load_policy(name), Assumptions(), days) for name in POLICIES}
        played |= {
            name: play_days(_booked(name, event, text), Assumptions(), days) for name in BOOKED
        }
        what = f"{people} at {hour}:00, {launches:,} others a day"
        rows += [_row(what, name, found, played[FIRST]) for name, found in played.items()]
    print(table(["lecture", "policy", "p95, s", "node-hours", f"than {FIRST}"], rows))


if __name__ == "__main__":
    main()
