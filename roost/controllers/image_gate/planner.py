"""Read the image gate's settings, and make its planner."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from roost.controllers.contract.planner import MemoryPlanner
from roost.controllers.image_gate.plan import GAUGES, GateMemory, note_image_gate, plan_image_gate
from roost.controllers.image_gate.settings import GateSettings, PullerPods
from roost_core.placement.pullers import read_mappings, read_pullers

if TYPE_CHECKING:
    from roost.controllers.contract.planner import Planner, Sources
    from roost_core.placement.settings_reader import Document, Reader

NAME: Final = "image-gate"
MAX_DEADLINE_SECONDS: Final = 24 * 3600


def make_image_gate(read: Reader, sources: Sources) -> Planner | None:
    """Make the gate; it runs in mode `off`, too, and then takes its labels and taints away."""
    settings = read_gate(read, sources.document)
    return MemoryPlanner(
        NAME,
        lambda snapshot, memory, now: plan_image_gate(snapshot, memory, settings, now),
        GateMemory(),
        note=note_image_gate,
        gauges=GAUGES,
    )


def read_gate(read: Reader, document: Document) -> GateSettings:
    """Read `gate` and `puller.tolerations` of controllers.json; faults go to the reader."""
    release = read.text(document.get("release"), "release")
    namespace = read.text(document.get("namespace"), "namespace")
    gate = read.mapping(document.get("gate"), "gate")
    puller = read.mapping(document.get("puller"), "puller")
    pullers = read_pullers(read, document)
    return GateSettings(
        release=release,
        namespace=namespace,
        mode=pullers.mode,
        pull_deadline_seconds=read.whole(
            gate.get("pullDeadlineSeconds"), "gate.pullDeadlineSeconds", 0, MAX_DEADLINE_SECONDS
        ),
        open_after_seconds=read.whole(gate.get("openAfterSeconds"), "gate.openAfterSeconds", 0, MAX_DEADLINE_SECONDS),
        has_puller=read.flag(gate.get("hasPuller"), "gate.hasPuller"),
        node_condition=read.flag(gate.get("nodeCondition"), "gate.nodeCondition"),
        puller_pods=read.choice(gate.get("pullerPods"), "gate.pullerPods", PullerPods),
        pullers=pullers.pullers,
        tolerations=read_mappings(read, puller.get("tolerations"), "puller.tolerations"),
    )
