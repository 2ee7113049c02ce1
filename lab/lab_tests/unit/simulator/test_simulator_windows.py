"""Windows of a long trace: which they are, what is replayed for them, and what of it counts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from benchmarks.suggest_windows import rank_correlation
from roost_lab.simulator.engine.costs import BY_USE
from roost_lab.simulator.engine.histogram import Histogram
from roost_lab.simulator.engine.results import TOTAL
from roost_lab.simulator.engine.world import World
from roost_lab.simulator.setup.assumptions import Assumptions
from roost_lab.simulator.setup.policy import load_policy
from roost_lab.simulator.setup.pools_file import read_pools, with_pools
from roost_lab.simulator.sweep.run import Job, replay_job
from roost_lab.simulator.sweep.survey import Trace, Window
from roost_lab.simulator.sweep.windows import (
    ALL,
    DAY,
    HOUR,
    LEAST_SECONDS,
    WARM_UP_SECONDS,
    choose_windows,
    cut,
    show_windows,
    with_windows,
)
from roost_lab.traces.attempt import Attempt
from roost_lab.traces.synthetic import BEGIN

if TYPE_CHECKING:
    from pathlib import Path

# Wednesday, 2019-05-22 00:00 UTC.
START = int(BEGIN)
MADE_UP = {"days": 3.5, "launches_per_day": 150.0}


def launches(by_half: list[int]) -> list[float]:
    """So many launches in each half of a day, from 06:00 of the first day on."""
    return [
        START + 6 * HOUR + 12 * HOUR * (half + place / number)
        for half, number in enumerate(by_half)
        for place in range(number)
    ]


def test_the_busiest_half_of_a_day_and_the_median_of_the_other_half_are_chosen() -> None:
    moments = launches([900, 10, 100, 400, 100, 20, 200, 30, 150, 50, 1])
    busiest, median = 3, 8
    assert choose_windows(moments) == tuple(
        Window(START + 6 * HOUR + half * 12 * HOUR, START + 18 * HOUR + half * 12 * HOUR) for half in (busiest, median)
    )
    # The median launch, not the median half: most are in one of them.
    assert choose_windows(launches([900, 10, 10, 400, 10, 20, 200, 30, 15, 50, 1]))[1].begin == START + 78 * HOUR


def test_there_are_no_windows_in_a_short_trace_nor_without_launches() -> None:
    assert choose_windows([]) == ()
    assert choose_windows([START, START + LEAST_SECONDS - 1.0]) == ()
    # Nobody launches between the first and the last.
    assert choose_windows([START, START + 5.0 * DAY]) == ()


@pytest.mark.parametrize("hour", range(0, 24, 3))
def test_the_shortest_trace_that_has_windows_has_two(hour: int) -> None:
    moments = [START + hour * HOUR + 600.0 * place for place in range(LEAST_SECONDS // 600 + 1)]
    first, second = choose_windows(moments)
    assert (first.begin - second.begin) % DAY == DAY // 2
    assert moments[0] + DAY <= first.begin
    assert second.end <= moments[-1]


def test_windows_are_told_in_utc() -> None:
    windows = choose_windows(launches([900, 10, 100, 400, 300, 20, 200, 30, 90, 50, 1]))
    assert show_windows(windows) == "2019-05-23 18:00 to 06:00 and 2019-05-24 06:00 to 18:00 UTC"


def attempts(images: str, *, every: float) -> list[Attempt]:
    return [Attempt(number, START + number * every, image, image) for number, image in enumerate(images)]


def test_a_window_begins_with_the_last_launch_of_each_image_and_all_of_its_warm_up() -> None:
    begin = START + 40 * HOUR
    trace = attempts("abacbd" * 10, every=float(HOUR))
    (stretch,) = cut(trace, [Window(begin, begin + 5 * HOUR)])
    assert [(one.number, one.image) for one in stretch[:4]] == [(29, "d"), (31, "b"), (32, "a"), (33, "c")]
    warm_up = (begin - WARM_UP_SECONDS - START) // HOUR
    assert [one.number for one in stretch[4:]] == list(range(warm_up, 45))


def test_images_that_nobody_launched_for_long_are_left_out() -> None:
    old = Attempt(0, START - 11.0 * DAY, "old", "old")
    trace = [old, *(one._replace(number=one.number + 1) for one in attempts("a" * 60, every=float(HOUR)))]
    (stretch,) = cut(trace, [Window(START + 40 * HOUR, START + 45 * HOUR)])
    assert "old" not in {one.image for one in stretch}


MADE_UP_TRACE = Trace((), MADE_UP, "made up")


def job(trace: Trace, assumptions: Assumptions | None = None, policy: str = "roost") -> Job:
    return Job(load_policy(policy), 1, assumptions or Assumptions(), trace)


def test_only_what_comes_in_the_windows_counts() -> None:
    trace, number = with_windows(MADE_UP_TRACE)
    told: list[int] = []
    result = replay_job(job(trace), lambda played, _moment: told.append(played))
    stretches = cut(trace.open(1), trace.windows)
    assert (result.attempts, told) == (number, sorted(told))
    hours, cold, waits = 0.0, 0, Histogram()
    for window, stretch in zip(trace.windows, stretches, strict=True):
        world = World(load_policy("roost"), Assumptions(), 1)
        counted = {one.number for one in stretch if one.moment >= window.begin}
        world.measures.on_wait = lambda place, seconds, _, counted=counted: (  # type: ignore[misc]
            waits.add(seconds) if place in counted else None
        )
        rows = [row for row in world.play(stretch, None, window.end).hours if window.begin <= row.begin < window.end]
        assert len(rows) == 12
        hours += sum(row.nodes for row in rows)
        cold += sum(row.cold for row in rows)
    assert result.node_hours == pytest.approx(hours)
    assert result.cold == cold
    assert result.waits[TOTAL].to_json() == waits.to_json()
    assert waits.count > 0


def test_costs_are_those_of_the_windows(tmp_path: Path) -> None:
    file = tmp_path / "pools.yaml"
    file.write_text("pools: [{name: a, machine: {cpu: 8, memory: 36G}, price: 3, min_nodes: 1}]")
    assumptions = with_pools(Assumptions(), read_pools(str(file), Assumptions()))
    trace, _ = with_windows(MADE_UP_TRACE)
    result = replay_job(job(trace, assumptions), None)
    assert result.costs[BY_USE][ALL] == pytest.approx(3 * result.node_hours)
    assert result.node_hours >= 24


def test_a_replay_of_windows_is_another_job_than_one_of_the_whole_trace() -> None:
    trace, _ = with_windows(MADE_UP_TRACE)
    fewer = replace(trace, windows=trace.windows[:1])
    assert len({job(each).key for each in (MADE_UP_TRACE, trace, fewer)}) == 3


def test_the_share_of_durations_within_a_time_goes_with_quantiles() -> None:
    waits = Histogram()
    for seconds in (1.0, 1.0, 1.0, 20.0):
        waits.add(seconds)
    assert [waits.share_within(seconds) for seconds in (0.0, 1.0, 5.0, 20.0)] == [0, 0.75, 0.75, 1]
    assert waits.quantile(waits.share_within(1.0)) == 1.0
    assert Histogram().share_within(1.0) == 0


def test_ranks_agree_or_do_not() -> None:
    ranks = [0, 1, 2, 3]
    assert rank_correlation(ranks, ranks) == pytest.approx(1)
    assert rank_correlation(ranks, ranks[::-1]) == pytest.approx(-1)
    assert rank_correlation(ranks, [1, 0, 2, 3]) == pytest.approx(0.8)
    assert rank_correlation([0], [0]) == 1
