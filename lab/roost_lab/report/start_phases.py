"""Starts of pods by class and profile, hub and image: how long each phase took."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from itertools import islice
from typing import Any, Final, NamedTuple, Self

import sqlalchemy as sa

from roost_lab.pages import table
from roost_lab.pages.drawing import MIN_SECONDS, Figure, Mark, Stack, log_axis
from roost_lab.pages.phrases import plural
from roost_lab.pages.table import Cell, Unit
from roost_lab.recorder.recording.scheduler_model import PLACEHOLDER, USER
from roost_lab.recorder.store import schema
from roost_lab.recorder.store.phases import (
    ANSWER,
    CONTAINERS,
    HUB,
    NODE,
    PHASES,
    PULL,
    READY,
    WHOLE,
)
from roost_lab.recorder.store.start_times import (
    exact_creation,
    is_by_user,
    is_failed,
    start_from_us,
    start_to_us,
)
from roost_lab.report.pulls import MAX_IMAGES, OTHER_IMAGES
from roost_lab.report.query import (
    Number,
    Query,
    Rows,
    bounded,
    count,
    kept_apart,
    step_index,
    total,
)
from roost_lab.report.statistics import FEWEST, Spans, busiest, edge_at
from roost_lab.report.subject import NO_CLASS, Field, Report, Section, TableOf, percentile_fields
from roost_lab.units import US

# What starts are grouped by -> phase -> spans.
Groups = dict[tuple[str, ...], dict[str, Spans]]
# Of a new node: new_nodes.py.
IMAGES: Final = "images"
PHASE_NAMES: Final[Mapping[str, str]] = {
    WHOLE: "whole start",
    HUB: "until its hub creates the pod",
    NODE: "until it has a node",
    PULL: "pull, when cold",
    CONTAINERS: "until its containers run",
    READY: "until it is ready",
    ANSWER: "until it answers",
    IMAGES: "until it has all images of the hub",
}
# What tables of phases say of their numbers.
WITHIN_A_SECOND: Final = (
    "Pods have whole seconds: where the watch told of the pod in its second, waits for the hub and"
    " for a node are exact; else that for the hub is up to a second longer than shown, that for a"
    " node up to a second shorter. That for containers is up to a second longer, that for the"
    " answer up to a second shorter; so are their means."
)
# Pairs of class and scheduler, those of the most pods; a cluster has a handful.
MAX_PAIRS: Final = 100
# Pairs that are drawn; the table lists all.
MAX_DRAWN_PAIRS: Final = 8
# More than any `step_index`. So a kind's number times INDEXES, plus an index, is one number from
# which both can be told.
INDEXES: Final = 2**20


@dataclass(slots=True)
class WindowStarts:
    """Starts of the pods that people asked for in the window; in the order of the page."""

    # Of any class, whether they started or not.
    pods: int = 0
    # Classes that `by_image` is about.
    classes: Sequence[str] = ()
    # Classes that key figures are about.
    leading: Sequence[str] = ()
    # Of these, by what their hubs said: starts that were answered, and those that were given up or
    # were gone before.
    answered: int = 0
    failed: int = 0
    # Of these, that neither ended nor are known to have failed.
    unended: int = 0
    # By class and scheduler, by hub and class if there are several hubs, and by image.
    by_class: Groups = field(default_factory=dict)
    by_hub: Groups = field(default_factory=dict)
    by_image: Groups = field(default_factory=dict)

    @classmethod
    def read(cls, query: Query) -> Self:
        """Read the window's starts: first their kinds, as only the busiest are counted."""
        kinds = {row.id: row for row in _kinds(query)}
        pods: Counter[tuple[str, str]] = Counter()
        for kind in kinds.values():
            pods[kind.pod_class, kind.scheduler] += kind.number
        pairs = busiest(pods, MAX_PAIRS)
        classes = _chosen_classes({pod_class for pod_class, _ in pairs})
        numbers = cls(pods.total(), classes, leading_classes(query))
        numbers.answered, numbers.failed = _verdicts(query, numbers.leading)
        pods_by_image: Counter[str] = Counter()
        for kind in kinds.values():
            if kind.pod_class in numbers.classes and kind.image:
                pods_by_image[kind.image] += kind.number
        images = busiest(pods_by_image, MAX_IMAGES)
        image_names = [*images, OTHER_IMAGES]
        by_image: dict[str, dict[str, Spans]] = {name: {} for name in image_names}
        for row in _starts(query):
            kind_id, index = divmod(row.key, INDEXES)
            kind = kinds[kind_id]
            pair = (kind.pod_class, kind.scheduler)
            if pair not in pairs:
                continue
            targets = [numbers.by_class.setdefault(pair, {}).setdefault(row.phase, Spans())]
            if kind.pod_class in numbers.classes:
                image = kind.image if kind.image in by_image else OTHER_IMAGES
                targets.append(by_image[image].setdefault(row.phase, Spans()))
            for spans in targets:
                spans.add(edge_at(index), row.number, row.sum_us)
        for pull in _cold_pulls(query, images):
            spans = by_image[image_names[pull.image]].setdefault(PULL, Spans())
            spans.add(edge_at(pull.step_index), pull.number, pull.sum_us)
        numbers.by_image = {(name,): by_phase for name, by_phase in by_image.items() if by_phase}
        if len(query.hubs) > 1:
            numbers.by_hub = _by_hub(query, {kind.id: kind.pod_class for kind in kinds.values()})
        begun = sum(
            number for (pod_class, _), number in pods.items() if pod_class in numbers.leading
        )
        numbers.unended = max(0, begun - numbers.whole.count - numbers.failed)
        counts = {
            pair: max(spans.count for spans in by_phase.values())
            for pair, by_phase in numbers.by_class.items()
        }
        numbers.by_class = {pair: numbers.by_class[pair] for pair in busiest(counts, len(counts))}
        return numbers

    @property
    def whole(self) -> Spans:
        """From creation to ready, of the pods of the leading classes."""
        leading = (
            by_phase
            for (pod_class, _), by_phase in self.by_class.items()
            if pod_class in self.leading
        )
        return sum((by_phase[WHOLE] for by_phase in leading if WHOLE in by_phase), Spans())


def until(starts: WindowStarts) -> str:
    """From when to when whole starts are measured, in words."""
    if not starts.answered:
        return "until containers run and are ready"
    if starts.answered >= starts.whole.count:
        return "from the click until servers answer"
    known = f"{starts.answered:,} of {starts.whole.count:,}"
    return (
        f"until servers answer, where their hub's log says so ({known}), else until containers run"
        " and are ready"
    )


def leading_classes(query: Query) -> list[str]:
    """The classes that key figures are about: the one that was asked for; else users, without
    builds; else, where there are no users, all that start something.
    """
    if query.scope.pod_class is not None:
        return [query.scope.pod_class]
    classes = {
        row.pod_class for row in query.rows(sa.select(schema.start_kind.c.pod_class).distinct())
    }
    return [USER] if USER in classes else _chosen_classes(classes)


def seated_pods(*conditions: sa.ColumnElement[bool]) -> sa.Subquery:
    """Starts that seating asked for, of which the conditions hold: pod_uid. To be left out by an
    outer join.

    PostgreSQL hashes what it joins, however much that is. It hashes the rows of NOT IN only if they
    fit into its memory for one step, and else goes through them for each pod.
    """
    chosen = sa.select(schema.start.c.pod_uid).where(sa.not_(is_by_user), *conditions)
    return kept_apart(chosen, "seated")


def launched_pods(query: Query, *columns: sa.ColumnElement[Any]) -> sa.Select[Any]:
    """These columns of the pods of the leading classes, without those that seating asked for and
    nobody is known to have opened: nobody launched these.
    """
    pod = schema.pod.c
    unopened = seated_pods(schema.start.c.opened_us.is_(None))
    launched = schema.pod.outerjoin(unopened, unopened.c.pod_uid == pod.uid)
    return (
        sa.select(*columns)
        .select_from(launched)
        .where(
            query.within(pod.created_us, pod.uid),
            pod.pod_class.in_(leading_classes(query)),
            unopened.c.pod_uid.is_(None),
        )
    )


def _chosen_classes(classes: set[str]) -> list[str]:
    # Placeholders start an image of nothing; pods of no class are the cluster's own, unless there
    # are no others.
    return sorted(classes - {"", PLACEHOLDER}) or sorted(classes - {PLACEHOLDER})


def _kinds(query: Query) -> Rows:
    """Kinds of the pods created: id, pod_class, scheduler, image, number."""
    start = schema.start.c
    kind = schema.start_kind
    chosen = sa.and_(query.within(start.created_us, start.pod_uid), is_by_user)
    counts = sa.select(start.kind_id, count()).where(chosen).group_by(start.kind_id).subquery()
    return query.rows(sa.select(kind, counts.c.number).join(counts, counts.c.kind_id == kind.c.id))


def _phases() -> Iterator[tuple[str, sa.ColumnElement[int], sa.ColumnElement[int]]]:
    """Phase, and the columns of its beginning and its end."""
    start = schema.start.c
    yield HUB, start.asked_us, exact_creation
    yield NODE, exact_creation, start.bound_us
    yield CONTAINERS, start.bound_us, start.started_us
    yield READY, start.started_us, start.ready_us
    yield ANSWER, start.started_us, start.answered_us
    yield WHOLE, start_from_us, start_to_us


def _kind_and_step(span_us: sa.ColumnElement[int]) -> sa.ColumnElement[int]:
    """A start's kind and the step index of a span, in one number: a million rows are sorted by it,
    four times.
    """
    return sa.cast(schema.start.c.kind_id, sa.BigInteger) * INDEXES + step_index(span_us)


def _starts(query: Query) -> Rows:
    """Phases of the pods created: phase, key (kind and step index in one), number, sum_us."""
    start = schema.start.c
    counts = []
    for phase, from_us, to_us in _phases():
        key = _kind_and_step(to_us - from_us).label("key")
        rows = kept_apart(
            # A time in whole seconds may seem to come before an exact one that it follows: such
            # spans count as 0.
            sa.select(key, bounded(to_us - from_us).label("span_us")).where(
                query.within(start.created_us, start.pod_uid),
                is_by_user,
                from_us.is_not(None),
                to_us.is_not(None),
            )
        )
        name = sa.literal(phase).label("phase")
        sum_us = total(rows.c.span_us).label("sum_us")
        counts.append(sa.select(name, rows.c.key, count(), sum_us).group_by(rows.c.key))
    return query.rows(sa.union_all(*counts))


def _verdicts(query: Query, classes: Sequence[str]) -> tuple[int, int]:
    """How many starts of these classes were answered, and failed, by what hubs said."""
    kinds = sa.select(schema.start_kind.c.id).where(schema.start_kind.c.pod_class.in_(classes))
    start = schema.start.c
    of_window = query.within(start.created_us, start.pod_uid)
    chosen = (of_window, is_by_user, start.kind_id.in_(kinds))
    answered = sa.func.count(start.answered_us).label("answered")
    failed = sa.func.count(sa.case((is_failed, 1))).label("failed")
    (row,) = query.rows(sa.select(answered, failed).where(*chosen))
    return row.answered, row.failed


def _by_hub(query: Query, classes: Mapping[int, str]) -> Groups:
    """Starts by hub and class, without placeholders. classes: of kinds, by id."""
    start = schema.start.c
    pod = schema.pod.c
    by_hub: Groups = {}
    for phase, from_us, to_us in _phases():
        key = _kind_and_step(to_us - from_us).label("key")
        rows = query.rows(
            sa.select(pod.hub, key, count(), total(bounded(to_us - from_us)).label("sum_us"))
            .join(schema.pod, pod.uid == start.pod_uid)
            .where(
                query.within(start.created_us, start.pod_uid),
                is_by_user,
                from_us.is_not(None),
                to_us.is_not(None),
            )
            .group_by(pod.hub, key)
        )
        for row in rows:
            kind_id, index = divmod(row.key, INDEXES)
            pod_class = classes[kind_id]
            if row.hub and pod_class not in ("", PLACEHOLDER):
                spans = by_hub.setdefault((row.hub, pod_class), {}).setdefault(phase, Spans())
                spans.add(edge_at(index), row.number, row.sum_us)
    return dict(sorted(by_hub.items()))


def _cold_pulls(query: Query, images: Sequence[str]) -> Rows:
    """Cold pulls of people's starts by image (an index of `images`; their number for any other)
    and step_index: number, sum_us.
    """
    pull = schema.pull.c
    image: Number = sa.literal(0)
    if images:
        image = sa.case(
            *((pull.image == name, index) for index, name in enumerate(images)), else_=len(images)
        )
    image = image.label("image")
    index = step_index(pull.pull_and_wait_us).label("step_index")
    seated = seated_pods()
    return query.rows(
        sa.select(image, index, count(), total(bounded(pull.pull_and_wait_us)).label("sum_us"))
        .select_from(schema.pull.outerjoin(seated, seated.c.pod_uid == pull.pod_uid))
        .where(
            query.within(pull.at_us, pull.pod_uid),
            sa.not_(pull.warm),
            pull.pull_and_wait_us.is_not(None),
            seated.c.pod_uid.is_(None),
        )
        .group_by(image, index)
    )


class PhaseRow(NamedTuple):
    """How long one phase took, of the starts that `names` describe."""

    names: tuple[str, ...]
    phase: str
    spans: Spans


def phase_fields(counted: str) -> tuple[Field[PhaseRow], ...]:
    """The columns of one phase. counted: "pods" or "nodes"."""
    return (
        Field("phase", "phase", Unit.PHASE, lambda row: row.phase),
        Field(counted, counted, Unit.COUNT, lambda row: row.spans.count),
        *percentile_fields(lambda row: row.spans),
        Field("mean_seconds", "mean", Unit.SECONDS, _mean_seconds),
    )


def _mean_seconds(row: PhaseRow) -> float | None:
    return None if row.spans.mean_us is None else row.spans.mean_us / US


def phase_rows(
    spans: Mapping[str, Spans], phases: Iterable[str], *names: str
) -> Iterator[PhaseRow]:
    """A row for each of the phases that there are spans of."""
    return (PhaseRow(names, phase, spans[phase]) for phase in phases if phase in spans)


def show(cell: Cell, unit: Unit, zone: tzinfo = UTC) -> str:
    """A cell of the report for people. zone: of times."""
    if unit is Unit.PHASE and isinstance(cell, str):
        return PHASE_NAMES.get(cell, cell)
    return table.show(cell, unit, zone)


class _Point(NamedTuple):
    """A point of the figure, with a line to the right of it."""

    seconds: float
    place: float
    # How far the line goes, in seconds.
    line: float
    hover: str


def _percentile_point(spans: Spans, place: float, label: str) -> _Point:
    """The median, with a line to the 95th percentile."""
    middle_us = spans.percentile_us(0.5) or 0
    high_us = spans.percentile_us(0.95) or 0
    amounts = f"p50 {show(middle_us / US, Unit.SECONDS)}, p95 {show(high_us / US, Unit.SECONDS)}"
    line = _drawn(high_us) - _drawn(middle_us)
    return _Point(_drawn(middle_us), place, line, f"{label}{spans.count:,}\n{amounts}")


def _figure(key: str, groups: Groups, full_name: Callable[[tuple[str, ...]], str]) -> Figure | None:
    """The median and the 95th percentile of each phase; of few starts, each one."""
    if not groups:
        return None
    stack = Stack()
    # By phase: of many starts, and of few.
    points: dict[str, list[_Point]] = {phase: [] for phase in PHASES}
    dots: dict[str, list[_Point]] = {phase: [] for phase in PHASES}
    for names, spans in groups.items():
        full = full_name(names)
        stack.name(full, plural(spans[WHOLE].count, "pod") if WHOLE in spans else "")
        for row in phase_rows(spans, PHASES):
            place = stack.bar()
            label = f"{full}\n{PHASE_NAMES[row.phase]}: "
            if row.spans.count < FEWEST:
                dots[row.phase] += [
                    _Point(_drawn(edge_us), place, 0, f"{label}{show(edge_us / US, Unit.SECONDS)}")
                    for edge_us in row.spans.counts
                ]
            else:
                points[row.phase].append(_percentile_point(row.spans, place, label))
        stack.end()
    data = [*_scatter(points, size=8), *_scatter(dots, size=5)]
    ends = [
        point.seconds + point.line
        for of_phase in (*points.values(), *dots.values())
        for point in of_phase
    ]
    longest = max(ends, default=1.0)
    drawn = [phase for phase in PHASES if points[phase] or dots[phase]]
    legend = tuple(Mark(f"--{phase}", PHASE_NAMES[phase], "point") for phase in drawn)
    caption = (
        f"The large point is the median (p50), its line ends at p95; of fewer than {FEWEST} starts,"
        " each is a dot."
    )
    return stack.figure(
        key,
        caption,
        legend,
        data,
        {**log_axis(longest), "side": "top", "title": "time, logarithmic"},
    )


def _scatter(points: Mapping[str, Sequence[_Point]], *, size: int) -> Iterator[dict[str, Any]]:
    """What is drawn of the points of each phase."""
    for phase, of_phase in points.items():
        if of_phase:
            yield {
                "type": "scatter",
                "x": [point.seconds for point in of_phase],
                "y": [point.place for point in of_phase],
                "error_x": {"array": [point.line for point in of_phase]},
                "marker": {"color": f"--{phase}", "size": size},
                "hovertext": [point.hover for point in of_phase],
            }


def _drawn(span_us: float) -> float:
    """The seconds at which a span is drawn."""
    return max(MIN_SECONDS, span_us / US)


def starts_section(
    by: str,
    heading: str,
    fields: tuple[Field[PhaseRow], ...],
    groups: Callable[[WindowStarts], Groups],
    *,
    about: str = "Waits are as exact as those by class.",
    nothing: str = "No pod started in this period.",
    drawn: int | None = None,
    full_name: Callable[[tuple[str, ...]], str] = ", ".join,
) -> Section:
    """A section of start phases.

    by: the end of its table's key; heading: what starts are grouped by, in words; groups: the
    starts of each group; drawn: at most so many groups.
    """
    key = f"starts_by_{by}"
    title = f"Start phases by {heading}"

    def rows(report: Report) -> Iterator[PhaseRow]:
        for names, spans in groups(report[WindowStarts]).items():
            yield from phase_rows(spans, PHASES, *names)

    def figure(report: Report) -> Figure | None:
        return _figure(key, dict(islice(groups(report[WindowStarts]).items(), drawn)), full_name)

    table = TableOf(key, title, (*fields, *phase_fields("pods")), rows)
    return Section(key.replace("_", "-"), title, WindowStarts, (table,), (figure,), about, nothing)


def _profile_name(names: tuple[str, ...]) -> str:
    pod_class = names[0] or NO_CLASS
    scheduler = names[1]
    # A profile is mostly called after its class.
    return scheduler if pod_class in scheduler else f"{pod_class}, {scheduler}"


BY_CLASS: Final = starts_section(
    "class",
    "class and scheduler profile",
    (
        Field("pod_class", "class", Unit.TEXT, lambda row: row.names[0] or NO_CLASS),
        Field("scheduler", "profile", Unit.TEXT, lambda row: row.names[1]),
    ),
    lambda starts: starts.by_class,
    about=f"{WITHIN_A_SECOND} Percentiles are at most 1 % too high.",
    drawn=MAX_DRAWN_PAIRS,
    full_name=_profile_name,
)
# Where there are several hubs.
BY_HUB: Final = starts_section(
    "hub",
    "hub",
    (
        Field("hub", "hub", Unit.TEXT, lambda row: row.names[0]),
        Field("pod_class", "class", Unit.TEXT, lambda row: row.names[1]),
    ),
    lambda starts: starts.by_hub,
    nothing="",
    drawn=MAX_DRAWN_PAIRS,
)
BY_IMAGE: Final = starts_section(
    "image",
    "image",
    (Field("image", "image", Unit.TEXT, lambda row: row.names[0]),),
    lambda starts: starts.by_image,
    nothing="No pod with an image started in this period.",
)
