"""The search for weights and placeholders: it finds an optimum that is known, within its budget."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from generator.values.files import read_values
from lab_tests.simulated import result
from roost_lab.simulator.engine.histogram import Histogram
from roost_lab.simulator.engine.results import TOTAL, RunResult
from roost_lab.simulator.setup.assumptions import Assumptions, Autoscaler
from roost_lab.simulator.setup.policy import load_policy
from roost_lab.simulator.setup.pools_file import read_pools, with_pools
from roost_lab.simulator.setup.shipped import policy_files, values_files
from roost_lab.simulator.sweep.suggest import (
    CONFIRMED,
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
    describe_candidate,
    make_space,
    predict,
    rank,
    score_of,
    search,
    search_on_windows,
    show_outcome,
    show_score,
)
from roost_lab.simulator.sweep.suggest_world import changes_of, where_to_set

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
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


@pytest.mark.parametrize("name", ["z2jh", "roost", "z2jh-placeholders-packed", "image-first", "warm-alone"])
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


@pytest.mark.parametrize("name", ["z2jh", "roost", "image-first", "warm-alone"])
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
    assert dict(space.start)[WARM_SPARE] == {"warm-alone": 0, "roost": 0}.get(name, dict(space.start)[WARM_SPARE])
    assert after.webhook is not None
    assert (after.webhook.classes["user"].warm is not None) == (name in ("warm-alone", "roost"))


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


UNIVERSITY = "lab/lab_tests/data/pools/university.yaml"


def university(autoscaler: Autoscaler = Autoscaler.CLUSTER_AUTOSCALER) -> Assumptions:
    assumed = Assumptions(autoscaler=autoscaler)
    return with_pools(assumed, read_pools(UNIVERSITY, assumed))


def test_machines_and_the_autoscalers_settings_are_searched_too() -> None:
    values = read_values([str(policy_files()["roost"])]).values
    space = make_space(values, 100, REQUESTS, university())
    names = {axis.name: axis.values for axis in space.axes}
    assert (names["machine of users"], names["unneeded, s"]) == ((0, 1, 2), (120, 300, 600, 1200))
    assert names["utilisation threshold, %"] == (30, 50, 70)
    assert dict(space.start)["utilisation threshold, %"] == 50
    assert "machine of users e2-highmem-8, unneeded, s 600" in describe_candidate(space.start, space.world)
    karpenter = {axis.name for axis in make_space(values, 100, REQUESTS, university(Autoscaler.KARPENTER)).axes}
    assert "consolidateAfter, s" in karpenter
    assert "unneeded, s" not in karpenter
    # Without a pools file the values alone are searched.
    assert make_space(values, 100, REQUESTS, Assumptions()).axes == make_space(values, 100, REQUESTS).axes


def test_a_candidates_world_has_its_machines_and_settings() -> None:
    world = university()
    assert changes_of(world, {"placeholders": 5}) == {}
    chosen = {"machine of users": 1, "unneeded, s": 300, "utilisation threshold, %": 70}
    changed = replace(world, **changes_of(world, chosen))
    assert changed.pools is not None
    assert [pool.price for pool in changed.pools.pools] == [0.105, 0.61]
    assert (changed.unneeded_seconds, changed.unneeded_utilisation) == (300, 0.7)
    # The greatest of both pools.
    assert (changed.node_memory_bytes, changed.max_nodes) == (25 * 10**9, 50)
    karpenter = university(Autoscaler.KARPENTER)
    assert changes_of(karpenter, {"consolidateAfter, s": 300}) == {"consolidate_after_seconds": 300}


def test_what_to_set_outside_the_values_is_said() -> None:
    world = university()
    start = {"machine of users": 0, "unneeded, s": 600, "utilisation threshold, %": 50, "placeholders": 25}
    best = start | {"machine of users": 2, "unneeded, s": 120, "utilisation threshold, %": 70, "placeholders": 0}
    assert where_to_set(world, best, start) == [
        "Node pool users: machine type e2-highmem-16, now e2-highmem-8.",
        "Cluster Autoscaler: --scale-down-unneeded-time=120s, now 600s.",
        "Cluster Autoscaler: --scale-down-utilization-threshold=0.7, now 0.5.",
    ]
    assert where_to_set(world, start, start) == []
    said = where_to_set(university(Autoscaler.KARPENTER), {"consolidateAfter, s": 900}, {"consolidateAfter, s": 30})
    assert said == ["Karpenter's NodePool: spec.disruption.consolidateAfter: 900s, now 30s."]


def test_money_counts_before_node_hours_where_there_are_prices() -> None:
    dear, cheap = Score(20, 10, 500, 2, 9.0), Score(20, 30, 500, 2, 3.0)
    assert rank(cheap, 30) < rank(dear, 30)
    assert rank(dear._replace(cost=None), 30) < rank(cheap._replace(cost=None), 30)
    priced = result()
    priced.costs = {"use": {"users": 3.0, "builds": 0.0, "placeholders": 1.0, "idle": 0.5}}
    assert score_of([priced]).cost == 4.5
    assert "cost 4.5, " in show_score(score_of([priced]))
    assert score_of([result()]).cost is None
    free = result()
    free.costs = {"use": dict.fromkeys(("users", "builds", "placeholders", "idle"), 0.0)}
    assert score_of([free]).cost is None


def test_of_equal_candidates_the_one_that_changes_least_wins() -> None:
    def evaluate(candidates: Sequence[Candidate], number: int) -> list[Score]:
        return [Score(1, 0 if dict(one)[PLACEHOLDERS] >= 20 else 5, 0, number) for one in candidates]

    outcome = search(AXES, ((PLACEHOLDERS, 40), *((name, 101) for name in WEIGHED)), evaluate, 30, 5)
    assert outcome.best == outcome.start


def in_windows(candidate: Candidate, *, warm: int = 90, wait: float | None = None) -> RunResult:
    """Windows of 100 starts: so many are warm, the others wait as `made_up` says. A fiftieth of all node-hours."""
    score = made_up(candidate, 0)
    waits = Histogram()
    waits.add(1.4, warm)
    waits.add(score.wait_seconds if wait is None else wait, 100 - warm)
    return RunResult(policy="", seed=1, waits={TOTAL: waits}, node_hours=score.node_hours / 50, cold=10)


def explore_windows(
    target: float, run: Callable[[Candidate], RunResult] = in_windows
) -> tuple[Outcome, list[tuple[Candidate, int]]]:
    asked: list[tuple[Candidate, int]] = []

    def evaluate(candidates: Sequence[Candidate], number: int) -> list[Score]:
        asked.extend((one, number) for one in candidates)
        return [made_up(one, 0)._replace(seeds=number) for one in candidates]

    def replay(candidates: Sequence[Candidate]) -> list[RunResult]:
        return [run(one) for one in candidates]

    return search_on_windows(AXES, START, evaluate, replay, target_seconds=target, seeds=5), asked


@pytest.mark.parametrize(("target", "placeholders"), [(100, 0), (75, 10), (55, 20), (30, 40)])
def test_windows_find_what_the_whole_trace_would_and_few_are_replayed_on_all_of_it(
    target: float, placeholders: int
) -> None:
    outcome, asked = explore_windows(target)
    best = dict(outcome.best)
    assert (best[PLACEHOLDERS], best["NodeResourcesFit"]) == (placeholders, 101)
    # The first is where the search began.
    assert asked[0] == (START, 5)
    assert len({one for one, _ in asked}) == len(asked) == CONFIRMED + 1
    assert {number for _, number in asked} == {5}
    assert set(outcome.scores) == {one for one, _ in asked}
    assert CONFIRMED < outcome.ranked_on_windows <= MOST_CANDIDATES


def test_a_candidate_that_disappoints_corrects_what_windows_say_of_the_others() -> None:
    # With placeholders the windows say half of the truth: 20 seem enough for 30 s, and 40 are.
    def flattering(candidate: Candidate) -> RunResult:
        wait = made_up(candidate, 0).wait_seconds
        return in_windows(candidate, wait=wait / 2 if dict(candidate)[PLACEHOLDERS] else wait)

    outcome, asked = explore_windows(30, flattering)
    assert [dict(one)[PLACEHOLDERS] for one, _ in asked[:3]] == [0, 20, 40]
    assert dict(outcome.best)[PLACEHOLDERS] == 40
    assert outcome.reaches(30)


def test_candidates_that_did_the_same_in_the_windows_are_tried_once() -> None:
    # All that counts is whether there are placeholders.
    def coarse(candidate: Candidate) -> RunResult:
        return in_windows(((PLACEHOLDERS, 20 if dict(candidate)[PLACEHOLDERS] else 0), ("NodeResourcesFit", 101)))

    outcome, asked = explore_windows(30, coarse)
    assert outcome.ranked_on_windows > 10
    assert [bool(dict(one)[PLACEHOLDERS]) for one, _ in asked] == [False, True]


def test_what_windows_promise_is_never_the_answer() -> None:
    # In the windows ten placeholders are enough for everybody.
    def flattering(candidate: Candidate) -> RunResult:
        return in_windows(candidate, wait=10 if dict(candidate)[PLACEHOLDERS] else None)

    outcome, _ = explore_windows(30, flattering)
    assert outcome.scores[outcome.best].wait_seconds == 70
    assert not outcome.reaches(30)


def test_a_prediction_is_made_where_a_known_candidate_waits_as_long_as_on_the_whole_trace() -> None:
    known, known_run = Score(60.0, 1000, 400, 5, 30.0), RunResult(policy="", seed=1, node_hours=20, cold=10)
    known_run.waits = {TOTAL: histogram({1.4: 80, 60.0: 10, 200.0: 10})}
    run = RunResult(policy="", seed=1, node_hours=30, cold=5)
    run.waits = {TOTAL: histogram({1.4: 80, 20.0: 10, 250.0: 10})}
    for each, cost in ((known_run, 2.0), (run, 1.0)):
        each.costs = {"use": {"all": cost}}
    expected = Score(20.0, 1500, 200, 0, 15.0)
    assert predict(run, known_run, known) == pytest.approx(expected, rel=0.02)
    assert predict(known_run, known_run, known)[:3] == pytest.approx(known[:3])
    assert predict(run, known_run, known._replace(cost=None)).cost is None
    # Where there is nothing to compare with, the windows' figure.
    known_run.cold = 0
    assert predict(run, known_run, known).cold == 5


def histogram(waits: dict[float, int]) -> Histogram:
    made = Histogram()
    for seconds, number in waits.items():
        made.add(seconds, number)
    return made


def test_what_was_ranked_on_which_windows_is_told() -> None:
    space = make_space(read_values(values_files("roost")).values, 100, REQUESTS)
    score = Score(20, 1000, 5, 3)
    outcome = Outcome(space.start, {space.start: score}, space.start, 31)
    text = show_outcome(outcome, space, 30, "a trace", "2019-05-23 06:00 to 18:00 UTC")
    assert "# Ranked on 2019-05-23 06:00 to 18:00 UTC: 31. Tried on the whole trace: 1.\n" in text
    assert "# Tried: 1.\n" in show_outcome(outcome, space, 30, "a trace")
