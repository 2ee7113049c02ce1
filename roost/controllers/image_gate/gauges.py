"""The image gate's metrics."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from roost.controllers.contract.actions import GaugeDefinition, Gauges
from roost.controllers.image_gate.absent_images import Opening
from roost.controllers.image_gate.node_reports import NO_PULLER
from roost.controllers.image_gate.pull_causes import find_cause

if TYPE_CHECKING:
    from collections.abc import Mapping

    from roost.controllers.contract.snapshot import Moment
    from roost.controllers.image_gate.node_view import NodeMemory
    from roost.controllers.image_gate.settings import GateSettings

GAUGES: Final = (
    GaugeDefinition("gate_images_missing", "Nodes that still lack an image that belongs on them.", ("image",)),
    GaugeDefinition("gate_images_held", "Nodes that hold an image that belongs on them.", ("image",)),
    GaugeDefinition("gate_nodes_waiting", "Nodes that still lack one image at least."),
    GaugeDefinition(
        "gate_oldest_wait_seconds",
        "How long the node that has waited longest has lacked an image; 0: no node lacks one.",
    ),
    GaugeDefinition("gate_pull_faults", "Images that can't be pulled now, once for each node, by cause.", ("reason",)),
    GaugeDefinition("gate_nodes_closed", "Nodes that an image's users keep off while it is pulled there.", ("image",)),
    GaugeDefinition(
        "gate_nodes_opened", "Nodes that lack an image and were opened to its users, once for each image.", ("reason",)
    ),
    GaugeDefinition("gate_nodes_tainted", "Nodes that carry the startup taint."),
    GaugeDefinition(
        "gate_nodes_opened_without_images", "Nodes whose startup taint went at its deadline and that still lack images."
    ),
)


def gauge_values(
    nodes: Mapping[str, NodeMemory],
    settings: GateSettings,
    opened_late: frozenset[str],
    to_users: Mapping[tuple[str, str], float],
    now: Moment,
) -> Gauges:
    """Count over all nodes. opened_late: names of nodes; to_users: nodes and labels opened for waiting users."""
    missing: Counter[str] = Counter()
    wanted: Counter[str] = Counter()
    faults: Counter[str] = Counter()
    closed: Counter[str] = Counter()
    opened: Counter[str] = Counter()
    waiting = tainted = 0
    oldest = now.steady
    for memory in nodes.values():
        wanted.update(image.normalised for image in memory.wanted)
        closed.update(memory.closed)
        name = memory.node.name
        opened.update(
            Opening.USER_WAITS if (name, label) in to_users and why is Opening.EARLIER else why
            for label, why in memory.opened.items()
        )
        tainted += any(taint.key == settings.taint_key for taint in memory.node.taints)
        if not memory.missing:
            continue
        waiting += 1
        missing.update(image.normalised for image in memory.missing)
        faults.update(find_cause(fault).value for fault in memory.faults.values())
        if not memory.evidence:
            faults[NO_PULLER] += len(memory.missing)
        if memory.waiting_since is not None:
            oldest = min(oldest, memory.waiting_since)
    images = settings.images.items()
    return {
        "gate_images_missing": {(image.reference,): float(missing[name]) for name, image in images},
        "gate_images_held": {(image.reference,): float(wanted[name] - missing[name]) for name, image in images},
        "gate_nodes_waiting": {(): float(waiting)},
        "gate_oldest_wait_seconds": {(): now.steady - oldest},
        "gate_pull_faults": {(reason,): float(number) for reason, number in sorted(faults.items())},
        "gate_nodes_closed": {(image.reference,): float(closed[image.label]) for image in settings.images.values()},
        "gate_nodes_opened": {(reason.value,): float(opened[reason]) for reason in Opening if opened[reason]},
        "gate_nodes_tainted": {(): float(tainted)},
        "gate_nodes_opened_without_images": {(): float(sum(bool(nodes[name].missing) for name in opened_late))},
    }
