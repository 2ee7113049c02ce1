"""What a node that doesn't exist yet is taken to be like: a copy of one that runs, or what its pool says."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from roost_core.objects.node import Node
from roost_core.objects.pod import Pod
from roost_core.placement.labels import HOSTNAME_LABEL
from roost_core.scheduler.state import ClusterState
from roost_lab.simulator.engine.autoscaler import ScalingDecision
from roost_lab.simulator.engine.cluster_autoscaler import ClusterAutoscaler
from roost_lab.simulator.engine.group_template import STABLE_SECONDS, CopiedTemplate
from roost_lab.simulator.engine.karpenter import Karpenter
from roost_lab.simulator.engine.scaling import make_node_scaler
from roost_lab.simulator.setup.assumptions import Assumptions, Autoscaler
from tests.unit.scheduling_builders import node, pod

KEY = "images-pulled.roost.hub.jupyter.org/hub-image"
STARTUP = "startup-taint.cluster-autoscaler.kubernetes.io/hub=:NoSchedule"
WORLD = Assumptions(min_nodes=0, max_nodes=10)
CLOUD = node("template", labels={"pool": "user"})
NOW = 10_000.0


def there(name: str, labels: Mapping[str, str], *, ready_for: float = 3600.0, **more: Any) -> Node:
    return replace(node(name, labels={"pool": "user", **labels}, **more), ready_since=NOW - ready_for)


def wants(operator: str, *values: str) -> Pod:
    expression = {"key": KEY, "operator": operator, **({"values": list(values)} if values else {})}
    required = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    return pod("waits", requests={"cpu": "3"}, affinity=affinity)


def full(*nodes: Node) -> ClusterState:
    return ClusterState(nodes, [pod(f"on-{one.name}", on=one.name, requests={"cpu": "3"}) for one in nodes])


def asked(kind: Autoscaler, nodes: Sequence[Node], waiting: Pod, now: float = NOW) -> int:
    scaler = make_node_scaler(replace(WORLD, autoscaler=kind), CLOUD, now)
    return scaler.look(full(*nodes), [waiting], {}, now).request


CA, KARPENTER = Autoscaler.CLUSTER_AUTOSCALER, Autoscaler.KARPENTER


# What a running node has, what a pod wants -> new nodes by Cluster Autoscaler, which copies it, and by Karpenter.
@pytest.mark.parametrize(
    ("label", "waiting", "nodes"),
    [
        ("true", wants("In", "true"), (1, 0)),
        ("true", wants("Exists"), (1, 0)),
        # The running node still pulls, and so would all new ones.
        ("pulling", wants("In", "true"), (0, 0)),
        ("pulling", wants("NotIn", "pulling"), (0, 1)),
        ("true", wants("NotIn", "pulling"), (1, 1)),
        ("true", wants("DoesNotExist"), (0, 1)),
    ],
)
def test_a_label_that_a_controller_wrote_is_the_templates_only_where_a_node_is_copied(
    label: str, waiting: Pod, nodes: tuple[int, int]
) -> None:
    assert tuple(asked(kind, [there("a", {KEY: label})], waiting) for kind in (CA, KARPENTER)) == nodes


@pytest.mark.parametrize("kind", [CA, KARPENTER])
@pytest.mark.parametrize(
    ("waiting", "nodes"),
    [(wants("In", "true"), 0), (wants("Exists"), 0), (wants("NotIn", "pulling"), 1), (wants("DoesNotExist"), 1)],
)
def test_a_group_that_never_had_a_node_has_its_own_labels_only(kind: Autoscaler, waiting: Pod, nodes: int) -> None:
    assert asked(kind, [], waiting) == nodes


def test_a_group_that_is_empty_again_is_taken_for_what_it_was() -> None:
    scaler = ClusterAutoscaler(WORLD, CLOUD, NOW)
    scaler.look(full(there("a", {KEY: "true"})), [], {}, NOW)
    assert scaler.look(ClusterState(), [wants("In", "true")], {}, NOW + 10).request == 1
    # Karpenter remembers nothing.
    other = Karpenter(WORLD, CLOUD, NOW)
    other.look(full(there("a", {KEY: "true"})), [], {}, NOW)
    assert other.look(ClusterState(), [wants("In", "true")], {}, NOW + 10).request == 0


@pytest.mark.parametrize(
    "one",
    [
        there("a", {KEY: "true"}, ready_for=STABLE_SECONDS - 1),
        there("a", {KEY: "true"}, cordoned=True),
        there("a", {KEY: "true"}, taints=[STARTUP]),
        replace(there("a", {KEY: "true"}), ready_since=None),
    ],
    ids=["just ready", "cordoned", "starting", "not ready"],
)
def test_a_node_that_has_just_come_or_is_going_is_not_copied(one: Node) -> None:
    assert CopiedTemplate(CLOUD).find(ClusterState([one]), NOW) is CLOUD


def test_a_copy_has_another_name_and_no_taints_that_pass() -> None:
    taints = ["node.kubernetes.io/disk-pressure=:NoSchedule", "hub=user:NoSchedule"]
    found = CopiedTemplate(CLOUD).find(ClusterState([there("a", {KEY: "true"}, taints=taints)]), NOW)
    assert (found.name, found.labels) == ("template", {"pool": "user", KEY: "true", HOSTNAME_LABEL: "template"})
    assert [taint.key for taint in found.taints] == ["hub"]


def test_of_unlike_nodes_another_is_copied_from_turn_to_turn_and_a_pod_that_one_of_them_helps_waits_for_it() -> None:
    nodes = [there("a", {KEY: "true"}), there("b", {KEY: "pulling"})]
    template = CopiedTemplate(CLOUD)
    found = {template.find(ClusterState(nodes), NOW + 10 * turn).labels[KEY] for turn in range(20)}
    assert found == {"true", "pulling"}
    scaler = ClusterAutoscaler(WORLD, CLOUD, NOW)
    moment, turns = NOW, 0
    while not (looked := scaler.look(full(*nodes), [wants("NotIn", "pulling")], {}, moment)).request:
        assert looked.look_again == moment + WORLD.autoscaler_loop_seconds
        moment, turns = looked.look_again, turns + 1
        assert turns < 20


def test_a_node_that_will_be_copied_is_looked_at_when_it_is_old_enough() -> None:
    scaler = ClusterAutoscaler(WORLD, CLOUD, NOW)
    young = there("a", {KEY: "true"}, ready_for=15)
    looked = scaler.look(full(young), [wants("In", "true")], {}, NOW)
    assert looked == ScalingDecision(0, (), (), NOW + 50)
    assert scaler.look(full(young), [wants("In", "true")], {}, NOW + 50).request == 1
