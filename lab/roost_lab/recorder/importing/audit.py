"""Make records from the API server's audit log: what was asked of pods, and what became of it.
Pure.

Each entry stands for itself, so files may come in any order and in pieces. A pod's object is in
entries of level RequestResponse; a change of its status is at least in those of level Request, as a
patch with the pod's uid.
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
_READS: Final = ("get", "list", "watch")
_REFUSED: Final = 300
_LEVELS: Final = ("None", "Metadata", "Request", "RequestResponse")
SOURCE: Final = "audit"


def audit_records(entry: JSONObject, clocks: Clocks) -> tuple[int, list[Record]]:
    """When it was done (µs), and the records, of an entry. Raises Unusable."""
    about = _object(entry.get("objectRef"))
    verb = str(entry.get("verb") or "")
    subresource = str(about.get("subresource") or "")
    if about.get("resource") != "pods" or about.get("apiGroup"):
        raise Unusable("an audit log entry about something else than pods")
    if verb in _READS:
        raise Unusable("an audit log entry that changes nothing")
    if entry.get("stage") != _LAST_STAGE:
        raise Unusable("an audit log entry of an earlier stage")
    if int(_object(entry.get("responseStatus")).get("code") or 0) >= _REFUSED:
        raise Unusable("an audit log entry of a refused request")
    at_us = micros(entry.get("stageTimestamp"))
    if at_us is None or not 0 < at_us <= MAX_US:
        raise Unusable("an audit log entry without a time")
    request = _object(entry.get("requestObject"))
    response = _object(entry.get("responseObject"))
    pod = _read(response, clocks) if response.get("kind") == "Pod" else None
    uid = _uid_of(about, request, pod)
    if subresource == "binding" and verb == "create":
        return at_us, _binding(request, pod, uid, at_us)
    if subresource == "eviction" and verb == "create":
        return at_us, [
            PreemptionRecord(victim_uid=_known(uid), node_name="", at_us=at_us, kind="evicted")
        ]
    if verb == "delete" and not subresource:
        return at_us, _deletion(about, request, pod, _known(uid), at_us)
    if subresource not in ("", "status", "resize", "ephemeralcontainers"):
        raise Unusable("an audit log entry that changes nothing")
    if pod is not None:
        return at_us, records_of(pod)
    if subresource == "status":
        return at_us, _status(entry, _known(uid), at_us, clocks)
    level = entry.get("level") if entry.get("level") in _LEVELS else "unknown"
    raise Unusable(f"an audit log entry without its pod's object (level {level})")


def _object(value: object) -> JSONObject:
    return value if isinstance(value, dict) else {}


def _read(item: JSONObject, clocks: Clocks) -> PodReading | None:
    pod = read_pod(item, KEY_SOURCES, {})
    if pod is None or not pod.state.uid or not 0 < pod.created_us <= MAX_US:
        return None
    return pod_corrected(pod, clocks)


def _uid_of(about: JSONObject, request: JSONObject, pod: PodReading | None) -> str:
    """The uid of the pod that an entry is about, wherever it stands; "" when nowhere."""
    options = _object(request.get("deleteOptions"))
    places = (
        request.get("metadata"),
        request.get("preconditions"),
        options.get("preconditions"),
        about,
    )
    uids = [
        pod.state.uid if pod is not None else "",
        *(_object(place).get("uid") for place in places),
    ]
    return next((str(uid) for uid in uids if uid), "")


def _known(uid: str) -> str:
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
    """A request to go, or the last one: with it the pod is gone."""
    # A kubelet deletes for good what has ended; a pod without a node goes at once.
    is_gone = request.get("gracePeriodSeconds") == 0 or (
        pod is not None and not pod.state.node_name
    )
    records = records_of(pod) if pod is not None else []
    if not is_gone:
        return records or [phase_record(uid, Phase.TERMINATING, Step(at_us, MICRO_US), SOURCE)]
    gone = phase_record(uid, Phase.GONE, Step(at_us, MICRO_US), SOURCE)
    if pod is not None:
        pod_class = class_of(pod.state.labels, pod.state.namespace)
        end = replace(pod_record(pod, pod_class, at_us, end_reason(pod)), source=PodSource.POD)
        return [*records, end, gone]
    namespace = str(about.get("namespace") or "")
    name = str(about.get("name") or "")
    end = PodRecord(
        uid=uid,
        namespace=namespace,
        name=name,
        pod_class=class_of_name(name, namespace),
        created_us=at_us,
        deleted_us=at_us,
        end_reason="deleted",
        source=PodSource.EVENT,
    )
    return [end, gone]


def _status(entry: JSONObject, uid: str, at_us: int, clocks: Clocks) -> list[Record]:
    """Phases in a kubelet's or scheduler's change of a status, without the pod's object."""
    about = _object(entry["objectRef"])
    by = str(_object(entry.get("user")).get("username") or "")
    name = str(about.get("name") or "")
    namespace = str(about.get("namespace") or "")
    # The node tells whose clock dated the change. A scheduler's name is no node's, and changes
    # nothing.
    node = by.removeprefix("system:node:")
    item: JSONObject = {
        "metadata": {"uid": uid, "name": name, "namespace": namespace},
        "spec": {"containers": [], "nodeName": node},
        "status": _object(entry.get("requestObject")).get("status"),
    }
    pod = read_pod(item, (), {})
    if pod is None:
        raise Unusable("malformed audit log entries")
    # The entry doesn't say when the pod was created. The clock is looked up by the time of
    # creation, so the pod gets the entry's time, and the made-up step goes.
    dated = replace(pod, created_us=at_us)
    steps = steps_of(pod_corrected(dated, clocks))
    del steps[Phase.CREATED, ""]
    return [
        phase_record(uid, phase, step, SOURCE, detail) for (phase, detail), step in steps.items()
    ]
