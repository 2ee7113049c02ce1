"""Headroom that learns: which pods count, what is stored, and what a set has when the history is
absent or wrong.
"""

import json
import re
from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any
from unittest import mock

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from roost.controllers.contract.actions import Action, KeepHistory, Notice, ScaleSet
from roost.controllers.contract.snapshot import Moment, Snapshot, StatefulSetState
from roost.controllers.headroom import learning
from roost.controllers.headroom.accounting import week_begin
from roost.controllers.headroom.plan import CONTROLLER as HEADROOM
from roost_core.objects.node import Node
from roost_core.objects.pod import Owner, Pod, PodSpec
from roost_core.objects.selectors import Taint
from roost_core.placement.headroom_account import Account, Week, Why
from roost_core.placement.headroom_cut import cut_classes
from roost_core.placement.headroom_forecast import steady_needs
from roost_core.placement.headroom_history import UNUSABLE_SUFFIX, History, read_history
from roost_core.placement.headroom_windows import parse_moment
from roost_core.placement.labels import PLACEHOLDER_SET_LABEL
from tests.builders import NAMESPACE, RELEASE, release_document
from tests.unit.controllers.planners import faults_of, planner_from

SET = "hub-roost-placeholder-default"
HISTORY = "hub-roost-headroom-history"
# A Monday, 12:00.
NOW = parse_moment("2026-10-05T12:00", "UTC")
LEARN = {"min": 1, "max": 60, "timeZone": "UTC"}
PRICES = {"waitingHour": 4, "nodeHour": 0.4, "monthlyCeiling": 200}
DAY = {"name": "day", "replicas": 30, "timeZone": "UTC", "start": "0 8 * * *", "end": "0 18 * * *"}
USER = {"component": "singleuser-server"}


def _document(**changes: object) -> dict[str, Any]:
    """changes: of the only set."""
    # What only has a limit requests as much.
    resources = {"requests": {"cpu": "100m"}, "limits": {"memory": "1Gi"}}
    one = {
        "name": "default",
        "replicas": 3,
        "nodeSelector": {"pool": "user"},
        "tolerations": [],
        "resources": resources,
    }
    document = release_document({"placeholders": [{**one, "learn": LEARN, "prices": PRICES}]})
    document["placeholders"][0] |= changes
    return document


def _history(people: int | list[int], days: int = 21, end: float = NOW) -> str:
    """Each day at noon so many come, for an hour; or, of several numbers, each day the next."""
    numbers = [people] if isinstance(people, int) else people
    levels = array("i", [0] * (days * 1440))
    for day in range(days):
        number = numbers[day % len(numbers)]
        levels[day * 1440 : day * 1440 + 60] = array("i", [0, *[number] * 59])
    return History(int(end // 60) - days * 1440, levels).as_text()


# Days of next week.
TO_COME = _history(50, end=NOW + 7 * 86_400)


@dataclass
class Hub:
    """One set on one node; what is planned is carried out."""

    document: dict[str, Any] = field(default_factory=_document)
    stored: Mapping[str, str] | None = field(default_factory=dict)
    now: float = NOW
    replicas: int = 3
    pods: dict[str, Pod] = field(default_factory=dict)
    nodes: dict[str, Node] = field(
        default_factory=lambda: {"n": Node("n", {"pool": "user"}, uid="uid-n")}
    )

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Another replica leads."""
        self.planner = planner_from(HEADROOM, self.document)

    def turn(self) -> list[Action]:
        sets = {SET: StatefulSetState(SET, "uid-set", self.replicas)}
        snapshot = Snapshot(RELEASE, NAMESPACE, self.nodes, self.pods, sets, histories=self.stored)
        planned = self.planner.plan(snapshot, Moment(self.now, self.now))
        self.gauges = planned.gauges
        for action in planned.actions:
            if isinstance(action, ScaleSet):
                self.replicas = action.replicas
            if isinstance(action, KeepHistory) and self.stored is not None:
                assert action.name == HISTORY
                self.stored = {**self.stored, **action.data}
        return list(planned.actions)

    def pass_minutes(self, minutes: int) -> list[Action]:
        actions = []
        for _ in range(minutes):
            self.now += 60.0
            actions += self.turn()
        return actions

    def add(
        self,
        name: str,
        *,
        node: str = "n",
        labels: Mapping[str, str] = USER,
        created: float = 0.0,
        **changes: Any,
    ) -> None:
        spec = PodSpec(requests=(("cpu", 100), ("memory", 2**30)), **changes)
        pod = Pod(
            NAMESPACE,
            name,
            labels=labels,
            node_name=node,
            phase="Running" if node else "Pending",
            spec=spec,
            created=created,
        )
        self.pods[f"{NAMESPACE}/{name}"] = pod

    def level(self) -> int:
        """What is stored of the minute that was stored last."""
        assert self.stored is not None
        history = read_history(self.stored["default"])
        return history.at(history.end - 1)


def test_a_set_has_the_forecast_within_min_and_max() -> None:
    for growth, replicas in ((0, 1), (20, 20), (500, 60)):
        hub = Hub(_document(), {"default": _history(growth)})
        hub.turn()
        assert hub.replicas == replicas
        assert hub.gauges["headroom_learned_hours"]["default",] == pytest.approx(21 * 24, abs=0.1)


def test_an_active_window_is_never_undercut_and_may_be_exceeded() -> None:
    quiet = Hub(_document(windows=[DAY]), {"default": _history(5)})
    quiet.turn()
    assert quiet.replicas == 30
    busy = Hub(_document(windows=[DAY]), {"default": _history(50)})
    busy.turn()
    assert busy.replicas == 50
    over = Hub(_document(windows=[{**DAY, "replicas": 80}]), {"default": _history(500)})
    over.turn()
    assert over.replicas == 80


@given(
    text=st.one_of(
        st.text(max_size=40),
        st.just("[" * 100_000),
        st.builds(_history, st.integers(0, 1000), st.integers(0, 30)),
    ),
    windows=st.lists(st.integers(0, 90), max_size=1),
    bounds=st.tuples(st.integers(0, 70), st.integers(0, 70)).map(sorted),
)
# Here `max` is below `replicas`, and a week is known.
@example(text=_history(0, 7), windows=[], bounds=[0, 0])
def test_whatever_is_stored_no_set_leaves_its_bounds(
    text: str, windows: list[int], bounds: list[int]
) -> None:
    low, high = bounds
    learn = {**LEARN, "min": low, "max": high}
    document = _document(learn=learn, windows=[{**DAY, "replicas": window} for window in windows])
    hub = Hub(document, {"default": text})
    hub.turn()
    by_values = (windows or [3])[0]
    assert hub.replicas == by_values or max([*windows, low]) <= hub.replicas <= max(
        [*windows, high]
    )


@pytest.mark.parametrize(
    "stored", ["", "{}", "\x00", _history(50)[:-4], _history(50, days=1), TO_COME]
)
def test_without_a_history_that_can_be_used_the_values_apply(stored: str) -> None:
    for windows, replicas in (([], 3), ([DAY], 30)):
        hub = Hub(_document(windows=windows), {"default": stored})
        actions = hub.turn()
        assert hub.replicas == replicas
        told = [action for action in actions if isinstance(action, Notice) and action.warning]
        is_faulty = bool(stored) and stored != _history(50, days=1)
        assert [notice.reason for notice in told] == ["HeadroomHistoryUnusable"] * is_faulty
        # It is said once.
        assert hub.pass_minutes(3) == []


def test_while_the_history_has_not_been_read_the_number_stays_and_nothing_is_written() -> None:
    hub = Hub(stored=None, replicas=40)
    hub.turn()
    assert hub.replicas == 40
    hub.add("early")
    # After a minute, the values apply; a history that is never readable is never written.
    actions = hub.pass_minutes(130)
    assert hub.replicas == 3
    assert not [action for action in actions if isinstance(action, KeepHistory)]


def test_users_who_come_and_wait_are_learned_and_stored_each_hour() -> None:
    hub = Hub(stored={"default": _history(2)})
    hub.pass_minutes(5)
    for index in range(7):
        hub.add(f"runs-{index}")
        hub.add(f"waits-{index}", node="")
    actions = hub.pass_minutes(60)
    # Once an hour.
    assert len([action for action in actions if isinstance(action, KeepHistory)]) == 1
    assert hub.level() == 14
    # A new leader goes on from there.
    hub.restart()
    hub.turn()
    assert hub.gauges["headroom_learned_hours"]["default",] == pytest.approx(21 * 24 + 1, abs=0.2)


def test_as_people_come_their_placeholders_go_and_what_nobody_takes_goes_within_minutes() -> None:
    hub = Hub(stored={"default": _history(40)}, now=NOW - 120)
    hub.turn()
    assert hub.replicas == 40
    for index in range(40):
        hub.add(f"user-{index}")
    hub.now += 110
    hub.turn()
    # A minute early: maybe there are only more.
    assert hub.replicas == 30
    hub.pass_minutes(2)
    assert hub.replicas <= 20
    # A class may begin ten minutes late. Later, nobody is awaited.
    late = Hub(_document(replicas=0), {"default": _history(40)}, now=NOW - 120)
    late.pass_minutes(12)
    assert late.replicas == 40
    late.pass_minutes(1)
    assert late.replicas == 1


def test_who_was_there_before_is_nobody_who_came_early() -> None:
    history = read_history(_history(40, end=NOW - 86_400))
    with_ten = array("i", [level + 10 for level in history.levels])
    text = History(history.first, with_ten).as_text()
    hub = Hub(_document(replicas=0), {"default": text}, now=NOW - 1200)
    for index in range(10):
        hub.add(f"user-{index}")
    # Two minutes before the hour all of the forty are awaited.
    hub.pass_minutes(18)
    assert hub.now == NOW - 120
    assert hub.replicas == 40


def test_an_own_text_that_is_seen_late_is_not_read_again_and_one_brought_back_is() -> None:
    begin = NOW - 3600
    before = {"default": _history(40, end=begin)}
    hub = Hub(stored=before, now=begin)
    hub.pass_minutes(60)
    written = hub.stored
    assert written != before

    def minutes_seen() -> float:
        return hub.gauges["headroom_learned_hours"]["default",] * 60

    # The watch still shows what was there before, for ten minutes.
    hub.stored = before
    hub.pass_minutes(10)
    seen = minutes_seen()
    hub.stored = written
    hub.pass_minutes(1)
    assert minutes_seen() == seen + 1
    # Somebody puts the former text back: then what was seen since is unknown.
    hub.stored = before
    hub.pass_minutes(1)
    assert minutes_seen() == 21 * 1440 + 1


def test_the_values_number_stands_for_a_week_then_as_far_as_a_day_needed_it_in_an_hour() -> None:
    # Three come each day at noon; it's an hour and a half, or less, before.
    for days, minutes, replicas in ((7, -90, 9), (8, -90, 1), (8, -50, 4)):
        hub = Hub(
            _document(replicas=9),
            {"default": _history(3, days)},
            now=NOW + 60 * minutes,
            replicas=9,
        )
        hub.turn()
        assert hub.replicas == replicas
    # An active window is the operator's word.
    hub = Hub(_document(windows=[DAY]), {"default": _history(3)})
    hub.turn()
    assert hub.replicas == 30


def test_what_learning_costs_and_saves_is_counted_beside_nodes_without_it() -> None:
    hub = Hub(_document(replicas=0), {"default": _history(40)}, now=NOW - 600, nodes={})
    hub.turn()
    size = {"cpu": 1000, "memory": 2**40, "pods": 110}
    hub.nodes["n"] = Node(
        "n", {"pool": "user"}, uid="uid-n", allocatable=size, ready=True, ready_since=hub.now
    )
    hub.add("seat", labels={PLACEHOLDER_SET_LABEL: "default"})
    hub.pass_minutes(6)
    # Nobody would have had a node, or waited, yet.
    assert hub.gauges["headroom_net_node_hours"]["default",] == pytest.approx(6 / 60, abs=0.02)
    assert hub.gauges["headroom_saved_hours"]["default",] == 0
    assert hub.gauges["headroom_month_cost"]["default",] == pytest.approx(0.4 * 6 / 60, abs=0.01)
    # Ten come, and find the node: without it, all would have waited for one to boot.
    del hub.pods[f"{NAMESPACE}/seat"]
    for index in range(10):
        hub.add(f"user-{index}", created=hub.now)
    hub.pass_minutes(30)
    assert hub.gauges["headroom_saved_hours"]["default",] == pytest.approx(
        10 * 240 / 3600, abs=0.05
    )
    # The node that they would have had came four minutes later; the account began a minute after
    # this one came.
    assert hub.gauges["headroom_net_node_hours"]["default",] == pytest.approx(9 / 60, abs=0.02)
    # It is stored with what was learned, and goes on from there.
    hub.pass_minutes(60)
    assert hub.stored is not None
    account = read_history(hub.stored["default"]).account
    assert account.weeks[-1].people == 10
    assert account.weeks[-1].saved_hours == pytest.approx(10 * 240 / 3600, abs=0.05)
    assert account.late_classes == ()


@pytest.mark.parametrize(
    ("people", "learns", "why"),
    [
        (0, {}, Why.NOT_KNOWN),
        (16, {}, Why.MORE_CAME),
        (40, {}, Why.NODE_LATE),
        (40, {"prices": {**PRICES, "monthlyCeiling": 0}}, Why.CEILING),
        (40, {"learn": {**LEARN, "max": 20}}, Why.MOST),
    ],
)
def test_a_class_that_waits_is_kept_with_the_reason(
    people: int, learns: Mapping[str, Any], why: Why
) -> None:
    document = _document(replicas=0, **learns)
    hub = Hub(document, {"default": _history(people)}, now=NOW - 1200)
    hub.nodes["n"] = replace(
        hub.nodes["n"], allocatable={"cpu": 2000, "memory": 2**40, "pods": 110}
    )
    hub.pass_minutes(20)
    for index in range(40):
        hub.add(f"user-{index}", node="", created=hub.now)
        key = f"{NAMESPACE}/user-{index}"
        hub.pods[key] = replace(hub.pods[key], unschedulable_since=hub.now)
    hub.pass_minutes(3)
    hub.pods = {
        key: replace(pod, node_name="n", unschedulable_since=None) for key, pod in hub.pods.items()
    }
    hub.pass_minutes(100)
    assert hub.stored is not None
    account = read_history(hub.stored["default"]).account
    assert [
        (late_class.people, late_class.late, late_class.why) for late_class in account.late_classes
    ] == [(40, 40, why)]
    assert account.weeks[-1].late == 40


def test_where_the_ceiling_cuts_a_class_an_event_names_it_once_a_day() -> None:
    hub = Hub(
        _document(replicas=0, prices={**PRICES, "monthlyCeiling": 0}),
        {"default": _history(40)},
        now=NOW - 7200,
    )
    # Classes are counted twice in that time, for an hour begins.
    told = [action for action in hub.pass_minutes(70) if isinstance(action, Notice)]
    assert [notice.reason for notice in told] == ["HeadroomCeiling"]
    assert "Tue 2026-10-06 11:56 UTC (40 people, seats for 0)" in told[0].message
    assert "node-hours" in told[0].message
    # Five of the week's seven are named.
    assert told[0].message.count(" people, seats") == 5
    assert " and 2 more. Room for all" in told[0].message
    # A node-hour is 0.40.
    cost = re.search(r"about ([0-9.]+) node-hours \(([0-9.]+)\)", told[0].message)
    assert cost is not None
    assert float(cost[2]) == pytest.approx(0.4 * float(cost[1]), abs=0.03)
    assert hub.replicas == 1
    assert hub.gauges["headroom_ceiling_left"]["default",] == 0
    assert hub.gauges["headroom_cut_people"]["default",] == 7 * 40
    hub.now += 86_400
    told = [action for action in hub.pass_minutes(3) if isinstance(action, Notice)]
    assert [notice.reason for notice in told] == ["HeadroomCeiling"]


def test_where_the_ceiling_cuts_five_classes_all_are_named() -> None:
    document = _document(replicas=0, prices={**PRICES, "monthlyCeiling": 0})
    history = _history([40, 40, 40, 40, 40, 0, 0])
    hub = Hub(document, {"default": history}, now=NOW - 7200)
    (notice,) = [action for action in hub.turn() if isinstance(action, Notice) and action.warning]
    assert notice.message.count(" people, seats") == 5
    assert " more. Room" not in notice.message
    # Of a set that is gone there is nobody to tell, and nothing goes wrong.
    planner = planner_from(HEADROOM, document)
    alone = Snapshot(RELEASE, NAMESPACE, hub.nodes, histories={"default": history})
    actions = planner.plan(alone, Moment(NOW - 7200, 0.0)).actions
    assert not [action for action in actions if not isinstance(action, KeepHistory)]


def test_what_this_week_and_the_last_saved_and_cost_is_shown() -> None:
    begins = [week_begin(int(NOW // 60) - 10_080 * back, "UTC") for back in (2, 1, 0)]
    weeks = tuple(
        Week(begin, waited_without=hours, node_hours=10 * hours)
        for begin, hours in zip(begins, (100.0, 2.0, 1.0), strict=True)
    )
    history = replace(read_history(_history(40)), account=Account(weeks, until=int(NOW // 60)))
    hub = Hub(stored={"default": history.as_text()})
    hub.turn()
    assert hub.gauges["headroom_saved_hours"]["default",] == pytest.approx(3)
    assert hub.gauges["headroom_net_node_hours"]["default",] == pytest.approx(30)


def test_while_there_is_no_node_as_many_fit_one_as_fitted_the_last() -> None:
    hub = Hub()
    hub.nodes["n"] = replace(
        hub.nodes["n"], allocatable={"cpu": 10**6, "memory": 2**50, "pods": 17}
    )
    hub.turn()
    hub.nodes.clear()
    hub.pass_minutes(60)
    assert hub.stored is not None
    assert read_history(hub.stored["default"]).per_node == 17


def test_who_waits_because_of_the_ceiling_is_counted_each_hour() -> None:
    hub = Hub(
        _document(replicas=0, prices={**PRICES, "monthlyCeiling": 0}),
        {"default": _history(40)},
        now=NOW - 7200,
    )
    hub.pass_minutes(3)
    assert hub.gauges["headroom_cut_people"]["default",] == 7 * 40
    with mock.patch.object(learning, "cut_classes", wraps=cut_classes) as counted:
        told = [action for action in hub.pass_minutes(60) if isinstance(action, Notice)]
    assert told == []
    assert counted.call_count == 1


def test_what_the_hours_around_need_is_worked_out_every_six_minutes() -> None:
    hub = Hub(stored={"default": _history(40)})
    hub.turn()
    with mock.patch.object(learning, "steady_needs", wraps=steady_needs) as worked_out:
        hub.pass_minutes(18)
    first = int(NOW // 60)
    assert [call.args[1] - first for call in worked_out.call_args_list] == [6, 12, 18]


def test_nobody_counts_as_cut_once_what_was_spent_is_long_ago() -> None:
    begin = NOW - 7200
    # 499 of 500 node-hours.
    spent = Account(month_node_hours=499.0, until=int(begin // 60))
    history = replace(read_history(_history(40, end=begin)), account=spent)
    hub = Hub(_document(replicas=0), {"default": history.as_text()}, now=begin)
    hub.pass_minutes(3)
    assert hub.gauges["headroom_cut_people"]["default",] > 0
    # The sum fades in thirty days to less than half of the ceiling: it cuts nothing.
    hub.now += 30 * 86_400
    hub.pass_minutes(3)
    assert hub.gauges["headroom_ceiling_left"]["default",] == 1
    assert hub.gauges["headroom_cut_people"]["default",] == 0


@pytest.mark.parametrize(
    "allocatable",
    [
        {"cpu": 3100, "memory": 2**40, "pods": 110},
        {"cpu": 10**6, "memory": 31 * 2**30, "pods": 110},
        {"cpu": 10**6, "memory": 2**40, "pods": 31},
    ],
    ids=["cpu", "memory", "pods"],
)
def test_room_beside_users_needs_no_placeholder_and_nodes_that_stand_by_keep_the_rest(
    allocatable: dict[str, int],
) -> None:
    hub = Hub(_document(replicas=0), {"default": _history(40)}, now=NOW - 120)
    hub.nodes["n"] = replace(hub.nodes["n"], allocatable=allocatable)
    # No node stands by: all forty are asked for, so that one comes.
    hub.add("user")
    hub.turn()
    assert hub.replicas == 40
    # It has come: ten are more than the thirty beside the user, whatever holds placeholders now.
    hub.nodes["m"] = replace(hub.nodes["n"], name="m", uid="uid-m")
    hub.add("seat", labels={PLACEHOLDER_SET_LABEL: "default"})
    hub.turn()
    assert hub.replicas == 10
    # Users on both: there is room for all.
    hub.add("other", node="m")
    hub.turn()
    assert hub.replicas == 1
    # On a node that leaves there is none: the thirty of the other aren't enough, and no node stands
    # by.
    hub.nodes["n"] = replace(
        hub.nodes["n"], taints=(Taint("karpenter.sh/disrupted", "", "NoSchedule"),)
    )
    hub.turn()
    assert hub.replicas == 40


def test_the_boot_of_nodes_is_learned_from_who_waits_first_after_a_rest() -> None:
    hub = Hub(stored={"default": _history(2)})
    hub.turn()
    for index in range(4):
        # The third comes in the middle of the second's rush: its node may have been asked for
        # before.
        hub.pass_minutes(2 if index == 2 else 16)
        hub.add(f"waits-{index}", node="")
        key = f"{NAMESPACE}/waits-{index}"
        hub.pods[key] = replace(hub.pods[key], unschedulable_since=hub.now)
        hub.pass_minutes(2 + index)
        hub.nodes[f"new-{index}"] = Node(f"new-{index}", {"pool": "user"}, uid="u", ready=False)
        hub.turn()
        ready = replace(hub.nodes[f"new-{index}"], ready=True, ready_since=hub.now + 30)
        hub.nodes[f"new-{index}"] = ready
        hub.pods[key] = replace(hub.pods[key], unschedulable_since=None, node_name=f"new-{index}")
        hub.pass_minutes(1)
    hub.pass_minutes(60)
    assert hub.stored is not None
    assert read_history(hub.stored["default"]).boots == (150, 210, 330)


def test_who_is_larger_than_any_node_keeps_nobody_from_learning_boots() -> None:
    hub = Hub(stored={"default": _history(2)})
    hub.nodes["n"] = replace(
        hub.nodes["n"], allocatable={"cpu": 16_000, "memory": 2**35, "pods": 110}
    )
    hub.turn()
    hub.pass_minutes(6)
    hub.add("huge", node="")
    huge = f"{NAMESPACE}/huge"
    spec = PodSpec(requests=(("cpu", 100), ("memory", 10**15)))
    hub.pods[huge] = replace(hub.pods[huge], spec=spec, unschedulable_since=hub.now)
    hub.pass_minutes(2)
    hub.add("waits", node="")
    key = f"{NAMESPACE}/waits"
    hub.pods[key] = replace(hub.pods[key], unschedulable_since=hub.now)
    hub.pass_minutes(2)
    hub.nodes["new"] = Node("new", {"pool": "user"}, uid="u", ready=True, ready_since=hub.now)
    hub.pods[key] = replace(hub.pods[key], unschedulable_since=None, node_name="new")
    hub.pass_minutes(61)
    assert hub.stored is not None
    assert read_history(hub.stored["default"]).boots == (120,)


def test_how_many_placeholders_a_user_fills_is_learned_and_divides_what_waiting_is_worth() -> None:
    hub = Hub()
    hub.turn()
    for index in range(100):
        hub.add(f"small-{index}")
        hub.add(f"large-{index}")
        key = f"{NAMESPACE}/large-{index}"
        spec = PodSpec(requests=(("cpu", 300), ("memory", 3 * 2**30)))
        hub.pods[key] = replace(hub.pods[key], spec=spec)
    hub.pass_minutes(60)
    assert hub.stored is not None
    after_an_hour = read_history(hub.stored["default"]).seats_per_person
    # A mean of days: one hour of a crowd of other sizes counts less than half.
    assert 1.3 < after_an_hour < 1.5
    hub.pass_minutes(600)
    assert 1.95 < read_history(hub.stored["default"]).seats_per_person <= 2.0
    # Who asks for more than a node has gets none, and says nothing of others.
    hub.add("huge", node="")
    key = f"{NAMESPACE}/huge"
    spec = PodSpec(requests=(("cpu", 100), ("memory", 10**15)))
    hub.pods[key] = replace(hub.pods[key], spec=spec, unschedulable_since=hub.now)
    hub.pass_minutes(60)
    assert read_history(hub.stored["default"]).seats_per_person <= 2.0


def test_pulls_of_new_nodes_are_learned_from_who_waited_and_count_as_saved_where_nobody_does() -> (
    None
):
    hub = Hub(_document(replicas=0), {"default": _history(40)}, now=NOW - 2400, nodes={})
    hub.turn()

    def ready_node(name: str) -> None:
        size = {"cpu": 500, "memory": 2**40, "pods": 110}
        hub.nodes[name] = Node(
            name, {"pool": "user"}, uid=name, allocatable=size, ready=True, ready_since=hub.now
        )

    # Four come before their node, and their servers are seen three minutes later.
    for index in range(4):
        hub.add(f"early-{index}", node="", created=hub.now)
    hub.pass_minutes(1)
    ready_node("a")
    for index in range(4):
        key = f"{NAMESPACE}/early-{index}"
        hub.pods[key] = replace(hub.pods[key], node_name="a")
    hub.pass_minutes(2)
    for index in range(4):
        key = f"{NAMESPACE}/early-{index}"
        hub.pods[key] = replace(hub.pods[key], phase="Running")
    # Whoever comes later, or waits longer for something else, says nothing of it.
    hub.add("later", node="a", created=hub.now)
    hub.pods[f"{NAMESPACE}/later"] = replace(hub.pods[f"{NAMESPACE}/later"], phase="Pending")
    hub.pass_minutes(1)
    hub.add("later", node="a", created=hub.now - 60)
    hub.pass_minutes(1)
    saved_before = hub.gauges["headroom_saved_hours"]["default",]
    # The next four find a node that has its images: each would have waited for a boot and a pull.
    ready_node("b")
    hub.pass_minutes(5)
    for index in range(4):
        hub.add(f"late-{index}", node="b", created=hub.now)
    hub.pass_minutes(30)
    saved = hub.gauges["headroom_saved_hours"]["default",] - saved_before
    assert saved == pytest.approx(4 * (240 + 180) / 3600, abs=0.02)
    hub.pass_minutes(60)
    assert hub.stored is not None
    assert read_history(hub.stored["default"]).pulls == (180, 180, 180, 180)
    # What was stored before pulls were learned stays readable.
    older = json.loads(hub.stored["default"])
    del older["pullSeconds"]
    assert read_history(json.dumps(older)).pulls == ()


def test_who_waits_for_a_new_nodes_pulls_waited_and_who_waits_on_an_old_one_did_not() -> None:
    hub = Hub(_document(replicas=0), {"default": _history(40)}, now=NOW - 2400, nodes={})
    hub.turn()
    size = {"cpu": 1000, "memory": 2**40, "pods": 110}
    hub.nodes["n"] = Node(
        "n", {"pool": "user"}, uid="n", allocatable=size, ready=True, ready_since=hub.now
    )
    hub.pass_minutes(1)

    def waits_without_a_server(name: str, minutes: int) -> None:
        hub.add(name, created=hub.now)
        key = f"{NAMESPACE}/{name}"
        hub.pods[key] = replace(hub.pods[key], phase="Pending")
        hub.pass_minutes(minutes)
        hub.pods[key] = replace(hub.pods[key], phase="Running")
        hub.pass_minutes(60)

    def waited_hours() -> float:
        assert hub.stored is not None
        return read_history(hub.stored["default"]).account.weeks[-1].waited_hours

    waits_without_a_server("first", 2)
    assert waited_hours() == pytest.approx(2 / 60, abs=0.001)
    waits_without_a_server("slow", 5)
    assert waited_hours() == pytest.approx(2 / 60, abs=0.001)


def test_a_booked_lecture_that_is_learned_counts_once() -> None:
    event = {"name": "course", "people": 30, "start": "2026-10-05T12:00", "timeZone": "UTC"}
    events = {"enabled": True, "booked": [event], "leadMinutes": 10, "maxPeople": 100}
    events |= {"maxPlaceholders": 100, "configMaps": False, "concurrentSpawnLimit": 64}
    document = _document() | {"events": events, "seating": {"enabled": False}}
    # `min` stays beside what is booked; in the first week, what the values say.
    for people, days, replicas in ((40, 21, 40), (20, 21, 31), (0, 3, 33)):
        hub = Hub(document, {"default": _history(people, days)}, now=NOW - 60)
        (scaled,) = [action for action in hub.turn() if isinstance(action, ScaleSet)]
        assert hub.replicas == replicas
        assert ("on 20 earlier days" in scaled.why) == (people > 30)


def test_others_pods_do_not_count() -> None:
    hub = Hub(stored={"default": _history(2)})
    hub.nodes["gpu"] = Node("gpu", {"pool": "gpu"}, uid="uid-gpu")
    taint = Taint("team", "other", "NoSchedule")
    hub.nodes["tainted"] = Node("tainted", {"pool": "user"}, (taint,), uid="uid-t")
    hub.pass_minutes(5)
    hub.add("elsewhere", node="gpu")
    hub.add("reserved", node="tainted")
    hub.add("gone", node="n2")
    hub.add("waits-elsewhere", node="", node_selector=(("pool", "gpu"),))
    hub.add("build", labels={"component": "binderhub-build"})
    hub.add(
        "placeholder", labels={"component": "user-placeholder", PLACEHOLDER_SET_LABEL: "default"}
    )
    hub.add("stranger", labels={"app": "x"})
    hub.add("leaves")
    hub.pods[f"{NAMESPACE}/leaves"] = replace(hub.pods[f"{NAMESPACE}/leaves"], leaving=True)
    hub.pass_minutes(60)
    assert hub.level() == 0


def test_a_node_that_is_cordoned_and_uncordoned_brings_no_users() -> None:
    hub = Hub(stored={"default": _history(2)})
    for index in range(9):
        hub.add(f"user-{index}")
    hub.pass_minutes(15)
    node = hub.nodes["n"]
    for key in ("node.kubernetes.io/unschedulable", "DeletionCandidateOfClusterAutoscaler"):
        hub.nodes["n"] = replace(node, taints=(Taint(key, "", "NoSchedule"),), unschedulable=True)
        hub.pass_minutes(10)
        hub.nodes["n"] = node
        hub.pass_minutes(10)
    hub.pass_minutes(5)
    assert hub.stored is not None
    history = read_history(hub.stored["default"])
    assert {history.at(history.end - minute) for minute in range(1, 55)} == {9}


def test_a_large_user_counts_as_many_placeholders() -> None:
    hub = Hub(stored={"default": _history(2)})
    hub.pass_minutes(5)
    large = PodSpec(requests=(("cpu", 150), ("memory", 4 * 2**30)))
    hub.pods["x"] = Pod(NAMESPACE, "large", labels=USER, node_name="n", spec=large)
    hub.pass_minutes(60)
    assert hub.level() == 4


def test_a_user_counts_by_what_it_takes_of_a_node() -> None:
    hub = Hub(stored={"default": _history(2)})
    # Memory is what runs out first here: 32 placeholders of 1 GiB, or 160 of 100 millicores.
    hub.nodes["n"] = replace(
        hub.nodes["n"], allocatable={"cpu": 16_000, "memory": 2**35, "pods": 250}
    )
    hub.pass_minutes(5)
    for index in range(4):
        spec = PodSpec(requests=(("cpu", 100), ("memory", 2**29)))
        hub.pods[f"small-{index}"] = Pod(
            NAMESPACE, f"small-{index}", labels=USER, node_name="n", spec=spec
        )
    hub.pass_minutes(60)
    assert hub.level() == 2


def test_where_empty_nodes_go_at_once_all_seats_stay_until_people_come() -> None:
    hub = Hub(_document(replicas=0), {"default": _history(40)}, now=NOW - 1200)
    large = replace(hub.nodes["n"], allocatable={"cpu": 3100, "memory": 2**40, "pods": 110})
    hub.nodes = {"n": large}
    hub.add("user")
    hub.pass_minutes(1)
    # Empty nodes are gone after a minute.
    for name in ("brief-0", "brief-1", "brief-2"):
        hub.nodes[name] = replace(large, name=name, uid=f"uid-{name}")
    hub.pass_minutes(1)
    hub.nodes = {"n": large}
    hub.pass_minutes(15)
    hub.nodes["m"] = replace(large, name="m", uid="uid-m")
    hub.add("seat", labels={PLACEHOLDER_SET_LABEL: "default"}, node="m")
    hub.pass_minutes(2)
    # Ten would be enough for those who find no seat beside the user, but then that node would be
    # taken, too.
    assert hub.replicas == 40


def test_of_what_is_learned_only_more_than_twice_as_many_placeholders_are_told() -> None:
    for before, told in ((13, ["HeadroomChanged"]), (14, ["HeadroomChanged"]), (20, []), (90, [])):
        hub = Hub(stored={"default": _history(40)}, replicas=before)
        notices = [action.reason for action in hub.turn() if isinstance(action, Notice)]
        assert (hub.replicas, notices) == (40, told)


def test_what_is_booked_is_kept_while_the_history_has_not_been_read() -> None:
    event = {"name": "course", "people": 30, "start": "2026-10-05T12:05", "timeZone": "UTC"}
    events = {"enabled": True, "booked": [event], "leadMinutes": 10, "maxPeople": 100}
    events |= {"maxPlaceholders": 100, "configMaps": False, "concurrentSpawnLimit": 64}
    document = _document() | {"events": events, "seating": {"enabled": False}}
    for present, replicas in ((3, 33), (50, 50), (90, 60)):
        hub = Hub(document, None, replicas=present)
        hub.turn()
        assert hub.replicas == replicas


@pytest.mark.parametrize(
    ("requests", "allocatable", "level"),
    [
        # Nothing to compare.
        ((), {}, 1),
        ((("cpu", 300),), {}, 3),
        ((("memory", 4 * 2**30),), {}, 4),
        # A node that tells one of both is no measure.
        ((("cpu", 300), ("memory", 2**30)), {"cpu": 4000}, 3),
        ((("cpu", 100), ("memory", 3 * 2**30)), {"memory": 2**34}, 3),
        # By what both take of a node.
        ((("cpu", 800),), {"cpu": 16_000, "memory": 2**35}, 2),
        ((), {"cpu": 16_000, "memory": 2**35}, 1),
    ],
)
def test_a_user_counts_as_placeholders_by_what_is_known(
    requests: tuple[tuple[str, int], ...], allocatable: dict[str, int], level: int
) -> None:
    hub = Hub(stored={"default": _history(2)})
    hub.nodes["n"] = replace(hub.nodes["n"], allocatable=allocatable)
    hub.pass_minutes(5)
    spec = PodSpec(requests=requests)
    hub.pods["x"] = Pod(NAMESPACE, "x", labels=USER, node_name="n", spec=spec)
    hub.pass_minutes(60)
    assert hub.level() == level


def test_the_boot_of_a_node_begins_as_a_placeholder_of_the_set_waits() -> None:
    for of_set, boots in (("default", (150,)), ("other", ())):
        hub = Hub(stored={"default": _history(2)})
        hub.turn()
        # A boot is measured after a rest.
        hub.pass_minutes(6)
        hub.add("seat", node="", labels={PLACEHOLDER_SET_LABEL: of_set})
        key = f"{NAMESPACE}/seat"
        hub.pods[key] = replace(hub.pods[key], unschedulable_since=hub.now)
        # One that wasn't tried yet doesn't wait.
        hub.add("untried", node="", labels={PLACEHOLDER_SET_LABEL: "default"})
        hub.pass_minutes(2)
        hub.nodes["new"] = Node("new", {"pool": "user"}, uid="u", ready=False)
        hub.turn()
        hub.nodes["new"] = replace(hub.nodes["new"], ready=True, ready_since=hub.now + 30)
        hub.pods[key] = replace(hub.pods[key], unschedulable_since=None, node_name="new")
        hub.pass_minutes(60)
        assert hub.stored is not None
        assert read_history(hub.stored["default"]).boots == boots


def test_a_history_without_any_level_stops_no_plan() -> None:
    hub = Hub()
    hub.turn()
    hub.stored = {"default": History().as_text()}
    hub.now += 1
    hub.turn()
    assert hub.replicas == 3


def test_a_history_brought_in_by_hand_is_taken_at_once() -> None:
    hub = Hub()
    hub.turn()
    assert hub.replicas == 3
    hub.stored = {"default": _history(33)}
    hub.now += 1
    hub.turn()
    assert hub.replicas == 33


def test_faults_of_learn_and_of_prices_are_reported() -> None:
    wrong = {"min": 9, "max": 5, "timeZone": "Mars", "more": 1}
    prices = {"waitingHour": "4 EUR", "nodeHour": None, "monthlyCeiling": True}
    document = _document(learn=wrong, prices=prices)
    keys = {key.removeprefix("placeholders[0].") for key in faults_of(HEADROOM, document)}
    assert keys == {
        "learn.min",
        "learn.timeZone",
        "learn.more",
        "prices.waitingHour",
        "prices.nodeHour",
        "prices.monthlyCeiling",
    }


def test_builds_and_windows_cost_learning_nothing_and_a_clock_set_back_counts_once() -> None:
    window = {
        "name": "all day",
        "replicas": 3,
        "timeZone": "UTC",
        "start": "0 0 * * *",
        "end": "59 23 * * *",
    }
    hub = Hub(
        _document(replicas=0, learn={**LEARN, "max": 0, "min": 0}, windows=[window]),
        {"default": _history(2)},
    )
    size = {"cpu": 300, "memory": 2**40, "pods": 110}
    hub.nodes = {
        name: Node(
            name, {"pool": "user"}, uid=name, allocatable=size, ready=True, ready_since=hub.now
        )
        for name in ("builds", "window")
    }
    hub.add("build", node="builds", labels={"component": "binderhub-build"})
    hub.add("seat", node="window", labels={PLACEHOLDER_SET_LABEL: "default"})
    hub.pass_minutes(120)
    assert hub.gauges["headroom_net_node_hours"]["default",] == pytest.approx(0, abs=0.15)
    hub.now -= 3600.0
    written = [
        action
        for action in (*hub.turn(), *hub.turn(), *hub.turn())
        if isinstance(action, KeepHistory)
    ]
    assert len(written) <= 1
    assert hub.gauges["headroom_net_node_hours"]["default",] == pytest.approx(0, abs=0.15)


def test_an_empty_node_that_no_placeholder_keeps_is_the_pools_least() -> None:
    hub = Hub(_document(replicas=0), {"default": _history(2)}, now=NOW - 7200, replicas=0)
    size = {"cpu": 300, "memory": 2**40, "pods": 110}
    hub.nodes["n"] = replace(hub.nodes["n"], allocatable=size, ready=True, ready_since=hub.now)
    hub.pass_minutes(60)
    # It would have been there, too.
    assert hub.gauges["headroom_net_node_hours"]["default",] == pytest.approx(0, abs=0.02)


def test_a_node_with_a_placeholder_and_pods_that_each_node_has_is_kept_by_the_placeholder() -> None:
    hub = Hub(_document(replicas=0), {"default": _history(2)}, now=NOW - 7200, replicas=0)
    size = {"cpu": 1000, "memory": 2**40, "pods": 110}
    hub.nodes["n"] = replace(hub.nodes["n"], allocatable=size, ready=True, ready_since=hub.now)
    hub.add("seat", labels={PLACEHOLDER_SET_LABEL: "default"})
    hub.add("agent", labels={"app": "agent"})
    key = f"{NAMESPACE}/agent"
    agent = hub.pods[key]
    hub.pods[key] = replace(agent, owner=Owner("DaemonSet", "agent", "uid-agent"))
    assert hub.pods[key].is_of_node
    hub.pass_minutes(60)
    assert hub.gauges["headroom_net_node_hours"]["default",] == pytest.approx(59 / 60, abs=0.05)


def test_of_a_set_that_requests_nothing_each_user_is_one_placeholder() -> None:
    hub = Hub(_document(resources={}), {"default": _history(2)})
    hub.nodes["n"] = replace(hub.nodes["n"], allocatable={"cpu": 16_000, "memory": 2**35})
    hub.pass_minutes(5)
    hub.add("user")
    hub.pass_minutes(60)
    assert hub.level() == 1


def test_nodes_that_a_booking_keeps_cost_learning_nothing() -> None:
    event = {"name": "course", "people": 3, "start": "2026-10-05T14:30", "timeZone": "UTC"}
    events = {"enabled": True, "booked": [event], "leadMinutes": 150, "maxPeople": 100}
    events |= {"maxPlaceholders": 100, "configMaps": False, "concurrentSpawnLimit": 64}
    document = _document(replicas=0, learn={**LEARN, "min": 0, "max": 0})
    hub = Hub(document | {"events": events, "seating": {"enabled": False}}, replicas=0)
    size = {"cpu": 300, "memory": 2**40, "pods": 110}
    hub.nodes["n"] = replace(hub.nodes["n"], allocatable=size, ready=True, ready_since=hub.now)
    hub.add("seat", labels={PLACEHOLDER_SET_LABEL: "default"})
    hub.pass_minutes(120)
    assert hub.replicas == 3
    assert hub.gauges["headroom_net_node_hours"]["default",] == pytest.approx(0, abs=0.15)


@settings(max_examples=15)
@given(
    # 56 days are kept, and whole days go at once: the 57th ends while we look.
    days=st.integers(1, 30) | st.just(57),
    people=st.lists(st.integers(0, 30), min_size=5, max_size=5),
    pauses=st.lists(st.sampled_from([1, 1, 2, 9, 61, 1500]), min_size=1, max_size=6),
    come=st.lists(st.integers(0, 20), min_size=6, max_size=6),
)
def test_another_replica_reads_what_the_one_before_knew(
    days: int, people: list[int], pauses: list[int], come: list[int]
) -> None:
    whole = read_history(_history(people, days, NOW - 60))
    hub = Hub(stored={"default": History(whole.first + 9, whole.levels[9:]).as_text()})
    hub.turn()
    for pause, number in zip(pauses, come, strict=False):
        hub.now += 60.0 * pause
        hub.pods.clear()
        for index in range(number):
            hub.add(f"user-{index}")
        hub.turn()
    # Once an hour it is stored.
    hub.now += 3600.0 - hub.now % 3600.0
    hub.turn()
    assert hub.stored is not None
    seen = read_history(hub.stored["default"]).seen_minutes / 60
    assert hub.gauges["headroom_learned_hours"] == {("default",): seen}
    replicas = hub.replicas
    hub.restart()
    hub.turn()
    assert hub.replicas == replicas
    assert hub.gauges["headroom_learned_hours"] == {("default",): seen}


@given(pods=st.integers(1, 20), agents=st.integers(0, 5), users=st.integers(0, 9))
def test_so_many_placeholders_fit_a_node_as_its_kubelet_takes_pods_beside_those_of_all_nodes(
    pods: int, agents: int, users: int
) -> None:
    hub = Hub()
    hub.nodes["n"] = replace(
        hub.nodes["n"], ready=True, allocatable={"cpu": 10**6, "memory": 2**50, "pods": pods}
    )
    for index in range(agents):
        hub.add(f"agent-{index}", labels={"app": "agent"})
    for index in range(users):
        hub.add(f"user-{index}")
    hub.turn()
    assert hub.stored is not None
    learned = read_history(hub.stored["default"]).per_node
    assert learned == max(0, pods - agents) or (pods <= agents and learned == History().per_node)


def test_what_cannot_be_read_is_kept_beside_what_is_learned_since() -> None:
    hub = Hub(stored={"default": _history(50)[:-40]})
    hub.pass_minutes(61)
    assert hub.stored is not None
    assert hub.stored["default.unusable"] == _history(50)[:-40]
    assert read_history(hub.stored["default"], set_name="default").seen_minutes >= 1
    # What another set learned is no history of this one.
    other = History(int(NOW // 60) - 1440, array("i", [5] * 1440)).as_text("other")
    hub = Hub(stored={"default": other})
    (told,) = [action for action in hub.turn() if isinstance(action, Notice) and action.warning]
    assert "what set other learned" in told.message


def _many_sets(number: int) -> tuple[list[str], dict[str, Any]]:
    """The names of so many sets that learn, and their release's document."""
    names = [f"set-{place}" for place in range(number)]
    document = _document()
    (entry,) = document["placeholders"]
    document["placeholders"] = [
        {**entry, "name": name, "statefulSet": f"hub-roost-placeholder-{name}"} for name in names
    ]
    return names, document


def _busy_history() -> str:
    """Eight weeks of another level each minute, as stored."""
    chance = Random(4)
    levels = array("i", (chance.randrange(2_000) for _ in range(56 * 1440)))
    return History(int(NOW // 60) - len(levels), levels).as_text()


@pytest.mark.parametrize("sets", [1, 11])
def test_busy_histories_of_many_sets_fit_one_config_map(sets: int) -> None:
    names, document = _many_sets(sets)
    busy = _busy_history()
    # Of a former set, and one that couldn't be read.
    left = {"former": busy, f"set-0{UNUSABLE_SUFFIX}": "x" * 90_000}
    hub = Hub(document, {**dict.fromkeys(names, busy), **left})
    hub.now += 59 * 60
    assert len(hub.pass_minutes(1)) >= sets
    assert hub.stored is not None
    # The admission policy's bound is 786,432, with the object's other fields.
    text_in_all = sum(map(len, hub.stored.values()))
    assert text_in_all <= 705_000
    for name in names:
        kept = read_history(hub.stored[name])
        assert kept.end == int(hub.now // 60) + 1
        assert len(kept.levels) >= 1440


def test_a_text_that_cannot_be_read_and_busy_histories_fit_one_config_map_at_once() -> None:
    names, document = _many_sets(11)
    busy = _busy_history()
    hub = Hub(document, dict.fromkeys(names, busy))
    hub.turn()
    # Somebody spoils one of them by hand.
    hub.stored = {**dict.fromkeys(names, busy), "set-0": "x" * 90_000}
    hub.now += 59 * 60
    hub.pass_minutes(1)
    assert hub.stored is not None
    assert read_history(hub.stored["set-0"]).seen_minutes >= 1440
    assert hub.stored[f"set-0{UNUSABLE_SUFFIX}"] == "x" * 90_000
    # The admission policy's bound.
    assert sum(map(len, hub.stored.values())) <= 786_432


def _of_sets(*entries: dict[str, Any]) -> Hub:
    """A hub with these sets on one node, at a full hour."""
    document = _document()
    (entry,) = document["placeholders"]
    document["placeholders"] = [
        {**entry, "statefulSet": f"hub-roost-placeholder-{more['name']}", **more}
        for more in entries
    ]
    return Hub(document)


def _levels(hub: Hub) -> dict[str, int]:
    assert hub.stored is not None
    histories = {name: read_history(text) for name, text in hub.stored.items()}
    return {name: history.at(history.end - 1) for name, history in histories.items()}


@pytest.mark.parametrize("sets", [1, 2, 4])
def test_people_on_nodes_of_several_sets_count_once(sets: int) -> None:
    hub = _of_sets(*({"name": f"set-{number}"} for number in range(sets)))
    for number in range(15):
        hub.add(f"user-{number}")
    for number in range(5):
        hub.add(f"waits-{number}", node="")
    hub.pass_minutes(60)
    assert _levels(hub) == {f"set-{number}": 0 if number else 20 for number in range(sets)}


def test_a_person_counts_for_the_set_whose_placeholder_is_nearest_in_size() -> None:
    large = {"requests": {"cpu": "2", "memory": "8Gi"}}
    gpu = {"requests": {"cpu": "100m", "memory": "1Gi", "nvidia.com/gpu": 1}}
    hub = _of_sets(
        {"name": "large", "resources": large},
        {"name": "gpu", "resources": gpu},
        {"name": "small"},
        {"name": "own", "nodeSelector": {"pool": "user", "kind": "own"}},
    )
    hub.nodes["o"] = Node("o", {"pool": "user", "kind": "own"}, uid="uid-o")
    for name, node, requests in (
        *((f"small-{number}", "n", (("cpu", 100), ("memory", 2**30))) for number in range(7)),
        *((f"large-{number}", "n", (("cpu", 2000), ("memory", 2**33))) for number in range(3)),
        ("gpu", "n", (("cpu", 100), ("memory", 2**30), ("nvidia.com/gpu", 1))),
        ("own-1", "o", (("cpu", 100), ("memory", 2**30))),
        ("own-2", "o", (("cpu", 100), ("memory", 2**30))),
    ):
        spec = PodSpec(requests=requests)
        hub.pods[name] = Pod(NAMESPACE, name, labels=USER, node_name=node, spec=spec)
    hub.pass_minutes(60)
    assert _levels(hub) == {"large": 3, "gpu": 1, "small": 7, "own": 2}


SMALL = {"requests": {"cpu": "100m", "memory": "1Gi"}}
LARGE = {"requests": {"cpu": "200m", "memory": "1Gi"}}
# Ten small placeholders fit, or five large.
TEN = {"cpu": 1000, "memory": 2**40, "pods": 110}


def _of_two_sizes(**more: Any) -> Hub:
    """A hub with two sets on the same nodes. more: keys of the set `large`."""
    return _of_sets(
        {"name": "small", "replicas": 0, "resources": SMALL},
        {"name": "large", "replicas": 0, "resources": LARGE, **more},
    )


def _with_node(hub: Hub, name: str) -> None:
    labels = {"pool": "user"}
    hub.nodes[name] = Node(
        name, labels, uid=f"uid-{name}", allocatable=TEN, ready=True, ready_since=hub.now
    )


def _with_users(hub: Hub, node: str, *, small: int, large: int) -> None:
    for size, number in ((100, small), (200, large)):
        for index in range(number):
            spec = PodSpec(
                requests=(("cpu", size), ("memory", 2**30)), node_selector=(("pool", "user"),)
            )
            name = f"{node}-{size}-{index}"
            there = hub.pods.get(name)
            created = hub.now if there is None else there.created
            phase = "Running" if node in hub.nodes else "Pending"
            on_node = node if node in hub.nodes else ""
            hub.pods[name] = Pod(
                NAMESPACE,
                name,
                labels=USER,
                node_name=on_node,
                phase=phase,
                spec=spec,
                created=created,
                unschedulable_since=None if on_node else created,
            )


def _told(hub: Hub) -> dict[str, float]:
    told = hub.gauges["headroom_net_node_hours"]
    return {name: told[name,] for name in ("small", "large") if (name,) in told}


def test_a_node_with_users_of_two_sets_is_told_once_and_not_as_a_node_of_each() -> None:
    hub = _of_two_sizes()
    _with_node(hub, "n")
    _with_users(hub, "n", small=6, large=2)
    hub.turn()
    # As many wait until another node is there, as they would have without learning.
    _with_users(hub, "m", small=6, large=2)
    hub.pass_minutes(4)
    _with_node(hub, "m")
    _with_users(hub, "m", small=6, large=2)
    hub.pass_minutes(60)
    assert _told(hub) == {"small": pytest.approx(0, abs=0.1), "large": pytest.approx(0, abs=0.1)}
    # Now there is a node for nobody but a placeholder: both sets tell their part of it.
    hub.add("seat", node="k", labels={PLACEHOLDER_SET_LABEL: "small"})
    _with_node(hub, "k")
    hub.pass_minutes(60)
    told = _told(hub)
    assert sum(told.values()) == pytest.approx(1, abs=0.1)
    # Of 21: 13 and 8.
    assert told["small"] / told["large"] == pytest.approx(13 / 8, abs=0.2)


def test_what_another_set_on_the_same_nodes_keeps_anyway_costs_learning_nothing() -> None:
    hub = _of_two_sizes(replicas=5, learn=None)
    hub.turn()
    _with_node(hub, "n")
    for number in range(5):
        hub.add(f"seat-{number}", labels={PLACEHOLDER_SET_LABEL: "large"})
    hub.pass_minutes(60)
    assert _told(hub) == {"small": pytest.approx(0, abs=0.1)}
    # They are the other set's, which tells no part: all that learning costs is this set's.
    _with_node(hub, "m")
    hub.add("seat", node="m", labels={PLACEHOLDER_SET_LABEL: "small"})
    hub.pass_minutes(60)
    assert _told(hub) == {"small": pytest.approx(1, abs=0.1)}


def test_nodes_that_another_set_keeps_anyway_dont_hide_how_few_nodes_the_pool_has() -> None:
    hub = _of_two_sizes(replicas=5, learn=None)
    # The autoscaler keeps three nodes. The other set fills one of them.
    for name in ("n", "m", "k"):
        _with_node(hub, name)
    for number in range(5):
        hub.add(f"seat-{number}", labels={PLACEHOLDER_SET_LABEL: "large"})
    hub.pass_minutes(240)
    assert _told(hub) == {"small": pytest.approx(0, abs=0.1)}


def test_placeholders_that_a_quota_refused_are_no_nodes_that_learning_saved() -> None:
    hub = _of_two_sizes(replicas=5, learn=None)
    _with_node(hub, "n")
    _with_users(hub, "n", small=2, large=0)
    hub.pass_minutes(240)
    assert _told(hub) == {"small": pytest.approx(0, abs=0.1)}


def test_placeholders_of_another_namespace_are_no_part_of_the_release() -> None:
    hub = _of_two_sizes()
    _with_node(hub, "n")
    _with_users(hub, "n", small=1, large=0)
    hub.turn()
    _with_node(hub, "k")
    hub.add("seat", node="k", labels={PLACEHOLDER_SET_LABEL: "small"})
    _with_node(hub, "theirs")
    spec = PodSpec(requests=(("cpu", 500), ("memory", 2**30)))
    labels = {PLACEHOLDER_SET_LABEL: "large"}
    hub.pods["theirs"] = Pod("other", "theirs", labels=labels, node_name="theirs", spec=spec)
    hub.pass_minutes(60)
    # The release's own sets tell all of the node for a placeholder.
    assert sum(_told(hub).values()) == pytest.approx(1, abs=0.1)
