"""The same answer as `explanation.py`, as JSON for programs. lab/docs/why.md promises the keys."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from roost_lab.pages.dates import US, as_date
from roost_lab.recorder.answers.deciding import deciding_rule
from roost_lab.recorder.answers.steps import steps_of
from roost_lab.recorder.answers.waiting import advise, is_waiting, nodes_of, rules
from roost_lab.recorder.store.records import DecisionKind, Phase

if TYPE_CHECKING:
    from roost_lab.recorder.answers.pod_story import PodStory
    from roost_lab.recorder.answers.waiting import NodeLack

JSONObject = dict[str, Any]
SCHEMA: Final = "roost.hub.jupyter.org/why"
VERSION: Final = 1
_STOOD: Final = ("users", "placeholders", "builds", "free_cpu_millicores", "free_memory_bytes", "has_image")
_CANDIDATE: Final = (*_STOOD, "refused", "score_total", "scores")


def to_json(story: PodStory) -> str:
    """The answer as one JSON object, indented, with a newline at the end. Times are ISO 8601, UTC."""
    pod, waits = story.pod, is_waiting(story)
    ready_us = story.at(Phase.READY)
    document: JSONObject = {
        "schema": SCHEMA,
        "version": VERSION,
        "state": _state(story),
        "pod": {
            "namespace": pod["namespace"],
            "name": pod["name"],
            "uid": pod["uid"],
            "class": pod["pod_class"],
            "hub": pod["hub"],
            "image": pod["image"],
            "repository": pod["repo"],
            "ref": pod["ref"],
            "scheduler": pod["scheduler"],
            "cpu_millicores": pod["cpu_millicores"],
            "memory_bytes": pod["memory_bytes"],
        },
        "created": _time(pod["created_us"]),
        "ready": _time(ready_us),
        "gone": _time(pod["deleted_us"]),
        "gone_reason": pod["end_reason"],
        "record_ends": _time(story.heard_us),
        "bound": _bound(story),
        "image_nodes": list(story.holders),
        "waiting": _waiting(story) if waits else None,
        "advice": [{"code": one.code, "text": one.text} for one in advise(story)] if waits else [],
        "attempts": [
            {
                "at": _time(row["at_us"]),
                "last": _time(row["last_us"]),
                "tries": row["tries"],
                "nodes_total": row["nodes_total"],
                "reasons": json.loads(row["reasons"]),
                "message": row["message"],
            }
            for row in story.decisions
            if row["kind"] == DecisionKind.FAIL
        ],
        "steps": [
            {
                "name": step.name,
                "detail": step.detail,
                "from": _time(step.from_us),
                "to": _time(step.to_us),
                "seconds": (step.to_us - step.from_us) / US if step.to_us is not None else None,
            }
            for step in steps_of(story)
        ],
        "pulls": [
            {
                "image": row["image"],
                "node": row["node_name"],
                "at": _time(row["at_us"]),
                "warm": row["warm"],
                "pull_seconds": _seconds(row["pull_us"]),
                "pull_and_wait_seconds": _seconds(row["pull_and_wait_us"]),
                "bytes": row["image_bytes"],
            }
            for row in story.pulls
        ],
        "autoscaler": [
            {
                "at": _time(row["at_us"]),
                "last": _time(row["last_us"]),
                "count": row["count"],
                "reason": row["reason"],
                "message": row["message"],
            }
            for row in story.autoscaler
        ],
        "gaps": [
            {"of": row["kind"], "from": _time(row["from_us"]), "to": _time(row["to_us"]), "why": row["why"]}
            for row in story.gaps
        ],
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _state(story: PodStory) -> str:
    if story.pod["deleted_us"] is not None:
        return "gone"
    if story.at(Phase.READY) is not None:
        return "ready"
    return "waiting" if is_waiting(story) else "starting"


def _bound(story: PodStory) -> JSONObject | None:
    bind = story.bind
    if bind is None:
        return None
    return {
        "node": bind["node_name"],
        "at": _time(bind["at_us"]),
        "scheduler": bind["scheduler"],
        "nodes_total": bind["nodes_total"],
        "nodes_feasible": bind["nodes_feasible"],
        "model": bind["model"],
        "model_note": bind["model_note"],
        "decided": deciding_rule(story),
        "candidates": [{"node": row["node_name"], **{key: row[key] for key in _CANDIDATE}} for row in story.candidates],
    }


def _waiting(story: PodStory) -> JSONObject:
    nodes = nodes_of(story)
    return {
        "at": _time(nodes.at_us),
        "nodes_total": nodes.number,
        "is_examined": nodes.is_examined,
        "nodes": [_node(one) for one in nodes.each],
        "rules": rules(story),
    }


def _node(one: NodeLack) -> JSONObject:
    stood = {key: one.stood[key] for key in _STOOD} if one.stood is not None else {}
    return {"node": one.name, "lacks": [dict(lack) for lack in one.lacks], **stood}


def _time(at_us: int | None) -> str | None:
    return as_date(at_us).isoformat().replace("+00:00", "Z") if at_us is not None else None


def _seconds(span_us: int | None) -> float | None:
    return span_us / US if span_us is not None else None
