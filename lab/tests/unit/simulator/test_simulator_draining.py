"""Nodes that are as old as assumed are drained: nobody comes to them any more, and they go when
they can.
"""

from dataclasses import replace
from typing import Any

import pytest

from lab.tests.small_worlds import (
    BEGIN,
    WatchedWorld,
    attempt,
    comparable,
    in_order,
    play,
    policy,
    small,
    with_placeholders,
)
from lab.tests.small_worlds import without_pullers as bare
from roost_core.objects.node import Node
from roost_lab.simulator.engine.entities import SimNode
from roost_lab.simulator.engine.pods import PLACEHOLDER
from roost_lab.simulator.engine.results import ONLY_FULL
from roost_lab.simulator.setup.assumptions import Assumptions, Autoscaler

pytestmark = pytest.mark.slow

HOUR = 3600.0


def old_at(hours: float, **more: Any) -> Assumptions:
    """Nodes that are drained so many hours after they joined."""
    return small(node_expire_hours=hours, **more)


class Joining(WatchedWorld):
    """Notes when nodes join, and how many there are at most."""

    most_nodes = 0

    def join(self) -> SimNode:
        node = super().join()
        self.joined_at = {**getattr(self, "joined_at", {}), node.name: self.now - BEGIN}
        self.most_nodes = max(self.most_nodes, len(self.nodes))
        return node


def test_no_node_is_drained_unless_it_is_asked_for() -> None:
    said = in_order(*((HOUR * hour, "a") for hour in range(100)))
    never, _ = play(said, bare("z2jh"), Assumptions(autoscaler=Autoscaler.NONE, min_nodes=2))
    late, _ = play(
        said,
        bare("z2jh"),
        Assumptions(autoscaler=Autoscaler.NONE, min_nodes=2, node_expire_hours=720),
    )
    assert (comparable(never), never.nodes_created) == (comparable(late), 2)


@pytest.mark.parametrize("autoscaler", list(Autoscaler))
def test_an_old_node_takes_no_more_users_and_goes_when_its_last_one_has_left(
    autoscaler: Autoscaler,
) -> None:
    # The first stays for three hours on the only node; the second comes when the node is drained
    # already.
    said = [attempt(0, 0, stays=3 * HOUR), attempt(1, 1.5 * HOUR, stays=HOUR), attempt(2, 4 * HOUR)]
    world = old_at(1.0, nodes=1, max_nodes=3, autoscaler=autoscaler)
    result, seen = play(said, bare("z2jh"), world)
    assert (result.started, seen.node_of(0), seen.node_of(1)) == (3, "node-1", "node-2")
    gone = {name: moment for moment, name in seen.removed}
    assert gone["node-1"] == pytest.approx(3 * HOUR, abs=60)
    # One replaces the other, and the third comes before the second goes.
    assert gone["node-2"] == pytest.approx(2.5 * HOUR, abs=HOUR / 2)
    assert seen.node_of(2) not in gone or gone[seen.node_of(2)] > 4 * HOUR


def test_the_least_number_of_nodes_is_kept_and_the_greatest_is_never_passed() -> None:
    said = [attempt(number, 600.0 * number, image="a", stays=1800.0) for number in range(60)]

    result, seen = play(said, bare("z2jh"), old_at(2.0, nodes=2, max_nodes=3), make=Joining)
    assert result.nodes_created > 6
    assert isinstance(seen, Joining)
    assert seen.most_nodes == 3
    assert len(seen.nodes) >= 2
    # Where the greatest number allows no more, the next one is asked for when the old one has gone.
    full, seen = play(said, bare("z2jh"), old_at(2.0, nodes=2, max_nodes=2), make=Joining)
    assert isinstance(seen, Joining)
    assert seen.most_nodes == 2
    assert full.nodes_created > 6


def test_placeholders_of_an_old_node_are_made_anew_elsewhere() -> None:
    said = [attempt(0, 0, stays=4 * HOUR), attempt(1, 3 * HOUR, stays=60)]
    world = old_at(1.0, nodes=1, max_nodes=2, autoscaler=Autoscaler.CLUSTER_AUTOSCALER)
    _, seen = play(said, with_placeholders("z2jh-placeholders-packed", 2), world)
    came = [
        (binding.node, binding.moment) for binding in seen.bindings if binding.kind == PLACEHOLDER
    ]
    assert [node for node, _ in came[:4]] == ["node-1", "node-1", "node-2", "node-2"]
    assert came[2][1] >= HOUR + min(seen.boots)


def test_a_user_for_whom_room_was_being_made_on_an_old_node_finds_it_elsewhere() -> None:
    # It pre-empts the placeholder half a second before the node is cordoned, which would have gone
    # half a second later.
    said = [attempt(0, 0, image="b", stays=60.0), attempt(1, HOUR - 0.5), attempt(2, 2 * HOUR)]
    world = old_at(1.0, room=1, nodes=1, max_nodes=3, autoscaler=Autoscaler.CLUSTER_AUTOSCALER)
    patient = replace(world, start_timeout_seconds=2000.0)
    result, seen = play(
        said, with_placeholders("z2jh-placeholders-packed", 1), patient, make=Nominating
    )
    assert isinstance(seen, Nominating)
    assert seen.nominated == [["node-1"]]
    assert result.started == 3
    assert seen.node_of(1) != "node-1"
    assert (HOUR, "node-1") in seen.removed


@pytest.mark.parametrize(
    "name", ["z2jh", "roost", "warm-alone", "gate-taint", "popular", "kube-default"]
)
def test_whatever_the_policy_no_pod_comes_to_an_old_node(name: str) -> None:
    said = [
        attempt(number, 90.0 * number, image=f"image-{number % 7}", session_seconds=None)
        for number in range(300)
    ]
    world = old_at(1.0, room=10, nodes=1, max_nodes=8, autoscaler=Autoscaler.CLUSTER_AUTOSCALER)
    result, seen = play(said, policy(name), world, make=Joining)
    assert isinstance(seen, Joining)
    assert result.nodes_created > 8
    assert [
        binding
        for binding in seen.bindings
        if binding.moment >= seen.joined_at[binding.node] + HOUR
    ] == []
    assert result.started + result.given_up + seen.still_starting == 300


class Nominating(WatchedWorld):
    """Notes for which nodes pods are nominated when one is cordoned."""

    def change_node(self, node: SimNode, state: Node) -> None:
        if state.unschedulable and self.nominated == []:
            self.nominated.append(
                [pod.state.nominated_node for pod in self.scheduling.unschedulable.values()]
            )
        super().change_node(node, state)

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.nominated: list[list[str]] = []


def test_an_image_on_an_old_node_is_out_of_reach() -> None:
    # The old node holds it and has room, but no other choice of node would have helped.
    said = [attempt(0, 0, stays=3 * HOUR), attempt(1, 1.5 * HOUR)]
    result, _ = play(said, bare("z2jh"), old_at(1.0, nodes=1, max_nodes=2))
    assert (result.cold, result.cold_why[ONLY_FULL]) == (2, 1)
