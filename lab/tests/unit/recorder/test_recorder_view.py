"""The recorded cluster at a moment: from rows to what the page draws."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks import view_record
from lab.tests.moments import BEGIN, HOUR, MINUTE, SECOND
from lab.tests.recorded import bind_record, empty_store, fail_record, phase_record, pod_record, pull_record
from roost_core.placement.labels import attract_label, pulled_label
from roost_lab.recorder.store.database import Store
from roost_lab.recorder.store.records import (
    DecisionKind,
    GapRecord,
    ImageRecord,
    NodeChangeRecord,
    NodeRecord,
    Phase,
    PreemptionRecord,
    Record,
)
from roost_lab.view import moment as view
from roost_lab.view.moment import ChangeKind, ClusterMoment, NodeState, PodState, as_json, tell_moment
from roost_lab.view.reading import LIVE_US, read_moment
from tests.harness.postgres import Postgres

NOW = BEGIN + HOUR
IMAGE = "registry.example.org/image:1"
PULLED = pulled_label("hub", "jhub", IMAGE)
ATTRACTS = attract_label("hub", "jhub", "large")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return empty_store(tmp_path)


def node_record(name: str, **changes: Any) -> NodeRecord:
    base = NodeRecord(
        uid=f"uid-{name}",
        name=name,
        created_us=BEGIN,
        allocatable=json.dumps({"cpu": 4000, "memory": 16 << 30}),
        labels="{}",
        taints="",
        is_ready=True,
        is_unschedulable=False,
    )
    return replace(base, **changes)


def change_record(name: str, field: str, at_us: int, old: str, new: str) -> NodeChangeRecord:
    return NodeChangeRecord(
        node_uid=f"uid-{name}", resource_version=str(at_us), field=field, at_us=at_us, resolution_us=1, old=old, new=new
    )


def on_node(uid: str, node: str = "n", at_us: int = BEGIN + MINUTE, **changes: Any) -> list[Record]:
    """A pod that was created and bound then."""
    return [pod_record(uid, created_us=at_us, image=IMAGE, **changes), bind_record(uid, at_us, node)]


def look(store: Store, *records: Record, at_us: int | None = NOW, now_us: int = NOW + HOUR) -> ClusterMoment:
    store.write(list(records), {"pods": ("1", NOW + HOUR)})
    found = read_moment(store, at_us, now_us)
    assert found is not None
    return found


def test_nodes_are_the_oldest_first_and_have_the_pods_that_they_had_then(store: Store) -> None:
    moment = look(
        store,
        node_record("young", created_us=BEGIN + MINUTE),
        node_record("old"),
        node_record("gone", gone_us=NOW - MINUTE),
        node_record("later", created_us=NOW + MINUTE),
        *on_node("here", "old"),
        *on_node("ended", "old", deleted_us=NOW - SECOND),
        *on_node("later", "old", NOW + SECOND),
        *on_node("daemon", "old", pod_class=""),
        *on_node("build", "young", pod_class="build", deleted_us=NOW + SECOND),
    )
    assert [(node.name, [pod.name for pod in node.pods], node.others) for node in moment.nodes] == [
        ("old", ["hub/here"], 1),
        ("young", ["hub/build"], 0),
    ]
    assert moment.pending_count == 0


@pytest.mark.parametrize(
    ("changes", "state"),
    [
        ({}, NodeState.READY),
        ({"is_unschedulable": True}, NodeState.CORDONED),
        ({"is_unschedulable": True, "taints": "a=:NoSchedule, karpenter.sh/disrupted=:NoSchedule"}, NodeState.LEAVING),
        ({"is_ready": False, "is_unschedulable": True}, NodeState.NOT_READY),
        ({"is_ready": None}, NodeState.UNKNOWN),
    ],
)
def test_a_nodes_state(store: Store, changes: dict[str, Any], state: NodeState) -> None:
    assert look(store, node_record("n", **changes), *on_node("p")).nodes[0].state == state


def test_a_node_is_as_it_was_before_it_changed(store: Store) -> None:
    records: list[Record] = [
        node_record("n", is_unschedulable=True, labels=json.dumps({ATTRACTS: "true", PULLED: "true"})),
        change_record("n", "unschedulable", NOW + SECOND, "False", "True"),
        change_record("n", f"label:{ATTRACTS}", NOW - MINUTE, "true", ""),
        change_record("n", f"label:{ATTRACTS}", NOW + SECOND, "", "true"),
        change_record("n", f"label:{PULLED}", NOW + SECOND, "pulling", "open"),
        change_record("n", f"label:{PULLED}", NOW + MINUTE, "open", "true"),
        *on_node("p"),
    ]
    then, before, after = (look(store, *records, at_us=at_us) for at_us in (NOW, NOW - HOUR // 2, NOW + HOUR))
    assert [(moment.nodes[0].state, list(moment.nodes[0].attracts)) for moment in (before, then, after)] == [
        (NodeState.READY, ["large"]),
        (NodeState.READY, []),
        (NodeState.CORDONED, ["large"]),
    ]
    assert [then.nodes[0].pulling, after.nodes[0].pulling] == [{IMAGE}, set()]
    assert [then.nodes[0].held, after.nodes[0].held] == [set(), {IMAGE}]


def test_images_of_most_users_get_chips_and_nodes_that_had_them_then_hold_them(store: Store) -> None:
    def held(name: str, first_us: int, image: str = "ubuntu:latest", gone_us: int | None = None) -> ImageRecord:
        return ImageRecord(node_uid=f"uid-{name}", image=image, first_us=first_us, image_bytes=1, gone_us=gone_us)

    records: list[Record] = []
    for name in ("has", "had", "gets", "full", "runs"):
        records += [node_record(name), held(name, BEGIN, "other")]
    # A kubelet's list that may be cut says nothing of other images; a running pod has its own.
    for name in ("full", "runs"):
        records += [held(name, BEGIN, f"other-{number}") for number in range(1, view.MOST_REPORTED)]
    popular = "docker.io/library/ubuntu:latest"
    for number, image in enumerate([popular, popular, *(f"rare-{index}" for index in range(view.MAX_CHIPS))]):
        records += [pod_record(f"p{number}", image=image), bind_record(f"p{number}", BEGIN, "has")]
    records += [pod_record("r", image=popular, pod_class="build"), bind_record("r", BEGIN, "runs")]
    records += [phase_record("r", Phase.STARTED, BEGIN)]
    records += [held("has", BEGIN), held("had", BEGIN, gone_us=NOW - SECOND), held("gets", NOW + SECOND)]
    moment = look(store, *records)
    assert (len(moment.chips), next(iter(moment.chips.items()))) == (view.MAX_CHIPS, (popular, 2))
    assert {node.name: (len(node.held), len(node.missing), node.images) for node in moment.nodes} == {
        "has": (1, 5, 2),
        "had": (0, 6, 1),
        "gets": (0, 6, 1),
        "full": (0, 0, 50),
        "runs": (1, 0, 50),
    }


@pytest.mark.parametrize(
    ("records", "state"),
    [
        ([phase_record("p", Phase.STARTED, NOW)], PodState.RUNNING),
        ([phase_record("p", Phase.STARTED, NOW), phase_record("p", Phase.ANSWERED, NOW)], PodState.RUNNING),
        ([phase_record("p", Phase.STARTED, NOW), phase_record("p", Phase.ANSWERED, NOW + 1)], PodState.LOADING),
        ([phase_record("p", Phase.STARTED, NOW), phase_record("p", Phase.ABANDONED, NOW + 1)], PodState.LOADING),
        ([phase_record("p", Phase.STARTED, NOW + SECOND)], PodState.STARTING),
        ([pull_record("p", NOW + SECOND, IMAGE, 2)], PodState.PULLING),
        ([pull_record("p", NOW + MINUTE, IMAGE, 2)], PodState.STARTING),
        ([pull_record("p", NOW + SECOND, IMAGE)], PodState.STARTING),
        ([pull_record("p", NOW - SECOND, IMAGE, 2)], PodState.STARTING),
        # Its node's images are recorded, and its own is not among them.
        ([ImageRecord(node_uid="uid-n", image="other", first_us=BEGIN, image_bytes=1)], PodState.PULLING),
        ([ImageRecord(node_uid="uid-n", image=IMAGE, first_us=BEGIN, image_bytes=1)], PodState.STARTING),
        ([], PodState.STARTING),
    ],
)
def test_a_pod_on_a_node_runs_pulls_or_starts(store: Store, records: list[Record], state: PodState) -> None:
    moment = look(store, node_record("n"), *on_node("p"), *records)
    assert moment.nodes[0].pods[0].state == state
    assert ("1 for an answer" in tell_moment(moment)) == (state is PodState.LOADING)


def test_a_pod_without_a_node_says_why_its_last_attempt_until_then_failed(store: Store) -> None:
    failures: list[Record] = [
        replace(fail_record("p", number, {}), at_us=at_us, message=f"attempt {number}")
        for number, at_us in enumerate((NOW - MINUTE, NOW - SECOND, NOW + SECOND))
    ]
    gated: list[Record] = [pod_record("gated"), phase_record("gated", Phase.GATED, BEGIN, "example.org/quota")]
    moment = look(
        store, pod_record("p", created_us=BEGIN - SECOND), *gated, *failures, pod_record("new", created_us=NOW)
    )
    assert [(pod.name, pod.reason) for pod in moment.pending] == [
        ("hub/p", "attempt 1"),
        ("hub/gated", "It is held by the scheduling gate example.org/quota."),
        ("hub/new", ""),
    ]


def test_the_last_minute_has_placements_moves_and_preemptions(store: Store) -> None:
    def removed(uid: str, kind: str, at_us: int, by_uid: str | None = None) -> PreemptionRecord:
        return PreemptionRecord(victim_uid=uid, by_uid=by_uid, node_name="old", at_us=at_us, kind=kind)

    placeholder = {"pod_class": "placeholder", "name": "placeholder-0"}
    moment = look(
        store,
        *on_node("user", "new", NOW - 10 * SECOND),
        *on_node("before", "new", NOW - MINUTE),
        *on_node("daemon", "new", NOW - SECOND, pod_class=""),
        *on_node("first", "old", BEGIN, deleted_us=NOW - 90 * SECOND, **placeholder),
        removed("first", "evicted", NOW - 2 * MINUTE),
        *on_node("second", "new", NOW - 20 * SECOND, **placeholder),
        removed("victim", "preempted", NOW - 30 * SECOND, "user"),
        # Its successor isn't bound yet.
        *on_node("third", "old", BEGIN, deleted_us=NOW, pod_class="placeholder"),
        removed("third", "evicted", NOW - 5 * SECOND),
    )
    assert [
        (change.kind, change.name, change.from_node, change.to_node, change.by_name) for change in moment.changes
    ] == [
        (ChangeKind.EVICTED, "hub/third", "old", "", ""),
        (ChangeKind.PLACED, "hub/user", "", "new", ""),
        (ChangeKind.MOVED, "hub/placeholder-0", "old", "new", ""),
        (ChangeKind.PREEMPTED, "a pod that isn't recorded", "old", "", "hub/user"),
    ]


def test_a_pod_that_is_evicted_after_its_binding_was_placed_not_moved(store: Store) -> None:
    removal = PreemptionRecord(victim_uid="p", node_name="n", at_us=NOW - SECOND, kind="evicted")
    moment = look(store, *on_node("p", "n", NOW - 2 * SECOND), removal)
    assert [change.kind for change in moment.changes] == [ChangeKind.EVICTED, ChangeKind.PLACED]


def test_nodes_that_only_bindings_name_are_shown_as_such(store: Store) -> None:
    imported = replace(bind_record("p", BEGIN, "n"), node_uid="")
    (node,) = look(store, pod_record("p"), imported).nodes
    assert (node.name, node.state, node.images, node.cpu_millicores) == ("n", NodeState.UNKNOWN, None, (0, None))


def test_a_node_says_for_how_many_pods_of_the_last_ten_minutes_the_warm_set_named_it_first(store: Store) -> None:
    told: list[Record] = [
        node_record("warm"),
        node_record("cold"),
        *on_node("new", "cold", NOW - MINUTE, warm_target="warm"),
        # It waits: the webhook chose when it was created.
        pod_record("waits", created_us=NOW - 9 * MINUTE, warm_target="warm"),
        *on_node("old", "warm", NOW - 10 * MINUTE, warm_target="cold"),
        *on_node("theirs", "warm", NOW - MINUTE, warm_target="cold", hub="theirs"),
        *on_node("none", "cold", NOW - MINUTE),
        pod_record("astray", created_us=NOW - MINUTE, warm_target="no-such-node"),
        pod_record("later", created_us=NOW + MINUTE, warm_target="warm"),
    ]
    store.write(told, {"pods": ("1", NOW + HOUR)})
    found = read_moment(store, NOW, NOW)
    assert found is not None
    assert {node.name: node.warm for node in found.nodes} == {"warm": 2, "cold": 1}


def test_a_moment_within_a_gap_says_so(store: Store) -> None:
    gap = GapRecord(kind="pods", from_us=NOW - MINUTE, to_us=NOW + MINUTE, why="forgotten")
    records: list[Record] = [pod_record("p"), gap]
    assert look(store, *records).notices == ["Changes of pods may be missing at this moment: forgotten."]
    assert look(store, *records, at_us=NOW + MINUTE).notices == []


def test_the_latest_state_is_of_now_while_the_record_goes_on_and_of_its_end_afterwards(store: Store) -> None:
    end_us = NOW + HOUR
    for now_us, at_us in (
        (end_us + LIVE_US - SECOND, end_us + LIVE_US - SECOND),
        (end_us - SECOND, end_us + 1),
        (end_us + LIVE_US + SECOND, end_us + 1),
    ):
        assert look(store, pod_record("p"), at_us=None, now_us=now_us).at_us == at_us


def test_the_json_refers_to_images_by_index_and_names_nodes_in_short(store: Store) -> None:
    long = "gke-cluster-name-default-pool-with-a-long-name-0001"
    document = as_json(look(store, node_record(long), *on_node("p", long), *on_node("q", long, pod_class="gpu")))
    (node,) = document["nodes"]
    assert document["images"][node["pods"][0]["image"]] == IMAGE
    assert (node["name"], len(node["short"]) <= view.NODE_LENGTH) == (long, True)
    assert document["counts"] == {"user": 1, "gpu": 1}
    assert DecisionKind.BIND not in json.dumps(document)


def test_sqlite_and_postgresql_give_the_same_moments(store: Store, server: Postgres) -> None:
    other = Store.open(server.create("view"))
    other.migrate()
    changes: list[Record] = [
        change_record("0", f"label:{ATTRACTS}", NOW - SECOND, "true", ""),
        change_record("0", "unschedulable", NOW - SECOND, "True", "False"),
        change_record("0", "unschedulable", NOW, "False", "True"),
        GapRecord(kind="pods", from_us=NOW - MINUTE, to_us=NOW + MINUTE, why="forgotten"),
        pod_record("gated"),
        phase_record("gated", Phase.GATED, BEGIN, "example.org/quota"),
    ]
    for target in (store, other):
        target.write([*view_record.records(NOW, 4, 300), *changes], {"pods": ("1", NOW)})
    for at_us in (None, NOW - 2 * SECOND, NOW - 30 * MINUTE, BEGIN):
        ours, theirs = (read_moment(target, at_us, NOW) for target in (store, other))
        assert ours is not None
        assert ours == theirs
    other.close()
