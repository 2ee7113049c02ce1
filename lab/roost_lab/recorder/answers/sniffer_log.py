"""Read and write scheduler-sniffer's JSON lines: one object a line with object, name, endpoint, event, node, timestamp.

Its lines name pods and nodes without namespace or uid, are repeated at every resync, and often lack a time. Lines that
cannot be used are counted by reason. What is written has two more kinds of lines, so that it reads back the same:
`Pending`, when the pod was created, and `Deleted`, when and why it ended.
Source: converged-computing/scheduler-sniffer, sniffer/pkg/types/types.go, and its recorded run on GKE.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from roost_core.objects.quantities import parse_quantity
from roost_lab.pages.dates import MAX_US, US, as_date
from roost_lab.recorder.answers.pod_story import Row
from roost_lab.recorder.importing.files import Counts
from roost_lab.recorder.recording.reading import MICRO_US, SECOND_US, Step, micros
from roost_lab.recorder.store.records import (
    MAX_NAME,
    DecisionKind,
    DecisionRecord,
    NodeRecord,
    Phase,
    PhaseRecord,
    PodRecord,
    PodSource,
    Record,
)

# 2024-04-23 19:51:07.300887638 +0000 UTC m=+82.837503147
_GO_TIME: Final = re.compile(
    r"(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)(\.\d+)? ([+-]\d\d)(\d\d) \S+(?: m=[+-][\d.]+)?", re.ASCII
)
# The endpoint and event of the lines about each phase. Roost's own: the pod's creation.
_PENDING: Final = "Pending"
_LINES: Final[Mapping[Phase, tuple[str, str]]] = {
    Phase.CREATED: ("podAdd", _PENDING),
    Phase.SCHEDULED: ("bindingCycle", "BindingSuccess"),
    Phase.INITIALIZED: ("podUpdate", "Initialized"),
    Phase.STARTED: ("postStart", "postStart"),
    Phase.READY: ("podUpdate", "Ready"),
    Phase.TERMINATING: ("preStop", "preStop"),
}
# Conditions that are written with the times of these phases, which the record doesn't tell apart.
_CONDITIONS: Final = {Phase.SCHEDULED: "PodScheduled", Phase.READY: "ContainersReady"}
# How the phases are told apart: by the endpoint, else by the event, which may be one of the pod's conditions.
_ENDPOINTS: Final = {_LINES[phase][0]: phase for phase in (Phase.SCHEDULED, Phase.STARTED, Phase.TERMINATING)}
_EVENTS: Final = {
    "PodScheduled": Phase.SCHEDULED,
    **{_LINES[phase][1]: phase for phase in (Phase.CREATED, Phase.INITIALIZED, Phase.READY)},
}
_DECIDED: Final = "schedulePod"
# A pod's phase, which has no time.
_RUNNING: Final = "Running"
_ENDS: Final = {"Succeeded": "finished", "Failed": "failed"}
# Roost's own: an end of another kind, with PodRecord.end_reason as `reason`.
_DELETED: Final = "Deleted"
_NODE_GONE: Final = "nodeDeleted"
# Marks uids that are made from names.
PREFIX: Final = "sniffer:"
# Lengths that the schema allows.
_MAX_UID: Final = 64
_MAX_REASON: Final = 32
# Bytes; the sniffer's lines are short.
_MAX_LINE: Final = 1 << 16
# That may be damaged before one is recognised.
_FIRST_LINES: Final = 20


@dataclass(slots=True)
class _Pod:
    name: str
    # The earliest time: the best estimate of its creation.
    first: Step | None = None
    last_us: int = 0
    node: str = ""
    end_reason: str | None = None
    decided: Step | None = None
    phases: dict[Phase, Step] = field(default_factory=dict)


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


def read_lines(lines: Iterable[str], counts: Counts, file: str) -> Iterator[Record]:
    """Records of a log; counts on the way its `lines`, `pods` and `nodes`, and what is skipped."""
    pods: dict[str, list[_Pod]] = {}
    nodes: dict[str, NodeRecord] = {}
    for number, line in enumerate(lines, start=1):
        counts.used["lines"] += 1
        reason = _read_line(line, pods, nodes)
        if reason:
            counts.skip(reason, f"{file}:{number}")
    counts.used["pods"], counts.used["nodes"] = sum(map(len, pods.values())), len(nodes)
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
    texts = {key: text for key, text in entry.items() if isinstance(text, str)} if isinstance(entry, dict) else {}
    if not texts.get("name"):
        return "not an object with a name"
    for key in ("name", "node", "reason"):
        text = texts.get(key, "")
        if any(char == "\0" or "\ud800" <= char <= "\udfff" for char in text):
            return "characters that databases refuse"
        if key != "reason" and len(text) > MAX_NAME:
            return f"a name of more than {MAX_NAME} characters"
    at = _read_time(texts.get("timestamp"))
    match texts.get("object"):
        case "Node":
            return _read_node(texts, entry.get("extra"), at, nodes)
        case "Pod":
            return _read_pod(texts, at, _life(texts, at, pods.setdefault(texts["name"], [])))
    return f"unknown object {entry.get('object')!r}"


def _life(texts: Mapping[str, str], at: Step | None, lives: list[_Pod]) -> _Pod:
    """The pod that a line is about: a new one of that name when the last one has ended and the line is a beginning."""
    is_begin = texts.get("endpoint") == _DECIDED or texts.get("event") == _PENDING
    last = lives[-1] if lives else None
    if last is None or (is_begin and at is not None and last.end_reason is not None and at.at_us >= last.last_us):
        lives.append(_Pod(texts["name"]))
    return lives[-1]


def _read_pod(texts: Mapping[str, str], at: Step | None, pod: _Pod) -> str:
    endpoint, event = texts.get("endpoint", ""), texts.get("event")
    pod.node = texts.get("node") or pod.node
    if event in _ENDS or event == _DELETED:
        pod.end_reason = _ENDS.get(event) or (texts.get("reason") or "deleted")[:_MAX_REASON]
        # The sniffer itself writes no time here.
        pod.last_us = at.at_us if at is not None else pod.last_us
        return ""
    if event == _RUNNING or (event == "ContainersReady" and at is not None):
        # The conditions say the same, with a time.
        return ""
    if at is None:
        return "no time"
    if pod.first is None or _is_before(at, pod.first):
        pod.first = at
    pod.last_us = max(pod.last_us, at.at_us)
    phase = _ENDPOINTS.get(endpoint) or _EVENTS.get(event or "")
    if endpoint == _DECIDED:
        pod.decided = at
    elif phase is None:
        return f"unknown event {event!r}"
    elif endpoint in _ENDPOINTS or texts.get("reason") != "PodCompleted":
        # `PodCompleted` sets conditions again, after the start. Of two times the finer one counts, then the earlier.
        pod.phases[phase] = min(at, pod.phases.get(phase, at), key=lambda step: (step.resolution_us, step.at_us))
    return ""


def _is_before(at: Step, other: Step) -> bool:
    """Whether `at` is earlier; within the same second of the coarser one, the finer one counts as earlier."""
    coarse = max(at.resolution_us, other.resolution_us)
    keys = [(step.at_us // coarse, step.resolution_us, step.at_us) for step in (at, other)]
    return keys[0] < keys[1]


def _read_node(texts: Mapping[str, str], extra: object, at: Step | None, nodes: dict[str, NodeRecord]) -> str:
    name = texts["name"]
    before = nodes.get(name) or NodeRecord(uid=_uid(name), name=name)
    if isinstance(extra, dict):
        before = replace(before, allocatable=json.dumps(_allocatable(extra), sort_keys=True))
    elif at is None:
        return "no time"
    if texts.get("event") == "Ready" and at is not None:
        ready_us = min(at.at_us, before.ready_us or at.at_us)
        before = replace(before, created_us=ready_us, ready_us=ready_us)
    if (endpoint := texts.get("endpoint")) in ("nodeAdd", _NODE_GONE):
        # By the sniffer's own log, the last heartbeat.
        before = replace(before, gone_us=at.at_us if at is not None and endpoint == _NODE_GONE else None)
    nodes[name] = before
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
    created = pod.phases.get(Phase.CREATED, pod.first)
    yield PodRecord(
        uid=uid,
        name=pod.name,
        created_us=created.at_us if created is not None else 0,
        deleted_us=pod.last_us or None if pod.end_reason else None,
        end_reason=pod.end_reason,
        source=PodSource.SNIFFER,
    )
    for phase, step in pod.phases.items():
        yield PhaseRecord(pod_uid=uid, phase=phase, **step._asdict(), source="sniffer")
    at = pod.decided or pod.phases.get(Phase.SCHEDULED)
    if at is not None and pod.node:
        yield DecisionRecord(
            id=f"{uid}/{DecisionKind.BIND}",
            pod_uid=uid,
            kind=DecisionKind.BIND,
            node_name=pod.node,
            node_uid=_uid(pod.node),
            **at._asdict(),
            last_us=at.at_us,
            scheduler="",
            source="sniffer",
        )


def _read_time(text: str | None) -> Step | None:
    """A time as Go prints it, or of RFC 3339; None for anything else.

    None for Go's zero time too, and for a day or an hour that doesn't exist.
    """
    if text is None:
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
    return Step(at_us, MICRO_US if "." in text else SECOND_US)


# Writing


def go_time(at_us: int, resolution_us: int) -> str:
    """A time as Go prints it, which is the sniffer's format."""
    seconds = as_date(at_us).strftime("%Y-%m-%d %H:%M:%S")
    fraction = "" if resolution_us >= SECOND_US else f".{at_us % US:06d}"
    return f"{seconds}{fraction} +0000 UTC"


def node_lines(node: Row, changes: Sequence[Row]) -> Iterator[str]:
    """The lines of one node: its resources, and that it was ready, first, whenever either changed, and at its end.

    The kubelet's words aren't recorded. changes: the node's rows of node_change about these two, by time.
    """
    allocatable = next((row["old"] for row in changes if row["field"] == "allocatable"), node["allocatable"])
    before = next((row["old"] for row in changes if row["field"] == "ready"), "True")
    ready_us = node["ready_us"] if before == "True" else None
    yield from _node_state(node, "nodeAdd", allocatable, ready_us)
    for row in changes:
        if row["field"] == "allocatable":
            allocatable = row["new"]
        else:
            ready_us = row["at_us"] if row["new"] == "True" else None
        yield from _node_state(node, "nodeUpdate", allocatable, ready_us and row["at_us"])
    if node["gone_us"]:
        yield from _node_state(node, _NODE_GONE, allocatable, None, node["gone_us"])


def _node_state(
    node: Row, endpoint: str, allocatable: str | None, ready_us: int | None, at_us: int | None = None
) -> Iterator[str]:
    """A line of what it has, and one of its condition if it is ready. at_us: a time that the sniffer doesn't write."""
    extra = {
        f"allocatable-{resource}": f"{amount}m" if resource == "cpu" and amount % 1000 else str(amount // unit)
        for resource, amount in sorted(json.loads(allocatable or "{}").items())
        for unit in (1000 if resource == "cpu" else 1,)
    }
    about = {"object": "Node", "name": node["name"], "endpoint": endpoint}
    yield _line(**about, extra=extra, timestamp=at_us and go_time(at_us, MICRO_US))
    if ready_us:
        about |= {"reason": "KubeletReady", "message": "kubelet is posting ready status"}
        yield _line(**about, event="Ready", timestamp=go_time(ready_us, SECOND_US))


def pod_lines(pod: Row, phases: Iterable[Row], bind: Row | None) -> Iterator[str]:
    """The lines of one pod: its creation, decision, binding, conditions, start, stop and end."""
    about = {"object": "Pod", "name": pod["name"]}
    node = bind["node_name"] if bind is not None else ""

    def line(endpoint: str, event: str, at_us: int, resolution_us: int, reason: str = "") -> str:
        timestamp = go_time(at_us, resolution_us)
        return _line(**about, endpoint=endpoint, reason=reason, node=node, event=event, timestamp=timestamp)

    if bind is not None:
        yield line(_DECIDED, "ScheduleSuccess", bind["at_us"], bind["resolution_us"])
    is_running = False
    for row in phases:
        if row["phase"] in _LINES:
            yield line(*_LINES[Phase(row["phase"])], row["at_us"], row["resolution_us"])
        if row["phase"] == Phase.STARTED and not is_running:
            is_running = True
            yield _line(**about, endpoint="podUpdate", node=node, event=_RUNNING)
        if condition := _CONDITIONS.get(row["phase"]):
            yield line("podUpdate", condition, row["at_us"], SECOND_US)
    ended_us, reason = pod["deleted_us"], pod["end_reason"]
    if ended_us is not None:
        event = next((event for event, word in _ENDS.items() if word == reason), _DELETED)
        yield line("podDelete", event, ended_us, MICRO_US, reason if event == _DELETED else "")


def _line(**entry: object) -> str:
    return json.dumps({key: value for key, value in entry.items() if value}, separators=(",", ":"))
