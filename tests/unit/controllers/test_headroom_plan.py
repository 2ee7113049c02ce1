"""Headroom by the clock: what is scaled, and when not."""

from dataclasses import dataclass, field
from typing import Any

from roost.controllers.contract.actions import Action, Done, Notice, Outcome, ScaleSet
from roost.controllers.contract.planner import Planner
from roost.controllers.contract.snapshot import Moment, Snapshot, StatefulSetState
from roost.controllers.headroom.plan import CONTROLLER as HEADROOM
from roost_core.objects.node import Node
from roost_core.objects.pod import Pod
from roost_core.placement.headroom_windows import parse_moment
from tests.builders import NAMESPACE, RELEASE, release_document
from tests.unit.controllers.planners import faults_of, only, planner_from

SET = "hub-roost-placeholder-default"
DAY = {
    "name": "day",
    "replicas": 30,
    "timeZone": "Europe/Berlin",
    "start": "0 8 * * *",
    "end": "0 18 * * *",
}


def _document(**changes: object) -> dict[str, Any]:
    """changes: of the only set."""
    one = {"name": "default", "replicas": 3, "nodeSelector": {"pool": "user"}, "tolerations": []}
    document = release_document({"placeholders": [one]})
    document["placeholders"][0] |= changes
    return document


def _planner(**changes: object) -> Planner[Any]:
    return planner_from(HEADROOM, _document(**changes))


@dataclass
class Cluster:
    """One set, some nodes and pods, and a clock; what is planned is carried out."""

    planner: Planner[Any]
    now: float = field(default_factory=lambda: parse_moment("2026-10-05T12:00", "Europe/Berlin"))
    steady: float = 1000.0
    replicas: int = 3
    nodes: dict[str, Node] = field(default_factory=dict)
    pods: dict[str, Pod] = field(default_factory=dict)
    outcome: Outcome = Outcome.DONE

    def turn(self) -> list[Action]:
        state = StatefulSetState(SET, "uid-set", self.replicas)
        snapshot = Snapshot(RELEASE, NAMESPACE, self.nodes, self.pods, {SET: state})
        now = Moment(self.now, self.steady)
        planned = self.planner.plan(snapshot, now)
        self.wait_seconds = planned.wake_after_seconds
        self.gauges = planned.gauges
        for action in planned.actions:
            if isinstance(action, ScaleSet) and self.outcome is Outcome.DONE:
                self.replicas = action.replicas
        self.planner.note([Done(action, self.outcome) for action in planned.actions], now)
        return [action for action in planned.actions if not isinstance(action, Notice)]

    def pass_time(self, seconds: float, step: float = 30.0) -> list[Action]:
        """Plan every 30 s; give what was asked for on the way."""
        found: list[Action] = []
        for _ in range(int(seconds // step)):
            self.now += step
            self.steady += step
            found += self.turn()
        return found


# By the clock


def test_a_set_is_scaled_when_a_window_begins_and_when_it_ends_and_not_between() -> None:
    cluster = Cluster(_planner(windows=[DAY]))
    up = only(ScaleSet, cluster.turn())
    assert (up.name, up.uid, up.replicas) == (SET, "uid-set", 30)
    assert up.why == "window day, until Mon 2026-10-05 18:00 CEST at least"
    assert cluster.wait_seconds is not None
    assert 6 * 3600 <= cluster.wait_seconds < 6 * 3600 + 1
    assert cluster.pass_time(6 * 3600 - 30) == []
    down = only(ScaleSet, cluster.pass_time(60))
    assert (down.replicas, down.why) == (3, "no window is active")


def test_a_window_ends_at_the_very_second_and_until_then_it_is_counted_down() -> None:
    cluster = Cluster(_planner(windows=[DAY]))
    for seconds, replicas, seconds_left in (
        (0.0, 30, 6 * 3600),
        (6 * 3600 - 0.5, 30, 0.5),
        (6 * 3600, 3, 14 * 3600),
    ):
        begin = parse_moment("2026-10-05T12:00", "Europe/Berlin")
        cluster.now = begin + seconds
        cluster.turn()
        assert cluster.replicas == replicas
        assert cluster.gauges["headroom_next_change_seconds"] == {("default",): seconds_left}


def test_of_windows_that_give_the_same_number_all_are_named_and_a_smaller_one_is_not() -> None:
    lab = {**DAY, "name": "lab", "end": "0 14 * * *"}
    small = {**DAY, "name": "small", "replicas": 5}
    planned = Cluster(_planner(windows=[DAY, lab, small]))
    up = only(ScaleSet, planned.turn())
    assert up.why == "windows day and lab, until Mon 2026-10-05 14:00 CEST at least"


def test_somebody_elses_number_is_set_right_while_windows_are_there_and_left_alone_without() -> (
    None
):
    cluster = Cluster(_planner(windows=[DAY]), replicas=30)
    assert cluster.turn() == []
    cluster.replicas = 7
    assert cluster.turn() != []
    cluster = Cluster(_planner(), replicas=7)
    assert cluster.turn() == []


def test_a_clock_that_goes_back_is_followed() -> None:
    cluster = Cluster(_planner(windows=[DAY]))
    cluster.turn()
    cluster.now -= 8 * 3600
    down = only(ScaleSet, cluster.turn())
    assert down.replicas == 3


def test_a_set_that_is_not_there_is_waited_for() -> None:
    planner = _planner(windows=[DAY])
    planned = planner.plan(Snapshot(RELEASE, NAMESPACE), Moment(1e9, 0.0))
    assert planned.actions == []


def test_faults_of_windows_come_with_their_keys() -> None:
    document = _document(windows=[{**DAY, "end": "0 25 * * *"}])
    assert faults_of(HEADROOM, document) == ["placeholders[0].windows[0].end"]
