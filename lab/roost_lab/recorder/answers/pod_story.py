"""Read from the database everything that is known about one pod."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa

from roost_lab.pages.dates import MAX_US
from roost_lab.recorder.answers.after_binding import AfterBinding, find_waits
from roost_lab.recorder.store import schema
from roost_lab.recorder.store.database import Store
from roost_lab.recorder.store.records import DecisionKind, Phase, unpack_candidates
from roost_lab.units import DAY_US, US

Row = Mapping[str, Any]
_MANY: Final = 500
# Suggestions for a name that is not recorded.
_MOST_NAMES: Final = 5
_WEEK_US: Final = 7 * DAY_US


@dataclass(frozen=True, slots=True)
class PodStory:
    """Everything that is known about one pod; the rows' keys are the columns of the tables."""

    pod: Row
    # By time.
    phases: Sequence[Row]
    decisions: Sequence[Row]
    # The binding's candidates, best first; see `unpack_candidates`.
    candidates: Sequence[Row]
    pulls: Sequence[Row]
    # Rows of the table `pod_event`.
    events: Sequence[Row]
    # Within its start, which ends when it is ready or gone, or now.
    gaps: Sequence[Row]
    autoscaler: Sequence[Row]
    # The pod that it was pre-empted for: uid, namespace, name ("": not recorded).
    preemptor: Row | None = None
    # Pods that were pre-empted for it: namespace, name ("": not recorded), node_name.
    victims: Sequence[Row] = ()
    # The node that it was bound to.
    node: Row | None = None
    # The nodes at its last failed attempt: at_us, number (of nodes in all), nodes (as `candidates`,
    # with `lacks`, see recording/shortfalls.py); None when that isn't recorded.
    waiting: Row | None = None
    # Nodes that were there when it was bound; for a pod that isn't bound, at its last attempt:
    # columns of `node`, with `allocatable` as a mapping.
    nodes: Sequence[Row] = ()
    # The names of those nodes that had its image then, sorted.
    holders: Sequence[str] = ()
    # The pulls of its image before: how many, the last one's µs, their median, least and longest;
    # None: none recorded.
    earlier_pulls: Row | None = None
    # The time until which the record is complete, in µs; None: not known.
    heard_us: int | None = None

    def at(self, phase: Phase) -> int | None:
        """When it reached a phase (the last of several details), in µs; None when it did not, or it
        is not recorded.
        """
        return max((row["at_us"] for row in self.phases if row["phase"] == phase), default=None)

    def of_kind(self, kind: DecisionKind) -> list[Row]:
        """The decisions of a kind, by time."""
        return [row for row in self.decisions if row["kind"] == kind]

    @property
    def bind(self) -> Row | None:
        """The decision that put it on its node; None: no scheduler has bound it."""
        return next(iter(self.of_kind(DecisionKind.BIND)), None)

    @property
    def chosen(self) -> Row | None:
        """The node that it was bound to, as a candidate."""
        bind = self.bind
        if bind is None:
            return None
        chosen = (row for row in self.candidates if row["node_name"] == bind["node_name"])
        return next(chosen, None)

    @property
    def pulling(self) -> list[Row]:
        """Phases of images that are being pulled for it now, or whose pull fails."""
        if self.gone_us is not None or self.at(Phase.READY) is not None:
            return []
        done = {row["image"] for row in self.pulls}
        return [
            row
            for row in self.phases
            if row["phase"] == Phase.PULLING and row["detail"] not in done
        ]

    def pulled_us(self, from_us: int, to_us: int) -> int:
        """When the last pull within a span ended; `from_us` when there was none."""
        ends: list[int] = [
            row["at_us"]
            for row in self.pulls
            if not row["warm"] and from_us <= row["at_us"] <= to_us
        ]
        return max([from_us, *ends])

    @property
    def after_binding(self) -> AfterBinding | None:
        """What it waited for since it was bound; None: it isn't."""
        bound_us = self.scheduled_us
        if bound_us is None:
            return None
        return find_waits(self.phases, self.pulls, self.events, bound_us, self.heard_us)

    @property
    def others(self) -> list[Row]:
        """The other candidates, best first."""
        return [row for row in self.candidates if row is not self.chosen]

    @property
    def gates(self) -> list[str]:
        """The scheduling gates that it was created with; "" for one without a name."""
        return sorted({row["detail"] for row in self.phases if row["phase"] == Phase.GATED})

    @property
    def scheduled_us(self) -> int | None:
        """When it was bound; None: it isn't."""
        scheduled_us = self.at(Phase.SCHEDULED)
        if not scheduled_us and self.bind is not None:
            return int(self.bind["at_us"])
        return scheduled_us

    def when(self, phase: Phase) -> tuple[int, int] | None:
        """When it reached a phase, at the earliest and at the latest; None when it did not, or it
        is not recorded.
        """
        rows = [row for row in self.phases if row["phase"] == phase]
        if not rows and phase is Phase.SCHEDULED and self.bind is not None:
            rows = [{**self.bind, "source": "event"}]
        elif not rows and phase is Phase.CREATED:
            rows = [{"at_us": self.pod["created_us"], "resolution_us": US, "source": "pod"}]
        elif not rows and phase is Phase.GONE and self.pod["deleted_us"] is not None:
            rows = [{"at_us": self.pod["deleted_us"], "resolution_us": 1, "source": "watch"}]
        if not rows:
            return None
        row = max(rows, key=lambda row: row["at_us"])
        at_us = row["at_us"]
        wide_us = row["resolution_us"] if row["resolution_us"] >= US else 0
        # A whole second is cut off; what the watch told late was so before.
        return (at_us - wide_us, at_us) if row["source"] == "watch" else (at_us, at_us + wide_us)

    def wait_us(self, begin: Phase, end: Phase) -> tuple[int, int] | None:
        """How long it was from one phase to another, at least and at most; None: one of them isn't
        known.
        """
        since = self.when(begin)
        until = self.when(end)
        if since is None or until is None:
            return None
        earliest_begin, latest_begin = since
        earliest_end, latest_end = until
        if latest_end - earliest_end == latest_begin - earliest_begin:
            # Both times are cut off alike, so the errors cancel.
            wait = max(0, earliest_end - earliest_begin)
            return wait, wait
        return max(0, earliest_end - latest_begin), max(0, latest_end - earliest_begin)

    @property
    def failure(self) -> Phase | None:
        """How its start failed: given up by its hub, or gone before it answered. None: it answered,
        or the record doesn't say.
        """
        if self.at(Phase.ANSWERED):
            return None
        for phase in (Phase.FAILED, Phase.ABANDONED):
            if self.at(phase):
                return phase
        return None

    @property
    def gone_us(self) -> int | None:
        """When it was asked to go, or was gone; None while it stays."""
        return self.at(Phase.TERMINATING) or self.pod["deleted_us"]

    @property
    def is_waiting(self) -> bool:
        """Whether no scheduler has bound it (it may be gone)."""
        return self.scheduled_us is None


def find_pods(
    store: Store, name: str, namespace: str | None = None, at_us: int | None = None
) -> list[Row]:
    """Pods of that name, newest first; with `at_us`, those that existed at that time."""
    pod = schema.pod.c
    query = (
        sa.select(schema.pod).where(pod.name == name).order_by(pod.created_us.desc()).limit(_MANY)
    )
    if namespace is not None:
        query = query.where(pod.namespace == namespace)
    if at_us is not None:
        query = query.where(
            pod.created_us <= at_us, sa.or_(pod.deleted_us.is_(None), pod.deleted_us >= at_us)
        )
    with store.reading() as connection:
        return [dict(row) for row in connection.execute(query).mappings()]


def similar_names(store: Store, name: str) -> list[str]:
    """Names that contain the first half of this one, newest first: suggestions for a name that is
    not recorded.
    """
    pod = schema.pod.c
    first_half = name[: max(3, len(name) // 2)]
    query = sa.select(pod.namespace, pod.name).where(pod.name.contains(first_half, autoescape=True))
    with store.reading() as connection:
        rows = connection.execute(query.order_by(pod.created_us.desc()).limit(_MOST_NAMES))
        return [f"{row.namespace}/{row.name}" for row in rows]


def _best_first(candidates: Iterable[Row]) -> list[Row]:
    """The highest score first; candidates without a score come last."""
    return sorted(
        candidates,
        key=lambda row: (row["score_total"] is None, -(row["score_total"] or 0), row["node_name"]),
    )


def read_story(store: Store, pod: Row) -> PodStory:
    """Everything about one pod of `find_pods`. Raises StoreError."""
    uid = pod["uid"]
    created_us = pod["created_us"]
    gap = schema.gap.c
    autoscaler = schema.autoscaler.c
    about = f"Pod/{pod['namespace']}/{pod['name']}"
    bound = f"{uid}/{DecisionKind.BIND}"
    with store.reading() as connection:

        def rows(
            table: sa.Table, *conditions: sa.ColumnElement[bool], by: str = "at_us"
        ) -> list[Row]:
            query = sa.select(table).where(*conditions).order_by(table.c[by])
            return [dict(row) for row in connection.execute(query).mappings()]

        phases = rows(schema.phase, schema.phase.c.pod_uid == uid)
        decisions = rows(schema.decision, schema.decision.c.pod_uid == uid)
        pulls = rows(schema.pull, schema.pull.c.pod_uid == uid)
        bind = next((row for row in decisions if row["kind"] == DecisionKind.BIND), None)
        # Until the end of its start: autoscalers may mention a waiting pod long after its own last
        # change.
        ready_us = [
            row["at_us"] + row["resolution_us"] for row in phases if row["phase"] == Phase.READY
        ]
        until_us = min(ready_us, default=pod["deleted_us"])
        end_us = MAX_US if until_us is None else until_us
        packed = rows(schema.candidates, schema.candidates.c.decision_id == bound, by="number")
        waited = rows(schema.waiting, schema.waiting.c.pod_uid == uid)
        tried_us = [row["last_us"] for row in decisions] + [row["at_us"] for row in waited]
        at_us = max([created_us, *tried_us]) if bind is None else bind["at_us"]
        bound_to: list[Row] = []
        if bind is not None:
            bound_to = rows(schema.node, schema.node.c.uid == bind["node_uid"], by="uid")
        waiting: Row | None = None
        if waited:
            waiting = {**waited[0], "nodes": unpack_candidates(waited[0]["nodes"])}
        earlier_pulls = None
        if bind is not None and not pulls and not ready_us:
            earlier_pulls = _earlier_pulls(connection, pod["image"], created_us)
        nodes = _nodes_at(connection, at_us)
        return PodStory(
            pod=pod,
            phases=phases,
            decisions=decisions,
            candidates=_best_first(unpack_candidates(packed[0]["nodes"]) if packed else ()),
            pulls=pulls,
            events=rows(schema.pod_event, schema.pod_event.c.pod_uid == uid),
            gaps=rows(schema.gap, gap.to_us >= created_us, gap.from_us <= end_us, by="from_us"),
            autoscaler=rows(
                schema.autoscaler,
                autoscaler.about == about,
                autoscaler.at_us.between(created_us, end_us),
            ),
            preemptor=_preemptor(
                connection, rows(schema.preemption, schema.preemption.c.victim_uid == uid)
            ),
            victims=_victims(connection, decisions),
            node=bound_to[0] if bound_to else None,
            waiting=waiting,
            nodes=nodes,
            holders=_holders(connection, pod["image"], [row["uid"] for row in nodes], at_us),
            earlier_pulls=earlier_pulls,
            heard_us=connection.execute(sa.select(sa.func.max(schema.checkpoint.c.at_us))).scalar(),
        )


def nodes_there(at_us: int) -> sa.Select[Any]:
    """The nodes that existed at a time; their own times are in whole seconds."""
    node = schema.node.c
    return sa.select(schema.node).where(
        node.created_us <= at_us + US, sa.or_(node.gone_us.is_(None), node.gone_us > at_us)
    )


def _nodes_at(connection: sa.Connection, at_us: int) -> list[Row]:
    rows = connection.execute(nodes_there(at_us).order_by(schema.node.c.name)).mappings()
    return [{**row, "allocatable": json.loads(row["allocatable"] or "{}")} for row in rows]


def _holders(
    connection: sa.Connection, image: str, node_uids: Sequence[str], at_us: int
) -> list[str]:
    """Names of the nodes that had an image."""
    held = schema.image_on_node.c
    node = schema.node.c
    is_there = (held.first_us <= at_us, sa.or_(held.gone_us.is_(None), held.gone_us > at_us))
    names: set[str] = set()
    if not image:
        return []
    for start in range(0, len(node_uids), _MANY):
        of_nodes = held.node_uid.in_(node_uids[start : start + _MANY])
        query = (
            sa.select(node.name)
            .join(schema.image_on_node, held.node_uid == node.uid)
            .where(of_nodes, held.image.in_(spellings(image)), *is_there)
        )
        names.update(connection.execute(query).scalars())
    return sorted(names)


def spellings(image: str) -> list[str]:
    """How nodes and Events may name an image: kubelets' lists, and pods, may leave default parts
    out.
    """
    short = [image, image.removeprefix("docker.io/"), image.removeprefix("docker.io/library/")]
    return sorted({*short, *(name.removesuffix(":latest") for name in short)})


def _earlier_pulls(connection: sa.Connection, image: str, before_us: int) -> Row | None:
    """What the pulls of an image took in the week before."""
    pull = schema.pull.c
    query = (
        sa.select(pull.pull_and_wait_us, pull.at_us)
        .where(pull.at_us.between(before_us - _WEEK_US, before_us), pull.warm.is_(False))
        .where(pull.image.in_(spellings(image)), pull.pull_and_wait_us.is_not(None))
        .order_by(pull.pull_and_wait_us)
    )
    rows = list(connection.execute(query))
    if not rows:
        return None
    spans = [row.pull_and_wait_us for row in rows]
    last_us = max(rows, key=lambda row: row.at_us).pull_and_wait_us
    return {
        "last_us": last_us,
        "count": len(spans),
        "median_us": spans[len(spans) // 2],
        "min_us": spans[0],
        "max_us": spans[-1],
    }


def _victims(connection: sa.Connection, decisions: Sequence[Row]) -> list[Row]:
    """Victims of the pod's own decisions: their ids end with the victim's uid."""
    nodes = {
        row["id"].rpartition("/")[2]: row["node_name"]
        for row in decisions
        if row["kind"] == DecisionKind.PREEMPT
    }
    known = _names(connection, nodes)
    return [{**known[uid], "node_name": node_name} for uid, node_name in nodes.items()]


def _preemptor(connection: sa.Connection, preemptions: Sequence[Row]) -> Row | None:
    """The pod that a victim was pre-empted for; None when that isn't known."""
    uids = [row["by_uid"] for row in preemptions if row["by_uid"] is not None]
    return _names(connection, uids)[uids[0]] if uids else None


def _names(connection: sa.Connection, uids: Collection[str]) -> dict[str, Row]:
    """The uid, namespace and name of each of these pods, by uid; both "" for one that isn't
    recorded.
    """
    pod = schema.pod.c
    query = sa.select(pod.uid, pod.namespace, pod.name).where(pod.uid.in_(uids))
    names: dict[str, Row] = {uid: {"uid": uid, "namespace": "", "name": ""} for uid in uids}
    names.update({row["uid"]: dict(row) for row in connection.execute(query).mappings()})
    return names
