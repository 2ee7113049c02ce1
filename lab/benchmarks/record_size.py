"""How many bytes of disk the record takes for each scheduling decision, by table, in PostgreSQL and
SQLite.

.venv/bin/python -m benchmarks.record_size [--days 1]

A made-up hub of 20,000 users a day (recorded_story.py), written as the recorder writes.
Indexes count with their tables. Without the candidates of bindings: their size depends on the
number of nodes.
"""

from __future__ import annotations

import argparse
import sqlite3
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

import sqlalchemy as sa

from benchmarks.figures import table
from benchmarks.recorded_story import Story, write_story
from roost_lab.recorder.store import schema
from roost_lab.recorder.store.database import Store
from tests.harness.postgres import Postgres

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# Tables that take less, in all databases, are not shown.
LEAST_BYTES: Final = 10.0


def in_postgresql(story: Story) -> dict[str, float]:
    """Table -> bytes a decision, after a vacuum."""
    with Postgres() as server:
        store = Store.open(server.create("sizes"))
        store.migrate()
        write_story(store, story)
        with store.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(sa.text("VACUUM ANALYZE"))
            decisions = count(connection)
            sizes = {
                name: (
                    connection.execute(sa.select(sa.func.pg_total_relation_size(name))).scalar_one()
                )
                for name in schema.metadata.tables
            }
        store.close()
    return {name: size / decisions for name, size in sizes.items()}


def in_sqlite(story: Story) -> dict[str, float]:
    """Table -> bytes a decision."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "roost.db"
        store = Store.open(str(path))
        store.migrate()
        write_story(store, story)
        with store.reading() as connection:
            decisions = count(connection)
        store.close()
        with sqlite3.connect(path) as connection:
            pages = connection.execute(
                "SELECT tbl_name, sum(pgsize) FROM dbstat JOIN sqlite_schema USING (name) GROUP"
                " BY 1"
            ).fetchall()
    return {name: size / decisions for name, size in pages}


def count(connection: sa.Connection) -> int:
    """Decisions in all."""
    return int(
        connection.execute(sa.select(sa.func.count()).select_from(schema.decision)).scalar_one()
    )


def rows(columns: Sequence[Mapping[str, float]]) -> list[list[str]]:
    """Lines of the table: the largest first, and the sum."""
    names = sorted(columns[0], key=lambda name: -columns[0][name])
    shown = [
        name for name in names if max(column.get(name, 0) for column in columns) >= LEAST_BYTES
    ]
    lines = [
        [f"`{name}`", *(f"{column.get(name, 0):,.0f}" for column in columns)] for name in shown
    ]
    return [*lines, ["all tables", *(f"{sum(column.values()):,.0f}" for column in columns)]]


def main(argv: Sequence[str] | None = None) -> None:
    """Print the sizes as Markdown."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--days", type=float, default=1.0)
    arguments = parser.parse_args(argv)
    story = Story(days=arguments.days, users_a_day=20_000, placeholders=100, images=60)
    print(
        table(
            ["bytes a decision", "PostgreSQL", "SQLite"],
            rows([in_postgresql(story), in_sqlite(story)]),
        )
    )


if __name__ == "__main__":
    main()
