"""Ask the database for counts, a few thousand rows whatever it holds: the database sums up, no pod is fetched.

Each query gives rows whose meaning is in its docstring; the same in SQLite and PostgreSQL.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import sqlalchemy as sa

from roost.recorder.report.statistics import (
    LAST_INDEX,
    LONGEST_BEFORE,
    LONGEST_STEP_US,
    LONGEST_US,
    STEPS,
    Span,
    Steps,
    edge_at,
)
from roost.recorder.store import schema
from roost.recorder.store.database import SQLITE
from roost.recorder.store.records import DecisionKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from roost.recorder.store.database import Store

Number = sa.ColumnElement[int]
T = TypeVar("T")
PLACEHOLDER: Final = "placeholder"
# Spans of a start.
NODE, CONTAINERS, READY, WHOLE = "node", "containers", "ready", "whole"
# Of a new node, after its READY.
IMAGES: Final = "images"
# Node's age at the binding, in µs, and what it is called.
AGES: Final[tuple[tuple[int, str], ...]] = ((600_000_000, "newer than 10 min"), (3_600_000_000, "10 min to 1 h"))
OLD: Final = "older than 1 h"
UNKNOWN_AGE: Final = "unknown"
AGE_NAMES: Final = (*(name for _, name in AGES), OLD, UNKNOWN_AGE)
# Steps of a report at most.
MOST_STEPS: Final = 240
# What one row adds to a sum at most, in µs (50 days) or bytes (4 TiB): anybody's Event may tell of more, and a sum that
# doesn't fit into 64 bits would leave nobody any report.
_MOST_AMOUNT: Final = edge_at(LAST_INDEX)
# Above every index of an edge.
_MOST_INDEXES: Final = 2**20
# So much of an SQLite file is mapped, SQLite's own most: lookups by uid touch its pages at random, and are twice as
# fast so as by reads. It is the kernel's page cache, given back when others need it.
_MAPPED_BYTES: Final = 2**31 - 2**16


class StartCount(NamedTuple):
    """So many starts of one kind that took, for one of their spans, so long."""

    span: str
    # See `Asking.kinds`.
    kind_id: int
    # Of the node, a name of AGE_NAMES.
    age: str
    edge_us: int
    number: int
    sum_us: int


class Stays(NamedTuple):
    """So many more pods of one class on one node; negative: fewer."""

    node_name: str
    pod_class: str
    step: int
    number: int
    # Sum of how long after the step's start they came or went, with the sign of `number`.
    after_us: int


class Asking:
    """Queries on one state of the database, over one window of time."""

    def __init__(self, connection: sa.Connection, window: Span) -> None:
        self._connection = connection
        self._window = window

    def counts(self) -> dict[str, int]:
        """Rows within the window: decisions, pulls, pre-emptions."""
        found = {}
        for table, moment, among in (
            # Of all kinds: its index has them one after the other.
            (schema.decision, schema.decision.c.at_us, schema.decision.c.kind.in_([str(one) for one in DecisionKind])),
            (schema.pull, schema.pull.c.at_us, sa.true()),
            (schema.preemption, schema.preemption.c.at_us, sa.true()),
        ):
            query = sa.select(sa.func.count()).select_from(table).where(self._within(moment), among)
            found[table.name] = int(self._connection.execute(query).scalar_one())
        return found

    def gaps(self) -> list[tuple[str, Span, str]]:
        """Marked gaps that touch the window: what may be missing, when, why."""
        gap = schema.gap.c
        query = (
            sa.select(gap.kind, gap.from_us, gap.to_us, gap.why)
            .where(gap.from_us < self._window.to_us, gap.to_us > self._window.from_us)
            .order_by(gap.from_us, gap.kind)
        )
        return [(row.kind, Span(row.from_us, row.to_us), row.why) for row in self._connection.execute(query)]

    def kinds(self) -> Iterator[sa.Row[Any]]:
        """Kinds of pods created: id, pod_class, scheduler, image, pods."""
        start, kind = schema.start.c, schema.start_kind
        counted = (
            sa.select(start.kind_id, sa.func.count().label("pods"))
            .where(self._within(start.created_us))
            .group_by(start.kind_id)
            .subquery()
        )
        yield from self._stream(sa.select(kind, counted.c.pods).join(counted, counted.c.kind_id == kind.c.id))

    def starts(self) -> Iterator[StartCount]:
        """Spans of starts of pods created in the window, counted."""
        start = schema.start.c
        spans = (
            (NODE, start.created_us, start.bound_us),
            (CONTAINERS, start.bound_us, start.started_us),
            (READY, start.started_us, start.ready_us),
            (WHOLE, start.created_us, start.ready_us),
        )
        age = _age(start.bound_us - start.node_created_us)
        parts = []
        for name, from_us, to_us in spans:
            span_us = to_us - from_us
            # One small number for all that spans are counted by: a million rows are sorted by it, four times.
            key = (sa.cast(start.kind_id, sa.BigInteger) * len(AGE_NAMES) + age) * _MOST_INDEXES + _index_of(span_us)
            counted = (
                # A whole second may seem to come before the fraction of it that it follows.
                sa.select(key.label("key"), _bounded(span_us).label("span_us"))
                .where(self._within(start.created_us), from_us.is_not(None), to_us.is_not(None))
                .offset(0)
                .subquery()
            )
            parts.append(
                sa.select(
                    sa.literal(name).label("span"),
                    counted.c.key,
                    sa.func.count().label("number"),
                    _sum(counted.c.span_us).label("sum_us"),
                ).group_by(counted.c.key)
            )
        for row in self._stream(sa.union_all(*parts)):
            rest, index = divmod(row.key, _MOST_INDEXES)
            kind_id, age_index = divmod(rest, len(AGE_NAMES))
            yield StartCount(row.span, kind_id, AGE_NAMES[age_index], edge_at(index), row.number, row.sum_us)

    def new_nodes(self) -> Iterator[sa.Row[Any]]:
        """Spans of nodes created in the window that were seen to get all images.

        span, edge (an index of edges), number, sum_us.
        """
        node = schema.node.c
        for name, from_us, to_us in (
            (READY, node.created_us, node.ready_us),
            (IMAGES, node.ready_us, node.images_ready_us),
        ):
            edge = _index_of(to_us - from_us).label("edge")
            number, sum_us = sa.func.count().label("number"), _sum(_bounded(to_us - from_us)).label("sum_us")
            yield from self._stream(
                sa.select(sa.literal(name).label("span"), edge, number, sum_us)
                .where(self._within(node.created_us), node.ready_us.is_not(None), node.images_ready_us.is_not(None))
                .group_by(edge)
            )

    def cold_pulls(self, images: Sequence[str]) -> Iterator[sa.Row[Any]]:
        """Pulls that weren't warm, with their wait, counted.

        image (an index of `images`, their number for another), edge (an index of edges), number, sum_us.
        """
        pull = schema.pull.c
        image = _index(images, lambda one: pull.image == one).label("image")
        edge = _index_of(pull.pull_and_wait_us).label("edge")
        yield from self._stream(
            sa.select(
                image, edge, sa.func.count().label("number"), _sum(_bounded(pull.pull_and_wait_us)).label("sum_us")
            )
            .where(self._within(pull.at_us), sa.not_(pull.warm), pull.pull_and_wait_us.is_not(None))
            .group_by(image, edge)
        )

    def stays(self, steps: Steps) -> Iterator[Stays]:
        """Arrivals and departures of pods on nodes, counted by step; of pods that are there within the steps."""
        start, place = schema.start.c, schema.start_place.c
        parts = []
        for sign, moment_us, among in (
            (1, start.bound_us, sa.true()),
            # Who is gone as it came, by the clocks, was never there.
            (
                -1,
                sa.case((start.deleted_us > start.bound_us, start.deleted_us), else_=start.bound_us),
                start.deleted_us < steps.to_us,
            ),
        ):
            inside_us = sa.case((moment_us > steps.from_us, moment_us - steps.from_us), else_=0)
            key = sa.cast(start.place_id, sa.BigInteger) * MOST_STEPS + inside_us // steps.step_us
            # Apart, so that each is found by an index: those that came within the time, and those that were there.
            for there in (
                sa.and_(
                    start.created_us >= steps.from_us,
                    sa.or_(start.deleted_us.is_(None), start.deleted_us > steps.from_us),
                ),
                sa.and_(start.created_us < steps.from_us, start.deleted_us > steps.from_us),
                sa.and_(start.created_us < steps.from_us, start.deleted_us.is_(None)),
            ):
                counted = (
                    sa.select(key.label("key"), (inside_us % steps.step_us).label("after_us"))
                    .where(there, start.bound_us < steps.to_us, among)
                    .offset(0)
                    .subquery()
                )
                parts.append(
                    sa.select(
                        counted.c.key,
                        (sign * sa.func.count()).label("number"),
                        (sign * _sum(counted.c.after_us)).label("after_us"),
                    ).group_by(counted.c.key)
                )
        found = self._connection.execute(sa.select(place.id, place.node_name, place.pod_class))
        places = {row.id: (row.node_name, row.pod_class) for row in found}
        for row in self._stream(sa.union_all(*parts)):
            place_id, step = divmod(row.key, MOST_STEPS)
            yield Stays(*places[place_id], step, row.number, row.after_us)

    def failures(self) -> Iterator[sa.Row[Any]]:
        """Tries that found no node: reasons (JSON: reason -> nodes), number (of different ones), tries."""
        fail = schema.decision.c
        yield from self._stream(
            sa.select(fail.reasons, sa.func.count().label("number"), _sum(fail.tries).label("tries"))
            .where(self._within(fail.at_us), fail.kind == str(DecisionKind.FAIL))
            .group_by(fail.reasons)
        )

    def verdicts(self) -> Iterator[sa.Row[Any]]:
        """What the model said of bindings: scheduler, model, number."""
        bind = schema.decision.c
        model = sa.func.coalesce(bind.model, "unknown").label("model")
        yield from self._stream(
            sa.select(bind.scheduler, model, sa.func.count().label("number"))
            .where(self._within(bind.at_us), bind.kind == str(DecisionKind.BIND))
            .group_by(bind.scheduler, model)
        )

    def pulls_by_step(self, steps: Steps) -> Iterator[sa.Row[Any]]:
        """step, warm, number."""
        pull = schema.pull.c
        step = ((pull.at_us - steps.from_us) // steps.step_us).label("step")
        yield from self._stream(
            sa.select(step, pull.warm, sa.func.count().label("number"))
            .where(self._within(pull.at_us))
            .group_by(step, pull.warm)
        )

    def pulls(self) -> Iterator[sa.Row[Any]]:
        """image, node_name, warm, number, bytes, pull_us (without), wait_us (in the kubelet's queue)."""
        pull = schema.pull.c
        yield from self._stream(
            sa.select(
                pull.image,
                pull.node_name,
                pull.warm,
                sa.func.count().label("number"),
                _sum(_bounded(pull.image_bytes)).label("bytes"),
                _sum(_bounded(pull.pull_us)).label("pull_us"),
                _sum(_bounded(pull.pull_and_wait_us - pull.pull_us)).label("wait_us"),
            )
            .where(self._within(pull.at_us))
            .group_by(pull.node_name, pull.image, pull.warm)
        )

    def victims(self, steps: Steps) -> Iterator[sa.Row[Any]]:
        """Pods that had to go: step, kind (preempted, evicted), pod_class, number."""
        gone, pod = schema.preemption.c, schema.pod.c
        step = ((gone.at_us - steps.from_us) // steps.step_us).label("step")
        pod_class = sa.func.coalesce(pod.pod_class, "").label("pod_class")
        yield from self._stream(
            sa.select(step, gone.kind, pod_class, sa.func.count().label("number"))
            .select_from(schema.preemption.outerjoin(schema.pod, pod.uid == gone.victim_uid))
            .where(self._within(gone.at_us))
            .group_by(step, gone.kind, pod_class)
        )

    def _within(self, moment: sa.ColumnElement[int]) -> sa.ColumnElement[bool]:
        return sa.and_(moment >= self._window.from_us, moment < self._window.to_us)

    def _stream(self, query: sa.Executable) -> Iterator[sa.Row[Any]]:
        yield from self._connection.execution_options(yield_per=1000).execute(query)


class Extent(NamedTuple):
    """The time of which the database tells, in µs: from the first recorder's start until it was last heard of."""

    from_us: int
    to_us: int


def read_extent(connection: sa.Connection) -> Extent | None:
    """Of what time the database tells; None: of none."""

    def ask(aggregate: Any, column: sa.ColumnElement[int], *among: sa.ColumnElement[bool]) -> int | None:  # noqa: ANN401 - sa.func.min or max
        found: int | None = connection.execute(sa.select(aggregate(column)).where(*among)).scalar()
        return found

    least, most = sa.func.min, sa.func.max
    pod, decision = schema.pod.c, schema.decision.c
    # Imports have no runs; pods that were there before the first run say nothing of the time before it.
    from_us = ask(least, schema.run.c.started_us)
    if from_us is None:
        from_us = ask(least, pod.created_us)
    heard_us = ask(most, schema.checkpoint.c.at_us)
    ends = [heard_us, ask(most, pod.created_us), ask(most, schema.gap.c.to_us)]
    if heard_us is None:
        # An import's. Of a recorder's own the last word is the recorder's clock: others', and anybody's Events, may be
        # far ahead.
        ends += [ask(most, decision.at_us, decision.kind == str(kind)) for kind in DecisionKind]
    heard = [end for end in ends if end is not None]
    if from_us is None or not heard:
        return None
    return Extent(from_us, max(*heard, from_us) + 1)


@contextlib.contextmanager
def asking(store: Store) -> Iterator[sa.Connection]:
    """A connection that sees one state of the database, whatever is written meanwhile. Raises StoreError."""
    with store.reading() as connection:
        if connection.dialect.name == SQLITE:
            connection.exec_driver_sql(f"PRAGMA mmap_size = {_MAPPED_BYTES}")
            connection.exec_driver_sql("BEGIN")
            yield connection
        else:
            yield connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)


def _sum(amount: sa.ColumnElement[Any]) -> Number:
    # PostgreSQL's sum of bigint is numeric.
    return sa.cast(sa.func.coalesce(sa.func.sum(amount), 0), sa.BigInteger)


def _bounded(amount: sa.ColumnElement[int]) -> sa.ColumnElement[int]:
    """An amount within what can be summed; 0 for negative ones and NULL."""
    return sa.case((amount > _MOST_AMOUNT, _MOST_AMOUNT), (amount > 0, amount), else_=0)


def _index_of(span_us: sa.ColumnElement[int]) -> Number:
    """statistics.index_of, by the database; a test holds the two together."""
    return sa.case(
        (span_us <= 0, 0),
        *((span_us <= longest_us, _up(span_us, step_us) + before) for longest_us, step_us, before in STEPS),
        (span_us < LONGEST_US, _up(span_us, LONGEST_STEP_US) + LONGEST_BEFORE),
        else_=LAST_INDEX,
    )


def _up(span_us: sa.ColumnElement[int], step_us: int) -> sa.ColumnElement[int]:
    return (span_us + (step_us - 1)) // step_us


def _index(names: Sequence[T], condition: Callable[[T], sa.ColumnElement[bool]]) -> Number:
    """Which of the names it is; their number: none of them."""
    if not names:
        return sa.literal(0)
    return sa.case(*((condition(name), index) for index, name in enumerate(names)), else_=len(names))


def _age(age_us: sa.ColumnElement[int]) -> Number:
    """An index of AGE_NAMES."""
    return sa.case(
        (age_us.is_(None), AGE_NAMES.index(UNKNOWN_AGE)),
        *((age_us < limit_us, AGE_NAMES.index(name)) for limit_us, name in AGES),
        else_=AGE_NAMES.index(OLD),
    )
