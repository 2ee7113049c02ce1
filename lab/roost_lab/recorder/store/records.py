"""The records that are stored: a class for each table, with the key that makes storing a record twice harmless.

All times are microseconds since 1970, UTC, by the clock of their source: API server, scheduler or kubelet.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

import orjson

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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


class Merge(StrEnum):
    """How a column of two records with the same key is merged. NULL never replaces anything."""

    # The first value stays.
    FIRST = "first"
    # The last value stays.
    LAST = "last"
    # The smallest, the largest value.
    MIN = "min"
    MAX = "max"
    # The value of the record with the smaller `resolution_us`; of equal ones, that of the smaller `at_us`.
    FINER = "finer"
    # The value of the record with the smaller `at_us`.
    EARLIER = "earlier"
    # The first value stays, unless it is "".
    FILLED = "filled"
    # The value of the record with the better `source` (PodSource); of equal ones the first that is not "".
    BETTER = "better"
    # Likewise; of equal ones the smaller value.
    BETTER_MIN = "better min"
    # Of a pod's end: that of the better `source`; of two that were imported the earlier, of two that were watched the
    # first.
    END = "end"


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


@dataclass(frozen=True, slots=True, kw_only=True)
class PodRecord:
    """One pod. `hub`, `repo` and the like are from when it was first seen; "" and 0: not known."""

    TABLE: ClassVar[str] = "pod"
    KEY: ClassVar[tuple[str, ...]] = ("uid",)
    MERGE: ClassVar[dict[str, Merge]] = {
        "namespace": Merge.BETTER,
        "name": Merge.BETTER,
        "pod_class": Merge.BETTER,
        "hub": Merge.BETTER,
        "repo": Merge.BETTER,
        "ref": Merge.BETTER,
        "image": Merge.BETTER,
        "image_digest": Merge.FIRST,
        "scheduler": Merge.BETTER,
        "priority": Merge.BETTER,
        "cpu_millicores": Merge.BETTER,
        "memory_bytes": Merge.BETTER,
        "created_us": Merge.BETTER_MIN,
        "deleted_us": Merge.END,
        "end_reason": Merge.END,
        "source": Merge.MAX,
        "warm_target": Merge.BETTER,
    }

    uid: str
    namespace: str = ""
    name: str = ""
    # A key of the values' `podClasses`; "" for a pod without a class.
    pod_class: str = ""
    # The release that the pod belongs to, by its labels.
    hub: str = ""
    # For BinderHub: the repository, and the resolved reference within it, such as a commit.
    repo: str = ""
    ref: str = ""
    # Of the first main container.
    image: str = ""
    # sha256:…; None until the kubelet reports it.
    image_digest: str | None = None
    scheduler: str = ""
    priority: int = 0
    cpu_millicores: int = 0
    memory_bytes: int = 0
    created_us: int
    # When it was seen to be gone (phase `gone` has the resolution); None while it exists.
    deleted_us: int | None = None
    # deleted, preempted, evicted, finished, failed, node-gone, unseen (it ended while nobody watched).
    end_reason: str | None = None
    # A PodSource.
    source: str = PodSource.WATCH
    # The node of its class's warm set that the webhook preferred most for it; "": none, or not known.
    warm_target: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRecord:
    """One node in its current state; `node_change` has its history."""

    TABLE: ClassVar[str] = "node"
    KEY: ClassVar[tuple[str, ...]] = ("uid",)
    MERGE: ClassVar[dict[str, Merge]] = {
        "ready_us": Merge.MIN,
        "gone_us": Merge.FIRST,
        "images_ready_us": Merge.MIN,
        "allocatable": Merge.LAST,
        "labels": Merge.LAST,
        "taints": Merge.LAST,
        "is_ready": Merge.LAST,
        "is_unschedulable": Merge.LAST,
    }

    uid: str
    name: str
    # 0: not known.
    created_us: int = 0
    ready_us: int | None = None
    # When the image gate was first seen to have labelled it for every image that it needs; None: not seen, or the gate
    # labels no nodes.
    images_ready_us: int | None = None
    gone_us: int | None = None
    # As last reported; None: not known. JSON objects as text: resource -> amount; key -> value.
    allocatable: str | None = None
    labels: str | None = None
    # `key=value:effect`, separated by commas.
    taints: str | None = None
    is_ready: bool | None = None
    is_unschedulable: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeChangeRecord:
    """One change of a node: ready, cordoned, taints, a label, allocatable resources."""

    TABLE: ClassVar[str] = "node_change"
    KEY: ClassVar[tuple[str, ...]] = ("node_uid", "resource_version", "field")
    MERGE: ClassVar[dict[str, Merge]] = {}

    node_uid: str
    resource_version: str
    # ready, unschedulable, taints, allocatable, label:KEY.
    field: str
    # When it was reported.
    at_us: int
    # It may have happened so much earlier: 1, or the time for which nobody watched.
    resolution_us: int
    old: str
    new: str


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


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseRecord:
    """One step of one pod, the first time it was reached."""

    TABLE: ClassVar[str] = "phase"
    KEY: ClassVar[tuple[str, ...]] = ("pod_uid", "phase", "detail")
    # Events have microseconds where the pod itself has seconds.
    MERGE: ClassVar[dict[str, Merge]] = {"at_us": Merge.FINER, "source": Merge.FINER, "resolution_us": Merge.FINER}

    pod_uid: str
    phase: Phase
    # The image, the container or the gate; "" for the whole pod.
    detail: str = ""
    at_us: int
    # Resolution of `at_us`: 1 or 1,000,000; for what was seen late, how much earlier it may have happened.
    resolution_us: int
    # pod (its object), event, watch (when the recorder saw it).
    source: str


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


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionRecord:
    """One decision about one pod."""

    TABLE: ClassVar[str] = "decision"
    KEY: ClassVar[tuple[str, ...]] = ("id",)
    MERGE: ClassVar[dict[str, Merge]] = {
        "tries": Merge.MAX,
        "last_us": Merge.MAX,
        "at_us": Merge.FINER,
        "source": Merge.FINER,
        "resolution_us": Merge.FINER,
        # The pod, or its Event, may be seen before its node.
        "node_uid": Merge.FILLED,
        # An audit log's binding doesn't name it.
        "scheduler": Merge.FILLED,
        # The Event may come before the pod, which brings the model's verdict.
        "nodes_total": Merge.FIRST,
        "nodes_feasible": Merge.FIRST,
        "model": Merge.FIRST,
        "model_node": Merge.FIRST,
        "model_note": Merge.FIRST,
    }

    # `<pod uid>/<kind>/<what is unique among its kind>`: the same whatever it is learnt from.
    id: str
    pod_uid: str
    kind: DecisionKind
    # "" for kind fail.
    node_name: str
    node_uid: str
    at_us: int
    # Resolution of `at_us`: 1 or 1,000,000.
    resolution_us: int
    # Of the last repetition, and the number of tries that the scheduler's Event counted (a lower bound).
    last_us: int
    tries: int = 1
    scheduler: str
    # watch or event.
    source: str
    nodes_total: int | None = None
    nodes_feasible: int | None = None
    # JSON object as text: reason -> number of nodes.
    reasons: str = "{}"
    message: str = ""
    # A Verdict on a binding; None for other kinds.
    model: str | None = None
    model_node: str | None = None
    model_note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidatesRecord:
    """The nodes at the time of a decision, all in one row: they are many, and always read together."""

    TABLE: ClassVar[str] = "candidates"
    KEY: ClassVar[tuple[str, ...]] = ("decision_id",)
    MERGE: ClassVar[dict[str, Merge]] = {}

    decision_id: str
    # The number of nodes, and a JSON object of lists, see `Candidates`.
    number: int
    nodes: str


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


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingRecord:
    """The nodes as they stood when a scheduler last found none for a pod: one row a pod, replaced at each attempt."""

    TABLE: ClassVar[str] = "waiting"
    KEY: ClassVar[tuple[str, ...]] = ("pod_uid",)
    MERGE: ClassVar[dict[str, Merge]] = {"at_us": Merge.LAST, "number": Merge.LAST, "nodes": Merge.LAST}

    pod_uid: str
    # When the recorder saw the attempt.
    at_us: int
    # Nodes in all; `nodes` has those that lack least.
    number: int
    # As `nodes` of CandidatesRecord, with `lacks`: for each node what it lacks, see recording/shortfalls.py.
    nodes: str


def pack_waiting(
    pod_uid: str, at_us: int, number: int, candidates: Candidates, lacks: Sequence[Sequence[Mapping[str, object]]]
) -> WaitingRecord:
    """One record of all nodes. lacks: for each candidate, in the same order."""
    columns = {name: values for name, values in candidates._asdict().items() if name != "score_total"}
    nodes = _dumped({**columns, "scores": {}, "lacks": lacks})
    return WaitingRecord(pod_uid=pod_uid, at_us=at_us, number=number, nodes=nodes)


@dataclass(frozen=True, slots=True, kw_only=True)
class PullRecord:
    """One image of one pod, as its kubelet reported."""

    TABLE: ClassVar[str] = "pull"
    KEY: ClassVar[tuple[str, ...]] = ("pod_uid", "image")
    # The first one: a restarted container finds its image warm.
    MERGE: ClassVar[dict[str, Merge]] = {
        "node_name": Merge.EARLIER,
        "at_us": Merge.EARLIER,
        "warm": Merge.EARLIER,
        "pull_us": Merge.EARLIER,
        "pull_and_wait_us": Merge.EARLIER,
        "image_bytes": Merge.EARLIER,
    }

    pod_uid: str
    image: str
    node_name: str
    # When the image was ready to use.
    at_us: int
    # The node already had it.
    warm: bool
    # Without and with the wait in the kubelet's queue; None for warm pulls.
    pull_us: int | None = None
    pull_and_wait_us: int | None = None
    image_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageRecord:
    """An image on a node, from its `status.images` (a kubelet lists 50 at most)."""

    TABLE: ClassVar[str] = "image_on_node"
    KEY: ClassVar[tuple[str, ...]] = ("node_uid", "image", "first_us")
    MERGE: ClassVar[dict[str, Merge]] = {"gone_us": Merge.FIRST}

    node_uid: str
    image: str
    first_us: int
    image_bytes: int
    # When the node's list last lost it, or the node went; None while it is there.
    gone_us: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PreemptionRecord:
    """A pod that was pre-empted for another, or evicted."""

    TABLE: ClassVar[str] = "preemption"
    KEY: ClassVar[tuple[str, ...]] = ("victim_uid",)
    MERGE: ClassVar[dict[str, Merge]] = {"by_uid": Merge.LAST, "at_us": Merge.MIN}

    victim_uid: str
    # None when not known (an eviction, or a lost Event).
    by_uid: str | None = None
    node_name: str
    at_us: int
    # preempted or evicted.
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoscalerRecord:
    """An Event of an autoscaler."""

    TABLE: ClassVar[str] = "autoscaler"
    KEY: ClassVar[tuple[str, ...]] = ("event_uid",)
    MERGE: ClassVar[dict[str, Merge]] = {"count": Merge.MAX, "last_us": Merge.MAX}

    event_uid: str
    at_us: int
    last_us: int
    count: int
    # TriggeredScaleUp, NotTriggerScaleUp, ScaleDown…, Nominated, DisruptionLaunching …
    reason: str
    about: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GapRecord:
    """A time in which changes may have been missed."""

    TABLE: ClassVar[str] = "gap"
    KEY: ClassVar[tuple[str, ...]] = ("kind", "from_us")
    MERGE: ClassVar[dict[str, Merge]] = {"to_us": Merge.MAX}

    # pods, nodes or events.
    kind: str
    from_us: int
    to_us: int
    why: str


Record = (
    PodRecord
    | NodeRecord
    | NodeChangeRecord
    | PhaseRecord
    | DecisionRecord
    | CandidatesRecord
    | WaitingRecord
    | PullRecord
    | ImageRecord
    | PreemptionRecord
    | AutoscalerRecord
    | GapRecord
)


@dataclass(frozen=True, slots=True)
class StoredNode:
    """A node as stored; None: not known. See NodeRecord."""

    name: str
    is_ready: bool | None = None
    is_unschedulable: bool | None = None
    taints: str | None = None
    allocatable: str | None = None
    labels: str | None = None
    has_images: bool = False


@dataclass(frozen=True, slots=True)
class StoredState:
    """What exists according to the database when recording begins."""

    # uid -> creation time.
    pods: Mapping[str, int] = field(default_factory=dict)
    nodes: Mapping[str, StoredNode] = field(default_factory=dict)
    # Node uid -> image -> when it was first seen.
    images: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    # Kind -> its stream's last sign of life.
    heard_us: Mapping[str, int] = field(default_factory=dict)
