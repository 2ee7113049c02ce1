"""What requireLabel writes: nodes are closed while their images come, and opened as soon as that is in doubt."""

from dataclasses import replace
from typing import Any

import pytest

from roost.controllers.contract.actions import Notice
from roost.controllers.image_gate.plan import GATE_OPENED
from roost.controllers.image_gate.settings import PullerPods
from roost_core.objects.pod import ContainerState, Pod, PodSpec
from roost_core.objects.selectors import NodeTerm, Requirement, Taint
from roost_core.placement.beliefs import COMING
from roost_core.release.image_gate import GateMode
from tests.gate_world import GPU, OTHER, SCIPY, GateWorld, gate_settings, label

_NOT_PULLING = Requirement(label(SCIPY), "NotIn", frozenset({"pulling"}))
KEEPS_OFF = PodSpec(required_node_terms=(NodeTerm((_NOT_PULLING,), ()),))
PULL_FAILED = f'failed to pull and unpack image "{SCIPY}": not found'
CLOSED, OPEN = {label(SCIPY): "pulling"}, {label(SCIPY): "open"}


def world(*images: str, **settings: Any) -> GateWorld:
    return GateWorld(gate_settings(*(images or (SCIPY,)), **settings))


def told(w: GateWorld) -> list[Notice]:
    return [one for one in w.notices() if one.reason == GATE_OPENED]


def opened_for(w: GateWorld) -> dict[tuple[str, ...], float]:
    return dict(w.plan().gauges["gate_nodes_opened"])


def test_a_new_node_is_closed_before_it_is_ready_and_open_to_the_images_users_once_the_image_is_there() -> None:
    w = world(SCIPY, GPU)
    w.add_node(images=(), ready=False)
    assert w.labels_next() == {label(SCIPY): "pulling", label(GPU): "pulling"}
    w.set_fact(ready=True)
    w.list_images(OTHER)
    puller = w.puller()
    assert w.labels_next() == {label(SCIPY): "pulling", label(GPU): "pulling"}
    assert w.plan().gauges["gate_nodes_closed"] == {(SCIPY,): 1.0, (GPU,): 1.0}
    w.pulled_event(puller, SCIPY)
    assert w.labels_next() == {label(SCIPY): "true", label(GPU): "pulling"}


@pytest.mark.parametrize("mode", [GateMode.PREFER, GateMode.STARTUP_TAINT, GateMode.OFF])
def test_other_modes_close_nothing_and_take_away_what_the_gate_wrote(mode: GateMode) -> None:
    w = world(mode=mode)
    w.add_node("a", ready=False)
    w.add_node("b", labels=CLOSED)
    w.add_node("c", labels=OPEN)
    w.turn()
    assert [w.labels(name) for name in "abc"] == [{}, {}, {}]


def test_without_any_puller_nothing_is_closed_nor_is_a_new_node_that_brings_the_image_along() -> None:
    w = world(has_puller=False)
    w.add_node("a", ready=False)
    w.add_node("b")
    assert w.changes() == []
    w = world()
    w.add_node(images=(SCIPY,), ready=False)
    assert w.changes() == []
    w.set_fact(ready=True)
    assert w.labels_next() == {label(SCIPY): "true"}


def test_ready_nodes_are_closed_before_one_is_known_to_hold_a_new_image() -> None:
    w = world()
    w.add_node("a", images=(OTHER, SCIPY))
    w.add_node("b")
    w.puller("b")
    assert [(one.node, *one.set_labels.values()) for one in w.changes()] == [("b", "pulling"), ("a", "true")]


def test_beside_zero_to_jupyterhubs_pullers_nodes_are_closed_only_where_one_is_at_it_or_can_be_expected() -> None:
    w = world(puller_pods=PullerPods.ZERO_TO_JUPYTERHUB, has_puller=False)

    def z2jh(node: str, component: str) -> str:
        key = w.puller(node)
        container = ContainerState(SCIPY, waiting_reason="PodInitializing", init=True, name="image-pull-singleuser")
        w.pods[key] = replace(w.pods[key], labels={"component": component}, containers=(container,))
        return key

    w.add_node("old")
    w.add_node("new", ready=False)
    assert w.changes() == []
    hook = z2jh("old", "hook-image-puller")
    w.turn()
    assert (w.labels("old"), w.labels("new")) == ({label(SCIPY): "pulling"}, {})
    del w.pods[hook]
    w.turn()
    assert w.labels("old") == {}
    z2jh("old", "continuous-image-puller")
    w.turn()
    assert (w.labels("old"), w.labels("new")) == ({label(SCIPY): "pulling"}, {label(SCIPY): "pulling"})


@pytest.mark.parametrize("key", ["nvidia.com/gpu", "example.com/starting"])
def test_a_node_that_unknown_taints_keep_the_puller_off_is_not_closed_before_it_is_ready_nor_after(key: str) -> None:
    unregistered, unknown = Taint("karpenter.sh/unregistered", "", "NoExecute"), Taint(key, "", "NoSchedule")
    w = world()
    w.add_node(ready=False, taints=[unregistered, unknown])
    assert w.labels_next() == {}
    w.set_fact(ready=True)
    assert w.labels_next() == {}
    # One that gets it before it is ready is closed no longer.
    w = world()
    w.add_node(ready=False, taints=[unregistered])
    assert w.labels_next() == CLOSED
    w.set_taints(unknown)
    assert w.labels_next() == {}
    w.set_taints()
    assert w.labels_next() == CLOSED


@pytest.mark.parametrize(
    "key",
    ["node.cilium.io/agent-not-ready", "node.cloudprovider.kubernetes.io/uninitialized", "karpenter.sh/unregistered"],
)
def test_a_taint_of_a_nodes_start_leaves_it_closed_since_it_goes_without_warning(key: str) -> None:
    w = world()
    w.add_node(ready=False, taints=[Taint(key, "", "NoExecute")])
    w.turn()
    w.set_fact(ready=True)
    assert w.labels_next() == CLOSED
    stays = replace(w.nodes["a"])
    w.set_taints()
    w.puller()
    assert w.labels_next() == CLOSED
    # One that stays does so for half a minute only.
    w = world()
    w.nodes["a"] = stays
    w.turn()
    assert w.labels_next(after=COMING.age_seconds) == {}


@pytest.mark.parametrize("taint", ["DeletionCandidateOfClusterAutoscaler", "ToBeDeletedByClusterAutoscaler", ""])
def test_a_node_that_goes_is_not_closed_as_an_autoscaler_may_copy_it(taint: str) -> None:
    w = world()
    w.add_pulling()
    assert w.labels_next() == CLOSED
    if taint:
        w.set_taints(Taint(taint, "", "PreferNoSchedule" if taint.startswith("Deletion") else "NoSchedule"))
    else:
        w.set_fact(unschedulable=True)
    assert w.labels_next() == {}
    w.set_fact(taints=(), unschedulable=False)
    assert w.labels_next() == CLOSED
    # One that was opened stays so.
    w.set_fact(labels=OPEN, unschedulable=True)
    assert w.labels_next() == OPEN


def test_a_node_is_opened_when_no_pullers_pod_comes_and_stays_open_over_a_new_leader_until_the_image_is_there() -> None:
    w = world()
    w.add_node()
    w.turn()
    assert w.labels_next(after=COMING.age_seconds - 1) == {label(SCIPY): "pulling"}
    assert w.labels_next(after=1) == OPEN
    (notice,) = told(w)
    assert (notice.name, notice.warning) == ("a", True)
    assert SCIPY in notice.message
    assert "no puller's pod" in notice.message
    assert opened_for(w) == {("no-puller",): 1.0}
    w.new_leader()
    puller = w.puller()
    assert w.labels_next() == OPEN
    assert opened_for(w) == {("earlier",): 1.0}
    w.pulled_event(puller, SCIPY)
    assert w.labels_next() == {label(SCIPY): "true"}


@pytest.mark.parametrize(
    ("facts", "value"),
    [
        ({"node_name": "a"}, "open"),
        ({"nominated_node": "a"}, "open"),
        ({"node_name": "b", "nominated_node": "a"}, "pulling"),
        ({"node_name": "a", "phase": "Succeeded"}, "pulling"),
        ({}, "pulling"),
    ],
)
def test_a_node_with_a_pod_that_its_kubelet_would_refuse_is_not_closed(facts: dict[str, Any], value: str) -> None:
    w = world(SCIPY, GPU)
    w.add_pulling()
    user = Pod("jhub", "ada", uid="ada", spec=KEEPS_OFF, **facts)
    w.pods[user.key] = user
    assert w.labels_next() == {label(SCIPY): value, label(GPU): "pulling"}


@pytest.mark.parametrize("reason", ["ErrImagePull", "ImagePullBackOff", "InvalidImageName"])
def test_a_node_whose_pull_fails_stays_closed_and_is_opened_after_one_that_is_pulling(reason: str) -> None:
    w = world(SCIPY)
    for name in ("fails", "pulls"):
        w.add_node(name)
        w.set_fact(name, allocatable={"pods": 9})
        puller = w.puller(name)
        if name == "fails":
            w.wait(5)
            w.fail(puller, SCIPY, PULL_FAILED, reason=reason)
    w.turn()
    assert [w.labels(name) for name in ("fails", "pulls")] == [{label(SCIPY): "pulling"}] * 2
    user = Pod("jhub", "ada", uid="ada", unschedulable_since=w.wall, spec=KEEPS_OFF)
    w.pods[user.key] = user
    w.turn()
    w.turn(after=10)
    assert [w.labels(name)[label(SCIPY)] for name in ("fails", "pulls")] == ["pulling", "open"]


def test_a_node_that_is_open_and_cannot_pull_is_not_the_only_one_open() -> None:
    w = world(SCIPY, GPU)
    w.add_node("opened", labels={label(SCIPY): "open"})
    puller = w.puller("opened")
    w.add_node("pulls")
    w.puller("pulls")
    w.turn()
    assert w.labels("pulls") == {label(SCIPY): "pulling", label(GPU): "pulling"}
    w.fail(puller, SCIPY, PULL_FAILED)
    w.turn()
    assert w.labels("opened") == {label(SCIPY): "open", label(GPU): "pulling"}
    assert w.labels("pulls") == {label(SCIPY): "open", label(GPU): "pulling"}


def test_a_node_is_opened_at_the_deadline_which_a_new_leader_counts_from_the_pullers_pod() -> None:
    w = world(pull_deadline_seconds=600)
    w.add_pulling()
    w.turn()
    assert w.labels_next(after=300) == CLOSED
    # One that is replaced opens nothing.
    (old,) = w.pods.values()
    w.pods.clear()
    w.turn()
    w.turn(after=5)
    w.pods[old.key] = old
    assert w.labels_next(after=95) == CLOSED
    w.new_leader()
    assert w.labels_next() == CLOSED
    assert w.labels_next(after=199) == {label(SCIPY): "pulling"}
    assert w.labels_next(after=1) == OPEN


def test_an_image_that_was_removed_after_its_pull_leaves_the_node_open_as_nobody_pulls_it_again() -> None:
    w = world()
    # A label of an image that left the set goes, though a pending pod may keep off it.
    puller = w.add_pulling(images=[OTHER, SCIPY, GPU], labels={label(GPU): "pulling"})
    w.say(puller, SCIPY, running=True)
    assert w.labels_next() == {label(SCIPY): "true"}
    assert w.changes() == [], "nothing is new"
    w.list_images(OTHER)
    assert w.labels_next() == OPEN
    assert opened_for(w) == {("removed",): 1.0}
