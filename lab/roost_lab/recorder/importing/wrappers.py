"""Find Kubernetes' objects in whatever they were exported in: lists, watch events, log lines of collectors and stores.

Recognised by their fields: kubectl's lists and watches; eventrouter's {verb, event}; Loki's query results and logcli's
{labels, line, timestamp}; CloudWatch's {events: [{message}]}, {results} of Insights and {logEvents}; the texts of
collectors (log, message, line, msg, textPayload) and jsonPayload. kubernetes-event-exporter, Fluent Bit's
kubernetes_events and GKE's Event log write the Event's own fields.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from roost_lab.recorder.importing.files import NOT_JSON, read_text

if TYPE_CHECKING:
    from collections.abc import Iterator

JSONObject = dict[str, Any]
# Text in a log line in a list of a store is three deep; nobody wraps ten times.
_MOST_LAYERS: Final = 10
# Reasons of skips are not invented by what is skipped.
_KIND: Final = re.compile(r"[A-Z][A-Za-z]{1,40}")
_TEXTS: Final = ("log", "message", "line", "msg", "textPayload", "@message")

# In the lines of Grafana Alloy's loki.source.kubernetes_events, and in those of no other.
_ALLOY: Final = "objectAPIversion"
_NO_UID: Final = "a line of Grafana Alloy's kubernetes_events, which don't have the uids of pods"


class Kind(Enum):
    """What was found."""

    EVENT = "Events"
    POD = "pods"
    AUDIT = "audit log entries"
    # Something else: `reason` says what.
    NOTHING = "nothing"


class Found(NamedTuple):
    """An object, or why there is none."""

    kind: Kind
    item: JSONObject
    reason: str = ""


def find_objects(value: Any, layers: int = 0) -> Iterator[Found]:  # noqa: ANN401 - JSON
    """The objects in a document or a line."""
    if layers > _MOST_LAYERS:
        yield _nothing("wrapped too deeply")
    elif isinstance(value, list) and not value and layers == 0:
        yield _nothing("an empty list")
    elif isinstance(value, list):
        for item in value:
            yield from find_objects(item, layers + 1)
    elif isinstance(value, str):
        inner = read_text(value.strip().encode("utf-8", "replace"))
        if inner is None:
            yield _nothing(_NO_UID if _ALLOY in value else NOT_JSON)
        else:
            yield from find_objects(inner, layers + 1)
    elif isinstance(value, dict):
        yield from _in_object(value, layers + 1)
    else:
        yield _nothing("not a JSON object")


def _in_object(value: JSONObject, layers: int) -> Iterator[Found]:
    version = value.get("apiVersion")
    if isinstance(value.get("items"), list):
        # A list may leave out its items' kind: the API server's own does.
        kind = str(value.get("kind") or "").removesuffix("List")
        own = {"apiVersion": version, "kind": kind} if kind else {}
        for item in value["items"]:
            yield from find_objects({**own, **item} if isinstance(item, dict) else item, layers)
    elif isinstance(version, str) and version.startswith("audit.k8s.io/"):
        yield Found(Kind.AUDIT, value)
    elif isinstance(value.get("involvedObject"), dict) or isinstance(value.get("regarding"), dict):
        yield Found(Kind.EVENT, value)
    elif value.get("kind") == "Pod" and isinstance(value.get("spec"), dict):
        yield Found(Kind.POD, value)
    elif isinstance(version, str) and isinstance(value.get("kind"), str):
        yield _nothing(f"an object of kind {value['kind']}" if _KIND.fullmatch(value["kind"]) else "of an unknown kind")
    elif _ALLOY in value:
        yield _nothing(_NO_UID)
    else:
        yield from _in_wrapper(value, layers)


def _in_wrapper(value: JSONObject, layers: int) -> Iterator[Found]:
    inner = _inside(value)
    if inner is None:
        yield _nothing("not an Event, a pod or an audit log entry")
    else:
        yield from find_objects(inner, layers)


def _inside(value: JSONObject) -> Any:  # noqa: ANN401 - JSON
    """What a wrapper holds; None when it is none."""
    if isinstance(value.get("object"), dict):
        # A watch event of the API, or of `kubectl get --output-watch-events`.
        return value["object"]
    if isinstance(value.get("event"), dict):
        return value["event"]
    data = value.get("data")
    if isinstance(data, dict) and isinstance(data.get("result"), list):
        return _loki_lines(data["result"])
    if isinstance(value.get("streams"), list):
        return _loki_lines(value["streams"])
    for key in ("events", "logEvents"):
        if isinstance(value.get(key), list):
            return value[key]
    if isinstance(value.get("results"), list):
        return _insights_messages(value["results"])
    if isinstance(value.get("jsonPayload"), dict):
        return value["jsonPayload"]
    for key in _TEXTS:
        text = value.get(key)
        if isinstance(text, (str, dict)):
            return text
    return None


def _loki_lines(streams: list[Any]) -> list[Any]:
    lines = []
    for stream in streams:
        values = stream.get("values") if isinstance(stream, dict) else None
        # Each is [time in ns, line], perhaps with structured metadata after them.
        pairs = values if isinstance(values, list) else ()
        lines += [pair[1] if isinstance(pair, list) and len(pair) > 1 else pair for pair in pairs]
    return lines


def _insights_messages(results: list[Any]) -> list[Any]:
    return [
        cell.get("value")
        for row in results
        for cell in (row if isinstance(row, list) else ())
        if isinstance(cell, dict) and cell.get("field") == "@message"
    ]


def _nothing(reason: str) -> Found:
    return Found(Kind.NOTHING, {}, reason)
