"""Make records of what a node's object says: the node, its changes and images. Pure."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from roost.recorder.store.records import (
    MAX_IMAGE,
    ImageRecord,
    NodeChangeRecord,
    NodeRecord,
    Record,
    StoredNode,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from roost.recorder.recording.reading import SeenNode, Step


def node_record(node: SeenNode, gone_us: int | None = None, images_ready_us: int | None = None) -> NodeRecord:
    """A node as it stands."""
    stored = as_stored(node)
    return NodeRecord(
        uid=node.state.uid,
        name=stored.name,
        created_us=node.created_us,
        ready_us=node.ready_us,
        images_ready_us=images_ready_us,
        gone_us=gone_us,
        allocatable=stored.allocatable,
        labels=stored.labels,
        taints=stored.taints,
        is_ready=stored.is_ready,
        is_unschedulable=stored.is_unschedulable,
    )


def unseen_node(uid: str, name: str, now_us: int) -> NodeRecord:
    """A node that only the database knows: all but its end is there already, and stays."""
    return NodeRecord(uid=uid, name=name, gone_us=now_us)


def as_stored(node: SeenNode) -> StoredNode:
    """What the database keeps of a node, to be compared with what it has."""
    state, fact = node.state, node.state.fact
    return StoredNode(
        name=state.name,
        is_ready=fact.ready,
        is_unschedulable=fact.unschedulable,
        taints=", ".join(sorted(f"{taint.key}={taint.value}:{taint.effect}" for taint in fact.taints)),
        allocatable=json.dumps(dict(state.allocatable), sort_keys=True),
        labels=json.dumps(dict(fact.labels), sort_keys=True),
    )


def node_changes(old: StoredNode, new: StoredNode, node: SeenNode, when: Step) -> Iterator[Record]:
    """A record for each field in which a node differs from what is stored; what isn't known of it is no change."""
    changes: list[tuple[str, str, str]] = []

    def compare(name: str, one: object, other: object) -> None:
        if one is not None and one != other:
            changes.append((name, str(one), str(other)))

    compare("ready", old.is_ready, new.is_ready)
    compare("unschedulable", old.is_unschedulable, new.is_unschedulable)
    compare("taints", old.taints, new.taints)
    compare("allocatable", old.allocatable, new.allocatable)
    if old.labels is not None and old.labels != new.labels:
        before, after = json.loads(old.labels), node.state.fact.labels
        for label in sorted(before.keys() | after.keys()):
            compare(f"label:{label}", before.get(label, ""), after.get(label, ""))
    for name, one, other in changes:
        yield NodeChangeRecord(
            node_uid=node.state.uid,
            resource_version=node.resource_version,
            field=name[:320],
            at_us=when.at_us,
            resolution_us=when.resolution_us,
            old=one,
            new=other,
        )


def image_record(node_uid: str, image: str, first_us: int, image_bytes: int, gone_us: int | None = None) -> ImageRecord:
    """An image that a node reports, or has reported until `gone_us`."""
    return ImageRecord(
        node_uid=node_uid,
        image=image[:MAX_IMAGE],
        first_us=first_us,
        image_bytes=image_bytes,
        gone_us=gone_us,
    )
