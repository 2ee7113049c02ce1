"""`roost headroom`: how many placeholders the values ask for in the coming days, and what they come to."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from generator.faults import UsageError
from generator.pipeline import check
from generator.render.functions import complete_placeholder_set
from generator.values.files import read_values
from generator.values.release import check_release
from roost_core.placement.headroom_windows import (
    Change,
    changes_between,
    local_time,
    parse_moment,
    parse_windows,
    replica_hours,
)
from roost_core.placement.quantities import parse_quantity
from roost_core.placement.settings_reader import Reader

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from fractions import Fraction

    from roost.commands.render import RenderOptions
    from roost_core.placement.headroom_windows import Window

DAY_SECONDS: Final = 86_400
# kubelet's default maxPods.
MAX_PODS: Final = 110


class NodeSize(NamedTuple):
    """What a node has for placeholders: cores, bytes; None where it wasn't said."""

    cpu: Fraction | None
    memory: Fraction | None


def run(options: RenderOptions, *, at: str | None, days: int, node_cpu: str | None, node_memory: str | None) -> int:
    """Print each set's changes, placeholder-hours and node-hours; 0, or 1 by ValuesError."""
    node = NodeSize(_quantity("--node-cpu", node_cpu), _quantity("--node-memory", node_memory))
    check_release(options.release)
    merged = read_values(options.files, options.settings)
    for fault in check(merged, options.release):
        sys.stderr.write(f"{fault}\n")
    values: Any = merged.values
    sets: list[dict[str, Any]] = [
        complete_placeholder_set(placeholder_set, values["placeholder"]["defaults"])
        for placeholder_set in values["placeholders"]
    ]
    if not sets:
        sys.stdout.write("no placeholder sets\n")
    without = _why_without_effect(values)
    for placeholder_set in sets:
        windows = parse_windows(Reader(), placeholder_set.get("windows"), "windows")
        begin = _begin(at, windows)
        changes = list(changes_between(windows, placeholder_set["replicas"], begin, begin + days * DAY_SECONDS))
        sys.stdout.writelines(_lines(placeholder_set, windows, changes, begin + days * DAY_SECONDS, node))
        if without and (windows or placeholder_set["countBy"] == "nodes"):
            what = "windows" if windows else "countBy: nodes"
            sys.stdout.write(f"  {what} without effect: {without}\n")
    return 0


def _why_without_effect(values: Mapping[str, Any]) -> str:
    """Why nobody will keep windows and count nodes; empty where the controllers do."""
    if not values["enabled"]:
        return "enabled is false, so nothing is rendered"
    if values["placeholder"]["backend"] == "capacityBuffer":
        return "with placeholder.backend: capacityBuffer nothing follows the clock or counts nodes"
    if not values["controllers"]["enabled"]:
        return "controllers.enabled is false; the number stays as the values' replicas, or as somebody set it"
    return ""


def _begin(at: str | None, windows: Sequence[Window]) -> float:
    if at is None:
        return time.time() // 60 * 60
    try:
        return parse_moment(at, _zone_of(windows))
    except ValueError:
        raise UsageError(
            f"--at: found {at!r}, expected a date-time like 2026-10-01T08:00 (in the windows' zone)"
            " or 2026-10-01T06:00Z"
        ) from None


def _lines(
    placeholder_set: Mapping[str, Any], windows: Sequence[Window], changes: Sequence[Change], end: float, node: NodeSize
) -> Iterator[str]:
    """What is said of one set."""
    counts_nodes = placeholder_set["countBy"] == "nodes"
    unit = "nodes" if counts_nodes else "placeholders"
    zone = _zone_of(windows)
    yield f"{placeholder_set['name']} ({unit}, times of {zone})\n"
    zones = {window.name: window.time_zone for window in windows}
    width = max(len(str(change.replicas)) for change in changes)
    for change in changes:
        why = ", ".join(
            name if zones[name] == zone else f"{name} ({local_time(change.at, zones[name])} there)"
            for name in change.windows
        )
        yield f"  {local_time(change.at, zone)}  {change.replicas:>{width}}  {why or 'no window'}\n"
    hours = round((end - changes[0].at) / 3600)
    if counts_nodes:
        yield f"  {hours} hours: {_number(replica_hours(changes, end))} node-hours\n"
        return
    placeholder_hours = _number(replica_hours(changes, end))
    node_hours = _node_hours(placeholder_set, changes, end, node)
    yield f"  {hours} hours: {placeholder_hours} placeholder-hours, {node_hours}\n"


def _node_hours(placeholder_set: Mapping[str, Any], changes: Sequence[Change], end: float, node: NodeSize) -> str:
    """Node-hours of nodes that hold nothing but these placeholders."""
    per_node = _placeholders_per_node(placeholder_set["resources"].get("requests") or {}, node)
    if per_node == 0:
        return "node-hours unknown: no placeholder fits such a node"
    if per_node is None:
        hours = _number(replica_hours(changes, end))
        return f"{hours} node-hours at most (one placeholder a node; say --node-cpu and --node-memory for fewer)"
    hours = _number(replica_hours(changes, end, per=per_node))
    return f"{hours} node-hours if nothing else fills the nodes ({per_node} placeholders a node)"


def _placeholders_per_node(requests: Mapping[str, Any], node: NodeSize) -> int | None:
    """None when too little is known."""
    counts = []
    for amount, requested in ((node.cpu, requests.get("cpu")), (node.memory, requests.get("memory"))):
        asked = parse_quantity(requested) if requested is not None else 0
        if asked and amount is not None:
            counts.append(int(amount / asked))
    return min(MAX_PODS, *counts) if counts else None


def _zone_of(windows: Sequence[Window]) -> str:
    """The zone that a set's times are told in."""
    return windows[0].time_zone if windows else "UTC"


def _number(hours: float) -> str:
    return f"{hours:,.1f}".removesuffix(".0")


def _quantity(option: str, text: str | None) -> Fraction | None:
    if text is None:
        return None
    try:
        quantity = parse_quantity(text)
    except ValueError:
        quantity = parse_quantity(0)
    if quantity <= 0:
        raise UsageError(f"{option}: found {text!r}, expected a Kubernetes quantity above 0, like 4, 3920m or 14Gi")
    return quantity
