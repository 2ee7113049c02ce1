"""The types by which a subject of the report declares its numbers, tables, figures and section.

A subject, such as pulls, is one module: it has all from the query to the drawings. sections.py
lists the subjects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, tzinfo
from functools import partial
from typing import Any, Final, Generic, NamedTuple, Protocol, Self, TypeVar

from roost_lab.pages.drawing import Figure
from roost_lab.pages.table import Cell, Column, Table, Unit
from roost_lab.report.query import EVERY_POD, Query, Scope
from roost_lab.report.statistics import Span, Spans, Steps

NO_CLASS: Final = "no class"


class Numbers(Protocol):
    """The numbers of one subject.

    The class can be called without arguments: that gives the numbers of a database without records.
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

    # The time that the report is about.
    window: Span
    # The time from the first record to the last. None: the database has no records at all.
    extent: Span | None
    # The equal parts of the window, for plots over time.
    steps: Steps
    # Whether nothing at all was recorded in the window.
    is_empty: bool = True
    # Class of a subject's numbers -> these numbers.
    numbers: Mapping[type[Numbers], Numbers] = field(default_factory=dict)
    # Which pods the report is about.
    scope: Scope = EVERY_POD
    # The time zone in which the page shows times.
    zone: tzinfo = UTC
    # Hubs of the pods in the window.
    hubs: Sequence[str] = ()
    # The cluster's name; "": not known.
    cluster: str = ""
    # Key figures of the time before the window, which is as long; None: not all of it was recorded.
    previous: Report | None = None

    def __getitem__(self, kind: type[N]) -> N:
        numbers = self.numbers.get(kind)
        return numbers if isinstance(numbers, kind) else kind()


@dataclass(frozen=True, slots=True)
class Field(Column, Generic[R]):
    """A column of a table, with the function that reads its cell from a record of the table."""

    cell: Callable[[R], Cell]


class TableOf(NamedTuple, Generic[R]):
    """A table as a subject declares it: a row for each record, a cell for each field."""

    name: str
    title: str
    fields: Sequence[Field[R]]
    # Gives the records of a report.
    records: Callable[[Report], Iterable[R]]
    # Whether it is in the JSON only, not on the page.
    only_data: bool = False

    def make(self, report: Report) -> Table:
        """The table of a report, with its rows. The headings of times name the report's zone."""
        columns: list[Field[R]] = []
        for column in self.fields:
            if column.unit is Unit.TIME:
                columns.append(replace(column, heading=f"{column.heading} ({report.zone})"))
            else:
                columns.append(column)

        def make_row(record: R) -> tuple[Cell, ...]:
            return tuple(column.cell(record) for column in self.fields)

        rows = [make_row(record) for record in self.records(report)]
        return Table(self.name, self.title, tuple(columns), rows, self.only_data)


def percentile_fields(spans_of: Callable[[R], Spans | None]) -> tuple[Field[R], ...]:
    """The columns of the median and the 95th percentile, in seconds.

    spans_of: gives the durations of a record; None: they aren't known.
    """

    def percentile(record: R, share: float) -> Cell:
        spans = spans_of(record)
        return None if spans is None else spans.percentile_seconds(share)

    median = partial(percentile, share=0.5)
    percentile_95 = partial(percentile, share=0.95)
    return (
        Field("p50_seconds", "p50", Unit.SECONDS, median, needs_many=True),
        Field("p95_seconds", "p95", Unit.SECONDS, percentile_95, needs_many=True),
    )


class Section(NamedTuple):
    """One section of the page."""

    key: str
    title: str
    numbers: type[Numbers]
    tables: Sequence[TableOf[Any]]
    figures: Sequence[Callable[[Report], Figure | None]] = ()
    # A text under the title.
    about: str = ""
    # A text in place of the figures, when none of them has anything to draw.
    nothing: str = ""
