"""Make records from a pod's object: the pod, its phases, decisions about it, its eviction.

Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from roost_core.objects.image_references import normalise_reference
from roost_core.placement.labels import WARM_TARGET_ANNOTATION, hub_of
from roost_lab.recorder.recording.decision_records import decision, failed_attempt
from roost_lab.recorder.recording.hub_log import HubNews
from roost_lab.recorder.recording.reading import SECOND_US, PodReading, Step
from roost_lab.recorder.recording.streams import Observation
from roost_lab.recorder.store.records import (
    MAX_DETAIL,
    MAX_NAME,
    MAX_SCHEDULER,
    DecisionKind,
    Phase,
    PhaseRecord,
    PodRecord,
    PodSource,
    PreemptionRecord,
    Record,
)

_EVICTION_REASONS: Final = {
    "PreemptionByScheduler": "preempted",
    "EvictionByEvictionAPI": "evicted",
    "DeletionByTaintManager": "evicted",
    "TerminationByKubelet": "evicted",
    "DeletionByPodGC": "node-gone",
}


# The phases that a pod has reached, with the container or gate that each is about.
Steps = dict[tuple[Phase, str], Step]
_CREATED: Final = (Phase.CREATED, "")


@dataclass(frozen=True, slots=True)
class KnownPod:
    """A pod as it was seen last."""

    pod: PodReading
    steps: Steps

    @property
    def created(self) -> Step:
        """When it was created, as exact as it is known."""
        return self.steps[_CREATED]


def known_pod(before: KnownPod | None, pod: PodReading, observed: Observation) -> KnownPod:
    """What is known of a pod from now on. before: None: it is new."""
    steps = steps_of(pod)
    if before is not None:
        steps[_CREATED] = before.created
    elif observed.is_exact and 0 <= observed.at_us - pod.created_us < SECOND_US:
        # The object has a whole second; it was there no later than the watch told of it.
        steps[_CREATED] = observed.step
    return KnownPod(pod, steps)


def steps_of(pod: PodReading) -> Steps:
    """Every phase that the pod's object shows."""
    steps: Steps = {_CREATED: Step(pod.created_us, SECOND_US)}

    def put(phase: Phase, at_us: int | None, detail: str = "") -> None:
        if at_us is not None:
            steps[phase, detail] = Step(at_us, SECOND_US)

    scheduled = pod.condition("PodScheduled")
    put(Phase.SCHEDULED, scheduled.reached_us)
    if scheduled.status != "True" and scheduled.reason == "Unschedulable":
        put(Phase.UNSCHEDULABLE, scheduled.since_us)
    for gate in pod.gates:
        # The condition has no time, but gates can be set at creation only.
        put(Phase.GATED, pod.created_us, gate[:MAX_DETAIL])
    put(Phase.ACCEPTED, pod.accepted_us)
    put(Phase.INITIALIZED, pod.condition("Initialized").reached_us)
    put(Phase.READY, pod.condition("Ready").reached_us)
    for container in pod.containers:
        name = container.name[:MAX_DETAIL]
        put(Phase.INIT_STARTED if container.init else Phase.STARTED, container.started_us, name)
        if container.init:
            put(Phase.INIT_ENDED, container.ended_us, name)
    put(Phase.TERMINATING, pod.deletion_us)
    return steps


def pod_changes(
    before: KnownPod | None, now: KnownPod, pod_class: str, observed: Observation
) -> Iterator[Record]:
    """What is new of a pod. before: None: all of it."""
    pod = now.pod
    uid = pod.state.uid
    last = None if before is None else before.pod
    if last is None or image_digest(last) != image_digest(pod):
        yield pod_record(pod, pod_class)
    for (phase, detail), step in now.steps.items():
        if before is None or before.steps.get((phase, detail)) != step:
            source = "pod" if step.resolution_us == SECOND_US else "watch"
            yield phase_record(uid, phase, step, source, detail)
    if last is not None and last.gates and not pod.gates:
        yield phase_record(uid, Phase.UNGATED, observed.step, "watch")
    yield from _decisions(last, pod, observed)
    yield from disruptions(last, pod)


def _decisions(
    before: PodReading | None, pod: PodReading, observed: Observation
) -> Iterator[Record]:
    """What schedulers have decided of a pod since it was seen before."""
    state = pod.state
    scheduled = pod.condition("PodScheduled")
    message_before = None if before is None else before.condition("PodScheduled").message
    if state.node_name and (before is None or not before.state.node_name):
        yield decision(
            DecisionKind.BIND,
            state.uid,
            state.node_name,
            Step(scheduled.reached_us or pod.created_us, SECOND_US),
            source="watch",
            scheduler=state.scheduler_name,
            last_us=scheduled.since_us or observed.at_us,
        )
    elif pod.is_unschedulable and message_before != scheduled.message:
        when = Step(scheduled.since_us or observed.at_us, SECOND_US)
        yield failed_attempt(
            state.uid, state.scheduler_name, scheduled.message, when, source="watch"
        )
    nominated = state.nominated_node
    was_nominated = before is not None and before.state.nominated_node == nominated
    if nominated and not state.node_name and not was_nominated:
        yield decision(
            DecisionKind.NOMINATE,
            state.uid,
            nominated,
            observed.step,
            source="watch",
            scheduler=state.scheduler_name,
            detail=nominated,
        )
        yield phase_record(state.uid, Phase.NOMINATED, observed.step, "watch")


def end_reason(pod: PodReading) -> str:
    """Why a pod ended: a word of PodRecord.end_reason."""
    disruption = pod.condition("DisruptionTarget")
    if disruption.status == "True":
        return _EVICTION_REASONS.get(disruption.reason, "evicted")
    if pod.reason == "Evicted":
        return "evicted"
    if pod.state.phase == "Succeeded":
        return "finished"
    return "failed" if pod.state.phase == "Failed" else "deleted"


def pod_record(
    pod: PodReading, pod_class: str, deleted_us: int | None = None, reason: str | None = None
) -> PodRecord:
    """A pod, and how it ended."""
    state = pod.state
    requests = dict(state.spec.requests)
    image = state.spec.images[0] if state.spec.images else ""
    return PodRecord(
        uid=state.uid,
        namespace=state.namespace,
        name=state.name,
        pod_class=pod_class,
        hub=hub_of(state.labels, state.namespace),
        repo=pod.repo,
        ref=pod.ref,
        image=normalise_reference(image) if image else "",
        image_digest=image_digest(pod),
        scheduler=state.scheduler_name[:MAX_SCHEDULER],
        priority=state.priority,
        cpu_millicores=requests.get("cpu", 0),
        memory_bytes=requests.get("memory", 0),
        created_us=pod.created_us,
        deleted_us=deleted_us,
        end_reason=reason,
        # Whoever may create pods may write anything there.
        warm_target=state.annotations.get(WARM_TARGET_ANNOTATION, "")[:MAX_NAME],
    )


def unseen_pod(uid: str, created_us: int, now_us: int) -> PodRecord:
    """The end of a pod that only the database knows; everything else that is stored of it stays."""
    # The least of sources: it knows nothing but the end.
    return PodRecord(
        uid=uid,
        created_us=created_us,
        deleted_us=now_us,
        end_reason="unseen",
        source=PodSource.EVENT,
    )


def image_digest(pod: PodReading) -> str | None:
    """The digest of the first main container's image, as the runtime reported it; None until it is
    known.
    """
    for container in pod.containers:
        if not container.init:
            _, _, digest = container.image_id.rpartition("@")
            return digest if digest.startswith("sha256:") else None
    return None


def phase_record(uid: str, phase: Phase, step: Step, source: str, detail: str = "") -> PhaseRecord:
    """A step of a pod's start or end. source: pod, event or watch."""
    return PhaseRecord(pod_uid=uid, phase=phase, detail=detail, **step._asdict(), source=source)


def hub_records(uid: str, news: HubNews) -> list[Record]:
    """What a hub said of a pod's start."""
    asked = news.when._replace(at_us=news.asked_us)
    if news.outcome in (Phase.SEATED, Phase.UNUSED):
        # What counts is when seating asked.
        return [phase_record(uid, news.outcome, asked, "hub")]
    records: list[Record] = [phase_record(uid, news.outcome, news.when, "hub")]
    if news.span_us is not None:
        records.append(phase_record(uid, Phase.ASKED, asked, "hub"))
    return records


def disruptions(before: PodReading | None, pod: PodReading) -> Iterator[Record]:
    """A record when a pod's condition says for the first time that it is pre-empted or evicted.

    A pod whose node is gone is neither, nor is a pod whose reason isn't known here.
    """
    disruption = pod.condition("DisruptionTarget")
    if disruption.status != "True":
        return
    is_first = before is None or "DisruptionTarget" not in before.conditions
    kind = _EVICTION_REASONS.get(disruption.reason)
    if is_first and kind in ("preempted", "evicted"):
        at_us = disruption.since_us or pod.created_us
        yield PreemptionRecord(
            victim_uid=pod.state.uid, node_name=pod.state.node_name, at_us=at_us, kind=kind
        )
