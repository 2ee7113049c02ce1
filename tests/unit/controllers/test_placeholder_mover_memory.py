"""What the placeholder mover remembers of nodes, marks and evictions, for how long, and what it
shows of that.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from roost.controllers.contract.actions import ChangeNode, Done, EvictPod, Notice, Outcome
from roost.controllers.contract.back_off import BackOff
from roost.controllers.contract.snapshot import Moment, Snapshot, StatefulSetState
from roost.controllers.placeholder_mover.marks import NodeMark
from roost.controllers.placeholder_mover.move_memory import (
    Move,
    MoveMemory,
    note_moves,
    settle_moves,
)
from roost.controllers.placeholder_mover.node_fitness import (
    NodeHistory,
    NodeJudge,
    Reason,
    follow_nodes,
)
from roost.controllers.placeholder_mover.plan import MoverMemory, plan_placeholder_mover
from roost.controllers.placeholder_mover.settings import MoverSettings
from roost.controllers.placeholder_mover.view import MoverView
from roost_core.objects.node import Node
from roost_core.objects.pod import ContainerState, Owner, Pod, PodSpec
from roost_core.placement.labels import (
    OWN_COMPONENT_LABEL,
    OWN_PART,
    OWN_PULLER,
    PART_OF_LABEL,
    PLACEHOLDER_SET_LABEL,
    attract_label,
)
from tests.builders import NAMESPACE, RELEASE
from tests.mover_world import LABEL, PULLED, MoverWorld, settled_world

MOVE = Move("default", "jhub/p", "uid-1", "old", "new", at=100.0)


SETTINGS = MoverWorld().mover_settings()


def at(seconds: float) -> Moment:
    return Moment(seconds, seconds)


def placeholder(uid: str = "uid-2", node: str = "") -> Pod:
    return Pod("jhub", "p", uid, node_name=node)


def settled(pod: Pod | None, seconds: float, **before: Any) -> tuple[MoveMemory, list[str]]:
    """What is remembered of MOVE so many seconds after it, and reasons of Events."""
    memory, notices = settled_and_told(pod, seconds, **before)
    return memory, [notice.reason for notice in notices]


def settled_and_told(
    pod: Pod | None, seconds: float, **before: Any
) -> tuple[MoveMemory, list[Notice]]:
    """What is remembered of MOVE so many seconds after it, and Events."""
    pods = {} if pod is None else {pod.key: pod}
    return settle_moves(
        MoveMemory(in_flight=(MOVE,), **before),
        Snapshot(RELEASE, NAMESPACE, pods=pods),
        SETTINGS,
        at(MOVE.at + seconds),
    )


@pytest.mark.parametrize(
    ("pod", "seconds"),
    [(None, 60.0), (placeholder(uid="uid-1", node="old"), 60.0), (placeholder(), 600.0)],
    ids=["no successor", "evicted in vain", "a successor without a node"],
)
def test_an_eviction_is_waited_for_until_it_came_to_nothing(
    pod: Pod | None, seconds: float
) -> None:
    memory, said = settled(pod, seconds - 0.5)
    assert (memory.in_flight, memory.back_offs, said) == ((MOVE,), {}, [])
    memory, said = settled(pod, seconds)
    assert (memory.in_flight, memory.back_offs, said) == ((), {}, [])


@pytest.mark.parametrize(("until", "is_kept"), [(105.0, False), (105.5, True)])
def test_a_right_prediction_ends_a_pause_that_is_over(until: float, *, is_kept: bool) -> None:
    before = {"default": BackOff(2, until)}
    memory, said = settled(placeholder(node="new"), 5.0, back_offs=before)
    assert (memory.in_flight, memory.back_offs, said) == ((), before if is_kept else {}, [])


def test_a_wrong_prediction_is_told_and_pauses_the_set() -> None:
    memory, (told,) = settled_and_told(placeholder(node="old"), 5.0)
    assert (memory.in_flight, memory.back_offs) == ((), {"default": BackOff(1, 165.0)})
    assert told.reason == "PlaceholderMovedElsewhere"
    assert told.message == (
        "This placeholder was to move from old to new but came back;"
        " no other of set default moves for 60 s."
    )
    memory, _ = settled(placeholder(node="old"), 70.0, back_offs=memory.back_offs)
    assert memory.back_offs == {"default": BackOff(2, 290.0)}


def test_pauses_double_up_to_a_quarter_of_an_hour() -> None:
    pauses: list[float] = []
    back_offs: Mapping[str, BackOff] = {}
    for _ in range(6):
        # Once the pause is over.
        seconds = 5.0 + sum(pauses)
        memory, _ = settled(placeholder(node="old"), seconds, back_offs=back_offs)
        back_offs = memory.back_offs
        pauses.append(back_offs["default"].until - MOVE.at - seconds)
    assert pauses == [60.0, 120.0, 240.0, 480.0, 900.0, 900.0]


def test_a_minutes_evictions_count_for_a_minute_and_sets_that_are_gone_have_no_pause() -> None:
    gone = {"gone": BackOff(1, 1000.0)}
    memory, _ = settled(None, 60.0, evictions=(100.0, 100.5), back_offs=gone)
    assert (memory.evictions, memory.back_offs) == ((100.5,), {})


@pytest.mark.parametrize(
    ("outcome", "counts", "is_in_flight", "pauses"),
    [
        (Outcome.DONE, True, True, False),
        (Outcome.FAILED, True, True, False),
        (Outcome.REFUSED, True, False, True),
        (Outcome.HELD_BACK, False, False, False),
    ],
)
def test_what_was_evicted_is_remembered_by_its_outcome(
    outcome: Outcome, *, counts: bool, is_in_flight: bool, pauses: bool
) -> None:
    memory = MoveMemory(requested={"uid-1": MOVE})
    evict = EvictPod(namespace="jhub", name="p", uid="uid-1", why="")
    other = ChangeNode(node="a", uid="a", why="")
    noted = note_moves(memory, [Done(other, outcome), Done(evict, outcome)], SETTINGS, at(7.0))
    assert noted.evictions == ((7.0,) if counts else ())
    assert noted.in_flight == ((MOVE._replace(at=7.0),) if is_in_flight else ())
    assert noted.back_offs == ({"default": BackOff(1, 67.0)} if pauses else {})
    assert noted.requested == {}


def test_of_nodes_only_what_still_matters_is_remembered() -> None:
    nodes = {name: Node(name, uid=name, ready=name != "lost") for name in ("a", "b", "lost")}
    before = NodeHistory(
        ready=frozenset({"a", "lost"}),
        lost={"a": 700.0, "b": 700.5},
        fitness={
            ("gone", "x"): (False, 990.0),
            ("a", "long fit"): (True, 969.0),
            ("a", "just fit"): (True, 970.0),
            ("a", "long unfit"): (False, 100.0),
        },
    )
    after = follow_nodes(before, Snapshot(RELEASE, NAMESPACE, nodes), SETTINGS, at(1000.0))
    assert after.ready == frozenset({"a", "b"})
    assert after.lost == {"b": 700.5, "lost": 1000.0}
    assert after.fitness == {("a", "just fit"): (True, 970.0), ("a", "long unfit"): (False, 100.0)}


@pytest.mark.parametrize(
    ("ready_since", "now", "reason"),
    [
        (400.0, 500.0, None),
        (401.0, 500.0, Reason("flapping", 201.0)),
        (401.0, 700.5, Reason("flapping", 0.5)),
        (401.0, 701.0, None),
    ],
)
def test_a_node_that_got_ready_long_after_it_joined_was_ready_before(
    ready_since: float, now: float, reason: Reason | None
) -> None:
    node = Node("a", {PULLED: "true"}, uid="a", ready=True, created=100.0, ready_since=ready_since)
    view = MoverView(Snapshot(RELEASE, NAMESPACE, {"a": node}), SETTINGS, at(now))
    assert NodeJudge(view, NodeHistory()).why_unmoved(node) == reason


@pytest.mark.parametrize(
    ("seconds_left", "reason"), [(0.5, Reason("ready for too short a time", 0.5)), (0.0, None)]
)
def test_a_node_is_marked_once_it_has_been_ready_for_the_whole_time(
    seconds_left: float, reason: Reason | None
) -> None:
    ready_since = 10_000.0 - SETTINGS.mark_after_seconds + seconds_left
    node = Node(
        "a", {PULLED: "true"}, uid="a", ready=True, created=ready_since, ready_since=ready_since
    )
    view = MoverView(Snapshot(RELEASE, NAMESPACE, {"a": node}), SETTINGS, at(10_000.0))
    assert NodeJudge(view, NodeHistory()).judge_attraction(node, SETTINGS.sets[0]) == reason


def test_a_node_that_was_unfit_for_long_is_marked_half_a_minute_after_it_is_fit_again() -> None:
    world = settled_world(placeholders=2, evictionsPerMinute=0)
    world.add_node("new")
    world.change_node("new", cordoned=True)
    assert world.marked_after(600) == ["old"]
    world.change_node("new", cordoned=False)
    assert world.marked_after(29) == ["old"]
    assert world.marked_after(3) == ["new"]


def test_a_node_gains_the_mark_before_another_loses_it() -> None:
    world = settled_world(placeholders=2, evictionsPerMinute=0)
    world.add_node("z-new")
    seen: list[str] = []
    real = world.on_labels

    def note_labels(name: str, uid: str, labels: Mapping[str, str | None]) -> None:
        seen.append(name)
        real(name, uid, labels)

    world.on_labels = note_labels  # type: ignore[method-assign] # what is written, in order
    assert world.marked_after(60) == ["z-new"]
    assert seen == ["z-new", "old"]


def test_the_gauges_say_where_placeholders_are_and_how_old_the_marked_node_is() -> None:
    world = settled_world(placeholders=6, evictionsPerMinute=0)

    def states() -> list[float]:
        return [world.gauge("placeholders{", state) for state in ("marked", "bound", "pending")]

    assert states() == [6, 0, 0]
    world.add_node("new")
    assert world.marked_after(100) == ["new"]
    assert states() == [0, 6, 0]
    age_seconds = world.gauge("placeholder_marked_node_age_seconds")
    assert age_seconds == pytest.approx(world.now - world.nodes["new"].created, abs=60)
    world.schedules = False
    world.placeholders = 7
    world.fill_placeholders()
    world.run(5)
    assert states() == [0, 6, 1]


def test_a_pauses_gauge_counts_down() -> None:
    world = settled_world()
    world.refuses = True
    world.add_node("new")
    seconds_left = []
    for _ in range(60):
        world.run(5)
        seconds_left.append(world.gauge("placeholder_back_off_seconds"))
    assert 0 < max(seconds_left) <= 240


def two_sets() -> tuple[MoverSettings, Snapshot, float]:
    """Two sets of two placeholders that would all move from `old` to `new`, and the time."""
    world = settled_world(placeholders=2)
    first = world.document["placeholders"][0]
    world.document["placeholders"] = [first, {**first, "name": "second", "statefulSet": "second"}]
    world.add_node("new")
    world.run(400)
    mine = [replace(pod, node_name="old") for pod in world.pods.values() if pod.priority < 0]
    others = [
        replace(
            pod,
            name=f"second-{index}",
            uid=f"second-{index}",
            labels={**pod.labels, PLACEHOLDER_SET_LABEL: "second"},
            owner=Owner("StatefulSet", "second", "uid-second"),
        )
        for index, pod in enumerate(mine)
    ]
    marks = {LABEL: "true", attract_label(RELEASE, NAMESPACE, "second"): "true"}
    world.change_node("new", labels=marks)
    real = world.snapshot()
    snapshot = replace(
        real,
        pods={**world.pods, **{pod.key: pod for pod in (*mine, *others)}},
        stateful_sets={**real.stateful_sets, "second": StatefulSetState("second", "uid-second", 2)},
    )
    return world.mover_settings(), snapshot, world.now


@pytest.mark.parametrize(("earlier", "asked"), [((), 3), ((-20.0,), 2), ((-20.0, -10.0, -5.0), 0)])
def test_the_minutes_evictions_are_those_of_all_sets(
    earlier: tuple[float, ...], asked: int
) -> None:
    settings, snapshot, now = two_sets()
    settings = replace(settings, evictions_per_minute=3)
    planned = plan_placeholder_mover(snapshot, MoverMemory(), settings, at(now))
    later = now + 400.0
    moves = MoveMemory(evictions=tuple(later + seconds for seconds in earlier))
    memory = replace(planned.memory, moves=moves)
    planned = plan_placeholder_mover(snapshot, memory, settings, at(later))
    evicted = [action for action in planned.actions if isinstance(action, EvictPod)]
    assert len(evicted) == asked
    held = planned.gauges["placeholder_moves_held"]
    used_up = {name for name, reason in held if reason == "the minute's evictions are used up"}
    assert len(used_up) == (2 if asked == 0 else 1)
    if asked == 0:
        # When the first of them is a minute old, and a little later.
        assert planned.wake_after_seconds == pytest.approx(40.1)


@pytest.mark.parametrize(("marked", "later"), [("a", "b"), ("b", "a")])
def test_of_two_nodes_of_the_same_second_the_marked_one_keeps_the_mark(
    marked: str, later: str
) -> None:
    world = MoverWorld(2, evictionsPerMinute=0)
    world.add_node("a")
    world.add_node("b")
    world.change_node(later, ready=False)
    world.fill_placeholders()
    assert world.marked_after(60) == [marked]
    world.change_node(later, ready=True)
    assert world.marked_after(1000) == [marked]


@pytest.mark.parametrize(
    ("marked", "seconds_left", "then"),
    [
        ("old", 0.5, "old"),
        ("old", 0.0, "new"),
        # Unfit, a newer node keeps it for as long again as it would count as flapping.
        ("new", 300.0, "new"),
        ("new", 0.5, "new"),
        ("new", 0.0, "old"),
    ],
)
def test_a_mark_goes_to_another_node_once_its_whole_time_is_over(
    marked: str, seconds_left: float, then: str
) -> None:
    now = 10_000.0
    nodes = {
        name: Node(
            name, {PULLED: "true"}, uid=name, ready=True, created=created, ready_since=created
        )
        for name, created in (("old", 1000.0), ("new", 2000.0))
    }
    nodes["new"] = replace(nodes["new"], unschedulable=marked == "new")
    since = now + seconds_left - SETTINGS.keep_mark_seconds
    unfit_since = since - SETTINGS.flap_seconds
    memory = MoverMemory(
        NodeHistory(fitness={("new", "default"): (False, unfit_since)} if marked == "new" else {}),
        marks={"default": NodeMark(marked, marked, since)},
    )
    planned = plan_placeholder_mover(Snapshot(RELEASE, NAMESPACE, nodes), memory, SETTINGS, at(now))
    assert planned.memory.marks["default"].node == then


def test_a_set_without_its_stateful_set_is_told_of_nothing() -> None:
    world = settled_world()
    world.configuration["extenders"] = [{"urlPrefix": "http://x", "filterVerb": "filter"}]
    planned = plan_placeholder_mover(
        replace(world.snapshot(), stateful_sets={}),
        MoverMemory(),
        world.mover_settings(),
        at(world.now),
    )
    assert not [action for action in planned.actions if isinstance(action, Notice)]


@pytest.mark.parametrize(("waiting", "pulls"), [("", True), ("ErrImagePull", False)])
def test_a_puller_that_cannot_pull_is_not_at_work(waiting: str, *, pulls: bool) -> None:
    labels = {PART_OF_LABEL: OWN_PART, OWN_COMPONENT_LABEL: OWN_PULLER}
    puller = Pod(
        "jhub",
        "puller",
        "uid-puller",
        labels,
        node_name="a",
        phase="Pending",
        containers=(ContainerState("x", waiting_reason=waiting),),
    )
    view = MoverView(Snapshot(RELEASE, NAMESPACE, pods={puller.key: puller}), SETTINGS, at(0.0))
    assert view.pulling_on == ({"a"} if pulls else set())


@pytest.mark.parametrize(
    ("has", "asks", "has_room"),
    [
        ({"pods": 2, "cpu": 4}, {"cpu": 1}, False),
        ({"pods": 3, "cpu": 2}, {"cpu": 1}, True),
        ({"pods": 3, "cpu": 1}, {"cpu": 1}, False),
        # Of what it doesn't name, a node has nothing.
        ({"cpu": 4}, {"cpu": 1}, False),
        ({"pods": 3, "cpu": 4}, {"cpu": 1, "example.org/gpu": 1}, False),
        # Who asks for none of it fits, however little is left.
        ({"pods": 3, "cpu": 0}, {"cpu": 0}, True),
        # A device that nodes may have without listing it keeps nobody away.
        ({"pods": 3, "cpu": 4}, {"cpu": 1, "example.org/claimable": 1}, True),
    ],
)
def test_a_node_has_room_while_it_takes_one_more_pod_of_that_size(
    has: dict[str, int], asks: dict[str, int], *, has_room: bool
) -> None:
    there = Pod("jhub", "there", "uid-there", node_name="a", spec=PodSpec(requests=(("cpu", 1),)))
    # It takes a place, and no CPU.
    agent = Pod("jhub", "agent", "uid-agent", node_name="a")
    node = Node("a", allocatable=has)
    snapshot = Snapshot(
        RELEASE,
        NAMESPACE,
        {"a": node},
        {there.key: there, agent.key: agent},
        claimable=frozenset({"example.org/claimable"}),
    )
    spec = PodSpec(requests=tuple(asks.items()))
    assert MoverView(snapshot, SETTINGS, at(0.0)).has_room(node, spec) is has_room


def test_an_empty_node_that_names_no_number_of_pods_takes_none() -> None:
    node = Node("a", allocatable={"cpu": 4})
    view = MoverView(Snapshot(RELEASE, NAMESPACE, {"a": node}), SETTINGS, at(0.0))
    assert not view.has_room(node, PodSpec(requests=(("cpu", 1),)))


@pytest.mark.parametrize("holds", ["a pause", "a pause that is over", "a move"])
def test_what_holds_one_set_holds_no_other(holds: str) -> None:
    settings, snapshot, now = two_sets()
    planned = plan_placeholder_mover(snapshot, MoverMemory(), settings, at(now))
    later = now + 400.0
    moves = {
        "a pause": MoveMemory(back_offs={"default": BackOff(1, later + 30.0)}),
        "a pause that is over": MoveMemory(back_offs={"default": BackOff(1, later)}),
        "a move": MoveMemory(in_flight=(MOVE._replace(at=later),)),
    }[holds]
    memory = replace(planned.memory, moves=moves)
    planned = plan_placeholder_mover(snapshot, memory, settings, at(later))
    evicted = [action.name for action in planned.actions if isinstance(action, EvictPod)]
    assert [name for name in sorted(evicted) if name.startswith("second")] == [
        "second-0",
        "second-1",
    ]
    assert len(evicted) == (4 if holds == "a pause that is over" else 2)
    if holds == "a pause":
        assert planned.wake_after_seconds == pytest.approx(30.1)
