"""Make the placeholder mover's planner from controllers.json and the scheduler's configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roost.controllers.contract.planner import MemoryPlanner
from roost.controllers.placeholder_mover.plan import (
    GAUGES,
    MoverMemory,
    note_placeholder_mover,
    plan_placeholder_mover,
)
from roost.controllers.placeholder_mover.settings import read_mover_settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from roost.controllers.contract.actions import Done, Planned
    from roost.controllers.contract.planner import Planner, Sources
    from roost.controllers.contract.snapshot import Moment, Snapshot
    from roost_core.placement.settings_reader import Reader


def make_placeholder_mover(read: Reader, sources: Sources) -> Planner | None:
    """Read its settings; faults go to the reader. Switched off, it still runs, to remove its marks."""
    settings = read_mover_settings(read, sources.document, sources.scheduler_configuration, sources.minor)

    def plan(snapshot: Snapshot, memory: MoverMemory, now: Moment) -> Planned[MoverMemory]:
        return plan_placeholder_mover(snapshot, memory, settings, now)

    def note(memory: MoverMemory, done: Sequence[Done], now: Moment) -> MoverMemory:
        return note_placeholder_mover(memory, done, settings, now)

    return MemoryPlanner("placeholder-mover", plan, MoverMemory(), note=note, gauges=GAUGES)
