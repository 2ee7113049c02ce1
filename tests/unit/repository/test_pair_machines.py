"""The stand-in for Cluster Autoscaler that pairs are played with: what makes it ask for a node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest
import yaml

from roost_core.objects.node import read_node
from roost_core.objects.pod_reader import read_pod
from tests.e2e.pair_machines import STABLE_SECONDS, ClusterAutoscaler
from tests.judge.cases import GPU, GPU_TAINT, Pool, Profile, user_pod
from tests.recorded_data import rows

if TYPE_CHECKING:
    from tests.harness.api import Api

Object = dict[str, Any]

USERS = Pool(name="users", labels={"pool": "user"}, most=3)
GPUS = Pool(name="gpu", taints=(GPU_TAINT,), extra_resources={GPU: "1"}, most=3)
PLAIN = Profile(name="plain", cpu=2.0)
IMAGE_LABEL = "images/a"


class Cloud:
    """An autoscaler at a moment, with nodes and pods as the API server would list them."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.nodes: list[Object] = []
        self.pods: list[Object] = []
        self.scaler = ClusterAutoscaler(cast("Api", None), (USERS, GPUS), "a", 4.0, lambda: self.now)

    def node(self, name: str, **labels: str) -> None:
        status = "{allocatable: {cpu: 4, memory: 16Gi, pods: 110}, conditions: [{type: Ready, status: 'True'}]}"
        metadata = {"name": name, "labels": {**USERS.labels, **labels}}
        self.nodes.append({"metadata": metadata, "spec": {"taints": []}, "status": yaml.safe_load(status)})
        self.scaler.adopt("users", name)

    def users(self, count: int, profile: Profile = PLAIN, *, node: str = "", **spec: Any) -> None:
        for _ in range(count):
            pod = user_pod(f"user-{len(self.pods)}", profile)
            pod["spec"] |= {"priority": 0, **spec, **({"nodeName": node} if node else {})}
            told = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
            conditions = [{**told, "lastTransitionTime": "2026-11-03T08:00:00Z"}]
            self.pods.append({**pod, "status": {"phase": "Pending", "conditions": [] if node else conditions}})

    def asked(self) -> tuple[str, int] | None:
        return self.scaler.asks_for(map(read_node, self.nodes), map(read_pod, self.pods))


def wants(operator: str, value: str) -> Object:
    expression = {"key": IMAGE_LABEL, "operator": operator, "values": [value]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}


@pytest.mark.parametrize(("state", "operator", "value", "is_seen"), rows("repository/pair-templates"))
def test_a_template_is_a_copy_of_a_stable_node_with_its_labels(
    state: str, operator: str, value: str, is_seen: bool
) -> None:
    cloud = Cloud()
    cloud.node("there", **{IMAGE_LABEL: state})
    cloud.users(2, node="there")
    cloud.users(1, **wants(operator, value))
    # Until the node is stable, it's the group's own labels: none says a thing about images.
    assert (cloud.asked() is not None) == (operator == "NotIn")
    cloud.now += STABLE_SECONDS
    assert (cloud.asked() is not None) == is_seen


def test_it_remembers_the_last_node_of_a_group() -> None:
    cloud = Cloud()
    cloud.node("there", **{IMAGE_LABEL: "pulling"})
    cloud.asked()
    cloud.now += STABLE_SECONDS
    cloud.asked()
    cloud.nodes.clear()
    cloud.users(1, **wants("NotIn", "pulling"))
    assert cloud.asked() is None
    cloud.users(1)
    assert cloud.asked() == ("users", 1)


def test_a_template_has_no_taint_of_the_moment_and_keeps_the_others() -> None:
    cloud = Cloud()
    cloud.node("there")
    taints = cloud.nodes[0]["spec"]["taints"]
    taints.append({"key": "startup-taint.cluster-autoscaler.kubernetes.io/roost", "effect": "NoSchedule"})
    cloud.users(1)
    cloud.asked()
    cloud.now += STABLE_SECONDS
    assert cloud.asked() == ("users", 1)
    taints.append({"key": "team", "value": "a", "effect": "NoSchedule"})
    assert cloud.asked() is None
