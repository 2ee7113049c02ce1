"""Figures over time: stacked bars in equal steps, with the gaps in the record in grey."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from roost_core.objects.fields import JSONObject
from roost_lab.pages.dates import as_date
from roost_lab.pages.drawing import TITLE_PX, Figure, Mark, plot_layout, time_text, time_ticks
from roost_lab.report.gaps import gap_spans, gap_steps
from roost_lab.report.subject import Report

GAP: Final = Mark("--gap", "gap in the record", "gap")


def time_figure(
    report: Report,
    kind: str,
    key: str,
    caption: str,
    *,
    marks: Iterable[Mark],
    data: Sequence[JSONObject],
    height: int,
    counted: str,
) -> Figure:
    """A figure over the report's steps.

    kind: of the records whose gaps are shown. key, caption, marks, data: as of `Figure`; marks are
    its legend, without that of the gaps. height: of the plot, in px. counted: what the vertical
    axis counts, with its unit.
    """
    legend = tuple(marks)
    if gap_spans(report, kind):
        legend += (GAP,)
    starts = report.steps.starts()
    common = {
        "x": [time_text(start_us) for start_us in starts],
        "hovertext": [
            f"{as_date(start_us, report.zone):%a %d %b %H:%M} {report.zone}" for start_us in starts
        ],
    }
    layout = _layout(report, kind, height, counted)
    return Figure(key, caption, legend, data, layout, common=common)


def step_bars(report: Report, name: str, colour: str, values: Sequence[float | None]) -> JSONObject:
    """A trace for `time_figure`: a bar for each step's value; no bar where it is None."""
    return {
        "type": "bar",
        "y": [None if value is None else round(value, 3) for value in values],
        "width": report.steps.step_us // 1000,
        "name": name,
        "marker": {"color": colour},
        "hover": "{when}\n{y} {name}",
    }


def without_gaps(report: Report, kind: str, values: Sequence[float]) -> list[float | None]:
    """A value for each step, None where records of a kind may be missing."""
    return [
        None if gap else value for value, gap in zip(values, gap_steps(report, kind), strict=True)
    ]


def _layout(report: Report, kind: str, height: int, counted: str) -> JSONObject:
    steps = report.steps
    layout = plot_layout(height + 2 * TITLE_PX)
    layout["margin"]["t"] += TITLE_PX
    layout["margin"]["b"] += TITLE_PX
    layout["barmode"] = "stack"
    layout["xaxis"] = {
        "range": [time_text(steps.from_us), time_text(steps.to_us)],
        "showgrid": False,
        "title": f"time ({report.zone})",
    }
    layout["xaxis"] |= time_ticks(steps.from_us, steps.to_us, report.zone)
    layout["yaxis"] = {"nticks": 5, "title": counted}
    layout["shapes"] = []
    for gap in gap_spans(report, kind):
        if gap.to_us > steps.from_us and gap.from_us < steps.to_us:
            begin = time_text(max(gap.from_us, steps.from_us))
            end = time_text(min(gap.to_us, steps.to_us))
            layout["shapes"].append({"x0": begin, "x1": end, "fillcolor": "--gap"})
    return layout
