"""The table of the report's sections, in the order of the page.

A section is a Section at the end of a file, with its numbers, tables and figures; the page and JSON
follow. To add one, copy failed_scheduling_attempts.py and add it here.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from roost_lab.pages.html_page import Part
from roost_lab.pages.table import Cell, Table, Unit
from roost_lab.report import (
    disks,
    failed_scheduling_attempts,
    gaps,
    key_figures,
    new_nodes,
    occupancy,
    pulls,
    removals,
    seated,
    slow_starts,
    start_phases,
    waits_after_binding,
)
from roost_lab.report.launches import AHEAD, BY_REPOSITORY
from roost_lab.report.statistics import FEWEST
from roost_lab.report.subject import Report, Section

SECTIONS: Final[tuple[Section, ...]] = (
    key_figures.SECTION,
    *(slow_starts.SECTION, slow_starts.SLOWEST, waits_after_binding.SECTION),
    *(start_phases.BY_CLASS, start_phases.BY_HUB, start_phases.BY_IMAGE, new_nodes.SECTION),
    seated.SECTION,
    *(BY_REPOSITORY, pulls.SECTION, AHEAD, occupancy.SECTION),
    *(failed_scheduling_attempts.SECTION, removals.SECTION, disks.SECTION, gaps.SECTION),
)


def tables(report: Report) -> list[Table]:
    """Every table of the report, including those without rows."""
    return [table.make(report) for section in SECTIONS for table in section.tables]


def parts(report: Report) -> list[Part]:
    """Every section of the page, with its figures and tables."""
    return [
        Part(
            section.key,
            section.title,
            section.about,
            [draw(report) for draw in section.figures],
            [_without_handfuls(table.make(report)) for table in section.tables],
            section.nothing,
        )
        for section in SECTIONS
    ]


def _without_handfuls(table: Table) -> Table:
    """For people: no percentiles of a handful. Programs get them, with the number they are of."""
    if not any(column.needs_many for column in table.columns):
        return table

    def few(number: Cell) -> bool:
        return isinstance(number, int) and number < FEWEST

    counted = next(index for index, column in enumerate(table.columns) if column.unit is Unit.COUNT)
    return replace(
        table,
        rows=[
            tuple(
                None if column.needs_many and few(row[counted]) else cell
                for column, cell in zip(table.columns, row, strict=True)
            )
            for row in table.rows
        ],
    )
