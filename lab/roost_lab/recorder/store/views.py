"""Make the views for people who query the database themselves: `sql/` has a file for each view and
database.

The two files of a view have the same columns, in the same order, and give the same rows. Times are
`timestamptz` in PostgreSQL, and ISO 8601 text in UTC with microseconds in SQLite
(`2026-11-02T08:00:00.000000Z`, which sorts by time). Durations are in seconds. NULL: not known, or
not yet. PostgreSQL's file explains each column, in the database too.

Add columns at the end: PostgreSQL can then replace a view, and keeps who may read it. The views are
made anew after each migration, so a change of them needs a migration, if an empty one.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import sqlalchemy as sa

VIEWS: Final = ("v_start", "v_phase", "v_pull", "v_node_hours", "v_failure")
SQL: Final = Path(__file__).parent / "sql"


def make_views(connection: sa.Connection) -> None:
    """Make all views anew, with their comments where the database has them."""
    for view in VIEWS:
        text = (SQL / f"{view}.{connection.dialect.name}.sql").read_text(encoding="utf-8")
        for statement in text.split(";\n")[:-1]:
            # As it stands: a `%` marks no parameter.
            connection.exec_driver_sql(statement, execution_options={"no_parameters": True})
