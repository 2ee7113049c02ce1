"""The records that are stored: a class for each table of schema.py, with the key that makes storing one twice harmless.

All times are microseconds since 1970, UTC, by the clock of their source: API server, scheduler or kubelet.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

import orjson

from roost_lab.recorder.store import schema

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from dataclasses import Field

    import sqlalchemy as sa

JSONObject = dict[str, Any]
_MAX_INTEGER: Final = 2**63 - 1
# What is watched; also the kinds of gaps and positions.
PODS: Final = "pods"
NODES: Final = "nodes"
EVENTS: Final = "events"
# Most characters that the schema allows.
MAX_ID: Final = 160
MAX_NAME: Final = 253
MAX_DETAIL: Final = 512
MAX_IMAGE: Final = 512
MAX_SCHEDULER: Final = 63


class PodSource(StrEnum):
    """What a pod's row was made from. Databases compare them as text: a later letter knows more."""

    # Its Events alone, imported: labels, requests and the like are not known, and times are estimates.
    EVENT = "event"
    # Its object, imported from a list or an audit log.
    POD = "pod"
    # A log of scheduler-sniffer.
    SNIFFER = "sniffer"
    # The recorder watched it.
    WATCH = "watch"


class Record:
    """A row: its fields are the columns of its class's table, by name; those with a default may be left out."""

    TABLE: ClassVar[str]
    KEY: ClassVar[tuple[str, ...]]
    MERGE: ClassVar[dict[str, schema.Merge]]
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def __init_subclass__(cls, table: sa.Table) -> None:
        cls.TABLE = table.name
        cls.KEY = tuple(column.name for column in table.primary_key)
        cls.MERGE = {column.name: column.info["merge"] for column in table.columns if column.info.get("merge")}
        cls.__annotations__ = dict.fromkeys(table.columns.keys(), "Any")
        for column in table.columns:
            if column.nullable or "default" in column.info:
                setattr(cls, column.name, column.info.get("default"))
        dataclass(frozen=True, kw_only=True)(cls)

    if TYPE_CHECKING:

        def __init__(self, **columns: Any) -> None: ...  # noqa: ANN401 - what the columns hold

        def __getattr__(self, column: str) -> Any: ...  # noqa: ANN401 - what the column holds


class PodRecord(Record, table=schema.pod):
    """One pod. `hub`, `repo` and the like are from when it was first seen; "" and 0: not known."""


class NodeRecord(Record, table=schema.node):
    """One node in its current state; `node_change` has its history."""


class NodeChangeRecord(Record, table=schema.node_change):
    """One change of a node: ready, cordoned, taints, a label, allocatable resources."""


class Phase(StrEnum):
    """A step of a pod's start, in the usual order."""

    CREATED = "created"
    # A scheduling gate keeps it from being scheduled; one for each gate, in `detail`.
    GATED = "gated"
    # The last gate was removed.
    UNGATED = "ungated"
    # The scheduler found no node; the first time.
    UNSCHEDULABLE = "unschedulable"
    NOMINATED = "nominated"
    SCHEDULED = "scheduled"
    # status.startTime: the kubelet has accepted it.
    ACCEPTED = "accepted"
    # Of one image, in `detail`.
    PULLED = "pulled"
    INITIALIZED = "initialized"
    # Of one container, in `detail`.
    STARTED = "started"
    READY = "ready"
    TERMINATING = "terminating"
    GONE = "gone"


class PhaseRecord(Record, table=schema.phase):
    """One step of one pod, the first time it was reached."""


class DecisionKind(StrEnum):
    """What a scheduler did with a pod."""

    BIND = "bind"
    FAIL = "fail"
    NOMINATE = "nominate"
    PREEMPT = "preempt"


class Verdict(StrEnum):
    """The verdict of the scheduler's model on a binding."""

    # It chooses that node too, or gives it the same score as its own choice.
    AGREES = "agrees"
    DIFFERS = "differs"
    # Not judged; `model_note` says why.
    UNKNOWN = "unknown"


class DecisionRecord(Record, table=schema.decision):
    """One decision about one pod."""


class CandidatesRecord(Record, table=schema.candidates):
    """The nodes at the time of a decision, all in one row: they are many, and always read together."""


class Candidates(NamedTuple):
    """Nodes at the time of a decision: lists of equal length, the n-th item of each about the n-th node."""

    node_name: Sequence[str]
    users: Sequence[int]
    placeholders: Sequence[int]
    builds: Sequence[int]
    free_cpu_millicores: Sequence[int]
    free_memory_bytes: Sequence[int]
    has_image: Sequence[bool]
    # Why the model's filters reject it; "" when they don't.
    refused: Sequence[str]
    # None for nodes that were not scored.
    score_total: Sequence[int | None]
    # Plugin -> weighted points.
    scores: Mapping[str, Sequence[int | None]]


def pack_candidates(decision_id: str, candidates: Candidates) -> CandidatesRecord:
    """One record of all candidates."""
    nodes = _dumped(candidates._asdict())
    return CandidatesRecord(decision_id=decision_id, number=len(candidates.node_name), nodes=nodes)


def _dumped(columns: JSONObject) -> str:
    try:
        return orjson.dumps(columns, option=orjson.OPT_SORT_KEYS).decode()
    except TypeError:
        # Requests may exceed 64 bits, which makes what is free very negative.
        return orjson.dumps(_within_64_bits(columns), option=orjson.OPT_SORT_KEYS).decode()


def _within_64_bits(value: Any) -> Any:  # noqa: ANN401 - JSON
    if isinstance(value, dict):
        return {key: _within_64_bits(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_within_64_bits(one) for one in value]
    return max(-_MAX_INTEGER, min(_MAX_INTEGER, value)) if isinstance(value, int) else value


def unpack_candidates(nodes: str) -> list[JSONObject]:
    """Each candidate with its fields by name; `scores` (plugin -> points) has the plugins that scored it."""
    columns = orjson.loads(nodes)
    scores = columns.pop("scores")
    candidates = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    for index, candidate in enumerate(candidates):
        candidate["scores"] = {plugin: points[index] for plugin, points in scores.items() if points[index] is not None}
    return candidates


class WaitingRecord(Record, table=schema.waiting):
    """The nodes as they stood when a scheduler last found none for a pod: one row a pod, replaced at each attempt."""


def pack_waiting(
    pod_uid: str, at_us: int, number: int, candidates: Candidates, lacks: Sequence[Sequence[Mapping[str, object]]]
) -> WaitingRecord:
    """One record of all nodes. lacks: for each candidate, in the same order."""
    columns = {name: values for name, values in candidates._asdict().items() if name != "score_total"}
    nodes = _dumped({**columns, "scores": {}, "lacks": lacks})
    return WaitingRecord(pod_uid=pod_uid, at_us=at_us, number=number, nodes=nodes)


class PullRecord(Record, table=schema.pull):
    """One image of one pod, as its kubelet reported."""


class ImageRecord(Record, table=schema.image_on_node):
    """An image on a node, from its `status.images` (a kubelet lists 50 at most)."""


class PreemptionRecord(Record, table=schema.preemption):
    """A pod that was pre-empted for another, or evicted."""


class AutoscalerRecord(Record, table=schema.autoscaler):
    """An Event of an autoscaler."""


class GapRecord(Record, table=schema.gap):
    """A time in which changes may have been missed."""


@dataclass(frozen=True, slots=True)
class StoredState:
    """What exists according to the database when recording begins."""

    # uid -> creation time.
    pods: Mapping[str, int] = field(default_factory=dict)
    nodes: Mapping[str, NodeRecord] = field(default_factory=dict)
    # Node uid -> image -> when it was first seen.
    images: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    # Kind -> its stream's last sign of life.
    heard_us: Mapping[str, int] = field(default_factory=dict)
