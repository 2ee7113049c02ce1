"""Tables for people and for programs: columns with units, and how cells of each unit are shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from enum import StrEnum

from roost_lab.pages.dates import as_date
from roost_lab.pages.phrases import show_bytes, show_span
from roost_lab.units import US

Cell = str | int | float | bool | None


class Unit(StrEnum):
    """The unit of a column's values, which decides how they are shown."""

    TEXT = "text"
    # A line for a shell.
    COMMAND = "command"
    # A key that has a name for people.
    PHASE = "phase"
    # Microseconds since 1970; ISO 8601 in JSON.
    TIME = "time"
    SECONDS = "seconds"
    BYTES = "bytes"
    COUNT = "count"
    # Averages of counts.
    MEAN = "mean"
    # 0 to 1.
    SHARE = "share"


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its key in JSON, its heading, its unit."""

    key: str
    heading: str
    unit: Unit
    # Whether people aren't shown its cells in rows whose first count is small.
    needs_many: bool = field(default=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Table:
    """One table. An unknown cell is None."""

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: Sequence[tuple[Cell, ...]]
    # In JSON only: too long for the page.
    only_data: bool = False


def show(cell: Cell, unit: Unit, zone: tzinfo = UTC) -> str:
    """A cell for people. zone: of times."""
    if cell is None:
        return "-"
    if isinstance(cell, str):
        return cell
    match unit:
        case Unit.TIME:
            return f"{as_date(int(cell), zone):%Y-%m-%d %H:%M}"
        case Unit.SECONDS:
            return show_span(round(cell * US))
        case Unit.BYTES:
            return show_bytes(int(cell))
        case Unit.SHARE:
            # 100.0 % means all.
            text = f"{cell * 100:.1f}"
            return f"{'99.9' if text == '100.0' and cell < 1 else text} %"
        case Unit.MEAN:
            return f"{cell:,.1f}"
        case _:
            return f"{cell:,}"


def iso_time(at_us: int) -> str:
    """ISO 8601, UTC; any number is accepted."""
    return as_date(at_us).isoformat(timespec="seconds").replace("+00:00", "Z")


def data_cell(cell: Cell, unit: Unit) -> Cell:
    """A cell for programs."""
    if unit is Unit.TIME and isinstance(cell, int):
        return iso_time(cell)
    return round(cell, 6) if isinstance(cell, float) else cell


def data_rows(table: Table) -> list[dict[str, Cell]]:
    """The table's rows for programs: column's key -> cell."""
    return [
        {
            column.key: data_cell(cell, column.unit)
            for column, cell in zip(table.columns, row, strict=True)
        }
        for row in table.rows
    ]
