"""Turn what the streams tell, in order, into changes with their records. Pure: times come in as
arguments.

Guarantee: the same notice again, after a restart or in a list, gives records of the same keys.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from roost_core.placement.kubelet_pulls import image_in_message
from roost_lab.recorder.recording.changes import Change, ListEnd, NodeChange, PodChange
from roost_lab.recorder.recording.clocks import NodeClocks
from roost_lab.recorder.recording.decision_records import decision, failed_attempt
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
from roost_lab.recorder.recording.streams import Seen, Streams
from roost_lab.recorder.store.records import (
    MAX_IMAGE,
    NODES,
    PODS,
    AutoscalerRecord,
    DecisionKind,
    DecisionRecord,
    NodeRecord,
    Phase,
    PreemptionRecord,
    Record,
    StoredState,
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
_CREATED: Final = (Phase.CREATED, "")


class Assembler:
    """Follows one cluster and makes its records. Owned by one thread."""

    def __init__(
        self,
        classify: Classify,
        known: StoredState,
        gate_labels: GateLabels = lambda _labels: frozenset(),
    ) -> None:
        self._classify = classify
        self._gate_labels = gate_labels
        # How surely what comes next is new.
        self.streams = Streams(known.heard_us)
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
        self.clocks = NodeClocks()
        # Node's name -> bindings that were reported before the node, by id.
        self._nodeless: dict[str, dict[str, DecisionRecord]] = {}

    def list_ended(self, kind: str, at: int) -> list[Change]:
        """A list is complete: what is missing from it ended unseen."""
        shown, gap = self.streams.complete(kind, at)
        end: list[Record] = [] if gap is None else [gap]
        changes: list[Change] = []
        seen = Seen(at)
        if kind == PODS:
            missing = [(key, pod) for key, pod in self._pods.items() if key not in shown]
            changes += [self._pod_gone(key, pod, seen, "unseen") for key, pod in missing]
            for uid, created_us in self._unseen_pods.items():
                end.append(unseen_pod(uid, created_us, at))
                end.append(phase_record(uid, Phase.GONE, seen.step, "watch"))
            self._unseen_pods.clear()
        elif kind == NODES:
            for name in [name for name in self._nodes if name not in shown]:
                changes += self.node_deleted(name, at)
            for uid, node in self._unseen_nodes.items():
                end.append(NodeRecord(uid=uid, name=node.name, gone_us=at))
                end += self._images_gone(uid, at)
            self._unseen_nodes.clear()
        return [*changes, ListEnd(kind=kind, at=at, records=end)]

    # Pods

    def pods(self) -> list[PodReading]:
        """The pods that there are."""
        return list(self._pods.values())

    def pod(self, key: str, pod: PodReading | None, seen: Seen) -> list[PodChange]:
        """A pod in its current state."""
        self.streams.show(PODS, key)
        if pod is None:
            return []
        self._unseen_pods.pop(pod.state.uid, None)
        pod = self.clocks.pod_in_server_time(pod)
        before = self._pods.get(key)
        if before is not None and before.state.uid != pod.state.uid:
            gone = self._pod_gone(key, before, Seen(seen.at), "unseen")
            return [gone, self._pod_changed(key, None, pod, seen)]
        return [self._pod_changed(key, before, pod, seen)]

    def _pod_changed(
        self, key: str, before: PodReading | None, pod: PodReading, seen: Seen
    ) -> PodChange:
        uid = pod.state.uid
        pod_class = self._classify(pod.state.labels, pod.state.namespace)
        records: list[Record] = []
        if before is None or image_digest(before) != image_digest(pod):
            records.append(pod_record(pod, pod_class))
        known_steps = {} if before is None else self._steps[key]
        steps = steps_of(pod)
        if before is not None:
            steps[_CREATED] = known_steps[_CREATED]
        elif seen.is_exact and 0 <= seen.at - pod.created_us < SECOND_US:
            # The object has a whole second; it was there no later than the watch told of it.
            steps[_CREATED] = seen.step
        for (phase, detail), step in steps.items():
            if known_steps.get((phase, detail)) != step:
                source = "pod" if step.resolution_us == SECOND_US else "watch"
                records.append(phase_record(uid, phase, step, source, detail))
        if before is not None and before.gates and not pod.gates:
            records.append(phase_record(uid, Phase.UNGATED, seen.step, "watch"))
        records += self._pod_decisions(before, pod, seen)
        records += disruptions(before, pod)
        self._pods[key] = pod
        self._steps[key] = steps
        created = steps[_CREATED]
        return PodChange(
            key=key, pod=pod, pod_class=pod_class, created=created, seen=seen, records=records
        )

    def pod_deleted(self, key: str, pod: PodReading | None, seen: Seen) -> list[PodChange]:
        """A pod is gone. pod: its last state; None: as it was known."""
        changes = [] if pod is None else self.pod(key, pod, seen)
        last = self._pods.get(key)
        if last is not None:
            # It was there at least until its deletion was requested.
            since_us = max(
                filter(None, (last.created_us, last.accepted_us, last.deletion_us)), default=0
            )
            late = max(MICRO_US, min(seen.late, seen.at - since_us))
            changes.append(self._pod_gone(key, last, Seen(seen.at, late), end_reason(last)))
        return changes

    def malformed(self, kind: str, key: str, uid: str) -> None:
        """A pod or node that exists but is malformed: its last known state is kept."""
        self.streams.show(kind, key)
        # In the database it stays until it is missing from a list.
        if kind == PODS:
            self._unseen_pods.pop(uid, None)
        elif kind == NODES:
            self._unseen_nodes.pop(uid, None)

    def _pod_gone(self, key: str, pod: PodReading, seen: Seen, why: str) -> PodChange:
        del self._pods[key]
        created = self._steps.pop(key)[_CREATED]
        pod_class = self._classify(pod.state.labels, pod.state.namespace)
        records: list[Record] = [
            pod_record(pod, pod_class, deleted_us=seen.at, reason=why),
            phase_record(pod.state.uid, Phase.GONE, seen.step, "watch"),
        ]
        return PodChange(
            key=key,
            pod=pod,
            pod_class=pod_class,
            created=created,
            seen=seen,
            is_gone=True,
            records=records,
        )

    def _pod_decisions(
        self, before: PodReading | None, pod: PodReading, seen: Seen
    ) -> Iterator[Record]:
        state = pod.state
        scheduled = pod.condition("PodScheduled")
        if state.node_name and (before is None or not before.state.node_name):
            when = Step(scheduled.reached_us or pod.created_us, SECOND_US)
            binding = self._decision(
                DecisionKind.BIND, state.uid, state.node_name, when, scheduler=state.scheduler_name
            )
            binding = replace(binding, last_us=scheduled.since_us or seen.at)
            self._await_node(binding)
            yield binding
        elif pod.is_unschedulable and (
            before is None or before.condition("PodScheduled").message != scheduled.message
        ):
            when = Step(scheduled.since_us or seen.at, SECOND_US)
            yield failed_attempt(
                state.uid, state.scheduler_name, scheduled.message, when, source="watch"
            )
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
                seen.step,
                scheduler=by,
                detail=f"/{nominated}",
            )
            yield phase_record(state.uid, Phase.NOMINATED, seen.step, "watch")

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

    def node(self, name: str, node: NodeReading | None, seen: Seen) -> list[NodeChange]:
        """A node in its current state."""
        self.streams.show(NODES, name)
        if node is None:
            return []
        before = self._nodes.get(name)
        if before is not None and before.state.uid != node.state.uid:
            gone = self.node_deleted(name, seen.at)
            return [*gone, self._node_changed(name, None, node, seen)]
        return [self._node_changed(name, before, node, seen)]

    def _node_changed(
        self, name: str, before: NodeReading | None, node: NodeReading, seen: Seen
    ) -> NodeChange:
        uid = node.state.uid
        stored = self._unseen_nodes.pop(uid, None)
        if before is None and not seen.is_after_gap:
            # A list at the stored position shows what is already stored.
            stored = None
        old = node_record(before) if before is not None else stored
        new = node_record(node)
        changes = [] if old is None else list(node_changes(old, new, node, seen.step))
        has_images = self._has_all_images(node)
        is_new_to_us = not seen.is_watched and old is None
        is_filled = has_images and uid not in self._with_images and not is_new_to_us
        if has_images:
            self._with_images.add(uid)
        records: list[Record] = []
        if before is None or changes or is_filled or before.ready_us != node.ready_us:
            records.append(replace(new, images_ready_us=seen.at if is_filled else None))
        records += changes
        if name in self._nodeless:
            records += self._bound_before(node)
        records += self._image_changes(node, seen.at)
        self._nodes[name] = node
        return NodeChange(name=name, node=node, at=seen.at, records=records)

    def _has_all_images(self, node: NodeReading) -> bool:
        labels = node.state.labels
        gate_labels = self._gate_labels(labels)
        return bool(gate_labels) and all(labels.get(label) == "true" for label in gate_labels)

    def node_deleted(self, name: str, at: int) -> list[NodeChange]:
        """A node is gone."""
        node = self._nodes.pop(name, None)
        if node is None:
            return []
        self._with_images.discard(node.state.uid)
        self.clocks.forget(name)
        records = [node_record(node, gone_us=at), *self._images_gone(node.state.uid, at)]
        return [NodeChange(name=name, node=None, at=at, records=records)]

    def _images_gone(self, node_uid: str, at: int) -> Iterator[Record]:
        for image, first_us in self._images.pop(node_uid, {}).items():
            yield image_record(node_uid, image, first_us, 0, gone_us=at)

    def _image_changes(self, node: NodeReading, at: int) -> Iterator[Record]:
        known = self._images.setdefault(node.state.uid, {})
        # By tag where there is one: the digest is another name of the same image.
        current = {
            name: size for name, size in node.state.images.items() if "@" not in name
        } or node.state.images
        for image, size in current.items():
            if image not in known:
                known[image] = at
                yield image_record(node.state.uid, image, at, size)
        for image in [image for image in known if image not in current]:
            yield image_record(node.state.uid, image, known.pop(image), 0, gone_us=at)

    # Events

    def event(self, event: EventReading) -> list[Record]:
        """An Event in its current state: new, or repeated."""
        event = self.clocks.event_in_server_time(event)
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

    def _scheduled(self, event: EventReading, uid: str) -> list[Record]:
        binding = self._by_event(DecisionKind.BIND, uid, event.note.rpartition(" to ")[2], event)
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
            decided = self._by_event(DecisionKind.PREEMPT, by_uid, node_name, event, f"/{uid}")
            yield replace(decided, message=event.note)

    def _by_event(
        self, kind: DecisionKind, pod_uid: str, node: str, event: EventReading, detail: str = ""
    ) -> DecisionRecord:
        """A decision for a node, as an Event tells it."""
        decided = self._decision(
            kind, pod_uid, node, event.when, scheduler=event.controller, detail=detail
        )
        return replace(decided, last_us=event.last_us, source="event")

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
