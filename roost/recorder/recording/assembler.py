"""Turn what the streams tell, in order, into records. Pure: time and the model come in as arguments.

Guarantee: telling the same again, after a restart or in a list, gives records of the same keys.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Protocol

from roost.recorder.recording.decision_records import Judgement, failed_attempt, judged
from roost.recorder.recording.node_records import as_stored, image_record, node_changes, node_record, unseen_node
from roost.recorder.recording.pod_records import (
    disruptions,
    end_reason,
    image_digest,
    phase_record,
    pod_record,
    pull_records,
    steps_of,
    unseen_pod,
)
from roost.recorder.recording.reading import MICRO_US, SECOND_US, SeenEvent, SeenNode, SeenPod, Step
from roost.recorder.store.records import (
    MAX_ID,
    MAX_SCHEDULER,
    NODES,
    PODS,
    AutoscalerRecord,
    DecisionKind,
    DecisionRecord,
    GapRecord,
    Known,
    Phase,
    PreemptionRecord,
    Record,
    Verdict,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    # (labels, namespace) -> a pod class's name, "" for none.
    Classify = Callable[[Mapping[str, str], str], str]
    # A node's labels -> those with which the image gate says that it holds all images that belong on it.
    GateLabels = Callable[[Mapping[str, str]], frozenset[str]]


_PREEMPTED_BY: Final = re.compile(r"[Pp]reempted by (?:pod )?(?P<uid>[0-9a-f-]{36})(?: on node (?P<node>\S+))?")
_AUTOSCALERS: Final = ("cluster-autoscaler", "karpenter")
# Names of nodes that bindings are kept for until they are told.
_MOST_AWAITED: Final = 1024


class Judge(Protocol):
    """Follows the cluster and judges decisions by the scheduler's own rules; see roost/recorder/recording/model.py."""

    def node_changed(self, name: str, node: SeenNode | None, at_us: int) -> None:
        """Learn of a node; None: it is gone."""

    def pod_changed(self, key: str, pod: SeenPod | None, pod_class: str, at_us: int) -> None:
        """Learn of a pod; None: it is gone."""

    def judge(self, decision_id: str, pod: SeenPod, node_name: str, at_us: int) -> Judgement:
        """Say where the pod would have gone; asked before it is known to be there."""


class Assembler:
    """One cluster's story so far. One thread owns it."""

    def __init__(
        self,
        classify: Classify,
        known: Known,
        judge: Judge | None = None,
        gate_labels: GateLabels = lambda _labels: frozenset(),
    ) -> None:
        """Prepare."""
        self._classify = classify
        self._gate_labels = gate_labels
        self._judge = judge
        self._pods: dict[str, SeenPod] = {}
        # What `steps_of` them says.
        self._steps: dict[str, dict[tuple[Phase, str], Step]] = {}
        self._nodes: dict[str, SeenNode] = {}
        # Uids of nodes that once had all their images, or may have had them before they were seen.
        self._with_images = {uid for uid, node in known.nodes.items() if node.has_images}
        self._images: dict[str, dict[str, int]] = {uid: dict(images) for uid, images in known.images.items()}
        # Those that the database has and no list has shown yet.
        self._unseen_pods = dict(known.pods)
        self._unseen_nodes = dict(known.nodes)
        self._listed: dict[str, set[str]] = {}
        self._heard_us = dict(known.heard_us)
        # Kind -> since when its past is lost, and why.
        self._lost: dict[str, tuple[int, str]] = {}
        self._synced: set[str] = set()
        # Node's name -> bindings to it that were told before it, by id.
        self._nodeless: dict[str, dict[str, DecisionRecord]] = {}

    # Streams

    def listing(self, kind: str) -> None:
        """A list begins."""
        self._listed[kind] = set()

    def lost(self, kind: str, why: str) -> None:
        """Some of the past, since the stream was last heard of, can't be had any more."""
        since_us = self._heard_us.get(kind)
        if since_us is not None:
            self._lost.setdefault(kind, (since_us, why))

    def synced(self, kind: str, now_us: int) -> list[Record]:
        """A list is whole: what isn't in it went while nobody watched."""
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
                records.append(unseen_node(uid, node.name, now_us))
                records += self._images_gone(uid, now_us)
            self._unseen_nodes.clear()
        self._synced.add(kind)
        return records

    def heard(self, kind: str, now_us: int) -> None:
        """All that happened until now has been told."""
        self._heard_us[kind] = now_us

    def heard_us(self, kind: str) -> int | None:
        """Until when all that happened has been told; None: nothing yet."""
        return self._heard_us.get(kind)

    # Pods

    def pod(
        self, key: str, pod: SeenPod | None, now_us: int, *, listed: bool = False, late_us: int = MICRO_US
    ) -> list[Record]:
        """A pod as it is now; `listed`: how it came to be so wasn't watched; late_us: so much later it is told."""
        if PODS in self._listed:
            self._listed[PODS].add(key)
        if pod is None:
            return []
        self._unseen_pods.pop(pod.state.uid, None)
        records: list[Record] = []
        before = self._pods.get(key)
        if before is not None and before.state.uid != pod.state.uid:
            records += self._pod_gone(key, before, now_us, "unseen")
            before = None
        pod_class = self._classify(pod.state.labels, pod.state.namespace)
        if before is None or image_digest(before) != image_digest(pod):
            records.append(pod_record(pod, pod_class))
        told, steps = self._steps.get(key, {}), steps_of(pod)
        for (phase, detail), step in steps.items():
            if told.get((phase, detail)) != step:
                records.append(phase_record(pod.state.uid, phase, step, "pod", detail))
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
        return records

    def pod_deleted(self, key: str, pod: SeenPod | None, now_us: int, *, late_us: int = MICRO_US) -> list[Record]:
        """A pod is gone; `pod` is how it was last; late_us: it may have gone so much earlier."""
        records: list[Record] = []
        if pod is not None:
            records += self.pod(key, pod, now_us, late_us=late_us)
        last = self._pods.get(key)
        if last is not None:
            # It was there until its containers were asked to end, whatever we know of the time after.
            since_us = max(filter(None, (last.created_us, last.accepted_us, last.deletion_us)), default=0)
            late_us = max(MICRO_US, min(late_us, now_us - since_us))
            records += self._pod_gone(key, last, now_us, end_reason(last), late_us)
        return records

    def unreadable(self, kind: str, key: str, uid: str) -> None:
        """A pod or node that is there and can't be read: how it was last stands."""
        if kind in self._listed:
            self._listed[kind].add(key)
        # In the database it stays open, until a list is without it.
        if kind == PODS:
            self._unseen_pods.pop(uid, None)
        elif kind == NODES:
            self._unseen_nodes.pop(uid, None)

    def _pod_gone(self, key: str, pod: SeenPod, now_us: int, why: str, late_us: int = MICRO_US) -> Iterator[Record]:
        self._pods.pop(key, None)
        self._steps.pop(key, None)
        if self._judge is not None:
            self._judge.pod_changed(key, None, "", now_us)
        pod_class = self._classify(pod.state.labels, pod.state.namespace)
        yield pod_record(pod, pod_class, deleted_us=now_us, reason=why)
        yield phase_record(pod.state.uid, Phase.GONE, Step(now_us, late_us), "watch")

    def _pod_decisions(self, before: SeenPod | None, pod: SeenPod, seen: Step, *, watched: bool) -> Iterator[Record]:
        state, now_us = pod.state, seen.at_us
        status, since_us, reason, message = pod.conditions.get("PodScheduled", ("", None, "", ""))
        if state.node_name and (before is None or not before.state.node_name):
            decision_id = f"{state.uid}/bind"
            told = DecisionRecord(
                id=decision_id,
                pod_uid=state.uid,
                kind=DecisionKind.BIND,
                node_name=state.node_name,
                node_uid=self._node_uid(state.node_name),
                at_us=since_us if status == "True" and since_us is not None else pod.created_us,
                resolution_us=SECOND_US,
                last_us=since_us or now_us,
                scheduler=state.scheduler_name[:MAX_SCHEDULER],
                source="watch",
            )
            self._await_node(told)
            judgement = Judgement(Verdict.UNKNOWN, note="bound before it was watched")
            if watched and not {PODS, NODES} <= self._synced:
                judgement = Judgement(Verdict.UNKNOWN, note="bound before all pods and nodes were known")
            elif watched and self._judge is not None:
                judgement = self._judge.judge(decision_id, pod, state.node_name, now_us)
            yield judged(told, judgement)
            if judgement.candidates is not None:
                yield judgement.candidates
        elif (
            status == "False"
            and reason == "Unschedulable"
            and (before is None or before.conditions.get("PodScheduled", ("", None, "", ""))[3] != message)
        ):
            yield failed_attempt(
                state.uid, state.scheduler_name, message, Step(since_us or now_us, SECOND_US), source="watch"
            )
        nominated = state.nominated_node
        if nominated and not state.node_name and (before is None or before.state.nominated_node != nominated):
            yield DecisionRecord(
                id=f"{state.uid}/nominate/{nominated}"[:MAX_ID],
                pod_uid=state.uid,
                kind=DecisionKind.NOMINATE,
                node_name=nominated,
                node_uid=self._node_uid(nominated),
                at_us=now_us,
                resolution_us=seen.resolution_us,
                last_us=now_us,
                scheduler=state.scheduler_name[:MAX_SCHEDULER],
                source="watch",
            )
            yield phase_record(state.uid, Phase.NOMINATED, seen, "watch")

    def _node_uid(self, name: str) -> str:
        node = self._nodes.get(name)
        return node.state.uid if node is not None else ""

    def _await_node(self, told: DecisionRecord) -> None:
        """Keep a binding to a node that wasn't told yet: nodes, pods and Events are streams of their own."""
        if told.node_uid or not told.node_name:
            return
        self._nodeless.setdefault(told.node_name, {})[told.id] = told
        while len(self._nodeless) > _MOST_AWAITED:
            self._nodeless.pop(next(iter(self._nodeless)))

    def _bound_before(self, node: SeenNode) -> Iterator[Record]:
        """The bindings to a node that were told before it. A machine that came after them is another of its name."""
        for told in self._nodeless.pop(node.state.fact.name, {}).values():
            if node.created_us < told.at_us + told.resolution_us:
                yield replace(told, node_uid=node.state.uid)

    # Nodes

    def node(
        self, name: str, node: SeenNode | None, now_us: int, *, listed: bool = False, late_us: int = MICRO_US
    ) -> list[Record]:
        """A node as it is now; `listed`: how it came to be so wasn't watched; late_us: so much later it is told."""
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
            # A list of the old position tells what is stored.
            stored = None
        old = as_stored(before) if before is not None else stored
        new = as_stored(node)
        if is_after_gap:
            late_us = max(MICRO_US, now_us - self._lost[NODES][0])
        changes = list(node_changes(old, new, node, Step(now_us, late_us))) if old is not None else []
        has_images = self._has_all_images(node)
        is_filled = has_images and uid not in self._with_images and (not listed or old is not None)
        if has_images:
            self._with_images.add(uid)
        if before is None or changes or is_filled or before.ready_us != node.ready_us:
            records.append(node_record(node, images_ready_us=now_us if is_filled else None))
        records += changes
        if name in self._nodeless:
            records += self._bound_before(node)
        records += self._image_changes(node, now_us)
        self._nodes[name] = node
        if self._judge is not None:
            self._judge.node_changed(name, node, now_us)
        return records

    def _has_all_images(self, node: SeenNode) -> bool:
        labels = node.state.fact.labels
        wanted = self._gate_labels(labels)
        return bool(wanted) and all(labels.get(label) == "true" for label in wanted)

    def node_deleted(self, name: str, now_us: int) -> list[Record]:
        """A node is gone."""
        return list(self._node_gone(name, now_us))

    def _node_gone(self, name: str, now_us: int) -> Iterator[Record]:
        node = self._nodes.pop(name, None)
        if node is None:
            return
        self._with_images.discard(node.state.uid)
        if self._judge is not None:
            self._judge.node_changed(name, None, now_us)
        yield node_record(node, gone_us=now_us)
        yield from self._images_gone(node.state.uid, now_us)

    def _images_gone(self, node_uid: str, now_us: int) -> Iterator[Record]:
        for image, first_us in self._images.pop(node_uid, {}).items():
            yield image_record(node_uid, image, first_us, 0, gone_us=now_us)

    def _image_changes(self, node: SeenNode, now_us: int) -> Iterator[Record]:
        known = self._images.setdefault(node.state.uid, {})
        # By tag where there is one: digests are the same image's other name.
        there = {name: size for name, size in node.state.images.items() if "@" not in name} or node.state.images
        for image, size in there.items():
            if image not in known:
                known[image] = now_us
                yield image_record(node.state.uid, image, now_us, size)
        for image in [image for image in known if image not in there]:
            yield image_record(node.state.uid, image, known.pop(image), 0, gone_us=now_us)

    # Events

    def event(self, event: SeenEvent) -> list[Record]:
        """An Event as it is now: new, or repeated."""
        kind, _, _, uid = event.about
        if kind == "Pod" and not uid:
            # Some writers leave it out: all their pods would be one.
            return []
        when = Step(event.first_us, event.resolution_us)
        if kind == "Pod" and event.reason == "Scheduled":
            return self._scheduled(event, uid, when)
        if kind == "Pod" and event.reason == "FailedScheduling":
            failure = failed_attempt(
                uid, event.controller, event.note, when, source="event", last_us=event.last_us, tries=event.count
            )
            return [failure, phase_record(uid, Phase.UNSCHEDULABLE, when, "event")]
        if kind == "Pod" and event.reason == "Pulled":
            return list(pull_records(event, uid, when))
        if kind == "Pod" and event.reason == "Preempted":
            return list(self._preempted(event, uid))
        if any(event.controller.startswith(name) for name in _AUTOSCALERS):
            return [
                AutoscalerRecord(
                    event_uid=event.uid,
                    at_us=event.first_us,
                    last_us=event.last_us,
                    count=event.count,
                    reason=event.reason,
                    about="/".join(filter(None, event.about[:3])),
                    message=event.note,
                )
            ]
        return []

    def _scheduled(self, event: SeenEvent, uid: str, when: Step) -> list[Record]:
        node_name = event.note.rpartition(" to ")[2]
        told = self._told(event, f"{uid}/bind", DecisionKind.BIND, uid, node_name)
        self._await_node(told)
        return [phase_record(uid, Phase.SCHEDULED, when, "event"), told]

    def _preempted(self, event: SeenEvent, uid: str) -> Iterator[Record]:
        match = _PREEMPTED_BY.search(event.note)
        by_uid = event.related[3] or (match["uid"] if match else None)
        node_name = (match["node"] if match else None) or ""
        yield PreemptionRecord(
            victim_uid=uid, by_uid=by_uid, node_name=node_name, at_us=event.first_us, kind="preempted"
        )
        if by_uid:
            made = self._told(event, f"{by_uid}/preempt/{uid}", DecisionKind.PREEMPT, by_uid, node_name)
            yield replace(made, message=event.note)

    def _told(
        self, event: SeenEvent, decision_id: str, kind: DecisionKind, pod_uid: str, node_name: str
    ) -> DecisionRecord:
        """A decision for a node, as an Event tells it."""
        return DecisionRecord(
            id=decision_id,
            pod_uid=pod_uid,
            kind=kind,
            node_name=node_name,
            node_uid=self._node_uid(node_name),
            at_us=event.first_us,
            resolution_us=event.resolution_us,
            last_us=event.last_us,
            scheduler=event.controller[:MAX_SCHEDULER],
            source="event",
        )
