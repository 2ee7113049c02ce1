"""Show the amounts of a sweep to people: figures with their units, ranges over seeds, cells of
tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from roost_lab.pages.phrases import show_bytes, show_seconds
from roost_lab.pages.table import Cell, Unit
from roost_lab.simulator.sweep.measures import Measure
from roost_lab.simulator.sweep.summary import FigureChange, Value

MISSING: Final = "-"
# Between the least and the greatest.
DASH: Final = "\N{EN DASH}"
MINUS: Final = "\N{MINUS SIGN}"


def show_amount(amount: float, unit: Unit) -> str:
    """A figure for people: amounts of a hundred and more without decimals."""
    match unit:
        case Unit.SECONDS:
            return show_seconds(amount)
        case Unit.BYTES:
            return show_bytes(round(amount))
        case Unit.SHARE:
            return f"{amount * 100:.1f} %"
        case _:
            text = f"{amount:,.0f}" if amount >= 100 or amount == int(amount) else f"{amount:,.1f}"
            return "0" if text == "-0" else text


def show_range(least: float, greatest: float, unit: Unit) -> str:
    """From the least to the greatest; the unit once where it is the same; one amount where they
    look equal.

    A range of durations has one unit, so that it stays short: 75 to 128 s beside 1 min 28 s.
    """
    low = show_amount(least, unit)
    high = show_amount(greatest, unit)
    if low == high:
        return high
    if unit is Unit.SECONDS and round(greatest, 1) >= 60:
        size, word = 1, "s"
        if round(greatest) >= 3600:
            size, word = 60, "min"
        return f"{_show_number(least / size)}{DASH}{_show_number(greatest / size)} {word}"
    number, _, word = low.partition(" ")
    return f"{number if word == high.partition(' ')[2] else low}{DASH}{high}"


def _show_number(amount: float) -> str:
    return f"{amount:,.0f}" if round(amount, 1) >= 60 else f"{amount:.1f}".removesuffix(".0")


def show_value(value: Value, unit: Unit) -> str:
    """Median and range of a figure."""
    middle = show_amount(value.median, unit)
    extent = show_range(value.least, value.greatest, unit)
    if DASH not in extent:
        return middle
    number, _, word = extent.partition(" ")
    return f"{middle} ({number if word == middle.partition(' ')[2] else extent})"


def show_change(change: FigureChange | None) -> str:
    """A policy's change against the first one, the median over seeds; "" where there is none."""
    return "" if change is None else f"{change.median * 100:+.0f} %".replace("-", MINUS)


def show_cell(cell: Cell, unit: Unit) -> str:
    """A cell for people."""
    if cell is None:
        return MISSING
    if isinstance(cell, str):
        return cell
    return show_amount(float(cell), unit)


def show_bound(measure: Measure, values: Sequence[Value | None]) -> str | None:
    """The bounds of all policies: one where they are equal, else from the least to the greatest."""
    bounds = [value.bound for value in values if value is not None and value.bound is not None]
    if not bounds:
        return None
    return show_range(min(bounds), max(bounds), measure.unit)
