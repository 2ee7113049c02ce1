"""What the placeholder mover evicts and reads from its settings, in a small model cluster with
rendered values.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from roost.controllers.contract.actions import EvictPod
from roost.controllers.contract.release import ReleaseDocument
from roost.controllers.contract.snapshot import Moment, Snapshot, StatefulSetState
from roost.controllers.placeholder_mover import moves, scheduler_model
from roost.controllers.placeholder_mover.node_fitness import Reason
from roost.controllers.placeholder_mover.plan import MoverMemory, plan_placeholder_mover
from roost.controllers.placeholder_mover.scheduler_model import Prediction, SchedulerModel
from roost.controllers.placeholder_mover.settings import read_mover_settings
from roost.controllers.runtime.watching.stateful_sets import read_stateful_set
from roost_core.objects.node import Node
from roost_core.objects.pod import Pod
from roost_core.objects.selectors import Taint
from roost_core.placement.labels import PLACEHOLDER_SET_LABEL, attract_label
from roost_core.release.reader import Reader
from roost_core.scheduler.plugins import NEWEST_MINOR
from roost_core.scheduler.profile import default_profile
from tests.builders import NAMESPACE, RELEASE
from tests.mover_world import LABEL, PULLED, MoverWorld, settled_world


def test_placeholders_leave_the_node_with_most_users_first() -> None:
    world = MoverWorld(6, evictionsPerMinute=0)
    world.add_node("few", cpu="4")
    world.add_node("many", cpu="4")
    world.fill_placeholders()
    world.run(5)
    for index in range(5):
        world.add_user(f"user-{index}", node="many" if index else "few")
    # Three each, whatever the scheduler thought of it.
    for index, pod in enumerate(sorted(pod.key for pod in world.pods.values() if pod.priority < 0)):
        placeholder = world.pods[pod]
        world.pods.pop(pod)
        world._state.remove_pod(pod)
        world._add_pod(replace(placeholder, node_name=("few", "many")[index % 2]))
    world.run(5)
    world.add_node("new")
    assert world.marked_after(400) == ["new"]
    world.document["placeholderMover"]["evictionsPerMinute"] = 2
    world.start_leader()
    world.run(300)
    assert [eviction.source for eviction in world.evictions] == ["many"] * 3 + ["few"] * 3


def test_no_placeholder_goes_to_a_marked_node_that_has_more_users_than_its_own() -> None:
    world = settled_world(users=2)
    world.add_node("new")
    for index in range(3):
        world.add_user(f"early-{index}", node="new")
    # Builds and nodes' agents are no users.
    for index, labels in enumerate([{}, {"component": "binderhub-build"}]):
        pod = Pod(NAMESPACE, f"other-{index}", f"uid-other-{index}", labels, node_name="new")
        world._add_pod(pod)
    assert world.marked_after(300) == ["new"]
    assert not world.evictions
    assert world.gauge("placeholder_moves_held", "more users are on the marked node") == 6
    world.remove_pod("jhub/early-0")
    world.run(40)
    assert world.evictions


def test_a_placeholder_that_the_scheduler_would_put_back_stays() -> None:
    world = settled_world()
    # Its class prefers another node even more than the mark.
    strong = [
        {
            "weight": 100,
            "preference": {"matchExpressions": [{"key": "strong", "operator": "Exists"}]},
        }
    ] * 2
    spec = world._template["spec"]["template"]["spec"]
    spec["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"] += strong
    world.change_node("old", labels={"strong": "true"})
    for pod in list(world.pods.values()):
        if pod.priority < 0:
            world.remove_pod(pod.key)
    world.run(10)
    assert world.count_placeholders("old") == 6
    world.add_node("new")
    assert world.marked_after(600) == ["new"]
    assert not world.evictions
    why = "the scheduler would put them elsewhere"
    assert world.gauge("placeholder_moves_held", why) == 6


def test_placeholders_that_find_no_room_on_the_marked_node_are_held_for_it() -> None:
    world = settled_world()
    world.add_node("new", pods=4)
    assert world.marked_after(600) == ["new"]
    elsewhere = 6 - world.count_placeholders("new")
    assert 0 < elsewhere < 6
    assert world.gauge("placeholder_moves_held", "the marked node has no room") == elsewhere


@pytest.mark.parametrize("nominated", ["gone-long-ago", "another"])
def test_a_nomination_to_a_node_that_no_move_touches_holds_nothing_up(nominated: str) -> None:
    world = settled_world()
    world.add_node("another")
    world.change_node("another", taints=(Taint("somebody.else/dedicated", "gpu", "NoSchedule"),))
    ghost = Pod("elsewhere", "ghost", "uid-ghost", nominated_node=nominated, scheduler_name="other")
    real = world.snapshot

    def haunted() -> Snapshot:
        found = real()
        return replace(found, pods={**found.pods, ghost.key: ghost})

    world.snapshot = haunted  # type: ignore[method-assign] # the scheduler doesn't see the ghost, the mover does
    world.start_leader()
    world.add_node("new")
    world.run(600)
    assert world.count_placeholders("new") == 6


def test_nothing_moves_from_or_to_a_node_that_is_being_drained() -> None:
    world = settled_world()
    world.add_node("new")
    world.run(25)
    world.change_node("old", cordoned=True)
    assert world.marked_after(300) == ["new"]
    assert not world.evictions, "its drainer does that"
    world.change_node("old", cordoned=False)
    world.run(5)
    assert world.evictions


CORDONED = Reason("cordoned")
FLAPPING = Reason("flapping", 90.0)


@pytest.mark.parametrize(
    "of_nodes",
    [
        [CORDONED, FLAPPING],
        [FLAPPING, CORDONED],
        [FLAPPING, Reason("flapping", 30.0)],
        [CORDONED, CORDONED],
    ],
)
def test_each_nodes_reason_to_keep_placeholders_is_counted(of_nodes: list[Reason]) -> None:
    reasons = dict(zip("ab", of_nodes, strict=True))
    nodes = {name: SimpleNamespace(name=name, uid=name) for name in ("a", "b", "marked")}
    view = SimpleNamespace(snapshot=SimpleNamespace(nodes=nodes), count_users=lambda _node: 0)
    judge = SimpleNamespace(why_unmoved=lambda node: reasons[node.name])
    pods = [Pod("jhub", f"placeholder-{name}", f"uid-{name}", node_name=name) for name in "ab"]
    chosen, held = moves._choose_moves(
        cast("Any", view),
        cast("Any", judge),
        cast("Any", None),
        cast("Any", SimpleNamespace(node="marked")),
        pods,
        unneeded=frozenset(),
        budget=5,
    )
    assert chosen == []
    assert held == Counter(
        Reason(f"their node: {reason.text}", reason.seconds_left) for reason in of_nodes
    )


def test_nothing_moves_while_a_puller_is_at_work_on_either_node() -> None:
    world = settled_world()
    labels = {"app.kubernetes.io/part-of": "roost", "app.kubernetes.io/component": "popular-puller"}
    world.pods["jhub/pull"] = Pod(
        "jhub", "pull", "uid-pull", labels, node_name="new", phase="Pending"
    )
    world.add_node("new")
    assert world.marked_after(300) == ["new"]
    assert not world.evictions
    world.pods.pop("jhub/pull")
    world.run(40)
    assert world.evictions


def test_the_next_move_waits_until_the_successor_of_the_last_is_bound() -> None:
    world = settled_world(evictionsPerMinute=5)
    world.add_node("new")
    world.run(25)
    world.schedules = False
    world.run(120)
    assert len(world.evictions) == 5
    world.run(400)
    assert len(world.evictions) == 5
    world.schedules = True
    world.place()
    world.run(60)
    assert len(world.evictions) == 6


def test_a_refused_eviction_makes_the_mover_wait_too() -> None:
    world = settled_world(backOffSeconds=60)
    world.refuses = True
    world.add_node("new")
    world.run(70)
    assert world.gauge("placeholder_back_off_seconds") > 20
    world.refuses = False
    world.run(15)
    assert not world.evictions
    world.run(15)
    assert world.evictions


def test_only_pods_that_the_sets_own_stateful_set_made_are_ever_evicted() -> None:
    world = settled_world(placeholders=2)
    real = next(pod for pod in world.pods.values() if pod.priority < 0)
    assert real.owner is not None
    impostors = [
        replace(real, name="owned-by-another", uid="1", owner=replace_owner(real, uid="another")),
        replace(real, name="owned-by-nobody", uid="2", owner=None),
        replace(
            real,
            name="of-another-release",
            uid="3",
            labels={**real.labels, "app.kubernetes.io/instance": "hub2"},
        ),
        replace(real, namespace="elsewhere", name="elsewhere", uid="4"),
        replace(real, name="unlabelled", uid="5", labels={"component": "user-placeholder"}),
        replace(
            real,
            name="part-of-else",
            uid="6",
            labels={**real.labels, "app.kubernetes.io/part-of": "x"},
        ),
    ]
    for pod in impostors:
        world._add_pod(pod)
    world.add_node("new")
    world.run(300)
    assert sorted(eviction.pod for eviction in world.evictions) == [
        "hub-roost-placeholder-default-0",
        "hub-roost-placeholder-default-1",
    ]


def replace_owner(pod: Pod, **changes: str) -> Any:
    """The pod's owner with changes."""
    assert pod.owner is not None
    return pod.owner._replace(**changes)


HELD: dict[str, Callable[[MoverWorld], object]] = {
    "placeholders are pending": lambda world: setattr(world, "placeholders", 7),
    "a user waits for room": lambda world: world.add_user("waiting"),
}


@pytest.mark.parametrize("why", HELD)
def test_nothing_moves_while_a_placeholder_of_the_set_is_pending_or_a_user_waits_for_a_pre_emption(
    why: str,
) -> None:
    world = settled_world()
    world.schedules = False
    HELD[why](world)
    world.fill_placeholders()
    for pod in [pod for pod in world.pods.values() if not pod.node_name and pod.priority >= 0]:
        world._add_pod(replace(pod, nominated_node="old"))
    world.add_node("new")
    world.run(600)
    assert not world.evictions
    assert world.gauge("placeholder_moves_held", why) == 6


def test_a_set_that_is_rolled_out_or_gone_is_left_alone() -> None:
    world = settled_world()
    world.add_node("new")
    settings = world.mover_settings()
    snapshot = world.snapshot()
    memory = plan_placeholder_mover(
        snapshot, MoverMemory(), settings, Moment(world.now, world.now)
    ).memory
    marked_labels = {**world.nodes["new"].labels, PULLED: "true", LABEL: "true"}
    world.nodes["new"] = replace(world.nodes["new"], labels=marked_labels)
    later = Moment(world.now + 400, world.now + 400)
    for sets, evicts in (
        (snapshot.stateful_sets, True),
        ({}, False),
        (
            {name: replace(one, is_rolling=True) for name, one in snapshot.stateful_sets.items()},
            False,
        ),
        (
            {name: replace(one, uid="made-anew") for name, one in snapshot.stateful_sets.items()},
            False,
        ),
        ({name: replace(one, replicas=9) for name, one in snapshot.stateful_sets.items()}, False),
    ):
        marked = plan_placeholder_mover(
            replace(snapshot, stateful_sets=sets), memory, settings, later
        )
        again = Moment(later.wall + 40, later.steady + 40)
        planned = plan_placeholder_mover(
            replace(snapshot, stateful_sets=sets), marked.memory, settings, again
        )
        assert any(type(action).__name__ == "EvictPod" for action in planned.actions) is evicts, (
            sets
        )


@pytest.mark.parametrize(
    ("unknown", "moves"), [("user", True), ("placeholder", False), ("extenders", False)]
)
def test_placeholders_of_an_unknown_scheduler_stay_marks_go_and_the_event_says_what_to_mend(
    unknown: str, moves: bool
) -> None:
    world = settled_world()
    name = f"{RELEASE}.{NAMESPACE}.{unknown}"
    fault = (
        f"profile {name}: pluginConfig: NodeAffinity: found addedAffinity, which Roost doesn't"
        " model. Leave it out."
    )
    if unknown == "extenders":
        world.configuration["extenders"] = [{"urlPrefix": "http://x", "filterVerb": "filter"}]
        fault = "extenders: found"
    for profile in world.configuration["profiles"]:
        if profile["schedulerName"] == name:
            profile["pluginConfig"].append({"name": "NodeAffinity", "args": {"addedAffinity": {}}})
    world.start_leader()
    world.add_node("new")
    assert world.marked_after(300) == ["new"]
    world.run(300)
    assert bool(world.evictions) == moves
    assert any(fault in said for said in world.said) != moves


def test_sets_take_turns_where_one_plan_cannot_ask_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moves, "MAX_PREDICTIONS", 1)
    world = settled_world(placeholders=2)
    first = world.document["placeholders"][0]
    world.document["placeholders"] = [first, {**first, "name": "second", "statefulSet": "second"}]
    second = attract_label(RELEASE, NAMESPACE, "second")
    world.add_node("new")
    world.run(400)
    for pod in [pod for pod in world.pods.values() if pod.priority < 0]:
        world.pods[pod.key] = replace(pod, node_name="old")
    world.change_node("new", labels={LABEL: "true", second: "true"})
    real = world.snapshot()
    twins = {
        f"{NAMESPACE}/second-{index}": replace(
            pod,
            name=f"second-{index}",
            uid=f"second-{index}",
            labels={**pod.labels, PLACEHOLDER_SET_LABEL: "second"},
            owner=replace_owner(pod, name="second", uid="uid-second"),
        )
        for index, pod in enumerate(pod for pod in world.pods.values() if pod.priority < 0)
    }
    sets = {**real.stateful_sets, "second": StatefulSetState("second", "uid-second", 2)}
    snapshot = replace(real, pods={**world.pods, **twins}, stateful_sets=sets)
    memory, asked, held = MoverMemory(), [], []
    settings = world.mover_settings()
    for turn in range(40):
        now = Moment(world.now + turn, world.now + turn)
        planned = plan_placeholder_mover(snapshot, memory, settings, now)
        memory = planned.memory
        asked += [action.name for action in planned.actions if isinstance(action, EvictPod)]
        held += list(planned.gauges["placeholder_moves_held"])
    assert {name.startswith("second") for name in asked} == {True, False}
    assert ("second", "other sets come first") in held
    assert ("default", "other sets come first") in held


def test_a_set_is_being_rolled_out_from_the_moment_of_its_change() -> None:
    item: Any = {
        "metadata": {"name": "placeholders", "generation": 2},
        "spec": {"replicas": 3},
        "status": {"observedGeneration": 2, "updateRevision": "a", "currentRevision": "a"},
    }
    assert not read_stateful_set(item).is_rolling
    item["metadata"]["generation"] = 3
    assert read_stateful_set(item).is_rolling, "its controller hasn't seen the change"
    item["status"] |= {"observedGeneration": 3, "updateRevision": "b"}
    assert read_stateful_set(item).is_rolling
    item["status"]["currentRevision"] = "b"
    assert not read_stateful_set(item).is_rolling


def test_a_clock_that_jumps_moves_nothing_twice() -> None:
    world = settled_world()
    settings = world.mover_settings()
    world.add_node("new")
    memory = MoverMemory()
    for wall, steady in ((0.0, 0.0), (-90_000.0, 1.0), (90_000.0, 2.0), (0.0, 3.0)):
        now = Moment(world.now + wall, world.now + steady)
        planned = plan_placeholder_mover(world.snapshot(), memory, settings, now)
        memory = planned.memory
        assert not [action for action in planned.actions if type(action).__name__ == "EvictPod"]


@pytest.mark.parametrize("minor", [35, 36, 37])
def test_the_clusters_minor_decides_how_the_scheduler_is_modelled(minor: int) -> None:
    world = MoverWorld()
    read = Reader()
    profiles = read_mover_settings(
        ReleaseDocument(read, world.document, world.configuration, minor)
    ).profiles
    assert len(profiles) > 3
    assert {profile.minor for profile in profiles.values()} == {minor}
    assert ("VolumeBinding" in dict(profiles["default-scheduler"].scores)) == (minor >= 37)


def test_faults_of_the_settings_come_with_their_keys() -> None:
    world = MoverWorld()
    world.document["placeholderMover"] |= {
        "evictionsPerMinute": "few",
        "flapSeconds": "soon",
        "evictionsAMinute": 5,
    }
    world.document["placeholders"][0]["nodeSelector"] = {"pool": 7}
    read = Reader()
    read_mover_settings(ReleaseDocument(read, world.document, world.configuration, NEWEST_MINOR))
    assert sorted(fault.key for fault in read.faults) == [
        "placeholderMover.evictionsAMinute",
        "placeholderMover.evictionsPerMinute",
        "placeholderMover.flapSeconds",
        "placeholders[0].nodeSelector.pool",
    ]


@pytest.mark.parametrize("component", ["puller", "popular-puller"])
def test_without_a_gate_nodes_need_no_images_but_pullers_must_be_done(component: str) -> None:
    world = settled_world()
    world.document["imageGate"]["mode"] = "off"
    labels = {"app.kubernetes.io/part-of": "roost", "app.kubernetes.io/component": component}
    world.pods["jhub/pull"] = Pod(
        "jhub", "pull", "uid-pull", labels, node_name="new", phase="Pending"
    )
    world.start_leader()
    world.add_node("new", imaged=False)
    assert world.marked_after(300) == ["old"]
    world.pods.pop("jhub/pull")
    assert world.marked_after(70) == ["new"]


def test_a_large_cluster_is_learnt_in_parts_and_is_whole_only_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(scheduler_model, "MAX_NEW_PODS", 10)
    pods = {
        f"hub/p{index}": Pod(namespace="hub", name=f"p{index}", node_name="n")
        for index in range(25)
    }
    snapshot = Snapshot("hub", "hub", {"n": Node(name="n")}, pods)
    model = SchedulerModel()
    assert [model.follow(snapshot) for _ in range(4)] == [False, False, True, True]


@pytest.mark.parametrize(
    ("minor", "taints", "expected"),
    [
        (34, (), Prediction.ELSEWHERE),
        (35, (), Prediction.TARGET),
        # Where one node is the best, nothing is left to chance.
        (34, (Taint("somebody.else/rather-not", "", "PreferNoSchedule"),), Prediction.TARGET),
    ],
)
def test_nothing_moves_to_one_of_two_equal_nodes_picked_by_chance(
    minor: int, taints: tuple[Taint, ...], expected: Prediction
) -> None:
    room = {"cpu": 4000, "memory": 2**33, "pods": 110}
    nodes = {
        name: Node(name=name, allocatable=room, created=index) for index, name in enumerate("ab")
    }
    nodes["b"] = replace(nodes["b"], taints=taints)
    pod = Pod(namespace="hub", name="p", node_name="b")
    model = SchedulerModel()
    model.follow(Snapshot("hub", "hub", nodes, {pod.key: pod}))
    assert model.try_move(pod, "a", default_profile(minor)) is expected
    assert model.try_move(pod, "none", default_profile(minor)) is Prediction.ELSEWHERE
    # A plan makes so many at most.
    assert model.predictions == 2
    model.undo()
    assert model.predictions == 0


def test_a_plan_asks_the_model_twenty_times_and_tells_what_holds_each_other_placeholder() -> None:
    world = settled_world(placeholders=2)
    real = next(pod for pod in world.pods.values() if pod.priority < 0)
    for name in ("drained", "new"):
        world.add_node(name)
    world.run(400)
    world.change_node("drained", cordoned=True)
    world.change_node("new", labels={LABEL: "true"})
    strangers = [pod for pod in world.pods.values() if pod.namespace != real.namespace]
    placeholders = [
        replace(real, name=f"p-{index}", uid=f"p-{index}", node_name=node)
        for index, node in enumerate(["old"] * 28 + ["drained"] * 2)
    ]
    snapshot = world.snapshot()
    (name,) = snapshot.stateful_sets
    room = {"cpu": 64_000, "memory": 2**40, "pods": 110}
    snapshot = replace(
        snapshot,
        nodes={node.name: replace(node, allocatable=room) for node in world.nodes.values()},
        pods={pod.key: pod for pod in [*placeholders, *strangers]},
        stateful_sets={name: replace(snapshot.stateful_sets[name], replicas=30)},
    )
    settings = replace(world.mover_settings(), evictions_per_minute=25)
    now = Moment(world.now, world.now)
    planned = plan_placeholder_mover(snapshot, MoverMemory(), settings, now)
    assert sum(isinstance(action, EvictPod) for action in planned.actions) == 20
    assert planned.gauges["placeholder_moves_held"] == {
        ("default", "their node: cordoned"): 2,
        ("default", "the next plan goes on"): 8,
    }
