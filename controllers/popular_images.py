"""Make the planner of popular images from the settings' document."""

from __future__ import annotations

from typing import TYPE_CHECKING

from controllers.planner import MemoryPlanner
from controllers.plans.popular_images import GAUGES, PopularMemory, note_popular_images, plan_at_pace
from controllers.plans.popular_settings import read_popular_settings

if TYPE_CHECKING:
    from controllers.planner import Planner, Sources
    from controllers.plans.actions import Planned
    from controllers.plans.snapshot import Moment, Snapshot
    from placement.documents import Reader


def make_popular_images(read: Reader, sources: Sources) -> Planner | None:
    """None while `popularImages.enabled` is false; faults go to the reader."""
    settings = read_popular_settings(read, sources.document)
    if settings is None:
        return None

    def plan(snapshot: Snapshot, memory: PopularMemory, now: Moment) -> Planned[PopularMemory]:
        return plan_at_pace(snapshot, memory, settings, now)

    return MemoryPlanner("popular-images", plan, PopularMemory(), note=note_popular_images, gauges=GAUGES)
