"""The table of the report's sections, in the order of the page.

A section is one file that ends in SECTION: its numbers, tables and figures; the page, JSON and CSV follow.
To add one, copy failures.py (numbers of its own) or by_image.py (those of another) and add it here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from roost_lab.pages.html_page import Part
from roost_lab.report import (
    by_class,
    by_hub,
    by_image,
    by_node_age,
    failures,
    gaps,
    imported,
    key_figures,
    new_nodes,
    occupancy,
    pulls,
    pulls_by_node,
    removals,
    slowest,
    start_times,
)

if TYPE_CHECKING:
    from roost_lab.pages.table import Table
    from roost_lab.report.subject import Report, Section

SECTIONS: Final[tuple[Section, ...]] = tuple(
    module.SECTION
    for module in (
        key_figures,
        start_times,
        slowest,
        by_class,
        by_hub,
        by_image,
        by_node_age,
        new_nodes,
        pulls,
        occupancy,
        failures,
        pulls_by_node,
        removals,
        gaps,
        imported,
    )
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
            [table.make(report) for table in section.tables],
            section.nothing,
            section.beside,
        )
        for section in SECTIONS
    ]
