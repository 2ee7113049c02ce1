"""What a subject of the report declares: its numbers, and a section with tables and figures of
them.

A subject is one module, from its query to its drawings, and is registered in sections.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, tzinfo
from typing import Any, Final, Generic, NamedTuple, Protocol, Self, TypeVar

from roost_lab.pages.drawing import Figure
from roost_lab.pages.table import Cell, Column, Table, Unit
from roost_lab.report.query import EVERY_POD, Query, Scope
from roost_lab.report.statistics import Span, Spans, Steps

NO_CLASS: Final = "no class"


class Numbers(Protocol):
    """The numbers of one subject.

    Those made without arguments are the numbers of a database without records.
    """

    @classmethod
    def read(cls, query: Query) -> Self:
        """The numbers of the query's window. Raises StoreError."""


N = TypeVar("N", bound=Numbers)
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Report:
    """All numbers of a report: `report[Pulls]` are those of one subject.

    What is not known is absent, never 0.
    """

    window: Span
    # None: the database has no records at all.
    extent: Span | None
    steps: Steps
    # Whether nothing at all was recorded in the window.
    is_empty: bool = True
    numbers: Mapping[type[Numbers], Numbers] = field(default_factory=dict)
    scope: Scope = EVERY_POD
    # Of the page's times.
    zone: tzinfo = UTC
    # Hubs of the pods in the window, and the cluster's name ("": not known).
    hubs: Sequence[str] = ()
    cluster: str = ""
    # Key figures of the time before, as long as the window; None: not all of it was recorded.
    previous: Report | None = None

    def __getitem__(self, kind: type[N]) -> N:
        numbers = self.numbers.get(kind)
        return numbers if isinstance(numbers, kind) else kind()


@dataclass(frozen=True, slots=True)
class Field(Column, Generic[R]):
    """A column of a table, and how its cell is read from each of the table's records."""

    cell: Callable[[R], Cell]


class TableOf(NamedTuple, Generic[R]):
    """A table as it is declared: a row for each of the records, a cell for each field."""

    name: str
    title: str
    fields: Sequence[Field[R]]
    records: Callable[[Report], Iterable[R]]
    # In JSON, not on the page.
    only_data: bool = False

    def make(self, report: Report) -> Table:
        """The table with its rows."""
        columns = tuple(
            replace(column, heading=f"{column.heading} ({report.zone})")
            if column.unit is Unit.TIME
            else column
            for column in self.fields
        )
        rows = [
            tuple(column.cell(record) for column in self.fields) for record in self.records(report)
        ]
        return Table(self.name, self.title, columns, rows, self.only_data)


def percentile_fields(spans_of: Callable[[R], Spans | None]) -> tuple[Field[R], ...]:
    """The columns of the median and the 95th percentile. spans_of: of a row; None: not known."""

    def percentile(share: float) -> Callable[[R], Cell]:
        def read(row: R) -> Cell:
            spans = spans_of(row)
            return None if spans is None else spans.percentile_seconds(share)

        return read

    return (
        Field("p50_seconds", "p50", Unit.SECONDS, percentile(0.5), needs_many=True),
        Field("p95_seconds", "p95", Unit.SECONDS, percentile(0.95), needs_many=True),
    )


class Section(NamedTuple):
    """One section of the page."""

    key: str
    title: str
    numbers: type[Numbers]
    tables: Sequence[TableOf[Any]]
    figures: Sequence[Callable[[Report], Figure | None]] = ()
    # Under the title.
    about: str = ""
    # What the page says when none of the figures has anything to draw.
    nothing: str = ""
