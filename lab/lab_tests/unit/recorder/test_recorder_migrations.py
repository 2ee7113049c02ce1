"""Databases of older versions: each row is kept, on SQLite and on PostgreSQL, and whoever could read still can."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa
from alembic import command as alembic
from alembic.config import Config

from lab_tests.recorded import BEGIN, SECOND, bind_record, phase_record, pod_record
from roost_lab.recorder.answers.pod_story import find_pods, read_story
from roost_lab.recorder.store import database, schema
from roost_lab.recorder.store.database import POSTGRESQL, SQLITE, Store, StoreError
from roost_lab.recorder.store.records import Phase

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.harness.postgres import Postgres

OLD = "0011"
# Columns that came after it.
LATER = ("warm_target",)
SOURCES = ("pod", "event", "watch", "sniffer", "audit")
_COLUMNS = ("pod_uid", "phase", "detail", "at_us", "resolution_us", "source")
# Each phase by each source, of many pods, some of which have no other row.
PHASES = [
    (f"uid-{number:04}", phase.value, "" if number % 3 else f"detail-{number}", BEGIN + number * SECOND + 7, 1, source)
    for number in range(300)
    for phase, source in zip(Phase, SOURCES * 3, strict=False)
]


@pytest.fixture(params=[SQLITE, POSTGRESQL])
def old_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """A database of the schema before phases had numbers, with rows in it."""
    if request.param == SQLITE:
        url = str(tmp_path / "old.db")
    else:
        server: Postgres = request.getfixturevalue("server")
        url = server.create(f"old_{request.node.name.partition('[')[0]}"[:60])
    store = Store.open(url)
    config = Config()
    config.set_main_option("script_location", str(database.MIGRATIONS))
    with store.engine.begin() as connection:
        config.attributes["connection"] = connection
        alembic.upgrade(config, OLD)
        table = sa.table("phase", *map(sa.column, _COLUMNS))
        connection.execute(sa.insert(table), [dict(zip(_COLUMNS, row, strict=True)) for row in PHASES])
    # Rows that have the same shape in both.
    pods = [pod_record(f"uid-{number:04}") for number in range(200)]
    with store.engine.begin() as connection:
        for kind, rows in (("pod", pods), ("decision", [bind_record("uid-0007", BEGIN + SECOND, "n")])):
            columns = [one.name for one in schema.metadata.tables[kind].c if one.name not in LATER]
            plain = sa.table(kind, *map(sa.column, columns))
            connection.execute(sa.insert(plain), [{name: getattr(row, name) for name in columns} for row in rows])
    yield store
    store.close()


def test_phases_of_an_older_database_are_all_kept(old_store: Store) -> None:
    old_store.migrate()
    with old_store.reading() as connection:
        columns = [schema.phase_by_uid.c[name] for name in _COLUMNS]
        found = [tuple(row) for row in connection.execute(sa.select(*columns))]
        names = set(sa.inspect(connection).get_table_names())
    assert sorted(found) == sorted(PHASES)
    assert "old_phase" not in names
    (pod,) = find_pods(old_store, "uid-0007")
    story = read_story(old_store, pod)
    assert story.at(Phase.READY) == BEGIN + 7 * SECOND + 7
    assert {row["source"] for row in story.phases} == set(SOURCES)


def test_pods_of_an_older_database_go_on_under_their_number(old_store: Store) -> None:
    old_store.migrate()
    old_store.write([phase_record("uid-0007", Phase.GONE, BEGIN, "later"), phase_record("new", Phase.GONE, BEGIN)], {})
    with old_store.reading() as connection:
        numbers = connection.execute(sa.select(schema.pod_number.c.uid)).scalars().all()
        story = connection.execute(
            sa.select(sa.func.count())
            .select_from(schema.phase_by_uid)
            .where(schema.phase_by_uid.c.pod_uid == "uid-0007")
        ).scalar_one()
    assert sorted(numbers) == [*sorted({"new", *(row[0] for row in PHASES)})]
    assert story == len(Phase) + 1


def test_a_row_that_the_new_schema_can_not_hold_leaves_the_old_database_as_it_was(old_store: Store) -> None:
    def everything() -> list[Any]:
        with old_store.reading() as connection:
            return [*connection.execute(sa.text("SELECT * FROM phase ORDER BY 1, 2, 3"))]

    with old_store.engine.begin() as connection:
        connection.execute(sa.text("UPDATE phase SET source = 'rumour' WHERE pod_uid = 'uid-0299'"))
    before = everything()
    with pytest.raises(StoreError):
        old_store.migrate()
    assert everything() == before
    with old_store.reading() as connection:
        assert "pod_number" not in sa.inspect(connection).get_table_names()


def test_accounts_that_read_an_older_database_still_can(server: Postgres) -> None:
    name = "old_readers"
    store = Store.open(server.create(name))
    config = Config()
    config.set_main_option("script_location", str(database.MIGRATIONS))
    with store.engine.begin() as connection:
        config.attributes["connection"] = connection
        alembic.upgrade(config, OLD)
        connection.execute(sa.text('CREATE ROLE "Reader-1"'))
        connection.execute(sa.text('GRANT SELECT ON ALL TABLES IN SCHEMA public TO "Reader-1"'))
        connection.execute(sa.text("GRANT SELECT ON phase TO PUBLIC"))
        connection.execute(sa.text("CREATE ROLE stranger"))
    store.migrate()
    with store.engine.begin() as connection:
        connection.execute(sa.text('SET ROLE "Reader-1"'))
        assert connection.execute(sa.select(schema.phase_by_uid)).all() == []
        granted = "SELECT grantee FROM information_schema.role_table_grants WHERE table_name = 'pod_number'"
        connection.execute(sa.text("RESET ROLE"))
        assert set(connection.execute(sa.text(granted)).scalars()) == {"roost", "Reader-1", "PUBLIC"}
    store.close()


def test_a_view_of_somebodys_own_does_not_keep_the_recorder_from_starting(server: Postgres) -> None:
    store = Store.open(server.create("own_view"))
    config = Config()
    config.set_main_option("script_location", str(database.MIGRATIONS))
    with store.engine.begin() as connection:
        config.attributes["connection"] = connection
        alembic.upgrade(config, OLD)
        table = sa.table("phase", *map(sa.column, _COLUMNS))
        connection.execute(sa.insert(table), [dict(zip(_COLUMNS, PHASES[0], strict=True))])
        connection.execute(sa.text("CREATE VIEW own AS SELECT pod_uid FROM phase"))
    store.migrate()
    with store.reading() as connection:
        assert connection.execute(sa.text("SELECT pod_uid FROM own")).scalars().all() == [PHASES[0][0]]
        assert connection.execute(sa.select(schema.phase_by_uid.c.pod_uid)).scalars().all() == [PHASES[0][0]]
    store.close()
