"""An oracle of popular images knows the launches to come, and no more than it is asked for."""

from __future__ import annotations

import json
from collections import Counter
from itertools import count, islice
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.simulator.engine.foresight import Foresight, make_oracle
from roost.simulator.engine.pods import image_reference
from roost.simulator.sweep.asked import load_policies, make_worlds, needed_of_nodes
from roost_core.placement.images import normalise_reference
from tests.small_worlds import BEGIN, attempt, comparable, in_order, play, policy, small

if TYPE_CHECKING:
    from collections.abc import Iterator

    from roost.simulator.trace.attempt import Attempt


def named(image: str) -> str:
    return normalise_reference(image_reference(image))


@given(
    gaps=st.lists(st.tuples(st.integers(0, 40), st.sampled_from("abc"), st.integers(1, 3)), max_size=40),
    seconds=st.integers(1, 100),
)
def test_it_hands_all_on_in_order_and_knows_what_comes_within_its_hours(
    gaps: list[tuple[int, str, int]], seconds: int
) -> None:
    moment, said = 0, []
    for number, (gap, image, _) in enumerate(gaps):
        moment += gap
        said.append(attempt(number, moment, image))
    foresight = Foresight(float(seconds))
    before = 0.0
    handed = []
    for one, (_, _, parts) in zip(foresight.hand_on(said), gaps, strict=True):
        handed.append(one)
        until = one.moment - BEGIN
        # Asked at any moment between one attempt and the next.
        for part in range(1, parts + 1):
            now = BEGIN + before + (until - before) * part / parts
            expected = Counter(named(other.image) for other in said if now < other.moment <= now + seconds)
            assert foresight.launches(now) == expected
        before = until
    assert handed == said


def test_it_reads_no_further_than_its_hours() -> None:
    read = []

    def endless() -> Iterator[Attempt]:
        for number in count():
            assert number < 1000, "it reads on and on"
            read.append(number)
            yield attempt(number, 60.0 * number)

    for one in islice(Foresight(3600.0).hand_on(endless()), 500):
        assert len(read) <= one.number + 62
    assert len(read) < 600


def popular(oracle: bool) -> tuple[int, int]:
    """Background pulls and cold starts of a hub where b becomes popular while nobody launched it before."""
    values = {
        "prePuller": {"enabled": False},
        "placeholders": [],
        "imageGate": {"mode": "off"},
        "popularImages": {"enabled": True, "perNode": 5, "minUsers": 3},
    }
    said = in_order(*((60.0 * number, "a") for number in range(10)), *((4000 + 60.0 * n, "b") for n in range(12)))
    world = small(seats=20, nodes=3, popular_oracle_hours=1.0 if oracle else 0.0)
    result, _ = play(said, policy("popular-k5", json.dumps(values)), world)
    return result.background_pulls, result.cold


def test_what_will_be_launched_is_there_before_its_first_user() -> None:
    # Who counts only knows of b when it has been launched. Of a nobody knows where its pods may run before one does.
    assert [popular(oracle)[1] for oracle in (True, False)] == [1, 2]
    assert popular(oracle=True)[0] > popular(oracle=False)[0]


def test_only_the_policy_that_asks_for_an_oracle_has_one() -> None:
    _, _, needs = load_policies(["popular-k20", "popular-k20-oracle"], [])
    (world,) = make_worlds(needs=needs)
    assert world.assumptions.popular_oracle_hours == 0
    assert needed_of_nodes(needs) == {"popular-k20-oracle": {"popular_oracle_hours": 1}}


def test_as_usual_nobody_knows_and_only_popular_images_ask() -> None:
    said = [attempt(number, 60.0 * number, image=f"i{number % 4}") for number in range(40)]
    usual, _ = play(said, policy("recommended"), small(seats=30))
    foreseen, _ = play(said, policy("recommended"), small(seats=30, popular_oracle_hours=1.0))
    assert comparable(usual) == comparable(foreseen)


def test_an_oracle_of_nothing_is_an_error() -> None:
    with pytest.raises(ValueError, match="are off"):
        make_oracle("popular-images", {"popularImages": {"enabled": False}}, lambda _now: {})
