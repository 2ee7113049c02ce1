"""Reports of made-up records; generated spans, and the edges of the steps that a report must count
them by.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from math import ceil
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from lab.tests.moments import HOUR, MINUTE, SECOND
from lab.tests.recorded import (
    bind_record,
    empty_store,
    fail_record,
    phase_record,
    pod_record,
    pull_record,
)
from roost_lab.recorder.store.records import Phase, PreemptionRecord, Record
from roost_lab.report.formats import to_json
from roost_lab.report.gather import gather
from roost_lab.report.statistics import LAST_INDEX, LONGEST_SHIFT, LONGEST_STEP_US, STEPS, edge_at
from roost_lab.report.subject import Report

spans_us = st.one_of(
    st.integers(0, 3 * SECOND),
    st.integers(0, 3 * HOUR),
    st.sampled_from([10, 100, 1000]).map(SECOND.__mul__),
)


def edge_of(span_us: int) -> int:
    """The edge of the step that a span counts in, in µs: the smallest that is not below it; 0 for
    negative spans.
    """
    if span_us <= 0:
        return 0
    for steps in STEPS:
        if span_us <= steps.longest_us:
            return edge_at(ceil(span_us / steps.step_us) + steps.shift)
    return edge_at(min(ceil(span_us / LONGEST_STEP_US) + LONGEST_SHIFT, LAST_INDEX))


def started(uid: str, seconds: float, **pod: Any) -> list[Record]:
    """A pod that was ready so long after its creation."""
    record = pod_record(uid, **pod)
    return [record, phase_record(uid, Phase.READY, record.created_us + round(seconds * SECOND))]


def whole_start(uid: str, ready_seconds: int = 3, **pod: Any) -> list[Record]:
    """A pod that was bound, pulled, became ready, failed once and was pre-empted."""
    record = pod_record(uid, **pod)
    begin = record.created_us
    return [
        record,
        replace(bind_record(uid, begin + SECOND, "n", "agrees"), scheduler=record.scheduler),
        replace(fail_record(uid, 1, {"Insufficient cpu": 1}), at_us=begin + 1),
        phase_record(uid, Phase.STARTED, begin + 2 * SECOND),
        phase_record(uid, Phase.READY, begin + ready_seconds * SECOND),
        pull_record(uid, begin + SECOND, record.image),
        PreemptionRecord(victim_uid=uid, node_name="n", at_us=begin + MINUTE, kind="preempted"),
    ]


def report_of(
    folder: Path, records: Sequence[Record], heard_us: int | None = None, **about: Any
) -> Report:
    """heard_us: when the recorder was last there; about: as `gather` takes it."""
    store = empty_store(folder)
    store.write(list(records), {} if heard_us is None else {"pods": ("1", heard_us)})
    return gather(store, **about)


def tables_of(report: Report) -> dict[str, Any]:
    """Name -> rows, as JSON has them."""
    tables: dict[str, Any] = json.loads(to_json(report))["tables"]
    return tables
