"""Say in a few lines what users waited for, over the whole record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roost_core.placement.labels import USER_CLASS
from roost_lab.pages.phrases import show_span
from roost_lab.report.pulls import Pulls
from roost_lab.report.query import Query, consistent_reads, read_extent
from roost_lab.report.starts import CONTAINERS, NODE, PHASE_NAMES, PULL, WHOLE, Starts
from roost_lab.report.statistics import Span, Spans

if TYPE_CHECKING:
    from collections.abc import Iterable

    from roost_lab.recorder.store.database import Store


def describe_waits(store: Store) -> list[str]:
    """Lines about the starts of users; none when no start is known from its beginning. Raises StoreError."""
    with consistent_reads(store) as connection:
        extent = read_extent(connection)
        if extent is None:
            return []
        query = Query(connection, Span(extent.from_us, extent.to_us), extent)
        starts, pulls = Starts.read(query), Pulls.read(query).total
    whole = _of_users(starts, WHOLE)
    if not whole.count:
        return []
    lines = [f"Users waited, in {whole.count:,} starts: {_percentiles(whole)}"]
    lines += [f"  {PHASE_NAMES[phase]}: {_percentiles(_of_users(starts, phase))}" for phase in (NODE, CONTAINERS)]
    cold = _merged(phases[PULL] for phases in starts.by_image.values() if PULL in phases)
    if cold.count:
        lines.append(f"  {pulls.cold:,} of {pulls.number:,} pulls were cold: {_percentiles(cold)}")
    return lines


def _of_users(starts: Starts, phase: str) -> Spans:
    groups = starts.by_class.items()
    return _merged(spans[phase] for (pod_class, _), spans in groups if pod_class == USER_CLASS and phase in spans)


def _merged(each: Iterable[Spans]) -> Spans:
    merged = Spans()
    for spans in each:
        merged.merge(spans)
    return merged


def _percentiles(spans: Spans) -> str:
    median, high = (show_span(spans.percentile_us(share) or 0) for share in (0.5, 0.95))
    return f"median {median}, 95 % within {high}"
