"""Parts of figures for Plotly, as plain JSON objects: bars under names, axes, legends. Pure.

Colours are names of CSS variables ("--user"): the page puts in those of the reader's scheme. Every text that comes from
outside is escaped, for Plotly reads some HTML in texts. Names stand above what they name, not beside it, so that a
phone's width is left to the plot.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from math import log10
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Final

from roost.pages.moments import as_date

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

JSONObject = dict[str, Any]
US: Final = 1_000_000
NAME_LENGTH: Final = 26
# Characters of a line that fit a phone.
LINE_LENGTH: Final = 36
# Of a reason; the table has it whole.
MOST_LINES: Final = 4
# Heights in px: a line of text, a bar, room between names, an axis with its labels, one node's plot.
LINE, BAR, BETWEEN, AXIS, SMALL = 18, 13, 9, 46, 74
# Below this, spans can't be told apart on the logarithmic axis.
LEAST_SECONDS: Final = 0.01
# Seconds on a logarithmic axis, and how they are called.
TICKS: Final = (
    (0.01, "≤10 ms"),
    (0.1, "0.1 s"),
    (1, "1 s"),
    (10, "10 s"),
    (60, "1 min"),
    (600, "10 min"),
    (3600, "1 h"),
    (36_000, "10 h"),
    (360_000, "100 h"),
)

MOST_TICKS: Final = 5
_DAY: Final = 86_400
_TICK_SECONDS: Final = (
    *(60 * minutes for minutes in (1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720)),
    *(_DAY * days for days in (1, 2, 3, 7, 14, 28, 56, 112, 364, 728, 1456)),
)
PERCENTS: Final = {"tickvals": [0, 50, 100], "ticktext": ["0 %", "50 %", "100 %"]}


@dataclass(frozen=True, slots=True)
class Mark:
    """One line of a legend: what a colour stands for."""

    colour: str
    name: str
    # point, area or gap; a point may be square or diamond too.
    shape: str = "area"


@dataclass(frozen=True, slots=True)
class Figure:
    """One plot: its key in the page, what it shows in a sentence, its legend, and Plotly's data and layout."""

    key: str
    caption: str
    legend: tuple[Mark, ...]
    data: Sequence[JSONObject]
    layout: JSONObject

    @property
    def height(self) -> int:
        """In px."""
        return int(self.layout["height"])

    def as_json(self) -> JSONObject:
        """What the page's script draws."""
        return {"data": list(self.data), "layout": self.layout}


def short_names(names: Iterable[str]) -> dict[str, str]:
    """Names that fit a phone: an image's last part where that tells it from the others, else its end."""
    wanted = list(names)
    lasts = [name.rpartition("/")[2] for name in wanted]
    short = {}
    for name, last in zip(wanted, lasts, strict=True):
        one = last if lasts.count(last) == 1 else name
        short[name] = cut(one)
    return short


def log_axis(longest: float) -> JSONObject:
    """A logarithmic axis of spans up to so many seconds, above the plot, for that may be longer than a screen."""
    ticks = [(seconds, text) for seconds, text in TICKS if seconds <= longest * 1.5]
    return {
        "type": "log",
        "range": [log10(LEAST_SECONDS) - 0.3, log10(longest) + 0.15],
        "tickvals": [seconds for seconds, _ in ticks],
        "ticktext": [text for _, text in ticks],
        "side": "top",
    }


def time_ticks(from_us: int, to_us: int) -> JSONObject:
    """At most five round moments with short names: as many as a phone's width holds."""
    for seconds in _TICK_SECONDS:
        step_us = seconds * US
        moments = range(-(-from_us // step_us) * step_us, to_us + 1, step_us)
        if len(moments) <= MOST_TICKS:
            break
    texts = []
    before = ""
    for moment_us in moments:
        moment = as_date(moment_us)
        day = f"{moment.day} {moment:%b}"
        texts.append(day if seconds >= _DAY else f"{moment:%H:%M}" + (f"<br>{day}" if day != before else ""))
        before = day
    return {"tickvals": [time_text(moment_us) for moment_us in moments], "ticktext": texts}


def time_text(at_us: int) -> str:
    """A moment as Plotly reads it, UTC."""
    return as_date(at_us).strftime("%Y-%m-%d %H:%M:%S")


@dataclass(frozen=True, slots=True)
class Row:
    """One name with its bar: what stands left and right above it, its full name, the stacked values."""

    name: str
    told: str
    full_name: str
    values: Sequence[float]


def bars(
    key: str,
    caption: str,
    rows: Sequence[Row],
    marks: Sequence[tuple[str, str]],
    axis: JSONObject,
    *,
    legend: bool = True,
) -> Figure | None:
    """Stacked bars under their names; None of no rows. marks: colour and name of each of a row's values."""
    if not rows:
        return None
    stack = Stack()
    places = []
    for row in rows:
        stack.name(row.name, row.told)
        places.append(stack.bar())
        stack.end()
    highest = max(sum(row.values) for row in rows)
    data = [
        {
            "type": "bar",
            "orientation": "h",
            "x": [row.values[index] for row in rows],
            "y": places,
            "width": BAR - 1,
            "name": name,
            "marker": {"color": colour, "line": {"width": 0}},
            "hovertext": [f"{escape(row.full_name)}<br>{escape(row.told)}" for row in rows],
            "hoverinfo": "text",
        }
        for index, (colour, name) in enumerate(marks)
    ]
    layout = stack.layout({"range": [0, highest or 1], "nticks": 5, **axis})
    layout["barmode"] = "stack"
    shown = tuple(Mark(colour, name) for colour, name in marks) if legend else ()
    return Figure(key, caption, shown, data, layout)


class Stack:
    """Lays names and bars under each other, in px from the top."""

    def __init__(self) -> None:
        self._depth = 0
        self._notes: list[JSONObject] = []

    def name(self, name: str, told: str) -> None:
        """A name at the left, what is told of it at the right."""
        length = LINE_LENGTH - len(told) - 1
        lines = wrap(name, length, break_on_hyphens=False)[:MOST_LINES] if " " in name else [cut(name, length)]
        middle = self._depth + LINE / 2
        for index, line in enumerate(lines):
            self._notes.append(note(line, 0, -(middle + index * LINE), xanchor="left", yanchor="middle", yref="y"))
        if told:
            self._notes.append(note(told, 1, -middle, xanchor="right", yanchor="middle", yref="y", colour="--quiet"))
        self._depth += LINE * len(lines)

    def bar(self) -> float:
        """Room for a bar; where its middle is."""
        middle = -(self._depth + BAR / 2)
        self._depth += BAR
        return middle

    def end(self) -> None:
        """Room before the next name."""
        self._depth += BETWEEN

    def layout(self, axis: JSONObject) -> JSONObject:
        """Plotly's layout of it all; axis: more of the values' axis."""
        layout = plot_layout(self._depth + AXIS)
        layout["annotations"] = self._notes
        layout["xaxis"] = plot_axis(**axis)
        if axis.get("side") == "top":
            layout["margin"] |= {"t": layout["margin"]["b"], "b": layout["margin"]["t"]}
        layout["yaxis"] = plot_axis(range=[-self._depth, 0], visible=False)
        return layout


def note(
    text: str,
    x: float,
    y: float,
    *,
    xanchor: str,
    yanchor: str,
    yref: str = "paper",
    colour: str = "--ink",
) -> JSONObject:
    """A text in the plot."""
    return {
        "text": escape(text),
        "x": x,
        "y": y,
        "xref": "paper",
        "yref": yref,
        "xanchor": xanchor,
        "yanchor": yanchor,
        "showarrow": False,
        "borderpad": 0,
        "font": {"color": colour, "size": 12},
    }


def plot_axis(**more: Any) -> JSONObject:  # noqa: ANN401 - Plotly's own words
    """An axis in the page's looks."""
    return {
        "fixedrange": False,
        "zeroline": False,
        "gridcolor": "--grid",
        "linecolor": "--grid",
        "tickcolor": "--grid",
        "tickfont": {"color": "--quiet", "size": 11},
        "tickangle": 0,
        "automargin": True,
        **more,
    }


def plot_layout(height: int) -> JSONObject:
    """A layout in the page's looks, so many px high."""
    return {
        "height": height,
        "margin": {"l": 6, "r": 14, "t": 4, "b": AXIS - 12, "pad": 2},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": 'system-ui, "DejaVu Sans", sans-serif', "color": "--ink", "size": 12},
        "hoverlabel": {"bgcolor": "--card", "bordercolor": "--quiet", "font": {"color": "--ink"}, "align": "left"},
        "showlegend": False,
        "bargap": 0,
        "hovermode": "closest",
    }


def cut(name: str, length: int = NAME_LENGTH) -> str:
    """A name that is too long by its end, where names of one kind differ."""
    return name if len(name) <= length else "…" + name[-length + 1 :]
