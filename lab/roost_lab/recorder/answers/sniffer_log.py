"""Read and write scheduler-sniffer's JSON lines: one object a line with object, name, endpoint, event, node, timestamp.

Its lines name pods and nodes without namespace or uid, are repeated at every resync, and often lack a time. Lines that
cannot be used are counted by reason. What is written has two more kinds of lines, so that it reads back the same:
`Pending`, when the pod was created, and `Deleted`, when and why it ended.
Source: converged-computing/scheduler-sniffer, sniffer/pkg/types/types.go, and its recorded run on GKE.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from roost_core.objects.quantities import parse_quantity
from roost_lab.pages.dates import MAX_US, US, as_date
from roost_lab.recorder.recording.reading import MICRO_US, SECOND_US, micros
from roost_lab.recorder.store.records import (
    DecisionKind,
    DecisionRecord,
    NodeRecord,
    Phase,
    PhaseRecord,
    PodRecord,
    PodSource,
    Record,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from roost_lab.recorder.answers.pod_story import Row

# 2024-04-23 19:51:07.300887638 +0000 UTC m=+82.837503147
_GO_TIME: Final = re.compile(
    r"(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)(\.\d+)? ([+-]\d\d)(\d\d) \S+(?: m=[+-][\d.]+)?", re.ASCII
)
_CONDITIONS: Final = {"PodScheduled": Phase.SCHEDULED, "Initialized": Phase.INITIALIZED, "Ready": Phase.READY}
_ENDS: Final = {"Succeeded": "finished", "Failed": "failed"}
# Roost's own lines: the pod's creation, and an end of another kind, with PodRecord.end_reason as `reason`.
_PENDING: Final = "Pending"
_DELETED: Final = "Deleted"
# Marks uids that are made from names.
PREFIX: Final = "sniffer:"
# Lengths that the schema allows.
_MAX_UID: Final = 64
_MAX_NAME: Final = 253
_MAX_REASON: Final = 32
# Bytes; the sniffer's lines are short.
_MAX_LINE: Final = 1 << 16
# That may be damaged before one is recognised.
_FIRST_LINES: Final = 20


@dataclass(slots=True)
class _Pod:
    name: str
    # The earliest time, and its resolution: the best estimate of its creation. In µs.
    first: tuple[int, int] | None = None
    last_us: int | None = None
    node: str = ""
    end_reason: str | None = None
    decided: tuple[int, int] | None = None
    phases: dict[tuple[Phase, str], tuple[int, int]] = field(default_factory=dict)


@dataclass(slots=True)
class SnifferReport:
    """What a log contained."""

    lines: int = 0
    pods: int = 0
    nodes: int = 0
    # Reason -> number of skipped lines, and the number of the first such line.
    skipped: Counter[str] = field(default_factory=Counter)
    first_skipped: dict[str, int] = field(default_factory=dict)


def is_log(path: str) -> bool:
    """Whether one of a file's first lines is scheduler-sniffer's; False for what can't be read."""
    try:
        with Path(path).open("rb") as file:
            return any(_is_entry(file.readline(_MAX_LINE)) for _ in range(_FIRST_LINES))
    except OSError:
        return False


def _is_entry(line: bytes) -> bool:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(entry, dict) and isinstance(entry.get("object"), str) and "name" in entry


def read_lines(lines: Iterable[str], report: SnifferReport) -> Iterator[Record]:
    """Records of a log; fills in `report` on the way."""
    pods: dict[str, list[_Pod]] = {}
    nodes: dict[str, NodeRecord] = {}
    for number, line in enumerate(lines, start=1):
        report.lines += 1
        reason = _read_line(line, pods, nodes)
        if reason:
            report.skipped[reason] += 1
            report.first_skipped.setdefault(reason, number)
    report.pods, report.nodes = sum(map(len, pods.values())), len(nodes)
    yield from nodes.values()
    for name, lives in pods.items():
        for number, pod in enumerate(lives, start=1):
            yield from _pod_records(_uid(name if number == 1 else f"{name}#{number}"), pod)


def _read_line(line: str, pods: dict[str, list[_Pod]], nodes: dict[str, NodeRecord]) -> str:
    """Read one line; returns why it is skipped, "" when it isn't."""
    if not line.strip():
        return "empty"
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        # RecursionError: deeply nested brackets.
        return "not valid JSON"
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str) or not entry["name"]:
        return "not an object with a name"
    if not all(map(_is_storable, (entry["name"], entry.get("node"), entry.get("reason")))):
        return "characters that databases refuse"
    if any(isinstance(name, str) and len(name) > _MAX_NAME for name in (entry["name"], entry.get("node"))):
        return f"a name of more than {_MAX_NAME} characters"
    at = _read_time(entry.get("timestamp"))
    if entry.get("object") == "Node":
        return _read_node(entry, at, nodes)
    if entry.get("object") != "Pod":
        return f"unknown object {entry.get('object')!r}"
    return _read_pod(entry, at, _life(entry, at, pods.setdefault(entry["name"], [])))


def _is_storable(value: object) -> bool:
    """False for text with a NUL or half a surrogate pair."""
    return not isinstance(value, str) or not any(char == "\0" or "\ud800" <= char <= "\udfff" for char in value)


def _life(entry: dict[str, Any], at: tuple[int, int] | None, lives: list[_Pod]) -> _Pod:
    """The pod that a line is about: a new one of that name when the last one has ended and the line is a beginning."""
    is_begin = at is not None and (entry.get("endpoint") == "schedulePod" or entry.get("event") == _PENDING)
    last = lives[-1] if lives else None
    if last is None or (is_begin and at is not None and last.end_reason is not None and at[0] >= (last.last_us or 0)):
        lives.append(_Pod(entry["name"]))
    return lives[-1]


def _read_pod(entry: dict[str, Any], at: tuple[int, int] | None, pod: _Pod) -> str:
    endpoint, node = entry.get("endpoint"), entry.get("node")
    event = entry.get("event") if isinstance(entry.get("event"), str) else None
    if isinstance(node, str) and node:
        pod.node = node
    if event in _ENDS or event == _DELETED:
        reason = entry.get("reason")
        end_reason = reason if isinstance(reason, str) and reason else "deleted"
        pod.end_reason = _ENDS[event] if event in _ENDS else end_reason[:_MAX_REASON]
        # The sniffer itself writes no time here.
        pod.last_us = at[0] if at is not None else pod.last_us
        return ""
    if event in ("Running", "ContainersReady"):
        # The conditions say the same, with a time.
        return "" if event == "Running" or at is not None else "no time"
    if at is None:
        return "no time"
    if pod.first is None or _is_before(at, pod.first):
        pod.first = at
    pod.last_us = at[0] if pod.last_us is None else max(pod.last_us, at[0])
    if endpoint == "schedulePod":
        pod.decided = at
    elif endpoint == "bindingCycle":
        _keep(pod, Phase.SCHEDULED, at)
    elif endpoint == "postStart":
        _keep(pod, Phase.STARTED, at)
    elif endpoint == "preStop":
        _keep(pod, Phase.TERMINATING, at)
    elif event == _PENDING:
        _keep(pod, Phase.CREATED, at)
    elif isinstance(event, str) and event in _CONDITIONS:
        # `PodCompleted` sets the condition again, after the start.
        if entry.get("reason") != "PodCompleted":
            _keep(pod, _CONDITIONS[event], at)
    else:
        return f"unknown event {event!r}"
    return ""


def _keep(pod: _Pod, phase: Phase, at: tuple[int, int]) -> None:
    """The finer resolution wins, then the earlier time."""
    before = pod.phases.get((phase, ""))
    if before is None or (at[1], at[0]) < (before[1], before[0]):
        pod.phases[phase, ""] = at


def _is_before(at: tuple[int, int], other: tuple[int, int]) -> bool:
    """Whether `at` is earlier; within the same second of the coarser one, the finer one counts as earlier."""
    coarse = max(at[1], other[1])
    return (at[0] // coarse, at[1], at[0]) < (other[0] // coarse, other[1], other[0])


def _read_node(entry: dict[str, Any], at: tuple[int, int] | None, nodes: dict[str, NodeRecord]) -> str:
    name = entry["name"]
    before = nodes.get(name)
    allocatable = before.allocatable if before is not None else None
    extra = entry.get("extra")
    if isinstance(extra, dict):
        allocatable = json.dumps(_allocatable(extra), sort_keys=True)
    elif at is None:
        return "no time"
    ready_us = before.ready_us if before is not None else None
    if entry.get("event") == "Ready" and at is not None:
        ready_us = at[0] if ready_us is None else min(ready_us, at[0])
    nodes[name] = NodeRecord(
        uid=_uid(name),
        name=name,
        created_us=ready_us or 0,
        ready_us=ready_us,
        allocatable=allocatable,
    )
    return ""


def _allocatable(extra: dict[str, Any]) -> dict[str, int]:
    allocatable = {}
    for key, amount in extra.items():
        kind, _, resource = key.partition("-")
        if kind != "allocatable":
            continue
        try:
            value = parse_quantity(amount) * (1000 if resource == "cpu" else 1)
        except ValueError:
            continue
        allocatable[resource] = -(-value.numerator // value.denominator)
    return allocatable


def _uid(name: str) -> str:
    uid = f"{PREFIX}{name}"
    if len(uid) <= _MAX_UID:
        return uid
    # Long names with the same beginning stay different.
    digest = sha256(name.encode()).hexdigest()[:16]
    return f"{uid[: _MAX_UID - len(digest) - 1]}-{digest}"


def _pod_records(uid: str, pod: _Pod) -> Iterator[Record]:
    created = pod.phases.get((Phase.CREATED, ""), pod.first)
    yield PodRecord(
        uid=uid,
        name=pod.name,
        created_us=created[0] if created is not None else 0,
        deleted_us=pod.last_us if pod.end_reason else None,
        end_reason=pod.end_reason,
        source=PodSource.SNIFFER,
    )
    for (phase, detail), (at_us, resolution_us) in pod.phases.items():
        yield PhaseRecord(
            pod_uid=uid, phase=phase, detail=detail, at_us=at_us, resolution_us=resolution_us, source="sniffer"
        )
    bound = pod.phases.get((Phase.SCHEDULED, ""))
    at = pod.decided or bound
    if at is not None and pod.node:
        yield DecisionRecord(
            id=f"{uid}/bind",
            pod_uid=uid,
            kind=DecisionKind.BIND,
            node_name=pod.node,
            node_uid=_uid(pod.node),
            at_us=at[0],
            resolution_us=at[1],
            last_us=at[0],
            scheduler="",
            source="sniffer",
        )


def _read_time(text: object) -> tuple[int, int] | None:
    """(µs, resolution in µs) of a time as Go prints it, or of RFC 3339; None for anything else.

    None for Go's zero time too, and for a day or an hour that doesn't exist.
    """
    if not isinstance(text, str):
        return None
    match = _GO_TIME.fullmatch(text)
    if match is not None:
        day, clock, fraction, hours, minutes = match.groups()
        text = f"{day}T{clock}{fraction or ''}{hours}:{minutes}"
    at_us = micros(text)
    if at_us is None or not 0 < at_us <= MAX_US:
        return None
    try:
        # Without zone and fraction, which may have more digits than it accepts.
        datetime.fromisoformat(text[:19].upper())
    except ValueError:
        return None
    return at_us, MICRO_US if "." in text else SECOND_US


# Writing


def go_time(at_us: int, resolution_us: int) -> str:
    """A time as Go prints it, which is the sniffer's format."""
    seconds = as_date(at_us).strftime("%Y-%m-%d %H:%M:%S")
    fraction = "" if resolution_us >= SECOND_US else f".{at_us % US:06d}"
    return f"{seconds}{fraction} +0000 UTC"


def node_lines(node: Row) -> Iterator[str]:
    """The lines of one node: its resources, and when it became ready."""
    allocatable = json.loads(node["allocatable"] or "{}")
    extra = {
        f"allocatable-{resource}": f"{amount}m" if resource == "cpu" else str(amount)
        for resource, amount in sorted(allocatable.items())
    }
    yield _line(object="Node", name=node["name"], endpoint="nodeAdd", extra=extra)
    if node["ready_us"]:
        yield _line(
            object="Node",
            name=node["name"],
            endpoint="nodeAdd",
            event="Ready",
            timestamp=go_time(node["ready_us"], SECOND_US),
        )


def pod_lines(pod: Row, phases: Iterable[Row], bind: Row | None) -> Iterator[str]:
    """The lines of one pod: its creation, decision, binding, conditions, start, stop and end."""
    name, node = pod["name"], bind["node_name"] if bind is not None else ""

    def line(endpoint: str, event: str, row: Row) -> str:
        timestamp = go_time(row["at_us"], row["resolution_us"])
        return _line(object="Pod", name=name, endpoint=endpoint, node=node, event=event, timestamp=timestamp)

    if bind is not None:
        yield line("schedulePod", "ScheduleSuccess", bind)
    words = {phase: event for event, phase in _CONDITIONS.items()}
    for row in phases:
        phase = Phase(row["phase"])
        if phase is Phase.CREATED:
            yield line("podAdd", _PENDING, row)
        elif phase is Phase.SCHEDULED:
            yield line("bindingCycle", "BindingSuccess", row)
        elif phase is Phase.STARTED:
            yield line("postStart", "postStart", row)
        elif phase is Phase.TERMINATING:
            yield line("preStop", "preStop", row)
        elif phase in words:
            yield line("podUpdate", words[phase], row)
    ended_us, reason = pod["deleted_us"], pod["end_reason"]
    if ended_us is not None:
        event = next((event for event, word in _ENDS.items() if word == reason), _DELETED)
        yield _line(
            object="Pod",
            name=name,
            endpoint="podDelete",
            reason=reason if event == _DELETED else "",
            node=node,
            event=event,
            timestamp=go_time(ended_us, MICRO_US),
        )


def _line(**entry: object) -> str:
    return json.dumps({key: value for key, value in entry.items() if value}, separators=(",", ":"))
