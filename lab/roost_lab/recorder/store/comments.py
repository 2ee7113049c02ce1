"""What tables and columns mean, for those who meet them in PostgreSQL (SQLite has no comments)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlalchemy.schema import SetColumnComment, SetTableComment

from roost_lab.recorder.store.records import Phase

if TYPE_CHECKING:
    from collections.abc import Mapping

    import sqlalchemy as sa


_TIME: Final = "microseconds since 1970, UTC"
_UID: Final = "uid of the pod"

TABLES: Final[Mapping[str, str]] = {
    "run": "A start of the recorder",
    "checkpoint": "The position of a watch, stored with the rows up to it",
    "pod": "A pod; v_start has its times",
    "node": "A node in its current state; node_change has its history",
    "node_change": "A change of a node: ready, cordoned, taints, a label, allocatable resources",
    "phase": "A step of a pod's start, the first time that it was reached",
    "decision": "A scheduler's decision about a pod: bind, fail, nominate, preempt",
    "start_kind": "What starts are grouped by in reports; derived from pod",
    "start_place": "Where pods were bound, by class; derived from decision",
    "start": "A pod's times, which reports count; derived from pod, node, decision and phase",
    "candidates": "The nodes at the time of a binding, the best 50",
    "waiting": "The nodes when a scheduler last found none for a pod, and what each lacked",
    "pull": "An image of a pod, as its kubelet reported it",
    "image_on_node": "An image on a node, from the list that the kubelet reports (the 50 largest by default)",
    "preemption": "A pod that was pre-empted for another, or evicted",
    "autoscaler": "An Event of an autoscaler",
    "gap": "A time in which changes may have been missed",
}
# Of columns that mean the same in every table.
EVERYWHERE: Final[Mapping[str, str]] = {
    "at_us": f"when it happened, {_TIME}",
    "resolution_us": "how exact at_us is, in microseconds; it may have happened so much earlier",
    "last_us": f"when it was repeated last, {_TIME}",
    "created_us": f"when it was created, {_TIME}; 0: not known",
    "deleted_us": f"when it was seen to be gone, {_TIME}; NULL while it exists",
    "gone_us": f"when it was seen to be gone, {_TIME}; NULL while it is there",
    "ready_us": f"when it was ready first, {_TIME}",
    "started_us": f"when it started, {_TIME}",
    "stopped_us": f"when it ended normally, {_TIME}",
    "bound_us": f"when a scheduler bound it, {_TIME}",
    "node_created_us": f"when its node was created, {_TIME}",
    "images_ready_us": f"when the image gate was first seen to have labelled it for all its images, {_TIME}",
    "first_us": f"when it was first seen there, {_TIME}",
    "from_us": f"its beginning, {_TIME}",
    "to_us": f"its end, {_TIME}",
    "pull_us": "how long the pull took, in microseconds; NULL: warm",
    "pull_and_wait_us": "the same with the wait behind the kubelet's other pulls, in microseconds",
    "uid": "uid of the object",
    "pod_uid": _UID,
    "node_uid": "uid of the node; empty: not known",
    "node_name": "name of the node",
    "victim_uid": "uid of the pod that had to go",
    "by_uid": "uid of the pod that it went for; NULL: not known",
    "event_uid": "uid of the Event",
    "decision_id": "id of the decision",
    "pod_class": "a key of podClasses, or empty",
    "image": "image reference",
    "image_bytes": "size of the image in the registry, in bytes",
    "scheduler": "the scheduler profile's name",
    "source": "pod (its object), event, or watch (when the recorder saw it)",
    "kind": "what it is about",
    "message": "text of the Event or condition",
}
COLUMNS: Final[Mapping[str, str]] = {
    "pod.hub": "the hub that it belongs to, `<release>.<namespace>`; or empty",
    "pod.repo": "for BinderHub: the repository; or empty",
    "pod.ref": "for BinderHub: the resolved reference, such as a commit; or empty",
    "pod.image": "of its first main container, in full",
    "pod.image_digest": "sha256:…; NULL until the kubelet reports it",
    "pod.cpu_millicores": "thousandths of a CPU that it requests",
    "pod.memory_bytes": "bytes of memory that it requests",
    "pod.end_reason": "deleted, preempted, evicted, finished, failed, node-gone, unseen",
    "pod.warm_target": "the node that the webhook chose first in its warm set; or empty",
    "pod.source": "what the row was made from: watch, pod, sniffer, event (Events alone: times are estimates)",
    "node.allocatable": "JSON object: resource to amount (millicores, bytes, pieces)",
    "node.labels": "JSON object: label to value",
    "node.taints": "key=value:effect, separated by commas",
    "node_change.field": "ready, unschedulable, taints, allocatable, label:KEY",
    "phase.phase": ", ".join(Phase),
    "phase.source": "what told it: pod (its object), event, watch, sniffer, audit (an imported audit log)",
    "phase.detail": "the image, container or gate; empty: the whole pod",
    "decision.id": "pod uid/kind/what is unique among its kind",
    "decision.kind": "bind, fail, nominate, preempt",
    "decision.tries": "how often, at least",
    "decision.reasons": "JSON object: reason to number of nodes",
    "decision.model": "verdict of the scheduler's model on a binding: agrees, differs, unknown",
    "decision.model_node": "the node that the model prefers",
    "decision.model_note": "why the model differs, or was not asked",
    "candidates.nodes": "JSON object of lists, the n-th item of each about the n-th node",
    "waiting.nodes": "JSON object of lists, the n-th item of each about the n-th node",
    "waiting.number": "nodes in all",
    "pull.warm": "the node already had the image",
    "preemption.kind": "preempted or evicted",
    "autoscaler.about": "kind/namespace/name of the object that it is about",
    "autoscaler.count": "how often it was repeated",
    "gap.kind": "pods, nodes or events",
    "gap.why": "why changes may be missing",
}


def write_comments(connection: sa.Connection, metadata: sa.MetaData) -> None:
    """Comment on all tables and columns, where the database has comments."""
    if not connection.dialect.supports_comments:
        return
    for table in metadata.sorted_tables:
        table.comment = TABLES[table.name]
        connection.execute(SetTableComment(table))
        for column in table.columns:
            column.comment = COLUMNS.get(f"{table.name}.{column.name}") or EVERYWHERE.get(column.name)
            if column.comment:
                connection.execute(SetColumnComment(column))
