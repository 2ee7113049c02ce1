"""Read the image gate's settings, and make its planner."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from roost.controllers.contract.planner import MemoryPlanner
from roost.controllers.image_gate.plan import GAUGES, GateMemory, note_image_gate, plan_image_gate
from roost.controllers.image_gate.settings import GateSettings, PullerGroup, PullerPods, managed_image
from roost_core.placement.puller_reach import read_required_terms, read_tolerations
from roost_core.placement.settings import GateMode

if TYPE_CHECKING:
    from roost.controllers.contract.planner import Planner, Sources
    from roost_core.placement.documents import Document, Reader

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
    deadline = gate.get("startupTaintDeadlineSeconds")
    return GateSettings(
        release=release,
        namespace=namespace,
        mode=read.choice(gate.get("mode"), "gate.mode", GateMode),
        startup_taint_deadline_seconds=read.whole(
            deadline, "gate.startupTaintDeadlineSeconds", 0, MAX_DEADLINE_SECONDS
        ),
        pull_deadline_seconds=read.whole(
            gate.get("pullDeadlineSeconds"), "gate.pullDeadlineSeconds", 0, MAX_DEADLINE_SECONDS
        ),
        open_after_seconds=read.whole(gate.get("openAfterSeconds"), "gate.openAfterSeconds", 0, MAX_DEADLINE_SECONDS),
        has_puller=read.flag(gate.get("hasPuller"), "gate.hasPuller"),
        node_condition=read.flag(gate.get("nodeCondition"), "gate.nodeCondition"),
        puller_pods=read.choice(gate.get("pullerPods"), "gate.pullerPods", PullerPods),
        groups=tuple(
            _read_group(read, read.mapping(one, f"gate.pullers[{index}]"), f"gate.pullers[{index}]", release, namespace)
            for index, one in enumerate(read.items(gate.get("pullers"), "gate.pullers"))
        ),
        tolerations=tuple(
            read.mapping(one, f"puller.tolerations[{index}]")
            for index, one in enumerate(read.items(puller.get("tolerations"), "puller.tolerations"))
        ),
    )


def _read_group(read: Reader, group: Document, key: str, release: str, namespace: str) -> PullerGroup:
    references = [
        read.text(one, f"{key}.images[{index}]")
        for index, one in enumerate(read.items(group.get("images"), f"{key}.images"))
    ]
    return PullerGroup(
        name=read.text(group.get("name"), f"{key}.name"),
        node_selector=read.labels(group.get("nodeSelector"), f"{key}.nodeSelector"),
        images=tuple(managed_image(release, namespace, one) for one in references if one),
        required_terms=read_required_terms(read, group, key),
        tolerations=read_tolerations(read, group, key, release, namespace),
    )
