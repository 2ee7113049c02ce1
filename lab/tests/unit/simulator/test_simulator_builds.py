"""Builds: what they find on a node, how long they take, and what is counted of them."""

from dataclasses import replace
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost_lab.simulator.engine.bounds import BoundsMeter
from roost_lab.simulator.engine.builds import NEW_SHARE, BuildWorld
from roost_lab.simulator.engine.results import RunResult
from roost_lab.simulator.setup.assumptions import Assumptions
from roost_lab.traces.chance import Chance

# No build changes its environment.
STEADY = Assumptions(build_changed_share=0.0)
# Later than any build lasts.
DAY = 86400.0


def world(assumptions: Assumptions = STEADY, seed: int = 1) -> BuildWorld:
    return BuildWorld(assumptions, Chance(seed))


def test_a_node_that_built_before_the_environment_changed_has_the_old_one() -> None:
    changing = Assumptions(build_changed_share=0.5)
    found = []
    for number in range(200):
        builds = world(changing)
        repository = f"r{number}"
        for moment, node in enumerate(("a", "b", "a")):
            last = builds.begin(repository, node, moment * DAY)
        assert last.hit
        found.append(last.quick)
    # Neither the second nor the third may have changed it: a quarter.
    assert 0.17 < sum(found) / len(found) < 0.33


def test_cold_builds_have_the_assumed_median_and_ninetieth_percentile() -> None:
    builds = world()
    seconds = sorted(builds.begin(f"r{number}", "a", 0.0).seconds for number in range(4000))
    assert seconds[2000] == pytest.approx(240.0, rel=0.06)
    assert seconds[3600] == pytest.approx(900.0, rel=0.08)


def test_a_quick_build_takes_a_sixth_of_what_it_would_have_taken() -> None:
    quick, cold = world(), world()
    for one in (quick, cold):
        one.begin("r", "a", 0.0)
    assert cold.begin("r", "b", DAY).seconds == pytest.approx(
        quick.begin("r", "a", DAY).seconds * 240 / 40
    )


def test_what_was_seen_goes_into_the_result() -> None:
    builds, result = world(replace(STEADY, build_changed_share=1.0)), RunResult(policy="p", seed=1)
    for moment, (repository, node) in enumerate([("r", "a"), ("r", "a"), ("s", "a"), ("s", "b")]):
        builds.begin(repository, node, moment * DAY)
    builds.write(result)
    assert (result.builds, result.build_cache_hits, result.build_seconds.count) == (4, 1, 4)
    assert (result.busiest_builder_share, world().busiest_share) == (0.75, 0.0)


def test_an_image_needs_one_build_and_no_other_after_it() -> None:
    builds = world()
    images = [f"GitHub/owner/repo-{number}/master" for number in range(2000)]
    needed = [image for image in images if builds.needs_build(image)]
    assert len(needed) / len(images) == pytest.approx(NEW_SHARE, abs=0.03)
    assert [image for image in images if builds.needs_build(image)] == needed
    for image in needed:
        builds.built(image)
    assert not any(map(builds.needs_build, images))


def test_a_pushed_image_is_always_built_and_a_plus_in_a_name_is_no_push() -> None:
    builds = world()
    assert all(
        builds.needs_build(f"GitHub/owner/repo-{number}/master+1558500000") for number in range(20)
    )
    assert not all(builds.needs_build(f"GitHub/owner/c++{number}x/master") for number in range(20))


@given(
    # None: when the build before ends.
    builds=st.lists(
        st.tuples(st.sampled_from("rst"), st.sampled_from("ab"), st.none() | st.floats(0, 2000)),
        max_size=40,
    ),
    leaves=st.integers(0, 40),
    changed=st.sampled_from([0.0, 0.5, 1.0]),
)
def test_a_build_finds_what_earlier_ones_of_its_repository_left_on_its_node(
    builds: list[tuple[str, str, float | None]], leaves: int, changed: float
) -> None:
    machine = world(Assumptions(build_changed_share=changed))
    now, ended = 0.0, 0.0
    # Of each build: its repository, its node, and its end; a node that leaves takes them along.
    left: list[tuple[str, str, float]] = []
    for number, (repository, node, later) in enumerate(builds):
        now = max(now, ended) if later is None else now + later
        if number == leaves:
            machine.node_left("a", now)
            left = [one for one in left if one[1] != "a"]
        build = machine.begin(repository, node, now)
        assert build.seconds > 0
        there = {one[1] for one in left if one[0] == repository and one[2] <= now}
        assert build.hit == (node in there)
        assert set(machine.holders(repository, now)) == there
        if changed != 0.5:
            assert build.quick == (build.hit and not changed)
        ended = now + build.seconds
        left.append((repository, node, ended))
    assert machine.quick <= machine.hits <= len(builds) - len({one[0] for one in builds})
    assert sum(machine.by_node.values()) == machine.builds == machine.seconds.count == len(builds)


@given(order=st.permutations([("r", "a"), ("s", "b"), ("t", "a"), ("u", "b")]))
def test_what_a_build_takes_belongs_to_it_not_to_the_order(order: list[tuple[str, str]]) -> None:
    machine = world()
    seconds = {
        repository: machine.begin(repository, node, 0.0).seconds for repository, node in order
    }
    other = world()
    assert {
        repository: other.begin(repository, "z", 0.0).seconds for repository in "rstu"
    } == seconds


def test_each_repositorys_first_build_is_cold() -> None:
    meter = BoundsMeter(pods_per_node=1, min_nodes=0)
    for repository in ("r", "r", "s", "r"):
        meter.built(repository)
    assert meter.close(0.0)["build_cache_hits"] == 2


@given(
    stays=st.lists(
        st.tuples(st.integers(0, 50), st.integers(1, 30), st.sampled_from("abc")), max_size=40
    ),
    per_node=st.integers(1, 4),
    least=st.integers(0, 3),
)
def test_the_meter_agrees_with_looking_at_every_second(
    stays: list[tuple[int, int, str]], per_node: int, least: int
) -> None:
    meter = BoundsMeter(per_node, least, begin=0.0)
    events = [(begin, 1, image) for begin, _, image in stays] + [
        (begin + length, 0, image) for begin, length, image in stays
    ]
    # Who leaves at a moment leaves before who comes at it.
    for moment, comes, image in sorted(events):
        (meter.started if comes else meter.ended)(image, float(moment))
    found = meter.close(100.0)
    there = [
        [image for begin, length, image in stays if begin <= second < begin + length]
        for second in range(100)
    ]
    assert found["node_hours"] * 3600 == pytest.approx(
        sum(max(least, ceil(len(one) / per_node)) for one in there)
    )
    assert found["peak_nodes"] == max(least, *(ceil(len(one) / per_node) for one in there))
    needed = {
        image: max(ceil(one.count(image) / per_node) for one in there)
        for image in {s[2] for s in stays}
    }
    assert (found["cold"], found["cold_compulsory"]) == (sum(needed.values()), len(needed))


def test_pods_with_sizes_of_their_own_count_by_memory() -> None:
    meter = BoundsMeter(pods_per_node=2, min_nodes=0, begin=0.0, node_bytes=100)
    for index in range(4):
        meter.started(f"image {index}", 0.0, 25)
    meter.started("image 0", 3600.0, 30)
    meter.ended("image 0", 7200.0, 30)
    assert meter.close(7200.0) == {
        "node_hours": 3.0,
        "peak_nodes": 2.0,
        "cold": 4.0,
        "cold_compulsory": 4.0,
    }
