"""The search for weights and placeholders: it finds an optimum that is known, within its budget."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from generator.values.files import read_values
from roost.simulator.setup.policy import load_policy
from roost.simulator.setup.shipped import policy_files, values_files
from roost.simulator.sweep.suggest import (
    FINALISTS,
    MOST_CANDIDATES,
    PLACEHOLDERS,
    STRATEGY,
    WARM_SPARE,
    WEIGHED,
    Axis,
    Candidate,
    Outcome,
    Score,
    SuggestError,
    make_space,
    rank,
    search,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

pytestmark = pytest.mark.slow

AXES = (
    Axis(PLACEHOLDERS, (0, 10, 20, 40, 80)),
    *(Axis(name, (1, 11, 101, 1331, 10201)) for name in WEIGHED),
)
START: Candidate = ((PLACEHOLDERS, 0), *((name, 1) for name in WEIGHED))
REQUESTS = {"cpu": "10m", "memory": "550M"}


def made_up(candidate: Candidate, seed: int) -> Score:
    """More placeholders wait less and cost more; packing saves nodes; the rest does nothing. Seeds shift all alike."""
    chosen = dict(candidate)
    wait = 90 - 2 * chosen[PLACEHOLDERS] + seed
    hours = 1000 + 3 * chosen[PLACEHOLDERS] + 10 * abs(chosen["NodeResourcesFit"] - 101) / 101 + seed
    return Score(wait, hours, 500, 1)


def explore(target: float, start: Candidate = START, seeds: int = 5) -> tuple[Outcome, list[tuple[int, int]]]:
    asked: list[tuple[int, int]] = []

    def evaluate(candidates: Sequence[Candidate], number: int) -> list[Score]:
        asked.append((len(candidates), number))
        return [made_up(one, number // 2)._replace(seeds=number) for one in candidates]

    return search(AXES, start, evaluate, target, seeds), asked


@pytest.mark.parametrize(("target", "placeholders"), [(100, 0), (75, 10), (55, 20), (30, 40)])
def test_the_least_node_hours_within_the_target_are_found(target: float, placeholders: int) -> None:
    outcome, _ = explore(target)
    best = dict(outcome.best)
    assert (best[PLACEHOLDERS], best["NodeResourcesFit"]) == (placeholders, 101)
    assert outcome.reaches(target)
    assert outcome.scores[outcome.best].seeds == 5


def test_a_target_beyond_reach_gives_the_nearest_and_says_so() -> None:
    outcome, _ = explore(-100)
    assert dict(outcome.best)[PLACEHOLDERS] == 80
    assert not outcome.reaches(-100)


@given(
    st.sampled_from(AXES[0].values),
    st.lists(st.sampled_from(AXES[1].values), min_size=3, max_size=3),
    st.integers(0, 99),
)
def test_the_search_is_bounded_and_never_worse_than_where_it_began(
    placeholders: int, weights: list[int], target: int
) -> None:
    start = ((PLACEHOLDERS, placeholders), *zip(WEIGHED, weights, strict=True))
    outcome, asked = explore(target, start)
    assert len(outcome.scores) <= MOST_CANDIDATES
    assert sum(number for number, seeds in asked if seeds == 5) <= FINALISTS + 1
    assert rank(outcome.scores[outcome.best], target) <= rank(outcome.scores[start], target)
    assert outcome.scores[start].seeds == 5


def test_the_same_search_finds_the_same() -> None:
    assert explore(50)[0] == explore(50)[0]


def test_few_seeds_that_mislead_do_not_decide() -> None:
    def evaluate(candidates: Sequence[Candidate], number: int) -> list[Score]:
        # With two seeds 80 placeholders look best; with five it is 10.
        wanted = 80 if number == 2 else 10
        return [Score(1, abs(dict(one)[PLACEHOLDERS] - wanted), 0, number) for one in candidates]

    outcome = search(AXES[:1], ((PLACEHOLDERS, 0),), evaluate, 30, 5)
    assert dict(outcome.best)[PLACEHOLDERS] == 10
    assert outcome.scores[outcome.best].seeds == 5


@pytest.mark.parametrize("name", ["z2jh", "roost", "z2jh-placeholders-packed", "image-first", "recommended"])
def test_pasted_values_are_the_searched_ones(name: str, tmp_path: Path) -> None:
    files = values_files(name)
    space = make_space(read_values(files).values, 100, REQUESTS)
    candidate = tuple((axis.name, axis.values[-1]) for axis in space.axes)
    file = tmp_path / "suggested.yaml"
    file.write_text(yaml.safe_dump(space.values_of(candidate)))
    pasted = load_policy("pasted", [*files, str(file)])
    assert pasted.digest == load_policy("searched", files, space.settings_of(candidate, json.dumps)).digest
    assert [one.replicas for one in pasted.placeholders] == [150]
    assert yaml.safe_load(file.read_text())["podClasses"]["user"]["warm"]["spare"] == "0%"
    profile = next(one for key, one in pasted.profiles.items() if key.endswith(STRATEGY))
    assert dict(profile.scores) | dict.fromkeys(WEIGHED, 10201) == dict(profile.scores)


@pytest.mark.parametrize("name", ["z2jh", "roost", "image-first", "recommended"])
def test_the_search_begins_where_the_values_are(name: str) -> None:
    files = values_files(name)
    space = make_space(read_values(files).values, 100, REQUESTS)
    before = load_policy(name)
    after = load_policy(name, files, space.settings_of(space.start, json.dumps))
    old = next(one for key, one in before.profiles.items() if key.endswith("user"))
    new = next(one for key, one in after.profiles.items() if key.endswith(STRATEGY))
    assert dict(new.scores) == dict(old.scores)
    assert sum(one.replicas for one in after.placeholders) == sum(one.replicas for one in before.placeholders)
    assert {axis.name: dict(space.start)[axis.name] in axis.values for axis in space.axes} == dict.fromkeys(
        (WARM_SPARE, PLACEHOLDERS, *WEIGHED), True
    )
    assert (dict(space.start)[WARM_SPARE] == -25) == (name == "recommended")
    assert after.webhook is not None
    assert (after.webhook.classes["user"].warm is None) == (name != "recommended")


@pytest.mark.parametrize(
    "odd",
    [
        {"admission": {"mode": "policy"}},
        {"webhook": {"readNodes": False}},
        {"podClasses": {"user": {"warm": {"spare": -16}}}},
        {"podClasses": {"user": {"home": {"key": [{"annotation": "a"}]}}}},
    ],
)
def test_a_warm_set_is_searched_only_where_there_may_be_one_that_is_a_share(odd: dict[str, Any]) -> None:
    values = read_values([str(policy_files()["roost"])]).values
    for key, over in odd.items():
        found = values[key]
        assert isinstance(found, dict)
        for name, one in over.items():
            kept = found[name]
            found[name] = kept | one if isinstance(kept, dict) else one
    assert {axis.name for axis in make_space(values, 100, REQUESTS).axes} == {PLACEHOLDERS, *WEIGHED}


def test_users_of_the_clusters_own_scheduler_have_no_weights_to_search() -> None:
    with pytest.raises(SuggestError, match=r"podClasses\.user\.profile"):
        make_space(read_values([str(policy_files()["kube-default"])]).values, 100, REQUESTS)


def test_placeholders_by_nodes_or_by_the_clock_are_left_alone() -> None:
    values = read_values([str(policy_files()["roost"])]).values
    sets = values["placeholders"]
    assert isinstance(sets, list)
    sets[0]["countBy"] = "nodes"
    assert {axis.name for axis in make_space(values, 100, REQUESTS).axes} == {WARM_SPARE, *WEIGHED}
