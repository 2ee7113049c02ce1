"""Name the facts that are stored, one class a table, each with the key that makes storing it twice storing it once.

All moments are microseconds since 1970, UTC, of the clock of whoever says so: API server, scheduler or kubelet.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

import orjson

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

JSONObject = dict[str, Any]
_MOST: Final = 2**63 - 1


# What is watched: kinds of gaps and positions.
PODS: Final = "pods"
NODES: Final = "nodes"
EVENTS: Final = "events"
# Characters that the schema takes.
MAX_ID: Final = 160
MAX_DETAIL: Final = 512
MAX_IMAGE: Final = 512
MAX_SCHEDULER: Final = 63


class Merge(StrEnum):
    """What becomes of a column when a record of the same key is there already. NULL never replaces anything."""

    # What came first stays.
    FIRST = "first"
    # What came last stays.
    LAST = "last"
    # The earliest moment, the latest moment.
    MIN = "min"
    MAX = "max"
    # That of the record with the smaller `resolution_us`; the first of equals.
    FINER = "finer"
    # What came first stays, unless it was "".
    FILLED = "filled"


@dataclass(frozen=True, slots=True, kw_only=True)
class PodRecord:
    """One pod. `hub`, `repo` and the like are what its labels said when it was seen first; "" and 0: not known."""

    TABLE: ClassVar[str] = "pod"
    KEY: ClassVar[tuple[str, ...]] = ("uid",)
    MERGE: ClassVar[dict[str, Merge]] = {
        "image_digest": Merge.FIRST,
        "deleted_us": Merge.FIRST,
        "end_reason": Merge.FIRST,
    }

    uid: str
    namespace: str = ""
    name: str = ""
    # A key of the values' `podClasses`; "" for a pod of none.
    pod_class: str = ""
    # The release that the pod belongs to, by its labels.
    hub: str = ""
    # BinderHub's: the repository, and the resolved reference within it, such as a commit.
    repo: str = ""
    ref: str = ""
    # Of the first main container.
    image: str = ""
    # sha256:… as the kubelet reported it; None until then.
    image_digest: str | None = None
    scheduler: str = ""
    priority: int = 0
    cpu_millicores: int = 0
    memory_bytes: int = 0
    created_us: int
    # When it was seen to be gone (phase `gone` says how exactly); None while it is there.
    deleted_us: int | None = None
    # deleted, preempted, evicted, finished, failed, node-gone, unseen (it went while nobody watched).
    end_reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRecord:
    """One node; `node_change` tells how it came to stand so."""

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
    # When the hub's image gate was first seen to have labelled it with every image that belongs on it; None: nobody saw
    # that, or the gate labels no nodes.
    images_ready_us: int | None = None
    gone_us: int | None = None
    # As it was told last; None: not known. JSON objects as text: resource -> amount; key -> value.
    allocatable: str | None = None
    labels: str | None = None
    # `key=value:effect`, by commas.
    taints: str | None = None
    is_ready: bool | None = None
    is_unschedulable: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeChangeRecord:
    """One change of a node: ready, cordoned, taints, a label, what it has to give."""

    TABLE: ClassVar[str] = "node_change"
    KEY: ClassVar[tuple[str, ...]] = ("node_uid", "resource_version", "field")
    MERGE: ClassVar[dict[str, Merge]] = {}

    node_uid: str
    resource_version: str
    # ready, unschedulable, taints, allocatable, label:KEY.
    field: str
    # When it was told.
    at_us: int
    # So much earlier it may have been: 1, or the time for which nobody watched.
    resolution_us: int
    old: str
    new: str


class Phase(StrEnum):
    """A step of a pod's start, in the usual order."""

    CREATED = "created"
    # It may not be scheduled; one for each gate, in `detail`.
    GATED = "gated"
    # The last gate was taken away.
    UNGATED = "ungated"
    # The scheduler found no node; the first time.
    UNSCHEDULABLE = "unschedulable"
    NOMINATED = "nominated"
    SCHEDULED = "scheduled"
    # status.startTime: the kubelet has taken it up.
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
    # An Event tells to the microsecond what the pod itself tells to the second.
    MERGE: ClassVar[dict[str, Merge]] = {"at_us": Merge.FINER, "source": Merge.FINER, "resolution_us": Merge.FINER}

    pod_uid: str
    phase: Phase
    # The image or the container; "" for the pod as a whole.
    detail: str = ""
    at_us: int
    # How exact `at_us` is: 1 or 1,000,000; for what was seen late, so much earlier it may have been.
    resolution_us: int
    # pod (its object), event, watch (the moment we saw it).
    source: str


class DecisionKind(StrEnum):
    """What a scheduler did with a pod."""

    BIND = "bind"
    FAIL = "fail"
    NOMINATE = "nominate"
    PREEMPT = "preempt"


class Verdict(StrEnum):
    """What the scheduler's model says of a binding."""

    # It takes that node too, or has as many points for it as for its own.
    AGREES = "agrees"
    DIFFERS = "differs"
    # Not asked, or not to be said; `model_note` says why.
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
        # The pod, or its Event, may come before its node.
        "node_uid": Merge.FILLED,
        # The Event may come before the pod: what the model says comes with the pod.
        "nodes_total": Merge.FIRST,
        "nodes_feasible": Merge.FIRST,
        "model": Merge.FIRST,
        "model_node": Merge.FIRST,
        "model_note": Merge.FIRST,
    }

    # `<pod uid>/<kind>/<what tells it from others of its kind>`: the same for whoever sees it.
    id: str
    pod_uid: str
    kind: DecisionKind
    # "" for kind fail.
    node_name: str
    node_uid: str
    at_us: int
    # How exact `at_us` is: 1 or 1,000,000.
    resolution_us: int
    # Of the last repeat, and how many tries the scheduler's event counted (a lower bound).
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
    # A Verdict on a binding; None where it was not to be judged.
    model: str | None = None
    model_node: str | None = None
    model_note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidatesRecord:
    """The nodes as they stood when a decision was made, all in one: they are many, and always asked for together."""

    TABLE: ClassVar[str] = "candidates"
    KEY: ClassVar[tuple[str, ...]] = ("decision_id",)
    MERGE: ClassVar[dict[str, Merge]] = {}

    decision_id: str
    # How many are told of, and the JSON object of lists, see `Candidates`.
    number: int
    nodes: str


class Candidates(NamedTuple):
    """Nodes as they stood when a decision was made: lists of one length, the n-th of each about the n-th node."""

    node_name: Sequence[str]
    users: Sequence[int]
    placeholders: Sequence[int]
    builds: Sequence[int]
    free_cpu_millicores: Sequence[int]
    free_memory_bytes: Sequence[int]
    has_image: Sequence[bool]
    # Why the model's filters refuse it; "" when they don't.
    refused: Sequence[str]
    # None where nothing was scored.
    score_total: Sequence[int | None]
    # Plugin -> weighted points.
    scores: Mapping[str, Sequence[int | None]]


def pack_candidates(decision_id: str, candidates: Candidates) -> CandidatesRecord:
    """One record of all candidates."""
    columns = candidates._asdict()
    try:
        nodes = orjson.dumps(columns, option=orjson.OPT_SORT_KEYS).decode()
    except TypeError:
        # A pod may ask for more CPU than 64 bits count; then there is less than nothing free.
        for name in ("free_cpu_millicores", "free_memory_bytes"):
            columns[name] = [max(-_MOST, min(_MOST, amount)) for amount in columns[name]]
        nodes = orjson.dumps(columns, option=orjson.OPT_SORT_KEYS).decode()
    return CandidatesRecord(decision_id=decision_id, number=len(candidates.node_name), nodes=nodes)


def unpack_candidates(nodes: str) -> list[JSONObject]:
    """Each candidate with its fields by name; `scores` (plugin -> points) has the plugins that scored it."""
    columns = orjson.loads(nodes)
    scores = columns.pop("scores")
    found = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    for index, candidate in enumerate(found):
        candidate["scores"] = {plugin: points[index] for plugin, points in scores.items() if points[index] is not None}
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class PullRecord:
    """One image of one pod, as its kubelet told."""

    TABLE: ClassVar[str] = "pull"
    KEY: ClassVar[tuple[str, ...]] = ("pod_uid", "image")
    # A restarted container finds its image warm: that is no news about the start.
    MERGE: ClassVar[dict[str, Merge]] = {}

    pod_uid: str
    image: str
    node_name: str
    # When it was there.
    at_us: int
    # It was there already.
    warm: bool
    # Without and with the wait in the kubelet's queue; None for warm ones.
    pull_us: int | None = None
    pull_and_wait_us: int | None = None
    image_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageRecord:
    """An image on a node, as its `status.images` has it (a kubelet lists 50 at most)."""

    TABLE: ClassVar[str] = "image_on_node"
    KEY: ClassVar[tuple[str, ...]] = ("node_uid", "image", "first_us")
    MERGE: ClassVar[dict[str, Merge]] = {"gone_us": Merge.FIRST}

    node_uid: str
    image: str
    first_us: int
    image_bytes: int
    gone_us: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PreemptionRecord:
    """A pod that had to go for another, or was evicted."""

    TABLE: ClassVar[str] = "preemption"
    KEY: ClassVar[tuple[str, ...]] = ("victim_uid",)
    MERGE: ClassVar[dict[str, Merge]] = {"by_uid": Merge.LAST, "at_us": Merge.MIN}

    victim_uid: str
    # None when nobody said (an eviction, or an event that was lost).
    by_uid: str | None = None
    node_name: str
    at_us: int
    # preempted or evicted.
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoscalerRecord:
    """What an autoscaler said."""

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
    """A time in which something may have happened that nobody saw."""

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
    | PullRecord
    | ImageRecord
    | PreemptionRecord
    | AutoscalerRecord
    | GapRecord
)


@dataclass(frozen=True, slots=True)
class StoredNode:
    """A node as its row has it; None: not known. See NodeRecord."""

    name: str
    is_ready: bool | None = None
    is_unschedulable: bool | None = None
    taints: str | None = None
    allocatable: str | None = None
    labels: str | None = None
    has_images: bool = False


@dataclass(frozen=True, slots=True)
class Known:
    """What the database holds as still there, when recording begins."""

    # uid -> when it was created.
    pods: Mapping[str, int] = field(default_factory=dict)
    nodes: Mapping[str, StoredNode] = field(default_factory=dict)
    # Node uid -> image -> since when.
    images: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    # Kind -> when its stream was last heard of.
    heard_us: Mapping[str, int] = field(default_factory=dict)
