"""What slows or refuses starts in the hub: how many it starts at once, how many may run, and how
much CPU a start gets.
"""

from __future__ import annotations

from collections.abc import Mapping

from generator.importing.hub_code import LIMITS
from generator.importing.result import Draft
from generator.importing.source import HubSection, Path, child
from generator.importing.unread import python_of


def map_limits(draft: Draft, hub: HubSection, traits: Mapping[str, tuple[object, Path]]) -> None:
    """Bookings say how many people the hub lets in at once, and in all."""
    again = (
        "where more people come at once, the others read that they should come again in 30 to 60 s."
        " Set it to"
    )
    full = "who comes while so many servers run is refused. Set it to those of all others and"
    limits = (
        ("concurrentSpawnLimit", LIMITS[0], 64, again),
        ("activeServerLimit", LIMITS[1], 0, full),
    )
    for key, trait, usual, advice in limits:
        at: Path = ("hub", key)
        limit = hub.get(f"hub.{key}", "any")
        where = hub.show(at)
        if trait in traits:
            limit, at = traits[trait]
            where = f"{trait} ({hub.show(at)})"
        elif limit is None:
            # JupyterHub's own default, should the chart's be deleted.
            limit = 100 if usual and hub.is_deleted(f"hub.{key}") else usual
        if type(limit) is not int:
            draft.notes.append(f"{where} can't be read here: write its number to events.{key}.")
            continue
        if limit != usual:
            draft.put(f"events.{key}", limit, (*hub.path, *at))
        if limit > 0:
            draft.notes.append(
                f"{where} is {limit}: {advice} your largest class, and events.{key}."
            )


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
