"""Find Kubernetes' objects in whatever they were exported in: lists, watch events, log lines of
collectors and stores.

Recognised by their fields: kubectl's lists and watches; eventrouter's {verb, event}; Loki's query
results and logcli's {labels, line, timestamp}; CloudWatch's {events: [{message}]}, {results} of
Insights and {logEvents}; hits of Elasticsearch and OpenSearch; Splunk's results; OpenTelemetry's
records; the texts of collectors (log, message, line, msg, textPayload) and jsonPayload.
kubernetes-event-exporter, Fluent Bit's kubernetes_events and GKE's Event log write the Event's own
fields.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from roost_core.objects.fields import JSONObject
from roost_lab.recorder.importing.files import read_text
from roost_lab.recorder.recording.hub_log import HubNews, is_hub_line, read_hub_line

# OpenTelemetry's lists are ten deep, and may be text in a store.
_MOST_LAYERS: Final = 16
# Reasons of skips are not invented by what is skipped.
_KIND: Final = re.compile(r"[A-Z][A-Za-z]{1,40}")

# In the lines of Grafana Alloy's loki.source.kubernetes_events, and in those of no other.
_ALLOY: Final = "objectAPIversion"
_NO_UID: Final = "a line of Grafana Alloy's kubernetes_events, which don't have the uids of pods"


EVENTS: Final = "Events"
PODS: Final = "pods"
AUDIT: Final = "audit log entries"
HUB_NEWS: Final = "starts in hubs' logs"
# Something else: the reason is in place of the object.
NOTHING: Final = ""


def find_objects(value: Any, layers: int = 0) -> Iterator[tuple[str, Any]]:  # noqa: ANN401 - JSON
    """The objects in a document or a line: their kind, and the object; or NOTHING, and why."""
    if layers > _MOST_LAYERS:
        yield NOTHING, "wrapped too deeply"
    elif isinstance(value, list) and not value and layers == 0:
        yield NOTHING, "an empty list"
    elif isinstance(value, list):
        for item in value:
            yield from find_objects(item, layers + 1)
    elif isinstance(value, HubNews):
        yield HUB_NEWS, value
    elif isinstance(value, str) and is_hub_line(value):
        news = read_hub_line(value.rstrip())
        if news is not None:
            yield HUB_NEWS, news
    elif isinstance(value, str):
        inner = read_text(value.strip().encode("utf-8", "replace"))
        if inner is None:
            reason = "text that is neither JSON nor a hub's line"
            yield NOTHING, _NO_UID if _ALLOY in value else reason
        else:
            yield from find_objects(inner, layers + 1)
    elif isinstance(value, dict):
        yield from _in_object(value, layers + 1)
    else:
        yield NOTHING, "not a JSON object"


def _in_object(value: JSONObject, layers: int) -> Iterator[tuple[str, Any]]:
    version = value.get("apiVersion")
    kind = value.get("kind")
    if isinstance(value.get("items"), list):
        common: JSONObject = {}
        if kind and kind != "List":
            # A list may leave out its items' kind: the API server's own does.
            common = {"apiVersion": version, "kind": str(kind).removesuffix("List")}
        for item in value["items"]:
            yield from find_objects({**common, **item} if isinstance(item, dict) else item, layers)
    elif isinstance(version, str) and version.startswith("audit.k8s.io/"):
        yield AUDIT, value
    elif isinstance(value.get("involvedObject"), dict) or isinstance(value.get("regarding"), dict):
        yield EVENTS, value
    elif kind == "Pod" and isinstance(value.get("spec"), dict):
        yield PODS, value
    elif isinstance(version, str) and isinstance(kind, str):
        reason = f"an object of kind {kind}" if _KIND.fullmatch(kind) else "of an unknown kind"
        yield NOTHING, reason
    elif _ALLOY in value:
        yield NOTHING, _NO_UID
    else:
        inner = _inside(value)
        if inner is None:
            yield NOTHING, "not an Event, a pod or an audit log entry"
        else:
            yield from find_objects(inner, layers)


def _inside(value: JSONObject) -> Any:  # noqa: ANN401 - JSON
    """What a wrapper holds; None when it is none."""
    for key, kinds, unwrap in _WRAPPERS:
        held = value.get(key)
        inner = unwrap(held) if isinstance(held, kinds) else None
        if inner is not None:
            return inner
    return None


def _loki_result(data: JSONObject) -> list[Any] | None:
    """The lines of an answer of Loki's; None: it is another answer."""
    result = data.get("result")
    return _loki_lines(result) if isinstance(result, list) else None


def _loki_lines(streams: list[Any]) -> list[Any]:
    lines = []
    for stream in streams:
        values = stream.get("values") if isinstance(stream, dict) else None
        # Each is [time in ns, line], perhaps with structured metadata after them.
        pairs = values if isinstance(values, list) else ()
        lines += [pair[1] if isinstance(pair, list) and len(pair) > 1 else pair for pair in pairs]
    return lines


def _insights_messages(results: list[Any]) -> list[Any]:
    if all(isinstance(row, dict) for row in results):
        return results  # Splunk's
    messages: list[Any] = []
    for row in results:
        cells = [cell for cell in row if isinstance(cell, dict)] if isinstance(row, list) else []
        messages += [cell.get("value") for cell in cells if cell.get("field") == "@message"]
    return messages


def _otlp_value(held: Any) -> Any:  # noqa: ANN401 - JSON
    """What a value of OpenTelemetry's protocol in JSON stands for: opentelemetry-proto,
    common.proto, AnyValue.
    """
    if not isinstance(held, dict) or len(held) != 1:
        return held
    ((key, value),) = held.items()
    inner = value.get("values") if isinstance(value, dict) else None
    if key == "kvlistValue" and isinstance(inner, list):
        return {
            str(item.get("key")): _otlp_value(item.get("value"))
            for item in inner
            if isinstance(item, dict)
        }
    if key == "arrayValue" and isinstance(inner, list):
        return [_otlp_value(item) for item in inner]
    if key == "intValue" and isinstance(value, str) and value.lstrip("-").isdecimal():
        return int(value)  # protobuf writes 64 bits as text
    return value if key in ("stringValue", "boolValue", "intValue", "doubleValue") else held


def _as_it_is(held: Any) -> Any:  # noqa: ANN401 - JSON
    return held


# The key and type that tell a wrapper, the first that fits, and what is within.
_WRAPPERS: Final[Sequence[tuple[str, tuple[type, ...], Callable[[Any], Any]]]] = (
    # A watch event of the API, or of `kubectl get --output-watch-events`.
    *((key, (dict,), _as_it_is) for key in ("object", "event")),
    ("data", (dict,), _loki_result),
    ("streams", (list,), _loki_lines),
    *((key, (list,), _as_it_is) for key in ("events", "logEvents")),
    ("results", (list,), _insights_messages),
    ("jsonPayload", (dict,), _as_it_is),
    # Elasticsearch and OpenSearch: an answer of the search API, and a line of elasticdump.
    ("hits", (dict, list), _as_it_is),
    ("_source", (dict,), _as_it_is),
    # Splunk: a line of an export, and the text that was indexed.
    ("result", (dict,), _as_it_is),
    ("_raw", (str,), _as_it_is),
    # OpenTelemetry's k8sobjects, as its file exporter writes it; `Body` in stores of others.
    *((key, (list,), _as_it_is) for key in ("resourceLogs", "scopeLogs", "logRecords")),
    *((key, (dict, str), _otlp_value) for key in ("body", "Body")),
    ("structured", (dict,), _as_it_is),
    *(
        (key, (str, dict), _as_it_is)
        for key in ("log", "message", "line", "msg", "textPayload", "@message")
    ),
)
