"""Reports of made-up records; generated spans, and the edges of the steps that a report must count them by."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from lab.tests.moments import HOUR, SECOND
from lab.tests.recorded import empty_store, phase_record, pod_record
from roost_lab.recorder.store.records import Phase, Record
from roost_lab.report.formats import to_json
from roost_lab.report.gather import gather
from roost_lab.report.statistics import LAST_INDEX, LONGEST_BEFORE, LONGEST_STEP_US, STEPS, edge_at
from roost_lab.report.subject import Report

spans_us = st.one_of(
    st.integers(0, 3 * SECOND), st.integers(0, 3 * HOUR), st.sampled_from([10, 100, 1000]).map(SECOND.__mul__)
)


def edge_of(span_us: int) -> int:
    """The edge of the step that a span counts in, in µs: the smallest that is not below it; 0 for negative spans."""
    if span_us <= 0:
        return 0
    steps = ((step_us, before) for longest_us, step_us, before in STEPS if span_us <= longest_us)
    step_us, before = next(steps, (LONGEST_STEP_US, LONGEST_BEFORE))
    return edge_at(min(-(-span_us // step_us) + before, LAST_INDEX))


def started(uid: str, seconds: float, **pod: Any) -> list[Record]:
    """A pod that was ready so long after its creation."""
    record = pod_record(uid, **pod)
    return [record, phase_record(uid, Phase.READY, record.created_us + round(seconds * SECOND))]


def report_of(folder: Path, records: Sequence[Record], heard_us: int | None = None, **about: Any) -> Report:
    """heard_us: when the recorder was last there; about: as `gather` takes it."""
    store = empty_store(folder)
    store.write(list(records), {} if heard_us is None else {"pods": ("1", heard_us)})
    return gather(store, **about)


def tables_of(report: Report) -> dict[str, Any]:
    """Name -> rows, as JSON has them."""
    tables: dict[str, Any] = json.loads(to_json(report))["tables"]
    return tables
