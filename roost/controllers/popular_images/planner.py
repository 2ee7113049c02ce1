"""Make the planner of popular images from controllers.json."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from roost.controllers.contract.planner import MemoryPlanner
from roost.controllers.popular_images.memory import PopularMemory
from roost.controllers.popular_images.off import OffMemory, note_popular_images_off, plan_popular_images_off
from roost.controllers.popular_images.plan import GAUGES, note_popular_images, plan_at_pace
from roost.controllers.popular_images.settings import read_popular_settings

if TYPE_CHECKING:
    from roost.controllers.contract.actions import Planned
    from roost.controllers.contract.planner import Planner, Sources
    from roost.controllers.contract.snapshot import Moment, Snapshot
    from roost_core.placement.settings_reader import Reader

NAME: Final = "popular-images"


def make_popular_images(read: Reader, sources: Sources) -> Planner:
    """Read its settings; faults go to the reader. Switched off, it still runs, to delete its pods."""
    settings = read_popular_settings(read, sources.document)
    if settings is None:
        return MemoryPlanner(NAME, plan_popular_images_off, OffMemory(), note=note_popular_images_off)

    def plan(snapshot: Snapshot, memory: PopularMemory, now: Moment) -> Planned[PopularMemory]:
        return plan_at_pace(snapshot, memory, settings, now)

    return MemoryPlanner(NAME, plan, PopularMemory(), note=note_popular_images, gauges=GAUGES)
