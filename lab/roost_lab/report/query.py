"""Query one state of the database over one window of time.

The database counts and adds up: a query returns at most a few thousand rows, whatever the database
holds. Every expression here works the same in SQLite and PostgreSQL.
"""

import contextlib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import UTC, tzinfo
from functools import cached_property
from ipaddress import ip_address
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import sqlalchemy as sa

from roost_lab.pages.dates import offset_us
from roost_lab.recorder.store import schema
from roost_lab.recorder.store.database import Store
from roost_lab.recorder.store.records import DecisionKind
from roost_lab.recorder.store.schema import SQLITE
from roost_lab.report.statistics import (
    LAST_INDEX,
    LONGEST_SHIFT,
    LONGEST_STEP_US,
    LONGEST_US,
    STEPS,
    Span,
    cut,
    edge_at,
)

Number = sa.ColumnElement[int]
Rows = Iterator[sa.Row[Any]]
# Most steps of a report.
MAX_STEPS: Final = 240
# The most that one row adds to a sum, in µs (50 days) or bytes (4 TiB): any Event may report more,
# and no report could be made if a sum did not fit into 64 bits.
_MAX_AMOUNT: Final = edge_at(LAST_INDEX)
# How much of an SQLite file is mapped; the most that SQLite allows. Looking up uids touches pages
# at random, and is twice as fast as with reads. The mapping is the kernel's page cache, which is
# given back when others need memory.
_MAPPED_BYTES: Final = 2**31 - 2**16


# Values that an error about a scope lists at most.
_MOST_LISTED: Final = 10


class ScopeError(Exception):
    """Nothing in the record fits an option; the text names what would."""


class Scope(NamedTuple):
    """What a report's pods have in common; None: anything."""

    hub: str | None = None
    pod_class: str | None = None
    image: str | None = None

    @property
    def chosen(self) -> dict[str, str]:
        """Option -> the value that was asked for."""
        options = {"hub": self.hub, "class": self.pod_class, "image": self.image}
        return {option: value for option, value in options.items() if value is not None}

    def has(self, pod_uid: sa.ColumnElement[str]) -> sa.ColumnElement[bool]:
        """Whether the pod of that uid is one of them.

        A pod that the record doesn't know is so only if all are.
        """
        if not self.chosen:
            return sa.true()
        conditions = [_COLUMNS[option] == value for option, value in self.chosen.items()]
        return pod_uid.in_(sa.select(schema.pod.c.uid).where(*conditions))

    def check(self, connection: sa.Connection) -> None:
        """Raise ScopeError if the record, at any time, has no pod with one of the values."""
        for option, value in self.chosen.items():
            column = _COLUMNS[option]
            if connection.execute(sa.select(1).where(column == value).limit(1)).first() is None:
                query = (
                    sa.select(column)
                    .where(column != "")
                    .group_by(column)
                    .order_by(sa.func.count().desc(), column)
                )
                known = list(connection.execute(query.limit(_MOST_LISTED + 1)).scalars())
                listed = ", ".join(known[:_MOST_LISTED])
                if len(known) > _MOST_LISTED:
                    listed += " and others"
                expected = f"expected one that pods of the record have: {listed or 'there is none'}"
                raise ScopeError(f"--{option}: found {value!r}, {expected}")


EVERY_POD: Final = Scope()
_COLUMNS: Final = {
    "hub": schema.pod.c.hub,
    "class": schema.pod.c.pod_class,
    "image": schema.pod.c.image,
}


class Query:
    """Runs queries over one window of time, on one state of the database."""

    def __init__(
        self,
        connection: sa.Connection,
        window: Span,
        extent: Span,
        scope: Scope = EVERY_POD,
        zone: tzinfo = UTC,
    ) -> None:
        self._connection = connection
        self.scope = scope
        self.window = window
        self.zone = zone
        # The time that the database covers: from the first recorder's start to its last sign of
        # life.
        self.extent = extent
        self.steps = cut(window.from_us, window.to_us, MAX_STEPS, offset_us(window.from_us, zone))

    def rows(self, query: sa.Executable) -> Rows:
        """The query's rows, as they arrive."""
        yield from self._connection.execution_options(yield_per=1000).execute(query)

    def rows_by_pod(self, query: sa.Executable) -> defaultdict[str, list[Mapping[str, Any]]]:
        """The query's rows by their `pod_uid`; no rows for any other uid."""
        by_pod: defaultdict[str, list[Mapping[str, Any]]] = defaultdict(list)
        for row in self.rows(query):
            by_pod[row.pod_uid].append(row._asdict())
        return by_pod

    def within(
        self, time_us: sa.ColumnElement[int], pod_uid: sa.ColumnElement[str] | None = None
    ) -> sa.ColumnElement[bool]:
        """Whether a time lies in the window and, if it is of a pod, whether the report is about
        that pod.
        """
        inside = sa.and_(time_us >= self.window.from_us, time_us < self.window.to_us)
        return inside if pod_uid is None else sa.and_(inside, self.scope.has(pod_uid))

    def step(self, time_us: sa.ColumnElement[int]) -> sa.Label[int]:
        """The step in which a time lies, as column `step`."""
        return ((time_us - self.steps.from_us) // self.steps.step_us).label("step")

    @cached_property
    def hubs(self) -> list[str]:
        """The hubs that pods of a class, created in the window, belong to."""
        pod = schema.pod.c
        known = sa.and_(self.within(pod.created_us, pod.uid), pod.pod_class != "", pod.hub != "")
        query = sa.select(pod.hub).where(known).distinct().order_by(pod.hub)
        return [row.hub for row in self.rows(query)]

    def cluster(self) -> str:
        """The API server's name, as the last recorder used it; "" if it had an address only, as it
        has in a cluster.
        """
        run = schema.run.c
        query = sa.select(run.cluster).order_by(run.started_us.desc()).limit(1)
        url: str | None = self._connection.execute(query).scalar()
        host = urlsplit(url or "").hostname or ""
        with contextlib.suppress(ValueError):
            ip_address(host)
            return ""
        return host


def read_extent(connection: sa.Connection) -> Span | None:
    """The time that the database covers; None when it has no records."""

    def read(
        aggregate: Any,  # noqa: ANN401 - sa.func.min or max
        column: sa.ColumnElement[int],
        *where: sa.ColumnElement[bool] | sa.TextClause,
    ) -> int | None:
        value: int | None = connection.execute(sa.select(aggregate(column)).where(*where)).scalar()
        return value

    first = sa.func.min
    last = sa.func.max
    pod = schema.pod.c
    decision = schema.decision.c
    # Imported records have no runs. Pods that a run found say nothing about the time before it.
    begins = [read(first, schema.run.c.started_us), read(first, pod.created_us, schema.IMPORTED)]
    from_us = min((begin for begin in begins if begin is not None), default=None)
    if from_us is None:
        from_us = read(first, pod.created_us)
    heard_us = read(last, schema.checkpoint.c.at_us)
    ends = [heard_us, read(last, pod.created_us), read(last, schema.gap.c.to_us)]
    if heard_us is None:
        # Imported records only: a recorder's own clock has the last word where there is one, for
        # other clocks, and anybody's Events, may be far ahead.
        ends += [read(last, decision.at_us, decision.kind == str(kind)) for kind in DecisionKind]
        ends += [read(last, schema.pull.c.at_us), read(last, pod.deleted_us)]
    known_ends = [end for end in ends if end is not None]
    if from_us is None or not known_ends:
        return None
    return Span(from_us, max(*known_ends, from_us) + 1)


@contextlib.contextmanager
def consistent_reads(store: Store) -> Iterator[sa.Connection]:
    """A connection that sees one state of the database, whatever is written meanwhile.

    Raises StoreError.
    """
    with store.reading() as connection:
        if connection.dialect.name == SQLITE:
            connection.exec_driver_sql(f"PRAGMA mmap_size = {_MAPPED_BYTES}")
            connection.exec_driver_sql("BEGIN")
            yield connection
        else:
            yield connection.execution_options(
                isolation_level="REPEATABLE READ", postgresql_readonly=True
            )


def count() -> sa.Label[int]:
    """The number of rows, as column `number`."""
    return sa.func.count().label("number")


def total(amount: sa.ColumnElement[Any]) -> Number:
    """The sum of an amount; 0 of no rows."""
    # PostgreSQL's sum of bigint is numeric.
    return sa.cast(sa.func.coalesce(sa.func.sum(amount), 0), sa.BigInteger)


def bounded(amount: sa.ColumnElement[int]) -> sa.ColumnElement[int]:
    """An amount that `total` can add up; 0 for negative ones and NULL."""
    return sa.case((amount > _MAX_AMOUNT, _MAX_AMOUNT), (amount > 0, amount), else_=0)


def kept_apart(select: sa.Select[*tuple[Any, ...]], name: str | None = None) -> sa.Subquery:
    """A subquery that the database works out as it is.

    Without OFFSET 0 the database may merge it into the query around it, and then computes its
    columns once for each place that names them.
    """
    return select.offset(0).subquery(name)


def step_index(span_us: sa.ColumnElement[int]) -> Number:
    """The number of the step of statistics.STEPS that a span counts in; 0 for negative ones, not
    for NULL.
    """
    return sa.case(
        (span_us <= 0, 0),
        *(
            (span_us <= steps.longest_us, _round_up(span_us, steps.step_us) + steps.shift)
            for steps in STEPS
        ),
        (span_us < LONGEST_US, _round_up(span_us, LONGEST_STEP_US) + LONGEST_SHIFT),
        else_=LAST_INDEX,
    )


def _round_up(span_us: sa.ColumnElement[int], step_us: int) -> sa.ColumnElement[int]:
    return (span_us + (step_us - 1)) // step_us
