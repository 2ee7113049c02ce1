import contextlib
import itertools
import random
import shutil
import sqlite3
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lab.tests.moments import SECOND
from lab.tests.objects import BOUND, event_object, node_object, pod_object
from lab.tests.recorded import (
    bind_record,
    empty_database,
    empty_store,
    phase_record,
    pod_record,
    pull_record,
)
from roost.__main__ import main
from roost_core.objects.fields import JSONObject
from roost_lab.recorder.answers.pod_story import find_pods
from roost_lab.recorder.main import forget_old_rows
from roost_lab.recorder.recording.assembler import Assembler
from roost_lab.recorder.recording.changes import records_of
from roost_lab.recorder.recording.reading import read_event, read_node, read_pod
from roost_lab.recorder.recording.streams import Observation
from roost_lab.recorder.store import database, schema, start_rows, views
from roost_lab.recorder.store.database import FORGOTTEN_PODS, Store, StoreError
from roost_lab.recorder.store.records import (
    EVENTS,
    NODES,
    PODS,
    DecisionRecord,
    NodeRecord,
    Phase,
    PhaseRecord,
    PodRecord,
    Record,
)
from roost_lab.recorder.store.schema import SQLITE
from tests.harness.postgres import Postgres
from tests.harness.waiting import wait_until

# A migration of a later version.
LATER = Path(__file__).parents[2] / "data" / "later-migration.txt"


def rows(store: Store, table: sa.FromClause) -> list[tuple[Any, ...]]:
    with store.reading() as connection:
        return sorted((tuple(row) for row in connection.execute(sa.select(table))), key=repr)


def everything(store: Store) -> dict[str, list[tuple[Any, ...]]]:
    return {
        table.name: rows(store, table)
        for table in schema.metadata.sorted_tables
        if table.name != "checkpoint"
    }


def phase(at_us: int, resolution_us: int, source: str = "pod") -> PhaseRecord:
    return PhaseRecord(
        pod_uid="u", phase=Phase.SCHEDULED, at_us=at_us, resolution_us=resolution_us, source=source
    )


def test_migrations_give_the_schema_that_the_code_writes(open_store: Callable[[], Store]) -> None:
    store = open_store()
    with store.reading() as connection:
        assert compare_metadata(MigrationContext.configure(connection), schema.metadata) == []


@given(
    st.permutations(
        [phase(1 * SECOND, SECOND), phase(1 * SECOND + 5, 1, "event"), phase(2 * SECOND, SECOND)]
    )
)
@settings(
    max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_the_finer_source_wins_in_any_order(
    open_store: Callable[[], Store], order: list[PhaseRecord]
) -> None:
    store = open_store()
    for record in order:
        store.write([record], {})
    assert rows(store, schema.phase) == [("u", "scheduled", "", 1 * SECOND + 5, 1, "event")]
    other = open_store()
    other.write(order, {})
    assert everything(other) == everything(store)


def test_what_the_model_said_is_kept_when_the_event_came_first(
    open_store: Callable[[], Store],
) -> None:
    store = open_store()
    event = bind_record("u", 5, "n")
    store.write([event], {})
    store.write(
        [
            replace(
                event, at_us=0, resolution_us=SECOND, source="watch", model="agrees", model_node="n"
            )
        ],
        {},
    )
    with store.reading() as connection:
        row = connection.execute(sa.select(schema.decision)).mappings().one()
    assert (row["at_us"], row["source"], row["model"], row["model_node"]) == (
        5,
        "event",
        "agrees",
        "n",
    )


def test_a_batch_is_stored_with_its_positions_or_not_at_all(
    open_store: Callable[[], Store],
) -> None:
    store = open_store()
    store.write([phase(1, 1)], {PODS: ("7", 1)})
    nothing: Any = None
    broken = replace(phase(2, 1), pod_uid="v", source=nothing)
    with pytest.raises(StoreError):
        store.write([broken], {PODS: ("8", 2)})
    assert store.positions() == {PODS: ("7", 1)}
    assert len(rows(store, schema.phase)) == 1


def test_forgetting_takes_what_ended_and_nothing_that_is_there(
    open_store: Callable[[], Store],
) -> None:
    store, ends = open_store(), {"old": 10, "new": 30, "here": None}
    pods = [PodRecord(uid=uid, created_us=1, deleted_us=at_us) for uid, at_us in ends.items()]
    store.write([*pods, *(replace(phase(1, 1), pod_uid=pod.uid) for pod in pods)], {})
    counts = store.forget_before(20)
    assert (counts["pod"], counts["phase"]) == (1, 1)
    assert {row[0] for row in rows(store, schema.pod)} == {"new", "here"}
    assert {row[0] for row in rows(store, schema.phase)} == {"new", "here"}


def test_what_events_told_of_pods_that_nobody_saw_is_forgotten_too(
    open_store: Callable[[], Store],
) -> None:
    store = open_store()
    pulls = [pull_record(f"nobody-{at_us}", at_us) for at_us in (10, 30)]
    store.write(
        [*pulls, *(replace(phase(pull.at_us, 1), pod_uid=pull.pod_uid) for pull in pulls)], {}
    )
    store.forget_before(20)
    assert [row[0] for row in rows(store, schema.pull)] == ["nobody-30"]
    assert [row[0] for row in rows(store, schema.phase)] == ["nobody-30"]


NODE = NodeRecord(uid="uid-n", name="n", created_us=5)


def start_records(uid: str) -> list[Record]:
    """What may be told of one pod's start, the same steps by more than one source."""

    def bind(at_us: int, resolution_us: int, source: str) -> DecisionRecord:
        return replace(bind_record(uid, at_us, "n"), resolution_us=resolution_us, source=source)

    def step(kind: Phase, detail: str, at_us: int) -> PhaseRecord:
        return PhaseRecord(
            pod_uid=uid, phase=kind, detail=detail, at_us=at_us, resolution_us=SECOND, source="pod"
        )

    pod = PodRecord(uid=uid, created_us=10, pod_class="user", scheduler="s", image="i")
    return [
        pod,
        replace(pod, deleted_us=90, end_reason="deleted"),
        bind(20, SECOND, "watch"),
        bind(21, 1, "event"),
        step(Phase.STARTED, "init", 30),
        step(Phase.STARTED, "main", 40),
        step(Phase.STARTED, "main", 70),
        step(Phase.READY, "", 50),
        step(Phase.READY, "", 80),
    ]


def told_starts(store: Store) -> list[tuple[Any, ...]]:
    """The starts as the other tables tell them, looked up one by one."""
    tables = {
        table.name: [dict(zip(table.c.keys(), row, strict=True)) for row in rows(store, table)]
        for table in (schema.pod, schema.decision, schema.node, schema.phase)
    }
    found = []
    for pod in tables["pod"]:
        uid = pod["uid"]
        bind = next((one for one in tables["decision"] if one["id"] == f"{uid}/bind"), {})
        steps = [one for one in tables["phase"] if one["pod_uid"] == uid]
        started = [step["at_us"] for step in steps if step["phase"] == "started"]
        ready = [step["at_us"] for step in steps if step["phase"] == "ready"]
        node = next(
            (one["created_us"] for one in tables["node"] if one["uid"] == bind.get("node_uid")),
            None,
        )
        names = (pod["pod_class"], pod["scheduler"], pod["image"], bind.get("node_name"))
        moments = (
            pod["created_us"],
            node,
            bind.get("at_us"),
            max(started, default=None),
            *(ready or [None]),
        )
        found.append((uid, *names, *moments, pod["deleted_us"]))
    return sorted(found, key=repr)


def kept_starts(store: Store) -> list[tuple[Any, ...]]:
    start, kind, place = schema.start, schema.start_kind, schema.start_place
    moments = (
        start.c.created_us,
        start.c.node_created_us,
        start.c.bound_us,
        start.c.started_us,
        start.c.ready_us,
    )
    names = (kind.c.pod_class, kind.c.scheduler, kind.c.image, place.c.node_name)
    query = sa.select(start.c.pod_uid, *names, *moments, start.c.deleted_us)
    query = query.join(kind, kind.c.id == start.c.kind_id).outerjoin(
        place, place.c.id == start.c.place_id
    )
    with store.reading() as connection:
        return sorted((tuple(row) for row in connection.execute(query)), key=repr)


@given(
    st.permutations(start_records("a") + start_records("b")),
    st.lists(st.integers(1, 17), max_size=4),
)
@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_starts_say_what_the_other_tables_say_however_it_was_told(
    open_store: Callable[[], Store], told: list[Record], cuts: list[int]
) -> None:
    store = open_store()
    edges = [0, *sorted(cuts), len(told)]
    store.write([NODE], {})
    for begin, end in itertools.pairwise(edges):
        store.write(told[begin:end], {})
        assert kept_starts(store) == told_starts(store)


def test_starts_are_forgotten_with_their_pods_and_what_only_they_had(
    open_store: Callable[[], Store],
) -> None:
    store = open_store()
    store.write([NODE, PodRecord(uid="here", created_us=1, image="other"), *start_records("a")], {})
    assert (len(rows(store, schema.start_kind)), len(rows(store, schema.start_place))) == (2, 1)
    store.forget_before(100)
    assert [row[1] for row in rows(store, schema.start)] == ["here"]
    assert [row[3] for row in rows(store, schema.start_kind)] == ["other"]
    assert rows(store, schema.start_place) == []


def test_kinds_and_places_stay_while_starts_are_made_of_them(server: Postgres) -> None:
    store = Store.open(server.create("starting"))
    store.migrate()
    store.write([NODE, *start_records("a")], {})

    def forget() -> None:
        with store.engine.begin() as connection:
            start_rows.forget_unused(connection)

    thread = threading.Thread(target=forget)
    with store.engine.begin() as writing:
        start_rows.refresh(writing, {"a"})
        # As if the start had not been there yet.
        writing.execute(sa.delete(schema.start))
        start_rows.refresh(writing, {"a"})
        thread.start()
        waits = sa.text("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")

        def is_waiting() -> bool:
            with store.reading() as connection:
                return bool(connection.execute(waits).scalar_one())

        wait_until(is_waiting, 10, "forgetting waits for the writer")
    thread.join()
    assert kept_starts(store) == told_starts(store)
    store.close()


def test_the_recorder_forgets_and_gives_room_back_while_others_read_and_write(
    tmp_path: Path,
) -> None:
    store = empty_store(tmp_path)
    path = tmp_path / "roost.db"
    pods = [
        PodRecord(uid=f"uid-{number}", created_us=1, deleted_us=10)
        for number in range(3 * FORGOTTEN_PODS)
    ]
    store.write(
        [*pods, *(replace(phase(1, 1), pod_uid=pod.uid, detail="x" * 500) for pod in pods)], {}
    )

    def size() -> int:
        with sqlite3.connect(path) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return path.stat().st_size

    before = size()
    stop = threading.Event()
    thread = threading.Thread(target=forget_old_rows, args=(store, 1, stop))
    with store.reading() as reader:
        # A reader's state of the file is kept, and nobody waits for it.
        assert reader.execute(
            sa.select(sa.func.count()).select_from(schema.pod)
        ).scalar_one() == len(pods)
        thread.start()
        try:
            wait_until(lambda: not rows(store, schema.pod), 30, "pods to be forgotten")
        finally:
            stop.set()
            thread.join()
        store.write([PodRecord(uid="next", created_us=1)], {})
    assert size() < before // 2
    assert [row[0] for row in rows(store, schema.pod)] == ["next"]


def stamp(path: Path, revision: str) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE alembic_version SET version_num = ?", (revision,))
        connection.commit()


READERS: list[Callable[[str], int]] = [
    lambda database: main(["why", "p", "--database", database]),
    lambda database: main(["records", "export", "--database", database, "--format", "sniffer"]),
    lambda database: main(["report", "--database", database, "--format", "json"]),
]


@pytest.mark.parametrize("read", READERS)
def test_who_reads_a_database_of_another_schema_is_told_what_to_do(
    read: Callable[[str], int],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path, migrations = tmp_path / "roost.db", tmp_path / "migrations"
    written = empty_database()
    shutil.copytree(database.MIGRATIONS, migrations)
    newest = max(path.name[:4] for path in migrations.glob("versions/*.py"))
    (migrations / "versions/9000_next.py").touch()
    monkeypatch.setattr(database, "MIGRATIONS", migrations)
    expected = {newest: "older Roost: run `roost record`", "9999": "a newer Roost"}
    for revision, says in expected.items():
        path.write_bytes(written)
        stamp(path, revision)
        assert read(str(path)) == 2
        assert says in capsys.readouterr().err
    missing = tmp_path / "typo.db"
    assert read(str(missing)) == 2
    assert "typo.db: no such file" in capsys.readouterr().err
    assert not missing.exists()


def test_a_recorder_does_not_touch_a_database_that_it_cannot_read(tmp_path: Path) -> None:
    store = empty_store(tmp_path)
    stamp(tmp_path / "roost.db", "9999")
    with pytest.raises(StoreError, match="newer Roost: use that version"):
        store.migrate()


def test_passwords_of_a_url_are_not_shown() -> None:
    shown = Store.open(
        "postgresql://me:first@host/name?password=second&sslpassword=third&sslmode=require"
    ).shown_url
    assert not any(secret in shown for secret in ("first", "second", "third"))
    assert "sslmode=require" in shown


def test_a_server_that_went_without_a_word_is_noticed(server: Postgres) -> None:
    url = server.url("postgres")
    store = Store.open(f"{url}{'&' if '?' in url else '?'}keepalives_idle=77")
    with store.reading() as connection:
        told = connection.connection.driver_connection
        assert told is not None
        parameters = told.info.get_parameters()
    store.close()
    wanted = {"connect_timeout": "10", "tcp_user_timeout": "30000", "keepalives_idle": "77"}
    assert {key: str(parameters.get(key)) for key in wanted} == wanted


def story() -> list[tuple[str, str, JSONObject | None]]:
    """What the streams tell of one pod's life, in each stream's order: (kind, key, object; None: it
    is gone).
    """

    return [
        (NODES, "n", node_object()),
        (PODS, "hub/p", pod_object("p", 2)),
        (PODS, "hub/p", pod_object("p", 3, on="n", conditions=[BOUND])),
        (EVENTS, "hub/e", event_object("Scheduled", "Successfully assigned hub/p to n")),
        (
            PODS,
            "hub/p",
            pod_object(
                "p", 5, on="n", conditions=[BOUND], status={"startTime": "2027-01-15T08:00:02Z"}
            ),
        ),
    ]


def tell(store: Store, told: list[tuple[str, str, JSONObject | None]]) -> None:
    """One run of the recorder over what is told, stored change by change."""
    assembler = Assembler(lambda _labels, _namespace: "user", store.read_state())
    for kind, key, item in told:
        now_us = 1_800_000_000 * SECOND
        if kind == NODES:
            records = records_of(assembler.node(key, read_node(item or {}), Observation(now_us)))
        elif kind == PODS:
            records = records_of(
                assembler.pod(key, read_pod(item or {}, (), {}), Observation(now_us))
            )
        else:
            records = assembler.event(read_event(item or {}))
        store.write(records, {})


@given(st.integers(min_value=0, max_value=2**32), st.integers(min_value=0, max_value=5))
@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_repeats_restarts_and_streams_out_of_step_change_nothing(
    open_store: Callable[[], Store], seed: int, restarts: int
) -> None:
    plain = open_store()
    tell(plain, story())
    chance = random.Random(seed)
    odd = open_store()
    for _ in range(restarts + 1):
        # Each stream keeps its order; between streams there is none. The last run tells all.
        streams = {
            kind: [one for one in story() if one[0] == kind] for kind in (NODES, PODS, EVENTS)
        }
        told = []
        while any(streams.values()):
            kind = chance.choice([kind for kind, rest in streams.items() if rest])
            one = streams[kind].pop(0)
            told += [one] * chance.choice([1, 1, 2])
        tell(odd, told)
    before, after = everything(plain), everything(odd)
    for table in ("pod", "phase", "node", "pull", "preemption"):
        assert before[table] == after[table], table
    assert [row[0] for row in before["decision"]] == [row[0] for row in after["decision"]]


@pytest.mark.parametrize("namespace", [None, "hub"])
def test_a_pod_is_found_by_its_name_without_reading_all_pods(
    open_store: Callable[[], Store], namespace: str | None
) -> None:
    store = open_store()
    asked: list[tuple[str, Any]] = []

    def note(_connection: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        asked.append((statement, parameters))

    sa.event.listen(store.engine, "before_cursor_execute", note)
    find_pods(store, "jupyter-ada", namespace)
    statement, parameters = asked[0]
    with store.engine.connect() as connection:
        if store.engine.dialect.name == SQLITE:
            plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters).all()
            assert "SEARCH pod USING INDEX pod_by_name (name=?" in plan[0][3]
        else:
            # So few rows are quicker read one after the other.
            connection.exec_driver_sql("SET enable_seqscan = off")
            text = "\n".join(
                row[0] for row in connection.exec_driver_sql(f"EXPLAIN {statement}", parameters)
            )
            assert "on pod_by_name" in text or "using pod_by_name" in text
            condition = text.partition("Index Cond: ")[2]
            assert "(name)::text = 'jupyter-ada'" in condition.partition("\n")[0]


# Columns of the table `start` that later schemas have.
NEW_TIMES = ("seated_us", "opened_us", "unused_us")


@pytest.fixture
def old_store(store: Store) -> Store:
    """A database of the first schema, with rows in it."""
    pods = [
        pod_record("a"),
        pod_record("b"),
        bind_record("a", 5, "n"),
        phase_record("a", Phase.READY, 7),
    ]
    store.write([NODE, *pods], {})
    with store.engine.begin() as connection:
        connection.execute(sa.text("ALTER TABLE node DROP COLUMN capacity"))
        connection.execute(sa.text("DROP TABLE pod_event"))
        for view in views.VIEWS:
            connection.execute(sa.text(f"DROP VIEW {view}"))
        connection.execute(sa.text("DROP INDEX start_seated"))
        for name in NEW_TIMES:
            connection.execute(sa.text(f"ALTER TABLE start DROP COLUMN {name}"))
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '0001'"))
    return store


@pytest.fixture
def upgrade(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Store], None]:
    """Migrates a database as the later version would."""

    def migrate(store: Store) -> None:
        folder = tmp_path / "migrations"
        if not folder.exists():
            shutil.copytree(database.MIGRATIONS, folder)
            shutil.copy(LATER, folder / "versions" / "0007_teams.py")
            monkeypatch.setattr(database, "MIGRATIONS", folder)
        store.migrate()

    return migrate


def rows_of(store: Store) -> dict[str, list[str]]:
    """The rows of an old schema's tables, without what later schemas brought."""
    newer = ("capacity", *NEW_TIMES)
    found = {}
    with store.reading() as connection:
        for table in schema.metadata.sorted_tables:
            if table is schema.pod_event:
                continue
            columns = [column for column in table.columns if column.name not in newer]
            found[table.name] = sorted(map(repr, connection.execute(sa.select(*columns))))
    return found


def test_an_older_database_becomes_what_a_new_one_is(old_store: Store) -> None:
    old_store.migrate()
    test_migrations_give_the_schema_that_the_code_writes(lambda: old_store)


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
    assert old_store.read_state().nodes["uid-n"].capacity is None
    old_store.write([pod_record("c"), replace(NODE, capacity='{"cpu": 4000}')], {})
    assert len(rows_of(old_store)["pod"]) == 3
    assert old_store.read_state().nodes["uid-n"].capacity == '{"cpu": 4000}'


def test_servers_that_a_culler_ended_leave_an_older_database(store: Store) -> None:
    # Roost from a checkout has recorded them.
    ended = phase_record("a", Phase.GONE, 9)
    store.write([pod_record("a"), phase_record("a", Phase.READY, 7), ended], {})
    with store.engine.begin() as connection:
        connection.execute(sa.text("UPDATE phase SET phase = 'culled' WHERE phase = 'gone'"))
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '0005'"))
    store.migrate()
    with store.reading() as connection:
        phases = connection.execute(sa.text("SELECT phase FROM phase")).scalars().all()
    assert "ready" in phases
    assert "culled" not in phases
    test_migrations_give_the_schema_that_the_code_writes(lambda: store)


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
        assert "team" not in {
            column["name"] for column in sa.inspect(connection).get_columns("pod")
        }
        assert (
            connection.execute(sa.text("SELECT version_num FROM alembic_version")).scalar()
            == "0001"
        )


def test_accounts_that_read_an_older_database_still_can(
    server: Postgres, upgrade: Callable[[Store], None]
) -> None:
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
