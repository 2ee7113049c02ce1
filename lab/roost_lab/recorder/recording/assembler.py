"""Turn the notices of the streams, in order, into records. Pure: time and the model come in as
arguments.

Guarantee: the same notice again, after a restart or in a list, gives records of the same keys.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Final, Protocol

from roost_core.placement.kubelet_pulls import image_in_message
from roost_core.placement.labels import hub_of
from roost_lab.recorder.recording.clocks import HOUR_US, behind_us, pod_in_server_time
from roost_lab.recorder.recording.decision_records import Judged, decision, failed_attempt
from roost_lab.recorder.recording.node_records import image_record, node_changes, node_record
from roost_lab.recorder.recording.pod_records import (
    disruptions,
    end_reason,
    image_digest,
    phase_record,
    pod_record,
    pull_records,
    steps_of,
    unseen_pod,
)
from roost_lab.recorder.recording.reading import (
    MICRO_US,
    SECOND_US,
    EventReading,
    NodeReading,
    PodReading,
    Step,
)
from roost_lab.recorder.store.records import (
    MAX_IMAGE,
    NODES,
    PODS,
    AutoscalerRecord,
    DecisionKind,
    DecisionRecord,
    GapRecord,
    NodeRecord,
    Phase,
    PreemptionRecord,
    Record,
    StoredState,
    Verdict,
    WaitingRecord,
)

# (labels, namespace) -> a pod class's name, "" for none.
Classify = Callable[[Mapping[str, str], str], str]
# A node's labels -> the labels that the image gate sets when the node has all its images.
GateLabels = Callable[[Mapping[str, str]], frozenset[str]]
_PREEMPTED_BY: Final = re.compile(
    r"[Pp]reempted by (?:pod )?(?P<uid>[0-9a-f-]{36})(?: on node (?P<node>\S+))?"
)
_AUTOSCALERS: Final = ("cluster-autoscaler", "karpenter")
# Most names of nodes that bindings wait for.
_MAX_AWAITED: Final = 1024
# Most Events that a node's clock is judged by.
_MOST_OF_CLOCK: Final = 100
_CREATED: Final = (Phase.CREATED, "")


class Judge(Protocol):
    """Follows the cluster and judges decisions by the scheduler's own rules; see `model.py`."""

    def node_changed(self, name: str, node: NodeReading | None, at_us: int) -> None:
        """Update a node; None: it is gone."""

    def pod_changed(self, key: str, pod: PodReading | None, pod_class: str, at_us: int) -> None:
        """Update a pod; None: it is gone."""

    def judge(self, binding: DecisionRecord, pod: PodReading, at_us: int) -> Judged:
        """Judge a binding. Called before `pod_changed` reports the bound pod."""

    def examine(self, pod: PodReading, at_us: int) -> WaitingRecord | None:
        """The nodes as they stand for a pod that fits on none, and what each lacks; None when that
        isn't known.
        """


class Follower(Protocol):
    """Follows pods for metrics; see roost_lab/recorder/recording/live_starts.py."""

    def pod_changed(
        self,
        pod: PodReading,
        pod_class: str,
        hub: str,
        seen: Step,
        *,
        created: Step,
        was_there: bool,
    ) -> None:
        """A pod in its current state. was_there: it may have been like this before the recorder
        began.
        """

    def pod_gone(self, namespace: str, uid: str, now_us: int) -> list[Record]:
        """A pod is gone."""


class Assembler:
    """Follows one cluster and makes its records. Owned by one thread."""

    def __init__(
        self,
        classify: Classify,
        known: StoredState,
        judge: Judge | None = None,
        gate_labels: GateLabels = lambda _labels: frozenset(),
        starts: Follower | None = None,
    ) -> None:
        self._classify = classify
        self._starts = starts
        self._gate_labels = gate_labels
        self._judge = judge
        self._pods: dict[str, PodReading] = {}
        # `steps_of` each pod.
        self._steps: dict[str, dict[tuple[Phase, str], Step]] = {}
        self._nodes: dict[str, NodeReading] = {}
        # Uids of nodes that have had all their images, or may have had them before they were first
        # seen.
        self._with_images = {
            uid for uid, node in known.nodes.items() if node.images_ready_us is not None
        }
        self._images: dict[str, dict[str, int]] = {
            uid: dict(images) for uid, images in known.images.items()
        }
        # Pods and nodes in the database that no list has shown yet.
        self._unseen_pods = dict(known.pods)
        self._unseen_nodes = dict(known.nodes)
        self._listed: dict[str, set[str]] = {}
        self._heard_us = dict(known.heard_us)
        # Kind -> from when changes are lost, and why.
        self._lost: dict[str, tuple[int, str]] = {}
        self._synced: set[str] = set()
        # Node's name -> (when the API server got an Event of its kubelet, how much later than its
        # own time), in µs.
        self._clocks: dict[str, deque[tuple[int, int]]] = {}
        # How far wrong clocks are behind, in µs.
        self.clocks_behind: dict[str, int] = {}
        # Node's name -> bindings that were reported before the node, by id.
        self._nodeless: dict[str, dict[str, DecisionRecord]] = {}

    # Streams

    def listing(self, kind: str) -> None:
        """A list of this kind begins."""
        self._listed[kind] = set()

    def lost(self, kind: str, why: str) -> None:
        """Changes since the stream's last sign of life can no longer be read."""
        since_us = self._heard_us.get(kind)
        if since_us is not None:
            self._lost.setdefault(kind, (since_us, why))

    def synced(self, kind: str, now_us: int) -> list[Record]:
        """A list is complete: what is missing from it ended unseen."""
        records: list[Record] = []
        if kind in self._lost:
            since_us, why = self._lost.pop(kind)
            records.append(GapRecord(kind=kind, from_us=since_us, to_us=now_us, why=why))
        listed = self._listed.pop(kind, set())
        if kind == PODS:
            for key in [key for key in self._pods if key not in listed]:
                records += self._pod_gone(key, self._pods[key], now_us, "unseen")
            for uid, created_us in self._unseen_pods.items():
                records.append(unseen_pod(uid, created_us, now_us))
                records.append(phase_record(uid, Phase.GONE, Step(now_us, MICRO_US), "watch"))
            self._unseen_pods.clear()
        elif kind == NODES:
            for name in [name for name in self._nodes if name not in listed]:
                records += self._node_gone(name, now_us)
            for uid, node in self._unseen_nodes.items():
                records.append(NodeRecord(uid=uid, name=node.name, gone_us=now_us))
                records += self._images_gone(uid, now_us)
            self._unseen_nodes.clear()
        self._synced.add(kind)
        if kind in (PODS, NODES):
            # Pods that were waiting when recording began, or during a gap.
            for pod in self._pods.values():
                if pod.is_unschedulable:
                    records += self._examined(pod, now_us)
        return records

    def heard(self, kind: str, now_us: int) -> None:
        """All changes until now have been delivered."""
        self._heard_us[kind] = now_us

    def heard_us(self, kind: str) -> int | None:
        """The time until which all changes have been delivered; None: none yet."""
        return self._heard_us.get(kind)

    # Pods

    def pods(self) -> list[PodReading]:
        """The pods that there are."""
        return list(self._pods.values())

    def pod(
        self,
        key: str,
        pod: PodReading | None,
        now_us: int,
        *,
        listed: bool = False,
        late_us: int = MICRO_US,
    ) -> list[Record]:
        """A pod in its current state. listed: its changes were not watched. late_us: the longest
        possible delay.
        """
        if PODS in self._listed:
            self._listed[PODS].add(key)
        if pod is None:
            return []
        self._unseen_pods.pop(pod.state.uid, None)
        pod = pod_in_server_time(pod, self.clocks_behind.get(pod.state.node_name, 0))
        records: list[Record] = []
        before = self._pods.get(key)
        if before is not None and before.state.uid != pod.state.uid:
            records += self._pod_gone(key, before, now_us, "unseen")
            before = None
        pod_class = self._classify(pod.state.labels, pod.state.namespace)
        if before is None or image_digest(before) != image_digest(pod):
            records.append(pod_record(pod, pod_class))
        known_steps, steps = self._steps.get(key, {}) if before is not None else {}, steps_of(pod)
        if before is not None:
            steps[_CREATED] = known_steps[_CREATED]
        elif not listed and late_us == MICRO_US and 0 <= now_us - pod.created_us < SECOND_US:
            # The object has a whole second; it was there no later than the watch told of it.
            steps[_CREATED] = Step(now_us, MICRO_US)
        for (phase, detail), step in steps.items():
            if known_steps.get((phase, detail)) != step:
                source = "pod" if step.resolution_us == SECOND_US else "watch"
                records.append(phase_record(pod.state.uid, phase, step, source, detail))
        if listed and PODS in self._lost:
            late_us = max(MICRO_US, now_us - self._lost[PODS][0])
        seen = Step(now_us, late_us)
        if before is not None and before.gates and not pod.gates:
            records.append(phase_record(pod.state.uid, Phase.UNGATED, seen, "watch"))
        records += self._pod_decisions(before, pod, seen, watched=not listed)
        records += disruptions(before, pod)
        self._pods[key], self._steps[key] = pod, steps
        if self._judge is not None:
            self._judge.pod_changed(key, pod, pod_class, now_us)
        if self._starts is not None:
            was_there = listed and PODS not in self._synced
            hub = hub_of(pod.state.labels, pod.state.namespace)
            told = seen if not listed else seen._replace(resolution_us=SECOND_US)
            self._starts.pod_changed(
                pod, pod_class, hub, told, created=steps[_CREATED], was_there=was_there
            )
        return records

    def pod_deleted(
        self, key: str, pod: PodReading | None, now_us: int, *, late_us: int = MICRO_US
    ) -> list[Record]:
        """A pod is gone. pod: its last state. late_us: it may have gone so much earlier."""
        records: list[Record] = []
        if pod is not None:
            records += self.pod(key, pod, now_us, late_us=late_us)
        last = self._pods.get(key)
        if last is not None:
            # It was there at least until its deletion was requested.
            since_us = max(
                filter(None, (last.created_us, last.accepted_us, last.deletion_us)), default=0
            )
            late_us = max(MICRO_US, min(late_us, now_us - since_us))
            records += self._pod_gone(key, last, now_us, end_reason(last), late_us)
        return records

    def malformed(self, kind: str, key: str, uid: str) -> None:
        """A pod or node that exists but is malformed: its last known state is kept."""
        if kind in self._listed:
            self._listed[kind].add(key)
        # In the database it stays until it is missing from a list.
        if kind == PODS:
            self._unseen_pods.pop(uid, None)
        elif kind == NODES:
            self._unseen_nodes.pop(uid, None)

    def _pod_gone(
        self, key: str, pod: PodReading, now_us: int, why: str, late_us: int = MICRO_US
    ) -> Iterator[Record]:
        self._pods.pop(key, None)
        self._steps.pop(key, None)
        if self._judge is not None:
            self._judge.pod_changed(key, None, "", now_us)
        if self._starts is not None:
            yield from self._starts.pod_gone(pod.state.namespace, pod.state.uid, now_us)
        pod_class = self._classify(pod.state.labels, pod.state.namespace)
        yield pod_record(pod, pod_class, deleted_us=now_us, reason=why)
        yield phase_record(pod.state.uid, Phase.GONE, Step(now_us, late_us), "watch")

    def _pod_decisions(
        self, before: PodReading | None, pod: PodReading, seen: Step, *, watched: bool
    ) -> Iterator[Record]:
        state, now_us, scheduled = pod.state, seen.at_us, pod.condition("PodScheduled")
        if state.node_name and (before is None or not before.state.node_name):
            when = Step(scheduled.reached_us or pod.created_us, SECOND_US)
            binding = self._decision(
                DecisionKind.BIND, state.uid, state.node_name, when, scheduler=state.scheduler_name
            )
            binding = replace(binding, last_us=scheduled.since_us or now_us)
            self._await_node(binding)
            yield from self._judged(binding, pod, now_us, watched=watched)
        elif pod.is_unschedulable and (
            before is None or before.condition("PodScheduled").message != scheduled.message
        ):
            when = Step(scheduled.since_us or now_us, SECOND_US)
            yield failed_attempt(
                state.uid, state.scheduler_name, scheduled.message, when, source="watch"
            )
            if watched:
                yield from self._examined(pod, now_us)
        nominated = state.nominated_node
        if (
            nominated
            and not state.node_name
            and (before is None or before.state.nominated_node != nominated)
        ):
            by = state.scheduler_name
            yield self._decision(
                DecisionKind.NOMINATE,
                state.uid,
                nominated,
                seen,
                scheduler=by,
                detail=f"/{nominated}",
            )
            yield phase_record(state.uid, Phase.NOMINATED, seen, "watch")

    def _judged(
        self, binding: DecisionRecord, pod: PodReading, now_us: int, *, watched: bool
    ) -> Iterator[Record]:
        if watched and self._judge is not None and {PODS, NODES} <= self._synced:
            judged, candidates = self._judge.judge(binding, pod, now_us)
            yield judged
            if candidates is not None:
                yield candidates
        else:
            why = "all pods and nodes were known" if watched else "it was watched"
            yield replace(binding, model=Verdict.UNKNOWN, model_note=f"bound before {why}")

    def _examined(self, pod: PodReading, now_us: int) -> Iterator[Record]:
        """The nodes as they stand for a pod that fits on none, once all nodes and pods are
        known.
        """
        if self._judge is None or not {PODS, NODES} <= self._synced:
            return
        waiting = self._judge.examine(pod, now_us)
        if waiting is not None:
            yield waiting

    def _node_uid(self, name: str) -> str:
        node = self._nodes.get(name)
        return node.state.uid if node is not None else ""

    def _await_node(self, binding: DecisionRecord) -> None:
        """Keep a binding to a node that is not known yet: nodes, pods and Events are separate
        streams.
        """
        if binding.node_uid or not binding.node_name:
            return
        self._nodeless.setdefault(binding.node_name, {})[binding.id] = binding
        while len(self._nodeless) > _MAX_AWAITED:
            self._nodeless.pop(next(iter(self._nodeless)))

    def _bound_before(self, node: NodeReading) -> Iterator[Record]:
        """Bindings that were reported before their node.

        A node created after them is another one of that name.
        """
        for binding in self._nodeless.pop(node.state.name, {}).values():
            if node.created_us < binding.at_us + binding.resolution_us:
                yield replace(binding, node_uid=node.state.uid)

    # Nodes

    def node(
        self,
        name: str,
        node: NodeReading | None,
        now_us: int,
        *,
        listed: bool = False,
        late_us: int = MICRO_US,
    ) -> list[Record]:
        """A node in its current state. listed: its changes were not watched. late_us: the longest
        possible delay.
        """
        if NODES in self._listed:
            self._listed[NODES].add(name)
        if node is None:
            return []
        uid = node.state.uid
        records: list[Record] = []
        before = self._nodes.get(name)
        if before is not None and before.state.uid != uid:
            records += self._node_gone(name, now_us)
            before = None
        stored = self._unseen_nodes.pop(uid, None)
        is_after_gap = listed and NODES in self._lost
        if before is None and not is_after_gap:
            # A list at the stored position shows what is already stored.
            stored = None
        old = node_record(before) if before is not None else stored
        new = node_record(node)
        if is_after_gap:
            late_us = max(MICRO_US, now_us - self._lost[NODES][0])
        changes = (
            list(node_changes(old, new, node, Step(now_us, late_us))) if old is not None else []
        )
        has_images = self._has_all_images(node)
        is_filled = has_images and uid not in self._with_images and (not listed or old is not None)
        if has_images:
            self._with_images.add(uid)
        if before is None or changes or is_filled or before.ready_us != node.ready_us:
            records.append(replace(new, images_ready_us=now_us if is_filled else None))
        records += changes
        if name in self._nodeless:
            records += self._bound_before(node)
        records += self._image_changes(node, now_us)
        self._nodes[name] = node
        if self._judge is not None:
            self._judge.node_changed(name, node, now_us)
        return records

    def _has_all_images(self, node: NodeReading) -> bool:
        labels = node.state.labels
        gate_labels = self._gate_labels(labels)
        return bool(gate_labels) and all(labels.get(label) == "true" for label in gate_labels)

    def node_deleted(self, name: str, now_us: int) -> list[Record]:
        """A node is gone."""
        return list(self._node_gone(name, now_us))

    def _node_gone(self, name: str, now_us: int) -> Iterator[Record]:
        node = self._nodes.pop(name, None)
        if node is None:
            return
        self._with_images.discard(node.state.uid)
        self._clocks.pop(name, None)
        self.clocks_behind.pop(name, None)
        if self._judge is not None:
            self._judge.node_changed(name, None, now_us)
        yield node_record(node, gone_us=now_us)
        yield from self._images_gone(node.state.uid, now_us)

    def _images_gone(self, node_uid: str, now_us: int) -> Iterator[Record]:
        for image, first_us in self._images.pop(node_uid, {}).items():
            yield image_record(node_uid, image, first_us, 0, gone_us=now_us)

    def _image_changes(self, node: NodeReading, now_us: int) -> Iterator[Record]:
        known = self._images.setdefault(node.state.uid, {})
        # By tag where there is one: the digest is another name of the same image.
        current = {
            name: size for name, size in node.state.images.items() if "@" not in name
        } or node.state.images
        for image, size in current.items():
            if image not in known:
                known[image] = now_us
                yield image_record(node.state.uid, image, now_us, size)
        for image in [image for image in known if image not in current]:
            yield image_record(node.state.uid, image, known.pop(image), 0, gone_us=now_us)

    # Events

    def event(self, event: EventReading) -> list[Record]:
        """An Event in its current state: new, or repeated."""
        event = self._in_server_time(event)
        kind, _, _, uid = event.about
        if kind == "Pod" and not uid:
            # Some controllers leave the uid out: all their pods would become one.
            return []
        if kind == "Pod" and event.reason == "Scheduled":
            return self._scheduled(event, uid)
        if kind == "Pod" and event.reason == "FailedScheduling":
            failure = failed_attempt(
                uid,
                event.controller,
                event.note,
                event.when,
                source="event",
                last_us=event.last_us,
                tries=event.count,
            )
            return [failure, phase_record(uid, Phase.UNSCHEDULABLE, event.when, "event")]
        if kind == "Pod" and event.reason == "Pulled":
            return list(pull_records(event, uid))
        if kind == "Pod" and event.reason == "Pulling" and (image := image_in_message(event.note)):
            return [phase_record(uid, Phase.PULLING, event.when, "event", image[:MAX_IMAGE])]
        if kind == "Pod" and event.reason == "Preempted":
            return list(self._preempted(event, uid))
        if any(event.controller.startswith(name) for name in _AUTOSCALERS):
            return [
                AutoscalerRecord(
                    event_uid=event.uid,
                    at_us=event.when.at_us,
                    last_us=event.last_us,
                    count=event.count,
                    reason=event.reason,
                    about="/".join(filter(None, event.about[:3])),
                    message=event.note,
                )
            ]
        return []

    def _in_server_time(self, event: EventReading) -> EventReading:
        """Learn from a kubelet's Event how far its node's clock is behind, and correct the
        Event.
        """
        if not event.host or not event.created_us or event.when.resolution_us != SECOND_US:
            return event
        seen = self._clocks.setdefault(event.host, deque(maxlen=_MOST_OF_CLOCK))
        if event.count == 1:
            seen.append((event.created_us, event.created_us - event.when.at_us))
        while seen and seen[0][0] < event.created_us - HOUR_US:
            seen.popleft()
        behind = behind_us([difference for _, difference in seen])
        if not behind:
            self.clocks_behind.pop(event.host, None)
            return event
        self.clocks_behind[event.host] = behind
        when = event.when._replace(at_us=event.when.at_us + behind)
        return replace(event, when=when, last_us=event.last_us + behind)

    def _scheduled(self, event: EventReading, uid: str) -> list[Record]:
        binding = self._told(DecisionKind.BIND, uid, event.note.rpartition(" to ")[2], event)
        self._await_node(binding)
        return [phase_record(uid, Phase.SCHEDULED, event.when, "event"), binding]

    def _preempted(self, event: EventReading, uid: str) -> Iterator[Record]:
        match = _PREEMPTED_BY.search(event.note)
        by_uid = event.related[3] or (match["uid"] if match else None)
        node_name = (match["node"] if match else None) or ""
        yield PreemptionRecord(
            victim_uid=uid,
            by_uid=by_uid,
            node_name=node_name,
            at_us=event.when.at_us,
            kind="preempted",
        )
        if by_uid:
            told = self._told(DecisionKind.PREEMPT, by_uid, node_name, event, f"/{uid}")
            yield replace(told, message=event.note)

    def _told(
        self, kind: DecisionKind, pod_uid: str, node: str, event: EventReading, detail: str = ""
    ) -> DecisionRecord:
        told = self._decision(
            kind, pod_uid, node, event.when, scheduler=event.controller, detail=detail
        )
        return replace(told, last_us=event.last_us, source="event")

    def _decision(
        self,
        kind: DecisionKind,
        pod_uid: str,
        node: str,
        when: Step,
        *,
        scheduler: str,
        detail: str = "",
    ) -> DecisionRecord:
        """A decision for a node, as the pod's object tells it."""
        uid = self._node_uid(node)
        return decision(
            kind,
            pod_uid,
            node,
            when,
            source="watch",
            node_uid=uid,
            scheduler=scheduler,
            detail=detail,
        )
