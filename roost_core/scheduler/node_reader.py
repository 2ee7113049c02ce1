"""Read Node objects into `NodeState`."""

from __future__ import annotations

from sys import intern

from roost_core.objects.selectors import Taint
from roost_core.objects.timestamps import read_moment
from roost_core.placement.labels import intern_labels, kept_annotations
from roost_core.placement.nodes import NodeFact
from roost_core.placement.pods import (
    NOTHING,
    JSONObject,
    MalformedPodError,
    child_list,
    child_number,
    child_object,
    child_objects,
    child_text,
    child_texts,
)
from roost_core.scheduler.objects import PODS, NodeState
from roost_core.scheduler.requests import is_counted, read_quantity, round_up


class MalformedNodeError(ValueError):
    """The object is not a valid Node: it has no name, or has parts that no API server would return."""


def read_node_state(body: object) -> NodeState:
    """Read a Node as the API's JSON has it.

    Raises MalformedNodeError, and nothing else, when it has no name or its parts aren't of a Node's shape.
    """
    try:
        return _read_node(body)
    except MalformedPodError as error:
        raise MalformedNodeError(str(error)) from None


def _read_node(body: object) -> NodeState:
    if not isinstance(body, dict):
        raise MalformedPodError("the object is not a JSON object")
    metadata, spec, status = (child_object(body, part, "node") or NOTHING for part in ("metadata", "spec", "status"))
    name = child_text(metadata, "name", "metadata")
    if not name:
        raise MalformedPodError("metadata.name is absent")
    conditions: dict[str, str] = {}
    created = read_moment(metadata.get("creationTimestamp")) or 0.0
    ready_since = None
    for condition in child_objects(status, "conditions", "status"):
        kind, value = (
            child_text(condition, "type", "status.conditions[]"),
            child_text(condition, "status", "status.conditions[]"),
        )
        conditions[kind] = value
        if kind == "Ready" and value == "True":
            ready_since = read_moment(condition.get("lastTransitionTime")) or created
    images: dict[str, int] = {}
    listed = child_objects(status, "images", "status")
    for image in listed:
        size = child_number(image, "sizeBytes", "status.images[]")
        for reference in child_list(image, "names", "status.images[]") or ():
            if isinstance(reference, str):
                images[intern(reference)] = size
    return NodeState(
        fact=NodeFact(
            name=name,
            labels=intern_labels(child_texts(metadata, "labels", "metadata")),
            taints=tuple(
                Taint(child_text(taint, "key", "spec.taints[]"), child_text(taint, "value", "spec.taints[]"), effect)
                for taint in child_objects(spec, "taints", "spec")
                if (effect := child_text(taint, "effect", "spec.taints[]"))
            ),
            unschedulable=spec.get("unschedulable") is True,
            ready=conditions.get("Ready") == "True",
        ),
        uid=child_text(metadata, "uid", "metadata"),
        created=created,
        allocatable=read_allocatable(status),
        images=images,
        image_count=len(listed),
        conditions=conditions,
        ready_since=ready_since,
        annotations=kept_annotations(child_texts(metadata, "annotations", "metadata")),
        leaving=metadata.get("deletionTimestamp") is not None,
    )


def read_allocatable(status: JSONObject) -> dict[str, int]:
    """Read `allocatable` of a Node's status, as kube-scheduler counts it. Raises MalformedPodError."""
    amounts = child_object(status, "allocatable", "status") or NOTHING
    return {
        resource: round_up(resource, read_quantity(amount, f"status.allocatable.{resource}"))
        for resource, amount in amounts.items()
        if resource == PODS or is_counted(resource)
    }
