"""Make the views for people who query the database themselves.

`sql/` has two files for each view: one for PostgreSQL, one for SQLite. Both have the same columns
in the same order, and give the same rows.

Times are `timestamptz` in PostgreSQL. In SQLite they are ISO 8601 texts in UTC with microseconds,
which sort by time: `2026-11-02T08:00:00.000000Z`. Durations are in seconds. NULL means not known,
or not yet. PostgreSQL's file explains each column, and puts that into the database.

To change a view, add columns at its end: PostgreSQL can then replace it, and keeps who may read it.
Add a migration too, an empty one if need be: the views are made anew after each migration.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import sqlalchemy as sa

VIEWS: Final = ("v_start", "v_phase", "v_pull", "v_node_hours", "v_failure")
SQL: Final = Path(__file__).parent / "sql"


def make_views(connection: sa.Connection) -> None:
    """Make all views anew, with comments on their columns in PostgreSQL."""
    for view in VIEWS:
        text = (SQL / f"{view}.{connection.dialect.name}.sql").read_text(encoding="utf-8")
        for statement in text.split(";\n")[:-1]:
            # Without parameters: a `%` in the SQL is only a `%`.
            connection.exec_driver_sql(statement, execution_options={"no_parameters": True})
