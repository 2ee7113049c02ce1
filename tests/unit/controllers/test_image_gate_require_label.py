"""What requireLabel writes: nodes are closed while images come, and opened when in doubt or to
users who wait.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from roost.controllers.contract.actions import ChangeNode, Notice, Planned
from roost.controllers.contract.snapshot import Moment, Snapshot
from roost.controllers.image_gate.node_labels import GATE_OPENED
from roost.controllers.image_gate.plan import GateMemory, plan_image_gate
from roost.controllers.image_gate.settings import PullerPods
from roost.controllers.image_gate.waiting_users import GateNodes, plan_openings
from roost.controllers.runtime.watching.minor_changes import is_minor_change_of_pod as is_minor
from roost_core.objects.node import Node
from roost_core.objects.pod import ContainerState, Pod, PodSpec
from roost_core.objects.pod_reader import read_pod
from roost_core.objects.selectors import NodeTerm, Requirement, Taint
from roost_core.placement.beliefs import COMING, DEVICES, STARTING
from roost_core.placement.labels import pulled_label, pulled_prefix
from tests.gate_world import (
    GPU,
    NAMESPACE,
    OTHER,
    RELEASE,
    SCIPY,
    GateWorld,
    gate_settings,
    label,
    true_waits,
)
from tests.recorded_data import rows

_NOT_PULLING = Requirement(label(SCIPY), "NotIn", frozenset({"pulling"}))
KEEPS_OFF = PodSpec(required_node_terms=(NodeTerm((_NOT_PULLING,), ()),))
PULL_FAILED = f'failed to pull and unpack image "{SCIPY}": not found'
CLOSED, OPEN = {label(SCIPY): "pulling"}, {label(SCIPY): "open"}


def world(*images: str, **settings: Any) -> GateWorld:
    return GateWorld(gate_settings(*(images or (SCIPY,)), **settings))


def told(w: GateWorld) -> list[Notice]:
    return [notice for notice in w.notices() if notice.reason == GATE_OPENED]


def opened_for(w: GateWorld) -> dict[tuple[str, ...], float]:
    return dict(w.plan().gauges["gate_nodes_opened"])


def test_a_new_node_is_closed_before_it_is_ready_and_opens_once_the_image_is_there() -> None:
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


def test_without_any_puller_nothing_is_closed_nor_is_a_new_node_that_brings_the_image_along() -> (
    None
):
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
    changes = [change for change in w.changes() if isinstance(change, ChangeNode)]
    assert [(change.node, *change.set_labels.values()) for change in changes] == [
        ("b", "pulling"),
        ("a", "true"),
    ]


def test_beside_zero_to_jupyterhubs_pullers_only_nodes_that_one_pulls_for_are_closed() -> None:
    w = world(puller_pods=PullerPods.ZERO_TO_JUPYTERHUB, has_puller=False)

    def z2jh(node: str, component: str) -> str:
        key = w.puller(node)
        container = ContainerState(
            SCIPY, waiting_reason="PodInitializing", init=True, name="image-pull-singleuser"
        )
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
    assert (w.labels("old"), w.labels("new")) == (
        {label(SCIPY): "pulling"},
        {label(SCIPY): "pulling"},
    )


@pytest.mark.parametrize("key", ["nvidia.com/gpu", "example.com/starting"])
def test_a_node_that_unknown_taints_keep_the_puller_off_is_not_closed_before_it_is_ready_nor_after(
    key: str,
) -> None:
    unregistered, unknown = (
        Taint("karpenter.sh/unregistered", "", "NoExecute"),
        Taint(key, "", "NoSchedule"),
    )
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
    [
        "node.cilium.io/agent-not-ready",
        "node.cloudprovider.kubernetes.io/uninitialized",
        "karpenter.sh/unregistered",
    ],
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


@pytest.mark.parametrize(
    "taint", ["DeletionCandidateOfClusterAutoscaler", "ToBeDeletedByClusterAutoscaler", ""]
)
def test_a_node_that_goes_is_not_closed_as_an_autoscaler_may_copy_it(taint: str) -> None:
    w = world()
    w.add_pulling()
    assert w.labels_next() == CLOSED
    if taint:
        w.set_taints(
            Taint(taint, "", "PreferNoSchedule" if taint.startswith("Deletion") else "NoSchedule")
        )
    else:
        w.set_fact(unschedulable=True)
    assert w.labels_next() == {}
    w.set_fact(taints=(), unschedulable=False)
    assert w.labels_next() == CLOSED
    # One that was opened stays so.
    w.set_fact(labels=OPEN, unschedulable=True)
    assert w.labels_next() == OPEN


def test_a_node_without_a_pullers_pod_is_opened_and_stays_open_under_a_new_leader() -> None:
    w = world()
    w.add_node()
    w.turn()
    assert w.labels_next(after=COMING.age_seconds - 1) == {label(SCIPY): "pulling"}
    assert w.plan().wake_after_seconds == pytest.approx(1.0)
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


@pytest.mark.parametrize(("facts", "value"), rows("controllers/gate-kept-off"))
def test_a_node_with_a_pod_that_its_kubelet_would_refuse_is_not_closed(
    facts: dict[str, Any], value: str
) -> None:
    w = world(SCIPY, GPU)
    w.add_pulling()
    user = Pod("jhub", "ada", uid="ada", spec=KEEPS_OFF, **facts)
    w.pods[user.key] = user
    assert w.labels_next() == {label(SCIPY): value, label(GPU): "pulling"}


@pytest.mark.parametrize("reason", ["ErrImagePull", "ImagePullBackOff", "InvalidImageName"])
def test_a_node_whose_pull_fails_stays_closed_and_is_opened_after_one_that_is_pulling(
    reason: str,
) -> None:
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


def test_a_node_whose_own_pull_fails_is_not_opened_beside_another_that_fails() -> None:
    w = world(SCIPY)
    w.add_node("opened", labels=OPEN)
    w.add_node("pulls")
    w.add_node("fails")
    pullers = {name: w.puller(name) for name in w.nodes}
    w.turn()
    for name in ("opened", "fails"):
        w.fail(pullers[name], SCIPY, PULL_FAILED)
    w.turn()
    assert [w.labels(name) for name in ("opened", "pulls", "fails")] == [OPEN, OPEN, CLOSED]


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


def test_an_image_that_left_the_node_later_has_its_own_deadline() -> None:
    w = world(SCIPY, GPU, pull_deadline_seconds=600)
    puller = w.add_pulling()
    w.say(puller, GPU, running=True)
    w.turn()
    w.list_images(OTHER, GPU)
    assert w.labels_next(after=300) == {label(SCIPY): "pulling", label(GPU): "true"}
    w.list_images(OTHER)
    w.say(puller, GPU, waiting_reason="ContainerCreating")
    assert w.labels_next() == {label(SCIPY): "pulling", label(GPU): "pulling"}
    assert w.labels_next(after=300) == {label(SCIPY): "open", label(GPU): "pulling"}
    assert w.labels_next(after=300) == {label(SCIPY): "open", label(GPU): "open"}


def test_an_image_removed_after_its_pull_leaves_the_node_open_as_nobody_pulls_it_again() -> None:
    w = world()
    # A label of an image that left the set goes, though a pending pod may keep off it.
    puller = w.add_pulling(images=[OTHER, SCIPY, GPU], labels={label(GPU): "pulling"})
    w.say(puller, SCIPY, running=True)
    assert w.labels_next() == {label(SCIPY): "true"}
    assert w.changes() == [], "nothing is new"
    w.list_images(OTHER)
    assert w.labels_next() == OPEN
    assert opened_for(w) == {("removed",): 1.0}


PREFIX = pulled_prefix(RELEASE, NAMESPACE)
NOW = 1_800_000_000.0
AFTER = 10.0
NOT_PULLING = Requirement(label(SCIPY), "NotIn", frozenset({"pulling"}))
GB = 2**30


def node(
    name: str,
    *,
    cpu: int = 4000,
    gpus: int = 0,
    ready_for: float = 100.0,
    value: str = "pulling",
    taints: tuple[Taint, ...] = (),
    labels: Mapping[str, str] | None = None,
    pods: int = 10,
) -> Node:
    allocatable = {
        "cpu": cpu,
        "memory": 16 * GB,
        "pods": pods,
        **({"nvidia.com/gpu": gpus} if gpus else {}),
    }
    carried = {label(SCIPY): value, **(labels or {})}
    return Node(
        name, carried, taints, uid=name, allocatable=allocatable, ready_since=NOW - ready_for
    )


def user(
    name: str = "ada",
    *,
    cpu: int = 1000,
    gpus: int = 0,
    waits_for: float = 100.0,
    terms: tuple[NodeTerm, ...] = (NodeTerm((NOT_PULLING,), ()),),
    priority: int = 0,
    nominated: str = "",
) -> Pod:
    requests = (("cpu", cpu), *((("nvidia.com/gpu", gpus),) if gpus else ()))
    return Pod(
        "jhub",
        name,
        uid=name,
        priority=priority,
        nominated_node=nominated,
        unschedulable_since=NOW - waits_for,
        spec=PodSpec(requests=requests, required_node_terms=terms),
    )


def bound(name: str, to: str, *, cpu: int = 1000, priority: int = 0) -> Pod:
    return Pod(
        "jhub", name, node_name=to, priority=priority, spec=PodSpec(requests=(("cpu", cpu),))
    )


def openings(
    nodes: list[Node],
    pods: list[Pod],
    *,
    just_opened: frozenset[str] = frozenset(),
    claimable: frozenset[str] = frozenset(),
    failing: Mapping[str, frozenset[str]] | None = None,
) -> tuple[dict[str, frozenset[str]], float | None]:
    closed = {
        one.name: frozenset(key for key, value in one.labels.items() if value == "pulling")
        for one in nodes
        if "pulling" in one.labels.values()
    }
    by_name, by_key = {one.name: one for one in nodes}, {pod.key: pod for pod in pods}
    found = plan_openings(
        Snapshot(RELEASE, NAMESPACE, by_name, by_key, claimable=claimable),
        GateNodes(
            closed,
            just_opened,
            failing or {},
            {node.name: node.ready_since for node in nodes if node.ready_since is not None},
        ),
        true_waits(pods),
        prefix=PREFIX,
        open_after_seconds=AFTER,
        now=Moment(NOW, NOW),
    )
    return dict(found[0]), found[1]


def opened(nodes: list[Node], pods: list[Pod]) -> set[str]:
    return set(openings(nodes, pods)[0])


NOT_READY = Taint("node.kubernetes.io/not-ready", "", "NoSchedule")
IN_X, NAMED_A = (
    Requirement("zone", "In", frozenset({"x"})),
    Requirement("metadata.name", "In", frozenset({"a"})),
)


def registered(age: float = 0.0, taint: Taint = NOT_READY, **more: Any) -> Node:
    """A node that isn't Ready yet."""
    return replace(node(**more, taints=(taint,)), ready=False, created=NOW - age, ready_since=None)


def term(*requirements: Requirement, fields: tuple[Requirement, ...] = ()) -> NodeTerm:
    return NodeTerm(requirements, fields)


def told_node(**said: Any) -> Node:
    """A node as tests/data/cases/controllers/gate-opened.yaml says it."""
    age, more = said.pop("registered", None), said.pop("with", {})
    taints = tuple(Taint(key, "", "NoSchedule") for key in said.pop("taints", ()))
    if age is not None:
        return replace(registered(age, *taints, **said), **more)
    return replace(node(**said, taints=taints), **more)


def told_pod(**said: Any) -> Pod:
    """A user, or what is bound, as that file says it."""
    more = said.pop("with", {})
    return replace(bound(**said) if "to" in said else user(**said), **more)


@pytest.mark.parametrize(("_about", "nodes", "pods", "expected"), rows("controllers/gate-opened"))
def test_which_nodes_are_opened(
    _about: str, nodes: list[Any], pods: list[Any], expected: list[str]
) -> None:
    found, _ = openings([told_node(**one) for one in nodes], [told_pod(**pod) for pod in pods])
    assert found == dict.fromkeys(expected, frozenset({label(SCIPY)}))


@pytest.mark.parametrize(
    ("terms", "expected"),
    [
        # A selector; terms that are ORed; none; holders alone; another hub's gate.
        ([term(IN_X, NOT_PULLING)], set()),
        ([term(IN_X, NOT_PULLING), term(NOT_PULLING, fields=(NAMED_A,))], {"a"}),
        ([], set()),
        ([term(Requirement(label(SCIPY), "In", frozenset({"true"})))], set()),
        (
            [
                term(
                    Requirement(
                        pulled_label("other", "hub", SCIPY), "NotIn", frozenset({"pulling"})
                    )
                )
            ],
            set(),
        ),
    ],
)
def test_a_node_is_opened_to_whom_the_gate_alone_keeps_off(
    terms: list[NodeTerm], expected: set[str]
) -> None:
    nodes = [node("a", ready_for=12), node("b", ready_for=12)][: 1 + len(expected)]
    assert opened(nodes, [user(terms=tuple(terms))]) == expected


def test_a_node_that_is_not_ready_soon_is_not_opened() -> None:
    assert opened([registered(STARTING.age_seconds, name="new")], [user(waits_for=60)]) == set()


def test_waiting_counts_from_when_the_pod_found_no_node_however_new_the_closed_one_is() -> None:
    opens_at_once = {"a": frozenset({label(SCIPY)})}
    assert openings([node("a", ready_for=4)], [user(waits_for=500)]) == (opens_at_once, 16.0)
    assert openings([node("a", ready_for=500)], [user(waits_for=4)]) == ({}, 6.0)
    assert openings([node("a", ready_for=10)], [user(waits_for=10)])[0] == {
        "a": frozenset({label(SCIPY)})
    }


def test_a_node_that_was_opened_a_moment_ago_is_counted_on_before_another_is_opened() -> None:
    nodes = [node("a", value="open"), node("b", ready_for=12)]
    assert openings(nodes, [user()], just_opened=frozenset({"a"}))[0] == {}
    full = bound("x", "a", cpu=4000)
    assert set(openings(nodes, [user(), full], just_opened=frozenset({"a"}))[0]) == {"b"}


@pytest.mark.parametrize(
    ("ready_for", "is_opened"), [(0, True), (299, True), (DEVICES.age_seconds, False)]
)
def test_a_young_node_may_yet_say_that_it_has_a_gpu(ready_for: float, *, is_opened: bool) -> None:
    young = node("a", ready_for=ready_for)
    without, zero = young, replace(young, allocatable={**young.allocatable, "nvidia.com/gpu": 0})
    for one in (without, zero):
        assert opened([one], [user(gpus=1)]) == ({"a"} if is_opened else set())
    registers = replace(young, ready=False, created=NOW - 1, ready_since=None)
    assert opened([registers], [user(gpus=1)]) == {"a"}
    # What a kubelet counts itself is known from the beginning, and so is how many of a device there
    # are.
    assert opened([node("a", ready_for=0)], [user(cpu=5000, gpus=1)]) == set()
    assert opened([node("a", ready_for=0, gpus=1)], [user(gpus=2)]) == set()


def test_a_user_of_what_a_device_class_maps_opens_a_node_that_does_not_list_it() -> None:
    old = [node("a", ready_for=400, cpu=1000), node("b", ready_for=390)]
    assert opened(old, [user(gpus=1, waits_for=12)]) == set()
    # One that has room by all other requests, those of others counted.
    holds = [replace(bound("c", to="b"), spec=user(gpus=3).spec), bound("d", to="a", cpu=500)]
    mapped = frozenset({"nvidia.com/gpu"})
    assert set(openings([*old], [*holds, user(gpus=1, waits_for=12)], claimable=mapped)[0]) == {"b"}


def test_a_pod_that_begins_to_wait_at_the_gate_is_news_and_one_that_goes_on_waiting_isnt() -> None:
    assert not is_minor(replace(user(), unschedulable_since=None), user())
    assert is_minor(user(), user())
    assert is_minor(None, replace(user(terms=())))
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    status = {"conditions": [{**condition, "lastTransitionTime": "2027-01-15T08:00:00Z"}]}
    assert (
        read_pod({"metadata": {"name": "ada"}, "spec": {}, "status": status}).unschedulable_since
        == NOW
    )


def test_the_gate_opens_a_node_to_a_waiting_user_tells_it_once_and_keeps_it_open() -> None:
    w = GateWorld(gate_settings(SCIPY, GPU))
    w.add_pulling()
    w.turn()
    pod = replace(user(waits_for=0), unschedulable_since=w.wall)
    w.pods[pod.key] = pod
    w.turn()
    w.wait(9)
    assert w.plan().wake_after_seconds == pytest.approx(1.0)
    w.wait(1)
    (change,) = (action for action in w.turn().actions if isinstance(action, ChangeNode))
    assert change.set_labels == {label(SCIPY): "open"}
    assert w.labels() == {label(SCIPY): "open", label(GPU): "pulling"}
    (notice,) = (one for one in w.notices() if one.reason == GATE_OPENED)
    assert not notice.warning
    assert f"opened to users of {SCIPY}" in notice.message
    assert w.plan().gauges["gate_nodes_opened"] == {("user-waits",): 1.0}
    assert [one for one in w.notices() if one.reason == GATE_OPENED] == []
    w.new_leader()
    assert w.labels_next() == {label(SCIPY): "open", label(GPU): "pulling"}


def test_a_node_counts_as_opened_to_users_for_as_long_as_it_is_there_and_open() -> None:
    w = world()
    w.add_pulling()
    w.turn()
    pod = replace(user(waits_for=0), unschedulable_since=w.wall)
    w.pods[pod.key] = pod
    w.turn()
    w.turn(after=AFTER)
    assert w.labels() == OPEN
    w.turn(after=60)
    assert opened_for(w) == {("user-waits",): 1.0}
    # It is opened again, by somebody else.
    del w.pods[pod.key]
    w.list_images(OTHER, SCIPY)
    w.turn()
    w.turn(after=60)
    w.list_images(OTHER)
    w.set_fact(labels=OPEN)
    w.turn()
    assert opened_for(w) == {("earlier",): 1.0}
    w.nodes.clear()
    assert opened_for(w) == {}


@pytest.mark.parametrize("skew", [-3600.0, -60.0, 0.0, 60.0, 3600.0])
@pytest.mark.parametrize("nominated", ["", "open"])
def test_a_user_waits_as_long_as_was_said_whatever_the_clocks_say(
    skew: float, nominated: str
) -> None:
    """Also one whose victims take their time to go."""
    w = GateWorld(gate_settings(SCIPY))
    w.add_pulling()
    w.turn()
    pod = replace(user(nominated=nominated), unschedulable_since=w.wall + skew)
    w.pods[pod.key] = pod
    for _ in range(5):
        assert w.labels() == {label(SCIPY): "pulling"}
        w.turn()
        # Clocks are set now and then.
        w.wall += skew
        w.wait(AFTER / 5)
    assert w.labels_next() == {label(SCIPY): "open"}


@pytest.mark.parametrize(("skew", "opens_after"), [(-5.0, 5.0), (-3600.0, 0.0), (3600.0, 10.0)])
def test_a_new_leader_believes_the_clocks_no_further_than_a_whole_wait(
    skew: float, opens_after: float
) -> None:
    w = GateWorld(gate_settings(SCIPY))
    w.add_pulling()
    w.turn()
    pod = replace(user(), unschedulable_since=w.wall + skew)
    w.set_fact(labels={label(SCIPY): "pulling"})
    w.pods[pod.key] = pod
    w.new_leader()
    w.turn()
    if opens_after:
        assert w.labels() == {label(SCIPY): "pulling"}
        w.turn(after=opens_after)
    assert w.labels() == {label(SCIPY): "open"}


def test_what_is_opened_is_written_first_while_there_is_budget_for_some_changes_only() -> None:
    w = GateWorld(gate_settings(SCIPY))
    w.add_node("closed")
    w.puller("closed")
    pod = replace(user(), unschedulable_since=w.wall)
    w.pods[pod.key] = pod
    w.turn()
    w.wait(20)
    for name in "abc":
        # The user can't go there, the puller can.
        w.add_node(
            name, ready=False, taints=(Taint("hub.jupyter.org/dedicated", "user", "NoSchedule"),)
        )
    changes = [action for action in w.plan().actions if isinstance(action, ChangeNode)]
    pulling = [(name, "pulling") for name in "abc"]
    assert [(change.node, *change.set_labels.values()) for change in changes] == [
        ("closed", "open"),
        *pulling,
    ]


def test_a_node_is_marked_open_as_it_registers_while_a_user_waits_but_not_a_silent_one() -> None:
    def planned(memory: GateMemory, there: Node) -> Planned[GateMemory]:
        pod = user(waits_for=60)
        snapshot = Snapshot(RELEASE, NAMESPACE, nodes={there.name: there}, pods={pod.key: pod})
        return plan_image_gate(snapshot, memory, gate_settings(SCIPY), Moment(NOW, 0.0))

    fresh = replace(registered(name="new"), labels={})
    (change,) = planned(GateMemory(), fresh).actions
    assert isinstance(change, ChangeNode)
    assert change.set_labels == {label(SCIPY): "open"}
    # One that was ready and isn't: what it says may be old.
    ready = replace(
        fresh, labels={label(SCIPY): "pulling"}, taints=(), ready=True, ready_since=NOW - 1
    )
    memory = planned(GateMemory(), ready).memory
    silent = replace(ready, ready=False, taints=(NOT_READY,), ready_since=None)
    assert planned(memory, silent).actions == []


@pytest.mark.parametrize("labels", [{}, {"example.org/pool": "open"}])
def test_a_node_that_starts_and_was_not_opened_takes_nobody_yet(labels: dict[str, str]) -> None:
    closed = node("a", ready_for=12)
    starting = registered(name="new", value="none", labels=labels)
    assert opened([closed, starting], [user()]) == {"a"}
    awaited = replace(starting, labels={**labels, label(SCIPY): "open"})
    assert opened([closed, awaited], [user()]) == set()


def test_all_nodes_open_to_a_user_who_could_not_be_bound_for_a_second_wait() -> None:
    nodes = [node(name, ready_for=2 * AFTER - 0.5) for name in ("a", "b")]
    assert opened(nodes, [user()]) == {"a"}
    nodes = [node(name, ready_for=2 * AFTER) for name in ("a", "b")]
    assert opened(nodes, [user()]) == {"a", "b"}


def test_the_next_user_goes_to_the_node_that_was_just_opened_to_another() -> None:
    def wants(name: str, image: str, waits_for: float) -> Pod:
        keeps_off = Requirement(label(image), "NotIn", frozenset({"pulling"}))
        return user(name, waits_for=waits_for, terms=(NodeTerm((keeps_off,), ()),))

    nodes = [
        node(name, ready_for=ready_for, labels={label(GPU): "pulling"})
        for name, ready_for in (("a", 15.0), ("b", 14.0))
    ]
    pods = [wants("ada", SCIPY, 100.0), wants("bob", GPU, 90.0)]
    found, _ = openings(nodes, pods, failing={"a": frozenset({label(SCIPY)})})
    assert found == {"b": frozenset({label(SCIPY), label(GPU)})}


def test_users_of_several_images_on_one_node_each_have_theirs_opened() -> None:
    def wants(name: str, image: str) -> Pod:
        return user(
            name,
            terms=(NodeTerm((Requirement(label(image), "NotIn", frozenset({"pulling"})),), ()),),
        )

    there = node("new", ready_for=0, labels={label(GPU): "pulling"})
    there = replace(there, allocatable={**there.allocatable, "pods": 2})
    found = openings([there], [wants("ada", SCIPY), wants("bob", GPU), wants("eve", SCIPY)])[0]
    assert found == {"new": {label(SCIPY), label(GPU)}}
