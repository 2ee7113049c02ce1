"""Write a sweep for a terminal: the most important figures as bars, then all of them in a table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from roost_lab.pages.phrases import plural
from roost_lab.pages.table import Table as PageTable
from roost_lab.pages.table import Unit
from roost_lab.simulator.reporting.amounts import (
    DASH,
    show_amount,
    show_bound,
    show_cell,
    show_change,
    show_range,
)
from roost_lab.simulator.reporting.context import ReportContext, notices
from roost_lab.simulator.reporting.tables import hubs, sensitivity, side_by_side
from roost_lab.simulator.sweep.measures import MEASURES, Measure
from roost_lab.simulator.sweep.summary import Summary

# Widths are in characters.
BAR_WIDTH: Final = 24
_EIGHTHS: Final = " ▏▎▍▌▋▊▉█"
BOUND_MARK: Final = "│"
# Of the table's columns: the first, with the figures' names, and those of the policies.
_FIGURE_WIDTH: Final = 28
_CELL_WIDTH: Final = 25


def to_text(summary: Summary, context: ReportContext, width: int) -> str:
    """The whole sweep as text. width: of the terminal, in characters."""
    console = Console(width=width, color_system=None, highlight=False)
    with console.capture() as captured:
        for part in _parts(summary, context, width):
            console.print(part)
    return "\n".join(line.rstrip() for line in captured.get().splitlines()) + "\n"


def bar(value: float, highest: float, bound: float | None) -> str:
    """A bar, drawn to an eighth of a character, with a mark where the bound is.

    highest: the value of a bar as long as BAR_WIDTH. bound: None, or beyond `highest`: no mark.
    """
    if highest <= 0:
        return " " * BAR_WIDTH
    eighths = round(max(0.0, value) / highest * BAR_WIDTH * 8)
    full, rest = divmod(min(eighths, BAR_WIDTH * 8), 8)
    drawn = "█" * full + (_EIGHTHS[rest] if rest else "")
    drawn = drawn.ljust(BAR_WIDTH)
    if bound is None or bound <= 0 or bound > highest:
        return drawn
    place = min(BAR_WIDTH - 1, int(bound / highest * BAR_WIDTH))
    return drawn[:place] + BOUND_MARK + drawn[place + 1 :]


def _parts(summary: Summary, context: ReportContext, width: int) -> Iterator[RenderableType]:
    yield Text(_head(summary, context))
    yield Text("")
    for measure in MEASURES:
        bars = _bars(summary, measure, width) if measure.is_headline else None
        if bars is not None:
            yield bars
            yield Text("")
    yield from _side_by_side(summary, width)
    for table in hubs(summary):
        yield Text("")
        yield _terminal_table(table)
    for name in summary.varied():
        yield Text("")
        yield _terminal_table(sensitivity(summary, name))
    yield Text("")
    for notice in notices(summary, context):
        yield Text(notice)
    counts = context.survey.counts
    if counts.skipped or counts.notes:
        yield Text("")
        for sentence in counts.sentences():
            yield Text(sentence)


def _head(summary: Summary, context: ReportContext) -> str:
    first_run = summary.runs[0, summary.policies[0]][0]
    seeds = plural(len(summary.seeds), "seed")
    text = f"{context.trace}: {first_run.attempts:,} attempts, {seeds}"
    first_world = summary.worlds[0]
    return f"{text}, {first_world.name}" if first_world.setting else text


def _bars(summary: Summary, measure: Measure, width: int) -> RenderableType | None:
    """A figure with a bar for each policy; None where it is 0 under all policies."""
    values = {policy: summary.value(measure.key, policy) for policy in summary.policies}
    known = {policy: value for policy, value in values.items() if value is not None}
    highest = max((value.greatest for value in known.values()), default=0.0)
    if not highest:
        return None
    bound = show_bound(measure, list(known.values()))
    title = measure.title
    if bound is not None:
        title += f"   bound {bound}"
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(overflow="ellipsis", no_wrap=True, max_width=max(12, width - BAR_WIDTH - 36))
    table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, min_width=BAR_WIDTH)
    table.add_column(no_wrap=True, justify="right")
    for policy, value in known.items():
        extent = show_range(value.least, value.greatest, measure.unit)
        change = None
        if policy != summary.policies[0]:
            change = summary.change(measure.key, policy)
        table.add_row(
            f"  {escape(policy)}",
            show_amount(value.median, measure.unit),
            # Without a dash it is the median again.
            extent if DASH in extent else "",
            Text(bar(value.median, highest, value.bound)),
            show_change(change),
        )
    return Group(Text(title), table)


def _side_by_side(summary: Summary, width: int) -> Iterator[RenderableType]:
    """The table of all figures, in parts with as many policies as fit beside each other."""
    policies_beside = max(1, (width - _FIGURE_WIDTH - 14) // _CELL_WIDTH)
    for first in range(0, len(summary.policies), policies_beside):
        if first:
            yield Text("")
        policies = summary.policies[first : first + policies_beside]
        yield _terminal_table(side_by_side(summary, policies, with_changes=False))


def _terminal_table(of_page: PageTable) -> RenderableType:
    """A table of the page for the terminal."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    for column in of_page.columns:
        is_text = column.unit is Unit.TEXT
        table.add_column(
            escape(column.heading), justify="left" if is_text else "right", no_wrap=is_text
        )
    for row in of_page.rows:
        texts = [
            escape(show_cell(cell, column.unit))
            for cell, column in zip(row, of_page.columns, strict=True)
        ]
        table.add_row(*texts)
    return table
