"""Draw a sweep as figures, from the parts of roost_lab/pages/drawing.py. Pure.

A policy has the same colour in all figures of the page.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from roost_core.objects.fields import JSONObject
from roost_lab.pages.drawing import Figure, Mark, Stack
from roost_lab.pages.table import Unit
from roost_lab.simulator.reporting.amounts import show_amount, show_change, show_value
from roost_lab.simulator.sweep.measures import Measure
from roost_lab.simulator.sweep.summary import FigureChange, Summary, Value

# How many colours there are for policies. After the last they begin again.
_COLOURS: Final = 12
# Measure's key -> the caption of its figure. Other measures have their title.
_CAPTIONS: Final = {
    "cold": "Starts that download an image",
    "wait_p95": "95 of 100 people wait at most",
    "wait_p99": "99 of 100 people wait at most",
    "waited_for_node": "Starts that found no room",
}


def headline(summary: Summary, measure: Measure) -> Figure | None:
    """A bar for each policy with its range over seeds, and a line where its bound is.

    None where the figure is 0 under all policies.
    """
    values = [(policy, summary.value(measure.key, policy)) for policy in summary.policies]
    known = [(policy, value) for policy, value in values if value is not None]
    highest = max((value.greatest for _, value in known), default=0.0)
    if not highest:
        return None
    stack = Stack()
    # Where the middle of each bar is.
    places = []
    for policy, value in known:
        amount = show_amount(value.median, measure.unit)
        stack.name(policy, _with_change(amount, _change(summary, measure, policy)))
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
    bounds = [
        (place, value.bound)
        for place, (_, value) in zip(places, known, strict=True)
        if value.bound is not None
    ]
    legend: tuple[Mark, ...] = ()
    if bounds:
        legend = (Mark("--bound", "best possible", "line"),)
        data.append(
            {
                "type": "scatter",
                "mode": "markers",
                "x": [bound for _, bound in bounds],
                "y": [place for place, _ in bounds],
                "marker": {"color": "--bound", "symbol": "line", "size": 16},
                "hovertext": [f"bound: {show_amount(bound, measure.unit)}" for _, bound in bounds],
            }
        )
    axis = _value_axis(measure, highest * 1.05)
    caption = _CAPTIONS.get(measure.key, measure.title.capitalize())
    return stack.figure(f"headline_{measure.key}", caption, legend, data, axis)


def _colour(summary: Summary, policy: str) -> str:
    number = list(summary.policies).index(policy)
    return f"--p{number % _COLOURS}"


def _range(values: Sequence[Value]) -> JSONObject:
    """The lines from the least to the greatest value, on top of bars of the medians."""
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


def _hover(summary: Summary, policy: str, measure: Measure, value: Value) -> str:
    bound = "" if value.bound is None else f"\nbound {show_amount(value.bound, measure.unit)}"
    amount = _with_change(show_value(value, measure.unit), _change(summary, measure, policy))
    return f"{policy}\n{measure.title}: {amount}{bound}"


def _change(summary: Summary, measure: Measure, policy: str) -> FigureChange | None:
    """A policy's change against the first policy; None for the first policy itself."""
    if policy == summary.policies[0]:
        return None
    return summary.change(measure.key, policy)


def _with_change(amount: str, change: FigureChange | None) -> str:
    if change is None:
        return amount
    return f"{amount}, {show_change(change)}"
