"""Occupancy: how many pods of each kind were on the nodes, on average in each step."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, NamedTuple, Self

import sqlalchemy as sa

from roost_lab.pages.drawing import AXIS, BETWEEN, LINE, SMALL, Figure, JSONObject, Mark, names_of, note, plot_axis
from roost_lab.pages.table import Unit
from roost_lab.recorder.recording.model import BUILD, PLACEHOLDER, USER
from roost_lab.recorder.store import schema
from roost_lab.recorder.store.records import PODS
from roost_lab.report.gaps import unseen_steps
from roost_lab.report.query import MAX_STEPS, Query, Rows, total
from roost_lab.report.statistics import Edges, busiest, means
from roost_lab.report.subject import Field, Report, Section, TableOf, time_field
from roost_lab.report.timeline import step_bars, time_figure, without_gaps

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

OTHER: Final = "other"
# Kind of pod -> its name for people, in the order in which they are stacked.
KINDS: Final[Mapping[str, str]] = {USER: "users", BUILD: "builds", PLACEHOLDER: "placeholders", OTHER: "others"}
# Nodes whose occupancy is kept step by step; every node has its mean over the window.
MAX_NODES: Final = 50
# Nodes with a plot of their own.
MAX_PLOTS: Final = 8


@dataclass(slots=True)
class Occupancy:
    """Pods on nodes by kind, on average: in each step (a list), or over the window."""

    by_kind: dict[str, list[float]] = field(default_factory=dict)
    # Node -> kind -> means; the busiest nodes.
    by_node: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    # Node -> kind -> mean over the window; all nodes, the busiest first.
    mean_by_node: dict[str, dict[str, float]] = field(default_factory=dict)

    @classmethod
    def read(cls, query: Query) -> Self:
        """Averages of arrivals and departures."""
        steps = query.steps
        edges: dict[str, dict[str, Edges]] = {}
        all_nodes = {kind: Edges() for kind in KINDS}
        places = {row.id: row for row in query.rows(sa.select(schema.start_place))}
        for row in _stays(query):
            place_id, step = divmod(row.key, MAX_STEPS)
            place = places[place_id]
            kind = place.pod_class if place.pod_class in KINDS else OTHER
            for target in (edges.setdefault(place.node_name, {}).setdefault(kind, Edges()), all_nodes[kind]):
                target.add(step, row.number, row.after_us)
        numbers = cls({kind: means(all_nodes[kind], steps) for kind in KINDS})
        loads: dict[str, float] = {}
        mean_by_node: dict[str, dict[str, float]] = {}
        for node, by_kind in edges.items():
            mean = {kind: sum(means(of_kind, steps)) / steps.number for kind, of_kind in by_kind.items()}
            # Users first: a node full of placeholders is an idle one.
            loads[node] = mean.get(USER, 0.0) * 1000 + sum(mean.values())
            mean_by_node[node] = mean
        nodes = busiest(loads, len(loads))
        numbers.mean_by_node = {node: mean_by_node[node] for node in nodes if any(mean_by_node[node].values())}
        for node in nodes[:MAX_NODES]:
            numbers.by_node[node] = {kind: means(of_kind, steps) for kind, of_kind in edges[node].items()}
        return numbers


def _stays(query: Query) -> Rows:
    """Arrivals and departures of pods that were on a node within the steps.

    key (of the place and the step), number (departures: negative), after_us (the sum of how long after the step's
    start, with the sign of `number`).
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
        # Apart, so that each is looked up in an index: pods created within the steps, and those from before.
        for present in (
            sa.and_(
                start.created_us >= steps.from_us,
                sa.or_(start.deleted_us.is_(None), start.deleted_us > steps.from_us),
            ),
            sa.and_(start.created_us < steps.from_us, start.deleted_us > steps.from_us),
            sa.and_(start.created_us < steps.from_us, start.deleted_us.is_(None)),
        ):
            rows = (
                sa.select(key.label("key"), (inside_us % steps.step_us).label("after_us"))
                .where(present, start.bound_us < steps.to_us, condition, query.is_about(start.pod_uid))
                .offset(0)
                .subquery()
            )
            counts.append(
                sa.select(
                    rows.c.key,
                    (sign * sa.func.count()).label("number"),
                    (sign * total(rows.c.after_us)).label("after_us"),
                ).group_by(rows.c.key)
            )
    return query.rows(sa.union_all(*counts))


class _Row(NamedTuple):
    """Means of one node or step, or of both."""

    node: str
    start_us: int
    # None where pods may be missing.
    by_kind: Mapping[str, float] | None


def _kind_field(kind: str, name: str) -> Field[_Row]:
    return Field(name, name, Unit.MEAN, lambda row: None if row.by_kind is None else row.by_kind.get(kind, 0.0))


NODE: Final[Field[_Row]] = Field("node", "node", Unit.TEXT, lambda row: row.node)
FROM: Final[Field[_Row]] = time_field("from", "from", lambda row: row.start_us)
MEANS: Final = tuple(_kind_field(kind, name) for kind, name in KINDS.items())
RECORD: Final[Field[_Row]] = Field("record", "record", Unit.TEXT, lambda row: "gap" if row.by_kind is None else "")


def _over_time_rows(report: Report) -> Iterator[_Row]:
    by_kind, gaps = report[Occupancy].by_kind, unseen_steps(report, PODS)
    for index, start_us in enumerate(report.steps.starts() if by_kind else ()):
        yield _Row("", start_us, None if gaps[index] else {kind: values[index] for kind, values in by_kind.items()})


def _node_rows(report: Report) -> Iterator[_Row]:
    """A row for each of the busiest nodes and each step in which a pod was there."""
    gaps = unseen_steps(report, PODS)
    for node, by_kind in report[Occupancy].by_node.items():
        for index, start_us in enumerate(report.steps.starts()):
            values = {kind: series[index] for kind, series in by_kind.items()}
            if any(values.values()) and not gaps[index]:
                yield _Row(node, start_us, values)


TABLES: Final = (
    TableOf(
        "occupancy_over_time",
        "Pods on nodes, on average in each step",
        (FROM, *MEANS, RECORD),
        _over_time_rows,
    ),
    TableOf(
        "occupancy_by_node",
        "Pods on each node, on average over the whole period",
        (NODE, *MEANS),
        lambda report: (_Row(node, 0, mean) for node, mean in report[Occupancy].mean_by_node.items()),
    ),
    TableOf(
        "occupancy_of_nodes",
        "Pods on the busiest nodes, on average in each step",
        (NODE, FROM, *MEANS),
        _node_rows,
        only_data=True,
    ),
)


def _over_time_figure(report: Report) -> Figure | None:
    drawn = {kind: values for kind, values in report[Occupancy].by_kind.items() if any(values)}
    if not drawn:
        return None
    data = [_bars(report, kind, values) for kind, values in drawn.items()]
    caption = "Pods on all nodes, on average in each step."
    return time_figure(report, PODS, "occupancy_over_time", caption, marks=map(_mark, drawn), data=data, height=280)


def _by_node_figure(report: Report) -> Figure | None:
    """The busiest nodes, one small plot under the other, on the same scale."""
    numbers = report[Occupancy]
    nodes = {
        node: by_kind
        for node, by_kind in list(numbers.by_node.items())[:MAX_PLOTS]
        if any(any(values) for values in by_kind.values())
    }
    if not nodes:
        return None
    more = len(numbers.mean_by_node) - len(nodes)
    caption = f"The same on {'the busiest nodes' if more > 0 else 'each node'}, on one scale."
    if more > 0:
        caption += f" {more} more in the table."
    inner = len(nodes) * (SMALL + LINE + BETWEEN)
    highest = max(max(map(sum, zip(*by_kind.values(), strict=True))) for by_kind in nodes.values())
    marks = [_mark(kind) for kind in KINDS if any(kind in by_kind for by_kind in nodes.values())]
    data: list[JSONObject] = []
    figure = time_figure(report, PODS, "occupancy_by_node", caption, marks=marks, data=data, height=inner + AXIS)
    layout = figure.layout
    layout["annotations"] = []
    del layout["yaxis"]
    for index, (node, by_kind) in enumerate(nodes.items()):
        axis = "y" if index == 0 else f"y{index + 1}"
        top = 1 - (index * (SMALL + LINE + BETWEEN) + LINE) / inner
        layout[f"yaxis{axis[1:]}"] = plot_axis(
            domain=[max(0, top - SMALL / inner), top], range=[0, highest * 1.05], nticks=3, anchor="x"
        )
        layout["annotations"].append(note(node, 0, top, xanchor="left", yanchor="bottom", whole=node))
        data += [{**_bars(report, kind, by_kind[kind]), "yaxis": axis} for kind in KINDS if any(by_kind.get(kind, ()))]
    layout["xaxis"]["anchor"] = axis
    return replace(figure, names=names_of(dict(enumerate(nodes))))


def _mark(kind: str) -> Mark:
    return Mark(f"--{kind}", KINDS[kind])


def _bars(report: Report, kind: str, values: list[float]) -> JSONObject:
    return step_bars(report, KINDS[kind], f"--{kind}", without_gaps(report, PODS, values))


SECTION: Final = Section(
    "occupancy",
    "Pods on the nodes",
    Occupancy,
    TABLES,
    (_over_time_figure, _by_node_figure),
    nothing="No pod was on a node in this period.",
)
