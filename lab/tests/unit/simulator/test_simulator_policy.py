"""What a replay takes from values files: rules without a webhook, and what it refuses."""

import json
import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from benchmarks import studies
from lab.tests.small_worlds import MANAGED, attempt, in_order, play, policy, small
from roost.cli import run
from roost_core.objects.image_references import normalise_reference
from roost_core.objects.node import Node
from roost_core.objects.pod import Pod
from roost_core.placement.labels import WARM_TARGET_ANNOTATION, pulled_label
from roost_core.placement.nodes import Nodes
from roost_core.release.image_gate import GateMode
from roost_core.scheduler.plugins import (
    IMAGE_LOCALITY,
    INTER_POD_AFFINITY,
    NODE_AFFINITY,
    NODE_RESOURCES_FIT,
)
from roost_lab.simulator.engine.node_template import make_node
from roost_lab.simulator.engine.pods import PLACEHOLDER, USER, PodMaker, image_reference
from roost_lab.simulator.setup import policy as policies
from roost_lab.simulator.setup.assumptions import Assumptions, Autoscaler
from roost_lab.simulator.setup.checks import AssumptionsError
from roost_lab.simulator.setup.policy import Policy, load_policy
from roost_lab.simulator.setup.shipped_policies import policy_files
from roost_lab.simulator.sweep.fit_checks import check_policy
from roost_lab.traces.binderhub_launches import read_launch
from roost_lab.traces.synthetic import synthetic_attempts
from tests.recorded_data import rows
from webhook.facts.facts import Facts


def by_policy(**values: Any) -> Policy:
    """Roost as shipped, whose pods are admitted by MutatingAdmissionPolicies."""
    return policy("roost", json.dumps({"admission": {"mode": "policy"}, **values}))


def a_user(rules: Policy, image: str = "a", *nodes: Node) -> Pod:
    """As the hub posts it; without nodes, while nobody knows one."""
    return PodMaker(rules, Assumptions()).user(
        attempt(0, 0, image), "jupyter-ada", 0.0, Facts(nodes=Nodes(nodes))
    )


def test_admission_policies_give_pods_what_needs_no_facts() -> None:
    user = a_user(by_policy())
    assert user.scheduler_name == "hub.binder.user"
    assert [weight for weight, _ in user.spec.preferred_affinity] == [100]
    assert WARM_TARGET_ANNOTATION not in user.annotations
    assert (
        a_user(policy("roost", json.dumps({"admission": {"mode": "none"}}))).scheduler_name
        == "default-scheduler"
    )


@pytest.mark.parametrize("autoscaler", Autoscaler)
def test_what_breaks_ties_is_left_out_beside_karpenters_nodes_and_by_policies(
    autoscaler: Autoscaler,
) -> None:
    rules = policy("roost")
    node = make_node(rules, Assumptions(autoscaler=autoscaler), "node", 0.0)
    weights = [weight for weight, _ in a_user(rules, "a", node).spec.preferred_anti_affinity]
    assert weights == ([] if autoscaler is Autoscaler.KARPENTER else [1])
    assert a_user(by_policy(), "a", node).spec.preferred_anti_affinity == ()


def test_without_homes_warm_sets_and_gates_admission_policies_place_as_the_webhook_does() -> None:
    # So small that no image outweighs an empty node for Kubernetes' own scheduler.
    said = [
        attempt(number, 60.0 * number, "abc"[number % 3], image_bytes=300_000_000)
        for number in range(12)
    ]
    values = {"podClasses": {"user": {"imageGate": False}}, "placeholders": []}
    placed = [
        play(
            said,
            policy("roost", json.dumps(values | {"admission": {"mode": mode}})),
            small(nodes=4),
        )[1].users_nodes()
        for mode in ("webhook", "policy", "none")
    ]
    assert placed[0] == placed[1] != placed[2]


def test_the_gate_of_an_admission_policy_only_prefers() -> None:
    label = pulled_label("hub", "binder", MANAGED)
    user = a_user(by_policy(), MANAGED)
    assert user.spec.required_node_terms is None
    assert label in str(user.spec.preferred_node_terms)
    # Nobody keeps labels up without controllers.
    without = a_user(by_policy(controllers={"enabled": False}), MANAGED)
    for one in (without, a_user(by_policy(), "another")):
        assert one.spec.required_node_terms is None
        assert label not in str(one.spec.preferred_node_terms)


def test_a_webhook_that_reads_no_nodes_is_told_of_none() -> None:
    blind = {"webhook": {"readNodes": False}, "prePuller": {"enabled": False}}
    said = in_order(*((100.0 * number, "abcd"[number % 4]) for number in range(12)))
    _, seen = play(said, policy("warm-alone", json.dumps(blind)), small(nodes=4))
    assert not any(WARM_TARGET_ANNOTATION in pod.annotations for pod in seen.pods.values())
    # Builders are pods, which it sees.
    builds = [attempt(number, 2000 * number, f"r+{number}", repository="r") for number in range(6)]
    _, built = play(
        builds, policy("builds-sticky", json.dumps(blind)), small(nodes=4, with_builds=True)
    )
    assert len({binding.node for binding in built.bindings if binding.kind == "build"}) == 1


ENTRY = {
    "name": "default",
    "replicas": 2,
    "resources": {"requests": {"cpu": "10m", "memory": "550M"}},
}
LARGE = {**ENTRY, "resources": {"requests": {"cpu": "1", "memory": "60G"}}}
ZONES = [
    {
        "matchExpressions": [
            {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["b", "a"]}
        ]
    }
]


def test_a_set_without_pods_fits_everywhere(tmp_path: Path) -> None:
    file = tmp_path / "prod.yaml"
    none = {**ENTRY, "name": "gpu", "replicas": 0, "nodeSelector": {"pool": "gpu"}}
    file.write_text(
        yaml.safe_dump({"singleuser": {"nodeSelector": {"pool": "users"}}, "placeholders": [none]}),
        encoding="utf-8",
    )
    check_policy(load_policy("prod", [str(file)]), Assumptions())


@pytest.mark.parametrize(("values", "said"), rows("policies-refused"))
def test_what_fits_nowhere_is_refused_by_file_and_key(
    values: dict[str, Any], said: str, tmp_path: Path
) -> None:
    file = tmp_path / "prod.yaml"
    file.write_text("# ours\n" + yaml.safe_dump(values), encoding="utf-8")
    with pytest.raises(AssumptionsError) as refused:
        check_policy(load_policy("prod", [str(file)]), Assumptions())
    (line,) = str(refused.value).splitlines()
    assert re.match(rf"{re.escape(str(file))}:\d+: {re.escape(said)}", line), line


def test_what_fits_nowhere_is_said_before_anything_is_replayed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "prod.yaml"
    file.write_text(yaml.safe_dump({"placeholders": [LARGE]}), encoding="utf-8")
    assert run(["simulate", "--days", "0.01", "--seeds", "2", "--values", str(file)]) == 2
    assert (
        f"roost simulate: {file}:2: placeholders[0]: found pods that fit no node"
        in capsys.readouterr().err
    )


def test_builds_that_fit_no_node_are_refused_where_they_are_simulated() -> None:
    large = policy(
        "builds-sticky", json.dumps({"podClasses": {"build": {"resources": {"memory": "60G"}}}})
    )
    check_policy(large, Assumptions())
    with pytest.raises(
        AssumptionsError, match=r"podClasses.build: found pods that fit no node \(Insuff"
    ):
        check_policy(large, Assumptions(with_builds=True))


def test_nodes_have_the_labels_that_users_and_placeholders_select_by() -> None:
    values = {
        "singleuser": {
            "nodeSelector": {"pool": "big"},
            "image": dict(zip(("name", "tag"), MANAGED.split(":"), strict=True)),
        },
        "placeholders": [{**ENTRY, "nodeSelector": {"pool": "big"}, "requiredNodeTerms": ZONES}],
    }
    result, seen = play(
        in_order((0, "a"), (60, MANAGED)), policy("roost", json.dumps(values)), small()
    )
    assert all(
        {"pool": "big", "topology.kubernetes.io/zone": "a"}.items() <= node.state.labels.items()
        for node in seen.nodes.values()
    )
    assert result.placeholder_pending_seconds == 0
    # The pullers of these nodes brought the hub's images.
    assert result.background_pulls > 0
    placeholder, _ = (sim_pod for sim_pod in seen.sim_pods.values() if sim_pod.kind == PLACEHOLDER)
    assert placeholder.node is not None


@pytest.mark.parametrize("key", ["team", "kubernetes.io/metadata.name"])
def test_the_namespace_has_the_labels_that_classes_select_by(key: str) -> None:
    match = {
        "labels": {"component": "singleuser-server"},
        "namespaceSelector": {"matchLabels": {key: "binder"}},
    }
    values = {"podClasses": {"user": {"match": match, "imageGate": False}}, "placeholders": []}
    selected, usual = (
        policy("roost", json.dumps(values)),
        policy("roost", json.dumps({"placeholders": []})),
    )
    said = [
        attempt(number, 60.0 * number, "abc"[number % 3], image_bytes=300_000_000)
        for number in range(8)
    ]
    _, seen = play(said, selected, small(nodes=4))
    assert all(
        sim_pod.state.scheduler_name == "hub.binder.user"
        for sim_pod in seen.sim_pods.values()
        if sim_pod.kind == USER
    )
    # Users join users there as elsewhere.
    assert seen.users_nodes() == play(said, usual, small(nodes=4))[1].users_nodes()


@pytest.mark.slow
def test_every_shipped_policy_fits_the_usual_world() -> None:
    for name in policy_files():
        check_policy(policy(name), Assumptions(with_builds=True))


NAMES = sorted(studies.policy_files())
MOST_LAUNCHED = "ipython/ipython-in-depth/master"
HUBS_IMAGE = "quay.io/jupyterhub/k8s-singleuser-sample:4.4.0"


@cache
def shipped(name: str) -> Policy:
    """Each is read once for all tests."""
    return policies.load_policy(name, studies.values_files(name))


def weights(policy: Policy) -> dict[str, int]:
    return dict(policy.profile_of("hub.binder.user").scores)


def own_class(policy: Policy, name: str) -> Any:
    assert policy.webhook is not None
    return policy.webhook.classes[name]


@pytest.mark.parametrize("name", NAMES)
def test_every_policy_can_be_replayed(name: str) -> None:
    policy = shipped(name)
    assert bool(policy.make_planners()) is (policy.controllers is not None)


def test_z2jh_has_the_weights_of_its_chart() -> None:
    found = weights(shipped("z2jh"))
    plugins = (NODE_AFFINITY, INTER_POD_AFFINITY, NODE_RESOURCES_FIT, IMAGE_LOCALITY)
    assert [found[name] for name in plugins] == [14631, 1331, 121, 11]
    assert "NodeResourcesBalancedAllocation" not in found
    assert not own_class(shipped("z2jh"), "user").join


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        ("gate-label", GateMode.REQUIRE_LABEL),
        ("gate-taint", GateMode.STARTUP_TAINT),
        ("gate-prefer", GateMode.PREFER),
        ("attract", GateMode.REQUIRE_LABEL),
    ],
)
def test_gates_hold_for_the_images_that_are_launched_most(name: str, mode: GateMode) -> None:
    policy = shipped(name)
    assert policy.webhook is not None
    assert policy.webhook.gate.mode is mode
    assert own_class(policy, "user").image_gate
    launched = image_reference(read_launch("GitHub", MOST_LAUNCHED, None).image)
    assert normalise_reference(launched) in policy.webhook.gate.managed_images
    assert launched in policy.pullers[0].images.values()
    assert bool(policy.startup_taints) is (mode is GateMode.STARTUP_TAINT)


def test_pullers_bring_the_images_that_made_up_launches_launch_most() -> None:
    counts = Counter(attempt.image for attempt in synthetic_attempts(1, days=3.0))
    most_launched = {image_reference(image) for image, _ in counts.most_common(5)}
    for name in NAMES:
        pulled = {image for puller in shipped(name).pullers for image in puller.images.values()} - {
            HUBS_IMAGE
        }
        assert pulled == (most_launched if name.startswith(("gate-", "attract")) else set()), name
