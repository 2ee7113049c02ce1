"""Gather the numbers of a report: those of every section, of one state of the database."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from roost.recorder.report.occupancy import Occupancy
from roost.recorder.report.query import MAX_STEPS, Extent, Query, consistent_reads, read_extent
from roost.recorder.report.sections import SECTIONS
from roost.recorder.report.statistics import Span, cut
from roost.recorder.report.subject import Report

if TYPE_CHECKING:
    from roost.recorder.store.database import Store

# How far back a report without --since reaches, in µs.
USUAL_US: Final = 7 * 24 * 3600 * 1_000_000


def gather(store: Store, since_us: int | None = None, until_us: int | None = None) -> Report:
    """Read all numbers. since_us: default a week back, as far as there are records. Raises StoreError."""
    with consistent_reads(store) as connection:
        extent = read_extent(connection)
        window = choose_window(extent, since_us, until_us)
        if extent is None:
            return Report(window, None, cut(window.from_us, window.to_us, MAX_STEPS))
        query = Query(connection, window, extent)
        numbers = {subject: subject.read(query) for subject in dict.fromkeys(section.numbers for section in SECTIONS)}
        has_records = query.has_records()
    report = Report(window, extent, query.steps, is_empty=False, numbers=numbers)
    # Pods that came before the window, and stayed, are something to report.
    is_empty = not has_records and not any(any(values) for values in report[Occupancy].by_kind.values())
    return replace(report, is_empty=is_empty)


def choose_window(extent: Extent | None, since_us: int | None, until_us: int | None) -> Span:
    """The window of the report."""
    if extent is None:
        to_us = until_us if until_us is not None else (since_us or 0) + 1
        return Span(since_us if since_us is not None else to_us - 1, to_us)
    to_us = until_us if until_us is not None else max(extent.to_us, (since_us or 0) + 1)
    from_us = since_us if since_us is not None else max(extent.from_us, to_us - USUAL_US)
    return Span(min(from_us, to_us - 1), to_us)
