"""What the engine does with launches, in worlds so small that everything can be counted by hand."""

import json
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from lab.tests.small_worlds import (
    BEGIN,
    MANAGED,
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
from lab.tests.told import Story, stories
from roost_lab.simulator.engine.pods import BUILD, PLACEHOLDER, USER, image_reference
from roost_lab.simulator.engine.results import (
    ELSEWHERE,
    NODE_WAIT,
    NOWHERE,
    ONLY_FULL,
    PARTS,
    QUEUE,
    TOTAL,
    RunResult,
)
from roost_lab.simulator.setup.assumptions import Assumptions, Autoscaler
from roost_lab.simulator.setup.policy import Policy, Priority

PRIORITIES = {"user": 100, "placeholder": 10, "puller": 50}


def a_morning() -> list[Any]:
    """Launches of a few images, at first few and then many."""
    launches = (
        (7200 * (index / 400) ** 0.7, f"image-{index * index % 12}") for index in range(400)
    )
    unknown: dict[str, Any] = {"image_bytes": None, "session_seconds": None}
    return [
        attempt(index, after, image, **unknown) for index, (after, image) in enumerate(launches)
    ]


COLD = {"nowhere": NOWHERE, "full": ONLY_FULL, "elsewhere": ELSEWHERE}


def told_policy(story: Story) -> Policy:
    """That of a story's title, with the values of its lines."""
    values = {
        key: value
        for thing in story.things
        if thing.kind == "values"
        for key, value in thing.named.items()
    }
    placeholders = [thing.plain[0] for thing in story.things if thing.kind == "placeholders"]
    if any(thing.kind == "bare" for thing in story.things):
        return without_pullers(story.about)
    if placeholders:
        return with_placeholders(story.about, *placeholders, **values)
    return policy(story.about, json.dumps(values))


@stories("replays", "bare values placeholders world hubs launch result seconds cold nodes bound")
def test_a_replay_has_the_figures_that_are_counted_by_hand(story: Story) -> None:
    world = {
        key: value
        for thing in story.things
        if thing.kind == "world"
        for key, value in thing.named.items()
    }
    if "autoscaler" in world:
        world["autoscaler"] = Autoscaler(world["autoscaler"])
    launches = [thing for thing in story.things if thing.kind == "launch"]
    said = [
        attempt(
            number,
            one.plain[0],
            MANAGED if one.plain[1] == "MANAGED" else one.plain[1],
            **one.named,
        )
        for number, one in enumerate(launches)
    ]
    hubs = next((thing.plain for thing in story.things if thing.kind == "hubs"), ())
    result, seen = play(
        said, told_policy(story), small(**world), make=partial(WatchedWorld, hubs=hubs)
    )
    for kind, plain, named in story.things:
        if kind == "result":
            assert {name: getattr(result, name) for name in named} == named
        elif kind == "seconds":
            assert {part: result.waits[part].total for part in named} == pytest.approx(
                named, abs=2e-3
            )
            assert sum(result.waits[part].total for part in PARTS) == pytest.approx(
                result.waits[TOTAL].total
            )
        elif kind == "cold":
            assert result.cold_why == {COLD[why]: number for why, number in named.items()}
        elif kind == "nodes":
            assert seen.users_nodes() == list(plain)
        elif kind == "bound":
            assert [round(binding.moment) for binding in seen.bindings] == list(plain)
    assert len(seen.preempted) == result.placeholder_preemptions + result.users_preempted
    assert (seen.still_starting == 0) == (result.still_waiting == 0)
    # Nobody is waited for longer than a week.
    assert seen.now - BEGIN < 8 * 86_400 or not result.still_waiting


def test_whoever_waits_for_a_node_waits_a_turn_of_the_autoscaler_and_the_boot() -> None:
    world = small(
        room=1,
        nodes=1,
        max_nodes=2,
        autoscaler=Autoscaler.CLUSTER_AUTOSCALER,
        start_timeout_seconds=1000.0,
    )
    result, seen = play(in_order((0, "a"), (30, "a")), policy("z2jh"), world)
    (boot,) = seen.boots
    assert boot <= result.waits[NODE_WAIT].total <= boot + world.autoscaler_loop_seconds + 1
    assert (result.waited_for_node, result.waits[QUEUE].total, result.peak_nodes) == (1, 0, 2)


def test_a_user_preempts_a_placeholder_which_is_made_anew_and_brings_a_node() -> None:
    world = small(room=2, nodes=1, max_nodes=3, autoscaler=Autoscaler.CLUSTER_AUTOSCALER)
    placeholders = with_placeholders("z2jh-placeholders-packed", 1)
    # Somebody comes late, so that the world is seen until then.
    result, seen = play(in_order((0, "a"), (60, "a"), (600, "a")), placeholders, world)
    second = next(binding for binding in seen.bindings if binding.number == 1)
    assert second.node == "node-1"
    # As long as the placeholder took to go, and kube-scheduler to try again.
    assert 61 <= second.moment <= 61 + 1
    assert seen.preempted[0] == "hub-roost-placeholder-default-0"
    on_new = [
        binding
        for binding in seen.bindings
        if binding.kind == PLACEHOLDER and binding.node == "node-2"
    ]
    assert on_new
    assert seen.boots[0] <= on_new[0].moment - 61 <= seen.boots[0] + 11
    # The third is at once where the placeholder made room, and that's a node that nobody waited
    # for.
    third = next(binding for binding in seen.bindings if binding.number == 2)
    assert (third.node, result.waited_for_node) == ("node-2", 0)
    assert result.placeholder_preemptions == len(seen.preempted) == 1
    assert result.placeholder_pending_seconds == pytest.approx(on_new[0].moment - 61, abs=1.1)


def test_a_placeholder_pre_empts_nobody_even_if_it_comes_first_in_the_queue() -> None:
    placeholders = with_placeholders(
        "z2jh-placeholders-packed", 0, priorityClasses={"user": 0, "placeholder": 10}
    )
    result, seen = play_with_a_placeholder_at(
        100, placeholders, in_order((0, "a"), (0, "a"), stays=500)
    )
    assert (result.started, seen.preempted, result.users_preempted) == (3, [], 0)


def placeholders_above_users() -> Policy:
    """No values give this: a placeholder that pre-empts users."""
    placeholders = with_placeholders("z2jh-placeholders-packed", 0)
    name = "hub.binder.roost-placeholder"
    return replace(
        placeholders, priorities={**placeholders.priorities, name: Priority(10, preempts=True)}
    )


def play_with_a_placeholder_at(
    after: float, placeholders: Policy, said: list[Any]
) -> tuple[RunResult, WatchedWorld]:
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
    result, seen = play_with_a_placeholder_at(
        100, placeholders_above_users(), in_order((0, "a"), (0, "a"), stays=500)
    )
    assert len(seen.preempted) == result.users_preempted == 1
    assert (result.started, result.given_up, result.timeouts) == (3, 0, 0)


def test_a_try_that_ends_by_pre_emption_is_made_again() -> None:
    result, seen = play_with_a_placeholder_at(
        3, placeholders_above_users(), in_order((0, "a"), (0, "a"), stays=500)
    )
    assert len(seen.preempted) == result.users_preempted == 1
    # Its second try waits for the other to go, longer than the spawner does.
    assert (result.started, result.given_up, result.timeouts) == (2, 1, 1)
    assert result.waits[TOTAL].count == result.admitted == 3


def test_two_policies_meet_the_same_sessions_and_the_same_boots() -> None:
    world = Assumptions(node_memory_bytes=20 * USER_BYTES, start_timeout_seconds=1000.0)
    (_, packed), (_, spread) = (
        play(a_morning(), policy(name), world) for name in ("z2jh", "kube-default")
    )
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
            small(
                room=100_000,
                nodes=1,
                sessions=sessions,
                node_pods=100_000,
                node_cpu_millicores=10**8,
            ),
        )
        assert sum(world.hub.sessions.values()) / len(world.hub.sessions) / 60 == pytest.approx(
            mean, rel=0.06
        )


# Six fit on a node; all want the same image, and the seventh is the first of the second node.
# Before them the hub's own images are pulled.
SEVEN = (
    attempt(0, 0, "somebody", stays=1),
    *(attempt(number, 300 + 100 * number) for number in range(1, 8)),
)
TWO_NODES = small(room=6, nodes=2, status_delay_seconds=5.0)


def pulls_ahead() -> Policy:
    popular = {"enabled": True, "perNode": 2}
    return policy("popular", json.dumps({"popularImages": popular, "placeholders": []}))


def test_popular_images_are_pulled_to_nodes_ahead_of_their_users() -> None:
    ahead, seen = play(SEVEN, pulls_ahead(), TWO_NODES)
    behind, _ = play(SEVEN, without_pullers("z2jh"), TWO_NODES)
    assert (behind.cold, behind.background_pulls, len(set(seen.users_nodes())), ahead.cold) == (
        3,
        0,
        2,
        2,
    )
    # Beside the hub's own images that the pullers bring to both nodes.
    pulled = {node.name for node in seen.nodes.values() if node.images.has(image_reference("a"))}
    assert pulled == {"node-1", "node-2"}
    assert ahead.background_bytes > 0
    assert ahead.registry_bytes > ahead.background_bytes


@pytest.mark.parametrize(("period_seconds", "cold"), [(1, 2), (300, 3)])
def test_a_popular_image_counts_as_used_if_a_kubelet_looks_while_its_pull_is_there(
    period_seconds: int, cold: int
) -> None:
    # The pod that pulls is there for some seconds.
    world = replace(TWO_NODES, gc_period_seconds=period_seconds, gc_max_age_seconds=590)
    result, _ = play(SEVEN, pulls_ahead(), world)
    assert result.cold == cold


@pytest.mark.parametrize("name", ["gate-label", "gate-taint", "roost"])
def test_a_gate_lets_no_user_to_a_node_before_its_image_is_there(name: str) -> None:
    world = small(
        room=4,
        nodes=1,
        max_nodes=5,
        autoscaler=Autoscaler.CLUSTER_AUTOSCALER,
        start_timeout_seconds=2000.0,
    )
    # While no node has an image, nobody is held back for it: so somebody else comes first.
    managed = [attempt(number, 300 + 100 * number, MANAGED, stays=5000) for number in range(1, 13)]
    said = [attempt(0, 0, "somebody", stays=1), *managed]
    # Nodes are opened to users who wait for nothing else; here they may wait for long.
    result, seen = play(
        said, with_placeholders(name, 2, imageGate={"openAfterSeconds": 600}), world
    )
    users = [binding for binding in seen.bindings if binding.kind == USER and binding.number != 0]
    assert len({user.node for user in users}) >= 2
    assert all(user.had_image for user in users)
    assert (result.cold, result.started) == (1, 13)
    # Without a gate, new nodes have users before they have images.
    bare, ungated = play(said, with_placeholders("z2jh-placeholders-packed", 2), world)
    assert not all(
        binding.had_image
        for binding in ungated.bindings
        if binding.kind == USER and binding.number != 0
    )
    assert bare.cold > 1


def test_an_image_is_built_once_and_its_build_delays_nobody() -> None:
    # Images of a push: nobody can have built them before the trace.
    said = in_order((0, "a+1"), (10, "a+1"), (20, "b+1"), (5000, "a+1"))
    world = small(with_builds=True)
    result, seen = play(said, policy("kube-default"), world)
    assert (result.builds, sum(binding.kind == BUILD for binding in seen.bindings)) == (2, 2)
    without, _ = play(said, policy("kube-default"), replace(world, with_builds=False))
    assert without.builds == 0
    assert result.waits[TOTAL].total == pytest.approx(without.waits[TOTAL].total, rel=0.5)
