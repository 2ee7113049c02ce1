"""Make the image gate's planner from controllers.json."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from roost.controllers.contract.planner import MemoryPlanner
from roost.controllers.image_gate.gauges import GAUGES
from roost.controllers.image_gate.plan import GateMemory, note_image_gate, plan_image_gate
from roost.controllers.image_gate.settings import read_gate

if TYPE_CHECKING:
    from roost.controllers.contract.planner import Planner, Sources
    from roost_core.placement.settings_reader import Reader

NAME: Final = "image-gate"


def make_image_gate(read: Reader, sources: Sources) -> Planner | None:
    """Read its settings; faults go to the reader. In mode `off` it still runs, to remove its labels and taints."""
    settings = read_gate(read, sources.document)
    return MemoryPlanner(
        NAME,
        lambda snapshot, memory, now: plan_image_gate(snapshot, memory, settings, now),
        GateMemory(),
        note=note_image_gate,
        gauges=GAUGES,
    )
