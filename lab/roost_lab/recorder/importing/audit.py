"""Make records from the API server's audit log: from each entry about a pod that changed it. Pure.

An entry is read without the others, so files may come in any order and in pieces. Entries of level
RequestResponse have the pod's object. A change of the pod's status is in entries of level Request,
too, as a patch with the pod's uid.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from roost_core.objects.fields import JSONObject
from roost_lab.pages.dates import MAX_US
from roost_lab.recorder.importing.clocks import Clocks, pod_corrected
from roost_lab.recorder.importing.objects import (
    KEY_SOURCES,
    Unusable,
    class_of,
    class_of_name,
    records_of,
)
from roost_lab.recorder.recording.decision_records import decision
from roost_lab.recorder.recording.pod_records import end_reason, phase_record, pod_record, steps_of
from roost_lab.recorder.recording.reading import MICRO_US, PodReading, Step, micros, read_pod
from roost_lab.recorder.store.records import (
    DecisionKind,
    Phase,
    PodRecord,
    PodSource,
    PreemptionRecord,
    Record,
)

_LAST_STAGE: Final = "ResponseComplete"
_READING_VERBS: Final = ("get", "list", "watch")
# Subresources of a pod whose changes may be recorded; "": the pod itself.
_SUBRESOURCES: Final = ("", "status", "resize", "ephemeralcontainers")
# HTTP statuses from here on mean that the API server didn't do what was asked.
_LEAST_REFUSED: Final = 300
_LEVELS: Final = ("None", "Metadata", "Request", "RequestResponse")
SOURCE: Final = "audit"


def audit_records(entry: JSONObject, clocks: Clocks) -> tuple[int, list[Record]]:
    """When an entry's request was done (µs since 1970), and its records. Raises Unusable."""
    at_us = _time_of_change(entry)
    about = _object(entry.get("objectRef"))
    verb = str(entry.get("verb") or "")
    subresource = str(about.get("subresource") or "")
    request = _object(entry.get("requestObject"))
    response = _object(entry.get("responseObject"))
    pod = _read(response, clocks) if response.get("kind") == "Pod" else None
    uid = _uid_of(about, request, pod)
    if verb == "create" and subresource == "binding":
        return at_us, _binding(request, pod, uid, at_us)
    if verb == "create" and subresource == "eviction":
        eviction = PreemptionRecord(
            victim_uid=_known(uid), node_name="", at_us=at_us, kind="evicted"
        )
        return at_us, [eviction]
    if verb == "delete" and not subresource:
        return at_us, _deletion(about, request, pod, _known(uid), at_us)
    if subresource not in _SUBRESOURCES:
        raise Unusable("an audit log entry that changes nothing")
    if pod is not None:
        return at_us, records_of(pod)
    if subresource == "status":
        return at_us, _status(entry, _known(uid), at_us, clocks)
    level = entry.get("level") if entry.get("level") in _LEVELS else "unknown"
    raise Unusable(f"an audit log entry without its pod's object (level {level})")


def _time_of_change(entry: JSONObject) -> int:
    """When a pod was changed, in µs since 1970. Raises Unusable for any other entry."""
    about = _object(entry.get("objectRef"))
    if about.get("resource") != "pods" or about.get("apiGroup"):
        raise Unusable("an audit log entry about something else than pods")
    if str(entry.get("verb") or "") in _READING_VERBS:
        raise Unusable("an audit log entry that changes nothing")
    if entry.get("stage") != _LAST_STAGE:
        raise Unusable("an audit log entry of an earlier stage")
    status = _object(entry.get("responseStatus"))
    if int(status.get("code") or 0) >= _LEAST_REFUSED:
        raise Unusable("an audit log entry of a refused request")
    at_us = micros(entry.get("stageTimestamp"))
    if at_us is None or not 0 < at_us <= MAX_US:
        raise Unusable("an audit log entry without a time")
    return at_us


def _object(value: object) -> JSONObject:
    return value if isinstance(value, dict) else {}


def _read(item: JSONObject, clocks: Clocks) -> PodReading | None:
    """The pod of a response; None where it lacks a uid or a creation."""
    pod = read_pod(item, KEY_SOURCES, {})
    if pod is None or not pod.state.uid or not 0 < pod.created_us <= MAX_US:
        return None
    return pod_corrected(pod, clocks)


def _uid_of(about: JSONObject, request: JSONObject, pod: PodReading | None) -> str:
    """The uid of the pod that an entry is about; "" where the entry doesn't have it."""
    if pod is not None:
        return pod.state.uid
    # Deletions and evictions have it as a precondition.
    options = _object(request.get("deleteOptions"))
    places = (
        request.get("metadata"),
        request.get("preconditions"),
        options.get("preconditions"),
        about,
    )
    for place in places:
        uid = _object(place).get("uid")
        if uid:
            return str(uid)
    return ""


def _known(uid: str) -> str:
    """The uid. Raises Unusable for ""."""
    if not uid:
        raise Unusable("an audit log entry without its pod's uid")
    return uid


def _binding(request: JSONObject, pod: PodReading | None, uid: str, at_us: int) -> list[Record]:
    node = str(_object(request.get("target")).get("name") or "")
    if not uid or not node:
        raise Unusable("an audit log entry of a binding without the pod's uid or its node")
    when = Step(at_us, MICRO_US)
    scheduler = pod.state.scheduler_name if pod is not None else ""
    binding = decision(DecisionKind.BIND, uid, node, when, source=SOURCE, scheduler=scheduler)
    return [phase_record(uid, Phase.SCHEDULED, when, SOURCE), binding]


def _deletion(
    about: JSONObject, request: JSONObject, pod: PodReading | None, uid: str, at_us: int
) -> list[Record]:
    """The records of a request to delete a pod.

    After most of them the pod still terminates. With the last one, which its kubelet sends, it is
    gone.
    """
    is_last_request = request.get("gracePeriodSeconds") == 0
    # Without a node, no kubelet has to end it, so it goes at once.
    has_no_node = pod is not None and not pod.state.node_name
    is_gone = is_last_request or has_no_node
    records = records_of(pod) if pod is not None else []
    if not is_gone:
        return records or [phase_record(uid, Phase.TERMINATING, Step(at_us, MICRO_US), SOURCE)]
    gone = phase_record(uid, Phase.GONE, Step(at_us, MICRO_US), SOURCE)
    if pod is not None:
        pod_class = class_of(pod.state.labels, pod.state.namespace)
        ended = pod_record(pod, pod_class, at_us, end_reason(pod))
        return [*records, replace(ended, source=PodSource.POD), gone]
    namespace = str(about.get("namespace") or "")
    name = str(about.get("name") or "")
    ended = PodRecord(
        uid=uid,
        namespace=namespace,
        name=name,
        pod_class=class_of_name(name, namespace),
        created_us=at_us,
        deleted_us=at_us,
        end_reason="deleted",
        source=PodSource.EVENT,
    )
    return [ended, gone]


def _status(entry: JSONObject, uid: str, at_us: int, clocks: Clocks) -> list[Record]:
    """The phases in a change of a pod's status, where the entry lacks the pod's object."""
    about = _object(entry["objectRef"])
    user = str(_object(entry.get("user")).get("username") or "")
    name = str(about.get("name") or "")
    namespace = str(about.get("namespace") or "")
    # The kubelet's node tells which clock dated the change. A scheduler also changes statuses: its
    # user's name is no node's, so no clock is found for it.
    node = user.removeprefix("system:node:")
    item: JSONObject = {
        "metadata": {"uid": uid, "name": name, "namespace": namespace},
        "spec": {"containers": [], "nodeName": node},
        "status": _object(entry.get("requestObject")).get("status"),
    }
    pod = read_pod(item, (), {})
    if pod is None:
        raise Unusable("malformed audit log entries")
    # The entry doesn't say when the pod was created, and clocks are looked up by that time. So the
    # pod gets the entry's time, and the step for its creation is deleted again.
    dated = replace(pod, created_us=at_us)
    steps = steps_of(pod_corrected(dated, clocks))
    del steps[Phase.CREATED, ""]
    return [
        phase_record(uid, phase, step, SOURCE, detail) for (phase, detail), step in steps.items()
    ]
