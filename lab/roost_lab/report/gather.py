"""Gather numbers of one state of the database: those of a report's sections, and in a few lines
what users waited.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, tzinfo
from typing import Final

from roost_core.placement.labels import USER_CLASS
from roost_lab.pages.phrases import show_span, show_span_range
from roost_lab.recorder.store.database import Store
from roost_lab.recorder.store.phases import ANSWER, CONTAINERS, NODE, PULL, WHOLE
from roost_lab.report.failed_scheduling_attempts import Failures
from roost_lab.report.imported import Imported
from roost_lab.report.key_figures import SUBJECTS
from roost_lab.report.occupancy import Occupancy
from roost_lab.report.pulls import Pulls
from roost_lab.report.query import EVERY_POD, MAX_STEPS, Query, Scope, consistent_reads, read_extent
from roost_lab.report.removals import Removals
from roost_lab.report.seated import Seated
from roost_lab.report.sections import SECTIONS
from roost_lab.report.start_phases import PHASE_NAMES, WindowStarts, until
from roost_lab.report.statistics import Span, Spans, cut
from roost_lab.report.subject import Numbers, Report
from roost_lab.units import DAY_US, US

# How far back a report without --since reaches, in µs.
USUAL_US: Final = 7 * DAY_US


def gather(
    store: Store,
    since_us: int | None = None,
    until_us: int | None = None,
    *,
    last_us: int | None = None,
    scope: Scope = EVERY_POD,
    zone: tzinfo = UTC,
) -> Report:
    """Read all numbers. Raises StoreError, and ScopeError if no pod of the record is in the scope.

    since_us: default a week back, as far as there are records. last_us: so long before the end
    instead. zone: of times that people read.
    """
    with consistent_reads(store) as connection:
        extent = read_extent(connection)
        window = choose_window(extent, since_us, until_us, last_us)
        if extent is None:
            return Report(
                window, None, cut(window.from_us, window.to_us, MAX_STEPS), scope=scope, zone=zone
            )
        scope.check(connection)
        query = Query(connection, window, extent, scope, zone)
        subjects: set[type[Numbers]] = {
            *SUBJECTS,
            Imported,
            *(section.numbers for section in SECTIONS),
        }
        report = Report(
            window,
            extent,
            query.steps,
            is_empty=False,
            numbers={subject: subject.read(query) for subject in subjects},
            scope=scope,
            zone=zone,
            hubs=query.hubs,
            cluster=query.cluster(),
        )
        before = Span(2 * window.from_us - window.to_us, window.from_us)
        if before.from_us >= extent.from_us:
            query = Query(connection, before, extent, scope, zone)
            numbers = {subject: subject.read(query) for subject in SUBJECTS}
            report = replace(
                report,
                previous=Report(before, extent, query.steps, is_empty=False, numbers=numbers),
            )
    # Of a time outside the record nothing is known, not even that what ran at its end still does.
    is_outside = window.to_us <= extent.from_us or window.from_us >= extent.to_us
    # Pods that came before the window, and stayed, are something to report.
    stayed = any(any(values) for values in report[Occupancy].by_kind.values())
    happened = (
        report[WindowStarts].pods
        or report[Seated].by_hub
        or report[Pulls].by_node
        or report[Failures].tries
        or report[Removals].by_class
    )
    return replace(report, is_empty=is_outside or not (stayed or happened))


def choose_window(
    extent: Span | None, since_us: int | None, until_us: int | None, last_us: int | None = None
) -> Span:
    """The window of the report."""
    if extent is None:
        to_us = until_us if until_us is not None else (since_us or 0) + 1
        return Span(since_us if since_us is not None else to_us - 1, to_us)
    to_us = until_us if until_us is not None else max(extent.to_us, (since_us or 0) + 1)
    if last_us is not None:
        return Span(max(0, to_us - last_us), to_us)
    from_us = since_us if since_us is not None else max(extent.from_us, to_us - USUAL_US)
    return Span(min(from_us, to_us - 1), to_us)


def describe_waits(store: Store) -> list[str]:
    """Lines about the starts of users; none when no start is known from its beginning.

    Raises StoreError.
    """
    with consistent_reads(store) as connection:
        extent = read_extent(connection)
        if extent is None:
            return []
        query = Query(connection, Span(extent.from_us, extent.to_us), extent)
        starts = WindowStarts.read(query)
        pulls = Pulls.read(query).total
    waits = _of_users(starts, WHOLE)
    if not waits.count:
        return []
    lines = [f"Users waited {until(starts)}, in {waits.count:,} starts: {_percentiles(waits)}"]
    # Creation and containers' starts have whole seconds, rounded down. Where the other end of a
    # phase is exact, the phase may be up to a second shorter or longer.
    lines.append(_phase_line(NODE, _of_users(starts, NODE), less_us=US))
    lines.append(_phase_line(CONTAINERS, _of_users(starts, CONTAINERS), more_us=US))
    answers = _of_users(starts, ANSWER)
    if answers:
        lines.append(_phase_line(ANSWER, answers, less_us=US))
    cold = sum((phases[PULL] for phases in starts.by_image.values() if PULL in phases), Spans())
    if cold.count:
        lines.append(f"  {pulls.cold:,} of {pulls.number:,} pulls were cold: {_percentiles(cold)}")
    return lines


def _of_users(starts: WindowStarts, phase: str) -> Spans:
    groups = starts.by_class.items()
    return sum(
        (of[phase] for (pod_class, _), of in groups if pod_class == USER_CLASS and phase in of),
        Spans(),
    )


def _phase_line(phase: str, spans: Spans, less_us: int = 0, more_us: int = 0) -> str:
    """less_us, more_us: by how much each may be shorter and longer, if their times are exact."""
    is_exact = any(edge_us % US for edge_us in spans.counts)
    percentiles = _percentiles(spans, less_us, more_us) if is_exact else _percentiles(spans)
    return f"  {PHASE_NAMES[phase]}: {percentiles}"


def _percentiles(spans: Spans, less_us: int = 0, more_us: int = 0) -> str:
    """less_us, more_us: by how much each may be shorter and longer."""
    median = spans.percentile_us(0.5) or 0
    high = spans.percentile_us(0.95) or 0
    return (
        f"median {show_span_range(max(0, median - less_us), median + more_us)}, 95 % within"
        f" {show_span(high + more_us)}"
    )
