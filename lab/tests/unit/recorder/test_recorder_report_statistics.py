from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.tests.recorded import HOUR, SECOND
from lab.tests.unit.recorder.reported import edge_of, spans_us
from roost_lab.report.statistics import Edges, Span, Spans, Steps, covered, cut, means, unite


@given(spans_us)
def test_an_edge_is_not_below_its_span_and_at_most_a_hundredth_above(span_us: int) -> None:
    edge_us = edge_of(span_us)
    assert span_us <= edge_us
    assert edge_us - span_us < max(10_000, span_us / 100 + 1)
    assert edge_of(edge_us) == edge_us


@given(st.integers(0, 1000))
def test_whole_seconds_count_exactly(seconds: int) -> None:
    assert edge_of(seconds * SECOND) == seconds * SECOND


def collect(spans: Iterable[int]) -> Spans:
    found = Spans()
    for one in spans:
        found.add(edge_of(one), 1, one)
    return found


@given(st.lists(spans_us, min_size=1), st.sampled_from([0.01, 0.5, 0.9, 0.95, 1.0]))
def test_a_percentile_is_the_edge_of_the_span_that_sorting_finds(spans: list[int], share: float) -> None:
    ordered = sorted(spans)
    # The least one that so many hundredths of all don't exceed, in whole numbers.
    wanted = next(
        one for one in ordered if 100 * sum(other <= one for other in ordered) >= round(share * 100) * len(ordered)
    )
    assert collect(spans).percentile_us(share) == edge_of(wanted)
    assert collect(spans).mean_us == sum(spans) / len(spans)


def test_nothing_has_no_percentile() -> None:
    assert (Spans().percentile_us(0.5), Spans().mean_us, Spans().count) == (None, None, 0)


stays = st.lists(st.tuples(st.integers(0, 1000), st.one_of(st.none(), st.integers(0, 300))))


@given(stays, st.integers(1, 90))
def test_means_are_those_of_looking_at_every_moment(stays: list[tuple[int, int | None]], step_us: int) -> None:
    steps = Steps(0, step_us, -(-1300 // step_us))
    edges = Edges()
    for from_us, length in stays:
        edges.add(from_us // step_us, 1, from_us % step_us)
        if length is not None:
            edges.add((from_us + length) // step_us, -1, -((from_us + length) % step_us))
    at = [sum(f <= moment and (n is None or moment < f + n) for f, n in stays) for moment in range(steps.to_us)]
    expected = [sum(at[start : start + step_us]) / step_us for start in steps.starts()]
    assert means(edges, steps) == pytest.approx(expected)


some_spans = st.lists(st.tuples(st.integers(0, 200), st.integers(1, 60)).map(lambda one: Span(one[0], sum(one))))


@given(some_spans)
def test_united_spans_hold_the_same_moments_and_do_not_touch(spans: list[Span]) -> None:
    united = unite(spans)

    def inside(some: list[Span]) -> set[int]:
        return {moment for span in some for moment in range(*span)}

    assert inside(united) == inside(spans)
    assert all(one.to_us < other.from_us for one, other in pairwise(united))


@given(some_spans, st.integers(1, 50))
def test_a_step_is_covered_when_half_of_its_moments_are(spans: list[Span], step_us: int) -> None:
    steps = Steps(20, step_us, 7)
    moments = {moment for span in spans for moment in range(*span)}
    expected = [
        2 * sum(moment in moments for moment in range(start, start + step_us)) >= step_us for start in steps.starts()
    ]
    assert covered(steps, spans) == expected


@given(st.integers(0, 10**15), st.integers(1, 400 * 24 * HOUR), st.integers(2, 300))
def test_a_cut_covers_the_time_with_no_more_steps_than_wanted(from_us: int, length: int, most: int) -> None:
    steps = cut(from_us, from_us + length, most)
    assert steps.from_us <= from_us
    assert from_us - steps.from_us < steps.step_us
    assert from_us + length <= steps.to_us < from_us + length + steps.step_us
    # Whole steps from a round moment may need one more.
    assert steps.number <= most + 1
