"""Make the parts of figures, as JSON objects that the page's script draws: bars, axes, legends.
Pure.

Traces and layouts use a small part of Plotly's format. A colour is the name of a CSS variable, such
as "--user", so it follows the reader's light or dark scheme. The script shows texts as they are,
never as HTML. A name stands above its bar, not beside it: so the plot has a phone's whole width.
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
_LINE_PX: Final = 18
_BAR_PX: Final = 13
# Heights of the gap between names, of an axis with its labels, and of the title of an axis.
_GAP_PX: Final = 9
_AXIS_PX: Final = 46
TITLE_PX: Final = 18
# The least time on a logarithmic axis: pods have whole seconds. Shorter times are drawn there.
MIN_SECONDS: Final = 1.0
# Seconds on a logarithmic axis -> their labels.
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
# Distances between the times on an axis, from which `time_ticks` chooses.
_TICK_SECONDS: Final = (
    *(60 * minutes for minutes in (1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720)),
    *(DAY_SECONDS * days for days in (1, 2, 3, 7, 14, 28, 56, 112, 364, 728, 1456)),
)


@dataclass(frozen=True, slots=True)
class Mark:
    """One line of a legend: what a colour stands for."""

    colour: str
    name: str
    # "point", "line", "area", "gap" or "placeholder", which is hatched.
    shape: str = "area"


@dataclass(frozen=True, slots=True)
class Figure:
    """One plot."""

    # Its name in the page, unique there.
    key: str
    # A sentence.
    caption: str
    legend: tuple[Mark, ...]
    # Its traces.
    data: Sequence[JSONObject]
    layout: JSONObject
    # Fields that all traces without an `x` have in common, such as their `x`. They are written
    # once, since there may be many traces.
    common: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def height(self) -> int:
        """The drawing's height in px."""
        return int(self.layout["height"])

    def as_json(self) -> JSONObject:
        """What the page's script draws."""
        return {"data": list(self.data), "layout": self.layout, "common": self.common}


def log_axis(longest: float, shortest: float = MIN_SECONDS) -> JSONObject:
    """A logarithmic axis of seconds, with ticks.

    longest, shortest: of the times to draw, in seconds; MIN_SECONDS at least.
    """
    begin = max(seconds for seconds in TICKS if seconds <= shortest)
    ticks = [seconds for seconds in TICKS if begin <= seconds <= longest * 1.5]
    labels = [TICKS[seconds] for seconds in ticks]
    if shortest <= MIN_SECONDS:
        labels[0] = f"≤{labels[0]}"
    return {
        "type": "log",
        "range": [log10(begin) - 0.1, log10(max(longest, begin * 10)) + 0.15],
        "tickvals": ticks,
        "ticktext": labels,
    }


def time_ticks(from_us: int, to_us: int, zone: tzinfo = UTC) -> JSONObject:
    """The ticks of an axis of time: times that are round in the zone, with short labels.

    At most MAX_TICKS of them, as many as fit a phone's width. from_us, to_us: since 1970, UTC.
    """
    # What the zone's clocks show, in µs as if it were UTC.
    first_clock_us = from_us + offset_us(from_us, zone)
    last_clock_us = to_us + offset_us(to_us, zone)
    clocks_us = _round_times(first_clock_us, last_clock_us)
    are_whole_days = clocks_us.step >= DAY_SECONDS * US
    texts = []
    day_before = ""
    for clock_us in clocks_us:
        date = as_date(clock_us)
        day = f"{date.day} {date:%b}"
        if are_whole_days:
            texts.append(day)
        elif day != day_before:
            texts.append(f"{date:%H:%M}\n{day}")
        else:
            texts.append(f"{date:%H:%M}")
        day_before = day
    times = [time_text(_utc_of_clock(clock_us, zone)) for clock_us in clocks_us]
    return {"tickvals": times, "ticktext": texts}


def _round_times(first_us: int, last_us: int) -> range:
    """At most MAX_TICKS round times from the first to the last, as close together as can be.

    Over more than twenty years there are more, since no distance in _TICK_SECONDS is long enough.
    """
    for seconds in _TICK_SECONDS:
        step_us = seconds * US
        first_round_us = -(-first_us // step_us) * step_us
        times = range(first_round_us, last_us + 1, step_us)
        if len(times) <= MAX_TICKS:
            break
    return times


def _utc_of_clock(clock_us: int, zone: tzinfo) -> int:
    """When a zone's clocks show a time. Both are in µs since 1970."""
    # The offset at the shown time, taken for UTC, is that of a moment some hours off. The second
    # step has the right offset on the days on which clocks are changed, too.
    guess_us = clock_us - offset_us(clock_us, zone)
    return clock_us - offset_us(guess_us, zone)


def time_text(at_us: int) -> str:
    """A time as figures have it, in UTC: 2026-11-02 08:00:00. at_us: µs since 1970."""
    return as_date(at_us).strftime("%Y-%m-%d %H:%M:%S")


class Stack:
    """Lays out names and bars from top to bottom."""

    def __init__(self) -> None:
        # Height in px of what is laid out.
        self._depth = 0
        self._notes: list[JSONObject] = []
        # Index in _notes -> the whole name, which `figure` shortens.
        self._names: dict[int, str] = {}
        # Characters of the longest value at the right of a name.
        self._value_length = 0

    def name(self, name: str, value_text: str) -> None:
        """Add a name at the left and a value at the right.

        A name with spaces is a sentence: it gets several lines, and isn't shortened.
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
        middle = self._depth + _LINE_PX / 2
        for index, line in enumerate(lines):
            note = _note(line, 0, -(middle + index * _LINE_PX), "left", "--ink")
            if name:
                # The whole name appears below the mouse.
                note["hovertext"] = name
            self._notes.append(note)
        if value_text:
            self._notes.append(_note(value_text, 1, -middle, "right", "--quiet"))
        self._depth += _LINE_PX * len(lines)

    def bar(self) -> float:
        """Add a bar; returns where its middle is, in px: 0 is the top, and less is below."""
        middle = -(self._depth + _BAR_PX / 2)
        self._depth += _BAR_PX
        return middle

    def end(self) -> None:
        """Add the gap before the next name."""
        self._depth += _GAP_PX

    def figure(
        self,
        key: str,
        caption: str,
        legend: tuple[Mark, ...],
        data: Sequence[JSONObject],
        axis: JSONObject,
    ) -> Figure:
        """The figure of the whole stack. axis: further settings of the values' axis."""
        length = max(LEAST_LENGTH, LINE_LENGTH - self._value_length - 1)
        short = shorten(self._names.values(), length)
        for index, name in self._names.items():
            self._notes[index]["text"] = short[name]
        return Figure(key, caption, legend, data, self._layout(axis))

    def _layout(self, axis: JSONObject) -> JSONObject:
        layout = plot_layout(self._depth + _AXIS_PX)
        layout["annotations"] = self._notes
        layout["xaxis"] = axis
        margin = layout["margin"]
        axis_side = "b"
        if axis.get("side") == "top":
            axis_side = "t"
            margin |= {"t": margin["b"], "b": margin["t"]}
        if "title" in axis:
            layout["height"] += TITLE_PX
            margin[axis_side] += TITLE_PX
        layout["yaxis"] = {"range": [-self._depth, 0], "visible": False}
        return layout


def _note(text: str, x: float, y: float, xanchor: str, colour: str) -> JSONObject:
    """A text in a plot. x: 0 (left) to 1 (right). y: in px; 0 is the top, and less is below."""
    font = {"color": colour, "size": 12}
    return {"text": text, "x": x, "y": y, "yref": "y", "xanchor": xanchor, "font": font}


def plot_layout(height: int) -> JSONObject:
    """A layout, `height` px high, with room for a horizontal axis at the bottom."""
    # At the left and right: room for the half of the labels "0 min" and "100 %".
    return {"height": height, "margin": {"l": 18, "r": 22, "t": 4, "b": _AXIS_PX - 12}}
