"""What slows or refuses starts in the hub: how many it starts at once, how many may run, and how
much CPU a start gets.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from generator.importing.hub_code import ACTIVE_LIMIT, CONCURRENT_LIMIT
from generator.importing.hub_python import python_of
from generator.importing.result import Draft
from generator.importing.source import HubPath, HubSection
from generator.values.lookups import child


class _Limit(NamedTuple):
    """A limit of the hub that a class may meet."""

    # The chart's key below `hub`, and Roost's below `events`.
    key: str
    trait: str
    of_chart: int
    # JupyterHub's own default, which counts once the chart's is deleted.
    of_jupyterhub: int
    advice: str


_HUB_LIMITS: Final = (
    _Limit(
        "concurrentSpawnLimit",
        trait=CONCURRENT_LIMIT,
        of_chart=64,
        of_jupyterhub=100,
        advice=(
            "where more people come at once, the others read that they should come again in 30 to"
            " 60 s. Set it to your largest class, and events.concurrentSpawnLimit."
        ),
    ),
    _Limit(
        "activeServerLimit",
        trait=ACTIVE_LIMIT,
        of_chart=0,
        of_jupyterhub=0,
        advice=(
            "who comes while so many servers run is refused. Set it to those of all others and your"
            " largest class, and events.activeServerLimit."
        ),
    ),
)


def map_limits(draft: Draft, hub: HubSection, traits: Mapping[str, tuple[object, HubPath]]) -> None:
    """Bookings say how many people the hub lets in at once, and in all."""
    for limit in _HUB_LIMITS:
        at: HubPath = ("hub", limit.key)
        number = hub.get(f"hub.{limit.key}", "any")
        where = hub.show(at)
        if limit.trait in traits:
            number, at = traits[limit.trait]
            where = f"{limit.trait} ({hub.show(at)})"
        elif number is None:
            is_deleted = hub.is_deleted(f"hub.{limit.key}")
            number = limit.of_jupyterhub if is_deleted else limit.of_chart
        if type(number) is not int:
            draft.notes.append(
                f"{where} can't be read here: write its number to events.{limit.key}."
            )
            continue
        if number != limit.of_chart:
            draft.put(f"events.{limit.key}", number, (*hub.path, *at))
        if number > 0:
            draft.notes.append(f"{where} is {number}: {limit.advice}")


def note_cpu(draft: Draft, hub: HubSection) -> None:
    """Say what a start takes where users are guaranteed no CPU; not where the hub may decide it
    elsewhere.
    """
    places = (("singleuser", "cpu", "guarantee"), ("hub", "config", "KubeSpawner", "cpu_guarantee"))
    is_set = any(child(hub.data, *place) not in (None, 0) for place in places)
    if is_set or any("cpu_guarantee" in code for _, code in python_of(hub)):
        return
    draft.notes.append(
        f"{hub.show(places[0])} isn't set: beside four busy neighbours a start took 11.4 s, and 2.5"
        " with 0.05 (docs/faster-starts.md#cpu)."
    )
