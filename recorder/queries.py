"""Ask the database what people ask: of one pod everything, of many pods the start phases, of nodes what ran on them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import sqlalchemy as sa

from recorder import schema
from recorder.records import DecisionKind, unpack_candidates

if TYPE_CHECKING:
    from recorder.records import Phase
    from recorder.store import Store

Row = Mapping[str, Any]
_MANY: Final = 500


@dataclass(frozen=True, slots=True)
class PodStory:
    """All that is known of one pod; rows as schema.py names their columns."""

    pod: Row
    # By time.
    phases: Sequence[Row]
    decisions: Sequence[Row]
    # Of the binding, best first; see `unpack_candidates`.
    candidates: Sequence[Row]
    pulls: Sequence[Row]
    preemption: Row | None
    # Those within its start.
    gaps: Sequence[Row]
    autoscaler: Sequence[Row]

    def at(self, phase: Phase, detail: str | None = None) -> int | None:
        """When it reached a phase (the last of several details), in µs; None when it did not, or nobody knows."""
        found = [
            row["at_us"] for row in self.phases if row["phase"] == phase and (detail is None or row["detail"] == detail)
        ]
        return max(found, default=None)


def find_pods(store: Store, name: str, namespace: str | None = None, at_us: int | None = None) -> list[Row]:
    """Pods of that name, newest first; with `at_us` those that were there then."""
    pod = schema.pod.c
    query = sa.select(schema.pod).where(pod.name == name).order_by(pod.created_us.desc()).limit(_MANY)
    if namespace is not None:
        query = query.where(pod.namespace == namespace)
    if at_us is not None:
        query = query.where(pod.created_us <= at_us, sa.or_(pod.deleted_us.is_(None), pod.deleted_us >= at_us))
    with store.reading() as connection:
        return [dict(row) for row in connection.execute(query).mappings()]


def similar_names(store: Store, name: str, limit: int = 5) -> list[str]:
    """Names that begin alike, newest first: for a message about a name that isn't there."""
    pod = schema.pod.c
    head = name[: max(3, len(name) // 2)].replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    query = (
        sa.select(pod.namespace, pod.name)
        .where(pod.name.like(f"%{head}%", escape="\\"))
        .order_by(pod.created_us.desc())
        .limit(limit)
    )
    with store.reading() as connection:
        return [f"{row.namespace}/{row.name}" for row in connection.execute(query)]


def read_story(store: Store, pod: Row) -> PodStory:
    """Everything about one pod, as `find_pods` gave it."""
    uid = pod["uid"]
    with store.reading() as connection:

        def rows(query: sa.Select[Any]) -> list[Row]:
            return [dict(row) for row in connection.execute(query).mappings()]

        phases = rows(sa.select(schema.phase).where(schema.phase.c.pod_uid == uid).order_by(schema.phase.c.at_us))
        decisions = rows(
            sa.select(schema.decision).where(schema.decision.c.pod_uid == uid).order_by(schema.decision.c.at_us)
        )
        packed = connection.execute(
            sa.select(schema.candidates.c.nodes).where(schema.candidates.c.decision_id == f"{uid}/{DecisionKind.BIND}")
        ).scalar()
        pulls = rows(sa.select(schema.pull).where(schema.pull.c.pod_uid == uid).order_by(schema.pull.c.at_us))
        preemption = rows(sa.select(schema.preemption).where(schema.preemption.c.victim_uid == uid))
        until_us = max((row["at_us"] for row in phases), default=pod["created_us"])
        gaps = rows(
            sa.select(schema.gap).where(schema.gap.c.from_us <= until_us, schema.gap.c.to_us >= pod["created_us"])
        )
        about = f"Pod/{pod['namespace']}/{pod['name']}"
        autoscaler = rows(
            sa.select(schema.autoscaler)
            .where(
                schema.autoscaler.c.about == about,
                schema.autoscaler.c.at_us >= pod["created_us"],
                schema.autoscaler.c.at_us <= until_us,
            )
            .order_by(schema.autoscaler.c.at_us)
        )
    ranked = sorted(
        unpack_candidates(packed) if packed is not None else (),
        key=lambda row: (row["score_total"] is None, -(row["score_total"] or 0), row["node_name"]),
    )
    return PodStory(pod, phases, decisions, ranked, pulls, preemption[0] if preemption else None, gaps, autoscaler)


def occupancy(store: Store, from_us: int, to_us: int) -> Iterator[Row]:
    """Who was on which node from when to when: node_name, pod_uid, pod_class, from_us, to_us (None: still there)."""
    bind, pod = schema.decision.c, schema.pod.c
    query = (
        sa.select(
            bind.node_name,
            pod.uid.label("pod_uid"),
            pod.pod_class,
            bind.at_us.label("from_us"),
            pod.deleted_us.label("to_us"),
        )
        .join(schema.pod, pod.uid == bind.pod_uid)
        .where(
            bind.kind == "bind",
            bind.at_us <= to_us,
            sa.or_(pod.deleted_us.is_(None), pod.deleted_us >= from_us),
        )
        .order_by(bind.at_us)
    )
    with store.reading() as connection:
        for row in connection.execution_options(yield_per=_MANY).execute(query).mappings():
            yield dict(row)
