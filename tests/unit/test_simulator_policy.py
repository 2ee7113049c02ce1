"""What a replay takes from values files: rules without a webhook, and what it refuses."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from placement.labels import WARM_TARGET_ANNOTATION, pulled_label
from placement.nodes import Nodes
from simulator.assumptions import Assumptions
from simulator.pods import PodMaker
from tests.small_worlds import MANAGED, attempt, in_order, play, policy, small
from webhook.facts import Facts

if TYPE_CHECKING:
    from placement.scheduling.objects import PodState
    from simulator.policy import Policy


def by_policy(name: str, **values: Any) -> Policy:
    """A shipped policy whose pods are admitted by MutatingAdmissionPolicies."""
    return policy(name, json.dumps({"admission": {"mode": "policy"}, **values}))


def a_user(rules: Policy, image: str = "a") -> PodState:
    """As the hub posts it while nobody knows a node."""
    return PodMaker(rules, Assumptions()).user(attempt(0, 0, image), "jupyter-ada", 0.0, Facts(nodes=Nodes()))


# Rules without a webhook


def test_admission_policies_give_pods_what_needs_no_facts() -> None:
    user = a_user(by_policy("roost"))
    assert user.scheduler_name == "hub.binder.user"
    assert [one.weight for one in user.spec.preferred_affinity] == [100]
    recommended = a_user(by_policy("recommended"))
    assert recommended.scheduler_name == "hub.binder.user"
    assert WARM_TARGET_ANNOTATION not in recommended.annotations
    assert a_user(policy("roost", json.dumps({"admission": {"mode": "none"}}))).scheduler_name == "default-scheduler"


def test_without_homes_warm_sets_and_gates_admission_policies_place_as_the_webhook_does() -> None:
    # So small that no image outweighs an empty node for Kubernetes' own scheduler.
    said = [attempt(number, 60.0 * number, "abc"[number % 3], image_bytes=300_000_000) for number in range(12)]
    values = {"podClasses": {"user": {"imageGate": False}}, "placeholders": []}
    placed = [
        play(said, policy("roost", json.dumps(values | {"admission": {"mode": mode}})), small(nodes=4))[1].users_nodes()
        for mode in ("webhook", "policy", "none")
    ]
    assert placed[0] == placed[1] != placed[2]


def test_the_gate_of_an_admission_policy_requires_images_that_no_node_holds() -> None:
    label = pulled_label("hub", "binder", MANAGED)
    user = a_user(by_policy("roost"), MANAGED)
    assert user.spec.required_node_terms is not None
    assert label in str(user.spec.required_node_terms)
    # Nobody keeps labels up without controllers.
    assert a_user(by_policy("roost", controllers={"enabled": False}), MANAGED).spec.required_node_terms is None
    assert a_user(by_policy("roost"), "another").spec.required_node_terms is None


def test_rules_of_admission_policies_decide_which_results_are_alike() -> None:
    joined = {"podClasses": {"user": {"join": {"user": 7}}}}
    assert by_policy("roost").digest != by_policy("roost", **joined).digest


def test_a_webhook_that_reads_no_nodes_is_told_of_none() -> None:
    blind = {"webhook": {"readNodes": False}, "prePuller": {"enabled": False}}
    said = in_order(*((100.0 * number, "abcd"[number % 4]) for number in range(12)))
    _, seen = play(said, policy("recommended", json.dumps(blind)), small(nodes=4))
    assert not any(WARM_TARGET_ANNOTATION in one.annotations for one in seen.pods.values())
    # Builders are pods, which it sees.
    builds = [attempt(number, 2000 * number, f"r+{number}", repository="r") for number in range(6)]
    _, built = play(builds, policy("builds-sticky", json.dumps(blind)), small(nodes=4, with_builds=True))
    assert len({one.node for one in built.bindings if one.kind == "build"}) == 1
