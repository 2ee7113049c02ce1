"""Draw a sweep as figures, in the looks of roost_lab/pages/drawing.py. Pure.

Each policy has a colour and a dash of its own throughout the page.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log10
from statistics import median
from typing import Final

from roost_lab.pages.dates import US
from roost_lab.pages.drawing import (
    AXIS,
    BETWEEN,
    LINE,
    SMALL,
    TICKS,
    Figure,
    JSONObject,
    Mark,
    Row,
    Stack,
    bars,
    note,
    plot_layout,
    time_text,
    time_ticks,
)
from roost_lab.pages.table import Unit
from roost_lab.simulator.engine.histogram import Histogram, middle
from roost_lab.simulator.engine.results import PARTS
from roost_lab.simulator.reporting.amounts import show_amount, show_change, show_value
from roost_lab.simulator.sweep.measures import HOUR_MEASURES, Measure
from roost_lab.simulator.sweep.summary import FigureChange, Summary, Value, change_of

HOUR: Final = 3600
# Policies that plots with lines show: more lines can't be told apart.
MOST_LINES: Final = 12
_DASHES: Final = ("solid", "dash", "dot")
# Distributions begin here; shorter waits look alike.
LEAST_SECONDS: Final = 0.5
_SHARES: Final = (100, 10, 1, 0.1, 0.01)
# Measure -> colour, and where the image was.
_WHYS: Final = {
    "cold_nowhere": ("--nowhere", "on no node"),
    "cold_only_full": ("--full", "only on full nodes"),
    "cold_elsewhere": ("--elsewhere", "elsewhere with room"),
}
# In the order of PARTS.
_PART_MARKS: Final = (
    ("--queue", "in the queue"),
    ("--node", "for a node"),
    ("--behind", "behind other pulls"),
    ("--pull", "pulling"),
    ("--start", "starting"),
)
# Colours of policies, of where images were, of parts of a wait.
CSS: Final = """
:root {
  --p0: var(--blue); --p1: var(--orange); --p2: var(--green); --p3: var(--purple); --p4: var(--red); --p5: var(--grey);
  --p6: color-mix(in srgb, var(--blue) 50%, var(--ink)); --p7: color-mix(in srgb, var(--orange) 50%, var(--ink));
  --p8: color-mix(in srgb, var(--green) 50%, var(--ink)); --p9: color-mix(in srgb, var(--purple) 50%, var(--ink));
  --p10: color-mix(in srgb, var(--red) 50%, var(--ink)); --p11: color-mix(in srgb, var(--grey) 50%, var(--ink));
  --nowhere: var(--grey); --full: var(--orange); --elsewhere: var(--red); --bound: var(--ink);
  --queue: var(--grey); --behind: var(--red); --start: var(--green);
}
"""


# Side by side


def headline(summary: Summary, measure: Measure) -> Figure | None:
    """A bar a policy with the range over seeds, and a line where the bound is."""
    known = [
        (policy, value) for policy in summary.policies if (value := summary.value(measure.key, policy)) is not None
    ]
    highest = max((value.greatest for _, value in known), default=0.0)
    if not highest:
        return None
    stack = Stack()
    places = []
    for policy, value in known:
        stack.name(policy, _with_change(show_amount(value.median, measure.unit), _change(summary, measure, policy)))
        places.append(stack.bar())
        stack.end()
    data: list[JSONObject] = [
        {
            "type": "bar",
            "orientation": "h",
            "x": [value.median for _, value in known],
            "y": places,
            "width": 12,
            "marker": {"color": [_colour(summary, policy) for policy, _ in known]},
            "error_x": _range([value for _, value in known]),
            "hovertext": [_hover(summary, policy, measure, value) for policy, value in known],
        }
    ]
    bounded = [(at, value.bound) for at, (_, value) in zip(places, known, strict=True) if value.bound is not None]
    legend: tuple[Mark, ...] = ()
    if bounded:
        legend = (Mark("--bound", "bound", "point"),)
        data.append(
            {
                "type": "scatter",
                "mode": "markers",
                "x": [bound for _, bound in bounded],
                "y": [at for at, _ in bounded],
                "marker": {"color": "--bound", "symbol": "line", "size": 16},
                "hovertext": [f"bound: {show_amount(bound, measure.unit)}" for _, bound in bounded],
            }
        )
    axis = _value_axis(measure, highest * 1.05)
    return stack.figure(f"headline_{measure.key}", f"{measure.title.capitalize()}.", legend, data, axis)


# Waiting


def distribution(summary: Summary) -> Figure | None:
    """The share of starts that took longer, over how long, a line for each policy; both axes are logarithmic."""
    data: list[JSONObject] = []
    shown = []
    longest, least = 10.0, 1.0
    for policy in summary.policies[:MOST_LINES]:
        points = _longer(summary.waits(policy))
        if not points:
            continue
        shown.append(policy)
        longest = max(longest, points[-1][0])
        least = min(least, points[-1][1])
        colour = _colour(summary, policy)
        data.append(
            {
                "type": "scatter",
                "mode": "lines",
                "x": [round(at, 4) for at, _ in points],
                "y": [float(f"{share:.4g}") for _, share in points],
                "line": {"color": colour, "width": 2, "dash": _dash(summary, policy), "shape": "hv"},
                "name": policy,
                "hover": "{name}\n{y} % take longer than {x} s",
            }
        )
    if not data:
        return None
    layout = plot_layout(320)
    ticks = [(seconds, text) for seconds, text in TICKS if 1 <= seconds <= longest * 1.5]
    layout["xaxis"] = {
        "type": "log",
        "range": [log10(LEAST_SECONDS), log10(longest) + 0.05],
        "tickvals": [seconds for seconds, _ in ticks],
        "ticktext": [text for _, text in ticks],
    }
    shares = [share for share in _SHARES if share >= least / 10]
    layout["yaxis"] = {
        "type": "log",
        "range": [log10(max(least, shares[-1])) - 0.1, 2.05],
        "tickvals": shares,
        "ticktext": [f"{share:g} %" for share in shares],
    }
    caption = (
        "Share of starts that took longer than so long, from the attempt until the server ran; medians over seeds."
    )
    return Figure("distribution", caption, _marks(summary, shown), data, layout)


def _longer(waits: Sequence[Histogram]) -> list[tuple[float, float]]:
    """Seconds and the percentage of starts that took longer, the median over seeds, in as many points as are seen."""
    points: list[tuple[float, float]] = []
    seen = [0] * len(waits)
    for index in sorted({index for one in waits for index in one.bins}):
        seen = [number + one.bins.get(index, 0) for number, one in zip(seen, waits, strict=True)]
        share = 100 * median(1 - number / one.count for number, one in zip(seen, waits, strict=True))
        at = max(LEAST_SECONDS, middle(index))
        if share <= 0:
            break
        if not points:
            points.append((LEAST_SECONDS, 100.0))
        if points[-1][0] < at and (log10(at / points[-1][0]) >= 0.02 or points[-1][1] / share >= 1.02):
            points.append((at, share))
    return points


def wait_parts(summary: Summary) -> Figure | None:
    """The parts of a wait, stacked."""
    rows = []
    first = _mean_waits(summary, summary.policies[0])
    for policy in summary.policies:
        each = _mean_waits(summary, policy)
        if any(map(any, each)):
            parts = [median(of_seed[place] for of_seed in each) for place in range(len(PARTS))]
            wholes = [sum(of_seed) for of_seed in each]
            change = change_of(zip(map(sum, first), wholes, strict=True)) if policy != summary.policies[0] else None
            rows.append(Row(policy, _with_change(show_amount(median(wholes), Unit.SECONDS), change), parts))
    caption = "What a start waited for on average, medians over seeds."
    return bars("wait_parts", caption, rows, _PART_MARKS, {"ticksuffix": " s"})


def _mean_waits(summary: Summary, policy: str) -> list[list[float]]:
    """The mean of each part, in each seed."""
    runs = summary.runs[0, policy]
    return [[run.waits[part].mean if part in run.waits else 0.0 for part in PARTS] for run in runs]


# Cold starts


def why_cold(summary: Summary) -> Figure | None:
    """Cold starts by where the image was, stacked."""
    rows = []
    first: tuple[float, ...] | None = None
    for policy in summary.policies:
        values = [summary.value(key, policy) for key in _WHYS]
        medians = [0.0 if value is None else value.median for value in values]
        wholes = tuple(map(sum, zip(*(value.each for value in values if value is not None), strict=True)))
        change = None if first is None else change_of(zip(first, wholes, strict=True))
        first = wholes if first is None else first
        if any(medians):
            rows.append(Row(policy, _with_change(show_amount(median(wholes), Unit.COUNT), change), medians))
    caption = "Where the image was when a pod that needed it was bound to a node without it; medians over seeds."
    return bars("why_cold", caption, rows, list(_WHYS.values()), {})


# Over time


def over_time(summary: Summary) -> Figure | None:
    """One plot for each figure, one line for each policy."""
    policies = summary.policies[:MOST_LINES]
    rows = {policy: summary.over_time(policy) for policy in policies}
    every_row = [row for policy in policies for row in rows[policy]]
    if not every_row:
        return None
    shown = [
        measure for measure in HOUR_MEASURES if measure.plot and any(amounts[measure.key] for _, amounts in every_row)
    ]
    inner = len(shown) * (SMALL + LINE + BETWEEN)
    layout = plot_layout(inner + AXIS)
    begin_us = min(begin for begin, _ in every_row) * US
    end_us = (max(begin for begin, _ in every_row) + HOUR) * US
    layout["xaxis"] = {"range": [time_text(begin_us), time_text(end_us)], "showgrid": False}
    layout["xaxis"] |= time_ticks(begin_us, end_us)
    layout["annotations"] = []
    data: list[JSONObject] = []
    for index, measure in enumerate(shown):
        axis = "y" if index == 0 else f"y{index + 1}"
        top = 1 - (index * (SMALL + LINE + BETWEEN) + LINE) / inner
        layout[f"yaxis{axis[1:]}"] = {"domain": [max(0, top - SMALL / inner), top], "nticks": 3}
        layout["annotations"].append(note(measure.plot, 0, top, xanchor="left"))
        data += [
            {
                "type": "scatter",
                "mode": "lines",
                "x": [time_text((begin + HOUR // 2) * US) for begin, _ in rows[policy]],
                "y": [round(amounts[measure.key], 3) for _, amounts in rows[policy]],
                "yaxis": axis,
                "line": {"color": _colour(summary, policy), "width": 1.5, "dash": _dash(summary, policy)},
                "name": policy,
                "hover": "{name}\n{x} UTC\n{y}",
            }
            for policy in policies
            if rows[policy]
        ]
    return Figure("over_time", "By the hour, medians over seeds.", _marks(summary, policies), data, layout)


# Parts


def _range(values: Sequence[Value]) -> JSONObject:
    return {
        "array": [value.greatest - value.median for value in values],
        "arrayminus": [value.median - value.least for value in values],
        "color": "--quiet",
    }


def _value_axis(measure: Measure, highest: float) -> JSONObject:
    axis: JSONObject = {"range": [0, highest], "nticks": 5}
    match measure.unit:
        case Unit.SECONDS:
            axis["ticksuffix"] = " s"
        case Unit.SHARE:
            axis["tickformat"] = ".0%"
        case _:
            axis["tickformat"] = ",~s" if highest >= 100_000 else ",~g"
    return axis


def _hover(summary: Summary, policy: str, measure: Measure, value: Value, world: int = 0) -> str:
    return f"{policy}\n{_amount_line(summary, policy, measure, value, world)}"


def _amount_line(summary: Summary, policy: str, measure: Measure, value: Value, world: int = 0) -> str:
    bound = "" if value.bound is None else f"\nbound {show_amount(value.bound, measure.unit)}"
    amount = _with_change(show_value(value, measure.unit), _change(summary, measure, policy, world))
    return f"{measure.title}: {amount}{bound}"


def _change(summary: Summary, measure: Measure, policy: str, world: int = 0) -> FigureChange | None:
    """Against the first policy; None for itself."""
    return summary.change(measure.key, policy, world) if policy != summary.policies[0] else None


def _with_change(amount: str, change: FigureChange | None) -> str:
    return f"{amount}, {show_change(change)}" if change is not None else amount


def _place(summary: Summary, policy: str) -> int:
    return list(summary.policies).index(policy)


def _colour(summary: Summary, policy: str) -> str:
    return f"--p{_place(summary, policy) % MOST_LINES}"


def _dash(summary: Summary, policy: str) -> str:
    return _DASHES[_place(summary, policy) // (MOST_LINES // 2) % len(_DASHES)]


def _marks(summary: Summary, policies: Sequence[str]) -> tuple[Mark, ...]:
    return tuple(Mark(_colour(summary, policy), policy, "point") for policy in policies)
