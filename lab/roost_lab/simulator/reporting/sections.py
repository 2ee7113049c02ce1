"""Make the page's sections: one function each, found by `SECTIONS`, in the page's order.

A new section is a function from a sweep and its context to parts, and its line in the table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from roost_lab.pages.html_page import Part
from roost_lab.simulator.reporting import figures as draw
from roost_lab.simulator.reporting import tables as lay_out
from roost_lab.simulator.sweep.measure_registry import MEASURES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from roost_lab.pages.table import Table
    from roost_lab.simulator.reporting.context import ReportContext
    from roost_lab.simulator.sweep.summary import Summary

_NOTHING: Final = "No server started in this replay."


def tables(summary: Summary, context: ReportContext) -> list[Table]:
    """Every table of the page; those without rows too."""
    return [table for part in parts(summary, context) for table in part.tables]


def parts(summary: Summary, context: ReportContext) -> list[Part]:
    """Every section of the page."""
    return [part for section in SECTIONS for part in section(summary, context)]


def _side_by_side(summary: Summary, context: ReportContext) -> Iterator[Part]:
    about = "Bounds are what no policy can beat; each is explained at the end."
    drawn = [draw.headline(summary, measure) for measure in MEASURES if measure.is_headline]
    laid_out = [lay_out.side_by_side(summary), lay_out.policies(context)]
    yield Part("side-by-side", "Side by side", about, drawn, laid_out, _NOTHING, beside=True)


def _waiting(summary: Summary, _context: ReportContext) -> Iterator[Part]:
    drawn = [draw.distribution(summary), draw.wait_parts(summary)]
    yield Part("waiting", "Waiting", "", drawn, [lay_out.waits(summary)], _NOTHING)


def _why_cold(summary: Summary, _context: ReportContext) -> Iterator[Part]:
    about = (
        "Images on no node can only be pulled ahead; those on full nodes need room kept where they are, or a second "
        "copy in time; those elsewhere with room were missed by the placement."
    )
    table = lay_out.why_cold(summary)
    yield Part("why-cold", "Why starts were cold", about, [draw.why_cold(summary)], [table], "No start was cold.")


def _over_time(summary: Summary, _context: ReportContext) -> Iterator[Part]:
    yield Part("over-time", "Over time", "", [draw.over_time(summary)], [lay_out.over_time(summary)], _NOTHING)


def _hubs(summary: Summary, _context: ReportContext) -> Iterator[Part]:
    about = "Hubs share the nodes; each has a release of its own, with as many placeholders as the values say."
    for table in lay_out.hubs(summary):
        yield Part("hubs", "By hub", "", [], [table], about)


def _sensitivity(summary: Summary, _context: ReportContext) -> Iterator[Part]:
    for name in summary.varied():
        key, title = f"by-{name.replace('_', '-')}", f"What {name} changes"
        drawn = [draw.sensitivity(summary, name, measure) for measure in lay_out.SENSITIVE]
        yield Part(key, title, "", drawn, [lay_out.sensitivity(summary, name)], _NOTHING, beside=True)


def _assumptions(summary: Summary, _context: ReportContext) -> Iterator[Part]:
    about = "Everything about the world that neither the trace nor the values say. Each can be set with --set."
    world = summary.worlds[0]
    changed = f"Changed from the defaults: {world.name}." if world.setting else "All at their defaults."
    yield Part("assumptions", "Assumptions", about, [], [lay_out.assumptions(summary)], changed)


def _bounds(_summary: Summary, _context: ReportContext) -> Iterator[Part]:
    yield Part("bounds", "Bounds", "", [], [lay_out.bounds()], "What each bound says, and of which figure.")


def _input(_summary: Summary, context: ReportContext) -> Iterator[Part]:
    yield Part("input", "The trace", "", [], [lay_out.lines_read(context)], "What was read and skipped.")


SECTIONS: Final[Sequence[Callable[[Summary, ReportContext], Iterator[Part]]]] = (
    _side_by_side,
    _waiting,
    _why_cold,
    _over_time,
    _hubs,
    _sensitivity,
    _assumptions,
    _bounds,
    _input,
)
