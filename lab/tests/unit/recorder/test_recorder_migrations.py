"""Databases of an older version, here of a made-up one: each row is kept, in both databases, and readers still read."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa

from lab.tests.recorded import bind_record, phase_record, pod_record
from roost_lab.recorder.store import database, schema
from roost_lab.recorder.store.database import Store, StoreError
from roost_lab.recorder.store.records import Phase
from tests.harness.postgres import Postgres

# What a later version would bring: a column, and a table that is filled from what is there.
LATER = """
import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.add_column("pod", sa.Column("team", sa.String(16), server_default="none", nullable=False))
    op.create_table("name", sa.Column("name", sa.String(16), primary_key=True))
    op.execute("INSERT INTO name SELECT name FROM pod")
"""


@pytest.fixture
def old_store(store: Store) -> Store:
    """A database of today's schema, with rows in it."""
    store.write([pod_record("a"), pod_record("b"), bind_record("a", 5, "n"), phase_record("a", Phase.READY, 7)], {})
    return store


@pytest.fixture
def upgrade(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Store], None]:
    """Migrates a database as the later version would."""

    def migrate(store: Store) -> None:
        folder = tmp_path / "migrations"
        if not folder.exists():
            shutil.copytree(database.MIGRATIONS, folder)
            (folder / "versions" / "0003_teams.py").write_text(LATER, encoding="utf-8")
            monkeypatch.setattr(database, "MIGRATIONS", folder)
        store.migrate()

    return migrate


def test_a_database_from_before_hubs_answers_gets_their_columns(old_store: Store) -> None:
    added = ("told_us", "asked_us", "answered_us", "failed_us")
    with old_store.engine.begin() as connection:
        connection.execute(sa.text("DROP VIEW v_start"))
        for name in added:
            connection.execute(sa.text(f"ALTER TABLE start DROP COLUMN {name}"))
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '0001'"))
    old_store.migrate()
    old_store.write([phase_record("a", Phase.ANSWERED, 9)], {})
    with old_store.reading() as connection:
        found = connection.execute(sa.select(schema.start.c.pod_uid, schema.start.c.answered_us)).all()
    assert sorted(map(tuple, found)) == [("a", 9), ("b", None)]


def rows_of(store: Store) -> dict[str, list[str]]:
    with store.reading() as connection:
        return {
            table.name: sorted(map(repr, connection.execute(sa.select(table))))
            for table in schema.metadata.sorted_tables
        }


def test_an_older_database_keeps_each_row_and_gets_what_is_new(
    old_store: Store, upgrade: Callable[[Store], None]
) -> None:
    before = rows_of(old_store)
    upgrade(old_store)
    # A second start changes nothing.
    upgrade(old_store)
    assert rows_of(old_store) == before
    with old_store.reading() as connection:
        assert set(connection.execute(sa.text("SELECT team FROM pod")).scalars()) == {"none"}
        assert sorted(connection.execute(sa.text("SELECT name FROM name")).scalars()) == ["a", "b"]
        assert connection.execute(sa.text("SELECT count(*) FROM v_start")).scalar() == 2
    old_store.write([pod_record("c")], {})
    assert len(rows_of(old_store)["pod"]) == 3


def test_a_migration_that_fails_leaves_the_database_as_it_was(
    old_store: Store, upgrade: Callable[[Store], None]
) -> None:
    before = rows_of(old_store)
    with old_store.engine.begin() as connection:
        # The table is made last, after the column.
        connection.execute(sa.text("CREATE TABLE name (name integer)"))
    with pytest.raises(StoreError):
        upgrade(old_store)
    assert rows_of(old_store) == before
    with old_store.reading() as connection:
        assert "team" not in {column["name"] for column in sa.inspect(connection).get_columns("pod")}
        assert connection.execute(sa.text("SELECT version_num FROM alembic_version")).scalar() == "0002"


def test_accounts_that_read_an_older_database_still_can(server: Postgres, upgrade: Callable[[Store], None]) -> None:
    store = Store.open(server.create("old_readers"))
    store.migrate()
    with store.engine.begin() as connection:
        connection.execute(sa.text('CREATE ROLE "Reader-1"'))
        connection.execute(sa.text('GRANT SELECT ON ALL TABLES IN SCHEMA public TO "Reader-1"'))
    upgrade(store)
    with store.engine.begin() as connection:
        connection.execute(sa.text('SET ROLE "Reader-1"'))
        for name in ("pod", "v_start"):
            assert connection.execute(sa.text(f"SELECT * FROM {name}")).all() == []  # noqa: S608 - our own names
        connection.execute(sa.text("RESET ROLE"))
    store.close()
