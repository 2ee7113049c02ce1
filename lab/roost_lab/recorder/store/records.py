"""The records that are stored: a class for each table, with the key that makes storing one twice
harmless.

A class's fields are the columns of its table, the same in SQLite and PostgreSQL. All times are
microseconds since 1970, UTC, by the clock of their source: API server, scheduler or kubelet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import Field, dataclass, field, fields
from enum import StrEnum
from types import EllipsisType
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, TypeVar, dataclass_transform

import orjson
import sqlalchemy as sa

from roost_core.objects.fields import JSONObject

if TYPE_CHECKING:
    from sqlalchemy.types import TypeEngine

T = TypeVar("T")
metadata = sa.MetaData()
# Most characters.
MAX_ID: Final = 160
MAX_NAME: Final = 253
MAX_DETAIL: Final = 512
MAX_IMAGE: Final = 512
MAX_SCHEDULER: Final = 63
UID: Final = sa.String(64)
NAME: Final = sa.String(MAX_NAME)
IMAGE: Final = sa.String(MAX_IMAGE)
DETAIL: Final = sa.String(MAX_DETAIL)
LABEL: Final = sa.String(63)
TEXT: Final = sa.Text()
NUMBER: Final = sa.Integer()
LARGE: Final = sa.BigInteger()
YES: Final = sa.Boolean()
WORD: Final = sa.String(16)
SOURCE: Final = sa.String(8)

_MAX_INTEGER: Final = 2**63 - 1
# What is watched; also the kinds of gaps and positions.
PODS: Final = "pods"
NODES: Final = "nodes"
EVENTS: Final = "events"
# In these words, so that SQLite uses the index.
IMPORTED: Final = sa.text("source <> 'watch'")
_UNITS: Final = {"us": "microseconds; times are since 1970, UTC", "bytes": "bytes"}


class Merge(StrEnum):
    """How a column of two records with the same key is merged. NULL never replaces anything."""

    # The first value stays.
    FIRST = "first"
    # The last value stays.
    LAST = "last"
    # The smallest, the largest value.
    MIN = "min"
    MAX = "max"
    # The value of the record with the smaller `resolution_us`; of equal ones, that of the smaller
    # `at_us`.
    FINER = "finer"
    # The value of the record with the smaller `at_us`.
    EARLIER = "earlier"
    # The first value stays, unless it is "".
    FILLED = "filled"
    # The value of the record with the better `source` (PodSource); of equal ones the first that is
    # not "".
    BETTER = "better"
    # Likewise; of equal ones the smaller value.
    BETTER_MIN = "better min"
    # For a pod's end: the better `source` counts; of two that were imported the earlier, of two
    # that were watched the first.
    END = "end"


def column(
    kind: TypeEngine[Any],
    merge: Merge | None = None,
    comment: str = "",
    *,
    key: bool = False,
    default: T | EllipsisType = ...,
) -> T:
    """A field that is a column. merge: None: the first value stays. default: of records that leave
    it out.
    """
    info = {"kind": kind, "merge": merge, "comment": comment, "key": key}
    return (
        field(metadata=info)
        if isinstance(default, EllipsisType)
        else field(default=default, metadata=info)
    )


def table_column(
    name: str,
    kind: TypeEngine[Any],
    comment: str = "",
    *,
    key: bool = False,
    optional: bool = False,
    merge: Merge | None = None,
) -> sa.Column[Any]:
    """A table's column, with the comment of its unit if it has none of its own."""
    text = comment or _UNITS.get(name.rpartition("_")[2])
    return sa.Column(
        name, kind, nullable=optional, primary_key=key, comment=text, info={"merge": merge}
    )


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(column,))
class Record:
    """A row. A subclass's fields, each made by `column`, are its table's columns, and its docstring
    is the comment.
    """

    table: ClassVar[sa.Table]
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def __init_subclass__(
        cls, name: str, indexes: Sequence[sa.Index] = (), *, with_rowid: bool = True
    ) -> None:
        dataclass(frozen=True, kw_only=True)(cls)
        comment = (cls.__doc__ or "").partition("\n")[0].removesuffix(".")
        columns = [
            table_column(column.name, optional=column.default is None, **column.metadata)
            for column in fields(cls)
        ]
        cls.table = sa.Table(
            name, metadata, *columns, *indexes, comment=comment, sqlite_with_rowid=with_rowid
        )


class PodSource(StrEnum):
    """What a pod's row was made from. Databases compare them as text: a later letter knows more."""

    # Its Events alone, imported: labels, requests and the like are not known, and times are
    # estimates.
    EVENT = "event"
    # Its object, imported from a list or an audit log.
    POD = "pod"
    # A log of scheduler-sniffer.
    SNIFFER = "sniffer"
    # The recorder watched it.
    WATCH = "watch"


END_REASONS: Final = (
    "deleted",
    "preempted",
    "evicted",
    "finished",
    "failed",
    "node-gone",
    "unseen",
)


class PodRecord(
    Record,
    name="pod",
    indexes=(
        # `roost why` is often given the name alone.
        sa.Index("pod_by_name", "name", "namespace", "created_us"),
        sa.Index("pod_by_time", "created_us"),
        sa.Index("pod_by_end", "deleted_us"),
        # Empty in a recorder's own database.
        sa.Index(
            "pod_imported",
            "created_us",
            "uid",
            "source",
            sqlite_where=IMPORTED,
            postgresql_where=IMPORTED,
        ),
    ),
):
    """A pod; v_start has its times.

    `hub`, `repo` and the like are from when it was first seen; "" and 0: not known.
    """

    uid: str = column(UID, key=True)
    namespace: str = column(LABEL, Merge.BETTER, default="")
    name: str = column(NAME, Merge.BETTER, default="")
    pod_class: str = column(LABEL, Merge.BETTER, default="")
    hub: str = column(
        TEXT,
        Merge.BETTER,
        "the hub that it belongs to, `<release>.<namespace>`; or empty",
        default="",
    )
    repo: str = column(TEXT, Merge.BETTER, "for BinderHub: the repository; or empty", default="")
    ref: str = column(
        TEXT,
        Merge.BETTER,
        "for BinderHub: the resolved reference, as a commit; or empty",
        default="",
    )
    image: str = column(TEXT, Merge.BETTER, "of its first main container, in full", default="")
    image_digest: str | None = column(
        TEXT, Merge.FIRST, "sha256:…; NULL until the kubelet reports it", default=None
    )
    scheduler: str = column(LABEL, Merge.BETTER, default="")
    priority: int = column(LARGE, Merge.BETTER, default=0)
    cpu_millicores: int = column(
        LARGE, Merge.BETTER, "thousandths of a CPU that it requests", default=0
    )
    memory_bytes: int = column(LARGE, Merge.BETTER, "bytes of memory that it requests", default=0)
    created_us: int = column(LARGE, Merge.BETTER_MIN)
    deleted_us: int | None = column(LARGE, Merge.END, default=None)
    end_reason: str | None = column(sa.String(32), Merge.END, ", ".join(END_REASONS), default=None)
    source: str = column(
        SOURCE, Merge.MAX, "what it was made from; event: estimated times", default=PodSource.WATCH
    )
    warm_target: str = column(
        NAME, Merge.BETTER, "the webhook's first choice in its warm set; or empty", default=""
    )


class NodeRecord(Record, name="node", indexes=(sa.Index("node_by_name", "name", "created_us"),)):
    """A node in its current state; node_change has its history."""

    uid: str = column(UID, key=True)
    name: str = column(NAME)
    created_us: int = column(LARGE, default=0)
    ready_us: int | None = column(LARGE, Merge.MIN, default=None)
    images_ready_us: int | None = column(LARGE, Merge.MIN, default=None)
    gone_us: int | None = column(LARGE, Merge.FIRST, default=None)
    allocatable: str | None = column(
        TEXT, Merge.LAST, "JSON object: resource to millicores or bytes", default=None
    )
    capacity: str | None = column(
        TEXT, Merge.LAST, "as allocatable; NULL: not recorded", default=None
    )
    labels: str | None = column(TEXT, Merge.LAST, "JSON object: label to value", default=None)
    taints: str | None = column(
        TEXT, Merge.LAST, "key=value:effect, separated by commas", default=None
    )
    is_ready: bool | None = column(YES, Merge.LAST, default=None)
    is_unschedulable: bool | None = column(YES, Merge.LAST, default=None)


class NodeChangeRecord(
    Record, name="node_change", indexes=(sa.Index("node_change_by_time", "at_us"),)
):
    """A change of a node: ready, cordoned, taints, a label, capacity, allocatable resources."""

    node_uid: str = column(UID, key=True)
    resource_version: str = column(UID, key=True)
    field: str = column(
        sa.String(320),
        comment="ready, unschedulable, taints, capacity, allocatable, label:KEY",
        key=True,
    )
    at_us: int = column(LARGE)
    resolution_us: int = column(LARGE)
    old: str = column(TEXT)
    new: str = column(TEXT)


class Phase(StrEnum):
    """A step of a pod's start, in the usual order."""

    # Seating asked the hub for the server, before its user's class: nobody waited for it.
    SEATED = "seated"
    # A user asked the hub for the server.
    ASKED = "asked"
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
    # `detail` names the image.
    PULLING = "pulling"
    PULLED = "pulled"
    INITIALIZED = "initialized"
    # `detail` names the container. Init containers: when each started and when it had ended.
    INIT_STARTED = "init-started"
    INIT_ENDED = "init-ended"
    STARTED = "started"
    READY = "ready"
    # The hub's verdict on the start: the server has answered it, or the hub gave the start up.
    ANSWERED = "answered"
    FAILED = "start-failed"
    # It went before the hub, whose log was read, had given a verdict.
    ABANDONED = "gave-up"
    # Of a server that seating asked for: its user came to it; the first time.
    OPENED = "opened"
    # Likewise: nobody had used it, and seating stopped it.
    UNUSED = "unused"
    TERMINATING = "terminating"
    GONE = "gone"


# The largest table, and always read by its key.
class PhaseRecord(Record, name="phase", with_rowid=False):
    """A step of a pod's start, the first time that it was reached."""

    pod_uid: str = column(UID, key=True)
    phase: Phase = column(WORD, comment=", ".join(Phase), key=True)
    detail: str = column(
        DETAIL, comment="the image, container or gate; empty: the whole pod", key=True, default=""
    )
    at_us: int = column(LARGE, Merge.FINER)
    resolution_us: int = column(LARGE, Merge.FINER)
    source: str = column(
        SOURCE,
        Merge.FINER,
        "what told it: pod (its object), event, watch, hub (its log), sniffer, audit",
    )


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


class DecisionRecord(
    Record,
    name="decision",
    indexes=(
        sa.Index("decision_by_pod", "pod_uid"),
        sa.Index("decision_by_kind", "kind", "at_us", "scheduler", "model"),
    ),
):
    """A scheduler's decision about a pod: bind, fail, nominate, preempt."""

    id: str = column(
        sa.String(MAX_ID), comment="pod uid/kind/what is unique among its kind", key=True
    )
    pod_uid: str = column(UID)
    kind: DecisionKind = column(SOURCE, comment=", ".join(DecisionKind))
    node_name: str = column(NAME)
    node_uid: str = column(UID, Merge.FILLED)
    at_us: int = column(LARGE, Merge.FINER)
    resolution_us: int = column(LARGE, Merge.FINER)
    last_us: int = column(LARGE, Merge.MAX)
    tries: int = column(NUMBER, Merge.MAX, "how often, at least", default=1)
    scheduler: str = column(LABEL, Merge.FILLED)
    source: str = column(SOURCE, Merge.FINER)
    nodes_total: int | None = column(NUMBER, Merge.FIRST, default=None)
    nodes_feasible: int | None = column(NUMBER, Merge.FIRST, default=None)
    reasons: str = column(TEXT, comment="JSON object: reason to number of nodes", default="{}")
    message: str = column(TEXT, default="")
    model: str | None = column(
        WORD, Merge.FIRST, f"the model's verdict: {', '.join(Verdict)}", default=None
    )
    model_node: str | None = column(
        NAME, Merge.FIRST, "the node that the model prefers", default=None
    )
    model_note: str | None = column(
        TEXT, Merge.FIRST, "why the model differs, or was not asked", default=None
    )


class CandidatesRecord(Record, name="candidates"):
    """The nodes at the time of a binding, the best 50: all in one row, as they are many and always
    read together.
    """

    decision_id: str = column(sa.String(MAX_ID), comment="id of the decision", key=True)
    number: int = column(NUMBER)
    nodes: str = column(TEXT)


class Candidates(NamedTuple):
    """Nodes at the time of a decision: lists of equal length, the n-th item of each about the n-th
    node.
    """

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
        return {key: _within_64_bits(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_within_64_bits(part) for part in value]
    if isinstance(value, int):
        return max(-_MAX_INTEGER, min(_MAX_INTEGER, value))
    return value


def unpack_candidates(nodes: str) -> list[JSONObject]:
    """Each candidate with its fields by name; `scores` (plugin -> points) has the plugins that
    scored it.
    """
    columns = orjson.loads(nodes)
    scores = columns.pop("scores")
    candidates = [
        dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)
    ]
    for index, candidate in enumerate(candidates):
        candidate["scores"] = {
            plugin: points[index] for plugin, points in scores.items() if points[index] is not None
        }
    return candidates


class WaitingRecord(Record, name="waiting"):
    """The nodes when a scheduler last found none for a pod, and what each lacked."""

    pod_uid: str = column(UID, key=True)
    at_us: int = column(LARGE, Merge.LAST)
    number: int = column(NUMBER, Merge.LAST, "nodes in all")
    nodes: str = column(TEXT, Merge.LAST)


def pack_waiting(
    pod_uid: str,
    at_us: int,
    number: int,
    candidates: Candidates,
    lacks: Sequence[Sequence[Mapping[str, object]]],
) -> WaitingRecord:
    """One record of all nodes. lacks: for each candidate, in the same order."""
    columns = {
        name: values for name, values in candidates._asdict().items() if name != "score_total"
    }
    nodes = _dumped({**columns, "scores": {}, "lacks": lacks})
    return WaitingRecord(pod_uid=pod_uid, at_us=at_us, number=number, nodes=nodes)


class PullRecord(
    Record,
    name="pull",
    indexes=(
        # Covers all that reports count, so that no row is read.
        sa.Index(
            "pull_by_time",
            "at_us",
            "warm",
            "node_name",
            "image",
            "pull_us",
            "pull_and_wait_us",
            "image_bytes",
        ),
    ),
):
    """An image of a pod, as its kubelet reported it."""

    pod_uid: str = column(UID, key=True)
    image: str = column(IMAGE, key=True)
    node_name: str = column(NAME, Merge.EARLIER)
    at_us: int = column(LARGE, Merge.EARLIER)
    warm: bool = column(YES, Merge.EARLIER, "the node already had the image")
    pull_us: int | None = column(LARGE, Merge.EARLIER, default=None)
    pull_and_wait_us: int | None = column(LARGE, Merge.EARLIER, default=None)
    image_bytes: int | None = column(LARGE, Merge.EARLIER, default=None)


class PodEventRecord(Record, name="pod_event"):
    """An Event of a bound pod: of volumes, its sandbox, a container, an image, a probe."""

    pod_uid: str = column(UID, key=True)
    reason: str = column(UID, key=True)
    subject: str = column(
        DETAIL, comment="the volume, container or image; empty: the whole pod", key=True
    )
    at_us: int = column(LARGE, Merge.MIN)
    resolution_us: int = column(LARGE)
    last_us: int = column(LARGE, Merge.MAX)
    tries: int = column(NUMBER, Merge.MAX, "how often, at least", default=1)
    message: str = column(TEXT, Merge.LAST)


class ImageRecord(Record, name="image_on_node"):
    """An image on a node, from the list that the kubelet reports (the 50 largest by default)."""

    node_uid: str = column(UID, key=True)
    image: str = column(IMAGE, key=True)
    first_us: int = column(LARGE, key=True)
    image_bytes: int = column(LARGE)
    gone_us: int | None = column(LARGE, Merge.FIRST, default=None)


class PreemptionRecord(
    Record, name="preemption", indexes=(sa.Index("preemption_by_time", "at_us"),)
):
    """A pod that was pre-empted for another, or evicted."""

    victim_uid: str = column(UID, comment="uid of the pod that had to go", key=True)
    by_uid: str | None = column(
        UID, Merge.LAST, "uid of the pod that it went for; NULL: not known", default=None
    )
    node_name: str = column(NAME)
    at_us: int = column(LARGE, Merge.MIN)
    kind: str = column(WORD, comment="preempted or evicted")


class AutoscalerRecord(
    Record, name="autoscaler", indexes=(sa.Index("autoscaler_by_time", "at_us"),)
):
    """An Event of an autoscaler."""

    event_uid: str = column(UID, comment="uid of the Event", key=True)
    at_us: int = column(LARGE)
    last_us: int = column(LARGE, Merge.MAX)
    count: int = column(NUMBER, Merge.MAX, "how often it was repeated")
    reason: str = column(sa.String(128))
    about: str = column(TEXT, comment="kind/namespace/name of the object that it is about")
    message: str = column(TEXT)


class GapRecord(Record, name="gap"):
    """A time in which changes may have been missed."""

    kind: str = column(sa.String(32), comment=f"{PODS}, {NODES} or {EVENTS}", key=True)
    from_us: int = column(LARGE, key=True)
    to_us: int = column(LARGE, Merge.MAX)
    why: str = column(TEXT, comment="why changes may be missing")


@dataclass(frozen=True, slots=True)
class StoredState:
    """What exists according to the database when recording begins."""

    # uid -> creation time.
    pods: Mapping[str, int] = field(default_factory=dict)
    # Uids of the pods that seating asked for.
    seated: Set[str] = frozenset()
    nodes: Mapping[str, NodeRecord] = field(default_factory=dict)
    # Node uid -> image -> when it was first seen.
    images: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    # Kind -> its stream's last sign of life.
    heard_us: Mapping[str, int] = field(default_factory=dict)
