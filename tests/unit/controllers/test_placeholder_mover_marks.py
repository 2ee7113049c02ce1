"""Which node the placeholder mover marks, in a small model cluster with rendered values."""

from typing import Any

import pytest

from roost_core.objects.selectors import Taint
from roost_core.placement.labels import attract_label
from tests.builders import NAMESPACE, RELEASE
from tests.mover_world import LABEL, PULLED, settled_world
from tests.recorded_data import rows

OTHER_HUB = attract_label("other", NAMESPACE, "default")
FORMER_SET = attract_label(RELEASE, NAMESPACE, "former")


def test_the_newest_node_draws_the_placeholders_once_it_has_been_fit_for_a_while() -> None:
    world = settled_world()
    world.add_node("new")
    assert world.marked_after(29) == ["old"]
    assert world.marked_after(3) == ["new"]
    world.run(50)
    assert (world.count_placeholders("old"), world.count_placeholders("new")) == (1, 5)
    world.run(20)
    assert (world.count_placeholders("old"), world.count_placeholders("new")) == (0, 6)
    assert world.count_users("old") == 2


def test_a_ready_node_without_its_images_is_not_marked_unless_no_node_can_get_them() -> None:
    world = settled_world()
    world.add_node("new", imaged=False)
    assert world.marked_after(3600) == ["old"]
    world.change_node("new", labels={PULLED: "true"})
    assert world.marked_after(29) == ["old"], (
        "ready long ago, but with its images for half a minute only"
    )
    assert world.marked_after(3) == ["new"]
    world = settled_world()
    world.document["imageGate"]["pullers"][0]["images"].append("registry.example.org/gone:1")
    world.start_leader()
    world.add_node("new")
    assert world.marked_after(310) == ["new"]


@pytest.mark.parametrize(("befalls", "is_for_good"), rows("controllers/mover-unfit"))
def test_a_node_not_to_be_used_is_not_marked_nor_keeps_a_mark(
    befalls: dict[str, Any], is_for_good: bool
) -> None:
    change: dict[str, Any] = dict(befalls)
    if "taints" in befalls:
        change["taints"] = tuple(Taint(*taint) for taint in befalls["taints"])
    world = settled_world()
    world.add_node("new")
    world.change_node("new", **change)
    assert world.marked_after(600) == ["old"]
    assert not world.evictions
    world.remove_node("new")
    world.add_node("newer")
    assert world.marked_after(60) == ["newer"]
    world.change_node("newer", **change)
    world.run(1)
    # What passes may be over soon: an older node has to wait.
    assert world.marked() == (["old"] if is_for_good else ["newer"])
    assert world.marked_after(590) == (["old"] if is_for_good else ["newer"])
    assert world.marked_after(20) == ["old"]


def test_a_node_that_leaves_the_pool_loses_its_mark_at_once() -> None:
    world = settled_world()
    world.document["placeholders"][0]["nodeSelector"] = {"pool": "user"}
    world.change_node("old", labels={"pool": "user"})
    world.start_leader()
    world.add_node("new")
    world.change_node("new", labels={"pool": "user"})
    assert world.marked_after(310) == ["new"]
    world.change_node("new", labels={"pool": "other"})
    assert world.marked_after(1) == ["old"]


def test_how_long_a_node_has_been_unfit_is_reckoned_for_each_set_by_its_own_tolerations() -> None:
    world = settled_world()
    tolerant = {
        **world.document["placeholders"][0],
        "name": "tolerant",
        "tolerations": [{"operator": "Exists"}],
    }
    world.document["placeholders"].append(tolerant)
    world.start_leader()
    world.add_node("new")
    world.run(400)
    world.change_node("new", taints=(Taint("somebody.else/dedicated", "gpu", "NoSchedule"),))
    assert world.marked_after(590) == ["new"]
    assert world.marked_after(20) == ["old"]
    assert world.marked(attract_label(RELEASE, NAMESPACE, "tolerant")) == ["new"]


def test_a_newer_node_takes_the_mark_of_one_that_is_not_ready() -> None:
    world = settled_world(keepMarkSeconds=3600)
    world.add_node("new")
    assert world.marked_after(60) == ["old"]
    world.change_node("old", ready=False)
    assert world.marked_after(1) == ["new"]


def test_a_mark_stays_for_a_while_though_newer_nodes_come() -> None:
    world = settled_world(placeholders=2, evictionsPerMinute=0)
    world.add_node("new")
    assert world.marked_after(60) == ["new"]
    world.add_node("newer")
    assert world.marked_after(200) == ["new"]
    assert world.marked_after(100) == ["newer"]


def test_a_full_node_gives_its_mark_away_at_once() -> None:
    world = settled_world(placeholders=3)
    world.add_node("new")
    assert world.marked_after(120) == ["new"]
    for index in range(7):
        world.add_user(f"full-{index}", node="new")
    world.add_node("newer")
    assert world.marked_after(33) == ["newer"]


@pytest.mark.parametrize(("is_new_leader", "quiet", "more"), [(False, 275, 40), (True, 250, 100)])
def test_a_flapping_node_is_marked_once_it_has_been_quiet(
    is_new_leader: bool, quiet: float, more: float
) -> None:
    world = settled_world()
    world.add_node("new", imaged=not is_new_leader)
    world.run(400 if is_new_leader else 0)
    for _ in range(1 if is_new_leader else 4):
        world.run(20)
        world.change_node("new", ready=False)
        world.run(20)
        world.change_node("new", ready=True, labels={PULLED: "true"})
    if is_new_leader:
        world.start_leader()
    assert world.marked_after(quiet) == ["old"]
    assert world.marked_after(more) == ["new"]


def test_marks_of_sets_that_are_gone_go_and_one_that_somebody_takes_away_comes_back() -> None:
    world = settled_world()
    world.change_node("old", labels={FORMER_SET: "true", OTHER_HUB: "true"})
    world.remove_label("old", LABEL)
    assert world.marked_after(2) == ["old"]
    assert FORMER_SET not in world.nodes["old"].labels
    assert OTHER_HUB in world.nodes["old"].labels
    # While no node is fit, it stays where it is.
    world.change_node("old", cordoned=True)
    assert world.marked_after(3600) == ["old"]


def test_of_two_marked_nodes_one_keeps_the_mark() -> None:
    world = settled_world(evictionsPerMinute=0, keepMarkSeconds=3600)
    world.add_node("new")
    world.run(60)
    world.change_node("new", labels={LABEL: "true"})
    assert world.marked_after(1) == ["old"]
    world.change_node("new", labels={LABEL: "true"})
    # Knows of no choice before: the newest one stays.
    world.start_leader()
    assert world.marked_after(1) == ["new"]


def test_sets_of_different_pools_mark_their_own_newest_nodes() -> None:
    world = settled_world()
    world.document["placeholders"].append(
        {**world.document["placeholders"][0], "name": "large", "nodeSelector": {"pool": "large"}}
    )
    world.start_leader()
    world.add_node("new")
    world.add_node("large")
    world.change_node("large", labels={"pool": "large"})
    world.run(1)
    world.add_node("newer")
    world.run(400)
    assert world.marked(attract_label(RELEASE, NAMESPACE, "large")) == ["large"]
    assert world.marked() == ["newer"]


def test_switched_off_the_mover_takes_its_marks_away_and_moves_nothing() -> None:
    world = settled_world()
    world.add_node("new")
    world.document["placeholderMover"]["enabled"] = False
    world.start_leader()
    assert world.marked_after(600) == []
    assert not world.evictions
