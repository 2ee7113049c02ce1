"""The cluster at one moment: rows of the database in, nodes with their pods, waiting pods and the
last changes out.

Pure. What the database doesn't hold is left out, not guessed, with one exception: a pod whose
kubelet has reported no pull yet counts as pulling if its node lacks its image.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, NamedTuple

from roost_core.objects.fields import JSONObject
from roost_core.objects.image_references import normalise_reference
from roost_core.objects.leaving_taints import LEAVING_TAINTS
from roost_core.objects.node import LISTED_IMAGES
from roost_core.objects.requests import CPU, MEMORY
from roost_core.placement.labels import (
    HELD,
    PULLED_LABEL_PREFIX,
    PULLING,
    attract_prefix,
    pulled_label,
)
from roost_lab.pages.names import shorten
from roost_lab.pages.phrases import plural
from roost_lab.recorder.recording.scheduler_model import USER
from roost_lab.units import MINUTE_US

Row = Mapping[str, Any]
# How long a choice counts: afterwards the warm set may be another one.
WARM_US: Final = 10 * MINUTE_US
# Images that get a chip on each node: those that most users run.
MAX_CHIPS: Final = 6
MAX_PENDING: Final = 200
MAX_CHANGES: Final = 100
MAX_REASON: Final = 400
# A node that isn't ready boots until it is so old.
BOOT_US: Final = 10 * MINUTE_US
# Characters of a node's name in its box, and of an image's in the legend; the whole name is in the
# tooltip.
NODE_LENGTH: Final = 30
IMAGE_LENGTH: Final = 36
OTHER: Final = "other"
ATTRACT_LABEL_PREFIX: Final = attract_prefix("", "").partition(".")[0] + "."
# Begins the reason of a pod that no scheduler may try yet.
GATED: Final = "It is held by the scheduling gate"
_LABEL: Final = "label:"
_UNKNOWN_NODES: Final = "Of {} only the pods are recorded: no state, size or images."
_LIVE: Final = (
    "Live from the API server, without a record: only this moment is known. A server counts as"
    " starting {}."
)


class PodState(StrEnum):
    """How far a pod on a node is."""

    RUNNING = "running"
    PULLING = "pulling"
    # The kubelet said that a pull failed, and tries again. Only live.
    FAILING = "failing"
    # On its node, with its image, and its containers don't run yet.
    STARTING = "starting"
    # Its containers run; its hub's log says only later, or not yet, that its server answered or the
    # start failed.
    LOADING = "loading"


class NodeState(StrEnum):
    """The state of a node, the most severe first."""

    NOT_READY = "not ready"
    LEAVING = "leaving"
    CORDONED = "cordoned"
    READY = "ready"
    # Only its pods are recorded: Events were imported.
    UNKNOWN = "unknown"


class ChangeKind(StrEnum):
    """What happened to a pod."""

    PLACED = "placed"
    # An evicted pod was bound again under its name.
    MOVED = "moved"
    PREEMPTED = "pre-empted"
    EVICTED = "evicted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """What the database holds about a moment.

    Keys of rows are columns of schema.py, unless it says otherwise.
    """

    at_us: int
    # Pods that existed: uid, namespace, name, pod_class, image, cpu_millicores, memory_bytes,
    # created_us, warm_target, bound_us, started_us, ended_us, node_name, node_uid (of its binding;
    # None where there was none).
    pods: Sequence[Row] = ()
    # Nodes that existed, in their current state.
    nodes: Sequence[Row] = ()
    # The first later change of each node and field: node_uid, field, old.
    later_changes: Sequence[Row] = ()
    # Images that nodes had then, of those that `images_of_interest` names, by any of their
    # spellings.
    images: Sequence[Row] = ()
    # Node uid -> how many images it had.
    image_counts: Mapping[str, int] = field(default_factory=dict)
    # Pulls for pods whose containers don't run yet.
    pulls: Sequence[Row] = ()
    # Why pods have no node: pod_uid, text (why the last attempt failed, or which gate holds it),
    # is_gate, the last one last.
    reasons: Sequence[Row] = ()
    # Bindings of the last minute: uid, namespace, name, pod_class, node_name, at_us.
    bindings: Sequence[Row] = ()
    # Pre-emptions and evictions of the last minutes: at_us, kind, uid, namespace, name, pod_class,
    # node_name, and of the pod that it went for (None: not known): by_uid, by_namespace, by_name.
    removals: Sequence[Row] = ()
    # Times in which changes may be missing, around the moment.
    gaps: Sequence[Row] = ()
    # Live: until when a server counts as starting.
    wait: str = ""


class PodBox(NamedTuple):
    """A pod."""

    uid: str
    # namespace/name.
    name: str
    # user, build, placeholder, or another class.
    kind: str
    created_us: int
    # None: it has no node.
    state: PodState | None = None
    image: str = ""
    # The image that it waits for, where the cluster says so; else "".
    awaits: str = ""
    # Why it has no node; "": none is recorded.
    reason: str = ""


class NodeBox(NamedTuple):
    """A node with its pods, the oldest pod first."""

    uid: str
    name: str
    # 0: not known.
    created_us: int
    state: NodeState
    # The placeholder sets that it attracts.
    attracts: Sequence[str]
    # Pods of the last WARM_US, among those that exist, for which the webhook preferred it most: its
    # warm set's choice.
    warm: int
    pods: Sequence[PodBox]
    # Pods of no class, such as those of DaemonSets.
    others: int
    # Images of the chips that it has, those that users are kept off for while it pulls them, and
    # those that it is known to lack; of others it isn't known.
    held: frozenset[str]
    pulling: frozenset[str]
    missing: frozenset[str]
    # Images in all; None: not recorded.
    images: int | None
    # Requested by pods that exist, also by finished ones (when they finish isn't recorded), and
    # allocatable (None: not known).
    cpu_millicores: tuple[int, int | None]
    memory_bytes: tuple[int, int | None]


class PodChange(NamedTuple):
    """What happened to a pod in the last minute."""

    at_us: int
    kind: ChangeKind
    uid: str
    name: str
    pod_kind: str
    # "": none, or not known.
    from_node: str
    to_node: str
    # The uid of the pod that it went for.
    by_uid: str = ""
    by_name: str = ""


@dataclass(frozen=True, slots=True)
class ClusterMoment:
    """The cluster at one moment."""

    at_us: int
    # The time that is known.
    begin_us: int
    end_us: int
    # The oldest first; nodes of unknown age last.
    nodes: Sequence[NodeBox]
    # Images with chips -> users who run or await them; most users first.
    chips: Mapping[str, int]
    # The oldest first, of at most MAX_PENDING.
    pending: Sequence[PodBox]
    pending_count: int
    # For all pods that wait, by kind: how many, and when the oldest was created.
    waits: Mapping[str, tuple[int, int]]
    # The newest first, at most MAX_CHANGES; and how many there are of each kind.
    changes: Sequence[PodChange]
    change_counts: Mapping[str, int]
    notices: Sequence[str]
    # As in Rows.
    wait: str
    # Users without a node whom a scheduling gate holds.
    gated_users: int


def images_of_interest(at_us: int, pods: Sequence[Row]) -> list[str]:
    """Images that nodes should be asked for: those with chips, and those of pods that are
    starting.
    """
    starting = [
        row["image"] for row in pods if _is_bound(row, at_us) and not _has_started(row, at_us)
    ]
    return list(dict.fromkeys((*_chips(pods), *(image for image in starting if image))))


def moment_of(rows: Rows, begin_us: int | None = None, end_us: int | None = None) -> ClusterMoment:
    """Combine what is known. begin_us, end_us: the time that is known; only this moment unless
    given.
    """
    at_us = rows.at_us
    chips = _chips(rows.pods)
    bound: dict[str, list[Row]] = {}
    pending: list[Row] = []
    for pod in rows.pods:
        if _is_bound(pod, at_us):
            bound.setdefault(pod["node_uid"] or pod["node_name"], []).append(pod)
        else:
            pending.append(pod)
    nodes = list(_nodes(rows, bound, chips))
    pending.sort(key=lambda pod: (pod["created_us"], pod["name"]))
    # Of a pod's reasons the last one counts.
    reasons = {row["pod_uid"]: row for row in rows.reasons}
    texts = {uid: row["text"] for uid, row in reasons.items()}
    gated = {uid for uid, row in reasons.items() if row["is_gate"]}
    changes = sorted(_changes(rows), key=lambda change: -change.at_us)
    return ClusterMoment(
        at_us=at_us,
        begin_us=at_us if begin_us is None else begin_us,
        end_us=at_us if end_us is None else end_us,
        nodes=sorted(nodes, key=lambda node: (node.created_us <= 0, node.created_us, node.name)),
        chips=chips,
        pending=[
            PodBox(
                uid=pod["uid"],
                name=_full_name(pod),
                kind=_kind(pod["pod_class"]),
                created_us=pod["created_us"],
                reason=texts.get(pod["uid"], "")[:MAX_REASON],
            )
            for pod in pending[:MAX_PENDING]
        ],
        pending_count=len(pending),
        waits=_waits(pending),
        changes=changes[:MAX_CHANGES],
        change_counts=Counter(change.kind for change in changes),
        notices=_notes(rows, nodes),
        wait=rows.wait,
        gated_users=sum(pod["uid"] in gated and pod["pod_class"] == USER for pod in pending),
    )


def _notes(rows: Rows, nodes: Sequence[NodeBox]) -> list[str]:
    """What isn't known of this moment, in words."""
    notes = []
    if rows.wait:
        notes.append(_LIVE.format(rows.wait))
    unknown = sum(node.state is NodeState.UNKNOWN for node in nodes)
    if unknown:
        notes.append(_UNKNOWN_NODES.format(plural(unknown, "node")))
    notes += [
        f"Changes of {row['kind']} may be missing at this moment: {row['why']}."
        for row in rows.gaps
    ]
    return notes


def _waits(pending: Sequence[Row]) -> dict[str, tuple[int, int]]:
    """By kind: how many pods wait, and when the oldest was created. pending: the oldest first."""
    counts = Counter(_kind(pod["pod_class"]) for pod in pending)
    oldest_us = {_kind(pod["pod_class"]): pod["created_us"] for pod in reversed(pending)}
    return {kind: (count, oldest_us[kind]) for kind, count in counts.items()}


def _chips(pods: Sequence[Row]) -> dict[str, int]:
    """The images that most users run -> how many users."""
    users = Counter(pod["image"] for pod in pods if pod["pod_class"] == USER and pod["image"])
    return dict(sorted(users.items(), key=lambda item: (-item[1], item[0]))[:MAX_CHIPS])


def _is_bound(pod: Row, at_us: int) -> bool:
    return bool(pod["node_name"]) and pod["bound_us"] is not None and pod["bound_us"] <= at_us


def _has_started(pod: Row, at_us: int) -> bool:
    return pod["started_us"] is not None and pod["started_us"] <= at_us


def _kind(pod_class: str | None) -> str:
    return pod_class or OTHER


def _full_name(row: Row) -> str:
    return "/".join(part for part in (row["namespace"], row["name"]) if part)


def _nodes(
    rows: Rows, bound: Mapping[str, Sequence[Row]], chips: Mapping[str, int]
) -> Iterator[NodeBox]:
    # Node uid -> field -> its value before the change.
    earlier: dict[str, dict[str, str]] = {}
    for row in rows.later_changes:
        earlier.setdefault(row["node_uid"], {})[row["field"]] = row["old"]
    images_by_node: dict[str, set[str]] = {}
    for row in rows.images:
        images_by_node.setdefault(row["node_uid"], set()).add(normalise_reference(row["image"]))
    pulls: dict[str, list[Row]] = {}
    for row in rows.pulls:
        pulls.setdefault(row["pod_uid"], []).append(row)
    uids = {row["name"]: row["uid"] for row in rows.nodes}
    # A binding may be recorded before its node.
    pods_by_node: dict[str, list[Row]] = {}
    for key, pods in bound.items():
        pods_by_node.setdefault(uids.get(key, key), []).extend(pods)
    warm = Counter(
        pod["warm_target"] for pod in rows.pods if pod["created_us"] > rows.at_us - WARM_US
    )
    known = {row["uid"] for row in rows.nodes}
    unknown = [
        {"uid": uid, "name": pods[0]["node_name"]}
        for uid, pods in pods_by_node.items()
        if uid not in known
    ]
    for row in (*rows.nodes, *unknown):
        uid = row["uid"]
        node = _at_that_time(row, earlier.get(uid, {}))
        allocatable = json.loads(node.get("allocatable") or "{}")
        count = rows.image_counts.get(uid)
        node_pods = sorted(
            pods_by_node.get(uid, ()), key=lambda pod: (pod["created_us"], pod["name"])
        )
        images = images_by_node.get(uid, set()) if count else None
        gates = _image_labels(node["labels"])
        boxes = [
            _pod_box(pod, _pod_state(pod, rows.at_us, pulls.get(pod["uid"], ()), images))
            for pod in node_pods
            if pod["pod_class"]
        ]
        held = {box.image for box in boxes if box.state in (PodState.RUNNING, PodState.LOADING)}
        held |= {image for image in chips if normalise_reference(image) in (images or ())}
        held |= {image for image in chips if gates.get(_label_name(image)) == HELD}
        missing = {
            box.awaits or box.image
            for box in boxes
            if box.state in (PodState.PULLING, PodState.FAILING)
        }
        # The kubelet lists all of a node's images, if they are fewer than it may list.
        if count is not None and 0 < count < LISTED_IMAGES:
            missing |= set(chips)
        yield NodeBox(
            uid=uid,
            name=row["name"],
            created_us=row.get("created_us") or 0,
            state=_node_state(node),
            attracts=_attracted_sets(node["labels"]),
            warm=warm[row["name"]],
            pods=boxes,
            others=sum(not pod["pod_class"] for pod in node_pods),
            held=frozenset(held & chips.keys()),
            pulling=frozenset(image for image in chips if gates.get(_label_name(image)) == PULLING),
            missing=frozenset(missing & chips.keys() - held),
            images=count,
            cpu_millicores=(sum(pod["cpu_millicores"] for pod in node_pods), allocatable.get(CPU)),
            memory_bytes=(sum(pod["memory_bytes"] for pod in node_pods), allocatable.get(MEMORY)),
        )


def _pod_box(pod: Row, state: PodState) -> PodBox:
    return PodBox(
        uid=pod["uid"],
        name=_full_name(pod),
        kind=_kind(pod["pod_class"]),
        created_us=pod["created_us"],
        state=state,
        image=pod["image"],
        awaits=pod.get("awaits", ""),
    )


def _attracted_sets(labels: Iterable[str]) -> list[str]:
    """The placeholder sets that a node attracts, by its labels of all hubs."""
    return sorted({key.partition("/")[2] for key in labels if key.startswith(ATTRACT_LABEL_PREFIX)})


def _pod_state(pod: Row, at_us: int, pulls: Sequence[Row], images: set[str] | None) -> PodState:
    """How far a pod on a node is. images: of its node, normalised; None: not recorded."""
    # Live, the cluster says it.
    if "state" in pod:
        return PodState(pod["state"])
    if _has_started(pod, at_us):
        return PodState.LOADING if at_us < (pod.get("ended_us") or 0) else PodState.RUNNING
    is_pulled = False
    for row in pulls:
        if row["at_us"] <= at_us:
            is_pulled |= row["image"] == pod["image"]
        elif not row["warm"] and row["at_us"] - (row["pull_and_wait_us"] or 0) <= at_us:
            return PodState.PULLING
    if is_pulled or any(row["at_us"] > at_us for row in pulls):
        return PodState.STARTING
    if images is None or not pod["image"]:
        return PodState.STARTING
    has_image = normalise_reference(pod["image"]) in images
    return PodState.STARTING if has_image else PodState.PULLING


def _at_that_time(row: Row, earlier: Mapping[str, str]) -> dict[str, Any]:
    """The node's row with the values that fields had before they changed; `labels` as a mapping."""
    labels = json.loads(row.get("labels") or "{}")
    changed = {name[len(_LABEL) :]: old for name, old in earlier.items() if name.startswith(_LABEL)}
    flags = {
        f"is_{name}": earlier[name] == str(True)
        for name in ("ready", "unschedulable")
        if name in earlier
    }
    texts = {name: earlier[name] for name in ("taints", "allocatable") if name in earlier}
    # A label that a node didn't have is recorded as an empty one.
    return {
        **row,
        **flags,
        **texts,
        "labels": {key: value for key, value in (labels | changed).items() if value},
    }


def _node_state(node: Row) -> NodeState:
    if node.get("is_ready") is None:
        return NodeState.UNKNOWN
    if not node["is_ready"]:
        return NodeState.NOT_READY
    taints = (node["taints"] or "").split(", ")
    if any(taint.partition("=")[0] in LEAVING_TAINTS for taint in taints):
        return NodeState.LEAVING
    return NodeState.CORDONED if node["is_unschedulable"] else NodeState.READY


def _image_labels(labels: Mapping[str, str]) -> dict[str, str]:
    """The image gate's labels: the part of the key that names the image -> value. If several hubs
    have a label for an image, PULLING counts.
    """
    gates: dict[str, str] = {}
    for key, value in labels.items():
        if key.startswith(PULLED_LABEL_PREFIX):
            name = key.partition("/")[2]
            if gates.get(name) != PULLING:
                gates[name] = value
    return gates


def _label_name(image: str) -> str:
    return pulled_label("hub", "hub", image).partition("/")[2]


def _changes(rows: Rows) -> Iterator[PodChange]:
    since_us = rows.at_us - MINUTE_US
    evicted = [row for row in rows.removals if row["kind"] == "evicted" and row["name"]]
    moved: set[str] = set()
    for row in rows.bindings:
        if not row["pod_class"]:
            continue
        earlier = (other for other in evicted if _is_successor(row, other))
        before = max(earlier, key=lambda other: int(other["at_us"]), default=None)
        if before is not None:
            moved.add(before["uid"])
        yield PodChange(
            at_us=row["at_us"],
            kind=ChangeKind.PLACED if before is None else ChangeKind.MOVED,
            uid=row["uid"],
            name=_full_name(row),
            pod_kind=_kind(row["pod_class"]),
            from_node="" if before is None else before["node_name"],
            to_node=row["node_name"],
        )
    for row in rows.removals:
        # A move has its own line.
        if row["at_us"] <= since_us or row["uid"] in moved:
            continue
        is_known = row["by_name"] is not None
        yield PodChange(
            at_us=row["at_us"],
            kind=ChangeKind.PREEMPTED if row["kind"] == "preempted" else ChangeKind.EVICTED,
            uid=row["uid"],
            name=_full_name(row) or "a pod that isn't recorded",
            pod_kind=_kind(row["pod_class"]),
            from_node=row["node_name"],
            to_node="",
            by_uid=(row["by_uid"] or "") if is_known else "",
            by_name=f"{row['by_namespace']}/{row['by_name']}" if is_known else "",
        )


def _is_successor(binding: Row, removal: Row) -> bool:
    """Whether the pod has the name of one that was removed before."""
    if _full_name(binding) != _full_name(removal) or binding["uid"] == removal["uid"]:
        return False
    return bool(binding["at_us"] >= removal["at_us"])


def tell_moment(moment: ClusterMoment) -> str:
    """How many users wait, and for what, such as "3 of 41 users wait: 2 for a node, 1 for an
    image.".
    """
    is_booting = any(
        node.state is NodeState.NOT_READY and moment.at_us - node.created_us < BOOT_US
        for node in moment.nodes
    )
    pending, _ = moment.waits.get(USER, (0, 0))
    states = Counter(pod.state for node in moment.nodes for pod in node.pods if pod.kind == USER)
    waits = {
        "for a node that boots" if is_booting else "for a node": pending - moment.gated_users,
        "held by a gate": moment.gated_users,
        "for an image": states[PodState.PULLING],
        "for an image that can't be pulled": states[PodState.FAILING],
        "for their containers": states[PodState.STARTING],
        "for an answer": states[PodState.LOADING],
    }
    users = pending + states.total()
    number = sum(waits.values())
    if not number:
        return f"None of {plural(users, 'user')} waits." if users else "No users."
    parts = ", ".join(f"{count:,} {reason}" for reason, count in waits.items() if count)
    return f"{number:,} of {plural(users, 'user')} {'waits' if number == 1 else 'wait'}: {parts}."


def as_json(moment: ClusterMoment) -> JSONObject:
    """The moment for the page: times in µs since 1970, images as indexes into `images`, names also
    shortened.
    """
    images = list(
        dict.fromkeys((*moment.chips, *(pod.image for node in moment.nodes for pod in node.pods)))
    )
    index = {image: number for number, image in enumerate(images)}
    short_nodes = shorten((node.name for node in moment.nodes), NODE_LENGTH)
    short_images = shorten(moment.chips, IMAGE_LENGTH)
    return {
        "at": moment.at_us,
        "begin": moment.begin_us,
        "end": moment.end_us,
        "sentence": tell_moment(moment),
        "counts": dict(Counter(pod.kind for node in moment.nodes for pod in node.pods)),
        "notices": list(moment.notices),
        "images": images,
        "chips": [
            {"image": index[image], "short": short_images[image], "users": users}
            for image, users in moment.chips.items()
        ],
        "nodes": [
            {
                **node._asdict(),
                "short": short_nodes[node.name],
                "held": sorted(index[image] for image in node.held),
                "pulling": sorted(index[image] for image in node.pulling),
                "missing": sorted(index[image] for image in node.missing),
                "pods": [{**pod._asdict(), "image": index[pod.image]} for pod in node.pods],
            }
            for node in moment.nodes
        ],
        "pending": [pod._asdict() for pod in moment.pending],
        "pending_count": moment.pending_count,
        "change_counts": {str(kind): count for kind, count in moment.change_counts.items()},
        "changes": [change._asdict() for change in moment.changes],
    }
