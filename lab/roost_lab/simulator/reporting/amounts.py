"""Write a sweep's amounts for people: figures with units, ranges over seeds, cells of tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from roost_lab.pages.phrases import show_bytes, show_seconds
from roost_lab.pages.table import Cell, Unit
from roost_lab.simulator.sweep.measures import Measure
from roost_lab.simulator.sweep.summary import FigureChange, Value
from roost_lab.units import HOUR_SECONDS

# A cell without an amount.
MISSING: Final = "-"
# Stands between the least and the greatest amount.
DASH: Final = "\N{EN DASH}"
MINUS: Final = "\N{MINUS SIGN}"


def show_amount(amount: float, unit: Unit) -> str:
    """An amount for people, with its unit. Numbers of a hundred and more have no decimals."""
    match unit:
        case Unit.SECONDS:
            return show_seconds(amount)
        case Unit.BYTES:
            return show_bytes(round(amount))
        case Unit.SHARE:
            return f"{amount * 100:.1f} %"
        case _:
            decimals = 0 if amount >= 100 or amount == int(amount) else 1
            text = f"{amount:,.{decimals}f}"
            return "0" if text == "-0" else text


def show_range(least: float, greatest: float, unit: Unit) -> str:
    """A range from the least to the greatest amount. If both look equal, only one is shown.

    The unit stands once, if both amounts have the same. A range of durations has one unit, seconds
    or minutes, so that it stays short: from 75 to 128 s, not from 1 min 15 s to 2 min 8 s.
    """
    low = show_amount(least, unit)
    high = show_amount(greatest, unit)
    if low == high:
        return high
    if unit is Unit.SECONDS and round(greatest, 1) >= 60:
        if round(greatest) >= HOUR_SECONDS:
            return f"{_show_number(least / 60)}{DASH}{_show_number(greatest / 60)} min"
        return f"{_show_number(least)}{DASH}{_show_number(greatest)} s"
    return f"{_without_same_unit(low, high)}{DASH}{high}"


def _without_same_unit(amount: str, other: str) -> str:
    """An amount without its unit, if another amount has the same unit; else as it is."""
    number, _, unit = amount.partition(" ")
    _, _, other_unit = other.partition(" ")
    return number if unit == other_unit else amount


def _show_number(amount: float) -> str:
    """A number of seconds or minutes: whole from 60 on, else with a decimal if it has one."""
    if round(amount, 1) >= 60:
        return f"{amount:,.0f}"
    return f"{amount:.1f}".removesuffix(".0")


def show_value(value: Value, unit: Unit) -> str:
    """The median of a figure, and its range over seeds in brackets if it has one."""
    middle = show_amount(value.median, unit)
    extent = show_range(value.least, value.greatest, unit)
    if DASH not in extent:
        return middle
    return f"{middle} ({_without_same_unit(extent, middle)})"


def show_change(change: FigureChange | None) -> str:
    """A policy's change against the first policy, as the median over seeds; "" for None."""
    if change is None:
        return ""
    return f"{change.median * 100:+.0f} %".replace("-", MINUS)


def show_cell(cell: Cell, unit: Unit) -> str:
    """A cell for people."""
    if cell is None:
        return MISSING
    if isinstance(cell, str):
        return cell
    return show_amount(float(cell), unit)


def show_bound(measure: Measure, values: Sequence[Value | None]) -> str | None:
    """The range of the policies' bounds of a figure; None where no policy has a bound."""
    bounds = [value.bound for value in values if value is not None and value.bound is not None]
    if not bounds:
        return None
    return show_range(min(bounds), max(bounds), measure.unit)
