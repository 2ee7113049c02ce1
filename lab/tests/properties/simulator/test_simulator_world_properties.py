"""What holds in every replay, whatever the trace, the world and the policy."""

from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from lab.tests.small_worlds import BEGIN, MANAGED, USER_BYTES, comparable, play, with_placeholders
from roost_lab.simulator.engine.results import PARTS, TOTAL
from roost_lab.simulator.setup.assumptions import Assumptions, Autoscaler
from roost_lab.simulator.sweep.measures import MEASURES
from roost_lab.simulator.sweep.summary import WorldSetting, summarise
from roost_lab.traces.attempt import Attempt

POLICIES = (
    "kube-default",
    "z2jh",
    "z2jh-placeholders-packed",
    "z2jh-placeholders-spread",
    "image-first",
    "gate-label",
    "gate-taint",
    "popular",
    "roost",
    "builds-sticky",
)
# Some are smaller than others; a node of the smallest worlds takes one of them.
IMAGES = ("a", "b", "c", "d+1", MANAGED)


@st.composite
def traces(draw: st.DrawFn, *, sizes: bool = False) -> list[Attempt]:
    """Attempts of a few images, close together or far apart."""
    moment, found = BEGIN, []
    for number in range(draw(st.integers(1, 25))):
        moment += draw(st.sampled_from((0.0, 0.0, 1.5, 40.0, 400.0, 5000.0)))
        image = draw(st.sampled_from(IMAGES))
        more: dict[str, Any] = {
            "session_seconds": draw(st.sampled_from((None, 0.0, 30.0, 900.0, 9000.0)))
        }
        if draw(st.booleans()):
            more["image_bytes"] = draw(st.sampled_from((1, 10**8, 2 * 10**9, 4 * 10**10)))
        if sizes:
            more["memory_bytes"] = draw(
                st.sampled_from((None, USER_BYTES // 3, USER_BYTES, 2 * USER_BYTES))
            )
        found.append(
            Attempt(number, moment, repository=image.partition("+")[0], image=image, **more)
        )
    return found


@st.composite
def worlds(draw: st.DrawFn) -> Assumptions:
    """A few nodes with room for a few users, on disks that are large, small or endless."""
    least = draw(st.integers(1, 3))
    return Assumptions(
        node_memory_bytes=draw(st.integers(1, 5)) * USER_BYTES,
        min_nodes=least,
        max_nodes=least + draw(st.integers(0, 3)),
        node_disk_bytes=draw(st.sampled_from((0, 5 * 10**9, 10**12))),
        gc_max_age_seconds=draw(st.sampled_from((0.0, 900.0))),
        autoscaler=draw(st.sampled_from(list(Autoscaler))),
        boot_median_seconds=draw(st.sampled_from((1.0, 210.0, 1200.0))),
        pulls=draw(st.sampled_from(("fast", "middle", "slow"))),
        parallel_pulls=draw(st.sampled_from((0, 1, 3))),
        quota_per_repository=draw(st.sampled_from((0, 0, 1, 4))),
        active_server_limit=draw(st.sampled_from((0, 0, 0, 5))),
        retries=draw(st.integers(0, 2)),
        start_timeout_seconds=draw(st.sampled_from((20.0, 300.0, 9000.0))),
        preempted_gone_seconds=draw(st.sampled_from((0.0, 1.0, 30.0))),
        status_delay_seconds=draw(st.sampled_from((0.0, 10.0))),
        concurrent_spawn_limit=draw(st.sampled_from((0, 0, 2))),
        with_builds=draw(st.booleans()),
        pushes_per_day=0.0,
    )


# Bounds that pulling ahead goes below.
AHEAD = {"cold", "cold_compulsory"}
policies = st.builds(with_placeholders, st.sampled_from(POLICIES), st.integers(0, 3))


@settings(max_examples=60)
@given(attempts=traces(sizes=True), policy=policies, world=worlds(), seed=st.integers(0, 3))
def test_nobody_is_lost_no_level_is_negative_and_no_node_holds_more_than_it_takes(
    attempts: list[Attempt], policy: Any, world: Assumptions, seed: int
) -> None:
    # Levels, nodes with users that are taken away, full nodes and time are looked at as it plays.
    result, seen = play(attempts, policy, world, seed)
    assert result.attempts == len(attempts)
    assert (
        result.attempts == result.admitted + result.refused_by_repository + result.refused_by_total
    )
    assert result.admitted == result.started + result.given_up
    assert result.still_waiting == seen.still_starting == 0
    assert result.tries == result.started + result.timeouts
    assert result.cold <= result.placed <= result.tries
    assert result.timeouts >= result.given_up * (1 + world.retries)
    assert result.timeouts <= result.given_up + (result.admitted * world.retries)
    assert result.started == len(seen.hub.sessions)
    assert result.started + result.given_up == result.waits[TOTAL].count
    assert result.cold == sum(result.cold_why.values())
    assert result.peak_nodes <= world.max_nodes
    assert result.waited_for_node <= result.started + result.given_up
    assert abs(result.waits[TOTAL].total - sum(result.waits[part].total for part in PARTS)) < 1e-3


@settings(max_examples=60)
@given(
    attempts=traces(),
    policy=policies,
    world=worlds(),
    shared=st.sampled_from((0.0, 0.4)),
    seed=st.integers(0, 3),
)
def test_no_figure_is_beyond_its_bound(
    attempts: list[Attempt], policy: Any, world: Assumptions, shared: float, seed: int
) -> None:
    world = replace(world, shared_share=shared)
    result, _ = play(attempts, policy, world, seed)
    summary = summarise([result], [WorldSetting({}, world)])
    for measure in MEASURES:
        value = summary.value(measure.key, result.policy)
        if (
            value is None
            or value.bound is None
            or (result.background_pulls and measure.bound in AHEAD)
        ):
            continue
        slack = 1e-9 * max(1.0, abs(value.bound))
        if measure.key == "build_cache_hits":
            assert value.median <= value.bound + slack, measure
        else:
            assert value.median >= value.bound - slack, measure
    assert result.bounds["cold"] >= result.bounds["cold_compulsory"]


@settings(max_examples=15)
@given(attempts=traces(), policy=policies, world=worlds(), seed=st.integers(0, 3))
def test_two_replays_of_one_seed_are_equal(
    attempts: list[Attempt], policy: Any, world: Assumptions, seed: int
) -> None:
    assert comparable(play(attempts, policy, world, seed)[0]) == comparable(
        play(attempts, policy, world, seed)[0]
    )


@settings(max_examples=25)
@given(attempts=traces(), policy=policies, world=worlds())
def test_a_replay_ends_and_its_work_is_bounded_by_what_happens(
    attempts: list[Attempt], policy: Any, world: Assumptions
) -> None:
    _, seen = play(attempts, policy, world)
    span = seen.now - BEGIN
    # Nothing runs faster than controllers plan and autoscalers look, and nothing is done more than
    # a few times for one pod; what lives after the last launch isn't waited for.
    assert seen.steps <= 50 * (len(attempts) + 10) + span * (1 / 0.5 + 1)
    if not world.concurrent_spawn_limit:
        assert (
            span
            <= attempts[-1].moment - BEGIN + (world.retries + 1) * world.start_timeout_seconds + 1.0
        )
