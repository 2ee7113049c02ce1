"""Make a sweep's page: its head with a few numbers, and the sections of sections.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from roost_lab.pages.html_page import Tile, render
from roost_lab.simulator.reporting.amounts import show_amount, show_cell, show_change
from roost_lab.simulator.reporting.context import notices
from roost_lab.simulator.reporting.figures import CSS, MOST_LINES
from roost_lab.simulator.reporting.sections import parts
from roost_lab.simulator.sweep.measure_registry import MEASURES

if TYPE_CHECKING:
    from roost_lab.simulator.reporting.context import ReportContext
    from roost_lab.simulator.sweep.measure_registry import Measure
    from roost_lab.simulator.sweep.summary import Summary

TITLE: Final = "What these values would have done"


def make_page(summary: Summary, context: ReportContext) -> str:
    """The whole page."""
    return render(
        title=TITLE,
        about=_about(summary, context),
        footer=f"Replayed by Roost {context.version}. A replay is not a promise; its assumptions are listed above.",
        notices=_notices(summary, context),
        tiles=_tiles(summary),
        parts=parts(summary, context),
        show=show_cell,
        more_css=CSS,
    )


def _about(summary: Summary, context: ReportContext) -> str:
    seeds = ", ".join(map(str, summary.seeds))
    world = summary.worlds[0]
    run = summary.runs[0, summary.policies[0]][0]
    return (
        f"{context.trace}: {run.attempts:,} attempts to launch, replayed under "
        f"{_number(len(summary.policies), 'policy')} with seed{'' if len(summary.seeds) == 1 else 's'} {seeds}; "
        f"assumptions: {world.name}. All policies meet the same launches, session lengths, image sizes and "
        f"boot times in each seed. Every figure is the median over seeds; whiskers are their range.{_compared(summary)}"
    )


def _compared(summary: Summary) -> str:
    if len(summary.policies) == 1:
        return ""
    return f" Changes are against {summary.policies[0]}, seed by seed; their median is shown."


def _least_of(summary: Summary, measure: Measure, policy: str) -> str:
    first = summary.policies[0]
    change = show_change(summary.change(measure.key, policy)) if policy != first else ""
    return f"{policy}, {change} against {first}" if change else policy


def _number(number: int, what: str) -> str:
    return f"{number} {what if number == 1 else what.removesuffix('y') + 'ies'}"


def _notices(summary: Summary, context: ReportContext) -> list[str]:
    texts = notices(summary, context)
    if len(summary.policies) > MOST_LINES:
        texts.append(f"Plots with lines show the first {MOST_LINES} policies; bars and tables have all.")
    return texts


def _tiles(summary: Summary) -> list[Tile]:
    tiles = []
    for measure in MEASURES:
        if not measure.is_headline or measure.less_is_better is None:
            continue
        values = [(summary.value(measure.key, policy), policy) for policy in summary.policies]
        known = [(value.median, policy) for value, policy in values if value is not None]
        if known and any(amount for amount, _ in known):
            amount, policy = min(known)
            tiles.append(
                Tile(f"Least: {measure.title}", show_amount(amount, measure.unit), _least_of(summary, measure, policy))
            )
    return tiles
