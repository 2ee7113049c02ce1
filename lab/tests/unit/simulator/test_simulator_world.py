"""What the engine does with launches, in worlds so small that everything can be counted by hand."""

import json
from dataclasses import replace
from typing import Any

import pytest

from lab.tests.small_worlds import (
    BEGIN,
    MANAGED,
    PULL_SECONDS,
    START_SECONDS,
    USER_BYTES,
    WatchedWorld,
    attempt,
    in_order,
    play,
    policy,
    small,
    with_placeholders,
    without_pullers,
)
from roost_lab.simulator.engine.pods import BUILD, PLACEHOLDER, USER, image_reference
from roost_lab.simulator.engine.results import (
    ELSEWHERE,
    NODE_WAIT,
    NOWHERE,
    ONLY_FULL,
    PARTS,
    PULL,
    PULL_WAIT,
    QUEUE,
    START,
    TOTAL,
    RunResult,
)
from roost_lab.simulator.setup.assumptions import Assumptions, Autoscaler
from roost_lab.simulator.setup.policy import Policy, Priority

HUGE_BYTES = 30_000_000_000
PRIORITIES = {"user": 100, "placeholder": 10, "puller": 50}


def a_morning(number: int = 400, images: int = 12) -> list[Any]:
    """Launches of a few images, at first few and then many."""
    return [
        attempt(
            index,
            7200 * (index / number) ** 0.7,
            f"image-{index * index % images}",
            image_bytes=None,
            session_seconds=None,
        )
        for index in range(number)
    ]


def test_a_server_that_ended_gives_its_place_in_the_quota_back() -> None:
    said = in_order((0, "a"), (100, "a"), (500, "a"), stays=200)
    result, _ = play(said, policy("z2jh"), small(quota_per_repository=1))
    assert (result.admitted, result.refused_by_repository) == (2, 1)


def test_the_total_quota_counts_all_repositories_and_is_asked_after_the_repositorys() -> None:
    said = in_order((0, "a"), (1, "b"), (2, "b"), (3, "c"))
    result, _ = play(said, policy("z2jh"), small(quota_total=2, quota_per_repository=1))
    assert (result.admitted, result.refused_by_total, result.refused_by_repository) == (2, 1, 1)


def test_who_comes_while_too_many_servers_start_comes_again_after_half_a_minute_to_a_minute() -> None:
    result, world = play(in_order((0, "a"), (0, "b")), without_pullers("z2jh"), small(concurrent_spawn_limit=1))
    assert (result.attempts, result.admitted, result.started) == (2, 2, 2)
    waits = sorted(world.hub.totals.values())
    assert 30 <= waits[1] - START_SECONDS <= 60 + PULL_SECONDS
    assert 30 <= result.waits[QUEUE].total <= 60
    assert waits[0] < 30


def test_the_waits_of_a_cold_start_add_up_to_the_moment_its_server_is_up() -> None:
    result, _ = play(in_order((0, "a")), without_pullers("z2jh"), small())
    waits = {part: result.waits[part].total for part in (*PARTS, TOTAL)}
    assert waits[PULL] == pytest.approx(PULL_SECONDS, rel=1e-6)
    assert waits[START] == pytest.approx(START_SECONDS)
    assert waits[QUEUE] == waits[NODE_WAIT] == waits[PULL_WAIT] == 0
    assert waits[TOTAL] == pytest.approx(sum(waits[part] for part in PARTS))
    assert (result.cold, result.started) == (1, 1)


def test_the_second_image_of_a_node_waits_for_the_first_pull() -> None:
    result, _ = play(in_order((0, "a"), (4, "b")), without_pullers("z2jh"), small(nodes=1))
    # Asked for a bind later; begun when the first is there.
    assert result.waits[PULL_WAIT].total == pytest.approx(PULL_SECONDS - 4, rel=1e-6)
    assert result.waits[PULL].total == pytest.approx(2 * PULL_SECONDS, rel=1e-6)


def test_whoever_fits_nowhere_waits_until_somebody_leaves() -> None:
    said = [attempt(0, 0, stays=100), attempt(1, 50)]
    result, world = play(said, without_pullers("z2jh"), small(room=1, nodes=1))
    leaves = PULL_SECONDS + START_SECONDS + 100
    assert result.waits[NODE_WAIT].total == pytest.approx(leaves - 50, abs=10)
    assert result.waits[NODE_WAIT].total >= leaves - 50 - 1e-3
    assert (result.waits[QUEUE].total, result.waited_for_node) == (0, 1)
    assert world.users_nodes() == ["node-1", "node-1"]


def test_whoever_waits_for_a_node_waits_a_turn_of_the_autoscaler_and_the_boot() -> None:
    world = small(room=1, nodes=1, max_nodes=2, autoscaler=Autoscaler.CLUSTER_AUTOSCALER, start_timeout_seconds=1000.0)
    result, seen = play(in_order((0, "a"), (30, "a")), policy("z2jh"), world)
    (boot,) = seen.boots
    assert boot <= result.waits[NODE_WAIT].total <= boot + world.autoscaler_loop_seconds + 1
    assert (result.waited_for_node, result.waits[QUEUE].total, result.peak_nodes) == (1, 0, 2)


def test_a_launch_whose_images_pull_outlasts_the_spawner_is_tried_again_and_finds_the_image_coming() -> None:
    result, world = play([attempt(0, 0, image_bytes=HUGE_BYTES)], without_pullers("z2jh"), small())
    assert (result.started, result.timeouts, result.given_up) == (1, 1, 0)
    # The same pull serves both tries: it's one start, at 300 s later than the first.
    pulled = HUGE_BYTES / 2.8 / 25e6 + 1
    assert result.waits[TOTAL].total == pytest.approx(pulled + START_SECONDS, abs=2.1)
    assert [round(one.moment) for one in world.bindings] == [0, 300]
    assert result.over[300] == 1


def test_a_launch_whose_every_try_ends_in_a_timeout_is_given_up() -> None:
    result, world = play([attempt(0, 0, image_bytes=HUGE_BYTES)], policy("z2jh"), small(pulls="slow"))
    assert (result.started, result.timeouts, result.given_up) == (0, 2, 1)
    assert result.over == {30: 1, 60: 1, 300: 1}
    assert world.still_starting == 0


def test_the_last_launches_are_seen_through_however_patient_the_spawner_is() -> None:
    said = [attempt(0, 0, stays=15_000), attempt(1, 1, stays=15_000), attempt(2, 2, stays=15_000)]
    world = small(room=1, nodes=1, start_timeout_seconds=20_000.0)
    result, _ = play(said, without_pullers("z2jh"), world)
    assert (result.started, result.given_up, result.still_waiting) == (3, 0, 0)
    once, _ = play(said, without_pullers("z2jh"), replace(world, retries=0))
    assert (once.started, once.given_up, once.still_waiting) == (2, 1, 0)


def test_launches_that_wait_when_the_replay_ends_are_told() -> None:
    endless = small(room=1, nodes=1, start_timeout_seconds=1e7)
    result, world = play([attempt(0, 0, stays=1e9), attempt(1, 1)], policy("z2jh"), endless)
    assert (result.admitted, result.started, result.given_up, result.still_waiting) == (2, 1, 0, 1)
    assert world.now - BEGIN < 8 * 86_400


def test_an_image_that_no_node_has_is_cold_for_it_is_nowhere() -> None:
    result, _ = play(in_order((0, "a"), (60, "b")), policy("z2jh"), small())
    assert result.cold_why == {NOWHERE: 2}


def test_an_image_on_full_nodes_only_is_cold_for_there_is_no_room() -> None:
    result, world = play(in_order((0, "a"), (60, "a"), (120, "a")), policy("z2jh"), small(room=2))
    assert len(set(world.users_nodes()[:2])) == 1
    assert result.cold_why == {NOWHERE: 1, ONLY_FULL: 1}


def test_spreading_makes_a_start_cold_although_a_node_with_room_has_the_image() -> None:
    # Small enough that ImageLocality, of weight 1, doesn't outweigh the room on the empty node.
    said = [attempt(number, 60 * number, image_bytes=300_000_000) for number in range(2)]
    result, world = play(said, policy("kube-default"), small())
    assert set(world.users_nodes()) == {"node-1", "node-2"}
    assert result.cold_why == {NOWHERE: 1, ELSEWHERE: 1}


def test_a_user_preempts_a_placeholder_which_is_made_anew_and_brings_a_node() -> None:
    world = small(room=2, nodes=1, max_nodes=3, autoscaler=Autoscaler.CLUSTER_AUTOSCALER)
    placeholders = with_placeholders("z2jh-placeholders-packed", 1)
    # Somebody comes late, so that the world is seen until then.
    result, seen = play(in_order((0, "a"), (60, "a"), (600, "a")), placeholders, world)
    second = next(one for one in seen.bindings if one.number == 1)
    assert second.node == "node-1"
    # As long as the placeholder took to go, and kube-scheduler to try again.
    assert 61 <= second.moment <= 61 + 1
    assert seen.preempted[0] == "hub-roost-placeholder-default-0"
    on_new = [one for one in seen.bindings if one.kind == PLACEHOLDER and one.node == "node-2"]
    assert on_new
    assert seen.boots[0] <= on_new[0].moment - 61 <= seen.boots[0] + 11
    # The third is at once where the placeholder made room, and that's a node that nobody waited for.
    third = next(one for one in seen.bindings if one.number == 2)
    assert (third.node, result.waited_for_node) == ("node-2", 0)
    assert result.placeholder_preemptions == len(seen.preempted) == 1
    assert result.placeholder_pending_seconds == pytest.approx(on_new[0].moment - 61, abs=1.1)


def test_a_user_never_preempts_a_user() -> None:
    said = in_order((0, "a"), (1, "a"), (2, "a"), (3, "a"))
    result, world = play(said, with_placeholders("z2jh-placeholders-packed", 1), small(room=2, nodes=1))
    assert len(world.preempted) == result.placeholder_preemptions == 1
    assert result.given_up == 2


def test_a_user_has_the_priority_of_the_class_of_users_whatever_that_is() -> None:
    for values in (PRIORITIES, {**PRIORITIES, "placeholder": 0}, {**PRIORITIES, "globalDefault": True}):
        placeholders = with_placeholders("z2jh-placeholders-packed", 2, priorityClasses=values)
        said = in_order((0, "a"), (10, "a"), (20, "a"))
        result, seen = play(said, placeholders, small(room=3, nodes=1))
        assert (result.started, result.given_up) == (3, 0)
        assert len(seen.preempted) == result.placeholder_preemptions == 2
        assert result.users_preempted == 0


def test_a_placeholder_pre_empts_nobody_even_if_it_comes_first_in_the_queue() -> None:
    placeholders = with_placeholders("z2jh-placeholders-packed", 0, priorityClasses={"user": 0, "placeholder": 10})
    result, seen = play_with_a_placeholder_at(100, placeholders, in_order((0, "a"), (0, "a"), stays=500))
    assert (result.started, seen.preempted, result.users_preempted) == (3, [], 0)


def test_priorities_are_those_of_the_values_where_somebody_else_creates_the_classes() -> None:
    placeholders = with_placeholders("z2jh-placeholders-packed", 1, priorityClasses=PRIORITIES, clusterResources=False)
    result, seen = play(in_order((0, "a"), (10, "a")), placeholders, small(room=2, nodes=1))
    assert (result.started, len(seen.preempted)) == (2, 1)


def placeholders_above_users() -> Policy:
    """No values give this: a placeholder that pre-empts users."""
    placeholders = with_placeholders("z2jh-placeholders-packed", 0)
    name = "hub.binder.roost-placeholder"
    return replace(placeholders, priorities={**placeholders.priorities, name: Priority(10, preempts=True)})


def play_with_a_placeholder_at(after: float, placeholders: Policy, said: list[Any]) -> tuple[RunResult, WatchedWorld]:
    """Two users fill the only node; then a placeholder is wanted."""

    def make(policy: Policy, assumptions: Assumptions, seed: int) -> WatchedWorld:
        world = WatchedWorld(policy, assumptions, seed)

        def want(name: str) -> None:
            world.releases[0].sets.scale(name, 1)

        world.at(BEGIN + after, want, next(iter(world.releases[0].sets.replicas)))
        return world

    # Somebody who comes late lets the world be seen until then.
    return play([*said, attempt(9, 2000, stays=1)], placeholders, small(room=2, nodes=1), make=make)


def test_the_session_of_a_user_who_is_pre_empted_ends_once() -> None:
    result, seen = play_with_a_placeholder_at(100, placeholders_above_users(), in_order((0, "a"), (0, "a"), stays=500))
    assert len(seen.preempted) == result.users_preempted == 1
    assert (result.started, result.given_up, result.timeouts) == (3, 0, 0)


def test_a_try_that_ends_by_pre_emption_is_made_again() -> None:
    result, seen = play_with_a_placeholder_at(3, placeholders_above_users(), in_order((0, "a"), (0, "a"), stays=500))
    assert len(seen.preempted) == result.users_preempted == 1
    # Its second try waits for the other to go, longer than the spawner does.
    assert (result.started, result.given_up, result.timeouts) == (2, 1, 1)
    assert result.waits[TOTAL].count == result.admitted == 3


def test_two_policies_meet_the_same_sessions_and_the_same_boots() -> None:
    world = Assumptions(node_memory_bytes=20 * USER_BYTES, start_timeout_seconds=1000.0)
    (_, packed), (_, spread) = (play(a_morning(), policy(name), world) for name in ("z2jh", "kube-default"))
    assert packed.users_nodes() != spread.users_nodes()
    both = packed.hub.sessions.keys() & spread.hub.sessions.keys()
    assert len(both) > 300
    assert all(packed.hub.sessions[number] == spread.hub.sessions[number] for number in both)
    number = min(len(packed.boots), len(spread.boots))
    assert number > 3
    assert packed.boots[:number] == spread.boots[:number]


@pytest.mark.slow
def test_the_assumed_sessions_have_the_means_they_are_said_to_have() -> None:
    for sessions, mean in (("short", 22), ("mid", 36), ("long", 64)):
        _, world = play(
            [attempt(number, number, session_seconds=None) for number in range(3000)],
            policy("z2jh"),
            small(room=100_000, nodes=1, sessions=sessions, node_pods=100_000, node_cpu_millicores=10**8),
        )
        assert sum(world.hub.sessions.values()) / len(world.hub.sessions) / 60 == pytest.approx(mean, rel=0.06)


def test_popular_images_are_pulled_to_nodes_ahead_of_their_users() -> None:
    popular = {"enabled": True, "perNode": 2}
    pulls = policy("popular", json.dumps({"popularImages": popular, "placeholders": []}))
    # Six fit on a node; all want the same image, and the seventh is the first of the second node.
    # Before them the hub's own images are pulled.
    said = [attempt(0, 0, "somebody", stays=1), *(attempt(number, 300 + 100 * number) for number in range(1, 8))]
    world = small(room=6, nodes=2, status_delay_seconds=5.0)
    ahead, seen = play(said, pulls, world)
    behind, _ = play(said, without_pullers("z2jh"), world)
    assert (behind.cold, behind.background_pulls, len(set(seen.users_nodes())), ahead.cold) == (3, 0, 2, 2)
    # Beside the hub's own images that the pullers bring to both nodes.
    pulled = {node.name for node in seen.nodes.values() if node.images.has(image_reference("a"))}
    assert pulled == {"node-1", "node-2"}
    assert ahead.background_bytes > 0
    assert ahead.registry_bytes == ahead.cold_bytes + ahead.background_bytes


@pytest.mark.parametrize("name", ["gate-label", "gate-taint", "roost"])
def test_a_gate_lets_no_user_to_a_node_before_its_image_is_there(name: str) -> None:
    world = small(room=4, nodes=1, max_nodes=5, autoscaler=Autoscaler.CLUSTER_AUTOSCALER, start_timeout_seconds=2000.0)
    # While no node has an image, nobody is held back for it: so somebody else comes first.
    managed = [attempt(number, 300 + 100 * number, MANAGED, stays=5000) for number in range(1, 13)]
    said = [attempt(0, 0, "somebody", stays=1), *managed]
    # Nodes are opened to users who wait for nothing else; here they may wait for long.
    result, seen = play(said, with_placeholders(name, 2, imageGate={"openAfterSeconds": 600}), world)
    users = [one for one in seen.bindings if one.kind == USER and one.number != 0]
    assert len({one.node for one in users}) >= 2
    assert all(one.had_image for one in users)
    assert (result.cold, result.started) == (1, 13)
    # Without a gate, new nodes have users before they have images.
    bare, ungated = play(said, with_placeholders("z2jh-placeholders-packed", 2), world)
    assert not all(one.had_image for one in ungated.bindings if one.kind == USER and one.number != 0)
    assert bare.cold > 1


@pytest.mark.parametrize("autoscaler", [Autoscaler.CLUSTER_AUTOSCALER, Autoscaler.KARPENTER])
# A taint keeps the first launch off the node, too, until the gate opens it.
@pytest.mark.parametrize(("name", "held_back"), [("gate-label", 1), ("gate-taint", 2)])
def test_users_whom_a_gate_holds_back_bring_nodes_without_placeholders_too(
    name: str, held_back: int, autoscaler: Autoscaler
) -> None:
    world = small(room=2, nodes=1, max_nodes=4, autoscaler=autoscaler, start_timeout_seconds=3000.0)
    managed = [attempt(number, 300 + number, MANAGED, stays=9000) for number in range(1, 4)]
    result, _ = play([attempt(0, 0, "somebody", stays=1), *managed], with_placeholders(name, 0), world)
    assert (result.nodes_created, result.started, result.waited_for_node) == (2, 4, held_back)


def test_an_image_is_built_once_and_its_build_delays_nobody() -> None:
    # Images of a push: nobody can have built them before the trace.
    said = in_order((0, "a+1"), (10, "a+1"), (20, "b+1"), (5000, "a+1"))
    world = small(with_builds=True)
    result, seen = play(said, policy("kube-default"), world)
    assert (result.builds, sum(one.kind == BUILD for one in seen.bindings)) == (2, 2)
    without, _ = play(said, policy("kube-default"), replace(world, with_builds=False))
    assert without.builds == 0
    assert result.waits[TOTAL].total == pytest.approx(without.waits[TOTAL].total, rel=0.5)


@pytest.mark.parametrize(("name", "cold_why"), [("warm-alone", {}), ("z2jh", {ELSEWHERE: 1})])
def test_a_warm_set_sends_a_user_to_the_image_where_packing_pulls_it_again(name: str, cold_why: dict[str, int]) -> None:
    # Four fill the first node, the second gets e and another a; then d leaves room on the fuller first.
    said = [
        *(attempt(number, 100 * number, image) for number, image in enumerate("abc")),
        attempt(3, 300, "d", stays=600),
        attempt(4, 400, "e"),
        attempt(5, 500, "a"),
        attempt(6, 1200, "e"),
    ]
    # The set is one place too small, so that the first user without a holder goes beyond it.
    warm = {"podClasses": {"user": {"warm": {"spare": -1}}}} if name == "warm-alone" else {}
    result, _ = play(said, policy(name, json.dumps({"prePuller": {"enabled": False}, **warm})), small(room=4, nodes=2))
    assert result.cold_why == {NOWHERE: 5, ONLY_FULL: 1, **cold_why}
