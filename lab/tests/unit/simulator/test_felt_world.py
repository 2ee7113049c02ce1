"""The world `mybinder-2019` has the launch times that mybinder.org published in May 2019."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import islice
from math import exp
from statistics import median

import pytest

from benchmarks.flagship import BEFORE, FITTED, JUDGED, play, quantiles, show_published
from benchmarks.results import read_results
from roost_lab.simulator.engine.world import World
from roost_lab.simulator.setup.assumptions import Assumptions
from roost_lab.simulator.setup.policy import load_policy
from roost_lab.simulator.setup.worlds import PUBLISHED
from roost_lab.traces.synthetic import synthetic_attempts

# How far a replay may be from what was published, which is told in round numbers.
OFF = 0.2


@pytest.mark.slow
def test_the_third_day_has_the_waits_that_were_published() -> None:
    # The first day warms the caches, and the second is of the half that the world was fitted to.
    replay = play(BEFORE, 1, 3)
    assert replay.halves[JUDGED] == pytest.approx(tuple(PUBLISHED.values()), rel=OFF)
    assert show_published([replay]).count(" %") == len(PUBLISHED)


@pytest.mark.parametrize("half", [FITTED, JUDGED])
def test_ten_days_have_the_waits_that_were_published(half: str) -> None:
    table = read_results("flagship").tables[2]
    for share, seconds in PUBLISHED.items():
        found = table.number(half, f"{100 * share:g} at most")
        assert found == pytest.approx(seconds, rel=OFF), (half, share)


def test_what_was_published_stands_in_the_results() -> None:
    table = read_results("flagship").tables[2]
    told = {row[0]: float(row[1]) for row in table.rows}
    assert told == {f"{100 * share:g} at most": seconds for share, seconds in PUBLISHED.items()}


@pytest.mark.slow
def test_who_is_given_up_has_no_launch_time() -> None:
    replay = play(BEFORE, 1, 1)
    assert replay.given_up
    # The published figures are of launches that succeeded; without patience nobody waits longer.
    assert replay.quantiles[-1] < 2 * 300 + 60


def test_quantiles_are_waits_that_a_share_does_not_exceed() -> None:
    seconds = [float(second) for second in range(1, 101)]
    assert quantiles(seconds, (0.5, 0.9, 0.99)) == (50.0, 90.0, 99.0)
    assert quantiles([], (0.5,)) == (0.0,)
    assert Counter(quantiles([7.0], (0.5, 0.99))) == {7.0: 2}


def answers(policy: str, assumptions: Assumptions, seed: int) -> dict[int, float]:
    """Seconds by launch from containers that run to the answer: no other part of a wait changes."""
    attempts = list(islice(synthetic_attempts(seed, 1.0), 200))
    waits: list[dict[int, float]] = []
    for world in (assumptions, replace(assumptions, answer_seconds=0.0, answer_sigma=0.0)):
        ended: dict[int, float] = {}
        played = World(load_policy(policy), world, seed)

        def note(
            number: int, seconds: float, _is_up: bool, ended: dict[int, float] = ended
        ) -> None:
            ended[number] = seconds

        played.measures.on_wait = note
        played.play(iter(attempts))
        waits.append(ended)
    with_answer, without = waits
    assert with_answer.keys() == without.keys()
    return {number: with_answer[number] - without[number] for number in without}


@pytest.mark.parametrize("seed", [1, 2])
def test_a_launch_takes_as_long_to_answer_under_each_policy(seed: int) -> None:
    assumptions = Assumptions(answer_seconds=12.0, answer_sigma=0.8)
    before = answers(BEFORE, assumptions, seed)
    assert answers("roost", assumptions, seed) == pytest.approx(before)
    assert median(before.values()) == pytest.approx(12.0, rel=0.25)
    # One in six is beyond a sigma.
    slow = sum(seconds > 12.0 * exp(0.8) for seconds in before.values()) / len(before)
    assert 0.08 < slow < 0.25


def test_without_a_sigma_all_take_as_long_to_answer() -> None:
    found = answers(BEFORE, Assumptions(answer_seconds=7.0), 1)
    assert list(found.values()) == pytest.approx([7.0] * len(found))
