"""Gaps in the record: stretches of time in which something may be missing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple, Self

import sqlalchemy as sa

from roost_lab.pages.table import Unit
from roost_lab.recorder.store import schema
from roost_lab.report.query import Query
from roost_lab.report.statistics import Span, covered, unite
from roost_lab.report.subject import Field, Report, Section, TableOf
from roost_lab.units import US

EVERYTHING: Final = "everything"


class Gap(NamedTuple):
    """A stretch of time in which records of one kind may be missing."""

    # pods, nodes, events, or everything.
    kind: str
    span: Span
    why: str

    @property
    def seconds(self) -> float:
        """Its length."""
        return (self.span.to_us - self.span.from_us) / US


@dataclass(slots=True)
class Gaps:
    """The gaps in the window: those before and after the record, then those marked in it."""

    gaps: list[Gap] = field(default_factory=list)

    @classmethod
    def read(cls, query: Query) -> Self:
        """The gaps that are marked in the record, and the parts of the window outside it."""
        gap = schema.gap.c
        window = query.window
        extent = query.extent
        gaps = []
        if window.from_us < extent.from_us:
            before = Span(window.from_us, min(extent.from_us, window.to_us))
            gaps.append(Gap(EVERYTHING, before, "recording had not begun"))
        if window.to_us > extent.to_us:
            after = Span(max(extent.to_us, window.from_us), window.to_us)
            gaps.append(Gap(EVERYTHING, after, "nothing was recorded since"))
        begins_before_the_end = gap.from_us < window.to_us
        ends_after_the_beginning = gap.to_us > window.from_us
        recorded = (
            sa.select(gap.kind, gap.from_us, gap.to_us, gap.why)
            .where(begins_before_the_end, ends_after_the_beginning)
            .order_by(gap.from_us, gap.kind)
        )
        marked = [
            Gap(row.kind, Span(row.from_us, row.to_us), row.why) for row in query.rows(recorded)
        ]
        return cls([*gaps, *marked])


def gap_spans(report: Report, kind: str) -> list[Span]:
    """The stretches in which records of a kind may be missing, or records of all kinds."""
    return unite(gap.span for gap in report[Gaps].gaps if gap.kind in (kind, EVERYTHING))


def gap_steps(report: Report, kind: str) -> list[bool]:
    """For each step of the report: whether gaps in records of a kind cover half of it or more."""
    return covered(report.steps, gap_spans(report, kind))


TABLE: Final = TableOf[Gap](
    "gaps",
    "Gaps in the record",
    (
        Field("kind", "what may be missing", Unit.TEXT, lambda gap: gap.kind),
        Field("from", "from", Unit.TIME, lambda gap: gap.span.from_us),
        Field("to", "to", Unit.TIME, lambda gap: gap.span.to_us),
        Field("seconds", "length", Unit.SECONDS, lambda gap: gap.seconds),
        Field("why", "why", Unit.TEXT, lambda gap: gap.why),
    ),
    lambda report: report[Gaps].gaps,
)
SECTION: Final = Section("gaps", TABLE.title, Gaps, (TABLE,), about="Grey in the plots above.")
