"""Headroom by the clock and in whole nodes: what is scaled and resized, and when not."""

from dataclasses import dataclass, field, replace
from typing import Any

from roost.controllers.contract.actions import Action, Done, Notice, Outcome, ResizeSet, ScaleSet
from roost.controllers.contract.planner import Planner
from roost.controllers.contract.release import ReleaseDocument
from roost.controllers.contract.snapshot import Moment, Snapshot, StatefulSetState
from roost.controllers.headroom.plan import CONTROLLER as HEADROOM
from roost_core.objects.node import Node
from roost_core.objects.pod import Owner, Pod, PodSpec
from roost_core.placement.headroom_windows import parse_moment
from roost_core.placement.labels import OWN_INSTANCE_LABEL, PLACEHOLDER_SET_LABEL
from roost_core.release.reader import Reader
from tests.builders import NAMESPACE, RELEASE
from tests.unit.controllers.planners import faults_of, only, planner_from

SET = "hub-roost-placeholder-default"
GIB = 2**30
DAY = {"name": "day", "replicas": 30, "timeZone": "Europe/Berlin", "start": "0 8 * * *", "end": "0 18 * * *"}


def _document(**changes: object) -> dict[str, Any]:
    one = {
        "name": "default",
        "statefulSet": SET,
        "replicas": 3,
        "countBy": "pods",
        "windows": [],
        "nodeSelector": {"pool": "user"},
        "tolerations": [],
        "requiredNodeTerms": [],
    }
    return {"release": RELEASE, "namespace": NAMESPACE, "placeholders": [{**one, **changes}]}


def _planner(**changes: object) -> Planner[Any]:
    return planner_from(HEADROOM, _document(**changes))


@dataclass
class Cluster:
    """One set, some nodes and pods, and a clock; what is planned is carried out."""

    planner: Planner[Any]
    now: float = field(default_factory=lambda: parse_moment("2026-10-05T12:00", "Europe/Berlin"))
    steady: float = 1000.0
    replicas: int = 3
    requests: dict[str, object] = field(default_factory=lambda: {"cpu": "50m", "memory": "1Gi"})
    nodes: dict[str, Node] = field(default_factory=dict)
    pods: dict[str, Pod] = field(default_factory=dict)
    outcome: Outcome = Outcome.DONE

    def turn(self) -> list[Action]:
        state = StatefulSetState(SET, "uid-set", self.replicas, requests=self.requests, container="pause")
        snapshot = Snapshot(RELEASE, NAMESPACE, self.nodes, self.pods, {SET: state})
        now = Moment(self.now, self.steady)
        planned = self.planner.plan(snapshot, now)
        self.wait_seconds = planned.wake_after_seconds
        for action in planned.actions:
            if isinstance(action, ScaleSet) and self.outcome is Outcome.DONE:
                self.replicas = action.replicas
            if isinstance(action, ResizeSet) and self.outcome is Outcome.DONE:
                self.requests = dict(action.requests)
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

    def add_node(
        self, name: str, cpu: int = 4000, memory: int = 16 * GIB, *, kind: str = "m", age: float = 3600
    ) -> None:
        labels = {"pool": "user", "node.kubernetes.io/instance-type": kind}
        created = self.now - age
        allocatable = {"cpu": cpu, "memory": memory, "pods": 110}
        self.nodes[name] = Node(
            name, labels, uid=f"uid-{name}", created=created, allocatable=allocatable, ready_since=created
        )

    def add_pod(self, name: str, node: str, cpu: int, memory: int, owner: str = "DaemonSet") -> None:
        spec = PodSpec(requests=(("cpu", cpu), ("memory", memory)))
        self.pods[f"kube-system/{name}"] = Pod(
            "kube-system", name, node_name=node, phase="Running", owner=Owner(owner, name, "uid"), spec=spec
        )

    def add_placeholder(self, node: str, *, age: float) -> None:
        """The set's pod, created so many seconds ago, is on that node."""
        name = f"{SET}-0"
        labels = {PLACEHOLDER_SET_LABEL: "default", OWN_INSTANCE_LABEL: RELEASE}
        self.pods[f"{NAMESPACE}/{name}"] = Pod(
            NAMESPACE,
            name,
            labels=labels,
            node_name=node,
            phase="Running",
            created=self.now - age,
            owner=Owner("StatefulSet", SET, "uid-set"),
        )


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


def test_somebody_elses_number_is_set_right_while_windows_are_there_and_left_alone_without() -> None:
    cluster = Cluster(_planner(windows=[DAY]), replicas=30)
    assert cluster.turn() == []
    cluster.replicas = 7
    assert cluster.turn() != []
    assert HEADROOM.planner(ReleaseDocument(Reader(), _document(), None, 36)) is None


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
    document = _document(windows=[{**DAY, "end": "0 25 * * *"}], countBy="racks")
    assert faults_of(HEADROOM, document) == ["placeholders[0].countBy", "placeholders[0].windows[0].end"]


# Whole nodes


def test_the_number_of_a_set_that_counts_nodes_is_kept_without_windows_too() -> None:
    cluster = Cluster(_planner(countBy="nodes"), replicas=1)
    up = only(ScaleSet, cluster.turn())
    assert (up.replicas, up.why) == (3, "the values say so")


def _whole_nodes() -> Cluster:
    cluster = Cluster(_planner(countBy="nodes"))
    cluster.add_node("a")
    cluster.add_pod("proxy-a", "a", 100, GIB)
    cluster.add_pod("static-a", "a", 50, 0, "Node")
    cluster.add_pod("user", "a", 1000, 4 * GIB, "ReplicaSet")
    return cluster


def test_a_placeholder_for_a_node_asks_for_what_daemon_pods_leave() -> None:
    cluster = _whole_nodes()
    resize = only(ResizeSet, cluster.pass_time(90))
    assert (resize.name, resize.uid, resize.container) == (SET, "uid-set", "pause")
    # 3850m and 15 GiB, less a hundredth.
    assert resize.requests == {"cpu": "3810m", "memory": "15206Mi"}
    assert cluster.pass_time(3600) == []


def test_nodes_of_one_type_that_differ_a_little_restart_nothing() -> None:
    cluster = _whole_nodes()
    cluster.pass_time(90)
    for index in range(20):
        cluster.add_node(f"b{index}", 4000, 16 * GIB - index * 4 * 2**20)
        cluster.add_pod(f"proxy-b{index}", f"b{index}", 150, GIB)
        assert cluster.pass_time(120) == []


def test_a_little_more_room_is_not_worth_a_restart_and_a_lot_is_after_a_while() -> None:
    cluster = _whole_nodes()
    cluster.add_pod("sometimes", "a", 100, GIB // 4)
    cluster.pass_time(900)
    cluster.pods.pop("kube-system/sometimes")
    assert cluster.pass_time(3600) == []
    cluster.pods.pop("kube-system/proxy-a")
    assert cluster.pass_time(570) == []
    assert len(cluster.pass_time(60)) == 1


def test_a_size_that_a_node_cannot_hold_shrinks_once_it_has_been_so_for_a_minute() -> None:
    cluster = _whole_nodes()
    cluster.pass_time(900)
    cluster.add_node("b", 4000, 14 * GIB)
    assert cluster.pass_time(30) == []
    assert only(ResizeSet, cluster.pass_time(90)).requests["memory"] == "14192Mi"


def test_room_that_comes_and_goes_is_not_chased() -> None:
    cluster = _whole_nodes()
    cluster.pass_time(900)
    resizes = []
    for round_ in range(40):
        # A daemon pod of a gibibyte that is there every other three minutes.
        if round_ % 2:
            cluster.add_pod("visitor", "a", 0, GIB)
        else:
            cluster.pods.pop("kube-system/visitor", None)
        resizes += cluster.pass_time(180)
    assert len(resizes) == 1, "smaller once, and never larger again"


def test_the_newest_instance_type_counts_and_nodes_elsewhere_do_not() -> None:
    cluster = _whole_nodes()
    cluster.add_node("large", 16_000, 64 * GIB, kind="xl", age=600)
    cluster.add_node("other", 32_000, 256 * GIB, kind="xxl", age=100)
    cluster.nodes["other"] = replace(cluster.nodes["other"], labels={"pool": "gpu"})
    cluster.add_node("fresh", 64_000, 512 * GIB, kind="new", age=-40)
    assert only(ResizeSet, cluster.pass_time(90)).requests == {"cpu": "15840m", "memory": f"{int(64 * 1024 * 0.99)}Mi"}


def test_of_two_instance_types_the_one_in_use_counts_as_long_as_the_pool_has_a_node_of_it() -> None:
    cluster = Cluster(_planner(countBy="nodes"))
    cluster.add_node("large", 16_000, 64 * GIB, kind="xl", age=9000)
    resizes = []
    for index in range(8):
        resizes += cluster.pass_time(600)
        cluster.add_node(f"small{index}", 4000, 16 * GIB, kind="m", age=0)
        resizes += cluster.pass_time(1200)
        if index == 3:
            # Of the type in use there is only one that isn't Ready, for a while.
            ready = cluster.nodes["large"]
            cluster.nodes["large"] = replace(ready, ready_since=None, ready=False)
            assert cluster.pass_time(1800) == []
            cluster.nodes["large"] = ready
        if index == 5:
            cluster.planner = _planner(countBy="nodes")
        del cluster.nodes[f"small{index}"]
    assert len(resizes) == 1
    del cluster.nodes["large"]
    cluster.add_node("small", 4000, 16 * GIB, kind="m", age=0)
    assert only(ResizeSet, cluster.pass_time(1800)).requests["cpu"] == "3960m"


def test_a_node_that_a_placeholder_waited_for_never_makes_the_placeholder_larger() -> None:
    cluster = Cluster(_planner(countBy="nodes"))
    cluster.add_node("n0", 2000, 8 * GIB, kind="t0", age=9000)
    assert len(cluster.pass_time(600)) == 1
    # The autoscaler believes that nodes have less than they do, and brings the next larger type each time.
    for index in range(1, 6):
        cluster.add_node(f"n{index}", 2000 * 2**index, 8 * GIB * 2**index, kind=f"t{index}", age=0)
        cluster.add_placeholder(f"n{index}", age=120)
        assert cluster.pass_time(600) == []
        # It is pre-empted there, and the smaller node goes.
        cluster.pods.clear()
        del cluster.nodes[f"n{index - 1}"]
        assert cluster.pass_time(3000) == []
    cluster.add_node("users", 64_000, 256 * GIB, kind="t5", age=0)
    assert only(ResizeSet, cluster.pass_time(1800)).requests["cpu"] == "63360m"


def test_the_first_size_grows_to_the_node_that_the_first_placeholder_brought() -> None:
    first = {"requests": {"cpu": "50m", "memory": "1Gi"}}
    cluster = Cluster(_planner(countBy="nodes", resources=first))
    cluster.add_node("a", age=0)
    cluster.add_placeholder("a", age=120)
    assert only(ResizeSet, cluster.pass_time(600)).requests["cpu"] == "3960m"


def test_placeholders_that_ask_for_nothing_get_the_values_size_until_the_pool_has_a_node() -> None:
    first = {"requests": {"cpu": 1, "memory": "1Gi"}, "limits": {"cpu": 2}}
    cluster = Cluster(_planner(countBy="nodes", resources=first), requests={})
    assert only(ResizeSet, cluster.pass_time(30)).requests == {"cpu": "1", "memory": "1Gi"}
    assert cluster.pass_time(60) == []
    cluster.add_node("a", age=0)
    assert only(ResizeSet, cluster.pass_time(180)).requests["cpu"] == "3960m"
    # An upgrade that brings another first size is none of our business by now.
    cluster.planner = _planner(countBy="nodes", resources={"requests": {"cpu": 2}})
    assert cluster.pass_time(3600) == []


def test_placeholders_that_ask_for_nothing_get_their_size_from_a_node_where_there_is_one() -> None:
    cluster = Cluster(_planner(countBy="nodes", resources={"requests": {"cpu": 1}}), requests={})
    cluster.add_node("a", age=0)
    assert only(ResizeSet, cluster.pass_time(600)).requests["cpu"] == "3960m"


def test_without_a_node_of_the_pool_the_size_stays() -> None:
    cluster = Cluster(_planner(countBy="nodes"))
    assert cluster.pass_time(300) == []


def test_a_resize_that_fails_is_not_tried_again_every_second() -> None:
    cluster = _whole_nodes()
    cluster.outcome = Outcome.FAILED
    assert len(cluster.pass_time(3600, step=1.0)) <= 7
