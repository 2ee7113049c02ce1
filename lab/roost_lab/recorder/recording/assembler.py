"""Turn what the streams tell, in order, into changes with their records. Pure: times come in as
arguments.

Guarantee: the same notice again, after a restart or in a list, gives records of the same keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from roost_lab.recorder.recording.changes import Change, ListEnd, NodeChange, PodChange
from roost_lab.recorder.recording.clocks import NodeClocks
from roost_lab.recorder.recording.event_records import records_of_event
from roost_lab.recorder.recording.node_records import image_record, node_changes, node_record
from roost_lab.recorder.recording.pod_records import (
    KnownPod,
    end_reason,
    known_pod,
    phase_record,
    pod_changes,
    pod_record,
    unseen_pod,
)
from roost_lab.recorder.recording.reading import MICRO_US, EventReading, NodeReading, PodReading
from roost_lab.recorder.recording.streams import Observation, Streams
from roost_lab.recorder.store.records import (
    NODES,
    PODS,
    DecisionKind,
    DecisionRecord,
    NodeRecord,
    Phase,
    Record,
    StoredState,
)

# (labels, namespace) -> a pod class's name, "" for none.
Classify = Callable[[Mapping[str, str], str], str]
# A node's labels -> the labels that the image gate sets when the node has all its images.
GateLabels = Callable[[Mapping[str, str]], frozenset[str]]
# Most names of nodes that bindings wait for.
_MAX_AWAITED: Final = 1024


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
        self._pods: dict[str, KnownPod] = {}
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
        shown, gap = self.streams.end_list(kind, at)
        end: list[Record] = [] if gap is None else [gap]
        changes: list[Change] = []
        observed = Observation(at)
        if kind == PODS:
            gone = [key for key in self._pods if key not in shown]
            changes += [self._pod_gone(key, observed, "unseen") for key in gone]
            for uid, created_us in self._unseen_pods.items():
                end.append(unseen_pod(uid, created_us, at))
                end.append(phase_record(uid, Phase.GONE, observed.step, "watch"))
            self._unseen_pods.clear()
        elif kind == NODES:
            gone = [name for name in self._nodes if name not in shown]
            for name in gone:
                changes += self.node_deleted(name, at)
            for uid, node in self._unseen_nodes.items():
                end.append(NodeRecord(uid=uid, name=node.name, gone_us=at))
                end += self._images_gone(uid, at)
            self._unseen_nodes.clear()
        return [*changes, ListEnd(kind=kind, at_us=at, records=end)]

    # Pods

    def pods(self) -> list[PodReading]:
        """The pods that there are."""
        return [known.pod for known in self._pods.values()]

    def pod(self, key: str, pod: PodReading | None, observed: Observation) -> list[PodChange]:
        """A pod in its current state."""
        self.streams.add_listed(PODS, key)
        if pod is None:
            return []
        uid = pod.state.uid
        self._unseen_pods.pop(uid, None)
        corrected = self.clocks.correct_pod(pod)
        before = self._pods.get(key)
        if before is not None and before.pod.state.uid != uid:
            # Another pod of the same name: the end of the earlier one wasn't seen.
            gone = self._pod_gone(key, Observation(observed.at_us), "unseen")
            return [gone, self._pod_changed(key, None, corrected, observed)]
        return [self._pod_changed(key, before, corrected, observed)]

    def _pod_changed(
        self, key: str, before: KnownPod | None, pod: PodReading, observed: Observation
    ) -> PodChange:
        pod_class = self._classify(pod.state.labels, pod.state.namespace)
        now = known_pod(before, pod, observed)
        self._pods[key] = now
        records = self._with_nodes(pod_changes(before, now, pod_class, observed))
        return PodChange(
            key=key,
            pod=pod,
            pod_class=pod_class,
            created=now.created,
            observed=observed,
            records=records,
        )

    def pod_deleted(
        self, key: str, pod: PodReading | None, observed: Observation
    ) -> list[PodChange]:
        """A pod is gone. pod: its last state; None: as it was known."""
        changes = [] if pod is None else self.pod(key, pod, observed)
        known = self._pods.get(key)
        if known is None:
            return changes
        last = known.pod
        # The pod was there at least until its deletion was requested. Unknown times are 0 or None.
        there_until_us = max(last.created_us or 0, last.accepted_us or 0, last.deletion_us or 0)
        late = max(MICRO_US, min(observed.late_us, observed.at_us - there_until_us))
        changes.append(self._pod_gone(key, Observation(observed.at_us, late), end_reason(last)))
        return changes

    def malformed(self, kind: str, key: str, uid: str) -> None:
        """A pod or node that exists but is malformed: its last known state is kept."""
        self.streams.add_listed(kind, key)
        # In the database it stays until it is missing from a list.
        if kind == PODS:
            self._unseen_pods.pop(uid, None)
        elif kind == NODES:
            self._unseen_nodes.pop(uid, None)

    def _pod_gone(self, key: str, observed: Observation, why: str) -> PodChange:
        known = self._pods.pop(key)
        pod = known.pod
        pod_class = self._classify(pod.state.labels, pod.state.namespace)
        records: list[Record] = [
            pod_record(pod, pod_class, deleted_us=observed.at_us, reason=why),
            phase_record(pod.state.uid, Phase.GONE, observed.step, "watch"),
        ]
        return PodChange(
            key=key,
            pod=pod,
            pod_class=pod_class,
            created=known.created,
            observed=observed,
            is_gone=True,
            records=records,
        )

    def _with_nodes(self, records: Iterable[Record]) -> list[Record]:
        """The records, decisions with the uids of their nodes as far as these are known.

        Bindings to other nodes wait for them: nodes, pods and Events are separate streams.
        """
        return [
            self._with_node(record) if isinstance(record, DecisionRecord) else record
            for record in records
        ]

    def _with_node(self, decision: DecisionRecord) -> DecisionRecord:
        if not decision.node_name:
            return decision
        node = self._nodes.get(decision.node_name)
        if node is not None:
            return replace(decision, node_uid=node.state.uid)
        if decision.kind is DecisionKind.BIND:
            self._nodeless.setdefault(decision.node_name, {})[decision.id] = decision
            while len(self._nodeless) > _MAX_AWAITED:
                self._nodeless.pop(next(iter(self._nodeless)))
        return decision

    def _bound_before(self, node: NodeReading) -> Iterator[Record]:
        """Bindings that were reported before their node.

        A node created after them is another one of that name.
        """
        for binding in self._nodeless.pop(node.state.name, {}).values():
            if node.created_us < binding.at_us + binding.resolution_us:
                yield replace(binding, node_uid=node.state.uid)

    # Nodes

    def node(self, name: str, node: NodeReading | None, observed: Observation) -> list[NodeChange]:
        """A node in its current state."""
        self.streams.add_listed(NODES, name)
        if node is None:
            return []
        before = self._nodes.get(name)
        if before is not None and before.state.uid != node.state.uid:
            gone = self.node_deleted(name, observed.at_us)
            return [*gone, self._node_changed(name, None, node, observed)]
        return [self._node_changed(name, before, node, observed)]

    def _node_changed(
        self, name: str, before: NodeReading | None, node: NodeReading, observed: Observation
    ) -> NodeChange:
        uid = node.state.uid
        new = node_record(node)
        old = self._record_before(before, uid, observed)
        changes = [] if old is None else list(node_changes(old, new, node, observed.step))
        is_filled = self._was_filled(node, observed, is_known=old is not None)
        records: list[Record] = []
        if before is None or changes or is_filled or before.ready_us != node.ready_us:
            records.append(replace(new, images_ready_us=observed.at_us if is_filled else None))
        records += changes
        if name in self._nodeless:
            records += self._bound_before(node)
        records += self._image_changes(node, observed.at_us)
        self._nodes[name] = node
        return NodeChange(name=name, node=node, at_us=observed.at_us, records=records)

    def _record_before(
        self, before: NodeReading | None, uid: str, observed: Observation
    ) -> NodeRecord | None:
        """The record that a node had before; None: there was none, or it is the same still."""
        stored = self._unseen_nodes.pop(uid, None)
        if before is not None:
            return node_record(before)
        # A list at the stored position shows what is already stored.
        return stored if observed.is_after_gap else None

    def _was_filled(self, node: NodeReading, observed: Observation, *, is_known: bool) -> bool:
        """Note whether a node has all its images; whether it has them since now.

        is_known: it was there before. A node that a list shows for the first time may have had
        them before.
        """
        if not self._has_all_images(node):
            return False
        uid = node.state.uid
        is_first = uid not in self._with_images
        self._with_images.add(uid)
        return is_first and (observed.is_watched or is_known)

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
        return [NodeChange(name=name, node=None, at_us=at, records=records)]

    def _images_gone(self, node_uid: str, at: int) -> Iterator[Record]:
        for image, first_us in self._images.pop(node_uid, {}).items():
            yield image_record(node_uid, image, first_us, 0, gone_us=at)

    def _image_changes(self, node: NodeReading, at: int) -> Iterator[Record]:
        known = self._images.setdefault(node.state.uid, {})
        current = node.state.images
        # By tag where there is one: the digest is another name of the same image.
        by_tag = {name: size for name, size in current.items() if "@" not in name}
        if by_tag:
            current = by_tag
        for image, size in current.items():
            if image not in known:
                known[image] = at
                yield image_record(node.state.uid, image, at, size)
        # Where names may be cut, a name that is missing says nothing.
        gone = [] if node.state.has_cut_names else [name for name in known if name not in current]
        for image in gone:
            yield image_record(node.state.uid, image, known.pop(image), 0, gone_us=at)

    # Events

    def event(self, event: EventReading) -> list[Record]:
        """An Event in its current state: new, or repeated."""
        self.clocks.learn(event)
        corrected = self.clocks.correct_event(event)
        return self._with_nodes(records_of_event(corrected))
