"""The mover's cache, its scheduler model, follows any cluster, whatever it held before."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from roost.controllers.contract.snapshot import Snapshot
from roost.controllers.placeholder_mover.scheduler_model import Prediction, SchedulerModel
from roost_core.objects.node import Node
from roost_core.objects.pod import Pod, PodSpec
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
