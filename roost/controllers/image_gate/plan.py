"""Make one plan of the image gate: label nodes by the images that they hold, and lift the startup
taint.

In mode requireLabel, a node that lacks an image is closed to the image's users while it is pulled.
The node is opened when nothing suggests that the image will come soon, or when a user waits for
nothing else.

Guarantees:

- No label or taint of another release is ever written.
- A node gets an image's label only after its kubelet reported the image.
- The label goes when the image has left the node. It also goes when the release no longer has the
  image and no pending pod requires the label.
- A node that isn't Ready may report old images, so its images' labels stay as they are.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

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
from roost.controllers.contract.snapshot import Moment, Snapshot
from roost.controllers.image_gate.facts import NodeFacts, ObservedNode, PlanContext, find_facts
from roost.controllers.image_gate.node_labels import (
    GATE_OPENED,
    NO_OPENINGS,
    OPENED_WITHOUT_IMAGES,
    TAINT_LIFTED,
    Opening,
    choose_targets,
    describe_change,
    open_to_users,
    plan_change,
    urgency,
)
from roost.controllers.image_gate.pull_warnings import (
    NO_PULLER,
    PullWarning,
    find_cause,
    find_warnings,
)
from roost.controllers.image_gate.puller_pods import PodEvidence, expects_puller, find_evidence
from roost.controllers.image_gate.settings import GateSettings, read_gate
from roost.controllers.image_gate.waiting_users import (
    GateNodes,
    Openings,
    find_since,
    open_beside_failing,
    plan_openings,
)
from roost_core.objects.node import Node
from roost_core.placement.labels import OPENED

NAME: Final = "image-gate"
# The watch shows a change that was written within this time. Else the change is requested again.
ECHO_SECONDS: Final = 10.0
# The most nodes with an Event about the same fault. Labels need the same budget of writes, and a
# registry that is down is a fault of every node.
NODES_PER_FAULT: Final = 3
# Reasons of Events that are requested only once, after a change. They are retried until they are
# written; other Events are requested with each plan.
_RETRIED: Final = frozenset({TAINT_LIFTED, OPENED_WITHOUT_IMAGES, GATE_OPENED})
_UNSENT: Final = frozenset({Outcome.HELD_BACK, Outcome.FAILED})
# API servers keep Events for an hour. After that time, an Event is no longer retried.
STALE_NOTICE_SECONDS: Final = 3600.0
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


class NodeMemory(NamedTuple):
    """What is remembered of one node."""

    node: Node
    # Of the puller's pods on it.
    evidence: tuple[PodEvidence, ...]
    facts: NodeFacts
    # Labels that close the node to users of an image while it is pulled.
    closed: frozenset[str]
    # Labels that open the node to users of an image that it lacks, and why.
    opened: Mapping[str, Opening]
    # Whether nothing is left to do until something changes.
    is_settled: bool


class WrittenChange(NamedTuple):
    """A change of a node that was written."""

    change: ChangeNode
    # When, in steady seconds.
    at: float


@dataclass(frozen=True, kw_only=True)
class GateMemory:
    """What the gate remembers. A new leader remembers nothing, and is unsure for some minutes."""

    # By name of the node.
    nodes: Mapping[str, NodeMemory] = field(default_factory=dict)
    # By uid of the puller's pod.
    evidence: Mapping[str, PodEvidence] = field(default_factory=dict)
    # Sizes from nodes' lists, by normalised reference.
    image_bytes: Mapping[str, int] = field(default_factory=dict)
    # The last change, by name of the node, while the watch may not show it yet.
    changes: Mapping[str, WrittenChange] = field(default_factory=dict)
    # Events to write once a change that the last plan requested is done: by name of the node.
    events_of_changes: Mapping[str, tuple[Notice, ...]] = field(default_factory=dict)
    # Events to write, and when each was first requested, in steady seconds.
    events: Mapping[Notice, float] = field(default_factory=dict)
    # Names of nodes that lost the startup taint at the deadline.
    opened_without_images: frozenset[str] = frozenset()
    # Whether the last plan expected a puller's pod on new nodes; None: there was no plan.
    expected_puller: bool | None = None
    # When a node was opened, in steady seconds: by its name and the label.
    opened_at: Mapping[tuple[str, str], float] = field(default_factory=dict)
    # Since when a pod has waited at the gate, in steady seconds: by its uid. None: there was no
    # plan.
    waiting: Mapping[str, float] | None = None


class _JudgedNode(NamedTuple):
    """What a plan does with one node."""

    memory: NodeMemory
    # None: its labels and taints are as they should be.
    change: ChangeNode | None
    warnings: list[PullWarning]
    # The node is judged again after so long; infinity: only after it changes.
    wait_seconds: float


def plan_image_gate(
    snapshot: Snapshot, memory: GateMemory, settings: GateSettings, now: Moment
) -> Planned[GateMemory]:
    """Decide which labels and taints to write, the most urgent first, and which Events.

    Each node goes from what is observed to facts, from facts to targets, and from targets to a
    change. Then nodes are opened to users who wait.
    """
    evidence = find_evidence(snapshot, settings, memory.evidence)
    context = PlanContext(
        settings=settings,
        now=now,
        snapshot=snapshot,
        is_first=memory.waiting is None,
        expects_puller=expects_puller(evidence.values(), settings),
    )
    judged: dict[str, _JudgedNode] = {}
    image_bytes = dict(memory.image_bytes)
    for observed in _observe_nodes(memory, evidence.values(), context):
        judged[observed.node.name] = _judge_node(observed, memory, image_bytes)
    changes = {name: node.change for name, node in judged.items() if node.change is not None}
    warnings = [warning for node in judged.values() for warning in node.warnings]
    wait_seconds = min((node.wait_seconds for node in judged.values()), default=math.inf)
    nodes = {
        name: judged[name].memory if name in judged else memory.nodes[name]
        for name in snapshot.nodes
    }

    # How long the pods that the first plan finds have waited isn't known: they count as having
    # waited long enough.
    waited = settings.open_after_seconds if memory.waiting is None else 0.0
    waiting = find_since(snapshot.pods.values(), memory.waiting or {}, now, waited)
    openings = _find_openings(nodes, waiting, memory.opened_at, context)
    if openings.wait_seconds is not None:
        wait_seconds = min(wait_seconds, openings.wait_seconds)
    references = {image.label: image.reference for image in settings.images.values()}
    for name, labels in openings.labels.items():
        changes[name] = open_to_users(changes.get(name), snapshot.nodes[name], labels, references)

    sent = {name: written for name, written in memory.changes.items() if _is_fresh(written.at, now)}
    unsent = [
        change
        for name, change in changes.items()
        if name not in sent or sent[name].change != change
    ]
    events_of_changes = {
        change.node: describe_change(
            change,
            is_for_users=change.node in openings.labels,
            lacks_images=bool(nodes[change.node].facts.absent),
        )
        for change in unsent
    }
    opened_without_images = frozenset(
        name for name in memory.opened_without_images if name in nodes and nodes[name].facts.absent
    )
    opened_at = {
        (name, label): at
        for (name, label), at in memory.opened_at.items()
        if name in nodes and (label in nodes[name].opened or _is_fresh(at, now))
    }
    actions: list[Action] = [*sorted(unsent, key=urgency)]
    actions += memory.events
    actions += _first_of_each(warnings)
    return Planned(
        actions=actions,
        memory=GateMemory(
            nodes=nodes,
            evidence=evidence,
            image_bytes=image_bytes,
            changes=sent,
            events_of_changes=events_of_changes,
            events=memory.events,
            opened_without_images=opened_without_images,
            expected_puller=context.expects_puller,
            opened_at=opened_at,
            waiting=waiting,
        ),
        wake_after_seconds=None if math.isinf(wait_seconds) else wait_seconds,
        gauges=gauge_values(nodes, settings, opened_without_images, memory.opened_at, now),
    )


def _judge_node(
    observed: ObservedNode, memory: GateMemory, image_bytes: dict[str, int]
) -> _JudgedNode:
    """Find a node's facts, its targets and its change.

    Adds the sizes of the images that it lists to `image_bytes`.
    """
    opened_before = NO_OPENINGS
    if observed.before is not None:
        opened_before = memory.nodes[observed.node.name].opened
    facts = find_facts(observed, image_bytes)
    image_bytes.update(facts.image_bytes)
    targets = choose_targets(observed, facts, opened_before)
    change = plan_change(observed, facts, targets)
    warnings = list(find_warnings(observed, facts))
    echo_seconds = math.inf if change is None else ECHO_SECONDS
    wait_seconds = min(facts.wait_seconds, targets.wait_seconds, echo_seconds)
    node_memory = NodeMemory(
        node=observed.node,
        evidence=observed.evidence,
        facts=facts,
        closed=targets.closed,
        opened=targets.opened,
        is_settled=math.isinf(wait_seconds) and not (warnings or facts.unwanted),
    )
    return _JudgedNode(node_memory, change, warnings, wait_seconds)


def _is_fresh(at: float, now: Moment) -> bool:
    """Whether the watch may not show a change yet that was written at `at`, in steady seconds."""
    return 0 <= now.steady - at < ECHO_SECONDS


def _observe_nodes(
    memory: GateMemory, evidence: Iterable[PodEvidence], context: PlanContext
) -> list[ObservedNode]:
    """Return the nodes to judge: those that changed, and those that aren't settled."""
    by_node: dict[str, list[PodEvidence]] = {}
    for pod_evidence in evidence:
        by_node.setdefault(pod_evidence.pod.node_name, []).append(pod_evidence)
    nodes: list[ObservedNode] = []
    for name, node in context.snapshot.nodes.items():
        node_evidence = tuple(by_node.get(name, ()))
        before = memory.nodes.get(name)
        if before is not None and before.node.uid != node.uid:
            before = None
        is_unchanged = (
            before is not None
            and before.is_settled
            and before.node is node
            and before.evidence == node_evidence
            and memory.expected_puller is context.expects_puller
        )
        if not is_unchanged:
            facts = before.facts if before is not None else None
            nodes.append(ObservedNode(node, node_evidence, facts, context))
    return nodes


def _first_of_each(warnings: Iterable[PullWarning]) -> Iterable[Notice]:
    """Return the Events, but of the same fault only those of the first few nodes."""
    counts: Counter[tuple[str, str]] = Counter()
    for subject, event in warnings:
        counts[subject] += 1
        if counts[subject] <= NODES_PER_FAULT:
            yield event


def _find_openings(
    nodes: Mapping[str, NodeMemory],
    waiting: Mapping[str, float],
    opened_at: Mapping[tuple[str, str], float],
    context: PlanContext,
) -> Openings:
    """Decide which nodes to open to users, although they lack images.

    waiting: by uid of the pod, since when. opened_at: by name of the node and label.
    """
    # By name of the node and label. The watch may still show these as closed.
    just_opened = {key for key, at in opened_at.items() if _is_fresh(at, context.now)}
    closed: dict[str, frozenset[str]] = {}
    failing: dict[str, frozenset[str]] = {}
    ready_since: dict[str, float] = {}
    for name, memory in nodes.items():
        still_closed = [label for label in memory.closed if (name, label) not in just_opened]
        if still_closed:
            closed[name] = frozenset(still_closed)
        if memory.facts.faults:
            failing[name] = memory.facts.failing
        if memory.facts.ready_since is not None:
            ready_since[name] = memory.facts.ready_since
    openings = plan_openings(
        context.snapshot,
        GateNodes(closed, frozenset(name for name, _ in just_opened), failing, ready_since),
        waiting,
        prefix=context.settings.label_prefix,
        open_after_seconds=context.settings.open_after_seconds,
        now=context.now,
    )
    labels_by_node = dict(openings.labels)
    if failing:
        opened = {name: memory.opened.keys() for name, memory in nodes.items()}
        all_closed = {name: memory.closed for name, memory in nodes.items()}
        for name, labels in open_beside_failing(opened, all_closed, failing).items():
            labels_by_node[name] = labels_by_node.get(name, frozenset()) | labels
    return Openings(labels_by_node, openings.wait_seconds)


def gauge_values(
    nodes: Mapping[str, NodeMemory],
    settings: GateSettings,
    opened_without_images: frozenset[str],
    opened_at: Mapping[tuple[str, str], float],
    now: Moment,
) -> Gauges:
    """Count over all nodes. opened_without_images: names of nodes; opened_at: by node and label."""
    # By normalised reference of an image.
    missing: Counter[str] = Counter()
    awaited: Counter[str] = Counter()
    # By cause.
    faults: Counter[str] = Counter()
    # By label of an image.
    closed: Counter[str] = Counter()
    # By why the node was opened.
    opened: Counter[str] = Counter()
    waiting_nodes = 0
    tainted_nodes = 0
    # When the node began to wait that has waited longest.
    oldest = now.steady
    for name, memory in nodes.items():
        facts = memory.facts
        for image in facts.awaited:
            awaited[image.normalised] += 1
        for label in memory.closed:
            closed[label] += 1
        for label, why in memory.opened.items():
            # The node's targets call it EARLIER, too, when this leader opened it to a user who
            # waits.
            is_for_user = why is Opening.EARLIER and (name, label) in opened_at
            opened[Opening.USER_WAITS if is_for_user else why] += 1
        tainted_nodes += any(taint.key == settings.taint_key for taint in memory.node.taints)
        if not facts.missing:
            continue
        waiting_nodes += 1
        missing.update(image.normalised for image in facts.missing)
        faults.update(find_cause(fault).value for fault in facts.faults.values())
        if not memory.evidence:
            faults[NO_PULLER] += len(facts.missing)
        if facts.waiting_since is not None:
            oldest = min(oldest, facts.waiting_since)
    images = settings.images.items()
    still_without_images = sum(bool(nodes[name].facts.missing) for name in opened_without_images)
    return {
        "gate_images_missing": {(image.reference,): float(missing[name]) for name, image in images},
        "gate_images_held": {
            (image.reference,): float(awaited[name] - missing[name]) for name, image in images
        },
        "gate_nodes_waiting": {(): float(waiting_nodes)},
        "gate_oldest_wait_seconds": {(): now.steady - oldest},
        "gate_pull_faults": {(reason,): float(number) for reason, number in sorted(faults.items())},
        "gate_nodes_closed": {
            (image.reference,): float(closed[image.label]) for image in settings.images.values()
        },
        "gate_nodes_opened": {
            (reason.value,): float(opened[reason]) for reason in Opening if opened[reason]
        },
        "gate_nodes_tainted": {(): float(tainted_nodes)},
        "gate_nodes_opened_without_images": {(): float(still_without_images)},
    }


def note_image_gate(memory: GateMemory, done: Sequence[Done], now: Moment) -> GateMemory:
    """Remember what the last plan's actions did: the watch shows it only a little later."""
    changes = dict(memory.changes)
    opened_at = dict(memory.opened_at)
    opened_without_images = set(memory.opened_without_images)
    # Built anew: Events that were written drop out.
    events: dict[Notice, float] = {}
    for action, outcome in done:
        if isinstance(action, Notice) and outcome in _UNSENT and action.reason in _RETRIED:
            since = memory.events.get(action, now.steady)
            if now.steady - since < STALE_NOTICE_SECONDS:
                events[action] = since
        if isinstance(action, ChangeNode) and outcome is Outcome.DONE:
            changes[action.node] = WrittenChange(action, now.steady)
            for label, value in action.set_labels.items():
                if value == OPENED:
                    opened_at[action.node, label] = now.steady
            for event in memory.events_of_changes.get(action.node, ()):
                events[event] = now.steady
                if event.reason == OPENED_WITHOUT_IMAGES:
                    opened_without_images.add(action.node)
    return replace(
        memory,
        changes=changes,
        events=events,
        opened_without_images=frozenset(opened_without_images),
        opened_at=opened_at,
    )


CONTROLLER: Final = Controller(
    name=NAME,
    # It also runs in mode `off`: it removes its labels and taints.
    read=read_gate,
    plan=plan_image_gate,
    empty=GateMemory(),
    note=lambda memory, done, _settings, now: note_image_gate(memory, done, now),
    gauges=GAUGES,
)
