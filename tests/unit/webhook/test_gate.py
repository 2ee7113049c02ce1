"""The gate: when a pod is kept off nodes that are pulling its images, and when it only prefers
holders.
"""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from roost_core.objects.fields import JSONObject
from roost_core.objects.node import Node
from roost_core.objects.selectors import Taint
from roost_core.placement.labels import pulled_label
from roost_core.placement.lease_state import LeaseState
from roost_core.release.release_settings import CONTROLLERS, ReleaseSettings
from tests.builders import (
    IMAGE,
    NAMESPACE,
    RELEASE,
    Desk,
    build_pod,
    facts,
    held,
    node,
    node_terms,
    place,
    placeholder_pod,
    required_terms,
    requires_nodes,
    settings,
    user_pod,
)
from tests.recorded_data import rows
from tests.unit.webhook.small_hub import HERE, HOLDS, KEEPS_OFF, LABEL, PREFERS_HOLDER
from webhook.facts.facts import Facts


def test_a_user_keeps_off_nodes_that_pull_the_image_and_prefers_one_that_holds_it() -> None:
    placed = place(user_pod(), HERE)
    assert required_terms(placed) == [{"matchExpressions": [KEEPS_OFF]}]
    assert PREFERS_HOLDER in node_terms(placed)


@pytest.mark.parametrize(
    "asked", [{"memory": "60Gi"}, {"cpu": "1", "nvidia.com/gpu": "1"}, {"cpu": "8001m"}]
)
def test_a_holder_that_is_too_small_for_the_pod_is_no_holder_and_that_is_counted_apart(
    asked: dict[str, str],
) -> None:
    # zero-to-jupyterhub's recipe for GPUs has no node selector: the extended resource alone says
    # where such pods go.
    small = node("n1", IMAGE, allocatable={"cpu": 8000, "memory": 16 * 2**30, "pods": 110})
    body = user_pod()
    body["spec"]["containers"][0]["resources"] = {"requests": asked}
    placed, degraded, warnings = degraded_outcome(body, facts(small))
    assert (required_terms(placed), degraded) == (None, "no-holder-fits")
    assert any("large enough" in warning for warning in warnings)
    large = node(
        "n2",
        IMAGE,
        allocatable={"cpu": 9000, "memory": 64 * 2**30, "nvidia.com/gpu": 1, "pods": 110},
    )
    placed, degraded, _ = degraded_outcome(body, facts(small, large))
    assert (required_terms(placed), degraded) == ([{"matchExpressions": [KEEPS_OFF]}], "")
    # Nodes may have what a DeviceClass maps without listing it.
    is_claimed = "nvidia.com/gpu" in asked
    for name in ("nvidia.com/gpu", "nvidia.com/other"):
        _, degraded, _ = degraded_outcome(body, replace(facts(small), claimable=frozenset({name})))
        assert degraded == ("" if is_claimed and name == "nvidia.com/gpu" else "no-holder-fits")


@pytest.mark.parametrize(
    ("leases", "degraded"),
    [
        ({CONTROLLERS: LeaseState.HELD}, ""),
        ({}, ""),
        *(
            ({CONTROLLERS: state}, "controllers-stale")
            for state in LeaseState
            if state is not LeaseState.HELD
        ),
    ],
)
def test_nothing_is_required_unless_the_controllers_work_as_a_node_might_be_closed_for_ever(
    leases: Mapping[str, LeaseState], degraded: str
) -> None:
    placed, reason, warnings = degraded_outcome(user_pod(), replace(HERE, leases=leases))
    assert (required_terms(placed), reason) == (
        None if degraded else [{"matchExpressions": [KEEPS_OFF]}],
        degraded,
    )
    assert PREFERS_HOLDER in node_terms(placed)
    assert any("Lease" in warning for warning in warnings) is bool(degraded)


@pytest.mark.parametrize(("spec", "lowest", "degraded"), rows("webhook/may-preempt"))
def test_a_pod_that_could_pre_empt_another_isnt_left_with_fewer_nodes(
    spec: JSONObject, lowest: int, degraded: str
) -> None:
    body = user_pod()
    body["spec"].update(spec)
    placed, reason, warnings = degraded_outcome(body, replace(HERE, lowest_priority=lowest))
    assert reason == degraded
    assert required_terms(placed) == (None if degraded else [{"matchExpressions": [KEEPS_OFF]}])
    assert PREFERS_HOLDER in node_terms(placed)
    assert any("lower priority" in warning for warning in warnings) is bool(degraded)


@pytest.mark.parametrize(("constraint", "degraded"), rows("webhook/spread"))
def test_a_zone_of_closed_nodes_still_counts_where_pods_must_be_spread(
    constraint: JSONObject, degraded: str
) -> None:
    body = user_pod()
    body["spec"]["topologySpreadConstraints"] = [
        {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", **constraint}
    ]
    placed, reason, _ = degraded_outcome(body, HERE)
    assert reason == degraded
    assert required_terms(placed) == (None if degraded else [{"matchExpressions": [KEEPS_OFF]}])


@pytest.mark.parametrize(("terms", "expected"), rows("webhook/gate-terms"))
def test_a_requirement_is_added_to_each_term_that_holders_may_meet(
    terms: list[JSONObject], expected: list[JSONObject]
) -> None:
    body, here = (
        user_pod(affinity=requires_nodes(*terms)),
        facts(node("n1", IMAGE, labels={"zone": "a"})),
    )
    placed, degraded, _ = degraded_outcome(body, here)
    assert (required_terms(placed), degraded) == (
        expected,
        "no-holder" if terms == expected else "",
    )


def test_an_image_is_known_however_and_wherever_written_and_another_holds_nobody_back() -> None:
    rules = settings(singleuser={"image": {"name": "jupyter/base-notebook", "tag": ""}})
    here = facts(node("n1", "jupyter/base-notebook"))
    label = pulled_label(RELEASE, NAMESPACE, "jupyter/base-notebook")
    body = user_pod("docker.io/jupyter/base-notebook:latest", "jupyter/base-notebook")
    keeps_off = {"key": label, "operator": "NotIn", "values": ["pulling"]}
    assert required_terms(place(body, here, rules)) == [{"matchExpressions": [keeps_off]}]
    own = user_pod("example.org/own:1")
    assert required_terms(place(own, facts(node("n1", "example.org/own:1")))) is None
    own["spec"]["initContainers"] = [{"name": "init", "image": IMAGE}]
    assert required_terms(place(own, HERE)) == [{"matchExpressions": [KEEPS_OFF]}]


def degraded_outcome(
    body: JSONObject, known: Facts, rules: ReleaseSettings | None = None
) -> tuple[JSONObject, str, list[str]]:
    desk = Desk(rules, known)
    response = desk.answer(body)
    (decision,) = desk.decisions
    return desk.place(body), decision.degraded, response.get("warnings", [])


@pytest.mark.parametrize(
    "holder",
    [
        node("n1", IMAGE, labels={"pool": "cpu"}),
        node("n1", IMAGE, labels={"pool": "gpu"}, taints=(Taint("gpu", "", "NoSchedule"),)),
        node("n1", IMAGE, labels={"pool": "gpu"}, unschedulable=True),
        node("n1", IMAGE, labels={"pool": "gpu"}, ready=False),
    ],
)
def test_a_holder_that_the_pods_own_rules_shut_out_is_no_holder(holder: Node) -> None:
    # Else a pool at zero, whose new nodes lack the label, would never start: its pods would wait
    # for ever.
    body = user_pod(nodeSelector={"pool": "gpu"})
    placed, degraded, _ = degraded_outcome(body, facts(holder, node("n2", labels={"pool": "gpu"})))
    assert required_terms(placed) is None
    assert degraded == "no-holder"


OTHER_IMAGE = "quay.io/jupyter/r-notebook:1"
BOTH = [IMAGE, OTHER_IMAGE]
(OTHER_LABEL,) = held(OTHER_IMAGE)
KEEPS_OFF_OTHER = {"key": OTHER_LABEL, "operator": "NotIn", "values": ["pulling"]}


def test_in_mode_prefer_the_image_is_preferred_and_nothing_is_degraded() -> None:
    placed, degraded, _ = degraded_outcome(user_pod(), HERE, settings(imageGate={"mode": "prefer"}))
    assert {"weight": 100, "preference": {"matchExpressions": [HOLDS]}} in node_terms(placed)
    assert (required_terms(placed), degraded) == (None, "")


@pytest.mark.parametrize("mode", ["off", "startupTaint"])
def test_other_modes_leave_pods_alone(mode: str) -> None:
    assert LABEL not in str(place(user_pod(), HERE, settings(imageGate={"mode": mode})))


def test_builds_and_placeholders_are_not_gated() -> None:
    for body in (build_pod(), placeholder_pod()):
        body["spec"]["containers"][0]["image"] = IMAGE
        assert LABEL not in str(place(body, HERE))


def test_a_pod_that_requires_the_label_keeps_its_requirement_when_the_holders_are_gone() -> None:
    placed = place(user_pod(), HERE)
    again, degraded, _ = degraded_outcome(placed, facts(node("n1")))
    assert (again, degraded) == (placed, "")


@pytest.mark.parametrize(
    ("images", "known", "required", "degraded"),
    [
        ([IMAGE], facts(node("n1")), [], "no-holder"),
        ([IMAGE], facts(node("n1", labels={LABEL: "pulling"})), [], "no-holder"),
        ([IMAGE], facts(node("n1", labels={LABEL: "open"})), [], "no-holder"),
        ([IMAGE], Facts(), [], "nodes-unknown"),
        # Each is held somewhere and both together nowhere: with both required the pod would stay
        # pending.
        (BOTH, facts(node("n1", IMAGE), node("n2", OTHER_IMAGE)), [KEEPS_OFF], "no-holder"),
        (BOTH, facts(node("n1"), node("n2", OTHER_IMAGE)), [KEEPS_OFF_OTHER], "no-holder"),
        (BOTH, facts(node("n1"), node("n2", OTHER_IMAGE, IMAGE)), [KEEPS_OFF, KEEPS_OFF_OTHER], ""),
    ],
)
def test_the_gate_requires_what_one_node_has_prefers_all_and_says_what_it_left_out(
    images: list[str], known: Facts, required: list[JSONObject], degraded: str
) -> None:
    rules = settings(
        prePuller={"extraImages": {"r": {"name": "quay.io/jupyter/r-notebook", "tag": "1"}}}
    )
    placed, reason, warnings = degraded_outcome(user_pod(*images), known, rules)
    assert required_terms(placed) == ([{"matchExpressions": required}] if required else None)
    assert reason == degraded
    for label, keeps_off in list(
        zip((LABEL, OTHER_LABEL), (KEEPS_OFF, KEEPS_OFF_OTHER), strict=True)
    )[: len(images)]:
        has_image = {"matchExpressions": [{"key": label, "operator": "In", "values": ["true"]}]}
        assert {"weight": 100, "preference": has_image} in node_terms(placed)
        assert (label in " ".join(warnings)) == (keeps_off not in required)
