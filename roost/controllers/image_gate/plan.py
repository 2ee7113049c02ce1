"""Keep true on every node's labels which images it holds; take the startup taint off, and tell what can't be pulled.

In mode requireLabel a node that lacks an image is closed to its users while the image comes, and opened when nobody can
tell that it will come soon, or when a user waits for nothing else.

Guarantees: no label, taint or condition of another release is ever written; a label is given only where a kubelet has
said that the image is there; it goes when the image has left the node, or when the image has left the set and no
pending pod requires it. What a node that isn't Ready says may be old: labels of its images stay as they are.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from roost.controllers.contract.actions import (
    Action,
    ChangeNode,
    Done,
    GaugeDefinition,
    Gauges,
    Notice,
    Outcome,
    Planned,
    SetCondition,
)
from roost.controllers.contract.pullers import is_z2jh_continuous_puller
from roost.controllers.image_gate.facts import PodEvidence, find_evidence
from roost.controllers.image_gate.marks import SENTENCES, Opening
from roost.controllers.image_gate.node import (
    ECHO_SECONDS,
    NO_PULLER,
    Circumstances,
    Judgement,
    NodeMemory,
    RequiredLabels,
    describe_opening,
    judge_node,
)
from roost.controllers.image_gate.pull_faults import find_cause
from roost.controllers.image_gate.settings import PullerPods
from roost.controllers.image_gate.waiting import Openings, plan_openings
from roost_core.placement.labels import OPENED as OPENED_VALUE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from roost.controllers.contract.snapshot import Moment, Snapshot
    from roost.controllers.image_gate.settings import GateSettings
    from roost_core.placement.pullers import ManagedImage

# Of one fault, so many nodes are told of: a registry that is down would otherwise use up the budget that labels need.
TOLD_NODES: Final = 3
# Reasons of Events about a startup taint that was lifted: it happens once, so nobody asks for them again.
OPENED: Final = "StartupTaintLifted"
OPENED_LATE: Final = "OpenedWithoutImages"
# Of a node that lacks an image and lets its users come all the same.
GATE_OPENED: Final = "ImageGateOpened"
_TOLD_ONCE: Final = frozenset({OPENED, OPENED_LATE, GATE_OPENED})
_NOT_TOLD: Final = frozenset({Outcome.HELD_BACK, Outcome.FAILED})
# Events live for an hour: nobody looks for older news. A cluster that refuses them is asked no longer.
STALE_NOTICE_SECONDS: Final = 3600.0

GAUGES: Final = (
    GaugeDefinition("gate_images_missing", "Nodes that still lack an image that belongs on them.", ("image",)),
    GaugeDefinition("gate_images_held", "Nodes that hold an image that belongs on them.", ("image",)),
    GaugeDefinition("gate_nodes_waiting", "Nodes that still lack one image at least."),
    GaugeDefinition("gate_oldest_wait_seconds", "How long the node that waits longest lacks an image; 0: none does."),
    GaugeDefinition("gate_pull_faults", "Images that can't be pulled now, once for each node, by cause.", ("reason",)),
    GaugeDefinition("gate_nodes_closed", "Nodes that an image's users keep off while it is pulled there.", ("image",)),
    GaugeDefinition(
        "gate_nodes_opened", "Nodes that lack an image and were opened to its users, once for each image.", ("reason",)
    ),
    GaugeDefinition("gate_nodes_tainted", "Nodes that carry the startup taint."),
    GaugeDefinition(
        "gate_nodes_opened_without_images", "Nodes whose startup taint went at its deadline and that still lack images."
    ),
)


@dataclass(frozen=True, kw_only=True)
class GateMemory:
    """What the gate remembers; losing it costs at most some minutes of certainty."""

    nodes: Mapping[str, NodeMemory] = field(default_factory=dict)
    # By uid of the puller's pod.
    evidence: Mapping[str, PodEvidence] = field(default_factory=dict)
    # The size that lists give an image, by normalised reference.
    image_bytes: Mapping[str, int] = field(default_factory=dict)
    # What was written last, by node, with the steady second: it may not have come back yet.
    changes: Mapping[str, tuple[ChangeNode, float]] = field(default_factory=dict)
    conditions: Mapping[str, SetCondition] = field(default_factory=dict)
    # What plans tell until it is told, and since when: in steady seconds.
    notices: Mapping[Notice, float] = field(default_factory=dict)
    # Names of nodes opened at the deadline.
    opened_late: frozenset[str] = frozenset()
    # Whether a puller's pod could be expected on new nodes.
    has_puller: bool | None = None
    # What was opened to users who waited, with the steady second; by node and label.
    opened: Mapping[tuple[str, str], float] = field(default_factory=dict)


def plan_image_gate(snapshot: Snapshot, memory: GateMemory, settings: GateSettings, now: Moment) -> Planned[GateMemory]:
    """Say which labels, taints and conditions to write, in order of what they unlock, and what to tell."""
    evidence = find_evidence(snapshot, settings, memory.evidence)
    of = Circumstances(
        settings=settings,
        now=now,
        required=RequiredLabels(snapshot.pods.values(), settings.label_prefix),
        has_puller=_has_puller(evidence.values(), settings),
        conditions=memory.conditions,
        image_bytes=dict(memory.image_bytes),
    )
    nodes, judged = _judge_all(snapshot, memory, evidence, of)
    sent = {name: one for name, one in memory.changes.items() if 0 <= now.steady - one[1] < ECHO_SECONDS}
    openings = _open_to_waiting(snapshot, nodes, memory.opened, settings, now)
    asked = _with_openings([one.change for one in judged if one.change is not None], snapshot, openings, settings)
    changes = [one for one in asked if one.node not in sent or sent[one.node][0] != one]
    opened_late = frozenset(name for name in memory.opened_late if name in nodes and nodes[name].absent)
    actions: list[Action] = [*sorted(changes, key=_urgency)]
    actions += [one.condition for one in judged if one.condition is not None]
    actions += memory.notices
    actions += _told(judged)
    return Planned(
        actions=actions,
        memory=GateMemory(
            nodes=nodes,
            evidence=evidence,
            image_bytes=of.image_bytes,
            changes=sent,
            conditions={name: one for name, one in memory.conditions.items() if name in nodes},
            notices=memory.notices,
            opened_late=opened_late,
            has_puller=of.has_puller,
            opened={
                (name, label): since
                for (name, label), since in memory.opened.items()
                if name in nodes and (label in nodes[name].opened or now.steady - since < ECHO_SECONDS)
            },
        ),
        wake_after_seconds=min(
            (
                seconds
                for seconds in (openings.wait_seconds, *(one.wake_after_seconds for one in judged))
                if seconds is not None
            ),
            default=None,
        ),
        gauges=_gauges(nodes, settings, opened_late, memory.opened, now),
    )


def _judge_all(
    snapshot: Snapshot, memory: GateMemory, evidence: Mapping[str, PodEvidence], of: Circumstances
) -> tuple[dict[str, NodeMemory], list[Judgement]]:
    """Judge every node of which anything is new, or where something is still to be done."""
    by_node: dict[str, list[PodEvidence]] = {}
    for found in evidence.values():
        by_node.setdefault(found.pod.node_name, []).append(found)
    nodes: dict[str, NodeMemory] = {}
    judged: list[Judgement] = []
    for name, node in snapshot.nodes.items():
        before = memory.nodes.get(name)
        if before is not None and before.node.uid != node.uid:
            before = None
        said = tuple(by_node.get(name, ()))
        is_same = memory.has_puller is of.has_puller
        if before is not None and is_same and before.is_settled and before.node is node and before.evidence == said:
            nodes[name] = before
            continue
        one = judge_node(node, said, before, of)
        nodes[name] = one.memory
        judged.append(one)
    return nodes, judged


def _has_puller(evidence: Iterable[PodEvidence], settings: GateSettings) -> bool:
    """Tell whether a puller's pod can be expected on new nodes: a hook's pods are made at upgrades only."""
    if settings.puller_pods is PullerPods.ROOST:
        return settings.has_puller
    return any(is_z2jh_continuous_puller(one.pod.labels) for one in evidence)


def _open_to_waiting(
    snapshot: Snapshot,
    nodes: Mapping[str, NodeMemory],
    opened: Mapping[tuple[str, str], float],
    settings: GateSettings,
    now: Moment,
) -> Openings:
    fresh = {key for key, since in opened.items() if 0 <= now.steady - since < ECHO_SECONDS}
    closed = {
        name: left
        for name, one in nodes.items()
        if one.closed and (left := frozenset(label for label in one.closed if (name, label) not in fresh))
    }
    return plan_openings(
        snapshot.nodes,
        snapshot.pods,
        closed,
        {name for name, _ in fresh},
        prefix=settings.label_prefix,
        open_after_seconds=settings.open_after_seconds,
        now=now.wall,
    )


def _with_openings(
    changes: Sequence[ChangeNode], snapshot: Snapshot, openings: Openings, settings: GateSettings
) -> list[ChangeNode]:
    """The same changes, with those that open nodes to waiting users."""
    left = dict(openings.labels)
    by_label = {image.label: image.reference for image in settings.images.values()}

    def why(labels: frozenset[str]) -> str:
        return "; ".join(describe_opening(by_label.get(one, one), Opening.USER_WAITS) for one in sorted(labels))

    found: list[ChangeNode] = []
    for change in changes:
        labels = left.pop(change.node, frozenset())
        if not labels:
            found.append(change)
            continue
        opened = {**change.set_labels, **dict.fromkeys(labels, OPENED_VALUE)}
        found.append(replace(change, set_labels=opened, why=f"{change.why}; {why(labels)}"))
    for name, labels in left.items():
        node = snapshot.nodes[name]
        opened = dict.fromkeys(sorted(labels), OPENED_VALUE)
        found.append(ChangeNode(node=name, uid=node.uid, set_labels=opened, why=why(labels)))
    return found


def _told(judged: Sequence[Judgement]) -> Iterable[Notice]:
    counts: Counter[tuple[str, str]] = Counter()
    for one in judged:
        for subject, notice in one.notices:
            counts[subject] += 1
            if counts[subject] <= TOLD_NODES:
                yield notice


def _urgency(change: ChangeNode) -> int:
    """Its place among changes while there is budget for some only: those that somebody may wait for come first."""
    if OPENED_VALUE in change.set_labels.values():
        return 0
    return 1 if change.set_labels or change.remove_taints else 2


def note_image_gate(memory: GateMemory, done: Sequence[Done], now: Moment) -> GateMemory:
    """Remember what was written: watches bring it back a little later."""
    changes, conditions = dict(memory.changes), dict(memory.conditions)
    # What was told is told; what wasn't comes again.
    notices: dict[Notice, float] = {}
    opened_late = set(memory.opened_late)
    opened = dict(memory.opened)
    for action, outcome in done:
        if isinstance(action, Notice) and outcome in _NOT_TOLD and action.reason in _TOLD_ONCE:
            since = memory.notices.get(action, now.steady)
            if now.steady - since < STALE_NOTICE_SECONDS:
                notices[action] = since
        if outcome is not Outcome.DONE:
            continue
        if isinstance(action, SetCondition):
            conditions[action.node] = action
        elif isinstance(action, ChangeNode):
            changes[action.node] = (action, now.steady)
            for label, value in action.set_labels.items():
                if value == OPENED_VALUE:
                    opened[action.node, label] = now.steady
                    notices[_gate_opened(action)] = now.steady
            if action.remove_taints:
                known = memory.nodes.get(action.node)
                absent = known.absent if known is not None else ()
                notices[_opened(action, absent)] = now.steady
                if absent:
                    opened_late.add(action.node)
    return replace(
        memory,
        changes=changes,
        conditions=conditions,
        notices=notices,
        opened_late=frozenset(opened_late),
        opened=opened,
    )


def _gate_opened(action: ChangeNode) -> Notice:
    return Notice(
        kind="Node",
        namespace="",
        name=action.node,
        uid=action.uid,
        reason=GATE_OPENED,
        message=f"Node {action.node}: {action.why}.",
        warning=SENTENCES[Opening.USER_WAITS] not in action.why,
    )


def _opened(action: ChangeNode, absent: tuple[ManagedImage, ...]) -> Notice:
    return Notice(
        kind="Node",
        namespace="",
        name=action.node,
        uid=action.uid,
        reason=OPENED_LATE if absent else OPENED,
        message=f"Node {action.node} lost its startup taint: {action.why}.",
        warning=bool(absent),
    )


def _gauges(
    nodes: Mapping[str, NodeMemory],
    settings: GateSettings,
    opened_late: frozenset[str],
    to_users: Mapping[tuple[str, str], float],
    now: Moment,
) -> Gauges:
    missing: Counter[str] = Counter()
    wanted: Counter[str] = Counter()
    faults: Counter[str] = Counter()
    closed: Counter[str] = Counter()
    opened: Counter[str] = Counter()
    waiting = tainted = 0
    oldest = now.steady
    for one in nodes.values():
        wanted.update(image.normalised for image in one.wanted)
        closed.update(one.closed)
        name = one.node.name
        opened.update(
            Opening.USER_WAITS if (name, label) in to_users and why is Opening.EARLIER else why
            for label, why in one.opened.items()
        )
        tainted += any(taint.key == settings.taint_key for taint in one.node.fact.taints)
        if not one.missing:
            continue
        waiting += 1
        missing.update(image.normalised for image in one.missing)
        faults.update(find_cause(fault).value for fault in one.faults.values())
        if not one.evidence:
            faults[NO_PULLER] += len(one.missing)
        if one.waiting_since is not None:
            oldest = min(oldest, one.waiting_since)
    images = settings.images.items()
    return {
        "gate_images_missing": {(image.reference,): float(missing[name]) for name, image in images},
        "gate_images_held": {(image.reference,): float(wanted[name] - missing[name]) for name, image in images},
        "gate_nodes_waiting": {(): float(waiting)},
        "gate_oldest_wait_seconds": {(): now.steady - oldest},
        "gate_pull_faults": {(reason,): float(number) for reason, number in sorted(faults.items())},
        "gate_nodes_closed": {(image.reference,): float(closed[image.label]) for image in settings.images.values()},
        "gate_nodes_opened": {(reason.value,): float(opened[reason]) for reason in Opening if opened[reason]},
        "gate_nodes_tainted": {(): float(tainted)},
        "gate_nodes_opened_without_images": {(): float(sum(bool(nodes[name].missing) for name in opened_late))},
    }
