"""Make the placeholder mover's planner from the settings' document and the scheduler's configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from controllers.planner import MemoryPlanner
from controllers.plans.placeholder_mover import (
    GAUGES,
    MoverMemory,
    note_placeholder_mover,
    plan_placeholder_mover,
)
from controllers.plans.placeholder_mover_settings import read_mover_settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controllers.planner import Planner, Sources
    from controllers.plans.actions import Done, Planned
    from controllers.plans.snapshot import Moment, Snapshot
    from placement.documents import Reader


def make_placeholder_mover(read: Reader, sources: Sources) -> Planner | None:
    """Read its settings; faults go to the reader. Switched off it still runs, and takes its marks away."""
    settings = read_mover_settings(read, sources.document, sources.scheduler_configuration, sources.minor)

    def plan(snapshot: Snapshot, memory: MoverMemory, now: Moment) -> Planned[MoverMemory]:
        return plan_placeholder_mover(snapshot, memory, settings, now)

    def note(memory: MoverMemory, done: Sequence[Done], now: Moment) -> MoverMemory:
        return note_placeholder_mover(memory, done, settings, now)

    return MemoryPlanner("placeholder-mover", plan, MoverMemory(), note=note, gauges=GAUGES)
