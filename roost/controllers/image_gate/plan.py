"""Make one plan of the image gate: keep labels true to the images nodes hold, and lift the startup
taint.

In mode requireLabel, a node that lacks an image is closed to its users while the image is pulled.
It is opened when nothing suggests that the image will come soon, or when a user waits for nothing
else.

Guarantees: no label or taint of another release is ever written. A node gets an image's label only
after its kubelet reported the image. The label goes when the image has left the node, or has left
the set and no pending pod requires it. The status of a node that isn't Ready may be out of date, so
its images' labels stay as they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from roost.controllers.contract.actions import (
    Action,
    ChangeNode,
    Done,
    Gauges,
    Notice,
    Outcome,
    PlanGauge,
    Planned,
)
from roost.controllers.contract.planner import Controller
from roost.controllers.contract.pod_kinds import is_z2jh_continuous_puller
from roost.controllers.contract.snapshot import Moment, Snapshot
from roost.controllers.image_gate.closed_or_open import SENTENCES, Opening
from roost.controllers.image_gate.facts import PodEvidence, find_evidence
from roost.controllers.image_gate.node import ECHO_SECONDS, judge_node
from roost.controllers.image_gate.node_labels import describe_opening
from roost.controllers.image_gate.node_reports import NO_PULLER
from roost.controllers.image_gate.node_share import NodeMemory, NodeShare, PlanContext
from roost.controllers.image_gate.pull_fault_texts import find_cause
from roost.controllers.image_gate.settings import GateSettings, PullerPods, read_gate
from roost.controllers.image_gate.waiting import find_since, plan_openings
from roost_core.placement.labels import OPENED as OPENED_VALUE
from roost_core.placement.labels import PULLING

GAUGES: Final = (
    PlanGauge(
        "gate_images_missing", "Nodes that still lack an image that belongs on them.", ("image",)
    ),
    PlanGauge("gate_images_held", "Nodes that hold an image that belongs on them.", ("image",)),
    PlanGauge("gate_nodes_waiting", "Nodes that still lack one image at least."),
    PlanGauge(
        "gate_oldest_wait_seconds",
        "How long the longest waiting node has lacked an image; 0: none.",
    ),
    PlanGauge(
        "gate_pull_faults",
        "Images that can't be pulled now, once for each node, by cause.",
        ("reason",),
    ),
    PlanGauge(
        "gate_nodes_closed",
        "Nodes that an image's users keep off while it is pulled there.",
        ("image",),
    ),
    PlanGauge(
        "gate_nodes_opened",
        "Nodes opened to users of an image that they lack, by why.",
        ("reason",),
    ),
    PlanGauge("gate_nodes_tainted", "Nodes that carry the startup taint."),
    PlanGauge(
        "gate_nodes_opened_without_images",
        "Nodes that lack images, and lost the startup taint in the end.",
    ),
)


def gauge_values(
    nodes: Mapping[str, NodeMemory],
    settings: GateSettings,
    opened_late: frozenset[str],
    to_users: Mapping[tuple[str, str], float],
    now: Moment,
) -> Gauges:
    """Count over all nodes. opened_late: names of nodes; to_users: nodes and labels opened for
    waiting users.
    """
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
        "gate_images_held": {
            (image.reference,): float(wanted[name] - missing[name]) for name, image in images
        },
        "gate_nodes_waiting": {(): float(waiting)},
        "gate_oldest_wait_seconds": {(): now.steady - oldest},
        "gate_pull_faults": {(reason,): float(number) for reason, number in sorted(faults.items())},
        "gate_nodes_closed": {
            (image.reference,): float(closed[image.label]) for image in settings.images.values()
        },
        "gate_nodes_opened": {
            (reason.value,): float(opened[reason]) for reason in Opening if opened[reason]
        },
        "gate_nodes_tainted": {(): float(tainted)},
        "gate_nodes_opened_without_images": {
            (): float(sum(bool(nodes[name].missing) for name in opened_late))
        },
    }


NAME: Final = "image-gate"
# Nodes with an Event about the same fault: a registry that is down would use up the write budget
# that labels need.
NODES_PER_FAULT: Final = 3
# Reasons of Events about a lifted startup taint. It is lifted once, so these are retried.
OPENED: Final = "StartupTaintLifted"
OPENED_LATE: Final = "OpenedWithoutImages"
# The reason of Events about a node that is open to users of an image that it lacks.
GATE_OPENED: Final = "ImageGateOpened"
_RETRIED: Final = frozenset({OPENED, OPENED_LATE, GATE_OPENED})
_UNSENT: Final = frozenset({Outcome.HELD_BACK, Outcome.FAILED})
# API servers keep Events for an hour: older ones are no longer retried.
STALE_NOTICE_SECONDS: Final = 3600.0


@dataclass(frozen=True, kw_only=True)
class GateMemory:
    """What the gate remembers; without it, it is less certain for some minutes."""

    nodes: Mapping[str, NodeMemory] = field(default_factory=dict)
    # By uid of the puller's pod.
    evidence: Mapping[str, PodEvidence] = field(default_factory=dict)
    # Sizes from nodes' lists, by normalised reference.
    image_bytes: Mapping[str, int] = field(default_factory=dict)
    # The last change written to each node, and when (steady seconds): the watch may not show it
    # yet.
    changes: Mapping[str, tuple[ChangeNode, float]] = field(default_factory=dict)
    # Notices to retry, and since when, in steady seconds.
    notices: Mapping[Notice, float] = field(default_factory=dict)
    # Names of nodes opened at the deadline.
    opened_late: frozenset[str] = frozenset()
    # Whether a puller's pod could be expected on new nodes.
    has_puller: bool | None = None
    # By node and label: when it was opened to a waiting user, in steady seconds.
    opened: Mapping[tuple[str, str], float] = field(default_factory=dict)
    # By uid: when pods that wait at the gate were first seen to, in steady seconds. None: nothing
    # was looked at yet.
    waiting: Mapping[str, float] | None = None


def plan_image_gate(
    snapshot: Snapshot, memory: GateMemory, settings: GateSettings, now: Moment
) -> Planned[GateMemory]:
    """Decide which labels and taints to write, the most urgent first, and what to report."""
    evidence = find_evidence(snapshot, settings, memory.evidence)
    context = PlanContext(
        settings=settings,
        now=now,
        snapshot=snapshot,
        is_first=memory.waiting is None,
        has_puller=_has_puller(evidence.values(), settings),
        image_bytes=dict(memory.image_bytes),
    )
    nodes, shares = _judge_all(snapshot, memory, evidence, context)
    sent = {
        name: (change, at)
        for name, (change, at) in memory.changes.items()
        if 0 <= now.steady - at < ECHO_SECONDS
    }
    waited = settings.open_after_seconds if memory.waiting is None else 0.0
    memory = replace(
        memory, waiting=find_since(snapshot.pods.values(), memory.waiting or {}, now, waited)
    )
    to_waiting, wait_seconds = _open_to_waiting(snapshot, nodes, memory, settings, now)
    openings = dict(to_waiting)
    for name, labels in _open_beside_failing(nodes).items():
        openings[name] = openings.get(name, frozenset()) | labels
    wanted = [share.change for share in shares if share.change is not None]
    planned = _with_openings(wanted, snapshot, openings, settings)
    changes = [
        change for change in planned if change.node not in sent or sent[change.node][0] != change
    ]
    opened_late = frozenset(
        name for name in memory.opened_late if name in nodes and nodes[name].absent
    )
    actions: list[Action] = [*sorted(changes, key=_urgency)]
    actions += memory.notices
    actions += _notices(shares)
    waits = [seconds for share in shares for seconds in share.waits]
    return Planned(
        actions=actions,
        memory=replace(
            memory,
            nodes=nodes,
            evidence=evidence,
            image_bytes=context.image_bytes,
            changes=sent,
            opened_late=opened_late,
            has_puller=context.has_puller,
            opened={
                (name, label): since
                for (name, label), since in memory.opened.items()
                if name in nodes
                and (label in nodes[name].opened or now.steady - since < ECHO_SECONDS)
            },
        ),
        wake_after_seconds=min(
            waits if wait_seconds is None else [*waits, wait_seconds], default=None
        ),
        gauges=gauge_values(nodes, settings, opened_late, memory.opened, now),
    )


def _judge_all(
    snapshot: Snapshot,
    memory: GateMemory,
    evidence: Mapping[str, PodEvidence],
    context: PlanContext,
) -> tuple[dict[str, NodeMemory], list[NodeShare]]:
    """Judge every node that changed or isn't settled."""
    by_node: dict[str, list[PodEvidence]] = {}
    for pod_evidence in evidence.values():
        by_node.setdefault(pod_evidence.pod.node_name, []).append(pod_evidence)
    nodes: dict[str, NodeMemory] = {}
    shares: list[NodeShare] = []
    for name, node in snapshot.nodes.items():
        before = memory.nodes.get(name)
        if before is not None and before.node.uid != node.uid:
            before = None
        node_evidence = tuple(by_node.get(name, ()))
        if (
            before is not None
            and before.is_settled
            and before.node is node
            and before.evidence == node_evidence
            and memory.has_puller is context.has_puller
        ):
            nodes[name] = before
            continue
        share = NodeShare(node, node_evidence, before, context)
        nodes[name] = judge_node(share)
        shares.append(share)
    return nodes, shares


def _has_puller(evidence: Iterable[PodEvidence], settings: GateSettings) -> bool:
    """Whether a puller's pod can be expected on new nodes: those of a hook are created at upgrades
    only.
    """
    if settings.puller_pods is PullerPods.ROOST:
        return settings.has_puller
    return any(is_z2jh_continuous_puller(pod_evidence.pod.labels) for pod_evidence in evidence)


def _open_to_waiting(
    snapshot: Snapshot,
    nodes: Mapping[str, NodeMemory],
    memory: GateMemory,
    settings: GateSettings,
    now: Moment,
) -> tuple[Mapping[str, frozenset[str]], float | None]:
    fresh = {key for key, since in memory.opened.items() if 0 <= now.steady - since < ECHO_SECONDS}
    closed = {
        name: labels
        for name, node in nodes.items()
        if node.closed
        and (labels := frozenset(label for label in node.closed if (name, label) not in fresh))
    }
    failing = {
        name: labels for name, node in nodes.items() if node.faults and (labels := node.failing)
    }
    since = {**(memory.waiting or {})}
    since.update(
        (one.node.uid, one.ready_since) for one in nodes.values() if one.ready_since is not None
    )
    return plan_openings(
        snapshot,
        closed,
        {name for name, _ in fresh},
        failing=failing,
        since=since,
        prefix=settings.label_prefix,
        open_after_seconds=settings.open_after_seconds,
        now=now,
    )


def _open_beside_failing(nodes: Mapping[str, NodeMemory]) -> Mapping[str, frozenset[str]]:
    """Return the labels of images whose pull fails on a node that is open to users, by node that is
    closed to them.
    """
    drawing = {
        label
        for node in nodes.values()
        if node.faults
        for label in node.failing
        if label in node.opened
    }
    if not drawing:
        return {}
    others = {name: frozenset(node.closed & drawing - node.failing) for name, node in nodes.items()}
    return {name: labels for name, labels in others.items() if labels}


def _with_openings(
    changes: Sequence[ChangeNode],
    snapshot: Snapshot,
    openings: Mapping[str, frozenset[str]],
    settings: GateSettings,
) -> list[ChangeNode]:
    """Return the changes together with those that open nodes to waiting users. openings: labels by
    node.
    """
    remaining = dict(openings)
    by_label = {image.label: image.reference for image in settings.images.values()}

    def why(labels: frozenset[str]) -> str:
        return "; ".join(
            describe_opening(by_label.get(label, label), Opening.USER_WAITS)
            for label in sorted(labels)
        )

    merged: list[ChangeNode] = []
    for change in changes:
        labels = remaining.pop(change.node, frozenset())
        if not labels:
            merged.append(change)
            continue
        opened = {**change.set_labels, **dict.fromkeys(labels, OPENED_VALUE)}
        merged.append(replace(change, set_labels=opened, why=f"{change.why}; {why(labels)}"))
    for name, labels in remaining.items():
        node = snapshot.nodes[name]
        opened = dict.fromkeys(sorted(labels), OPENED_VALUE)
        merged.append(ChangeNode(node=name, uid=node.uid, set_labels=opened, why=why(labels)))
    return merged


def _notices(shares: Sequence[NodeShare]) -> Iterable[Notice]:
    counts: Counter[tuple[str, str]] = Counter()
    for share in shares:
        for subject, notice in share.notices:
            counts[subject] += 1
            if counts[subject] <= NODES_PER_FAULT:
                yield notice


def _urgency(change: ChangeNode) -> int:
    """Rank a change for when the write budget is short: those that somebody may wait for come
    first.
    """
    # Nodes are closed before one is known to hold a new image: from then on pods require it, and
    # kubelets refuse.
    values = change.set_labels.values()
    if OPENED_VALUE in values:
        return 0
    if PULLING in values:
        return 1
    return 2 if values or change.remove_taints else 3


def note_image_gate(memory: GateMemory, done: Sequence[Done], now: Moment) -> GateMemory:
    """Remember what was written: the watch shows it a little later."""
    changes = dict(memory.changes)
    # Those that were not sent are retried.
    notices: dict[Notice, float] = {}
    opened_late = set(memory.opened_late)
    opened = dict(memory.opened)
    for action, outcome in done:
        if isinstance(action, Notice) and outcome in _UNSENT and action.reason in _RETRIED:
            since = memory.notices.get(action, now.steady)
            if now.steady - since < STALE_NOTICE_SECONDS:
                notices[action] = since
        if outcome is not Outcome.DONE:
            continue
        if isinstance(action, ChangeNode):
            changes[action.node] = (action, now.steady)
            for label, value in action.set_labels.items():
                if value == OPENED_VALUE:
                    opened[action.node, label] = now.steady
                    warning = SENTENCES[Opening.USER_WAITS] not in action.why
                    said = f"Node {action.node}: {action.why}."
                    notices[
                        Notice.on_node(action.node, action.uid, GATE_OPENED, said, warning=warning)
                    ] = now.steady
            if action.remove_taints:
                node = memory.nodes.get(action.node)
                absent = node.absent if node is not None else ()
                said = f"Node {action.node} lost its startup taint: {action.why}."
                reason = OPENED_LATE if absent else OPENED
                notices[
                    Notice.on_node(action.node, action.uid, reason, said, warning=bool(absent))
                ] = now.steady
                if absent:
                    opened_late.add(action.node)
    return replace(
        memory, changes=changes, notices=notices, opened_late=frozenset(opened_late), opened=opened
    )


CONTROLLER: Final = Controller(
    name=NAME,
    # In mode `off` it still runs, to remove its labels and taints.
    read=read_gate,
    plan=plan_image_gate,
    empty=GateMemory(),
    note=lambda memory, done, _settings, now: note_image_gate(memory, done, now),
    gauges=GAUGES,
)
