"""Read and write scheduler-sniffer's log: a JSON object a line.

Its keys are `object`, `name`, `endpoint`, `event`, `node`, `timestamp` and a few others.

Reading: lines name pods and nodes without namespace or uid. They are repeated at every resync, and
many lack a time. Lines that can't be used are counted by reason.

Writing: the sniffer's lines without the repeats, and two more kinds of lines. With them the log
reads back the same: `Pending` says when the pod was created, `Deleted` when and why it ended.

Source: converged-computing/scheduler-sniffer, sniffer/pkg/types and sniffer/pkg/watcher, and its
recorded run on GKE.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from hashlib import sha256
from operator import itemgetter
from pathlib import Path
from typing import Final

from roost_core.objects.fields import JSONObject
from roost_core.objects.requests import CPU
from roost_lab.pages.dates import MAX_US, as_date
from roost_lab.recorder.answers.pod_story import Row
from roost_lab.recorder.answers.waiting import is_in_bytes
from roost_lab.recorder.importing.files import Counts
from roost_lab.recorder.recording.decision_records import decision
from roost_lab.recorder.recording.reading import MICRO_US, SECOND_US, Step, amounts_text, micros
from roost_lab.recorder.store.records import (
    MAX_NAME,
    DecisionKind,
    NodeRecord,
    Phase,
    PhaseRecord,
    PodRecord,
    PodSource,
    Record,
)
from roost_lab.units import US

# 2024-04-23 19:51:07.300887638 +0000 UTC m=+82.837503147
_GO_TIME: Final = re.compile(
    r"(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)(\.\d+)? ([+-]\d\d)(\d\d) \S+(?: m=[+-][\d.]+)?", re.ASCII
)
# The keys of a line, in the sniffer's order.
_KEYS: Final = (
    "object",
    "name",
    "endpoint",
    "reason",
    "message",
    "node",
    "event",
    "extra",
    "timestamp",
)
# The event of the line that only Roost writes: the pod's creation.
_PENDING: Final = "Pending"
# Phase -> the endpoint and event of its lines.
_LINES: Final[Mapping[Phase, tuple[str, str]]] = {
    Phase.CREATED: ("podAdd", _PENDING),
    Phase.SCHEDULED: ("bindingCycle", "BindingSuccess"),
    Phase.INITIALIZED: ("podUpdate", "Initialized"),
    Phase.STARTED: ("postStart", "postStart"),
    Phase.READY: ("podUpdate", "Ready"),
    Phase.TERMINATING: ("preStop", "preStop"),
}
# Phase -> a condition of the pod that the record doesn't tell from it. The condition's line is
# written with the phase's time.
_CONDITIONS: Final = {Phase.SCHEDULED: "PodScheduled", Phase.READY: "ContainersReady"}
# How a line's phase is found: by its endpoint, else by its event, which may be one of the pod's
# conditions.
_ENDPOINTS: Final = {
    _LINES[phase][0]: phase for phase in (Phase.SCHEDULED, Phase.STARTED, Phase.TERMINATING)
}
_EVENTS: Final = {
    "PodScheduled": Phase.SCHEDULED,
    **{_LINES[phase][1]: phase for phase in (Phase.CREATED, Phase.INITIALIZED, Phase.READY)},
}
# The endpoint of a scheduler's decision.
_DECIDED: Final = "schedulePod"
# Columns of a node whose amounts its lines have, with keys such as `capacity-cpu`.
_AMOUNTS: Final = ("capacity", "allocatable")
# Units by growing size: of bytes, and of all other amounts.
_BINARY: Final[Sequence[str]] = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_DECIMAL: Final[Sequence[str]] = ("m", "", "k", "M", "G", "T", "P", "E")
# Kubernetes' phase of a pod stands as the event of lines without a time. `Running` follows from
# these phases of the record.
_RUNNING: Final = "Running"
_PHASES_OF_RUNNING: Final = (Phase.STARTED, Phase.READY)
# Kubernetes' last phase of a pod -> PodRecord.end_reason.
_END_REASONS: Final = {"Succeeded": "finished", "Failed": "failed"}
# PodRecord.end_reason -> Kubernetes' last phase of a pod that ran.
_LAST_EVENTS: Final = {"finished": "Succeeded", "failed": "Failed", "deleted": _RUNNING}
# The event of the line that only Roost writes: the end, with PodRecord.end_reason as `reason`.
_DELETED: Final = "Deleted"
_NODE_GONE: Final = "nodeDeleted"
# Marks uids that are made from names.
PREFIX: Final = "sniffer:"
# Lengths that the schema allows.
_MAX_UID: Final = 64
_MAX_REASON: Final = 32
# Bytes; the sniffer's lines are short.
_MAX_LINE: Final = 1 << 16
# How many lines may be damaged before the first one is recognised.
_FIRST_LINES: Final = 20


@dataclass(slots=True)
class _Pod:
    """What the lines read so far say of a pod."""

    name: str
    # The earliest time of its lines: the best estimate of its creation.
    first: Step | None = None
    # The latest time of its lines; 0: none has a time.
    last_us: int = 0
    node: str = ""
    # None: it hasn't ended.
    end_reason: str | None = None
    # When a scheduler decided on its node.
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
    """The records of a log. On the way it counts its lines, pods and nodes, and skipped lines.

    file: its name, for the places of skipped lines.
    """
    # Name -> the pods that had it, one after the other.
    pods: dict[str, list[_Pod]] = {}
    nodes: dict[str, NodeRecord] = {}
    for number, line in enumerate(lines, start=1):
        counts.used["lines"] += 1
        reason = _read_line(line, pods, nodes)
        if reason:
            counts.skip(reason, f"{file}:{number}")
    counts.used["pods"] = sum(len(namesakes) for namesakes in pods.values())
    counts.used["nodes"] = len(nodes)
    yield from nodes.values()
    for name, namesakes in pods.items():
        for number, pod in enumerate(namesakes, start=1):
            uid = _uid(name if number == 1 else f"{name}#{number}")
            yield from _pod_records(uid, pod)


def _read_line(line: str, pods: dict[str, list[_Pod]], nodes: dict[str, NodeRecord]) -> str:
    """Add what a line says to `pods` and `nodes`; returns why it is skipped, "" when it isn't."""
    if not line.strip():
        return "empty"
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        # RecursionError: deeply nested brackets.
        return "not valid JSON"
    texts = {}
    if isinstance(entry, dict):
        texts = {key: text for key, text in entry.items() if isinstance(text, str)}
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
            namesakes = pods.setdefault(texts["name"], [])
            if _is_about_new_pod(texts, at, namesakes):
                namesakes.append(_Pod(texts["name"]))
            return _read_pod(texts, at, namesakes[-1])
    return f"unknown object {entry.get('object')!r}"


def _is_about_new_pod(texts: Mapping[str, str], at: Step | None, namesakes: Sequence[_Pod]) -> bool:
    """Whether a line is about a pod that no line before was about.

    namesakes: the pods of its name. A line that a pod begins with is about a new pod, if the last
    namesake has ended.
    """
    if not namesakes:
        return True
    is_begin = texts.get("endpoint") == _DECIDED or texts.get("event") == _PENDING
    if not is_begin or at is None:
        return False
    last = namesakes[-1]
    return last.end_reason is not None and at.at_us >= last.last_us


def _read_pod(texts: Mapping[str, str], at: Step | None, pod: _Pod) -> str:
    """Add what a line says to its pod; returns why it is skipped, "" when it isn't."""
    endpoint = texts.get("endpoint", "")
    event = texts.get("event")
    pod.node = texts.get("node") or pod.node
    if event in _END_REASONS:
        pod.end_reason = _END_REASONS[event]
    elif event == _DELETED:
        reason = texts.get("reason") or "deleted"
        pod.end_reason = reason[:_MAX_REASON]
    if event in _END_REASONS or event == _DELETED:
        # The sniffer itself writes no time here.
        if at is not None:
            pod.last_us = at.at_us
        return ""
    if event == _RUNNING or (event == "ContainersReady" and at is not None):
        # Other lines say the same, with a time: the start, and the condition Ready.
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
        # With the reason `PodCompleted`, conditions are set again after the start. So those lines
        # don't count. Of two times the finer one counts, then the earlier one.
        known = pod.phases.get(phase, at)
        pod.phases[phase] = min(at, known, key=lambda step: (step.resolution_us, step.at_us))
    return ""


def _is_before(at: Step, other: Step) -> bool:
    """Whether `at` is earlier than another time.

    Times are compared at the resolution of the coarser one. Where they are equal then, the finer
    one counts as earlier.
    """
    coarse = max(at.resolution_us, other.resolution_us)

    def order(step: Step) -> tuple[int, int, int]:
        return step.at_us // coarse, step.resolution_us, step.at_us

    return order(at) < order(other)


def _read_node(
    texts: Mapping[str, str], extra: object, at: Step | None, nodes: dict[str, NodeRecord]
) -> str:
    """Add what a line says to its node; returns why it is skipped, "" when it isn't."""
    name = texts["name"]
    node = nodes.get(name) or NodeRecord(uid=_uid(name), name=name)
    if isinstance(extra, dict):
        # A line whose amounts can't be read changes none.
        node = replace(
            node,
            capacity=_amounts_of(extra, "capacity-") or node.capacity,
            allocatable=_amounts_of(extra, "allocatable-") or node.allocatable,
        )
    elif at is None:
        return "no time"
    if texts.get("event") == "Ready" and at is not None:
        ready_us = min(at.at_us, node.ready_us or at.at_us)
        node = replace(node, created_us=ready_us, ready_us=ready_us)
    if texts.get("endpoint") == "nodeAdd":
        node = replace(node, gone_us=None)
    elif texts.get("endpoint") == _NODE_GONE and at is not None:
        # In the sniffer's own log this is the time of the last heartbeat.
        node = replace(node, gone_us=node.gone_us or at.at_us)
    nodes[name] = node
    return ""


def _amounts_of(extra: JSONObject, prefix: str) -> str | None:
    """The amounts of the keys with a prefix, as JSON; None where none can be read."""
    amounts = {
        key.removeprefix(prefix): amount for key, amount in extra.items() if key.startswith(prefix)
    }
    return amounts_text(amounts)


def _uid(name: str) -> str:
    """A uid that is made from a name, since the sniffer's lines have none."""
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
        yield decision(
            DecisionKind.BIND, uid, pod.node, at, source="sniffer", node_uid=_uid(pod.node)
        )


def _read_time(text: str | None) -> Step | None:
    """A time as Go prints it, or of RFC 3339; None for anything else.

    It is None for Go's zero time, too, and for a day or an hour that doesn't exist.
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
        # Without zone and fraction: a fraction may have more digits than Python accepts.
        datetime.fromisoformat(text[:19].upper())
    except ValueError:
        return None
    return Step(at_us, MICRO_US if "." in text else SECOND_US)


# Writing


def go_time(at_us: int, resolution_us: int) -> str:
    """A time as Go prints it, which is the sniffer's format. at_us: µs since 1970.

    resolution_us: from a second on, there is no fraction.
    """
    seconds = as_date(at_us).strftime("%Y-%m-%d %H:%M:%S")
    fraction = "" if resolution_us >= SECOND_US else f".{at_us % US:06d}"
    return f"{seconds}{fraction} +0000 UTC"


def node_lines(node: Row, changes: Sequence[Row]) -> Iterator[str]:
    """The lines of one node: what resources it had, and whether it was ready.

    They are repeated whenever either changed, and at the node's end. The message is always the
    same, since the record doesn't have the kubelet's.

    node: its row of the table node. changes: its rows of node_change about these fields, by time.
    """
    state: dict[str, str | None] = {"ready": str(bool(node["ready_us"]))}
    for kind in _AMOUNTS:
        state[kind] = node[kind]
    # The row has the last state. Going back through the changes gives the first one.
    for row in reversed(changes):
        state[row["field"]] = row["old"]
    yield from _node_state(node, "nodeAdd", state, node["ready_us"])
    for _, rows in itertools.groupby(changes, key=itemgetter("resource_version")):
        for row in rows:
            state[row["field"]] = row["new"]
        yield from _node_state(node, "nodeUpdate", state, row["at_us"])
    if node["gone_us"]:
        yield from _node_state(node, _NODE_GONE, state, node["gone_us"])


def _node_state(
    node: Row, endpoint: str, state: Mapping[str, str | None], at_us: int | None
) -> Iterator[str]:
    """A line about a node's resources, and if it is ready, a line about that condition."""
    extra = {
        f"{kind}-{resource}": _quantity(resource, amount)
        for kind in _AMOUNTS
        for resource, amount in sorted(json.loads(state[kind] or "{}").items())
    }
    about = {"object": "Node", "name": node["name"], "endpoint": endpoint}
    # The sniffer writes no time here; Roost writes that of the node's end.
    gone_at = go_time(at_us, MICRO_US) if at_us and endpoint == _NODE_GONE else ""
    yield _line(**about, extra=extra, timestamp=gone_at)
    if state["ready"] == "True" and at_us:
        about |= {"reason": "KubeletReady", "message": "kubelet is posting ready status"}
        yield _line(**about, event="Ready", timestamp=go_time(at_us, SECOND_US))


def _quantity(resource: str, amount: int) -> str:
    """An amount as kubelets write it: in the largest unit that divides it.

    Units of bytes are powers of 1024, all others of 1000.
    """
    if not amount:
        return "0"
    if is_in_bytes(resource):
        base = 1024
        units = _BINARY
    else:
        # Only CPU has thousandths.
        base = 1000
        units = _DECIMAL if resource == CPU else _DECIMAL[1:]
    while amount % base == 0 and len(units) > 1:
        amount = amount // base
        units = units[1:]
    return f"{amount}{units[0]}"


def pod_lines(pod: Row, phases: Iterable[Row], bind: Row | None) -> Iterator[str]:
    """The lines of one pod: its creation, decision, binding, conditions, start, stop and end.

    pod: its row of the table pod. phases: its rows of the table phase, by time. bind: its row of
    the table decision about the binding; None: there is none.
    """
    about = {
        "object": "Pod",
        "name": pod["name"],
        "node": bind["node_name"] if bind is not None else "",
    }
    # Phase -> when the pod reached it, in µs.
    reached: dict[str, int] = {}

    def line(
        endpoint: str, event: str, at_us: int, resolution_us: int = SECOND_US, reason: str = ""
    ) -> str:
        timestamp = go_time(at_us, resolution_us)
        return _line(**about, endpoint=endpoint, reason=reason, event=event, timestamp=timestamp)

    if bind is not None and bind["resolution_us"] < SECOND_US:
        yield line(_DECIDED, "ScheduleSuccess", bind["at_us"], bind["resolution_us"])
    for row in phases:
        phase = row["phase"]
        at_us = row["at_us"]
        # The time of a binding in whole seconds is from the pod's condition, not from a
        # scheduler. The condition's line follows below.
        is_condition = phase == Phase.SCHEDULED and row["resolution_us"] >= SECOND_US
        if phase in _LINES and not is_condition:
            endpoint, event = _LINES[Phase(phase)]
            yield line(endpoint, event, at_us, row["resolution_us"])
        if phase in _PHASES_OF_RUNNING and not _has_run(reached):
            yield _line(**about, endpoint="podUpdate", event=_RUNNING)
        if phase in _CONDITIONS:
            yield line("podUpdate", _CONDITIONS[phase], at_us)
        reached[phase] = at_us
    ended_us = pod["deleted_us"]
    end_reason = pod["end_reason"]
    if ended_us is None:
        return
    last_event = _LAST_EVENTS.get(end_reason, "")
    # The sniffer shows the last state of a pod that ended by itself twice, of a pod that ran once.
    endpoints: list[str] = []
    if end_reason in _END_REASONS.values():
        endpoints = ["podUpdate", "podDelete"]
    elif _has_run(reached):
        endpoints = ["podDelete"]
    initialized_reason = "PodCompleted" if end_reason == "finished" else ""
    for endpoint in endpoints:
        if last_event:
            yield _line(**about, endpoint=endpoint, event=last_event)
        if Phase.INITIALIZED in reached:
            initialized_us = reached[Phase.INITIALIZED]
            yield line(endpoint, "Initialized", initialized_us, reason=initialized_reason)
        if Phase.SCHEDULED in reached:
            yield line(endpoint, "PodScheduled", reached[Phase.SCHEDULED])
    yield line("podDelete", _DELETED, ended_us, MICRO_US, end_reason)


def _has_run(reached: Mapping[str, int]) -> bool:
    """Whether a pod that reached these phases has run."""
    return any(phase in reached for phase in _PHASES_OF_RUNNING)


def _line(**entry: object) -> str:
    """A line with the keys in the sniffer's order, without those whose text is empty."""
    kept = {key: entry[key] for key in _KEYS if entry.get(key) not in (None, "")}
    return json.dumps(kept, separators=(",", ":"))
