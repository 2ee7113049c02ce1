"""Who used the cluster, and how much of it there was: users, nodes, node-hours."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple, Self

import sqlalchemy as sa

from roost_lab.pages.table import Unit
from roost_lab.recorder.store import schema
from roost_lab.recorder.store.records import NODES
from roost_lab.report.gaps import unseen_steps
from roost_lab.report.node_lives import HOUR_US, node_lives
from roost_lab.report.query import Query, count
from roost_lab.report.starts import leading_classes
from roost_lab.report.statistics import Edges, means
from roost_lab.report.subject import Field, Report, Section, TableOf, time_field
from roost_lab.report.timeline import step_bars, time_figure, without_gaps

if TYPE_CHECKING:
    from collections.abc import Iterator

    from roost_lab.pages.drawing import Figure


@dataclass(slots=True)
class Usage:
    """Users that started something, and nodes, in the window."""

    # Different names of the leading classes' pods.
    users: int = 0
    nodes: int = 0
    # None: no node was recorded.
    node_hours: float | None = None
    # Nodes on average in each step; empty if no node was recorded.
    by_step: list[float] = field(default_factory=list)

    @classmethod
    def read(cls, query: Query) -> Self:
        """Nodes last until they were seen to go, or until the record's end."""
        pod = schema.pod.c
        named = (
            sa.select(pod.namespace, pod.name)
            .where(query.within(pod.created_us, pod.uid), pod.pod_class.in_(leading_classes(query)))
            .distinct()
            .subquery()
        )
        (users,) = query.rows(sa.select(count()).select_from(named))
        numbers = cls(users.number)
        edges = Edges()
        lasted_us = 0
        for life in node_lives(query):
            numbers.nodes += 1
            lasted_us += life.to_us - life.from_us
            edges.add_span(life.from_us, life.to_us, query.steps)
        if numbers.nodes:
            numbers.node_hours = lasted_us / HOUR_US
            numbers.by_step = means(edges, query.steps)
        return numbers


class _Step(NamedTuple):
    start_us: int
    # None where nodes may be missing.
    nodes: float | None


def _steps(report: Report) -> Iterator[_Step]:
    gaps = unseen_steps(report, NODES)
    for start_us, nodes, gap in zip(report.steps.starts(), report[Usage].by_step, gaps, strict=False):
        yield _Step(start_us, None if gap else nodes)


NODES_OVER_TIME: Final = TableOf[_Step](
    "nodes_over_time",
    "Nodes, on average in each step",
    (
        time_field("from", "from", lambda row: row.start_us),
        Field("nodes", "nodes", Unit.MEAN, lambda row: row.nodes),
        Field("record", "record", Unit.TEXT, lambda row: "gap" if row.nodes is None else ""),
    ),
    _steps,
)


def _figure(report: Report) -> Figure | None:
    by_step = report[Usage].by_step
    if not by_step:
        return None
    data = [step_bars(report, "nodes", "--node", without_gaps(report, NODES, by_step))]
    return time_figure(report, NODES, "nodes_over_time", f"{NODES_OVER_TIME.title}.", marks=(), data=data, height=200)


NODES_SECTION: Final = Section("nodes", "Nodes", Usage, (NODES_OVER_TIME,), (_figure,))
