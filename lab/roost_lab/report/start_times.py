"""When starts were slow: over time, by weekday and hour, and the slowest ones. Users' starts, where there are users."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import log10
from shlex import quote
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

import sqlalchemy as sa

from roost_lab.pages.dates import US, offsets
from roost_lab.pages.drawing import MIN_SECONDS, TICKS, Figure, JSONObject, Mark, plot_axis, plot_layout, time_text
from roost_lab.pages.table import Unit, iso_time, show
from roost_lab.recorder.store import schema
from roost_lab.recorder.store.records import PODS
from roost_lab.report.gaps import unseen_steps
from roost_lab.report.query import Number, Query, bounded, count, step_index, total
from roost_lab.report.starts import leading_classes
from roost_lab.report.statistics import Spans, edge_at
from roost_lab.report.subject import Field, Report, Section, TableOf, time_field
from roost_lab.report.timeline import time_figure

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_SLOWEST: Final = 20
DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
# The longest p95 of a level, in seconds, and its colour.
LEVELS: Final = ((5.0, "--heat1"), (15.0, "--heat2"), (60.0, "--heat3"), (300.0, "--heat4"), (float("inf"), "--heat5"))
_HOUR_US: Final = 3600 * US
_WEEK_HOURS: Final = 7 * 24
# 1970 began on a Thursday.
_FIRST_HOUR: Final = 3 * 24
# Of a zone's clocks that a query knows: those of a century. Longer records come from clocks that were wrong.
_MAX_CHANGES: Final = 200
# Above every index of a step.
_INDEXES: Final = 2**20


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

    @property
    def command(self) -> str:
        """What explains it; the second after its creation tells it from other pods of its name."""
        after_us = -(-self.created_us // US) * US
        return f"roost why {quote(f'{self.namespace}/{self.name}')} --at {iso_time(after_us)}"


@dataclass(slots=True)
class StartTimes:
    """Whole starts, from creation to ready, of the pods of `classes` that were created in the window."""

    classes: list[str] = field(default_factory=list)
    by_step: list[Spans] = field(default_factory=list)
    # (weekday from Monday as 0, hour), on the clocks of the report's zone -> spans.
    by_hour: dict[tuple[int, int], Spans] = field(default_factory=dict)
    # The slowest first.
    slowest: list[SlowStart] = field(default_factory=list)

    @classmethod
    def read(cls, query: Query) -> Self:
        """Two counts, and the slowest rows."""
        classes = leading_classes(query)
        start, kind = schema.start.c, schema.start_kind.c
        whole_us = start.ready_us - start.created_us
        chosen = sa.and_(
            query.within(start.created_us, start.pod_uid),
            start.ready_us.is_not(None),
            start.kind_id.in_(sa.select(kind.id).where(kind.pod_class.in_(classes))),
        )
        numbers = cls(classes, [Spans() for _ in range(query.steps.number)])
        for step, spans in _spans(query, query.step(start.created_us), whole_us, chosen):
            numbers.by_step[step].merge(spans)
        for hour, spans in _spans(query, _hour_of_week(query, start.created_us), whole_us, chosen):
            numbers.by_hour.setdefault(divmod(hour, 24), Spans()).merge(spans)
        pod, place = schema.pod.c, schema.start_place.c
        slowest = (
            sa.select(
                start.pod_uid,
                start.place_id,
                start.created_us,
                whole_us.label("whole_us"),
                (start.bound_us - start.created_us).label("node_us"),
                (start.started_us - start.bound_us).label("containers_us"),
                (start.ready_us - start.started_us).label("ready_us"),
            )
            .where(chosen)
            .order_by(whole_us.desc(), start.created_us, start.pod_uid)
            .limit(MAX_SLOWEST)
            .subquery()
        )
        rows = query.rows(
            sa.select(slowest, pod.namespace, pod.name, pod.image, sa.func.coalesce(place.node_name, "").label("node"))
            .join(schema.pod, pod.uid == slowest.c.pod_uid)
            .outerjoin(schema.start_place, place.id == slowest.c.place_id)
            .order_by(slowest.c.whole_us.desc(), slowest.c.created_us, slowest.c.pod_uid)
        )
        numbers.slowest = [SlowStart(*(getattr(row, name) for name in SlowStart._fields)) for row in rows]
        return numbers


def _spans(
    query: Query, group: sa.ColumnElement[int], span_us: sa.ColumnElement[int], condition: sa.ColumnElement[bool]
) -> Iterator[tuple[int, Spans]]:
    """Spans of one step by group: a number from 0."""
    key = sa.cast(group, sa.BigInteger) * _INDEXES + step_index(span_us)
    rows = sa.select(key.label("key"), bounded(span_us).label("span_us")).where(condition).offset(0).subquery()
    counts = sa.select(rows.c.key, count(), total(rows.c.span_us).label("sum_us")).group_by(rows.c.key)
    for row in query.rows(counts):
        number, index = divmod(row.key, _INDEXES)
        spans = Spans()
        spans.add(edge_at(index), row.number, row.sum_us)
        yield number, spans


def _hour_of_week(query: Query, time_us: sa.ColumnElement[int]) -> Number:
    """The number of a time's hour in its week, from Monday's first, on the clocks of the query's zone."""
    from_us = max(query.window.from_us, query.extent.from_us)
    changes = offsets(from_us, min(query.window.to_us, query.extent.to_us), query.zone)[:_MAX_CHANGES]
    ahead_us: Any = sa.literal(changes[0][1])
    if len(changes) > 1:
        later = [(time_us >= since_us, ahead_us) for since_us, ahead_us in reversed(changes)]
        ahead_us = sa.case(*later, else_=changes[0][1])
    hour: Number = ((time_us + ahead_us) // _HOUR_US + _FIRST_HOUR) % _WEEK_HOURS
    return hour


# Tables


def _percentile(spans: Spans | None, share: float) -> float | None:
    found = None if spans is None else spans.percentile_us(share)
    return None if found is None else found / US


class _Step(NamedTuple):
    start_us: int
    # None where pods may be missing.
    spans: Spans | None


class _Hour(NamedTuple):
    day: int
    hour: int
    spans: Spans


def _steps(report: Report) -> list[_Step]:
    by_step = report[StartTimes].by_step
    gaps = unseen_steps(report, PODS)
    starts = report.steps.starts()
    return [
        _Step(start_us, None if gap else spans) for start_us, spans, gap in zip(starts, by_step, gaps, strict=False)
    ]


def _hours(report: Report) -> list[_Hour]:
    return [_Hour(*at, spans) for at, spans in sorted(report[StartTimes].by_hour.items())]


OVER_TIME: Final = TableOf[_Step](
    "starts_over_time",
    "Starts over time",
    (
        time_field("from", "from", lambda row: row.start_us),
        Field("pods", "pods", Unit.COUNT, lambda row: None if row.spans is None else row.spans.count),
        Field("p50_seconds", "p50", Unit.SECONDS, lambda row: _percentile(row.spans, 0.5)),
        Field("p95_seconds", "p95", Unit.SECONDS, lambda row: _percentile(row.spans, 0.95)),
        Field("record", "record", Unit.TEXT, lambda row: "gap" if row.spans is None else ""),
    ),
    _steps,
)
BY_HOUR: Final = TableOf[_Hour](
    "starts_by_hour",
    "Starts by weekday and hour",
    (
        Field("weekday", "weekday", Unit.TEXT, lambda row: DAYS[row.day]),
        Field("hour", "hour", Unit.COUNT, lambda row: row.hour),
        Field("pods", "pods", Unit.COUNT, lambda row: row.spans.count),
        Field("p50_seconds", "p50", Unit.SECONDS, lambda row: _percentile(row.spans, 0.5)),
        Field("p95_seconds", "p95", Unit.SECONDS, lambda row: _percentile(row.spans, 0.95)),
    ),
    _hours,
)


# Figures


def _classes_text(report: Report) -> str:
    classes = report[StartTimes].classes
    return f"pods of class {', '.join(classes)}" if any(classes) else "all pods"


def _over_time_figure(report: Report) -> Figure | None:
    """In each step, a box from the median to the 95th percentile."""
    steps = _steps(report)
    if not any(step.spans is not None and step.spans.count for step in steps):
        return None
    middles, highs = (
        [None if (found := _percentile(step.spans, share)) is None else max(MIN_SECONDS, found) for step in steps]
        for share in (0.5, 0.95)
    )
    step_us = report.steps.step_us
    data: list[JSONObject] = [
        {
            "type": "bar",
            "base": middles,
            "y": [
                None if middle is None or high is None else round(high - middle, 3)
                for middle, high in zip(middles, highs, strict=True)
            ],
            "width": step_us // 1000,
            "offset": 0,
            "marker": {"color": "--band", "line": {"width": 0}},
            "hoverinfo": "skip",
        },
        {
            "type": "scatter",
            "mode": "markers",
            "y": middles,
            # Each in the middle of its step.
            "xperiod": step_us // 1000,
            "xperiod0": time_text(report.steps.from_us),
            "xperiodalignment": "middle",
            "marker": {"color": "--whole", "size": 4},
            "text": [_step_text(step) for step in steps],
            "hovertemplate": "%{hovertext}<br>%{text}<extra></extra>",
        },
    ]
    marks = (Mark("--whole", "median (p50)", "point"), Mark("--band", "up to p95"))
    caption = f"How long starts took, from creation to ready, by when they began: {_classes_text(report)}."
    figure = time_figure(report, PODS, "starts_over_time", caption, marks=marks, data=data, height=260)
    figure.layout["barmode"] = "overlay"
    seconds = [value for value in (*middles, *highs) if value is not None]
    least = max(edge for edge, _ in TICKS if edge <= min(seconds))
    ticks = [(edge, text) for edge, text in TICKS if least <= edge <= max(seconds) * 1.5]
    figure.layout["yaxis"] |= {
        "type": "log",
        "range": [log10(least) - 0.05, log10(max(*seconds, least * 10)) + 0.1],
        "tickvals": [edge for edge, _ in ticks],
        "ticktext": [text for _, text in ticks],
    }
    return figure


def _step_text(step: _Step) -> str:
    if step.spans is None or not step.spans.count:
        return ""
    middle, high = (show(_percentile(step.spans, share), Unit.SECONDS) for share in (0.5, 0.95))
    return f"p50 {middle}, p95 {high}; {step.spans.count:,} starts"


def _by_hour_figure(report: Report) -> Figure | None:
    """A square for each hour of the week, in the colour of its p95."""
    hours = _hours(report)
    if not hours:
        return None
    by_level: dict[str, list[_Hour]] = {colour: [] for _, colour in LEVELS}
    for hour in hours:
        slow = _percentile(hour.spans, 0.95) or 0
        by_level[next(colour for most, colour in LEVELS if slow <= most)].append(hour)
    data: list[JSONObject] = [
        {
            "type": "bar",
            "x": [hour.hour + 0.5 for hour in of_level],
            "y": [1] * len(of_level),
            "base": [hour.day for hour in of_level],
            "width": 1,
            "marker": {"color": colour, "line": {"color": "--card", "width": 1}},
            "hovertext": [_hour_text(hour) for hour in of_level],
            "hoverinfo": "text",
        }
        for colour, of_level in by_level.items()
        if of_level
    ]
    layout = plot_layout(230)
    layout["barmode"] = "overlay"
    shown = range(0, 25, 6)
    layout["xaxis"] = plot_axis(
        range=[0, 24], tickvals=list(shown), ticktext=[f"{hour}:00" for hour in shown], showgrid=False
    )
    layout["yaxis"] = plot_axis(
        range=[7, 0], tickvals=[day + 0.5 for day in range(7)], ticktext=[day[:3] for day in DAYS], showgrid=False
    )
    caption = f"95 of 100 starts took no longer, by weekday and hour ({report.zone}): {_classes_text(report)}."
    return Figure("starts_by_hour", caption, _level_marks(), data, layout)


def _level_marks() -> tuple[Mark, ...]:
    marks = [Mark(colour, f"up to {show(most, Unit.SECONDS)}") for most, colour in LEVELS[:-1]]
    return (*marks, Mark(LEVELS[-1][1], "longer"))


def _hour_text(hour: _Hour) -> str:
    middle, high = (show(_percentile(hour.spans, share), Unit.SECONDS) for share in (0.5, 0.95))
    return f"{DAYS[hour.day]} {hour.hour}:00<br>p50 {middle}, p95 {high}<br>{hour.spans.count:,} starts"


SECTION: Final = Section(
    "starts-over-time",
    "When starts were slow",
    StartTimes,
    (OVER_TIME, BY_HOUR),
    (_over_time_figure, _by_hour_figure),
    nothing="No pod became ready in this period.",
    beside=True,
)


def _seconds(span_us: int | None) -> float | None:
    return None if span_us is None else max(0, span_us) / US


SLOWEST_TABLE: Final = TableOf[SlowStart](
    "slowest_starts",
    "Slowest starts",
    (
        Field("whole_seconds", "whole start", Unit.SECONDS, lambda row: _seconds(row.whole_us)),
        Field("why", "what explains it", Unit.COMMAND, lambda row: row.command),
        Field("node_seconds", "until it has a node", Unit.SECONDS, lambda row: _seconds(row.node_us)),
        Field("containers_seconds", "until its containers run", Unit.SECONDS, lambda row: _seconds(row.containers_us)),
        Field("ready_seconds", "until it is ready", Unit.SECONDS, lambda row: _seconds(row.ready_us)),
        time_field("created", "created", lambda row: row.created_us),
        Field("node", "node", Unit.TEXT, lambda row: row.node),
        Field("image", "image", Unit.TEXT, lambda row: row.image),
    ),
    lambda report: report[StartTimes].slowest,
)
# Each with the command that explains it.
SLOWEST: Final = Section(
    "slowest-starts",
    SLOWEST_TABLE.title,
    StartTimes,
    (SLOWEST_TABLE,),
    about="Run the command with --database, or with ROOST_DATABASE set.",
)
