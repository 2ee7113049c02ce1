import pytest

from roost.controllers.contract.snapshot import Snapshot
from roost.controllers.placeholder_mover import scheduler_model
from roost.controllers.placeholder_mover.scheduler_model import SchedulerModel
from roost_core.objects.node import Node
from roost_core.objects.pod import Pod


def test_a_large_cluster_is_learnt_in_parts_and_is_whole_only_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduler_model, "MAX_NEW_PODS", 10)
    pods = {f"hub/p{index}": Pod(namespace="hub", name=f"p{index}", node_name="n") for index in range(25)}
    snapshot = Snapshot("hub", "hub", {"n": Node(name="n")}, pods)
    model = SchedulerModel()
    assert [model.follow(snapshot) for _ in range(4)] == [False, False, True, True]
