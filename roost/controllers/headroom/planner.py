"""Make the planner of headroom by the clock from controllers.json."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roost.controllers.contract.planner import MemoryPlanner
from roost.controllers.headroom.plan import GAUGES, HeadroomMemory, note_headroom, plan_headroom
from roost.controllers.headroom.settings import read_headroom_sets

if TYPE_CHECKING:
    from collections.abc import Sequence

    from roost.controllers.contract.actions import Done, Planned
    from roost.controllers.contract.planner import Planner, Sources
    from roost.controllers.contract.snapshot import Moment, Snapshot
    from roost_core.placement.settings_reader import Reader


def make_headroom(read: Reader, sources: Sources) -> Planner | None:
    """None where no set has windows or counts nodes; faults go to the reader."""
    sets = read_headroom_sets(read, sources.document)
    if not sets:
        return None

    def plan(snapshot: Snapshot, memory: HeadroomMemory, now: Moment) -> Planned[HeadroomMemory]:
        return plan_headroom(snapshot, memory, sets, now)

    def note(memory: HeadroomMemory, done: Sequence[Done], now: Moment) -> HeadroomMemory:
        return note_headroom(memory, done, sets, now)

    return MemoryPlanner("headroom", plan, HeadroomMemory(), note=note, gauges=GAUGES)
