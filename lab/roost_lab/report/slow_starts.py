"""When starts were slow: over time, and the slowest ones. Users' starts, where there are users."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import tzinfo
from shlex import quote
from typing import Final, NamedTuple, Self

import sqlalchemy as sa

from roost_core.objects.fields import JSONObject
from roost_lab.pages.drawing import MIN_SECONDS, Figure, Mark, log_axis, time_text
from roost_lab.pages.table import Unit, iso_time, show
from roost_lab.recorder.store import schema
from roost_lab.recorder.store.records import PODS
from roost_lab.recorder.store.start_times import (
    exact_creation,
    is_by_user,
    start_from_us,
    start_to_us,
)
from roost_lab.report.gaps import gap_steps
from roost_lab.report.query import Query, bounded, count, kept_apart, step_index, total
from roost_lab.report.slow_causes import StartSpans, read_causes
from roost_lab.report.start_phases import (
    INDEXES,
    WITHIN_A_SECOND,
    WindowStarts,
    leading_classes,
    until,
)
from roost_lab.report.statistics import FEWEST, Spans, edge_at
from roost_lab.report.subject import Field, Report, Section, TableOf, percentile_fields
from roost_lab.report.timeline import time_figure
from roost_lab.units import US

MAX_SLOWEST: Final = 20
LEAST_PULL_US: Final = US
# How long a start took, as a column.
_WHOLE_US: Final = start_to_us - start_from_us
# Of single starts: whether it was cold, its colour, its name.
_KINDS: Final = (
    (False, "--warm", "its image was on the node"),
    (True, "--cold", "waited for an image"),
    (None, "--other", "no pull recorded"),
)


class SlowStart(NamedTuple):
    """One start, with times in µs."""

    namespace: str
    name: str
    image: str
    node: str
    created_us: int
    whole_us: int
    node_us: int
    containers_us: int
    ready_us: int
    answer_us: int
    # The longest of what it waited for; "": nothing is known.
    cause: str

    @property
    def command(self) -> str:
        """What tells its story."""
        return why_command(self.namespace, self.name, self.created_us)


def why_command(namespace: str, name: str, created_us: int) -> str:
    """What explains a start; the second after its creation tells it from other pods of its
    name.
    """
    after_us = -(-created_us // US) * US
    return f"roost why {quote(f'{namespace}/{name}')} --at {iso_time(after_us)}"


class OneStart(NamedTuple):
    """When it began, and how long it took; cold: a pull; None: no Event told of its images."""

    created_us: int
    whole_us: int
    cold: bool | None


@dataclass(slots=True)
class StartTimes:
    """Whole starts of the pods of `classes` that were created in the window."""

    classes: list[str] = field(default_factory=list)
    by_step: list[Spans] = field(default_factory=list)
    # Of pods that waited for an image, and of all others.
    cold: Spans = field(default_factory=Spans)
    others: Spans = field(default_factory=Spans)
    # What the images of those took that waited for one.
    pulled: Spans = field(default_factory=Spans)
    # Starts in steps that have too few for percentiles.
    single: list[OneStart] = field(default_factory=list)
    # The slowest first.
    slowest: list[SlowStart] = field(default_factory=list)

    @classmethod
    def read(cls, query: Query) -> Self:
        """Sum up a window's starts: their counts, single ones, and the slowest."""
        classes = leading_classes(query)
        start = schema.start.c
        kind = schema.start_kind.c
        kinds = sa.select(kind.id).where(kind.pod_class.in_(classes))
        of_window = query.within(start.created_us, start.pod_uid)
        chosen = sa.and_(of_window, is_by_user, start_to_us.is_not(None), start.kind_id.in_(kinds))
        numbers = cls(classes, [Spans() for _ in range(query.steps.number)])
        numbers._count(query, chosen)
        numbers.pulled = _pulled(query, chosen)
        few = [place for place, spans in enumerate(numbers.by_step) if 0 < spans.count < FEWEST]
        numbers.single = _starts_of_steps(query, chosen, few)
        numbers.slowest = _slowest(query, chosen)
        return numbers

    def _count(self, query: Query, chosen: sa.ColumnElement[bool]) -> None:
        """Add the chosen starts to the counts, by step, and by whether they were cold."""
        # Step, index of the span, and whether it was cold, in one number.
        step = sa.cast(query.step(schema.start.c.created_us), sa.BigInteger)
        key = (step * INDEXES + step_index(_WHOLE_US)) * 2 + _is_cold(query)
        spans = kept_apart(
            sa.select(key.label("key"), bounded(_WHOLE_US).label("span_us")).where(chosen)
        )
        counts = sa.select(spans.c.key, count(), total(spans.c.span_us).label("sum_us")).group_by(
            spans.c.key
        )
        for row in query.rows(counts):
            place_of_step, index = divmod(row.key // 2, INDEXES)
            of_kind = self.cold if row.key % 2 else self.others
            for totals in (self.by_step[place_of_step], of_kind):
                totals.add(edge_at(index), row.number, row.sum_us)


def _is_cold(query: Query) -> sa.ColumnElement[int]:
    """1 for a start that waited for an image, else 0."""
    pull = schema.pull.c
    # A pull that nobody notices is no wait, as that of an init container's small image.
    took_us = sa.func.coalesce(pull.pull_and_wait_us, LEAST_PULL_US)
    waited = schema.start.c.pod_uid.in_(
        sa.select(pull.pod_uid)
        .where(pull.at_us >= query.window.from_us, sa.not_(pull.warm))
        .where(took_us >= LEAST_PULL_US)
    )
    return sa.case((waited, 1), else_=0)


def _starts_of_steps(
    query: Query, chosen: sa.ColumnElement[bool], steps: Sequence[int]
) -> list[OneStart]:
    """The chosen starts of these steps, one by one, in the order of their beginning."""
    start = schema.start.c
    pull = schema.pull.c
    pulled = start.pod_uid.in_(sa.select(pull.pod_uid).where(pull.pod_uid == start.pod_uid))
    starts = (
        sa.select(
            start.created_us,
            bounded(_WHOLE_US).label("whole_us"),
            _is_cold(query).label("cold"),
            sa.case((pulled, 1), else_=0).label("has_pull"),
        )
        .where(chosen, query.step(start.created_us).in_(steps))
        .order_by(start.created_us)
    )
    # Without a pull on record it isn't known whether a start was cold.
    return [
        OneStart(row.created_us, row.whole_us, bool(row.cold) if row.has_pull else None)
        for row in query.rows(starts)
    ]


def _slowest(query: Query, chosen: sa.ColumnElement[bool]) -> list[SlowStart]:
    """The slowest of the chosen starts, with what each waited for."""
    start = schema.start.c
    pod = schema.pod.c
    place = schema.start_place.c
    slowest = (
        sa.select(
            start.pod_uid,
            start.place_id,
            start.created_us,
            start.bound_us,
            _WHOLE_US.label("whole_us"),
            (start.bound_us - exact_creation).label("node_us"),
            (start.started_us - start.bound_us).label("containers_us"),
            (start.ready_us - start.started_us).label("ready_us"),
            (start.answered_us - start.started_us).label("answer_us"),
        )
        .where(chosen)
        .order_by(_WHOLE_US.desc(), start.created_us, start.pod_uid)
        .limit(MAX_SLOWEST)
        .subquery()
    )
    rows = list(
        query.rows(
            sa.select(
                slowest,
                pod.namespace,
                pod.name,
                pod.image,
                sa.func.coalesce(place.node_name, "").label("node"),
            )
            .join(schema.pod, pod.uid == slowest.c.pod_uid)
            .outerjoin(schema.start_place, place.id == slowest.c.place_id)
            .order_by(slowest.c.whole_us.desc(), slowest.c.created_us, slowest.c.pod_uid)
        )
    )
    spans = [StartSpans(*(getattr(row, name) for name in StartSpans._fields)) for row in rows]
    causes = read_causes(query, spans)
    read = [name for name in SlowStart._fields if name != "cause"]
    return [
        SlowStart(**{name: getattr(row, name) for name in read}, cause=cause)
        for row, cause in zip(rows, causes, strict=True)
    ]


def _pulled(query: Query, chosen: sa.ColumnElement[bool]) -> Spans:
    """How long each of the chosen starts waited for its images, all together."""
    start = schema.start.c
    pull = schema.pull.c
    of_pods = (
        sa.select(sa.func.sum(bounded(pull.pull_and_wait_us)).label("span_us"))
        .join(schema.start, start.pod_uid == pull.pod_uid)
        .where(chosen, sa.not_(pull.warm), pull.pull_and_wait_us >= LEAST_PULL_US)
        .group_by(pull.pod_uid)
        .subquery()
    )
    span_us = sa.cast(of_pods.c.span_us, sa.BigInteger)
    index = step_index(span_us).label("step_index")
    spans = Spans()
    counts = sa.select(index, count(), total(bounded(span_us)).label("sum_us")).group_by(index)
    for row in query.rows(counts):
        spans.add(edge_at(row.step_index), row.number, row.sum_us)
    return spans


class _Step(NamedTuple):
    """A step with the starts that began in it; None: pods may be missing."""

    from_us: int
    spans: Spans | None

    @property
    def pods(self) -> int | None:
        return None if self.spans is None else self.spans.count

    @property
    def record(self) -> str:
        return "gap" if self.spans is None else ""


def _steps(report: Report) -> list[_Step]:
    steps = zip(
        report.steps.starts(), report[StartTimes].by_step, gap_steps(report, PODS), strict=False
    )
    return [_Step(from_us, None if gap else spans) for from_us, spans, gap in steps]


OVER_TIME: Final = TableOf[_Step](
    "starts_over_time",
    "Starts over time",
    (
        Field("from", "from", Unit.TIME, lambda step: step.from_us),
        Field("pods", "pods", Unit.COUNT, lambda step: step.pods),
        *percentile_fields(lambda step: step.spans),
        Field("record", "record", Unit.TEXT, lambda step: step.record),
    ),
    _steps,
)


def _drawn(seconds: float | None) -> float | None:
    """Seconds on the logarithmic axis."""
    return None if seconds is None else max(MIN_SECONDS, seconds)


def _over_time_figure(report: Report) -> Figure | None:
    """In each step a box from the median to the 95th percentile; of few starts, a dot for each."""
    times = report[StartTimes]
    # None: too few for percentiles, or not known.
    steps = [
        step.spans if step.spans and step.spans.count >= FEWEST else None for step in _steps(report)
    ]
    if not any(times.by_step):
        return None
    middles = [None if spans is None else _drawn(spans.percentile_seconds(0.5)) for spans in steps]
    highs = [None if spans is None else _drawn(spans.percentile_seconds(0.95)) for spans in steps]
    data: list[JSONObject] = []
    marks: list[Mark] = []
    if any(steps):
        texts = [_step_text(spans) for spans in steps]
        data += _boxes(middles, highs, texts, report.steps.step_us)
        marks += [Mark("--whole", "median (p50)", "point"), Mark("--band", "up to p95")]
    for cold, colour, name in _KINDS:
        of_kind = [start for start in times.single if start.cold is cold]
        if of_kind:
            data.append(_dots(of_kind, colour, name, report.zone))
            marks.append(Mark(colour, name, "point"))
    whose = f"pods of class {', '.join(times.classes)}" if any(times.classes) else "all pods"
    few = "" if all(steps) else f" In steps with fewer than {FEWEST}, each start is a dot."
    caption = (
        f"How long starts took, {until(report[WindowStarts])}, by when they began: {whose}.{few}"
    )
    figure = time_figure(
        report,
        PODS,
        "starts_over_time",
        caption,
        marks=marks,
        data=data,
        height=280,
        counted="time a start took, logarithmic",
    )
    figure.layout["barmode"] = "overlay"
    seconds = [value for value in (*middles, *highs) if value is not None]
    seconds += [max(MIN_SECONDS, start.whole_us / US) for start in times.single]
    figure.layout["yaxis"] |= log_axis(max(seconds), min(seconds))
    return figure


def _boxes(
    middles: Sequence[float | None],
    highs: Sequence[float | None],
    texts: Sequence[str],
    step_us: int,
) -> list[JSONObject]:
    """A box for each step, from its median to its 95th percentile, with the median as a point."""
    bars = {
        "type": "bar",
        "base": middles,
        "y": [
            None if middle is None or high is None else round(high - middle, 3)
            for middle, high in zip(middles, highs, strict=True)
        ],
        "width": step_us // 1000,
        "marker": {"color": "--band"},
        "silent": True,
    }
    points = {
        "type": "scatter",
        "y": middles,
        # Each in the middle of its step.
        "shift": step_us // 2000,
        "marker": {"color": "--whole", "size": 4},
        "text": texts,
        "hover": "{when}\n{text}",
    }
    return [bars, points]


def _dots(starts: Sequence[OneStart], colour: str, name: str, zone: tzinfo) -> JSONObject:
    """A dot for each start."""
    return {
        "type": "scatter",
        "x": [time_text(start.created_us) for start in starts],
        "y": [max(MIN_SECONDS, start.whole_us / US) for start in starts],
        "marker": {"color": colour, "size": 5},
        "hovertext": [
            f"{show(start.created_us, Unit.TIME, zone)}\n"
            f"{show(start.whole_us / US, Unit.SECONDS)}, {name}"
            for start in starts
        ],
    }


def _step_text(spans: Spans | None) -> str:
    if not spans:
        return ""
    middle = show(spans.percentile_seconds(0.5), Unit.SECONDS)
    high = show(spans.percentile_seconds(0.95), Unit.SECONDS)
    return f"p50 {middle}, p95 {high}; {spans.count:,} starts"


SECTION: Final = Section(
    "starts-over-time",
    "When starts were slow",
    StartTimes,
    (OVER_TIME,),
    (_over_time_figure,),
    nothing="No start ended in this period.",
)


def _seconds(span_us: int | None) -> float | None:
    return None if span_us is None else max(0, span_us) / US


SLOWEST_TABLE: Final = TableOf[SlowStart](
    "slowest_starts",
    "Slowest starts",
    (
        Field("whole_seconds", "whole start", Unit.SECONDS, lambda row: _seconds(row.whole_us)),
        Field("cause", "what explains it", Unit.TEXT, lambda row: row.cause),
        Field(
            "node_seconds", "until it has a node", Unit.SECONDS, lambda row: _seconds(row.node_us)
        ),
        Field(
            "containers_seconds",
            "until its containers run",
            Unit.SECONDS,
            lambda row: _seconds(row.containers_us),
        ),
        Field(
            "ready_seconds", "until it is ready", Unit.SECONDS, lambda row: _seconds(row.ready_us)
        ),
        Field(
            "answer_seconds", "until it answers", Unit.SECONDS, lambda row: _seconds(row.answer_us)
        ),
        Field("created", "created", Unit.TIME, lambda row: row.created_us),
        Field("node", "node", Unit.TEXT, lambda row: row.node),
        Field("image", "image", Unit.TEXT, lambda row: row.image),
        Field("why", "command that tells its story", Unit.COMMAND, lambda row: row.command),
    ),
    lambda report: report[StartTimes].slowest,
)
# Each with what explains it, and the command that tells its story.
SLOWEST: Final = Section(
    "slowest-starts",
    SLOWEST_TABLE.title,
    StartTimes,
    (SLOWEST_TABLE,),
    about=(
        f"Run the command with --database, or with ROOST_DATABASE set. {WITHIN_A_SECOND} The"
        " command shows ranges."
    ),
)
