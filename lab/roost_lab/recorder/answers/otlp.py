"""Send recorded starts to a collector of OpenTelemetry, by OTLP over HTTP with JSON.

A start is a trace, and its phases are spans. Their ids follow from the pod's uid, and the position is stored after what
it covers was accepted. So each start arrives at least once, whatever is killed when, and twice it is the same trace.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from roost_lab.recorder.answers.exports import pods_since, rows_by_pod, start_times
from roost_lab.recorder.answers.start_phases import phases_of
from roost_lab.recorder.recording.model import PLACEHOLDER
from roost_lab.recorder.store import schema
from roost_lab.recorder.store.records import PODS, DecisionKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from roost_lab.recorder.answers.pod_story import Row
    from roost_lab.recorder.store.database import Store

JSONObject = dict[str, Any]
# The kind of the stored position, beside those of the recorder's watches.
POSITION: Final = "otlp"
PATH: Final = "/v1/traces"
TIMEOUT_SECONDS: Final = 30.0
# A start is sent so long after its end: by then its kubelet's Events have come. Clocks may differ by as much.
SETTLED_US: Final = 60 * 1_000_000
# A pod that isn't ready after so long is waited for no more.
LONGEST_START_US: Final = 24 * 3600 * 1_000_000
_ERROR: Final = 2
_INTERNAL: Final = 1


class CollectorError(Exception):
    """The collector did not take what was sent; the message says which one, why, and what to do."""


class Collector:
    """One collector's address: `http://host:4318`, with or without /v1/traces."""

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        """Raises CollectorError when the URL isn't one of http or https."""
        if not url.startswith(("http://", "https://")):
            raise CollectorError(f"--to: found {url!r}, expected an address such as http://localhost:4318")
        self.url = url if url.endswith(PATH) else url.rstrip("/") + PATH
        self._headers = {"Content-Type": "application/json", **headers}

    def post(self, spans: list[JSONObject]) -> None:
        """Send spans. Raises CollectorError unless all were accepted."""
        scope = {"scope": {"name": "roost"}, "spans": spans}
        resource = {"attributes": _attributes({"service.name": "roost"})}
        body = json.dumps({"resourceSpans": [{"resource": resource, "scopeSpans": [scope]}]}).encode()
        request = urllib.request.Request(self.url, body, self._headers)
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as answer:
                text = answer.read()
        except urllib.error.HTTPError as error:
            said = " ".join(error.read(300).decode(errors="replace").split())
            raise CollectorError(f"{self.url} answered {error.code} {said}") from None
        except (OSError, ValueError) as error:
            reason = getattr(error, "reason", error)
            raise CollectorError(f"{self.url} can't be reached ({reason}): does a collector listen there?") from None
        rejected = _rejected(text)
        if rejected:
            raise CollectorError(f"{self.url} rejected {rejected}")


class Sender:
    """Sends what ended since the stored position. Remembers what it has sent beyond it."""

    def __init__(self, store: Store, collector: Collector) -> None:
        self._store = store
        self._collector = collector
        # Uid -> when it was created.
        self._sent: dict[str, int] = {}

    def send_new(self) -> int:
        """Send the starts that have ended and were not sent; returns how many. Raises CollectorError, StoreError."""
        positions = self._store.positions()
        position_us = positions.get(POSITION, ("", 0))[1]
        # Everything before was stored. None: no recorder wrote this, so nothing more will come.
        heard_us = positions.get(PODS, ("", None))[1]
        settled_us = None if heard_us is None else heard_us - SETTLED_US
        count, waits_us = 0, settled_us
        for pods in pods_since(self._store, position_us):
            ended: list[Row] = []
            starts = start_times(self._store, [pod["uid"] for pod in pods])
            for pod in pods:
                if pod["pod_class"] in ("", PLACEHOLDER) or pod["uid"] in self._sent:
                    continue
                end_us = starts.get(pod["uid"], {}).get("ready_us") or pod["deleted_us"]
                if end_us is not None and (settled_us is None or end_us <= settled_us):
                    ended.append(pod)
                elif waits_us is not None and heard_us is not None and pod["created_us"] >= heard_us - LONGEST_START_US:
                    waits_us = min(waits_us, pod["created_us"])
            if ended:
                self._collector.post(list(_spans(self._store, ended, starts)))
                count += len(ended)
                self._sent |= {pod["uid"]: pod["created_us"] for pod in ended}
            last_us = pods[-1]["created_us"]
            position_us = self._save(position_us, last_us if waits_us is None else min(last_us, waits_us))
        self._sent = {uid: at_us for uid, at_us in self._sent.items() if at_us >= position_us}
        return count

    def _save(self, before_us: int, after_us: int) -> int:
        if after_us <= before_us:
            return before_us
        self._store.write([], {POSITION: ("", after_us)})
        return after_us


def _spans(store: Store, pods: list[Row], starts: Mapping[str, Row]) -> Iterator[JSONObject]:
    """The spans of these pods' starts."""
    uids = [pod["uid"] for pod in pods]
    pulls, decisions = rows_by_pod(store, schema.pull, uids), rows_by_pod(store, schema.decision, uids)
    for pod in pods:
        uid, start = pod["uid"], starts.get(pod["uid"], {})
        bind = next((row for row in decisions.get(uid, ()) if row["kind"] == DecisionKind.BIND), None)
        moments = [pod["created_us"], start.get("bound_us"), start.get("started_us"), start.get("ready_us")]
        phases = list(phases_of(moments, pulls.get(uid, ())))
        trace_id, root_id = _id(uid, 32), _id(f"{uid}/start", 16)
        is_ready = start.get("ready_us") is not None
        # Times in whole seconds may seem to come before exact ones that they follow.
        end_us = max([start["ready_us"] if is_ready else pod["deleted_us"], *(end for _, _, end, _ in phases)])
        facts = {
            "k8s.namespace.name": pod["namespace"],
            "k8s.pod.name": pod["name"],
            "k8s.pod.uid": uid,
            "k8s.node.name": bind["node_name"] if bind is not None else "",
            "roost.pod_class": pod["pod_class"],
            "roost.hub": pod["hub"],
            "roost.image": pod["image"],
            "roost.scheduler": pod["scheduler"],
        }
        root = _span(trace_id, root_id, "start", (pod["created_us"], end_us), facts)
        yield root if is_ready else {**root, "status": {"code": _ERROR, "message": "gone before it was ready"}}
        for name, from_us, to_us, phase_facts in phases:
            named = {f"roost.{key}": value for key, value in phase_facts.items()}
            child_id = _id(f"{uid}/{name}/{phase_facts.get('image', '')}", 16)
            child = _span(trace_id, child_id, name, (from_us, to_us), named)
            yield {**child, "parentSpanId": root_id}


def _span(trace_id: str, span_id: str, name: str, times_us: tuple[int, int], facts: Mapping[str, object]) -> JSONObject:
    from_us, to_us = times_us
    return {
        "traceId": trace_id,
        "spanId": span_id,
        "name": name,
        "kind": _INTERNAL,
        # 64-bit integers are text in OTLP's JSON.
        "startTimeUnixNano": str(from_us * 1000),
        "endTimeUnixNano": str(to_us * 1000),
        "attributes": _attributes(facts),
    }


def _attributes(facts: Mapping[str, object]) -> list[JSONObject]:
    return [
        {"key": key, "value": {"intValue": str(value)} if isinstance(value, int) else {"stringValue": str(value)}}
        for key, value in facts.items()
        if value not in (None, "")
    ]


def _id(text: str, digits: int) -> str:
    """An id in hex, the same whenever it is made."""
    return sha256(text.encode()).hexdigest()[:digits]


def _rejected(text: bytes) -> str:
    """What an answer says was not taken; "" when all was."""
    try:
        partial = json.loads(text or b"{}").get("partialSuccess") or {}
    except (ValueError, AttributeError):
        # Some collectors answer in protobuf whatever they were asked in.
        return ""
    number = int(partial.get("rejectedSpans") or 0)
    return f"{number} spans: {partial.get('errorMessage') or 'it did not say why'}" if number else ""
