"""How the placeholder mover empties nodes that only placeholders use, so that an autoscaler takes
them.

A node of these worlds has room for ten users or placeholders.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from roost.controllers.contract.snapshot import Moment
from roost.controllers.placeholder_mover.node_fitness import NodeHistory, NodeJudge
from roost.controllers.placeholder_mover.unneeded_nodes import find_unneeded
from roost.controllers.placeholder_mover.view import MoverView
from tests.mover_world import MoverWorld, settled_world


def evening_world(placeholders: int = 4) -> MoverWorld:
    """`old` was full of users when `new` came, and all placeholders went there."""
    world = MoverWorld(placeholders)
    world.add_node("old", in_use=False)
    for index in range(10):
        world.add_user(f"user-{index}", node="old")
    world.run(60)
    world.add_node("new", in_use=False)
    world.fill_placeholders()
    world.run(400)
    assert world.marked() == ["new"]
    assert world.count_placeholders("new") == placeholders
    return world


def leave(world: MoverWorld, users: range) -> None:
    for index in users:
        world.remove_pod(f"jhub/user-{index}")


def unneeded(world: MoverWorld, before: frozenset[str] = frozenset()) -> list[str]:
    """Names of the nodes that a plan would find now."""
    settings = world.mover_settings()
    now = Moment(world.now, world.now)
    view = MoverView(world.snapshot(), settings, now)
    judge = NodeJudge(view, NodeHistory())
    found = find_unneeded(view, judge, settings.sets[0], before)
    return sorted(name for name, node in world.nodes.items() if node.uid in found)


def uids(world: MoverWorld, *names: str) -> frozenset[str]:
    return frozenset(world.nodes[name].uid for name in names)


def test_placeholders_leave_a_node_that_only_they_use_once_others_have_room_to_spare() -> None:
    world = evening_world()
    # Room for five is less than once and a half of four.
    leave(world, range(5))
    world.run(600)
    assert not world.evictions
    leave(world, range(5, 6))
    world.run(120)
    assert [eviction.source for eviction in world.evictions] == ["new"] * 4
    assert world.count_placeholders("old") == 4
    assert world.count_placeholders("new") == 0
    assert world.marked() == ["old"]
    assert world.touched_users == 0
    assert any("do without its nodes that only placeholders use" in said for said in world.said)


def test_an_emptied_node_stays_empty_until_the_others_lack_room() -> None:
    world = evening_world()
    leave(world, range(6))
    world.run(300)
    evictions = len(world.evictions)
    # They fill what is free on `old`: its four placeholders still fit there.
    for index in range(2):
        world.add_user(f"late-{index}", node="old")
    world.run(1200)
    assert len(world.evictions) == evictions
    assert world.marked() == ["old"]
    # The next user goes to `new`, which is in use from then on.
    world.add_user("last")
    world.run(1200)
    assert world.marked() == ["new"]
    assert world.count_placeholders("new") == 4


@pytest.mark.parametrize("owner", ["user", "stranger"])
def test_a_node_that_anybody_else_uses_keeps_its_placeholders(owner: str) -> None:
    world = evening_world()
    if owner == "user":
        world.add_user("there", node="new")
    else:
        world._add_strangers_pod("new")
    leave(world, range(9))
    world.run(600)
    assert world.marked() == ["new"]
    assert unneeded(world) == []


def test_pods_that_run_on_each_node_are_no_use_of_it() -> None:
    world = evening_world()
    leave(world, range(9))
    world._add_strangers_pod("new")
    (stranger,) = [pod for pod in world.pods_on("new") if pod.namespace == "kube-system"]
    for kind, expected in (("DaemonSet", ["new"]), ("Node", ["new"]), ("ReplicaSet", [])):
        assert stranger.owner is not None
        owner = stranger.owner._replace(kind=kind)
        world.pods[stranger.key] = replace(stranger, owner=owner)
        assert unneeded(world) == expected


def test_a_node_is_needed_again_only_when_the_others_lack_room_for_all() -> None:
    world = evening_world()
    leave(world, range(4))
    assert unneeded(world) == []
    assert unneeded(world, before=uids(world, "new")) == ["new"]
    world.add_user("back", node="old")
    assert unneeded(world, before=uids(world, "new")) == []


def test_more_placeholders_to_come_count_before_they_are_created() -> None:
    world = evening_world()
    leave(world, range(8))
    assert unneeded(world) == ["new"]
    # A class is about to begin.
    world.placeholders = 12
    assert unneeded(world) == []


def test_of_several_nodes_those_go_that_the_rest_can_replace_together() -> None:
    world = evening_world()
    leave(world, range(10))
    world.add_node("newer", in_use=False)
    world.run(60)
    # `old` has nobody left either: one of the three suffices.
    assert unneeded(world) == ["new", "newer"]
    world.placeholders = 8
    assert unneeded(world) == ["newer"]


def test_a_node_that_is_not_fit_has_no_room_for_others_placeholders() -> None:
    world = evening_world()
    leave(world, range(10))
    assert unneeded(world) == ["new"]
    world.change_node("old", cordoned=True)
    assert unneeded(world) == []


def test_a_set_without_placeholders_marks_the_newest_node() -> None:
    world = settled_world(placeholders=0)
    world.add_node("new", in_use=False)
    assert world.marked_after(310) == ["new"]
    assert unneeded(world) == []


def test_where_the_marked_node_fills_another_with_room_gets_the_mark() -> None:
    world = evening_world(placeholders=4)
    world.add_node("middle", in_use=False)
    for index in range(8):
        world.add_user(f"middle-{index}", node="middle")
    world.run(60)
    leave(world, range(6))
    world.run(600)
    assert world.count_placeholders("new") == 0
    # The newest of those with room first.
    assert world.count_placeholders("middle") == 2
    assert world.count_placeholders("old") == 2
    assert len(world.evictions) == 4
