"""Generated spans, and the edges of the steps that a report must count them by."""

from __future__ import annotations

from hypothesis import strategies as st

from lab.tests.recorded import HOUR, SECOND
from roost_lab.report.statistics import LAST_INDEX, LONGEST_BEFORE, LONGEST_STEP_US, STEPS, edge_at

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
