"""Make records from exported Events and pods, in the way that the recorder makes them from its
watches. Pure.

An Event has neither labels nor requests, and none tells of a pod's creation, readiness or end. So
the row of a pod that is known from Events alone (PodSource.EVENT) is an estimate: it was created in
the second of its first Event, and ended when its containers were stopped. Where there are no
labels, names tell the class.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from roost_core.objects.fields import JSONObject
from roost_core.objects.image_references import normalise_reference
from roost_core.placement.labels import COMPONENT_LABEL, USER_CLASS, hub_of
from roost_core.release.class_of_pod import SYSTEM_NAMESPACE
from roost_core.release.pod_classes import KeySource
from roost_lab.pages.dates import MAX_US
from roost_lab.recorder.importing.clocks import Clocks, corrected, pod_corrected
from roost_lab.recorder.recording.assembler import Assembler
from roost_lab.recorder.recording.event_records import records_of_event
from roost_lab.recorder.recording.pod_events import container_of
from roost_lab.recorder.recording.pod_records import phase_record
from roost_lab.recorder.recording.reading import (
    SECOND_US,
    EventReading,
    PodReading,
    read_event,
    read_pod,
)
from roost_lab.recorder.recording.settings import BINDER_REPOSITORY
from roost_lab.recorder.recording.streams import How, Observation
from roost_lab.recorder.store.records import (
    MAX_DETAIL,
    MAX_SCHEDULER,
    Phase,
    PodRecord,
    PodSource,
    PreemptionRecord,
    Record,
    StoredState,
)

# The label `component` -> the class; as `podClasses` of chart/values.yaml has it.
CLASS_OF_COMPONENT: Final[Mapping[str, str]] = {
    "singleuser-server": USER_CLASS,
    "binderhub-build": "build",
    "user-placeholder": "placeholder",
}
# KubeSpawner's default names, BinderHub's builds, and placeholders of zero-to-jupyterhub and Roost.
_CLASS_OF_NAME: Final = (
    (re.compile(r"jupyter-"), USER_CLASS),
    (re.compile(r"build-"), "build"),
    (re.compile(r"(.+-)?user-placeholder-"), "placeholder"),
)
# Where pods name their repository: as `home.key` of chart/values.yaml says, and as BinderHub does.
KEY_SOURCES: Final = (KeySource("annotation", "binder-repo"), BINDER_REPOSITORY)
_STARTED: Final = re.compile(r"Started container (\S+)")
_IMAGE: Final = re.compile(r'[Ii]mage "([^"]+)"')
# By the reason of an Event that says that a pod is evicted: how its note begins. "": anyhow.
_EVICTED: Final = {"Evicted": "", "TaintManagerEviction": "Marking for deletion"}


class Unusable(Exception):  # noqa: N818 - it is counted, not told as an error
    """An object that no record can be made from; the text is the reason."""


def class_of(labels: Mapping[str, str], namespace: str) -> str:
    """The class of a pod with these labels; "" for none."""
    if namespace == SYSTEM_NAMESPACE:
        return ""
    return CLASS_OF_COMPONENT.get(labels.get(COMPONENT_LABEL, ""), "")


def class_of_name(name: str, namespace: str) -> str:
    """The class of a pod whose labels are not known; "" for none."""
    if namespace == SYSTEM_NAMESPACE:
        return ""
    return next((pod_class for pattern, pod_class in _CLASS_OF_NAME if pattern.match(name)), "")


def event_records(item: JSONObject, clocks: Clocks) -> tuple[int, list[Record]]:
    """When it happened (µs), and the records, of an Event of core/v1 or events.k8s.io/v1.

    Raises Unusable.
    """
    item = corrected(item, clocks)
    about = item.get("regarding") or item.get("involvedObject") or {}
    event = read_event(item if "regarding" in item else _as_new_event(item))
    when = event.when
    if not (0 < when.at_us <= MAX_US and event.last_us <= MAX_US):
        raise Unusable("an Event without a time")
    kind, namespace, name, uid = event.about
    records = list(records_of_event(event))
    if kind != "Pod":
        if records:
            return when.at_us, records
        raise Unusable("an Event of something else than a pod")
    if not uid or not name:
        raise Unusable("an Event without the uid of its pod")
    container, is_init = container_of(event.field_path)
    labels = about.get("labels")
    known_labels = labels if isinstance(labels, dict) else {}
    if known_labels:
        pod_class = class_of(known_labels, namespace)
    else:
        pod_class = class_of_name(name, namespace)
    is_of_scheduler = event.reason in ("Scheduled", "FailedScheduling")
    pod = PodRecord(
        uid=uid,
        namespace=namespace,
        name=name,
        pod_class=pod_class,
        hub=hub_of(known_labels, namespace),
        image=_image(event) if container and not is_init else "",
        scheduler=event.controller[:MAX_SCHEDULER] if is_of_scheduler else "",
        created_us=when.at_us // SECOND_US * SECOND_US,
        source=PodSource.EVENT,
    )
    if event.reason == "Started":
        # Some Events name the container in their note alone.
        started = _STARTED.match(event.note)
        name_of_container = container or (started[1] if started else "")
        if name_of_container:
            phase = Phase.INIT_STARTED if is_init else Phase.STARTED
            records.append(phase_record(uid, phase, when, "event", name_of_container[:MAX_DETAIL]))
    reason = _end_reason(event)
    if reason:
        pod = replace(pod, deleted_us=when.at_us, end_reason=reason)
        records.append(phase_record(uid, Phase.TERMINATING, when, "event"))
    if reason == "evicted":
        records.append(
            PreemptionRecord(victim_uid=uid, node_name=event.host, at_us=when.at_us, kind=reason)
        )
    return when.at_us, [pod, *records]


def _as_new_event(item: JSONObject) -> JSONObject:
    """An Event of core/v1 as events.k8s.io/v1 has it."""
    return {
        **item,
        "regarding": item.get("involvedObject"),
        "note": item.get("message"),
        "reportingController": item.get("reportingComponent"),
        "deprecatedSource": item.get("source"),
        "deprecatedFirstTimestamp": item.get("firstTimestamp"),
        "deprecatedLastTimestamp": item.get("lastTimestamp"),
        "deprecatedCount": item.get("count"),
    }


def _image(event: EventReading) -> str:
    if event.reason not in ("Pulling", "Pulled", "Failed", "BackOff"):
        return ""
    match = _IMAGE.search(event.note)
    return normalise_reference(match[1]) if match else ""


def _end_reason(event: EventReading) -> str:
    """A word of PodRecord.end_reason; "" for an Event that ends no pod."""
    if event.reason == "Killing":
        # Containers that are restarted say why instead.
        return "deleted" if event.note.startswith("Stopping container") else ""
    if event.reason == "Preempted":
        return "preempted"
    if event.reason in _EVICTED and event.note.startswith(_EVICTED[event.reason]):
        return "evicted"
    return ""


def pod_records(item: JSONObject, clocks: Clocks) -> tuple[int, list[Record]]:
    """When it was created (µs), and the records, of a pod as `kubectl get pods` lists it.

    Raises Unusable.
    """
    pod = read_pod(item, KEY_SOURCES, {})
    if pod is None:
        raise Unusable("a malformed pod")
    if not pod.state.uid or not 0 < pod.created_us <= MAX_US:
        raise Unusable("a pod without a uid or a time of creation")
    return pod.created_us, records_of(pod_corrected(pod, clocks))


def records_of(pod: PodReading) -> list[Record]:
    """The records of a pod's object in one state; nobody watched, so no decision is judged."""
    observed = Observation(pod.created_us, how=How.FOUND)
    changes = Assembler(class_of, StoredState()).pod(pod.state.uid, pod, observed)
    return [
        replace(record, source=PodSource.POD) if isinstance(record, PodRecord) else record
        for change in changes
        for record in change.records
    ]
