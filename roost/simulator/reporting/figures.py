"""Draw a sweep as figures for Plotly, in the looks of roost/pages/drawing.py. Pure.

Each policy has one colour and one dash throughout the page. Names from values files are escaped.
"""

from __future__ import annotations

from html import escape
from math import log10
from typing import TYPE_CHECKING, Any, Final

from roost.pages.dates import US
from roost.pages.drawing import (
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
    plot_axis,
    plot_layout,
    time_text,
    time_ticks,
)
from roost.pages.names import shorten
from roost.pages.table import Unit
from roost.simulator.engine.histogram import middle
from roost.simulator.engine.results import PARTS
from roost.simulator.reporting.amounts import show_amount, show_value
from roost.simulator.reporting.tables import PART_NAMES
from roost.simulator.sweep.measure_registry import BY_KEY, HOUR_MEASURES
from roost.simulator.sweep.summary import value_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from roost.simulator.engine.histogram import Histogram
    from roost.simulator.sweep.measure_registry import Measure
    from roost.simulator.sweep.summary import Summary, Value

HOUR: Final = 3600
# Policies that plots with lines show: more lines can't be told apart.
MOST_LINES: Final = 12
_COLOURS: Final = 6
_DASHES: Final = ("solid", "dash", "dot")
# Distributions begin here; shorter waits look alike.
LEAST_SECONDS: Final = 0.5
_POINTS: Final = 160
# Measure -> colour, and where the image was.
_WHYS: Final = {
    "cold_nowhere": ("--nowhere", "on no node"),
    "cold_only_full": ("--full", "only on full nodes"),
    "cold_elsewhere": ("--elsewhere", "elsewhere with room"),
}
_PART_COLOURS: Final = dict(zip(PARTS, ("--queue", "--node", "--behind", "--pull", "--start"), strict=True))
# Colours of policies, of where images were, of parts of a wait.
CSS: Final = """
:root {
  --p0: var(--blue); --p1: var(--orange); --p2: var(--green); --p3: var(--purple); --p4: var(--red); --p5: var(--grey);
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
        stack.name(policy, show_amount(value.median, measure.unit))
        places.append(stack.bar())
        stack.end()
    data: list[JSONObject] = [
        {
            "type": "bar",
            "orientation": "h",
            "x": [value.median for _, value in known],
            "y": places,
            "width": 12,
            "marker": {"color": "--p0", "line": {"width": 0}},
            "error_x": _range([value for _, value in known]),
            "hovertext": [_hover(policy, measure, value) for policy, value in known],
            "hoverinfo": "text",
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
                "marker": {"color": "--bound", "symbol": "line-ns-open", "size": 16, "line": {"width": 2}},
                "hovertext": [f"bound: {show_amount(bound, measure.unit)}" for _, bound in bounded],
                "hoverinfo": "text",
            }
        )
    axis = _value_axis(measure, highest * 1.05)
    return stack.figure(f"headline_{measure.key}", f"{measure.title.capitalize()}.", legend, data, axis)


def trade(summary: Summary) -> Figure | None:
    """Cold starts beside node-hours: what one costs of the other."""
    cold, hours = BY_KEY["cold"], BY_KEY["node_hours"]
    points = [
        (policy, starts, spent)
        for policy in summary.policies
        if (starts := summary.value(cold.key, policy)) is not None
        and (spent := summary.value(hours.key, policy)) is not None
    ]
    if not points:
        return None
    layout = plot_layout(340)
    greatest = (max(spent.greatest for _, _, spent in points), max(starts.greatest for _, starts, _ in points))
    layout["xaxis"] = plot_axis(title=_title("node-hours"), nticks=5, range=[0, greatest[0] * 1.06 or 1])
    layout["yaxis"] = plot_axis(title=_title("cold starts"), nticks=5, range=[0, greatest[1] * 1.08 or 1])
    layout["margin"] |= {"b": 60}
    data = [
        {
            "type": "scatter",
            "mode": "markers",
            "x": [spent.median],
            "y": [starts.median],
            "error_x": _range([spent]) | {"color": _colour(summary, policy)},
            "error_y": _range([starts]) | {"color": _colour(summary, policy)},
            "marker": {"color": _colour(summary, policy), "size": 10, "symbol": _symbol(summary, policy)},
            "hovertext": [f"{_hover(policy, cold, starts)}<br>{_amount_line(hours, spent)}"],
            "hoverinfo": "text",
        }
        for policy, starts, spent in points
    ]
    least = (
        min((spent.bound for _, _, spent in points if spent.bound is not None), default=None),
        min((starts.bound for _, starts, _ in points if starts.bound is not None), default=None),
    )
    layout["shapes"] = [
        _line(x=least[0]) if axis == "x" else _line(y=least[1]) for axis, one in zip("xy", least, strict=True) if one
    ]
    caption = "Cold starts and node-hours at once; nearer to the corner is better, dashed lines are bounds."
    return Figure("trade", caption, _marks(summary, [policy for policy, _, _ in points]), data, layout)


# Waiting


def distribution(summary: Summary) -> Figure | None:
    """The share of starts over how long they took, a line for each policy."""
    data: list[JSONObject] = []
    shown = []
    longest = 10.0
    for policy in summary.policies[:MOST_LINES]:
        waits = summary.waits(policy)
        if not waits.count:
            continue
        shown.append(policy)
        xs, ys = _cumulated(waits)
        longest = max(longest, waits.quantile(0.9995))
        data.append(
            {
                "type": "scatter",
                "mode": "lines",
                "x": xs,
                "y": ys,
                "line": {"color": _colour(summary, policy), "width": 2, "dash": _dash(summary, policy), "shape": "hv"},
                "name": escape(policy),
                "hovertemplate": "%{y:.2f} % within %{x:,.3~g} s<extra>%{fullData.name}</extra>",
            }
        )
    if not data:
        return None
    layout = plot_layout(320)
    ticks = [(seconds, text) for seconds, text in TICKS if 1 <= seconds <= longest * 1.5]
    layout["xaxis"] = plot_axis(
        type="log",
        range=[log10(LEAST_SECONDS), log10(longest) + 0.05],
        tickvals=[seconds for seconds, _ in ticks],
        ticktext=[text for _, text in ticks],
    )
    shares = [0, 25, 50, 75, 100]
    layout["yaxis"] = plot_axis(range=[0, 102], tickvals=shares, ticktext=[f"{share} %" for share in shares])
    caption = (
        "Share of starts that took no longer than so long, from the attempt until the server ran; all seeds together."
    )
    return Figure("distribution", caption, _marks(summary, shown), data, layout)


def _cumulated(waits: Histogram) -> tuple[list[float], list[float]]:
    """Where the share of starts within a time rises, in at most so many points."""
    seen, xs, ys = 0, [LEAST_SECONDS], [0.0]
    last = -1.0
    for index in sorted(waits.bins):
        seen += waits.bins[index]
        at, share = max(LEAST_SECONDS, middle(index)), 100 * seen / waits.count
        if share - last >= 100 / _POINTS or log10(at / xs[-1]) >= 0.02 or seen == waits.count:
            xs.append(round(at, 4))
            ys.append(round(share, 3))
            last = share
    return xs, ys


def wait_parts(summary: Summary) -> Figure | None:
    """Means of the parts of a wait, stacked."""
    rows = []
    for policy in summary.policies:
        means = [waits.mean if (waits := summary.waits(policy, part)).count else 0.0 for part in PARTS]
        if any(means):
            rows.append(Row(policy, show_amount(sum(means), Unit.SECONDS), means))
    marks = [(_PART_COLOURS[part], PART_NAMES[part]) for part in PARTS]
    return bars("wait_parts", "What a start waited for, on average.", rows, marks, {"ticksuffix": " s"})


# Cold starts


def why_cold(summary: Summary) -> Figure | None:
    """Cold starts by where the image was, stacked."""
    rows = []
    for policy in summary.policies:
        values = [summary.value(key, policy) for key in _WHYS]
        medians = [0.0 if value is None else value.median for value in values]
        if any(medians):
            rows.append(Row(policy, show_amount(sum(medians), Unit.COUNT), medians))
    caption = "Where the image was when a pod that needed it was bound to a node without it."
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
    layout["xaxis"] = plot_axis(type="date", range=[time_text(begin_us), time_text(end_us)], showgrid=False)
    layout["xaxis"] |= time_ticks(begin_us, end_us)
    layout["xaxis"]["anchor"] = "y" if len(shown) == 1 else f"y{len(shown)}"
    layout["annotations"] = []
    data: list[JSONObject] = []
    for index, measure in enumerate(shown):
        axis = "y" if index == 0 else f"y{index + 1}"
        top = 1 - (index * (SMALL + LINE + BETWEEN) + LINE) / inner
        layout[f"yaxis{axis[1:]}"] = plot_axis(
            domain=[max(0, top - SMALL / inner), top], rangemode="tozero", nticks=3, anchor="x"
        )
        layout["annotations"].append(note(measure.plot, 0, top, xanchor="left", yanchor="bottom"))
        data += [
            {
                "type": "scatter",
                "mode": "lines",
                "x": [time_text((begin + HOUR // 2) * US) for begin, _ in rows[policy]],
                "y": [round(amounts[measure.key], 3) for _, amounts in rows[policy]],
                "yaxis": axis,
                "line": {"color": _colour(summary, policy), "width": 1.5, "dash": _dash(summary, policy)},
                "name": escape(policy),
                "hovertemplate": "%{x|%a %d %b %H:%M} UTC<br>%{y:,.4~g}<extra>%{fullData.name}</extra>",
            }
            for policy in policies
            if rows[policy]
        ]
    return Figure("over_time", "By the hour, medians over seeds.", _marks(summary, policies), data, layout)


# What the world changes


def sensitivity(summary: Summary, name: str, key: str) -> Figure | None:
    """The measure `key` over the values of the assumption `name`, a line for each policy."""
    measure = BY_KEY[key]
    places = summary.varied()[name]
    texts = [str(value_of(summary.worlds[place], name)) for place in places]
    policies = summary.policies[:MOST_LINES]
    data: list[JSONObject] = []
    highest = 0.0
    shown = []
    for policy in policies:
        values = [summary.value(key, policy, place) for place in places]
        known = [(at, value) for at, value in enumerate(values) if value is not None]
        if not known:
            continue
        shown.append(policy)
        highest = max(highest, *(value.greatest for _, value in known))
        colour = _colour(summary, policy)
        data.append(
            {
                "type": "scatter",
                "mode": "lines+markers",
                "x": [at for at, _ in known],
                "y": [value.median for _, value in known],
                "error_y": _range([value for _, value in known]) | {"color": colour},
                "line": {"color": colour, "width": 1.5, "dash": _dash(summary, policy)},
                "marker": {"color": colour, "size": 7, "symbol": _symbol(summary, policy)},
                "hovertext": [f"{escape(texts[at])}<br>{_hover(policy, measure, value)}" for at, value in known],
                "hoverinfo": "text",
            }
        )
    if not highest:
        return None
    short = shorten(texts, 10)
    layout = plot_layout(240)
    layout["xaxis"] = plot_axis(
        range=[-0.3, len(places) - 0.7],
        tickvals=list(range(len(places))),
        ticktext=[escape(short[text]) for text in texts],
    )
    layout["yaxis"] = _value_axis(measure, highest * 1.05)
    caption = f"{measure.title.capitalize()}, by {name}."
    return Figure(f"by_{name}_{key}", caption, _marks(summary, shown), data, layout)


# Parts


def _range(values: Sequence[Value]) -> JSONObject:
    return {
        "type": "data",
        "symmetric": False,
        "array": [value.greatest - value.median for value in values],
        "arrayminus": [value.median - value.least for value in values],
        "color": "--quiet",
        "thickness": 1.5,
        "width": 3,
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
    return plot_axis(**axis)


def _title(text: str) -> JSONObject:
    return {"text": text, "font": {"color": "--quiet", "size": 11}, "standoff": 10}


def _line(*, x: float | None = None, y: float | None = None) -> JSONObject:
    ends: dict[str, Any] = (
        {"xref": "x", "x0": x, "x1": x, "yref": "paper", "y0": 0, "y1": 1}
        if x is not None
        else {"yref": "y", "y0": y, "y1": y, "xref": "paper", "x0": 0, "x1": 1}
    )
    return {"type": "line", "layer": "below", "line": {"color": "--bound", "width": 1, "dash": "dash"}, **ends}


def _hover(policy: str, measure: Measure, value: Value) -> str:
    return f"{escape(policy)}<br>{_amount_line(measure, value)}"


def _amount_line(measure: Measure, value: Value) -> str:
    bound = "" if value.bound is None else f"<br>bound {show_amount(value.bound, measure.unit)}"
    return f"{measure.title}: {show_value(value, measure.unit)}{bound}"


def _place(summary: Summary, policy: str) -> int:
    return list(summary.policies).index(policy)


def _colour(summary: Summary, policy: str) -> str:
    return f"--p{_place(summary, policy) % _COLOURS}"


def _dash(summary: Summary, policy: str) -> str:
    return _DASHES[_place(summary, policy) // _COLOURS % len(_DASHES)]


def _symbol(summary: Summary, policy: str) -> str:
    return ("circle", "square", "diamond")[_place(summary, policy) // _COLOURS % 3]


def _marks(summary: Summary, policies: Sequence[str]) -> tuple[Mark, ...]:
    shapes = ("point", "point square", "point diamond")
    return tuple(
        Mark(_colour(summary, policy), policy, shapes[_place(summary, policy) // _COLOURS % len(shapes)])
        for policy in policies
    )
