"""Occupancy: how many pods of each kind were on the nodes, on average in each step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Self

import sqlalchemy as sa

from roost_lab.pages.drawing import Figure, Mark
from roost_lab.pages.table import Unit
from roost_lab.recorder.recording.scheduler_model import BUILD, PLACEHOLDER, USER
from roost_lab.recorder.store import schema
from roost_lab.recorder.store.records import PODS
from roost_lab.report.gaps import gap_steps
from roost_lab.report.query import MAX_STEPS, Query, Rows, kept_apart, total
from roost_lab.report.statistics import Edges, busiest, means
from roost_lab.report.subject import Field, Report, Section, TableOf
from roost_lab.report.timeline import step_bars, time_figure, without_gaps

OTHER: Final = "other"
# Kind of pod -> its name for people, in the order in which they are stacked.
KINDS: Final[Mapping[str, str]] = {
    USER: "users",
    BUILD: "builds",
    PLACEHOLDER: "placeholders",
    OTHER: "others",
}


class MeansRow(NamedTuple):
    """A row of a table: a node or a step's start, and its means by kind."""

    key: str | int
    # None where pods may be missing.
    means: Mapping[str, float] | None

    @property
    def record(self) -> str:
        """Whether the record has a gap there."""
        return "gap" if self.means is None else ""

    def mean(self, kind: str) -> float | None:
        """The mean number of pods of a kind; None: not known."""
        return None if self.means is None else self.means.get(kind, 0.0)


@dataclass(slots=True)
class Occupancy:
    """Pods on nodes by kind, on average: in each step (a list), or over the window."""

    by_kind: dict[str, list[float]] = field(default_factory=dict)
    # Node -> kind -> mean over the window, the busiest node first.
    by_node: dict[str, dict[str, float]] = field(default_factory=dict)
    # Of nodes with placeholders: the steps in which they were there, and no other pod of a class.
    only_placeholders: dict[str, list[int]] = field(default_factory=dict)

    @classmethod
    def read(cls, query: Query) -> Self:
        """Averages of arrivals and departures."""
        steps = query.steps
        edges: dict[str, dict[str, Edges]] = {}
        all_nodes = {kind: Edges() for kind in KINDS}
        in_use: dict[str, Edges] = {}
        places = {row.id: row for row in query.rows(sa.select(schema.start_place))}
        for row in _stays(query):
            place_id, step = divmod(row.key, MAX_STEPS)
            place = places[place_id]
            kind = place.pod_class if place.pod_class in KINDS else OTHER
            for target in (
                edges.setdefault(place.node_name, {}).setdefault(kind, Edges()),
                all_nodes[kind],
            ):
                target.add(step, row.number, row.after_us)
            if place.pod_class not in ("", PLACEHOLDER):
                in_use.setdefault(place.node_name, Edges()).add(step, row.number, row.after_us)
        numbers = cls({kind: means(all_nodes[kind], steps) for kind in KINDS})
        by_node: dict[str, dict[str, float]] = {}
        for node, by_kind in edges.items():
            by_node[node] = {
                kind: sum(means(of_kind, steps)) / steps.number for kind, of_kind in by_kind.items()
            }
            if PLACEHOLDER in by_kind:
                placeholders = means(by_kind[PLACEHOLDER], steps)
                used = means(in_use.get(node, Edges()), steps)
                numbers.only_placeholders[node] = [
                    step for step in range(steps.number) if placeholders[step] and not used[step]
                ]
        # Users first: a node full of placeholders is an idle one.
        loads = {
            node: mean.get(USER, 0.0) * 1000 + sum(mean.values()) for node, mean in by_node.items()
        }
        in_order = busiest(loads, len(loads))
        numbers.by_node = {node: by_node[node] for node in in_order if loads[node]}
        return numbers


def _stays(query: Query) -> Rows:
    """Arrivals and departures of pods that were on a node within the steps.

    key (of the place and the step), number (departures: negative), after_us (the sum of how long
    after the step's start, with the sign of `number`).
    """
    steps = query.steps
    start = schema.start.c
    counts = []
    for sign, time_us, condition in (
        (1, start.bound_us, sa.true()),
        # A pod that was deleted before it was bound, by their clocks, leaves as it arrives.
        (
            -1,
            sa.case((start.deleted_us > start.bound_us, start.deleted_us), else_=start.bound_us),
            start.deleted_us < steps.to_us,
        ),
    ):
        inside_us = sa.case((time_us > steps.from_us, time_us - steps.from_us), else_=0)
        key = sa.cast(start.place_id, sa.BigInteger) * MAX_STEPS + inside_us // steps.step_us
        # Apart, so that each is looked up in an index: pods created within the steps, and those
        # from before.
        for present in (
            sa.and_(
                start.created_us >= steps.from_us,
                sa.or_(start.deleted_us.is_(None), start.deleted_us > steps.from_us),
            ),
            sa.and_(start.created_us < steps.from_us, start.deleted_us > steps.from_us),
            sa.and_(start.created_us < steps.from_us, start.deleted_us.is_(None)),
        ):
            rows = kept_apart(
                sa.select(key.label("key"), (inside_us % steps.step_us).label("after_us")).where(
                    present, start.bound_us < steps.to_us, condition, query.scope.has(start.pod_uid)
                )
            )
            number = sign * sa.func.count()
            after_us = sign * total(rows.c.after_us)
            sums = sa.select(rows.c.key, number.label("number"), after_us.label("after_us"))
            counts.append(sums.group_by(rows.c.key))
    return query.rows(sa.union_all(*counts))


def _kind_field(kind: str, name: str) -> Field[MeansRow]:
    return Field(name, name, Unit.MEAN, lambda row: row.mean(kind))


MEANS: Final = tuple(_kind_field(kind, name) for kind, name in KINDS.items())
FROM: Final[Field[MeansRow]] = Field("from", "from", Unit.TIME, lambda row: row.key)
NODE: Final[Field[MeansRow]] = Field("node", "node", Unit.TEXT, lambda row: row.key)
RECORD: Final[Field[MeansRow]] = Field("record", "record", Unit.TEXT, lambda row: row.record)


def _steps(report: Report) -> list[MeansRow]:
    by_kind = report[Occupancy].by_kind
    if not by_kind:
        return []
    gaps = gap_steps(report, PODS)
    rows: list[MeansRow] = []
    for index, start_us in enumerate(report.steps.starts()):
        means_of_step = {kind: values[index] for kind, values in by_kind.items()}
        rows.append(MeansRow(start_us, None if gaps[index] else means_of_step))
    return rows


def _nodes(report: Report) -> list[MeansRow]:
    return [MeansRow(node, means) for node, means in report[Occupancy].by_node.items()]


TABLES: Final = (
    TableOf(
        "occupancy_over_time",
        "Pods on nodes, on average in each step",
        (FROM, *MEANS, RECORD),
        _steps,
    ),
    TableOf(
        "occupancy_by_node",
        "Pods on each node, on average over the whole period",
        (NODE, *MEANS),
        _nodes,
    ),
)


def _figure(report: Report) -> Figure | None:
    drawn = {kind: values for kind, values in report[Occupancy].by_kind.items() if any(values)}
    if not drawn:
        return None
    shown = {kind: without_gaps(report, PODS, values) for kind, values in drawn.items()}
    data = [step_bars(report, KINDS[kind], f"--{kind}", values) for kind, values in shown.items()]
    marks = [
        Mark(f"--{kind}", KINDS[kind], PLACEHOLDER if kind == PLACEHOLDER else "area")
        for kind in drawn
    ]
    caption = "Pods on all nodes, on average in each step."
    return time_figure(
        report,
        PODS,
        "occupancy_over_time",
        caption,
        marks=marks,
        data=data,
        height=280,
        counted="pods",
    )


SECTION: Final = Section(
    "occupancy",
    "Pods on the nodes",
    Occupancy,
    TABLES,
    (_figure,),
    nothing="No pod was on a node in this period.",
)
