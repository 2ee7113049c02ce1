"""Store records in SQLite or PostgreSQL: each batch and the watches' positions in one transaction.

Guarantee: a batch is stored completely or not at all, and storing it again changes nothing. So
after a crash everything is read again from the stored position, and nothing is stored twice.
"""

from __future__ import annotations

import contextlib
import functools
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any, Final, Self

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, SQLAlchemyError
from sqlalchemy.sql.base import ReadOnlyColumnCollection
from sqlalchemy.sql.elements import KeyedColumnElement

from roost_lab.recorder.store import schema, start_rows
from roost_lab.recorder.store.records import (
    DecisionKind,
    Merge,
    NodeRecord,
    Phase,
    PodRecord,
    PodSource,
    Record,
    StoredState,
)
from roost_lab.recorder.store.schema import POSTGRESQL, SQLITE
from roost_lab.recorder.store.views import make_views

_Columns = ReadOnlyColumnCollection[str, KeyedColumnElement[Any]]

MIGRATIONS: Final = Path(__file__).parent / "migrations"
# Pods that are deleted in one transaction, with everything about them.
FORGOTTEN_PODS: Final = 500
# Timeouts of PostgreSQL's client, to notice a dead server. Seconds, seconds, milliseconds.
_TIMEOUTS: Final = {"connect_timeout": 10, "keepalives_idle": 10, "tcp_user_timeout": 30_000}
# How long SQLite waits for another process, such as a checkpoint.
BUSY_SECONDS: Final = 30
_ACCEPTED: Final = "give a file, or postgresql://user@host/name"
_BAD_URL: Final = (
    f"the database's URL is not valid: {_ACCEPTED} (in a user or password, write @ as %40, ? as %3F"
    " and % as %25)"
)
# Names of SQLite's driver in a URL.
_SQLITE_DRIVERS: Final = ("", "pysqlite")
# PostgreSQL's class of errors for exceeded limits, such as a text too long for an index: permanent.
_LIMIT_EXCEEDED: Final = "54"
# Where Alembic stores the schema's revision.
_VERSION: Final = sa.table("alembic_version", sa.column("version_num"))
_FIRST: Final = "0001"
_NEWER: Final = "written by a newer Roost: use that version"


class StoreError(Exception):
    """The database cannot be used; the message says which one, why and what to do, without
    passwords.
    """


class Refused(StoreError):  # noqa: N818 - says what is wrong, as TimeoutError does
    """The database refuses a row, for a number or text that does not fit.

    Retrying does not help.
    """


class Unavailable(StoreError):  # noqa: N818 - says what is wrong, as TimeoutError does
    """The database does not answer now; retrying later may help."""


class Store:
    """One database. Connections are made as needed, so it may be down for a while."""

    def __init__(self, engine: sa.Engine) -> None:
        self.engine = engine
        self.shown_url = _shown(engine.url)

    @classmethod
    def open(cls, url: str, *, only_reads: bool = False) -> Self:
        """Connect by a path of an SQLite file, or a URL (postgresql://user:password@host/name).
        Raises StoreError.

        only_reads: an SQLite file's settings are not changed either.
        """
        try:
            if "://" in url:
                parsed = sa.make_url(url)
            else:
                # A path is not parsed as a URL: in it, %, ? and # stand for themselves.
                parsed = sa.URL.create(SQLITE, database=str(Path(url).absolute()))
            return cls(cls._engine(parsed, only_reads))
        except (sa.exc.ArgumentError, ValueError, TypeError):
            # Their messages may contain a part of the password.
            raise StoreError(_BAD_URL) from None

    @staticmethod
    def _engine(parsed: sa.URL, only_reads: bool) -> sa.Engine:
        backend, _, driver = parsed.drivername.partition("+")
        if _is_misparsed(parsed):
            raise StoreError(_BAD_URL)
        if backend == POSTGRESQL:
            # Psycopg 3, whatever driver the URL's author is used to.
            engine = sa.create_engine(
                parsed.set(drivername="postgresql+psycopg"),
                pool_pre_ping=True,
                connect_args={
                    key: value for key, value in _TIMEOUTS.items() if key not in parsed.query
                },
            )
        elif backend == SQLITE and driver in _SQLITE_DRIVERS:
            engine = sa.create_engine(parsed, connect_args={"timeout": BUSY_SECONDS})
            if not only_reads:
                sa.event.listen(engine, "connect", _set_up_sqlite)
        elif backend == SQLITE:
            raise _refusal(parsed, driver, "SQLite's own driver")
        else:
            raise _refusal(parsed, backend, "SQLite or PostgreSQL")
        sa.event.listen(engine, "do_connect", _connect)
        return engine

    @classmethod
    def open_for_reading(cls, url: str) -> Self:
        """Connect to a database that a recorder of this schema has written; changes nothing.

        Raises StoreError.
        """
        store = cls.open(url, only_reads=True)
        try:
            store._check_written()
        except StoreError:
            store.close()
            raise
        return store

    def _check_written(self) -> None:
        url = self.engine.url
        if (
            url.get_backend_name() == SQLITE
            and "uri" not in url.query
            and not Path(url.database or "").is_file()
        ):
            # Opening would create it.
            raise StoreError(f"{url.database}: no such file")
        with self.reading() as connection:
            revision = self._revision(connection)
        if revision is None:
            raise StoreError(f"database {self.shown_url}: no recorder has written to it")
        # The files' names begin with their revision.
        *older, newest = sorted(path.name[:4] for path in MIGRATIONS.glob("versions/*.py"))
        if revision == newest:
            return
        if revision in older:
            raise StoreError(
                f"database {self.shown_url}: written by an older Roost: run `roost record` or"
                " `roost records import` of this version on it once, which migrates it; a replay's"
                " record is made again"
            )
        raise StoreError(f"database {self.shown_url}: {_NEWER}")

    def migrate(self) -> None:
        """Make the schema, or bring it up to date; safe when several processes do so at once.

        Raises StoreError.
        """
        from alembic import command  # noqa: PLC0415 - slow to import, and needed only here
        from alembic.config import Config  # noqa: PLC0415 - likewise
        from alembic.util import CommandError  # noqa: PLC0415 - likewise

        config = Config()
        config.set_main_option("script_location", str(MIGRATIONS))
        with self._faults(), self.engine.begin() as connection:
            if self.engine.dialect.name == POSTGRESQL:
                # One at a time; released at the end of the transaction. The number is arbitrary.
                connection.execute(sa.text("SELECT pg_advisory_xact_lock(7026421)"))
            else:
                # One at a time, and all or nothing: the driver begins no transaction for CREATE and
                # DROP.
                connection.exec_driver_sql("BEGIN IMMEDIATE")
            config.attributes["connection"] = connection
            before = self._revision(connection)
            try:
                if before is None:
                    # The first revision makes the tables as they are today: the later revisions
                    # have nothing to do.
                    command.upgrade(config, _FIRST)
                    command.stamp(config, "head")
                else:
                    command.upgrade(config, "head")
            except CommandError:
                # The database has a revision that this recorder doesn't know.
                raise StoreError(f"database {self.shown_url}: {_NEWER}") from None
            if self._revision(connection) != before:
                make_views(connection)

    @staticmethod
    def _revision(connection: sa.Connection) -> str | None:
        if not sa.inspect(connection).has_table(_VERSION.name):
            return None
        revision: str | None = connection.execute(sa.select(_VERSION.c.version_num)).scalar()
        return revision

    def write(self, records: Iterable[Record], positions: Mapping[str, tuple[str, int]]) -> None:
        """Store records and each kind's watch position: (resourceVersion, µs).

        Raises StoreError and its subclasses.
        """
        rows: dict[type[Record], list[Record]] = {}
        pods = set()
        started_pods = set()
        for record in records:
            rows.setdefault(type(record), []).append(record)
            if isinstance(record, PodRecord):
                pods.add(record.uid)
            uid = start_rows.pod_of(record)
            if uid is not None:
                started_pods.add(uid)
        with self._faults(), self.engine.begin() as connection:
            dialect = connection.dialect.name
            start_rows.forget_estimates(connection, pods)
            for kind, of_kind in rows.items():
                # Sorted by key, so that neighbours in the index are written together. Rows of one
                # key keep their order.
                of_kind.sort(key=attrgetter(*kind.table.primary_key.columns.keys()))
                connection.execute(
                    _upsert(kind.table, dialect), [vars(record) for record in of_kind]
                )
            start_rows.refresh(connection, started_pods)
            for name, (version, at_us) in positions.items():
                values = {"kind": name, "resource_version": version, "at_us": at_us}
                connection.execute(_upsert(schema.checkpoint, dialect), values)

    def write_what_fits(
        self,
        records: Sequence[Record],
        positions: Mapping[str, tuple[str, int]],
        note_refused: Callable[[Record, Refused], None],
    ) -> None:
        """Write as `write` does, in halves if need be: the rows that the database refuses are
        passed on.

        Raises StoreError.
        """
        try:
            self.write(records, positions)
        except Refused as error:
            if len(records) > 1:
                half = len(records) // 2
                self.write_what_fits(records[:half], {}, note_refused)
                self.write_what_fits(records[half:], positions, note_refused)
                return
            for record in records:
                note_refused(record, error)
            self.write([], positions)

    def positions(self) -> dict[str, tuple[str, int]]:
        """The stored watch positions: kind -> (resourceVersion, µs)."""
        with self.reading() as connection:
            rows = connection.execute(sa.select(schema.checkpoint)).mappings()
            return {row["kind"]: (row["resource_version"], row["at_us"]) for row in rows}

    def read_state(self) -> StoredState:
        """What exists according to the database: where an earlier run stopped."""
        pods = schema.pod.c
        node = schema.node
        images = schema.image_on_node.c
        with self.reading() as connection:
            alive_pods = connection.execute(
                sa.select(pods.uid, pods.created_us).where(pods.deleted_us.is_(None))
            )
            seated = (
                sa.select(schema.phase.c.pod_uid)
                .join(schema.pod, pods.uid == schema.phase.c.pod_uid)
                .where(pods.deleted_us.is_(None), schema.phase.c.phase == Phase.SEATED)
            )
            seated_pods = frozenset(connection.execute(seated).scalars())
            alive_nodes = connection.execute(sa.select(node).where(node.c.gone_us.is_(None)))
            present = connection.execute(
                sa.select(images.node_uid, images.image, images.first_us).where(
                    images.gone_us.is_(None)
                )
            )
            by_node: dict[str, dict[str, int]] = {}
            for node_uid, image, first_us in present:
                by_node.setdefault(node_uid, {})[image] = first_us
            known_pods = {row.uid: row.created_us for row in alive_pods}
            known_nodes = {row.uid: NodeRecord(**row._mapping) for row in alive_nodes}
        heard_us = {kind: at_us for kind, (_, at_us) in self.positions().items()}
        return StoredState(known_pods, seated_pods, known_nodes, by_node, heard_us)

    @contextlib.contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """A connection for queries. Raises StoreError."""
        with self._faults(), self.engine.connect() as connection:
            yield connection

    @contextlib.contextmanager
    def run(self, cluster: str, version: str, settings_hash: str) -> Iterator[None]:
        """Store that recording begins and, if the database is there then, that it ended.

        Raises StoreError.
        """
        run = schema.run
        values = {"cluster": cluster, "version": version, "settings_hash": settings_hash}
        with self._faults(), self.engine.begin() as connection:
            began = (
                sa.insert(run)
                .values(**values, started_us=time.time_ns() // 1000)
                .returning(run.c.id)
            )
            number = connection.execute(began).scalar_one()
        try:
            yield
        finally:
            with contextlib.suppress(StoreError), self._faults(), self.engine.begin() as connection:
                ended = (
                    sa.update(run)
                    .where(run.c.id == number)
                    .values(stopped_us=time.time_ns() // 1000)
                )
                connection.execute(ended)

    def forget_before(self, time_us: int) -> dict[str, int]:
        """Delete what ended before that time; returns rows by table.

        Pods and nodes that still exist stay.
        """
        counts: Counter[str] = Counter()
        pod = schema.pod.c
        decision = schema.decision.c
        pull = schema.pull.c
        pod_event = schema.pod_event.c
        ended = sa.select(pod.uid).where(pod.deleted_us < time_us).limit(FORGOTTEN_PODS)
        # Rows of pods that are known from Events only.
        is_known = sa.select(pod.uid)
        orphans = (
            sa.select(decision.pod_uid)
            # By kind: the index holds one kind after the other.
            .where(decision.kind.in_([str(kind) for kind in DecisionKind]))
            .where(
                decision.at_us < time_us,
                decision.last_us < time_us,
                decision.pod_uid.not_in(is_known),
            )
            .limit(FORGOTTEN_PODS),
            sa.select(pull.pod_uid)
            .where(pull.at_us < time_us, pull.pod_uid.not_in(is_known))
            .limit(FORGOTTEN_PODS),
            sa.select(pod_event.pod_uid)
            .where(pod_event.last_us < time_us, pod_event.pod_uid.not_in(is_known))
            .limit(FORGOTTEN_PODS),
        )
        for query in (ended, *orphans):
            while self._forget_pods(query, counts) == FORGOTTEN_PODS:
                pass
        old_nodes = sa.select(schema.node.c.uid).where(schema.node.c.gone_us < time_us)
        deletions: Sequence[tuple[sa.Table, sa.ColumnElement[bool]]] = (
            (schema.preemption, schema.preemption.c.at_us < time_us),
            (schema.autoscaler, schema.autoscaler.c.last_us < time_us),
            (schema.gap, schema.gap.c.to_us < time_us),
            (schema.node_change, schema.node_change.c.at_us < time_us),
            (schema.image_on_node, schema.image_on_node.c.gone_us < time_us),
            (schema.image_on_node, schema.image_on_node.c.node_uid.in_(old_nodes)),
            (schema.node, schema.node.c.gone_us < time_us),
        )
        for table, condition in deletions:
            with self._faults(), self.engine.begin() as connection:
                counts[table.name] += connection.execute(sa.delete(table).where(condition)).rowcount
        if counts[schema.pod.name]:
            with self._faults(), self.engine.begin() as connection:
                start_rows.forget_unused(connection)
        return dict(counts)

    def _forget_pods(self, query: sa.Select[Any], counts: Counter[str]) -> int:
        """Delete everything about the pods of a query, in one transaction: the recorder waits no
        longer than that.

        Returns how many these were.
        """
        with self._faults(), self.engine.begin() as connection:
            uids = list(connection.execute(query).scalars())
            start_rows.forget(connection, uids)
            decisions = sa.select(schema.decision.c.id).where(schema.decision.c.pod_uid.in_(uids))
            by_pod = (schema.decision, schema.phase, schema.pull, schema.pod_event, schema.waiting)
            for table, condition in (
                (schema.candidates, schema.candidates.c.decision_id.in_(decisions)),
                *((table, table.c.pod_uid.in_(uids)) for table in by_pod),
                (schema.pod, schema.pod.c.uid.in_(uids)),
            ):
                counts[table.name] += connection.execute(sa.delete(table).where(condition)).rowcount
            return len(uids)

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()

    @contextlib.contextmanager
    def _faults(self) -> Iterator[None]:
        try:
            yield
        except (DataError, IntegrityError) as error:
            raise Refused(
                f"database {self.shown_url}: {' '.join(str(error.orig).split())}"
            ) from None
        except (OverflowError, UnicodeEncodeError) as error:
            # From drivers, for a number beyond 64 bits and for half a surrogate pair.
            raise Refused(f"database {self.shown_url}: {error}") from None
        except DBAPIError as error:
            # The driver's message in one line, without statements and values.
            reason = " ".join(str(error.orig).split())
            kind: type[StoreError] = StoreError
            if str(getattr(error.orig, "sqlstate", "")).startswith(_LIMIT_EXCEEDED):
                kind = Refused
            elif error.connection_invalidated or isinstance(error, sa.exc.OperationalError):
                kind = Unavailable
            raise kind(f"database {self.shown_url}: {reason}") from None
        except sqlite3.Error as error:
            # From statements that are passed to the driver itself.
            kind = Unavailable if isinstance(error, sqlite3.OperationalError) else StoreError
            raise kind(f"database {self.shown_url}: {error}") from None
        except SQLAlchemyError as error:
            raise StoreError(f"database {self.shown_url}: {type(error).__name__}") from None
        except OSError as error:
            raise StoreError(f"database {self.shown_url}: {error.strerror}") from None


@functools.cache
def _upsert(table: sa.Table, dialect: str) -> postgresql.Insert | sqlite.Insert:
    """Insert a row, or merge it with the one of its key, column by column."""
    insert = postgresql.insert(table) if dialect == POSTGRESQL else sqlite.insert(table)
    updates = {
        column.name: _merged(column, table.c, insert.excluded, dialect)
        for column in table.columns
        if column.info["merge"] is not None
    }
    keys = table.primary_key.columns.keys()
    if not updates:
        return insert.on_conflict_do_nothing(index_elements=keys)
    return insert.on_conflict_do_update(index_elements=keys, set_=updates)


def _merged(
    column: sa.Column[Any], old: _Columns, new: _Columns, dialect: str
) -> sa.ColumnElement[Any]:
    """The value of a column of two rows with the same key; see `Merge`."""
    merge: Merge = column.info["merge"]
    is_better: sa.ColumnElement[bool]
    before = old[column.name]
    after = new[column.name]
    first = sa.func.coalesce(before, after)
    last = sa.func.coalesce(after, before)
    is_text = isinstance(before.type, sa.String)
    is_empty = before == sa.literal_column("''") if is_text else sa.false()
    match merge:
        case Merge.FIRST:
            return first
        case Merge.LAST:
            return last
        case Merge.MIN | Merge.MAX:
            # SQLite's min of NULL is NULL.
            function = "min" if merge is Merge.MIN else "max"
            if dialect == POSTGRESQL:
                function = "least" if merge is Merge.MIN else "greatest"
            return sa.Function(function, first, last)
        case Merge.FINER:
            is_earlier = (new.resolution_us == old.resolution_us) & (new.at_us < old.at_us)
            is_better = (new.resolution_us < old.resolution_us) | is_earlier
        case Merge.EARLIER:
            is_better = new.at_us < old.at_us
        case Merge.FILLED:
            is_better = is_empty
        case Merge.BETTER | Merge.BETTER_MIN:
            is_wanted = after < before if merge is Merge.BETTER_MIN else is_empty
            is_better = (new.source > old.source) | ((new.source == old.source) & is_wanted)
        case Merge.END:
            was_watched = old.source == sa.literal_column(f"'{PodSource.WATCH}'")
            both_imported = (new.source == old.source) & sa.not_(was_watched)
            is_earlier = both_imported & (new.deleted_us < old.deleted_us)
            is_preferred = (new.source > old.source) | is_earlier
            is_better = old.deleted_us.is_(None) | (new.deleted_us.is_not(None) & is_preferred)
    return sa.case((is_better, after), else_=before)


def _is_misparsed(url: sa.URL) -> bool:
    """Whether an unescaped @ in a password was parsed as a part of host or database."""
    # The name of an SQLite file may have one.
    database = "" if url.get_backend_name() == SQLITE else url.database
    if "@" in (url.host or "") or "@" in (database or ""):
        return True
    return "@" in (url.username or "") and "?" in str(url.password or "")


def _shown(url: sa.URL) -> str:
    """A URL without its passwords, which may also be parameters."""
    query = {
        key: "hidden" if "password" in key.lower() else value for key, value in url.query.items()
    }
    return url.set(query=query).render_as_string(hide_password=True)


def _refusal(url: sa.URL, found: str, accepted: str) -> StoreError:
    # Other databases' parameters may be secrets of any name.
    shown = _shown(url.set(query={}))
    return StoreError(f"database {shown}: found {found!r}, expected {accepted}: {_ACCEPTED}")


def _connect(dialect: Any, _record: object, arguments: Any, named: Any) -> Any:  # noqa: ANN401 - the library's
    """Connect; errors about the URL are raised without the driver's message, which may hold a
    password.
    """
    try:
        return dialect.connect(*arguments, **named)
    except (ValueError, TypeError, OverflowError):
        raise StoreError(_BAD_URL) from None


def _set_up_sqlite(connection: Any, _record: object) -> None:  # noqa: ANN401 - the driver's connection
    cursor = connection.cursor()
    # Takes effect on an empty file only: each transaction gives back the space of the rows that it
    # deletes.
    cursor.execute("PRAGMA auto_vacuum=FULL")
    # Readers don't block the writer, and a kill leaves a consistent database.
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA synchronous=NORMAL")
    cursor.close()
