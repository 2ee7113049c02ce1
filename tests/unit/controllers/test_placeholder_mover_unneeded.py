"""How the placeholder mover empties nodes that only placeholders use, so that an autoscaler takes
them.

A node of these worlds has room for ten users or placeholders.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from roost.controllers.contract.snapshot import Moment
from roost.controllers.placeholder_mover.node_fitness import NodeHistory, NodeJudge
from roost.controllers.placeholder_mover.unneeded_nodes import (
    GIVE_UP_SECONDS,
    MOST_NODES,
    Unneeded,
    find_unneeded,
)
from roost.controllers.placeholder_mover.view import MoverView
from roost_core.objects.selectors import Taint
from roost_core.placement.labels import OWN_INSTANCE_LABEL
from tests.mover_world import MoverWorld, settled_world

CANDIDATE = Taint("DeletionCandidateOfClusterAutoscaler", "", "PreferNoSchedule")
FOREIGN = Taint("dedicated", "gpu", "NoSchedule")


def evening_world(placeholders: int = 6) -> MoverWorld:
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


def emptied_world() -> MoverWorld:
    """Nine users left `old`, and the placeholders of `new` are there."""
    world = evening_world()
    leave(world, range(9))
    world.run(300)
    assert world.count_placeholders("old") == 6
    assert world.count_placeholders("new") == 0
    return world


def add_others(world: MoverWorld, node: str, number: int) -> None:
    """Placeholders of another hub's release, which nobody moves."""
    own = next(pod for pod in world.pods.values() if pod.priority < 0)
    for _ in range(number):
        name = f"others-{sum(pod.namespace == 'biology' for pod in world.pods.values())}"
        labels = {**own.labels, OWN_INSTANCE_LABEL: "other"}
        pod = replace(own, namespace="biology", name=name, uid=f"uid-{name}", labels=labels)
        world._add_pod(replace(pod, node_name=node))


def unneeded(world: MoverWorld, *before: str) -> list[str]:
    """Names of the nodes that a plan would find now. before: those that the last plan found."""
    settings = world.mover_settings()
    now = Moment(world.now, world.now)
    view = MoverView(world.snapshot(), settings, now)
    judge = NodeJudge(view, NodeHistory())
    known = Unneeded({world.nodes[name].uid: now.steady for name in before})
    found = find_unneeded(view, judge, settings.sets[0], known)
    return sorted(name for name, node in world.nodes.items() if node.uid in found.nodes)


def test_placeholders_leave_a_node_that_only_they_use_once_others_have_room_to_spare() -> None:
    world = evening_world()
    # Room for eight is less than once and a half of six.
    leave(world, range(8))
    world.run(600)
    assert not world.evictions
    leave(world, range(8, 9))
    world.run(200)
    assert [eviction.source for eviction in world.evictions] == ["new"] * 6
    assert world.count_placeholders("old") == 6
    assert world.count_placeholders("new") == 0
    assert world.marked() == ["old"]
    assert world.touched_users == 0
    assert any("do without its nodes that only placeholders use" in said for said in world.said)


def test_an_emptied_node_stays_empty_until_a_user_comes_there() -> None:
    world = emptied_world()
    evictions = len(world.evictions)
    # They fill what is free on `old`: its six placeholders still fit there.
    for index in range(3):
        world.add_user(f"late-{index}", node="old")
    world.run(1200)
    assert len(world.evictions) == evictions
    assert world.marked() == ["old"]
    world.add_user("last")
    world.run(1200)
    assert world.count_users("new") == 1
    assert world.marked() == ["new"]
    assert world.count_placeholders("new") == 6


def test_a_build_on_an_emptied_node_brings_no_placeholder_back() -> None:
    world = emptied_world()
    evictions = len(world.evictions)
    for _ in range(3):
        world._add_strangers_pod("new")
        world.run(150)
        (build,) = [pod.key for pod in world.pods_on("new")]
        world.remove_pod(build)
        world.run(150)
    assert len(world.evictions) == evictions
    assert world.marked() == ["old"]


def test_a_node_that_an_autoscaler_takes_anyway_is_left_to_it() -> None:
    world = evening_world(placeholders=4)
    leave(world, range(9))
    world.run(600)
    # Four of ten: less than half is requested.
    assert not world.evictions
    assert unneeded(world) == []


def test_a_candidate_taint_that_comes_and_goes_changes_nothing() -> None:
    world = emptied_world()
    evictions = len(world.evictions)
    # Room for eight: less than once and a half of six, but enough for all.
    world.add_user("back", node="old")
    world.change_node("new", taints=(CANDIDATE,))
    world.run(120)
    world.change_node("new", taints=())
    world.run(600)
    assert len(world.evictions) == evictions
    assert world.marked() == ["old"]


def test_a_node_that_nobody_takes_is_emptied_once() -> None:
    world = emptied_world()
    world.run(GIVE_UP_SECONDS + 600)
    assert world.marked() == ["new"]
    assert world.count_placeholders("new") == 6
    evictions = len(world.evictions)
    world.run(GIVE_UP_SECONDS * 3)
    assert len(world.evictions) == evictions
    # Another node that takes its name has another uid.
    world.remove_node("new")
    world.add_node("new", in_use=False)
    world.run(600)
    assert world.marked() == ["old"]


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
    leave(world, range(6))
    assert unneeded(world) == []
    assert unneeded(world, "new") == ["new"]
    world.add_user("back", node="old")
    assert unneeded(world, "new") == []


def test_more_placeholders_to_come_count_before_they_are_created() -> None:
    world = evening_world()
    leave(world, range(9))
    assert unneeded(world) == ["new"]
    # A class is about to begin.
    world.placeholders = 12
    assert unneeded(world) == []


def test_of_several_nodes_those_go_that_the_rest_can_replace_together() -> None:
    world = evening_world()
    leave(world, range(9))
    world.add_node("newer", in_use=False)
    world.run(60)
    # `old` has room for nine.
    assert unneeded(world, "new", "newer") == ["new", "newer"]
    world.placeholders = 10
    assert unneeded(world, "new", "newer") == ["newer"]


def test_a_node_that_is_not_fit_has_no_room_for_others_placeholders() -> None:
    world = evening_world()
    leave(world, range(9))
    assert unneeded(world) == ["new"]
    world.change_node("old", cordoned=True)
    assert unneeded(world) == []


def test_many_newer_nodes_of_other_pools_hide_no_unneeded_node() -> None:
    world = evening_world()
    leave(world, range(9))
    for index in range(MOST_NODES):
        node = replace(world.nodes["old"], name=f"gpu-{index}", uid=f"gpu-{index}")
        world.nodes[node.name] = replace(node, created=world.now, taints=(FOREIGN,))
    assert unneeded(world) == ["new"]


def test_a_set_without_placeholders_marks_the_newest_node() -> None:
    world = settled_world(placeholders=0)
    world.add_node("new", in_use=False)
    assert world.marked_after(310) == ["new"]
    assert unneeded(world) == []


def test_an_idle_node_leaves_the_newest_of_the_others_its_placeholders() -> None:
    world = emptied_world()
    # Nobody takes `new`, and it holds no placeholder.
    world.add_node("newer")
    world.add_user("there", node="newer")
    world.add_user("more", node="old")
    world.run(600)
    assert world.marked() == ["newer"]
    assert world.count_placeholders("newer") == 6
    assert world.count_placeholders("new") == 0


def test_where_the_marked_node_fills_another_with_room_gets_the_mark() -> None:
    world = evening_world()
    world.add_node("middle", in_use=False)
    for index in range(8):
        world.add_user(f"middle-{index}", node="middle")
    world.run(60)
    leave(world, range(8))
    world.run(600)
    from_new = [eviction.landed for eviction in world.evictions if eviction.source == "new"]
    assert from_new == ["middle"] * 2 + ["old"] * 4
    # Then they leave the node with more users, as ever.
    assert world.count_placeholders("old") == 6
    assert len(world.evictions) == 8


def test_other_releases_placeholders_are_no_use_of_a_node_but_need_room_too() -> None:
    world = evening_world(placeholders=4)
    # The node is half full only with them.
    add_others(world, "new", 2)
    leave(world, range(8))
    assert unneeded(world) == []
    leave(world, range(8, 9))
    assert unneeded(world) == ["new"]
    world.add_user("there", node="new")
    assert unneeded(world) == []


def test_of_several_nodes_the_others_placeholders_need_room_together() -> None:
    world = evening_world()
    leave(world, range(9))
    world.add_node("newer", in_use=False)
    world.run(60)
    # `old` has room for nine: six of the set, and three of others.
    add_others(world, "new", 1)
    add_others(world, "newer", 2)
    assert unneeded(world, "new", "newer") == ["new", "newer"]
    add_others(world, "newer", 1)
    assert unneeded(world, "new", "newer") == ["newer"]


def test_where_another_release_moves_nothing_a_node_is_emptied_once() -> None:
    world = evening_world(placeholders=4)
    add_others(world, "new", 2)
    leave(world, range(9))
    world.run(300)
    assert world.count_placeholders("old") == 4
    assert world.marked() == ["old"]
    world.run(GIVE_UP_SECONDS + 600)
    assert world.marked() == ["new"]
    assert len(world.evictions) == 8
    world.run(GIVE_UP_SECONDS * 3)
    assert len(world.evictions) == 8
