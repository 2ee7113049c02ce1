"""What nodes cost, over time and by price: node-hours times the prices that the reader gave. None is ever guessed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from roost_lab.pages.table import Unit
from roost_lab.recorder.store.records import NODES
from roost_lab.report.gaps import unseen_steps
from roost_lab.report.node_lives import HOUR_US, node_lives
from roost_lab.report.prices import Price, price_of
from roost_lab.report.statistics import Edges, means
from roost_lab.report.subject import Field, Report, Section, TableOf, time_field
from roost_lab.report.timeline import step_bars, time_figure, without_gaps

if TYPE_CHECKING:
    from collections.abc import Iterator

    from roost_lab.pages.drawing import Figure
    from roost_lab.report.query import Query


class _Priced(NamedTuple):
    """The nodes of one price."""

    price: Price
    nodes: int
    hours: float

    @property
    def cost(self) -> float:
        return self.hours * self.price.per_hour


class _Unpriced(NamedTuple):
    """A node that no price fits."""

    node: str
    hours: float


@dataclass(slots=True)
class Costs:
    """Costs of the window's nodes; everything is empty where no price was given."""

    by_price: list[_Priced] = field(default_factory=list)
    # Cost of each step.
    by_step: list[float] = field(default_factory=list)
    # By name; a name that several nodes had is there several times.
    unpriced: list[_Unpriced] = field(default_factory=list)

    @classmethod
    def read(cls, query: Query) -> Self:
        """Each node has the first price that fits its last reported labels."""
        numbers = cls()
        if not query.prices:
            return numbers
        steps = query.steps
        found: dict[Price, list[float]] = {price: [] for price in query.prices}
        edges = {price: Edges() for price in query.prices}
        for life in node_lives(query):
            price = price_of(life.labels, query.prices)
            if price is None:
                numbers.unpriced.append(_Unpriced(life.name, life.hours))
                continue
            found[price].append(life.hours)
            edges[price].add_span(life.from_us, life.to_us, steps)
        numbers.by_price = [_Priced(price, len(hours), sum(hours)) for price, hours in found.items()]
        step_hours = steps.step_us / HOUR_US
        nodes = {price: means(of_price, steps) for price, of_price in edges.items()}
        numbers.by_step = [
            sum(values[index] * step_hours * price.per_hour for price, values in nodes.items())
            for index in range(steps.number)
        ]
        return numbers

    @property
    def unused(self) -> list[Price]:
        """Prices that no node has: a slip in the label, most likely."""
        return [row.price for row in self.by_price if not row.nodes]

    @property
    def total(self) -> float | None:
        """The cost of all nodes that have a price; None where none was given."""
        return sum(row.cost for row in self.by_price) if self.by_price else None


def unused_prices(report: Report) -> list[str]:
    """A sentence for each price that no node has."""
    return [
        f"--price {price}: fits no node of this period; expected a label and value that nodes have, on "
        "nodes that no earlier --price fits."
        for price in (() if report.is_empty else report[Costs].unused)
    ]


class _Step(NamedTuple):
    start_us: int
    # None where nodes may be missing.
    cost: float | None


def _steps(report: Report) -> Iterator[_Step]:
    gaps = unseen_steps(report, NODES)
    for start_us, cost, gap in zip(report.steps.starts(), report[Costs].by_step, gaps, strict=False):
        yield _Step(start_us, None if gap else cost)


BY_PRICE: Final = TableOf[_Priced](
    "costs",
    "Costs by price",
    (
        Field("nodes_with", "nodes with", Unit.TEXT, lambda row: str(row.price)),
        Field("nodes", "nodes", Unit.COUNT, lambda row: row.nodes),
        Field("node_hours", "node-hours", Unit.MEAN, lambda row: row.hours),
        Field("price_per_hour", "price per hour", Unit.COST, lambda row: row.price.per_hour),
        Field("cost", "cost", Unit.COST, lambda row: row.cost),
    ),
    lambda report: report[Costs].by_price,
)
UNPRICED: Final = TableOf[_Unpriced](
    "nodes_without_price",
    "Nodes without a price, whose costs are missing here",
    (
        Field("node", "node", Unit.TEXT, lambda row: row.node),
        Field("node_hours", "node-hours", Unit.MEAN, lambda row: row.hours),
    ),
    lambda report: report[Costs].unpriced,
)
OVER_TIME: Final = TableOf[_Step](
    "costs_over_time",
    "Costs in each step",
    (
        time_field("from", "from", lambda row: row.start_us),
        Field("cost", "cost", Unit.COST, lambda row: row.cost),
        Field("record", "record", Unit.TEXT, lambda row: "gap" if row.cost is None else ""),
    ),
    _steps,
)


def _figure(report: Report) -> Figure | None:
    by_step = report[Costs].by_step
    if not any(by_step):
        return None
    data = [step_bars(report, "in the currency of the prices", "--node", without_gaps(report, NODES, by_step))]
    return time_figure(report, NODES, "costs_over_time", f"{OVER_TIME.title}.", marks=(), data=data, height=200)


COSTS: Final = Section(
    "costs",
    "Costs",
    Costs,
    (BY_PRICE, UNPRICED, OVER_TIME),
    (_figure,),
    nothing="No node has a price: give prices with --price LABEL=VALUE:PRICE.",
)
