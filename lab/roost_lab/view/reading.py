"""Read from the database what is known about one moment."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import sqlalchemy as sa

from roost_core.objects.image_references import normalise_reference
from roost_core.placement.labels import PULLED_LABEL_PREFIX
from roost_lab.recorder.answers.explanation import explain
from roost_lab.recorder.answers.pod_story import nodes_there, read_story, spellings
from roost_lab.recorder.recording.hub_log import LONGEST_US, log_checkpoint
from roost_lab.recorder.recording.scheduler_model import USER
from roost_lab.recorder.store import schema
from roost_lab.recorder.store.database import Store
from roost_lab.recorder.store.records import DecisionKind, Phase
from roost_lab.recorder.store.start_times import logged_end_us
from roost_lab.report.query import consistent_reads, read_extent
from roost_lab.report.statistics import Span
from roost_lab.units import MINUTE_US
from roost_lab.view.course import Course, read_course
from roost_lab.view.moment import (
    ATTRACT_LABEL_PREFIX,
    GATED,
    ClusterMoment,
    Rows,
    images_of_interest,
    moment_of,
)

Row = dict[str, Any]
_MANY: Final = 500
# A record that is older than this has stopped: its last state is shown, not one in which nothing
# has happened since.
LIVE_US: Final = 3 * MINUTE_US
# A placeholder starts again within this time after the mover has evicted it.
MOVE_US: Final = 10 * MINUTE_US
_FIELDS: Final = ("ready", "unschedulable", "taints", "allocatable")


class RecordSource:
    """A record, as a Source of server.py."""

    def __init__(self, store: Store, now_us: Callable[[], int] | None = None) -> None:
        self._store = store
        self._now_us = now_us or (lambda: time.time_ns() // 1000)

    def moment(self, at_us: int | None) -> ClusterMoment | None:
        """The moment at that time, None: the latest; None when the record is empty."""
        return read_moment(self._store, at_us, self._now_us())

    def course(self, span: Span) -> Course:
        """What users waited for in that time."""
        return read_course(self._store, span)

    def why(self, uid: str) -> str | None:
        """What explains a pod; None when it isn't recorded."""
        with self._store.reading() as connection:
            pod = (
                connection.execute(sa.select(schema.pod).where(schema.pod.c.uid == uid))
                .mappings()
                .first()
            )
        return explain(read_story(self._store, dict(pod))) if pod is not None else None


def read_moment(store: Store, at_us: int | None, now_us: int) -> ClusterMoment | None:
    """The moment; None when the record is empty. Raises StoreError.

    at_us: None for the latest state: of now, or of the record's end if it ended before.
    """
    with consistent_reads(store) as connection:
        extent = read_extent(connection)
        if extent is None:
            return None
        last_us = max(extent.to_us, now_us) if now_us - extent.to_us < LIVE_US else extent.to_us
        rows = read_rows(connection, last_us if at_us is None else min(at_us, last_us))
    return moment_of(rows, extent.from_us, last_us)


def read_rows(connection: sa.Connection, at_us: int) -> Rows:
    """All rows that a moment is made of."""

    def rows(query: sa.Executable) -> list[Row]:
        return [dict(row) for row in connection.execute(query).mappings()]

    pods = _pods(rows, at_us)
    nodes = rows(nodes_there(at_us))
    node_uids = [row["uid"] for row in nodes]
    waiting = [row["uid"] for row in pods if row["bound_us"] is None or row["bound_us"] > at_us]
    bound = [row for row in pods if row["node_name"] and row["bound_us"] <= at_us]
    starting = [
        row["uid"] for row in bound if row["started_us"] is None or row["started_us"] > at_us
    ]
    pull = schema.pull
    held = schema.image_on_node.c
    gap = schema.gap.c
    was_held = (held.first_us <= at_us, sa.or_(held.gone_us.is_(None), held.gone_us > at_us))
    names: list[str] = []
    for image in images_of_interest(at_us, pods):
        names += spellings(normalise_reference(image))
    counts = (
        sa.select(held.node_uid, sa.func.count().label("number"))
        .where(*was_held)
        .group_by(held.node_uid)
    )
    return Rows(
        at_us=at_us,
        pods=pods,
        nodes=nodes,
        later_changes=_in_parts(rows, node_uids, lambda part: _later_changes(part, at_us)),
        images=_in_parts(
            rows,
            names,
            lambda part: sa.select(held.node_uid, held.image).where(
                *was_held, held.image.in_(part)
            ),
        ),
        image_counts={row["node_uid"]: row["number"] for row in rows(counts)},
        pulls=_in_parts(
            rows, starting, lambda part: sa.select(pull).where(pull.c.pod_uid.in_(part))
        ),
        reasons=_reasons(rows, waiting, at_us),
        bindings=rows(_bindings(at_us)),
        removals=rows(_removals(at_us)),
        gaps=rows(sa.select(schema.gap).where(gap.from_us <= at_us, gap.to_us > at_us)),
    )


def _in_parts(
    rows: Callable[[sa.Executable], list[Row]],
    keys: Sequence[str],
    query: Callable[[Sequence[str]], sa.Executable],
) -> list[Row]:
    # Databases limit the number of parameters.
    parts: Iterator[Sequence[str]] = (
        keys[begin : begin + _MANY] for begin in range(0, len(keys), _MANY)
    )
    return [row for part in parts for row in rows(query(part))]


def _pods(rows: Callable[[sa.Executable], list[Row]], at_us: int) -> list[Row]:
    """Pods that existed, with their times.

    They are two queries: for one join of both, PostgreSQL reads every pod of the record.
    """
    start = schema.start.c
    place = schema.start_place.c
    columns = (
        start.pod_uid,
        start.bound_us,
        start.started_us,
        logged_end_us.label("ended_us"),
        place.node_name,
        place.node_uid,
    )
    tables = schema.start.outerjoin(schema.start_place, place.id == start.place_id)
    existed = sa.select(*columns).select_from(tables).where(start.created_us <= at_us)
    # Apart, so that each is looked up in the index of ends.
    both = sa.union_all(
        existed.where(start.deleted_us.is_(None)), existed.where(start.deleted_us > at_us)
    )
    starts = {row.pop("pod_uid"): row for row in rows(both)}
    pod = schema.pod.c
    known = (
        pod.uid,
        pod.namespace,
        pod.name,
        pod.pod_class,
        pod.image,
        pod.cpu_millicores,
        pod.memory_bytes,
    )
    pod_rows = _in_parts(
        rows,
        list(starts),
        lambda part: sa.select(*known, pod.warm_target, pod.created_us).where(pod.uid.in_(part)),
    )
    pods = [row | starts[row["uid"]] for row in pod_rows]
    versions = {row["kind"]: row["resource_version"] for row in rows(sa.select(schema.checkpoint))}
    for row in pods:
        if row["pod_class"] != USER or row["ended_us"] is not None:
            continue
        # See `log_checkpoint`: the version of a log's checkpoint is a time.
        log_since_us = versions.get(log_checkpoint(row["namespace"]))
        if log_since_us and max(int(log_since_us), at_us - LONGEST_US) <= row["created_us"]:
            # The hub has told nothing of this start yet.
            row["ended_us"] = at_us + 1
    return pods


def _later_changes(node_uids: Sequence[str], at_us: int) -> sa.Executable:
    change = schema.node_change.c
    is_shown = sa.or_(
        change.field.in_(_FIELDS),
        change.field.like(f"label:{ATTRACT_LABEL_PREFIX}%"),
        change.field.like(f"label:{PULLED_LABEL_PREFIX}%"),
    )
    number = sa.func.row_number().over(
        partition_by=(change.node_uid, change.field),
        order_by=(change.at_us, change.resource_version),
    )
    ranked = (
        sa.select(change.node_uid, change.field, change.old, number.label("number"))
        .where(change.node_uid.in_(node_uids), change.at_us > at_us, is_shown)
        .subquery()
    )
    return sa.select(ranked.c.node_uid, ranked.c.field, ranked.c.old).where(ranked.c.number == 1)


def _reasons(
    rows: Callable[[sa.Executable], list[Row]], pod_uids: Sequence[str], at_us: int
) -> list[Row]:
    """pod_uid, text, is_gate: gates first, so that an attempt's failure, which is later, replaces
    them.
    """
    phase = schema.phase.c
    decision = schema.decision.c
    gates = _in_parts(
        rows,
        pod_uids,
        lambda part: sa.select(phase.pod_uid, phase.phase, phase.detail, phase.at_us).where(
            phase.pod_uid.in_(part),
            phase.phase.in_((Phase.GATED, Phase.UNGATED)),
            phase.at_us <= at_us,
        ),
    )
    ungated = {row["pod_uid"] for row in gates if row["phase"] == Phase.UNGATED}
    failed = _in_parts(
        rows,
        pod_uids,
        lambda part: sa.select(
            decision.pod_uid, decision.at_us, decision.message.label("text")
        ).where(
            decision.pod_uid.in_(part), decision.kind == DecisionKind.FAIL, decision.at_us <= at_us
        ),
    )
    of_gates: list[Row] = [
        {"pod_uid": row["pod_uid"], "text": f"{GATED} {row['detail']}.", "is_gate": True}
        for row in gates
        if row["phase"] == Phase.GATED and row["pod_uid"] not in ungated
    ]
    of_attempts: list[Row] = [
        {"pod_uid": row["pod_uid"], "text": row["text"], "is_gate": False}
        for row in sorted(failed, key=lambda row: int(row["at_us"]))
    ]
    return of_gates + of_attempts


def _bindings(at_us: int) -> sa.Executable:
    pod = schema.pod.c
    decision = schema.decision.c
    return (
        sa.select(
            pod.uid, pod.namespace, pod.name, pod.pod_class, decision.node_name, decision.at_us
        )
        .select_from(schema.decision.join(schema.pod, pod.uid == decision.pod_uid))
        .where(
            decision.kind == DecisionKind.BIND,
            decision.at_us > at_us - MINUTE_US,
            decision.at_us <= at_us,
        )
    )


def _removals(at_us: int) -> sa.Executable:
    removal = schema.preemption.c
    victim = schema.pod.c
    other = schema.pod.alias("other")
    return (
        sa.select(
            removal.at_us,
            removal.kind,
            removal.node_name,
            removal.victim_uid.label("uid"),
            victim.namespace,
            victim.name,
            victim.pod_class,
            removal.by_uid,
            other.c.namespace.label("by_namespace"),
            other.c.name.label("by_name"),
        )
        .select_from(
            schema.preemption.outerjoin(schema.pod, victim.uid == removal.victim_uid).outerjoin(
                other, other.c.uid == removal.by_uid
            )
        )
        .where(removal.at_us > at_us - MOVE_US, removal.at_us <= at_us)
    )
