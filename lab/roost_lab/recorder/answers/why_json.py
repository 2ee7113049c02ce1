"""The same answer as `explanation.py`, as JSON for programs. lab/docs/why.md promises the keys."""

from __future__ import annotations

import json
from typing import Any, Final

from roost_lab.pages.dates import US, as_date
from roost_lab.pages.phrases import show_plain
from roost_lab.recorder.answers.deciding import deciding_rule
from roost_lab.recorder.answers.pod_story import PodStory, Row
from roost_lab.recorder.answers.steps import steps_of
from roost_lab.recorder.answers.waiting import advise, nodes_of, rules
from roost_lab.recorder.store.records import DecisionKind, Phase

JSONObject = dict[str, Any]
SCHEMA: Final = "roost.hub.jupyter.org/why"
VERSION: Final = 1
_STOOD: Final = ("users", "placeholders", "builds", "free_cpu_millicores", "free_memory_bytes", "has_image")
_CANDIDATE: Final = (*_STOOD, "refused", "score_total", "scores")
# Keys of the answer that are columns of another name.
_COLUMNS: Final = {
    "class": "pod_class",
    "repository": "repo",
    "node": "node_name",
    "of": "kind",
    "bytes": "image_bytes",
    "gone": "deleted",
    "gone_reason": "end_reason",
}


def to_json(story: PodStory) -> str:
    """The answer as one JSON object, indented, with a newline at the end. Times are ISO 8601, UTC."""
    pod, bind = story.pod, story.bind
    pod_keys = "namespace name uid class hub image repository ref scheduler cpu_millicores memory_bytes"
    bind_keys = "node at scheduler nodes_total nodes_feasible model model_note"
    document: JSONObject = {
        "schema": SCHEMA,
        "version": VERSION,
        "state": _state(story),
        "pod": _shown(pod, pod_keys),
        **_shown(pod, "created"),
        "ready": _time(story.at(Phase.READY)),
        **_shown(pod, "gone gone_reason"),
        "record_ends": _time(story.heard_us),
        "bound": None,
        "image_nodes": list(story.holders),
        "waiting": _waiting(story) if story.is_waiting else None,
        "advice": [
            {"code": code, "text": show_plain(text)} for code, text in (advise(story) if story.is_waiting else ())
        ],
        "attempts": [
            _shown(row, "at last tries nodes_total message") | {"reasons": json.loads(row["reasons"])}
            for row in story.of_kind(DecisionKind.FAIL)
        ],
        "steps": [
            {
                "name": step.name,
                "detail": step.detail,
                "from": _time(step.from_us),
                "to": _time(step.to_us),
                "seconds": _seconds(None if step.to_us is None else step.to_us - step.from_us),
            }
            for step in steps_of(story)
        ],
        "pulls": [
            _shown(row, "image node at warm bytes")
            | {"pull_seconds": _seconds(row["pull_us"]), "pull_and_wait_seconds": _seconds(row["pull_and_wait_us"])}
            for row in story.pulls
        ],
        "autoscaler": [_shown(row, "at last count reason message") for row in story.autoscaler],
        "gaps": [_shown(row, "of from to why") for row in story.gaps],
    }
    if bind is not None:
        candidates = [{"node": row["node_name"], **{key: row[key] for key in _CANDIDATE}} for row in story.candidates]
        decided = list(map(show_plain, deciding_rule(story)))
        document["bound"] = {**_shown(bind, bind_keys), "decided": decided, "candidates": candidates}
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _shown(row: Row, keys: str) -> JSONObject:
    """These keys of the answer: columns of a row, by their own or another name, or times without their `_us`."""
    shown = {}
    for key in keys.split():
        column = _COLUMNS.get(key, key)
        shown[key] = row[column] if column in row else _time(row[f"{column}_us"])
    return shown


def _state(story: PodStory) -> str:
    if story.pod["deleted_us"] is not None:
        return "gone"
    if story.at(Phase.READY) is not None:
        return "ready"
    return "waiting" if story.is_waiting else "starting"


def _waiting(story: PodStory) -> JSONObject:
    nodes = nodes_of(story)
    shown = ("lacks", *(_STOOD if nodes.is_examined else ()))
    return {
        "at": _time(nodes.at_us),
        "nodes_total": nodes.number,
        "is_examined": nodes.is_examined,
        "nodes": [{"node": row["node_name"], **{key: row[key] for key in shown}} for row in nodes.each],
        "rules": list(map(show_plain, rules(story))),
    }


def _time(at_us: int | None) -> str | None:
    return as_date(at_us).isoformat().replace("+00:00", "Z") if at_us is not None else None


def _seconds(span_us: int | None) -> float | None:
    return span_us / US if span_us is not None else None
