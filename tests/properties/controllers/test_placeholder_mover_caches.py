"""The mover's caches, its scheduler model and its pod index, follow any cluster, whatever they held before."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from roost.controllers.contract.snapshot import Snapshot
from roost.controllers.placeholder_mover.scheduler_model import Prediction, SchedulerModel
from roost.controllers.placeholder_mover.view import PodIndex
from roost_core.objects.node import Node
from roost_core.objects.pod import ContainerState, Pod, PodSpec
from roost_core.placement.labels import OWN_COMPONENT_LABEL, OWN_PART, PART_OF_LABEL, PLACEHOLDER_SET_LABEL
from roost_core.scheduler.plugins import NEWEST_MINOR
from roost_core.scheduler.profile import default_profile
from roost_core.scheduler.state import ClusterState

NAMES = ["a", "b", "c"]
NODE = st.builds(lambda cpu, cordoned: (cpu, cordoned), st.sampled_from([1000, 2000, 4000]), st.booleans())
POD = st.tuples(st.sampled_from(["", *NAMES, "unknown"]), st.sampled_from([0, 500, 1000]), st.booleans())
CLUSTER = st.tuples(
    st.dictionaries(st.sampled_from(NAMES), NODE), st.dictionaries(st.sampled_from([f"p{i}" for i in range(6)]), POD)
)


def _snapshot(cluster: tuple[dict[str, tuple[int, bool]], dict[str, tuple[str, int, bool]]]) -> Snapshot:
    nodes = {
        name: Node(
            name,
            {"kubernetes.io/hostname": name},
            unschedulable=cordoned,
            allocatable={"cpu": cpu, "memory": 2**34, "pods": 5},
        )
        for name, (cpu, cordoned) in cluster[0].items()
    }
    pods = {
        f"n/{name}": Pod(
            "n",
            name,
            node_name=node,
            nominated_node="a" if nominated and not node else "",
            phase="Succeeded" if nominated and node else "Running",
            spec=PodSpec(requests=(("cpu", cpu),)),
        )
        for name, (node, cpu, nominated) in cluster[1].items()
    }
    return Snapshot("hub", "n", nodes, pods)


def _rows(state: ClusterState) -> object:
    return {
        name: (row.node, dict(row.pods), dict(row.nominated), dict(row.requested), dict(row.scored))
        for name, row in state.rows.items()
    }


@settings(max_examples=150, deadline=None)
@given(clusters=st.lists(CLUSTER, min_size=1, max_size=5), data=st.data())
def test_after_any_history_the_model_is_the_one_that_the_snapshot_alone_gives(
    clusters: list[tuple[dict[str, tuple[int, bool]], dict[str, tuple[str, int, bool]]]], data: st.DataObject
) -> None:
    model, profile = SchedulerModel(), default_profile(NEWEST_MINOR)
    for cluster in clusters:
        snapshot = _snapshot(cluster)
        model.follow(snapshot)
        fresh = ClusterState(snapshot.nodes.values(), snapshot.pods.values())
        assert _rows(model._state) == _rows(fresh)
        bound = [pod for pod in snapshot.pods.values() if pod.node_name in snapshot.nodes and not pod.is_finished]
        for pod in bound:
            if data.draw(st.booleans()):
                answer = model.try_move(pod, "b", profile)
                assert answer is not Prediction.TARGET or "b" in snapshot.nodes
        if data.draw(st.booleans()):
            model.undo()
            assert _rows(model._state) == _rows(fresh)


def test_each_move_is_in_the_model_before_the_next_is_asked_for() -> None:
    snapshot = _snapshot(({"a": (4000, False), "b": (1000, False)}, {f"p{i}": ("a", 500, False) for i in range(4)}))
    model, profile = SchedulerModel(), default_profile(NEWEST_MINOR)
    snapshot = replace(
        snapshot, nodes={**snapshot.nodes, "a": replace(snapshot.nodes["a"], labels={}, unschedulable=True)}
    )
    model.follow(snapshot)
    answers = [model.try_move(pod, "b", profile) for pod in snapshot.pods.values()]
    assert answers == [Prediction.TARGET, Prediction.TARGET, Prediction.REJECTED, Prediction.REJECTED]


WATCHED = st.tuples(
    st.sampled_from(["", *NAMES]),
    st.sampled_from(["Pending", "Running", "Succeeded"]),
    st.sampled_from(["", "a", "b"]),
    st.sampled_from(["user", "placeholder", "puller", "popular-puller"]),
    st.sampled_from(["", "ImagePullBackOff"]),
)


def _watched(name: str, drawn: tuple[str, str, str, str, str]) -> Pod:
    node, phase, nominated, component, waiting = drawn
    labels = {OWN_COMPONENT_LABEL: component, PART_OF_LABEL: OWN_PART}
    if component == "placeholder":
        labels[PLACEHOLDER_SET_LABEL] = "default"
    containers = (ContainerState("image", waiting_reason=waiting),)
    return Pod("n", name, "", labels, {}, node, nominated, phase, containers=containers)


@given(st.lists(st.dictionaries(st.sampled_from([f"n/p{i}" for i in range(6)]), WATCHED), min_size=1, max_size=6))
def test_after_any_history_what_is_known_of_pods_is_what_they_alone_say(
    histories: list[dict[str, tuple[str, str, str, str, str]]],
) -> None:
    watch = PodIndex()
    before: dict[str, Pod] = {}
    for drawn in histories:
        pods = {key: _watched(key, one) for key, one in drawn.items()}
        # What didn't change is the same object, as the watches have it.
        pods = {key: before[key] if before.get(key) == pod else pod for key, pod in pods.items()}
        watch.follow(pods)
        assert list(watch.placeholders(pods)) == [pod for pod in pods.values() if PLACEHOLDER_SET_LABEL in pod.labels]
        assert set(watch.nominated_to) == {
            pod.nominated_node for pod in pods.values() if pod.nominated_node and not pod.node_name
        }
        assert watch.pulling_on == {
            pod.node_name
            for pod in pods.values()
            if pod.phase == "Pending"
            and pod.node_name
            and "puller" in pod.labels[OWN_COMPONENT_LABEL]
            and not pod.containers[0].waiting_reason
        }
        for name in NAMES:
            there = [pod for pod in pods.values() if pod.node_name == name and not pod.is_finished]
            assert sorted(pod.name for pod in watch.on_node(name)) == sorted(pod.name for pod in there)
        before = pods
