"""Read from the database everything that is known about one pod."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import sqlalchemy as sa

from roost_lab.pages.dates import US
from roost_lab.recorder.store import schema
from roost_lab.recorder.store.records import DecisionKind, Phase, unpack_candidates

if TYPE_CHECKING:
    from roost_lab.recorder.store.database import Store

Row = Mapping[str, Any]
_MANY: Final = 500
_WEEK_US: Final = 7 * 24 * 3600 * US
# A scheduler nominates a node in the same try in which it pre-empts; victims report that time in whole seconds.
NOMINATION_US: Final = 10 * US


@dataclass(frozen=True, slots=True)
class PodStory:
    """Everything that is known about one pod; the rows' keys are the columns of the tables."""

    pod: Row
    # By time.
    phases: Sequence[Row]
    decisions: Sequence[Row]
    # Of the binding, best first; see `unpack_candidates`.
    candidates: Sequence[Row]
    pulls: Sequence[Row]
    # Within its start, which ends when it is ready or gone, or now.
    gaps: Sequence[Row]
    autoscaler: Sequence[Row]
    # The pod that it was pre-empted for: uid, namespace, name ("": not recorded), is_reported (else: probable, as
    # the node was nominated for it).
    preemptor: Row | None = None
    # Pods that were pre-empted for it: namespace, name ("": not recorded), node_name.
    victims: Sequence[Row] = ()
    # The node that it was bound to.
    node: Row | None = None
    # The nodes at its last failed attempt: at_us, number (of nodes in all), nodes (as `candidates`, with `lacks`, see
    # recording/shortfalls.py); None when that isn't recorded.
    waiting: Row | None = None
    # Nodes that were there when it was bound; for a pod that isn't bound, at its last attempt: columns of `node`, with
    # `allocatable` as a mapping.
    nodes: Sequence[Row] = ()
    # Of these, the names of those that had its image then, sorted.
    holders: Sequence[str] = ()
    # The pulls of its image before: how many, and their median, least and longest µs; None: none recorded.
    earlier_pulls: Row | None = None
    # The time until which the record is complete, in µs; None: not known.
    heard_us: int | None = None

    @property
    def bind(self) -> Row | None:
        """The decision that put it on its node; None: no scheduler has bound it."""
        return next((row for row in self.decisions if row["kind"] == DecisionKind.BIND), None)

    def at(self, phase: Phase) -> int | None:
        """When it reached a phase (the last of several details), in µs; None when it did not, or it is not recorded."""
        return max((row["at_us"] for row in self.phases if row["phase"] == phase), default=None)


def find_pods(store: Store, name: str, namespace: str | None = None, at_us: int | None = None) -> list[Row]:
    """Pods of that name, newest first; with `at_us`, those that existed at that time."""
    pod = schema.pod.c
    query = sa.select(schema.pod).where(pod.name == name).order_by(pod.created_us.desc()).limit(_MANY)
    if namespace is not None:
        query = query.where(pod.namespace == namespace)
    if at_us is not None:
        query = query.where(pod.created_us <= at_us, sa.or_(pod.deleted_us.is_(None), pod.deleted_us >= at_us))
    with store.reading() as connection:
        return [dict(row) for row in connection.execute(query).mappings()]


def similar_names(store: Store, name: str, limit: int = 5) -> list[str]:
    """Names that begin alike, newest first: suggestions for a name that is not recorded."""
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
    """Everything about one pod of `find_pods`. Raises StoreError."""
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
        # Until the end of its start: autoscalers may mention a waiting pod long after its own last change.
        ready_us = [row["at_us"] + row["resolution_us"] for row in phases if row["phase"] == Phase.READY]
        until_us = min(ready_us, default=pod["deleted_us"])
        gap, autoscaler = schema.gap.c, schema.autoscaler.c
        gap_conditions = [gap.from_us <= until_us] if until_us is not None else []
        gaps = rows(sa.select(schema.gap).where(gap.to_us >= pod["created_us"], *gap_conditions).order_by(gap.from_us))
        about = f"Pod/{pod['namespace']}/{pod['name']}"
        autoscaler_conditions = [autoscaler.at_us <= until_us] if until_us is not None else []
        autoscaler_rows = rows(
            sa.select(schema.autoscaler)
            .where(autoscaler.about == about, autoscaler.at_us >= pod["created_us"], *autoscaler_conditions)
            .order_by(autoscaler.at_us)
        )
        victims = _victims(connection, decisions)
        bind = next((row for row in decisions if row["kind"] == DecisionKind.BIND), None)
        node = rows(sa.select(schema.node).where(schema.node.c.uid == bind["node_uid"])) if bind is not None else []
        preemptor = _preemptor(connection, pod, preemption[0]) if preemption else None
        heard_us = connection.execute(sa.select(sa.func.max(schema.checkpoint.c.at_us))).scalar()
        waited = rows(sa.select(schema.waiting).where(schema.waiting.c.pod_uid == uid))
        waiting = {**waited[0], "nodes": unpack_candidates(waited[0]["nodes"])} if waited else None
        at_us = _moment_of(pod, bind, decisions, waiting)
        nodes = _nodes_at(connection, at_us)
        holders = _holders(connection, pod["image"], [one["uid"] for one in nodes], at_us)
        is_pulling = bind is not None and not pulls and not ready_us
        earlier_pulls = _earlier_pulls(connection, pod["image"], pod["created_us"]) if is_pulling else None
    ranked = sorted(
        unpack_candidates(packed) if packed is not None else (),
        key=lambda row: (row["score_total"] is None, -(row["score_total"] or 0), row["node_name"]),
    )
    return PodStory(
        pod,
        phases,
        decisions,
        ranked,
        pulls,
        gaps,
        autoscaler_rows,
        preemptor,
        victims,
        node[0] if node else None,
        waiting,
        nodes,
        holders,
        earlier_pulls,
        heard_us,
    )


def _moment_of(pod: Row, bind: Row | None, decisions: Sequence[Row], waiting: Row | None) -> int:
    """When the last decision about a pod was made."""
    if bind is not None:
        return int(bind["at_us"])
    tried_us = [row["last_us"] for row in decisions] + ([waiting["at_us"]] if waiting else [])
    return int(max([pod["created_us"], *tried_us]))


def _nodes_at(connection: sa.Connection, at_us: int) -> list[Row]:
    node = schema.node.c
    # Reported times of nodes are in whole seconds.
    is_there = (node.created_us <= at_us + US, sa.or_(node.gone_us.is_(None), node.gone_us > at_us))
    rows = connection.execute(sa.select(schema.node).where(*is_there).order_by(node.name)).mappings()
    return [{**row, "allocatable": json.loads(row["allocatable"] or "{}")} for row in rows]


def _holders(connection: sa.Connection, image: str, node_uids: Sequence[str], at_us: int) -> list[str]:
    """Names of the nodes that had an image."""
    if not image or not node_uids:
        return []
    held, node = schema.image_on_node.c, schema.node.c
    names: set[str] = set()
    for start in range(0, len(node_uids), _MANY):
        query = (
            sa.select(node.name)
            .join(schema.image_on_node, held.node_uid == node.uid)
            .where(
                held.node_uid.in_(node_uids[start : start + _MANY]),
                held.image.in_(spellings(image)),
                held.first_us <= at_us,
                sa.or_(held.gone_us.is_(None), held.gone_us > at_us),
            )
        )
        names.update(connection.execute(query).scalars())
    return sorted(names)


def spellings(image: str) -> list[str]:
    """How nodes and Events may name an image: kubelets' lists, and pods, may leave default parts out."""
    short = [image, image.removeprefix("docker.io/"), image.removeprefix("docker.io/library/")]
    return sorted({*short, *(name.removesuffix(":latest") for name in short)})


def _earlier_pulls(connection: sa.Connection, image: str, before_us: int) -> Row | None:
    """What the pulls of an image took in the week before."""
    pull = schema.pull.c
    query = (
        sa.select(pull.pull_and_wait_us)
        .where(pull.at_us.between(before_us - _WEEK_US, before_us), pull.warm.is_(False))
        .where(pull.image.in_(spellings(image)))
        .where(pull.pull_and_wait_us.is_not(None))
        .order_by(pull.pull_and_wait_us)
    )
    spans = list(connection.execute(query).scalars())
    if not spans:
        return None
    return {"count": len(spans), "median_us": spans[len(spans) // 2], "min_us": spans[0], "max_us": spans[-1]}


def _victims(connection: sa.Connection, decisions: Sequence[Row]) -> list[Row]:
    """Victims of the pod's own decisions: their ids end with the victim's uid."""
    preemptions = {row["id"].rpartition("/")[2]: row for row in decisions if row["kind"] == DecisionKind.PREEMPT}
    pod = schema.pod.c
    query = sa.select(pod.uid, pod.namespace, pod.name).where(pod.uid.in_(preemptions))
    known = {row.uid: row for row in connection.execute(query)} if preemptions else {}
    return [
        {
            "namespace": known[uid].namespace if uid in known else "",
            "name": known[uid].name if uid in known else "",
            "node_name": row["node_name"],
        }
        for uid, row in preemptions.items()
    ]


def _preemptor(connection: sa.Connection, victim: Row, preemption: Row) -> Row | None:
    """The pod that a victim was pre-empted for; None when none is known."""
    pod, decision = schema.pod.c, schema.decision.c
    if preemption["by_uid"] is not None:
        query = sa.select(pod.uid, pod.namespace, pod.name).where(pod.uid == preemption["by_uid"])
        row = connection.execute(query).mappings().first()
        preemptor = dict(row) if row is not None else {"uid": preemption["by_uid"], "namespace": "", "name": ""}
        return {**preemptor, "is_reported": True}
    if preemption["kind"] != "preempted":
        return None
    # The Event that names it is lost: it is probably the pod that the node was nominated for at that time.
    query = (
        sa.select(pod.uid, pod.namespace, pod.name)
        .join(schema.decision, decision.pod_uid == pod.uid)
        .where(
            decision.kind == DecisionKind.NOMINATE,
            decision.node_name == preemption["node_name"],
            decision.at_us.between(preemption["at_us"], preemption["at_us"] + NOMINATION_US),
            pod.priority > victim["priority"],
        )
        .order_by(decision.at_us)
        .limit(1)
    )
    row = connection.execute(query).mappings().first()
    return {**row, "is_reported": False} if row is not None else None
