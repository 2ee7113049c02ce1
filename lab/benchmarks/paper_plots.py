"""Draw two figures against each other as SVG: points with intervals, their names beside, and the
Pareto front.

Pure, and needs nothing but text. The drawing follows the reader's light or dark scheme.
"""

from __future__ import annotations

from html import escape
from math import floor, log10
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.figures import Interval

# In px: the drawing; the plot's left, top, right and bottom edges; where names begin; the height of
# a name.
WIDTH = 780
HEIGHT = 420
LEFT = 70
TOP = 16
RIGHT = 520
BOTTOM = 366
NAMES = 548
LINE = 18
MOST_TICKS: Final = 6
# Of the range, left free at each side.
MARGIN: Final = 0.06
STYLE: Final = """\
text { font: 13px system-ui, sans-serif; fill: #222 }
.axis, .grid { stroke: #888; stroke-width: 1 } .grid { stroke: #ddd }
.range { stroke: #777; stroke-width: 1.2 } .ours .range { stroke: #b3530a }
.mark { fill: #fff; stroke: #555; stroke-width: 1.6 } .front .mark { fill: #555 }
.ours .mark { stroke: #b3530a } .ours.front .mark { fill: #b3530a }
.ours text { fill: #b3530a; font-weight: 600 }
.leader { stroke: #bbb; stroke-width: .8; fill: none }
.pareto { stroke: #555; stroke-dasharray: 4 4; fill: none }
@media (prefers-color-scheme: dark) {
  text { fill: #ddd } .grid { stroke: #333 } .axis { stroke: #777 } .range { stroke: #999 }
  .mark { fill: #111; stroke: #bbb } .front .mark { fill: #bbb }
  .pareto { stroke: #bbb } .leader { stroke: #555 }
  .ours .range, .ours .mark { stroke: #f0a050 } .ours.front .mark, .ours text { fill: #f0a050 }
}"""


class Point(NamedTuple):
    """One arm: its name, both figures with their intervals, and whether it is on the Pareto front,
    and ours.
    """

    name: str
    across: Interval
    up: Interval
    is_on_front: bool
    is_ours: bool


class _Axis:
    """Places of amounts along one side of the plot."""

    def __init__(self, amounts: Sequence[float], begin: float, end: float) -> None:
        least = min(amounts)
        greatest = max(amounts)
        spare = MARGIN * ((greatest - least) or abs(greatest) or 1.0)
        self._least = least - spare
        self._greatest = greatest + spare
        self._begin = begin
        self._end = end

    def at(self, amount: float) -> float:
        """In px."""
        share = (amount - self._least) / (self._greatest - self._least)
        return round(self._begin + share * (self._end - self._begin), 1)

    @property
    def ticks(self) -> list[float]:
        """Round amounts, MOST_TICKS at most."""
        span = self._greatest - self._least
        power = 10 ** floor(log10(span / MOST_TICKS))
        step = next(
            step for times in (1, 2, 5, 10, 20) if span / (step := times * power) <= MOST_TICKS
        )
        first = floor(self._least / step) + 1
        return [number * step for number in range(first, floor(self._greatest / step) + 1)]


def plot(points: Sequence[Point], across: str, up: str) -> str:
    """The drawing. across, up: what the axes show. Less is better on both."""
    x = _Axis([amount for point in points for amount in point.across], LEFT, RIGHT)
    y = _Axis([amount for point in points for amount in point.up], BOTTOM, TOP)
    about = escape(f"{up} against {across}, one point for each rule")
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}"'
    parts = [f'{head} role="img" aria-label="{about}">', f"<style>{STYLE}</style>"]
    for tick in x.ticks:
        parts.append(_line("grid", x.at(tick), TOP, x.at(tick), BOTTOM))
        parts.append(
            f'<text x="{x.at(tick)}" y="{BOTTOM + 18}" text-anchor="middle">{_text(tick)}</text>'
        )
    for tick in y.ticks:
        parts.append(_line("grid", LEFT, y.at(tick), RIGHT, y.at(tick)))
        parts.append(
            f'<text x="{LEFT - 8}" y="{y.at(tick) + 4}" text-anchor="end">{_text(tick)}</text>'
        )
    parts += [_line("axis", LEFT, BOTTOM, RIGHT, BOTTOM), _line("axis", LEFT, TOP, LEFT, BOTTOM)]
    parts.append(
        f'<text x="{(LEFT + RIGHT) / 2}" y="{HEIGHT - 10}"'
        f' text-anchor="middle">{escape(across)}</text>'
    )
    middle = (TOP + BOTTOM) / 2
    parts.append(
        f'<text transform="translate(14 {middle}) rotate(-90)"'
        f' text-anchor="middle">{escape(up)}</text>'
    )
    front = sorted(
        (point for point in points if point.is_on_front), key=lambda point: point.across.middle
    )
    if front:
        path = f"M{x.at(front[0].across.middle)} {TOP}"
        for point, end in zip(front, (*front[1:], None), strict=True):
            path += f"V{y.at(point.up.middle)}H{RIGHT if end is None else x.at(end.across.middle)}"
        parts.append(f'<path class="pareto" d="{path}"/>')
    for place, point in zip(
        _places_of_names([y.at(point.up.middle) for point in points]), points, strict=True
    ):
        parts.append(_drawn(point, x, y, place))
    return "\n".join([*parts, "</svg>", ""])


def _drawn(point: Point, x: _Axis, y: _Axis, place: float) -> str:
    at_x = x.at(point.across.middle)
    at_y = y.at(point.up.middle)
    kind = " ".join(
        name for name, is_so in (("front", point.is_on_front), ("ours", point.is_ours)) if is_so
    )
    bend = RIGHT + 6
    return (
        f'<g class="{kind}"><path class="leader" d="M{at_x} {at_y}L{bend} {place}H{NAMES - 4}"/>'
        + _line("range", x.at(point.across.low), at_y, x.at(point.across.high), at_y)
        + _line("range", at_x, y.at(point.up.low), at_x, y.at(point.up.high))
        + f'<circle class="mark" cx="{at_x}" cy="{at_y}" r="5"/>'
        + f'<text x="{NAMES}" y="{place + 4}">{escape(point.name)}</text></g>'
    )


def _places_of_names(wanted: Sequence[float]) -> list[float]:
    """Heights as near to those wanted as lines of text allow, in the same order."""
    order = sorted(range(len(wanted)), key=wanted.__getitem__)
    places = [0.0] * len(wanted)
    lowest = TOP + LINE / 2
    for number, index in enumerate(order):
        left = len(order) - 1 - number
        # Room for those below.
        places[index] = lowest = max(lowest, min(wanted[index], HEIGHT - LINE - left * LINE))
        lowest += LINE
    return places


def _line(kind: str, x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line class="{kind}" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>'


def _text(amount: float) -> str:
    return f"{amount:,.0f}" if abs(amount) >= 10 or amount == round(amount) else f"{amount:g}"
