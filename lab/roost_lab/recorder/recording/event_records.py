"""Make records from an Event. Pure.

Schedulers write Events of their decisions, kubelets of their pulls, autoscalers of their nodes.
"""

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
    """The records of an Event in its current state; of most Events there are none.

    A repeated Event gives its records again, with the new times and counts.
    """
    is_about_pod = event.about.kind == "Pod"
    if is_about_pod and not event.about.uid:
        # Some controllers leave the uid out. Without it, all their pods would be recorded as one.
        return
    records = list(_records_of_pod_event(event)) if is_about_pod else []
    # A pull that can't be read is still a pull, whoever reports it.
    is_pull = is_about_pod and event.reason == "Pulled"
    if not records and not is_pull and event.controller.startswith(_AUTOSCALERS):
        records.append(_autoscaler_record(event))
    yield from records


def _records_of_pod_event(event: EventReading) -> Iterator[Record]:
    uid = event.about.uid
    match event.reason:
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
        case "Pulling":
            image = image_in_message(event.note)
            if image:
                yield phase_record(uid, Phase.PULLING, event.when, _SOURCE, image[:MAX_IMAGE])
        case "Preempted":
            yield from _preemption_records(event, uid)
        case _:
            kept = pod_event(event, uid)
            if kept is not None:
                yield kept


def _autoscaler_record(event: EventReading) -> AutoscalerRecord:
    return AutoscalerRecord(
        event_uid=event.uid,
        at_us=event.when.at_us,
        last_us=event.last_us,
        count=event.count,
        reason=event.reason,
        about=_object_path(event.about),
        message=event.note,
    )


def _object_path(about: ObjectReference) -> str:
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
    """The pre-emption of a pod, and the decision for it of the pod that takes its place."""
    match = _PREEMPTED_BY.search(event.note)
    by_uid = event.related.uid or None
    node_name = ""
    if match is not None:
        by_uid = by_uid or match["uid"]
        node_name = match["node"] or ""
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
