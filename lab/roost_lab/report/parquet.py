"""Write a report's tables as Parquet files, whose columns have types: numbers, texts and moments in UTC.

By DuckDB, which is an extra. Nothing is fetched from the network.
"""

from __future__ import annotations

from errno import EIO
from typing import TYPE_CHECKING, Any, Final

import duckdb

from roost_lab.pages.dates import as_date
from roost_lab.pages.table import Unit, data_cell
from roost_lab.report.sections import tables

if TYPE_CHECKING:
    from pathlib import Path

    from roost_lab.pages.table import Cell, Table
    from roost_lab.report.subject import Report

_TIME: Final = "TIMESTAMP WITH TIME ZONE"
TYPES: Final = {
    Unit.TEXT: "VARCHAR",
    Unit.COMMAND: "VARCHAR",
    Unit.PHASE: "VARCHAR",
    Unit.TIME: _TIME,
    Unit.SECONDS: "DOUBLE",
    Unit.BYTES: "BIGINT",
    Unit.COUNT: "BIGINT",
    Unit.MEAN: "DOUBLE",
    Unit.COST: "DOUBLE",
    Unit.SHARE: "DOUBLE",
}
# Neither looks for extensions, which it would download, nor reads settings of the account.
_CONFIG: Final[dict[str, str | bool | int | float | list[str]]] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
}


def write_parquet(report: Report, folder: Path) -> None:
    """Write a file `<table>.parquet` for each table, those without rows included. Raises OSError."""
    with duckdb.connect(":memory:", config=_CONFIG) as database:
        for table in tables(report):
            _write(database, table, folder / f"{table.name}.parquet")


def _write(database: duckdb.DuckDBPyConnection, table: Table, path: Path) -> None:
    # Created here, so that what can't be written is the usual OSError.
    path.touch()
    columns = ", ".join(f'"{column.key}" {TYPES[column.unit]}' for column in table.columns)
    database.execute(f"CREATE OR REPLACE TABLE sheet ({columns})")
    lists = ", ".join(f"unnest(CAST(? AS {TYPES[column.unit]}[]))" for column in table.columns)
    # Column by column: ten thousand rows take a tenth of a second, one by one some seconds.
    values = [[_value(row[place], column.unit) for row in table.rows] for place, column in enumerate(table.columns)]
    database.execute(f"INSERT INTO sheet SELECT {lists}", values)
    try:
        database.execute("COPY sheet TO '{}' (FORMAT parquet, COMPRESSION zstd)".format(str(path).replace("'", "''")))
    except duckdb.IOException as error:
        raise OSError(EIO, " ".join(str(error).split()), str(path)) from None


def _value(cell: Cell, unit: Unit) -> Any:  # noqa: ANN401 - what the column's type holds
    return as_date(int(cell)) if unit is Unit.TIME and cell is not None else data_cell(cell, unit)
