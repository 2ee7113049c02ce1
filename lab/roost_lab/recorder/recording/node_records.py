"""Make records from a node's object: the node, its changes and its images. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

from roost_lab.recorder.recording.reading import NodeReading, Step
from roost_lab.recorder.store.records import (
    MAX_IMAGE,
    ImageRecord,
    NodeChangeRecord,
    NodeRecord,
    Record,
)

# Characters of a field's name that the schema allows.
_MAX_FIELD: Final = 320


def node_record(node: NodeReading, gone_us: int | None = None) -> NodeRecord:
    """A node in its current state. gone_us: when it went; None: it is there."""
    state = node.state
    taints = sorted(f"{taint.key}={taint.value}:{taint.effect}" for taint in state.taints)
    return NodeRecord(
        uid=state.uid,
        name=state.name,
        created_us=node.created_us,
        ready_us=node.ready_us,
        gone_us=gone_us,
        allocatable=json.dumps(dict(state.allocatable), sort_keys=True),
        capacity=node.capacity,
        labels=json.dumps(dict(state.labels), sort_keys=True),
        taints=", ".join(taints),
        is_ready=state.ready,
        is_unschedulable=state.unschedulable,
    )


def node_changes(
    old: NodeRecord, new: NodeRecord, node: NodeReading, when: Step
) -> Iterator[Record]:
    """A record for each field in which a node's new state differs from the old one.

    A field that wasn't known before (None) makes no record. node: the reading that `new` was made
    of.
    """
    # Field, old value, new value.
    changes: list[tuple[str, str, str]] = []

    def compare(field: str, before: object, after: object) -> None:
        if before is not None and before != after:
            changes.append((field, str(before), str(after)))

    compare("ready", old.is_ready, new.is_ready)
    compare("unschedulable", old.is_unschedulable, new.is_unschedulable)
    compare("taints", old.taints, new.taints)
    compare("allocatable", old.allocatable, new.allocatable)
    compare("capacity", old.capacity, new.capacity or old.capacity)
    if old.labels is not None and old.labels != new.labels:
        old_labels = json.loads(old.labels)
        new_labels = node.state.labels
        for label in sorted(old_labels.keys() | new_labels.keys()):
            compare(f"label:{label}", old_labels.get(label, ""), new_labels.get(label, ""))
    for field, before, after in changes:
        yield NodeChangeRecord(
            node_uid=node.state.uid,
            resource_version=node.resource_version,
            field=field[:_MAX_FIELD],
            **when._asdict(),
            old=before,
            new=after,
        )


def image_record(
    node_uid: str, image: str, first_us: int, image_bytes: int, gone_us: int | None = None
) -> ImageRecord:
    """An image that a node reports, or has reported until `gone_us`."""
    return ImageRecord(
        node_uid=node_uid,
        image=image[:MAX_IMAGE],
        first_us=first_us,
        image_bytes=image_bytes,
        gone_us=gone_us,
    )
