"""Make records from an Event: of a scheduler's decisions, a kubelet's pulls, autoscalers. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from roost_core.placement.kubelet_pulls import image_in_message, read_pulled_message
from roost_lab.recorder.recording.decision_records import decision, failed_attempt
from roost_lab.recorder.recording.pod_events import pod_event
from roost_lab.recorder.recording.pod_records import phase_record
from roost_lab.recorder.recording.reading import EventReading, ObjectReference
from roost_lab.recorder.store.records import (
    MAX_IMAGE,
    AutoscalerRecord,
    DecisionKind,
    DecisionRecord,
    Phase,
    PreemptionRecord,
    PullRecord,
    Record,
)

_SOURCE: Final = "event"
_PREEMPTED_BY: Final = re.compile(
    r"[Pp]reempted by (?:pod )?(?P<uid>[0-9a-f-]{36})(?: on node (?P<node>\S+))?"
)
_AUTOSCALERS: Final = ("cluster-autoscaler", "karpenter")


def records_of_event(event: EventReading) -> Iterator[Record]:
    """The records of an Event in its current state: new, or repeated. Nothing for most."""
    kind = event.about.kind
    uid = event.about.uid
    if kind == "Pod" and not uid:
        # Some controllers leave the uid out: all their pods would become one.
        return
    match event.reason if kind == "Pod" else "":
        case "Scheduled":
            yield phase_record(uid, Phase.SCHEDULED, event.when, _SOURCE)
            yield _decision(DecisionKind.BIND, uid, event.note.rpartition(" to ")[2], event)
        case "FailedScheduling":
            yield failed_attempt(
                uid,
                event.controller,
                event.note,
                event.when,
                source=_SOURCE,
                last_us=event.last_us,
                tries=event.count,
            )
            yield phase_record(uid, Phase.UNSCHEDULABLE, event.when, _SOURCE)
        case "Pulled":
            yield from _pull_records(event, uid)
        case "Pulling" if image := image_in_message(event.note):
            yield phase_record(uid, Phase.PULLING, event.when, _SOURCE, image[:MAX_IMAGE])
        case "Preempted":
            yield from _preemption_records(event, uid)
        case _ if kind == "Pod" and (kept := pod_event(event, uid)) is not None:
            yield kept
        case _ if event.controller.startswith(_AUTOSCALERS):
            yield AutoscalerRecord(
                event_uid=event.uid,
                at_us=event.when.at_us,
                last_us=event.last_us,
                count=event.count,
                reason=event.reason,
                about=_in_one_text(event.about),
                message=event.note,
            )


def _in_one_text(about: ObjectReference) -> str:
    """kind/namespace/name, without the parts that the Event doesn't say."""
    return "/".join(filter(None, (about.kind, about.namespace, about.name)))


def _pull_records(event: EventReading, uid: str) -> Iterator[Record]:
    """The records of an image that a kubelet pulled or already had."""
    pulled = read_pulled_message(event.note)
    if pulled is None:
        return
    image = pulled.image[:MAX_IMAGE]
    yield PullRecord(
        pod_uid=uid,
        image=image,
        node_name=event.host,
        at_us=event.when.at_us,
        warm=pulled.was_present,
        pull_us=pulled.pull_us,
        pull_and_wait_us=pulled.pull_and_wait_us,
        image_bytes=pulled.image_bytes,
    )
    yield phase_record(uid, Phase.PULLED, event.when, _SOURCE, image)


def _preemption_records(event: EventReading, uid: str) -> Iterator[Record]:
    match = _PREEMPTED_BY.search(event.note)
    by_uid = event.related.uid or (match["uid"] if match else None)
    node_name = (match["node"] if match else None) or ""
    yield PreemptionRecord(
        victim_uid=uid, by_uid=by_uid, node_name=node_name, at_us=event.when.at_us, kind="preempted"
    )
    if by_uid:
        decided = _decision(DecisionKind.PREEMPT, by_uid, node_name, event, detail=uid)
        yield replace(decided, message=event.note)


def _decision(
    kind: DecisionKind, pod_uid: str, node_name: str, event: EventReading, detail: str = ""
) -> DecisionRecord:
    return decision(
        kind,
        pod_uid,
        node_name,
        event.when,
        source=_SOURCE,
        scheduler=event.controller,
        last_us=event.last_us,
        detail=detail,
    )
