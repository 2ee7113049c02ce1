"""Parts of figures, as plain JSON objects that the page's script draws: bars under names, axes,
legends. Pure.

Traces and layouts are a small part of Plotly's format. Colours are names of CSS variables
("--user"), which follow the reader's scheme. Texts are only texts. Names stand above what they
name, not beside it, to leave a phone's width to the plot.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from math import log10
from textwrap import wrap
from typing import Final

from roost_core.objects.fields import JSONObject
from roost_lab.pages.dates import as_date, offset_us
from roost_lab.pages.names import LEAST_LENGTH, shorten
from roost_lab.units import DAY_SECONDS, US

# Characters in a line that fits a phone.
LINE_LENGTH: Final = 36
# Most lines of a sentence; the table shows it in full.
MAX_LINES: Final = 4
# Heights in px: of a line of text and of a bar.
LINE: Final = 18
BAR: Final = 13
# Heights of the gap between names, of an axis with its labels, and of the titles of axes.
BETWEEN: Final = 9
AXIS: Final = 46
TITLE: Final = 18
# Pods have whole seconds: shorter times are drawn like this one on the logarithmic axis.
MIN_SECONDS: Final = 1.0
# Seconds on a logarithmic axis, and their labels.
TICKS: Final = {
    1: "1 s",
    10: "10 s",
    60: "1 min",
    600: "10 min",
    3600: "1 h",
    36_000: "10 h",
    360_000: "100 h",
}
MAX_TICKS: Final = 5
_TICK_SECONDS: Final = (
    *(60 * minutes for minutes in (1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720)),
    *(DAY_SECONDS * days for days in (1, 2, 3, 7, 14, 28, 56, 112, 364, 728, 1456)),
)


@dataclass(frozen=True, slots=True)
class Mark:
    """One line of a legend: what a colour stands for."""

    colour: str
    name: str
    # point, line, area, gap, or placeholder: hatched.
    shape: str = "area"


@dataclass(frozen=True, slots=True)
class Figure:
    """One plot: its key in the page, its caption (a sentence), its legend, its traces and its
    layout.
    """

    key: str
    caption: str
    legend: tuple[Mark, ...]
    data: Sequence[JSONObject]
    layout: JSONObject
    # What all traces without an `x` have in common, their `x` for one: written once, as there may
    # be many.
    common: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def height(self) -> int:
        """The drawing's height in px."""
        return int(self.layout["height"])

    def as_json(self) -> JSONObject:
        """What the page's script draws."""
        return {"data": list(self.data), "layout": self.layout, "common": self.common}


def log_axis(longest: float, shortest: float = MIN_SECONDS) -> JSONObject:
    """A logarithmic axis of seconds, with ticks. shortest: MIN_SECONDS at least."""
    least = max(edge for edge in TICKS if edge <= shortest)
    ticks = [(edge, text) for edge, text in TICKS.items() if least <= edge <= longest * 1.5]
    if shortest <= MIN_SECONDS:
        ticks[0] = (least, f"≤{ticks[0][1]}")
    return {
        "type": "log",
        "range": [log10(least) - 0.1, log10(max(longest, least * 10)) + 0.15],
        "tickvals": [edge for edge, _ in ticks],
        "ticktext": [text for _, text in ticks],
    }


def time_ticks(from_us: int, to_us: int, zone: tzinfo = UTC) -> JSONObject:
    """At most five times that are round in the zone, with short labels: as many as fit a phone's
    width.
    """
    # What the zone's clocks show, in µs as if it were UTC.
    first = from_us + offset_us(from_us, zone)
    last = to_us + offset_us(to_us, zone)
    for seconds in _TICK_SECONDS:
        step_us = seconds * US
        shown_us = range(-(-first // step_us) * step_us, last + 1, step_us)
        if len(shown_us) <= MAX_TICKS:
            break
    texts = []
    before = ""
    for at_us in shown_us:
        date = as_date(at_us)
        day = f"{date.day} {date:%b}"
        text = day if seconds >= DAY_SECONDS else f"{date:%H:%M}"
        if seconds < DAY_SECONDS and day != before:
            text += f"\n{day}"
        texts.append(text)
        before = day
    # Where clocks are changed, an hour is there twice or not at all: the second guess is the right
    # one.
    guesses = (at_us - offset_us(at_us, zone) for at_us in shown_us)
    times = [
        time_text(at_us - offset_us(guess, zone))
        for at_us, guess in zip(shown_us, guesses, strict=True)
    ]
    return {"tickvals": times, "ticktext": texts}


def time_text(at_us: int) -> str:
    """A time in a figure, UTC."""
    return as_date(at_us).strftime("%Y-%m-%d %H:%M:%S")


class Stack:
    """Lays out names and bars from top to bottom, in px."""

    def __init__(self) -> None:
        self._depth = 0
        self._notes: list[JSONObject] = []
        # Index of the note -> the whole name.
        self._names: dict[int, str] = {}
        # Characters of the longest value beside a name.
        self._value_length = 0

    def name(self, name: str, value_text: str) -> None:
        """Add a name at the left and a value at the right.

        What has spaces is a sentence, which gets several lines.
        """
        length = LINE_LENGTH - len(value_text) - 1
        self._value_length = max(self._value_length, len(value_text))
        lines = [name]
        if " " in name:
            lines = wrap(
                name, length, break_on_hyphens=False, max_lines=MAX_LINES, placeholder=" …"
            )
        else:
            self._names[len(self._notes)] = name
        middle = self._depth + LINE / 2
        for index, line in enumerate(lines):
            # The whole name appears below the mouse.
            text = _note(line, 0, -(middle + index * LINE), "left", "--ink")
            self._notes.append({"hovertext": name, **text} if name else text)
        if value_text:
            self._notes.append(_note(value_text, 1, -middle, "right", "--quiet"))
        self._depth += LINE * len(lines)

    def bar(self) -> float:
        """Add a bar; returns the position of its middle."""
        middle = -(self._depth + BAR / 2)
        self._depth += BAR
        return middle

    def end(self) -> None:
        """Add the gap before the next name."""
        self._depth += BETWEEN

    def figure(
        self,
        key: str,
        caption: str,
        legend: tuple[Mark, ...],
        data: Sequence[JSONObject],
        axis: JSONObject,
    ) -> Figure:
        """The figure of the whole stack. axis: further settings of the values' axis."""
        short = shorten(
            self._names.values(), max(LEAST_LENGTH, LINE_LENGTH - self._value_length - 1)
        )
        for index, name in self._names.items():
            self._notes[index]["text"] = short[name]
        return Figure(key, caption, legend, data, self._layout(axis))

    def _layout(self, axis: JSONObject) -> JSONObject:
        layout = plot_layout(self._depth + AXIS)
        layout["annotations"] = self._notes
        layout["xaxis"] = axis
        if axis.get("side") == "top":
            layout["margin"] |= {"t": layout["margin"]["b"], "b": layout["margin"]["t"]}
        if "title" in axis:
            layout["height"] += TITLE
            layout["margin"]["t" if axis.get("side") == "top" else "b"] += TITLE
        layout["yaxis"] = {"range": [-self._depth, 0], "visible": False}
        return layout


def _note(text: str, x: float, y: float, xanchor: str, colour: str) -> JSONObject:
    font = {"color": colour, "size": 12}
    return {"text": text, "x": x, "y": y, "yref": "y", "xanchor": xanchor, "font": font}


def plot_layout(height: int) -> JSONObject:
    """A layout, `height` px high."""
    # Room for half of "0 min" and of "100 %" beside the axis.
    return {"height": height, "margin": {"l": 18, "r": 22, "t": 4, "b": AXIS - 12}}
