"""Ask the database for counts, a few thousand rows whatever it holds: the database sums up, no pod is fetched.

Each query gives rows whose meaning is in its docstring; the same in SQLite and PostgreSQL.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import sqlalchemy as sa

from recorder import schema
from recorder.records import DecisionKind, Phase
from recorder.statistics import LONGEST_STEP_US, STEPS, Span, Steps
from recorder.store import SQLITE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from recorder.store import Store

Number = sa.ColumnElement[int]
T = TypeVar("T")
PLACEHOLDER: Final = "placeholder"
# Spans of a start.
NODE, CONTAINERS, READY, WHOLE = "node", "containers", "ready", "whole"
# Node's age at the binding, in µs, and what it is called.
AGES: Final[tuple[tuple[int, str], ...]] = ((600_000_000, "newer than 10 min"), (3_600_000_000, "10 min to 1 h"))
OLD: Final = "older than 1 h"
UNKNOWN_AGE: Final = "unknown"
AGE_NAMES: Final = (*(name for _, name in AGES), OLD, UNKNOWN_AGE)
# Above every edge, in µs: 50 days times a thousand.
_EDGES: Final = 2**42
# So much of an SQLite file is mapped, SQLite's own most: lookups by uid touch its pages at random, and are twice as
# fast so as by reads. It is the kernel's page cache, given back when others need it.
_MAPPED_BYTES: Final = 2**31 - 2**16


class StartCount(NamedTuple):
    """So many starts of one kind that took, for one of their spans, so long."""

    span: str
    pair: tuple[str, str]
    # Of the node, a name of AGE_NAMES.
    age: str
    # An index of the images that were asked for; their number: another.
    image: int
    edge_us: int
    number: int
    sum_us: int


class Asking:
    """Queries on one state of the database, over one window of time."""

    def __init__(self, connection: sa.Connection, window: Span) -> None:
        self._connection = connection
        self._window = window

    def counts(self) -> dict[str, int]:
        """Rows within the window: pods created, decisions, pulls, pre-emptions."""
        found = {}
        for table, moment in (
            (schema.pod, schema.pod.c.created_us),
            (schema.decision, schema.decision.c.at_us),
            (schema.pull, schema.pull.c.at_us),
            (schema.preemption, schema.preemption.c.at_us),
        ):
            query = sa.select(sa.func.count()).select_from(table).where(self._within(moment))
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

    def pairs(self) -> dict[tuple[str, str], int]:
        """Pods created, by (class, scheduler), most first."""
        pod = schema.pod.c
        query = sa.select(pod.pod_class, pod.scheduler, sa.func.count().label("pods"))
        query = query.where(self._within(pod.created_us)).group_by(pod.pod_class, pod.scheduler)
        query = query.order_by(sa.func.count().desc(), pod.pod_class, pod.scheduler)
        return {(row.pod_class, row.scheduler): row.pods for row in self._connection.execute(query)}

    def images(self, classes: Sequence[str], most: int) -> list[str]:
        """The images of most of the pods created, of those classes, most first."""
        pod = schema.pod.c
        query = (
            sa.select(pod.image)
            .where(self._within(pod.created_us), pod.pod_class.in_(classes), pod.image != "")
            .group_by(pod.image)
            .order_by(sa.func.count().desc(), pod.image)
            .limit(most)
        )
        return [row.image for row in self._connection.execute(query)]

    def starts(self, pairs: Sequence[tuple[str, str]], images: Sequence[str]) -> Iterator[StartCount]:
        """Spans of starts of pods created in the window, counted; of those (class, scheduler) only."""
        pod, bind = schema.pod.c, schema.decision.c
        phase, ready = schema.phase.c, schema.phase.alias("ready")
        started = (
            sa.select(sa.func.max(phase.at_us))
            .where(phase.pod_uid == pod.uid, phase.phase == str(Phase.STARTED))
            .scalar_subquery()
        )
        joined = schema.pod.outerjoin(schema.decision, bind.id == pod.uid + f"/{DecisionKind.BIND}")
        joined = joined.outerjoin(schema.node, schema.node.c.uid == bind.node_uid)
        joined = joined.outerjoin(
            ready, sa.and_(ready.c.pod_uid == pod.uid, ready.c.phase == str(Phase.READY), ready.c.detail == "")
        )
        # One number for all that spans are counted by: a million rows are sorted by it, four times.
        pair = _index(pairs, lambda one: sa.and_(pod.pod_class == one[0], pod.scheduler == one[1]))
        image = _index(images, lambda one: pod.image == one)
        age = _age(bind.at_us - schema.node.c.created_us, schema.node.c.created_us)
        key = (pair * len(AGE_NAMES) + age) * (len(images) + 1) + image
        base = (
            sa.select(
                sa.cast(key, sa.BigInteger).label("key"),
                pod.created_us,
                bind.at_us.label("scheduled_us"),
                started.label("started_us"),
                ready.c.at_us.label("ready_us"),
            )
            .select_from(joined)
            .where(self._within(pod.created_us), pair < len(pairs))
            .cte("start")
            # Asked four times below, gathered once.
            .prefix_with("MATERIALIZED", dialect="postgresql")
        )
        spans = (
            (NODE, base.c.created_us, base.c.scheduled_us),
            (CONTAINERS, base.c.scheduled_us, base.c.started_us),
            (READY, base.c.started_us, base.c.ready_us),
            (WHOLE, base.c.created_us, base.c.ready_us),
        )
        parts = []
        for name, from_us, to_us in spans:
            # One number to sort by is twice as quick as two.
            key_and_edge = (base.c.key * _EDGES + _edge(to_us - from_us)).label("key_and_edge")
            # A whole second may seem to come before the fraction of it that it follows.
            sum_us = _sum(sa.case((to_us > from_us, to_us - from_us), else_=0)).label("sum_us")
            parts.append(
                sa.select(sa.literal(name).label("span"), key_and_edge, sa.func.count().label("number"), sum_us)
                .where(from_us.is_not(None), to_us.is_not(None))
                .group_by(key_and_edge)
            )
        for row in self._stream(sa.union_all(*parts)):
            key_found, edge_us = divmod(row.key_and_edge, _EDGES)
            rest, image_index = divmod(key_found, len(images) + 1)
            pair_index, age_index = divmod(rest, len(AGE_NAMES))
            yield StartCount(
                row.span, pairs[pair_index], AGE_NAMES[age_index], image_index, edge_us, row.number, row.sum_us
            )

    def cold_pulls(self, images: Sequence[str]) -> Iterator[sa.Row[Any]]:
        """Pulls that weren't warm, with their wait, counted.

        image (an index of `images`, their number for another), edge_us, number, sum_us.
        """
        pull = schema.pull.c
        image = _index(images, lambda one: pull.image == one).label("image")
        edge_us = _edge(pull.pull_and_wait_us).label("edge_us")
        yield from self._stream(
            sa.select(image, edge_us, sa.func.count().label("number"), _sum(pull.pull_and_wait_us).label("sum_us"))
            .where(self._within(pull.at_us), sa.not_(pull.warm), pull.pull_and_wait_us.is_not(None))
            .group_by(image, edge_us)
        )

    def stays(self, steps: Steps) -> Iterator[sa.Row[Any]]:
        """Arrivals (+) and departures (-) on nodes: node_name, pod_class, step, number, after_us (after its start)."""
        pod, bind = schema.pod.c, schema.decision.c
        base = (
            sa.select(bind.node_name, pod.pod_class, bind.at_us.label("from_us"), pod.deleted_us.label("to_us"))
            .select_from(schema.decision.join(schema.pod, pod.uid == bind.pod_uid))
            .where(
                bind.kind == str(DecisionKind.BIND),
                bind.at_us < steps.to_us,
                sa.or_(pod.deleted_us.is_(None), pod.deleted_us > steps.from_us),
            )
            .cte("stay")
            .prefix_with("MATERIALIZED", dialect="postgresql")
        )
        parts = []
        for sign, moment_us, among in (
            (1, base.c.from_us, sa.true()),
            (-1, base.c.to_us, sa.and_(base.c.to_us < steps.to_us, base.c.to_us > base.c.from_us)),
            # Gone as it came, by the clocks: never there.
            (-1, base.c.from_us, base.c.to_us <= base.c.from_us),
        ):
            inside_us = sa.case((moment_us > steps.from_us, moment_us - steps.from_us), else_=0)
            step = (inside_us // steps.step_us).label("step")
            keys = (base.c.node_name, base.c.pod_class, step)
            parts.append(
                sa.select(
                    *keys,
                    (sign * sa.func.count()).label("number"),
                    (sign * _sum(inside_us % steps.step_us)).label("after_us"),
                )
                .where(among)
                .group_by(*keys)
            )
        yield from self._stream(sa.union_all(*parts))

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

    def pulls_by(self, column: str) -> Iterator[sa.Row[Any]]:
        """name (image or node), warm, number, bytes, pull_us (without), wait_us (in the kubelet's queue)."""
        pull = schema.pull.c
        name = pull[column].label("name")
        yield from self._stream(
            sa.select(
                name,
                pull.warm,
                sa.func.count().label("number"),
                _sum(pull.image_bytes).label("bytes"),
                _sum(pull.pull_us).label("pull_us"),
                _sum(pull.pull_and_wait_us - pull.pull_us).label("wait_us"),
            )
            .where(self._within(pull.at_us))
            .group_by(name, pull.warm)
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

    def ask(aggregate: Any, column: sa.ColumnElement[int]) -> int | None:  # noqa: ANN401 - sa.func.min or max
        found: int | None = connection.execute(sa.select(aggregate(column))).scalar()
        return found

    least, most = sa.func.min, sa.func.max
    pod, decision = schema.pod.c, schema.decision.c
    # Imports have no runs; pods that were there before the first run say nothing of the time before it.
    from_us = ask(least, schema.run.c.started_us)
    if from_us is None:
        from_us = ask(least, pod.created_us)
    ends = [
        ask(most, schema.checkpoint.c.at_us),
        ask(most, decision.at_us),
        ask(most, pod.created_us),
        ask(most, schema.gap.c.to_us),
    ]
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


def _edge(span_us: sa.ColumnElement[int]) -> Number:
    """statistics.edge_of, by the database; a test holds the two together."""

    def up(step_us: int) -> sa.ColumnElement[int]:
        return (span_us + (step_us - 1)) // step_us * step_us

    return sa.case(
        (span_us <= 0, 0),
        *((span_us <= longest_us, up(step_us)) for longest_us, step_us in STEPS),
        (span_us < _EDGES - LONGEST_STEP_US, up(LONGEST_STEP_US)),
        else_=_EDGES - 1,
    )


def _index(names: Sequence[T], condition: Callable[[T], sa.ColumnElement[bool]]) -> Number:
    """Which of the names it is; their number: none of them."""
    if not names:
        return sa.literal(0)
    return sa.case(*((condition(name), index) for index, name in enumerate(names)), else_=len(names))


def _age(age_us: sa.ColumnElement[int], created_us: sa.ColumnElement[int]) -> Number:
    """An index of AGE_NAMES."""
    return sa.case(
        # 0: a node that only its end is known of.
        (sa.or_(age_us.is_(None), created_us == 0), AGE_NAMES.index(UNKNOWN_AGE)),
        *((age_us < limit_us, AGE_NAMES.index(name)) for limit_us, name in AGES),
        else_=AGE_NAMES.index(OLD),
    )
