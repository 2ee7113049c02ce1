"""Which nodes match what users require, as `roost doctor` tells it."""

import pytest

from roost.doctor.checks import INSTALLED, run_checks
from tests.unit.doctor.whole_cluster import NODES, PLACED, PODS, Cluster, Object, found, node, pod

TERM = "{matchExpressions: [{key: p, operator: In, values: [u]}]}"
REQUIRED = "singleuser: {nodeSelector: {hub.jupyter.org/node-purpose: user}}\nplaceholders: []\n"
POOLS = "singleuser: {profileList: [{display_name: GPU, kubespawner_override: {node_selector: {pool: gpu}}}]}\n"
RIGHT = {"hub.jupyter.org/node-purpose": "user"}
AUTOSCALER: Object = {
    "metadata": {"namespace": "kube-system", "name": "ca"},
    "spec": {"template": {"spec": {"containers": [{"image": "cluster-autoscaler:v1"}]}}},
}


def labelled(name: str, labels: dict[str, str], taints: list[str] | None = None) -> Object:
    made = node(name, taints=taints or [])
    made["metadata"]["labels"] = labels
    return made


def looked_at(cluster: Cluster) -> str:
    (said,) = [one.looked_at for one in run_checks(cluster.install, INSTALLED) if one.check == "reach"]
    return said


def test_it_says_how_many_nodes_each_kind_of_pod_may_use() -> None:
    cluster = Cluster(POOLS + "placeholders: [{name: default, replicas: 1}]\n")
    cluster.lists[NODES] = [node("a"), node("b", pool="gpu"), node("c", taints=["theirs"], pool="gpu")]
    cluster.lists[PODS] = [pod("ada", PLACED, spec={"nodeSelector": {"pool": "gpu"}}, status={"phase": "Running"})]
    assert (
        looked_at(cluster) == "of 3 nodes, may use: users + placeholders: 2, users (pool=gpu): 1, pods of class user: 1"
    )
    assert cluster.said("reach") == []


@pytest.mark.parametrize(
    ("values", "nodes", "told"),
    [
        (REQUIRED, [node("a"), node("b")], "No node matches what users require: hub.jupyter.org/node-purpose=user; no"),
        (
            f"singleuser: {{extraNodeAffinity: {{required: [{TERM}]}}}}\nplaceholders: []\n",
            [node("a", p="other")],
            "No node matches what users require: p In u; no autoscaler is seen.",
        ),
        (REQUIRED, [labelled("a", RIGHT, ["theirs"])], "Of 1 node with the right labels, none is for users: noth"),
    ],
)
def test_a_pool_that_users_cant_use_is_an_error(values: str, nodes: list[Object], told: str) -> None:
    cluster = Cluster(values)
    cluster.lists[NODES] = nodes
    cluster.tells("reach", "error", told)


def test_a_pool_that_is_all_cordoned_is_an_error_and_one_that_is_just_starting_is_not() -> None:
    cluster = Cluster(REQUIRED)
    cluster.lists[NODES] = [labelled("a", RIGHT)]
    cluster.lists[NODES][0]["spec"]["unschedulable"] = True
    cluster.tells("reach", "error", "they are cordoned")
    cluster = Cluster(REQUIRED)
    cluster.lists[NODES] = [labelled("a", RIGHT, ["node.kubernetes.io/not-ready"])]
    assert cluster.said("reach") == []


@pytest.mark.parametrize("way", ["deployment", "karpenter", "managed"])
def test_a_pool_without_nodes_is_fine_where_an_autoscaler_may_bring_them(way: str) -> None:
    cluster = Cluster(REQUIRED)
    cluster.lists[NODES] = [node("a")]
    if way == "deployment":
        cluster.lists["/apis/apps/v1/deployments"] = [AUTOSCALER]
    elif way == "karpenter":
        cluster.lists["/apis/karpenter.sh/v1/nodepools"] = []
    else:
        cluster.objects["/api/v1/namespaces/kube-system/configmaps/cluster-autoscaler-status"] = {}
    assert found(run_checks(cluster.install, INSTALLED), "reach") == []
