"""The peak of what pods requested, against what nodes could give, in each step.

Placeholders don't count: they make way. Nodes count with their allocatable resources as last reported. Pods and nodes
count within the recorded part of the window, not to the edges of its steps.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

import sqlalchemy as sa

from roost_lab.pages.dates import US
from roost_lab.pages.drawing import Figure, JSONObject, Mark
from roost_lab.pages.table import Unit
from roost_lab.recorder.recording.model import PLACEHOLDER, USER
from roost_lab.recorder.store import schema
from roost_lab.recorder.store.records import NODES, PODS, Phase
from roost_lab.report.gaps import unseen_steps
from roost_lab.report.node_lives import NodeLife, node_lives
from roost_lab.report.query import Query, Rows, bounded
from roost_lab.report.subject import Field, Report, Section, TableOf, time_field
from roost_lab.report.timeline import step_bars, time_figure, time_label

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from roost_lab.report.statistics import Steps

_GIB: Final = 1 << 30
# An eviction through the API deletes the pod at once; the kubelet's leaves a failed pod behind, which has ended.
_DELETED_AT_ONCE_US: Final = 10 * US
_CPU_MILLICORES: Final = "cpu"
_MEMORY_BYTES: Final = "memory"
USERS: Final = "users"


class Peak(NamedTuple):
    """The most at any one moment of a step; each figure at its own moment."""

    users: int
    cpu_millicores: int
    memory_bytes: int


class Room(NamedTuple):
    """The most that the nodes could give at any one moment of a step."""

    cpu_millicores: int
    memory_bytes: int


@dataclass(slots=True)
class Capacity:
    """Peaks and room in each step; empty if no node was recorded."""

    peaks: list[Peak] = field(default_factory=list)
    room: list[Room] = field(default_factory=list)
    # Nodes of which no allocatable resources were reported; they count as nothing.
    unknown_nodes: int = 0

    @classmethod
    def read(cls, query: Query) -> Self:
        """Pods from the database step by step; nodes one by one."""
        numbers = cls()
        lives = list(node_lives(query))
        if not lives:
            return numbers
        numbers.unknown_nodes = sum(life.allocatable is None for life in lives)
        of_cpu, of_memory = (_most_room(lives, query.steps, name) for name in (_CPU_MILLICORES, _MEMORY_BYTES))
        numbers.room = [Room(*amounts) for amounts in zip(of_cpu, of_memory, strict=True)]
        numbers.peaks = list(_peaks(_changes(query), query.steps))
        return numbers


def _most_room(lives: Iterable[NodeLife], steps: Steps, resource: str) -> list[int]:
    """The most at any moment of each step."""
    changes: Counter[int] = Counter()
    for life in lives:
        amount = int(json.loads(life.allocatable or "{}").get(resource) or 0)
        changes[life.from_us] += amount
        changes[life.to_us] -= amount
    most = [0] * steps.number
    now = 0
    moments = sorted(changes)
    for at_us, next_us in pairwise([*moments, steps.to_us]):
        now += changes[at_us]
        first = max(0, (at_us - steps.from_us) // steps.step_us)
        # Until just before the next change.
        last = min(steps.number - 1, (next_us - 1 - steps.from_us) // steps.step_us)
        for index in range(first, last + 1):
            most[index] = max(most[index], now)
    return most


def _changes(query: Query) -> Rows:
    """By step: the highest sums (since the first step's start) after a change in it, and what the changes add up to."""
    steps, start, pod, kind = query.steps, schema.start.c, schema.pod.c, schema.start_kind.c
    from_us, to_us = query.recorded
    evicted = _evicted_by_kubelet()
    amounts: dict[str, sa.ColumnElement[int]] = {
        USERS: sa.case((kind.pod_class == USER, 1), else_=0),
        "cpu_millicores": bounded(pod.cpu_millicores),
        "memory_bytes": bounded(pod.memory_bytes),
    }
    came_us = sa.case((start.bound_us > from_us, start.bound_us), else_=from_us)
    # The record doesn't tell when other pods finished that are still objects.
    ended_us = sa.case(
        (evicted.c.at_us < sa.func.coalesce(start.deleted_us, to_us), evicted.c.at_us), else_=start.deleted_us
    )
    went_us = sa.case((ended_us < came_us, came_us), (ended_us < to_us, ended_us), else_=to_us)
    # Used twice, so the database keeps it: looking a pod up is most of the work.
    stays = (
        sa.select(
            came_us.label("came_us"),
            went_us.label("went_us"),
            *(amount.label(name) for name, amount in amounts.items()),
        )
        .select_from(
            schema.start.join(schema.start_kind, kind.id == start.kind_id)
            .join(schema.pod, pod.uid == start.pod_uid)
            .outerjoin(evicted, evicted.c.victim_uid == start.pod_uid)
        )
        .where(
            start.created_us < to_us,
            start.bound_us < to_us,
            sa.or_(start.deleted_us.is_(None), start.deleted_us > from_us),
            kind.pod_class != PLACEHOLDER,
            query.is_about(start.pod_uid),
        )
        .cte("stays")
    )
    moves = sa.union_all(
        sa.select(stays.c.came_us.label("at_us"), *(stays.c[name] for name in amounts)),
        sa.select(stays.c.went_us.label("at_us"), *((-stays.c[name]).label(name) for name in amounts)),
    ).subquery()
    # All changes of one moment count together: a pod that comes as another goes makes no peak.
    sums = sa.select(
        ((moves.c.at_us - steps.from_us) // steps.step_us).label("step"),
        moves.c.at_us,
        *(moves.c[name] for name in amounts),
        *(sa.func.sum(moves.c[name]).over(order_by=moves.c.at_us).label(f"sum_{name}") for name in amounts),
    ).subquery()
    columns: list[Any] = [
        *(sa.func.max(sums.c[f"sum_{name}"]).label(f"most_{name}") for name in amounts),
        *(sa.func.sum(sums.c[name]).label(name) for name in amounts),
        sa.func.min(sums.c.at_us).label("first_us"),
    ]
    return query.rows(sa.select(sums.c.step, *columns).group_by(sums.c.step).order_by(sums.c.step))


def _evicted_by_kubelet() -> sa.Subquery:
    """Evicted pods (victim_uid, at_us) that nobody began to delete then."""
    removal, number, phase = schema.preemption.c, schema.pod_number.c, schema.phase.c
    deleted = (
        sa.select(1)
        .select_from(schema.pod_number.join(schema.phase, phase.pod_number == number.number))
        .where(
            number.uid == removal.victim_uid,
            phase.phase == Phase.TERMINATING,
            phase.at_us < removal.at_us + _DELETED_AT_ONCE_US,
        )
        .exists()
    )
    return sa.select(removal.victim_uid, removal.at_us).where(removal.kind == "evicted", ~deleted).subquery()


def _peaks(changes: Iterable[Any], steps: Steps) -> Iterator[Peak]:
    by_step = {int(row.step): row for row in changes}
    now = [0, 0, 0]
    for step, start_us in enumerate(steps.starts()):
        most = list(now)
        row = by_step.get(step)
        if row is not None:
            # What was before counts unless it changed as the step began.
            lasted = row.first_us > start_us
            most = [max(before * lasted, int(row[index])) for index, before in enumerate(now, start=1)]
            now = [before + int(row[index]) for index, before in enumerate(now, start=4)]
        yield Peak(*most)


class _Step(NamedTuple):
    start_us: int
    # None where records may be missing.
    peak: Peak | None
    room: Room | None


def _rows(report: Report) -> Iterator[_Step]:
    numbers = report[Capacity]
    pods, nodes = unseen_steps(report, PODS), unseen_steps(report, NODES)
    for index, (peak, room) in enumerate(zip(numbers.peaks, numbers.room, strict=True)):
        start_us = report.steps.from_us + index * report.steps.step_us
        yield _Step(start_us, None if pods[index] else peak, None if nodes[index] else room)


TABLE: Final = TableOf[_Step](
    "capacity_over_time",
    "The most that pods requested at a moment of each step, and the most that nodes had",
    (
        time_field("from", "from", lambda row: row.start_us),
        Field("users", "users", Unit.COUNT, lambda row: None if row.peak is None else row.peak.users),
        Field("cpu", "CPU requested", Unit.MEAN, lambda row: row.peak and row.peak.cpu_millicores / 1000),
        Field("cpu_allocatable", "CPU of nodes", Unit.MEAN, lambda row: row.room and row.room.cpu_millicores / 1000),
        Field("memory_bytes", "memory requested", Unit.BYTES, lambda row: row.peak and row.peak.memory_bytes),
        Field(
            "memory_allocatable_bytes", "memory of nodes", Unit.BYTES, lambda row: row.room and row.room.memory_bytes
        ),
        Field("record", "record", Unit.TEXT, lambda row: "gap" if row.peak is None or row.room is None else ""),
    ),
    _rows,
)
_MARKS: Final = (Mark("--user", "requested by pods"), Mark("--node", "allocatable on nodes"))


def _figure(
    report: Report, key: str, what: str, requested: Sequence[float | None], room: Sequence[float | None]
) -> Figure | None:
    if not any(requested) and not any(room):
        return None
    starts = report.steps.starts()
    line: JSONObject = {
        "type": "scatter",
        "mode": "lines",
        "line": {"shape": "hv", "color": "--node", "width": 2},
        "connectgaps": False,
        "y": [None if value is None else round(value, 3) for value in room],
        "name": f"{what} allocatable on nodes",
        "hovertext": [time_label(report, start_us) for start_us in starts],
        "hovertemplate": "%{hovertext}<br>%{y:,.4~g} %{fullData.name}<extra></extra>",
    }
    data = [step_bars(report, f"{what} requested", "--user", requested), line]
    caption = f"{what}: the most in each step. Placeholders don't count."
    unknown = report[Capacity].unknown_nodes
    if unknown:
        caption += f" Of {unknown} node{'' if unknown == 1 else 's'} the size is not known."
    return time_figure(report, PODS, key, caption, marks=_MARKS, data=data, height=220)


def _cpu_figure(report: Report) -> Figure | None:
    rows = list(_rows(report))
    requested = [None if row.peak is None else row.peak.cpu_millicores / 1000 for row in rows]
    room = [None if row.room is None else row.room.cpu_millicores / 1000 for row in rows]
    return _figure(report, "cpu_over_time", "CPU", requested, room)


def _memory_figure(report: Report) -> Figure | None:
    rows = list(_rows(report))
    requested = [None if row.peak is None else row.peak.memory_bytes / _GIB for row in rows]
    room = [None if row.room is None else row.room.memory_bytes / _GIB for row in rows]
    return _figure(report, "memory_over_time", "GiB of memory", requested, room)


CAPACITY: Final = Section(
    "capacity",
    "Peak against capacity",
    Capacity,
    (TABLE,),
    (_cpu_figure, _memory_figure),
)
