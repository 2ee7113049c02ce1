import pytest

from roost.controllers.contract.snapshot import Snapshot
from roost.controllers.placeholder_mover import scheduler_model
from roost.controllers.placeholder_mover.scheduler_model import Prediction, SchedulerModel
from roost_core.objects.node import Node
from roost_core.objects.pod import Pod
from roost_core.scheduler.profile import default_profile


def test_a_large_cluster_is_learnt_in_parts_and_is_whole_only_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduler_model, "MAX_NEW_PODS", 10)
    pods = {f"hub/p{index}": Pod(namespace="hub", name=f"p{index}", node_name="n") for index in range(25)}
    snapshot = Snapshot("hub", "hub", {"n": Node(name="n")}, pods)
    model = SchedulerModel()
    assert [model.follow(snapshot) for _ in range(4)] == [False, False, True, True]


@pytest.mark.parametrize(("minor", "expected"), [(34, Prediction.ELSEWHERE), (35, Prediction.TARGET)])
def test_nothing_moves_to_one_of_two_equal_nodes_where_the_scheduler_picks_by_chance(
    minor: int, expected: Prediction
) -> None:
    room = {"cpu": 4000, "memory": 2**33, "pods": 110}
    nodes = {name: Node(name=name, allocatable=room, created=index) for index, name in enumerate("ab")}
    pod = Pod(namespace="hub", name="p", node_name="b")
    model = SchedulerModel()
    model.follow(Snapshot("hub", "hub", nodes, {pod.key: pod}))
    assert model.try_move(pod, "a", default_profile(minor)) is expected
    assert model.try_move(pod, "none", default_profile(minor)) is Prediction.ELSEWHERE
