"""What becomes of pods, through whole reviews: scheduler, gate, home, pairs, requests, and who is left alone."""

from __future__ import annotations

import copy
import dataclasses
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from roost_core.placement.labels import (
    HOME_TARGET_ANNOTATION,
    OPT_OUT_ANNOTATION,
    PLACEHOLDER_SET_LABEL,
    POLICY_REVISION_ANNOTATION,
    attract_label,
    pulled_label,
)
from roost_core.placement.lease_state import LeaseState
from roost_core.placement.rendezvous import rank_nodes
from roost_core.placement.selectors import Taint
from roost_core.placement.settings import CONTROLLERS, SCHEDULER
from tests.builders import (
    IMAGE,
    NAMESPACE,
    PREFERRED,
    RELEASE,
    REPOSITORY,
    REQUIRED,
    Desk,
    Object,
    build_pod,
    builder_nodes,
    expression,
    facts,
    held,
    homes_of,
    node,
    node_terms,
    patch_of,
    patched,
    place,
    placeholder_pod,
    pod_terms,
    prefers_nodes,
    required_terms,
    requires_nodes,
    settings,
    spread_term,
    sticky_term,
    user_pod,
)
from webhook.rules.facts import Facts, HomePod, Homes
from webhook.rules.ledger import CONFIRM_SECONDS, EXPIRY_SECONDS, Ledger, unnamed
from webhook.rules.patch import MAX_ANNOTATIONS_BYTES, pointer, same_node_preference

if TYPE_CHECKING:
    from collections.abc import Mapping

    from roost_core.placement.nodes import NodeFact
    from roost_core.placement.settings import Settings

OTHER_IMAGE = "quay.io/jupyter/r-notebook:1"
(LABEL,) = held(IMAGE)
(OTHER_LABEL,) = held(OTHER_IMAGE)
HOLDS = {"key": LABEL, "operator": "In", "values": ["true"]}
HOLDS_OTHER = {"key": OTHER_LABEL, "operator": "In", "values": ["true"]}
USERS = {"component": "singleuser-server"}
BUILDS = {"component": "binderhub-build"}
# What is required: the node isn't pulling the image. Nodes that nobody has labelled pass.
KEEPS_OFF = {"key": LABEL, "operator": "NotIn", "values": ["pulling"]}
KEEPS_OFF_OTHER = {"key": OTHER_LABEL, "operator": "NotIn", "values": ["pulling"]}
PREFERS_HOLDER = {"weight": 100, "preference": {"matchExpressions": [HOLDS]}}
HERE = facts(node("n1", IMAGE), node("n2"))


def two_images(**changes: object) -> Settings:
    return settings(prePuller={"extraImages": {"r": {"name": "quay.io/jupyter/r-notebook", "tag": "1"}}}, **changes)


# --- scheduler ---


@pytest.mark.parametrize("state", [LeaseState.STALE, LeaseState.NEVER_HELD])
@pytest.mark.parametrize("own", ["default-scheduler", "", "hub-user-scheduler"])
def test_while_roosts_scheduler_is_away_pods_keep_the_one_that_they_have(own: str, state: LeaseState) -> None:
    desk = Desk(settings(replaceSchedulers=["hub-user-scheduler"]), replace(HERE, leases={SCHEDULER: state}))
    body = user_pod(schedulerName=own)
    response = desk.answer(body)
    placed = patched(body, response)
    assert placed["spec"]["schedulerName"] == own
    # All else is as ever.
    assert required_terms(placed) == [{"matchExpressions": [KEEPS_OFF]}]
    assert "Roost's" in response["auditAnnotations"]["scheduler"]
    assert any("schedulerName" in warning for warning in response["warnings"])
    assert [decision.left_to_cluster for decision in desk.decisions] == [state.value]


@pytest.mark.parametrize("state", [LeaseState.HELD, LeaseState.UNKNOWN])
def test_a_scheduler_that_is_there_or_of_which_nothing_is_known_is_named(state: LeaseState) -> None:
    desk = Desk(known=replace(HERE, leases={SCHEDULER: state}))
    assert desk.place(user_pod())["spec"]["schedulerName"] == "hub.jhub.user"
    assert [decision.left_to_cluster for decision in desk.decisions] == [""]


def test_a_pod_of_another_scheduler_was_not_left_to_the_cluster() -> None:
    desk = Desk(known=replace(HERE, leases={SCHEDULER: LeaseState.STALE}))
    for own in ("my-scheduler", "hub.jhub.user"):
        assert desk.place(user_pod(schedulerName=own))["spec"]["schedulerName"] == own
    assert [decision.left_to_cluster for decision in desk.decisions] == ["", ""]


@pytest.mark.parametrize("own", ["default-scheduler", "", None])
def test_a_pod_without_a_choice_of_scheduler_gets_its_classs_profile(own: str | None) -> None:
    body = user_pod(schedulerName=own)
    assert place(body)["spec"]["schedulerName"] == "hub.jhub.user"
    del body["spec"]["schedulerName"]
    assert place(body)["spec"]["schedulerName"] == "hub.jhub.user"


def test_an_authors_own_scheduler_stays_and_the_other_rules_hold() -> None:
    placed = place(user_pod(schedulerName="hub-user-scheduler"), HERE)
    assert placed["spec"]["schedulerName"] == "hub-user-scheduler"
    assert required_terms(placed) == [{"matchExpressions": [KEEPS_OFF]}]


def test_a_scheduler_that_is_to_be_replaced_is_replaced() -> None:
    rules = settings(replaceSchedulers=["hub-user-scheduler"])
    assert place(user_pod(schedulerName="hub-user-scheduler"), rules=rules)["spec"]["schedulerName"] == "hub.jhub.user"


@pytest.mark.parametrize("changes", [{"schedulerTarget": "none"}, {"podClasses": {"user": {"profile": ""}}}])
def test_without_a_scheduler_or_profile_the_pod_keeps_its_own(changes: dict[str, object]) -> None:
    assert place(user_pod(), rules=settings(**changes))["spec"]["schedulerName"] == "default-scheduler"


def test_priority_is_left_alone() -> None:
    # Only both fields together could change: the API server resolves one into the other before webhooks.
    body = user_pod(priority=0, priorityClassName="some-class")
    placed = place(body, HERE)
    assert (placed["spec"]["priority"], placed["spec"]["priorityClassName"]) == (0, "some-class")


# --- gate ---


def test_a_user_keeps_off_nodes_that_pull_the_image_and_rather_goes_to_one_that_holds_it_while_there_are_some() -> None:
    placed = place(user_pod(), HERE)
    assert required_terms(placed) == [{"matchExpressions": [KEEPS_OFF]}]
    assert PREFERS_HOLDER in node_terms(placed)


def test_a_node_that_pulls_or_was_opened_is_no_holder() -> None:
    for value in ("pulling", "open"):
        placed, degraded, _ = degraded_outcome(user_pod(), facts(node("n1", labels={LABEL: value})))
        assert (required_terms(placed), degraded) == (None, "no-holder")
        assert PREFERS_HOLDER in node_terms(placed)


@pytest.mark.parametrize(
    "asked",
    [{"memory": "60Gi"}, {"cpu": "1", "nvidia.com/gpu": "1"}, {"cpu": "8001m"}],
)
def test_a_holder_that_is_too_small_for_the_pod_is_no_holder_and_that_is_counted_apart(asked: dict[str, str]) -> None:
    # zero-to-jupyterhub's recipe for GPUs has no node selector: the extended resource alone says where such pods go.
    small = node("n1", IMAGE, allocatable={"cpu": 8000, "memory": 16 * 2**30, "pods": 110})
    body = user_pod()
    body["spec"]["containers"][0]["resources"] = {"requests": asked}
    placed, degraded, warnings = degraded_outcome(body, facts(small))
    assert (required_terms(placed), degraded) == (None, "no-holder-fits")
    assert any("large enough" in warning for warning in warnings)
    large = node("n2", IMAGE, allocatable={"cpu": 9000, "memory": 64 * 2**30, "nvidia.com/gpu": 1, "pods": 110})
    placed, degraded, _ = degraded_outcome(body, facts(small, large))
    assert (required_terms(placed), degraded) == ([{"matchExpressions": [KEEPS_OFF]}], "")


@pytest.mark.parametrize("when", ["prefer", "wait"])
@pytest.mark.parametrize("state", [LeaseState.STALE, LeaseState.NEVER_HELD, LeaseState.UNKNOWN])
def test_unless_the_controllers_are_known_to_work_nothing_is_required_as_a_node_might_be_closed_for_ever(
    when: str, state: LeaseState
) -> None:
    known = replace(HERE, leases={CONTROLLERS: state})
    placed, degraded, warnings = degraded_outcome(user_pod(), known, settings(imageGate={"whenNoHolder": when}))
    assert (required_terms(placed), degraded) == (None, "controllers-stale")
    assert PREFERS_HOLDER in node_terms(placed)
    assert any("Lease" in warning for warning in warnings)


@pytest.mark.parametrize("leases", [{CONTROLLERS: LeaseState.HELD}, {}])
def test_controllers_that_hold_their_lease_or_that_nobody_watches_let_the_gate_require(
    leases: Mapping[str, LeaseState],
) -> None:
    placed, degraded, _ = degraded_outcome(user_pod(), replace(HERE, leases=leases))
    assert (required_terms(placed), degraded) == ([{"matchExpressions": [KEEPS_OFF]}], "")


def test_a_requirement_is_added_to_every_term_as_terms_are_ored() -> None:
    zone, purpose = expression("zone", "a"), expression("hub.jupyter.org/node-purpose", "user")
    body = user_pod(affinity=requires_nodes({"matchExpressions": [zone]}, {"matchExpressions": [purpose]}))
    here = facts(node("n1", IMAGE, labels={"zone": "a"}))
    assert required_terms(place(body, here)) == [
        {"matchExpressions": [zone, KEEPS_OFF]},
        {"matchExpressions": [purpose, KEEPS_OFF]},
    ]


def test_an_empty_term_goes_on_matching_nothing() -> None:
    zone = {"matchExpressions": [expression("zone", "a")]}
    body = user_pod(affinity=requires_nodes({}, zone, {"matchExpressions": []}))
    terms = required_terms(place(body, facts(node("n1", IMAGE, labels={"zone": "a"}))))
    assert terms == [{}, {"matchExpressions": [expression("zone", "a"), KEEPS_OFF]}, {"matchExpressions": []}]


def test_a_term_of_fields_only_gets_its_expression_beside_them() -> None:
    fields = [expression("metadata.name", "n2", operator="NotIn")]
    placed = place(user_pod(affinity=requires_nodes({"matchFields": fields})), HERE)
    assert required_terms(placed) == [{"matchFields": fields, "matchExpressions": [KEEPS_OFF]}]


def test_an_image_that_the_puller_doesnt_bring_holds_nobody_back() -> None:
    placed = place(user_pod("example.org/own:1"), facts(node("n1", "example.org/own:1")))
    assert required_terms(placed) is None


def test_an_image_is_known_however_its_reference_is_written() -> None:
    rules = settings(singleuser={"image": {"name": "jupyter/base-notebook", "tag": ""}})
    here = facts(node("n1", "jupyter/base-notebook"))
    label = pulled_label(RELEASE, NAMESPACE, "jupyter/base-notebook")
    assert required_terms(
        place(user_pod("docker.io/jupyter/base-notebook:latest", "jupyter/base-notebook"), here, rules)
    ) == [{"matchExpressions": [{"key": label, "operator": "NotIn", "values": ["pulling"]}]}]


def degraded_outcome(body: Object, known: Facts, rules: Settings | None = None) -> tuple[Object, str, list[str]]:
    desk = Desk(rules, known)
    response = desk.answer(body)
    (decision,) = desk.decisions
    return desk.place(body), decision.degraded, response.get("warnings", [])


def test_the_requirement_becomes_a_preference_while_no_node_holds_the_image_and_says_so() -> None:
    placed, degraded, warnings = degraded_outcome(user_pod(), facts(node("n1")))
    assert required_terms(placed) is None
    assert {"weight": 100, "preference": {"matchExpressions": [HOLDS]}} in node_terms(placed)
    assert degraded == "no-holder"
    assert any(LABEL in warning for warning in warnings)


@pytest.mark.parametrize(
    "holder",
    [
        node("n1", IMAGE, labels={"pool": "cpu"}),
        node("n1", IMAGE, labels={"pool": "gpu"}, taints=(Taint("gpu", "", "NoSchedule"),)),
        node("n1", IMAGE, labels={"pool": "gpu"}, unschedulable=True),
        node("n1", IMAGE, labels={"pool": "gpu"}, ready=False),
    ],
)
def test_a_holder_that_the_pods_own_rules_shut_out_is_no_holder(holder: NodeFact) -> None:
    # Else a pool at zero, whose new nodes lack the label, would never start: its pods would wait for ever.
    body = user_pod(nodeSelector={"pool": "gpu"})
    placed, degraded, _ = degraded_outcome(body, facts(holder, node("n2", labels={"pool": "gpu"})))
    assert required_terms(placed) is None
    assert degraded == "no-holder"


def test_the_pods_own_required_terms_shut_out_holders_too() -> None:
    body = user_pod(affinity=requires_nodes({"matchExpressions": [expression("zone", "b")]}))
    placed, degraded, _ = degraded_outcome(body, facts(node("n1", IMAGE, labels={"zone": "a"})))
    assert required_terms(placed) == [{"matchExpressions": [expression("zone", "b")]}]
    assert degraded == "no-holder"


def test_of_two_images_on_different_nodes_the_first_containers_is_required_and_the_other_preferred() -> None:
    # Each is held somewhere; both together nowhere, so to require both would keep the pod pending for ever.
    here = facts(node("n1", IMAGE), node("n2", OTHER_IMAGE))
    placed, degraded, _ = degraded_outcome(user_pod(IMAGE, OTHER_IMAGE), here, two_images())
    assert required_terms(placed) == [{"matchExpressions": [KEEPS_OFF]}]
    assert {"weight": 100, "preference": {"matchExpressions": [HOLDS_OTHER]}} in node_terms(placed)
    assert degraded == "no-holder"


def test_an_image_held_nowhere_doesnt_cost_the_other_its_requirement() -> None:
    here = facts(node("n1"), node("n2", OTHER_IMAGE))
    placed, _, _ = degraded_outcome(user_pod(IMAGE, OTHER_IMAGE), here, two_images())
    assert required_terms(placed) == [{"matchExpressions": [KEEPS_OFF_OTHER]}]


def test_two_images_on_one_node_are_both_required() -> None:
    here = facts(node("n1", IMAGE), node("n2", OTHER_IMAGE, IMAGE))
    placed, degraded, _ = degraded_outcome(user_pod(IMAGE, OTHER_IMAGE), here, two_images())
    assert required_terms(placed) == [{"matchExpressions": [KEEPS_OFF, KEEPS_OFF_OTHER]}]
    assert degraded == ""


def test_init_containers_images_count() -> None:
    body = user_pod("example.org/own:1", initContainers=[{"name": "init", "image": IMAGE}])
    assert required_terms(place(body, HERE)) == [{"matchExpressions": [KEEPS_OFF]}]


def test_when_told_to_wait_the_requirement_stands_though_no_node_holds_the_image() -> None:
    placed, degraded, _ = degraded_outcome(user_pod(), facts(node("n1")), settings(imageGate={"whenNoHolder": "wait"}))
    assert required_terms(placed) == [{"matchExpressions": [KEEPS_OFF]}]
    assert degraded == ""


@pytest.mark.parametrize("when", ["prefer", "wait"])
def test_without_node_rights_the_gate_prefers_and_counts(when: str) -> None:
    placed, degraded, _ = degraded_outcome(user_pod(), Facts(), settings(imageGate={"whenNoHolder": when}))
    assert required_terms(placed) is None
    assert degraded == "nodes-unknown"


def test_in_mode_prefer_the_image_is_preferred_at_its_weight_and_nothing_is_degraded() -> None:
    rules = settings(imageGate={"mode": "prefer", "preferWeight": 7})
    placed, degraded, _ = degraded_outcome(user_pod(), HERE, rules)
    assert {"weight": 7, "preference": {"matchExpressions": [HOLDS]}} in node_terms(placed)
    assert (required_terms(placed), degraded) == (None, "")


@pytest.mark.parametrize("mode", ["off", "startupTaint"])
def test_other_modes_leave_pods_alone(mode: str) -> None:
    assert LABEL not in str(place(user_pod(), HERE, settings(imageGate={"mode": mode})))


def test_builds_and_placeholders_are_not_gated() -> None:
    for body in (build_pod(), placeholder_pod()):
        body["spec"]["containers"][0]["image"] = IMAGE
        assert LABEL not in str(place(body, HERE))


def test_a_pod_that_requires_the_label_already_keeps_its_requirement_when_the_holders_are_gone() -> None:
    placed = place(user_pod(), HERE)
    again, degraded, _ = degraded_outcome(placed, facts(node("n1")))
    assert (again, degraded) == (placed, "")


# --- home ---

RING = rank_nodes(REPOSITORY, [f"node-{index}" for index in range(5)])
FIVE = facts(*builder_nodes(), builders="node-0 node-1 node-2 node-3 node-4")


def test_a_build_prefers_the_first_nodes_of_its_ring_with_falling_weights() -> None:
    placed = place(build_pod(), FIVE)
    assert homes_of(placed) == list(zip([100, 50, 25], RING, strict=False))
    assert placed["metadata"]["annotations"][HOME_TARGET_ANNOTATION] == RING[0]


def test_each_term_names_exactly_one_node() -> None:
    for term in node_terms(place(build_pod(), FIVE)):
        (field,) = term["preference"]["matchFields"]
        assert len(field["values"]) == 1


def test_nodes_may_be_named_by_their_hostname_label_which_may_differ_from_their_name() -> None:
    rules = settings(podClasses={"build": {"home": {"matchBy": "hostname", "weights": [100]}}})
    here = facts(node("node-0", labels={"kubernetes.io/hostname": "ip-10-0-0-1"}), builders="node-0")
    placed = place(build_pod(), here, rules)
    assert node_terms(placed) == [sticky_term("ip-10-0-0-1")]
    assert placed["metadata"]["annotations"][HOME_TARGET_ANNOTATION] == "node-0"
    assert place(placed, here, rules) == placed


def test_binderhubs_sticky_term_gives_way_by_its_shape_only() -> None:
    keep = [
        {**sticky_term("node-x"), "weight": 99},
        {"weight": 100, "preference": {"matchExpressions": [expression("kubernetes.io/hostname", "a", "b")]}},
        {"weight": 100, "preference": {"matchExpressions": [expression("zone", "a")]}},
        {
            "weight": 100,
            "preference": {"matchExpressions": [expression("kubernetes.io/hostname", "a", operator="NotIn")]},
        },
    ]
    body = build_pod(affinity=prefers_nodes(keep[0], sticky_term("node-x"), *keep[1:], sticky_term("node-y")))
    placed = place(body, FIVE)
    assert node_terms(placed)[:4] == keep
    assert len(homes_of(placed)) == 3


def test_binderhubs_spreading_term_gives_way_by_its_shape_only() -> None:
    keep = [{**spread_term(), "weight": 50}, copy.deepcopy(spread_term())]
    keep[1]["podAffinityTerm"]["topologyKey"] = "topology.kubernetes.io/zone"
    required = [{"labelSelector": {"matchLabels": {"a": "b"}}, "topologyKey": "zone"}]
    terms = {PREFERRED: [keep[0], spread_term(), keep[1]], "requiredDuringSchedulingIgnoredDuringExecution": required}
    placed = place(build_pod(affinity={"podAntiAffinity": terms}), FIVE)
    assert placed["spec"]["affinity"]["podAntiAffinity"] == {**terms, PREFERRED: keep}


def test_binderhubs_terms_stay_in_classes_without_a_home() -> None:
    body = user_pod(affinity={**prefers_nodes(sticky_term("n1")), "podAntiAffinity": {PREFERRED: [spread_term()]}})
    placed = place(body, HERE)
    assert sticky_term("n1") in node_terms(placed)
    assert pod_terms(placed, "podAntiAffinity") == [spread_term()]


def test_with_no_ready_builder_binderhubs_sticky_choice_stays() -> None:
    body = build_pod(affinity=prefers_nodes(sticky_term("node-x")))
    placed = place(body, facts(*builder_nodes()))
    assert node_terms(placed) == [sticky_term("node-x")]
    assert HOME_TARGET_ANNOTATION not in placed["metadata"]["annotations"]


def test_with_no_ready_builder_a_repositorys_builds_still_meet_instead_of_scattering() -> None:
    body = build_pod(affinity={"podAntiAffinity": {PREFERRED: [spread_term()]}})
    placed = place(body, facts(*builder_nodes()))
    assert pod_terms(placed, "podAntiAffinity") == []
    assert homes_of(placed) == list(zip([100, 50, 25], RING, strict=False))


def test_with_nothing_known_at_all_a_build_is_neither_held_back_nor_scattered() -> None:
    body = build_pod(affinity={"podAntiAffinity": {PREFERRED: [spread_term()]}})
    placed = place(body, Facts())
    assert pod_terms(placed, "podAntiAffinity") == []
    assert (node_terms(placed), required_terms(placed)) == ([], None)


def test_without_node_rights_the_ring_comes_from_builder_pods_alone() -> None:
    known = Facts(builder_nodes={"build": frozenset(f"node-{index}" for index in range(5))})
    assert homes_of(place(build_pod(), known)) == list(zip([100, 50, 25], RING, strict=False))


@pytest.mark.parametrize("gone", [node(RING[0], ready=False), node(RING[0], unschedulable=True)])
def test_a_node_that_isnt_ready_or_is_cordoned_leaves_the_ring(gone: NodeFact) -> None:
    placed = place(build_pod(), facts(gone, *map(node, RING[1:]), builders=" ".join(RING)))
    assert [name for _, name in homes_of(placed)] == RING[1:4]


def test_a_node_without_a_ready_builder_is_not_in_the_ring() -> None:
    placed = place(build_pod(), facts(*builder_nodes(), builders=" ".join(RING[1:])))
    assert [name for _, name in homes_of(placed)] == RING[1:4]


def test_a_node_that_the_builds_own_selector_shuts_out_is_no_home() -> None:
    nodes = [node(name, labels={"pool": "builds" if name in RING[2:] else "users"}) for name in RING]
    placed = place(build_pod(nodeSelector={"pool": "builds"}), facts(*nodes, builders=" ".join(RING)))
    assert [name for _, name in homes_of(placed)] == RING[2:5]


def test_an_overloaded_first_node_is_passed_by() -> None:
    busy = {f"{NAMESPACE}/b-{index}": RING[0] for index in range(4)}
    placed = place(build_pod(), facts(*builder_nodes(), builders=" ".join(RING), builds=busy))
    assert homes_of(placed) == [(100, RING[1]), (50, RING[2])]


def test_a_burst_counts_before_the_watch_shows_it() -> None:
    desk = Desk(known=FIVE)
    homes = [homes_of(desk.place(build_pod(name=f"build-{index}")))[0][1] for index in range(11)]
    # With ten running the bound has grown from 4 to ceil(2 x 11 / 5) = 5, so the first node has room again.
    assert homes == [RING[0]] * 4 + [RING[1]] * 4 + [RING[2]] * 2 + [RING[0]]


def test_repeated_posts_of_one_pod_count_once_and_get_the_same_home() -> None:
    desk = Desk(known=FIVE)
    for index in range(3):
        desk.place(build_pod(name=f"other-{index}"))
    assert {homes_of(desk.place(build_pod()))[0][1] for _ in range(20)} == {RING[0]}
    shown = {f"{NAMESPACE}/other-{index}": RING[0] for index in range(2)} | {f"{NAMESPACE}/build-1": RING[0]}
    desk.reviewer.pod_seen(NAMESPACE, "other-2")
    desk.facts = facts(*builder_nodes(), builders=" ".join(RING), builds=shown)
    assert homes_of(desk.place(build_pod()))[0][1] == RING[0]
    assert homes_of(desk.place(build_pod(name="fourth")))[0][1] == RING[0]
    assert homes_of(desk.place(build_pod(name="fifth")))[0][1] == RING[1]


def test_a_dry_run_leaves_no_trace() -> None:
    desk = Desk(known=FIVE)
    for index in range(4):
        desk.place(build_pod(name=f"build-{index}"), dryRun=True)
    assert homes_of(desk.place(build_pod(name="real")))[0][1] == RING[0]
    assert all(outcome.is_dry_run for outcome in desk.outcomes[:-1])


def test_what_the_watch_never_shows_is_forgotten_within_seconds() -> None:
    desk = Desk(known=FIVE)
    for index in range(4):
        desk.place(build_pod(name=f"build-{index}"))
    assert homes_of(desk.place(build_pod(name="sooner")))[0][1] == RING[1]
    desk.now += CONFIRM_SECONDS + 0.1
    assert homes_of(desk.place(build_pod(name="later")))[0][1] == RING[0]


def test_while_the_watch_is_broken_decisions_count_for_longer_and_cast_no_doubt() -> None:
    desk = Desk(known=dataclasses.replace(FIVE, shows_new_pods=False))
    for index in range(4):
        desk.place(build_pod(name=f"build-{index}"))
    desk.now += CONFIRM_SECONDS + 0.1
    assert homes_of(desk.place(build_pod(name="later")))[0][1] == RING[1]
    desk.now += EXPIRY_SECONDS
    for index in range(4):
        assert homes_of(desk.place(build_pod(name=f"next-{index}")))[0][1] == RING[0]
    assert homes_of(desk.place(build_pod(name="last")))[0][1] == RING[1]


@pytest.mark.slow
def test_reviews_of_pods_that_never_come_move_no_home_once_it_is_seen() -> None:
    desk = Desk(known=FIVE)
    moved = 0
    for second in range(600):
        desk.now += 1
        for index in range(5):
            desk.answer(build_pod(name=f"made-up-{second}-{index}"))
        real = desk.place(build_pod(name=f"asked-{second}"), dryRun=True)
        moved += homes_of(real)[0][1] != RING[0]
    assert 0 < moved <= CONFIRM_SECONDS


def test_after_a_flood_of_made_up_reviews_pods_that_come_bring_back_trust() -> None:
    desk = Desk(known=FIVE)
    for index in range(10):
        desk.place(build_pod(name=f"made-up-{index}"))
    desk.now += CONFIRM_SECONDS + 0.1
    for index in range(8):
        desk.place(build_pod(name=f"real-{index}"))
        desk.reviewer.pod_seen(NAMESPACE, f"real-{index}")
    homes = [homes_of(desk.place(build_pod(name=f"build-{index}")))[0][1] for index in range(5)]
    assert homes == [RING[0]] * 4 + [RING[1]]


def test_a_build_that_is_neither_bound_nor_sent_anywhere_counts_among_the_running() -> None:
    # Four at home are at the floor of the bound; with eight more somewhere it is ceil(2 x 13 / 5) = 6.
    lost = {f"{NAMESPACE}/lost-{index}": "" for index in range(8)}
    busy = {f"{NAMESPACE}/busy-{index}": RING[0] for index in range(4)}
    assert homes_of(place(build_pod(), facts(*builder_nodes(), builders=" ".join(RING), builds=busy)))[0][1] == RING[1]
    both = facts(*builder_nodes(), builders=" ".join(RING), builds=busy | lost)
    assert homes_of(place(build_pod(), both))[0][1] == RING[0]


def test_as_many_decisions_as_are_remembered_count_until_the_watch_shows_them() -> None:
    ledger = Ledger()
    for index in range(4096):
        ledger.record(f"a/{index}", HomePod("build", f"n{index % 3}"), 0.0)
    assert ledger.total("build") == 4096
    assert sum(ledger.load(HomePod("build", f"n{index}")) for index in range(3)) == 4096
    ledger.follow(Homes({f"a/{index}": HomePod("build", "n0") for index in range(1000)}), 1.0)
    assert ledger.total("build") == 3096
    ledger.follow(Homes(), 31.0)
    assert ledger.total("build") == 0


def test_a_flood_of_decisions_is_bounded_stays_quick_and_counts_no_more() -> None:
    ledger = Ledger()
    for index in range(10_000):
        ledger.record(f"a/{index}", HomePod("build", f"n{index % 3}"), 0.0)
    assert len(ledger._decisions) == 4096
    assert not ledger.is_trusted
    assert ledger.total("build") == 0


def test_what_the_watch_shows_counts_once_and_what_it_showed_the_end_of_counts_no_more() -> None:
    desk = Desk(known=FIVE)
    for index in range(4):
        desk.place(build_pod(name=f"build-{index}"))
    shown = {f"{NAMESPACE}/build-{index}": RING[0] for index in range(3)}
    desk.facts = facts(*builder_nodes(), builders=" ".join(RING), builds=shown)
    desk.reviewer.pod_seen(NAMESPACE, "build-3")
    assert homes_of(desk.place(build_pod(name="later")))[0][1] == RING[0]


def test_pods_whose_names_are_yet_to_be_made_are_told_apart() -> None:
    desk = Desk(known=FIVE)
    body = build_pod()
    body["metadata"] |= {"name": None, "generateName": "build-"}
    homes = [homes_of(desk.place(body, uid=f"uid-{index}"))[0][1] for index in range(5)]
    assert homes == [RING[0]] * 4 + [RING[1]]


def test_a_pod_whose_name_was_made_counts_once_when_the_watch_shows_it() -> None:
    desk = Desk(known=FIVE)
    body = build_pod()
    body["metadata"] |= {"name": None, "generateName": "build-"}
    for index in range(3):
        desk.place(body, uid=f"uid-{index}")
    shown = {f"{NAMESPACE}/build-x7k2{index}": RING[0] for index in range(3)}
    desk.facts = facts(*builder_nodes(), builders=" ".join(RING), builds=shown)
    assert homes_of(desk.place(build_pod(name="fourth")))[0][1] == RING[0]
    assert homes_of(desk.place(build_pod(name="fifth")))[0][1] == RING[1]


def test_pods_that_were_there_before_are_not_taken_for_one_whose_name_was_made_since() -> None:
    ledger, before = Ledger(), Homes({"a/build-abcde": HomePod("build", "n0")})
    ledger.follow(before, 0.0)
    ledger.record(f"a/{unnamed('build-', 'uid')}", HomePod("build", "n1"), 0.0)
    ledger.follow(before.updated({"a/other-abcde": HomePod("build", "n0")}), 0.1)
    assert ledger.total("build") == 1
    ledger.follow(before.updated({"a/build-fghij": HomePod("build", "n1")}), 0.2)
    assert ledger.total("build") == 0


def test_a_build_reviewed_again_keeps_its_home_whatever_the_load_is_by_then() -> None:
    desk = Desk(known=FIVE)
    placed = desk.place(build_pod())
    busy = {f"{NAMESPACE}/b-{index}": RING[0] for index in range(40)}
    desk.facts = facts(*builder_nodes(), builders=" ".join(RING), builds=busy)
    assert desk.place(placed) == placed


def test_a_copied_annotation_without_its_terms_is_no_home() -> None:
    body = build_pod()
    body["metadata"]["annotations"][HOME_TARGET_ANNOTATION] = "node-of-another-life"
    placed = place(body, FIVE)
    assert placed["metadata"]["annotations"][HOME_TARGET_ANNOTATION] == RING[0]


def test_a_build_of_no_known_repository_keeps_binderhubs_terms() -> None:
    body = build_pod("", affinity=prefers_nodes(sticky_term("node-x")))
    assert node_terms(place(body, FIVE)) == [sticky_term("node-x")]


def test_an_authors_loud_term_beside_the_home_is_warned_of() -> None:
    loud = {"weight": 50, "preference": {"matchExpressions": [expression("zone", "a")]}}
    assert any(
        "outvote" in text for text in Desk(known=FIVE).answer(build_pod(affinity=prefers_nodes(loud)))["warnings"]
    )
    quiet = {**loud, "weight": 49}
    assert "warnings" not in Desk(known=FIVE).answer(build_pod(affinity=prefers_nodes(quiet)))


def test_losing_a_node_moves_only_its_own_builds() -> None:
    repositories = [f"https://github.com/org/repo-{index}" for index in range(40)]

    def first_homes(*names: str) -> dict[str, str]:
        known = facts(*map(node, names), builders=" ".join(names))
        return {repo: homes_of(place(build_pod(repo), known))[0][1] for repo in repositories}

    before, after = first_homes(*RING), first_homes(*RING[1:])
    assert {repo for repo in repositories if before[repo] != after[repo]} == {
        repo for repo in repositories if before[repo] == RING[0]
    }


def test_a_users_home_can_be_known_from_its_environment() -> None:
    home = {
        "key": [{"env": "BINDER_REPO_URL"}, {"image": "repository"}],
        "builders": {"labels": None},
        "matchBy": "name",
        "weights": [10],
        "minLoad": 1,
        "maxLoad": 0,
    }
    rules = settings(podClasses={"user": {"home": home}})
    body = user_pod()
    body["spec"]["containers"][0]["env"] = [{"name": "BINDER_REPO_URL", "value": REPOSITORY}]
    assert homes_of(place(body, facts(*builder_nodes()), rules)) == [(10, RING[0])]


# --- pairs, preferred nodes, attraction ---

PURPOSE = {"weight": 100, "preference": {"matchExpressions": [expression("hub.jupyter.org/node-purpose", "user")]}}


def pair(labels: dict[str, str], weight: int, **more: object) -> Object:
    term = {"labelSelector": {"matchLabels": labels}, "topologyKey": "kubernetes.io/hostname", **more}
    return {"weight": weight, "podAffinityTerm": term}


def test_users_join_users() -> None:
    assert pod_terms(place(user_pod()), "podAffinity") == [pair({"component": "singleuser-server"}, 100)]


def test_placeholders_avoid_users_and_the_pair_is_said_on_one_side_only() -> None:
    assert pod_terms(place(placeholder_pod()), "podAntiAffinity") == [pair({"component": "singleuser-server"}, 1)]
    assert pod_terms(place(user_pod()), "podAntiAffinity") == []


def test_an_operators_equal_pair_term_is_not_doubled_whatever_its_weight_or_spelling() -> None:
    own = pair({}, 5)
    own["podAffinityTerm"]["labelSelector"] = {"matchExpressions": [expression("component", "singleuser-server")]}
    placed = place(user_pod(affinity={"podAffinity": {PREFERRED: [own]}}))
    assert pod_terms(placed, "podAffinity") == [own]


@pytest.mark.parametrize("more", [{"namespaces": ["other"]}, {"namespaceSelector": {}}, {"topologyKey": "zone"}])
def test_a_pair_term_about_other_namespaces_or_places_is_another_term(more: dict[str, object]) -> None:
    own = pair({"component": "singleuser-server"}, 100, **more)
    placed = place(user_pod(affinity={"podAffinity": {PREFERRED: [own]}}))
    assert pod_terms(placed, "podAffinity") == [own, pair({"component": "singleuser-server"}, 100)]


def test_user_namespaces_are_counted_across_by_the_classs_selector() -> None:
    labels, selector = {"component": "singleuser-server"}, {"matchLabels": {"hub": "jhub"}}
    rules = settings(podClasses={"user": {"match": {"labels": labels, "namespaceSelector": selector}}})
    known = facts(node("n1", IMAGE), namespaces={"user-ada": {"hub": "jhub"}})
    placed = Desk(rules, known).place(user_pod(), namespace="user-ada")
    assert pod_terms(placed, "podAffinity") == [pair(labels, 100, namespaceSelector=selector)]
    assert required_terms(placed) == [{"matchExpressions": [KEEPS_OFF]}]


def test_from_another_namespace_a_class_of_the_releases_own_is_named_by_it() -> None:
    match = {"labels": {"component": "user-placeholder"}, "namespaceSelector": {}}
    rules = settings(podClasses={"placeholder": {"match": match}})
    placed = Desk(rules).place(placeholder_pod(), namespace="seats")
    assert pod_terms(placed, "podAntiAffinity") == [pair({"component": "singleuser-server"}, 1, namespaces=[NAMESPACE])]


def test_an_equal_preferred_node_term_is_not_doubled_whatever_its_weight() -> None:
    own = {**PURPOSE, "weight": 3}
    assert node_terms(place(user_pod(affinity=prefers_nodes(own)), HERE)) == [own, PREFERS_HOLDER]
    assert node_terms(place(user_pod(), HERE)) == [PREFERS_HOLDER, PURPOSE]


def attraction(name: str) -> Object:
    key = attract_label(RELEASE, NAMESPACE, name)
    return {"weight": 100, "preference": {"matchExpressions": [{"key": key, "operator": "Exists"}]}}


def test_a_placeholder_is_drawn_to_the_node_marked_for_its_set() -> None:
    marked = [attraction(name) for name in ("gpu", "default")]
    assert [term for term in node_terms(place(placeholder_pod({PLACEHOLDER_SET_LABEL: "gpu"}))) if term in marked] == [
        attraction("gpu")
    ]
    assert [term for term in node_terms(place(placeholder_pod())) if term in marked] == [attraction("default")]
    unnamed = place(placeholder_pod(), rules=settings(placeholders=None))
    assert "attract-placeholders" not in str(unnamed)


# --- requests ---


def resources_of(container: Object, whole: Object | None = None) -> Object:
    body = build_pod(containers=[{"name": "builder", "image": "a", **container}], resources=whole)
    found: Object = place(body, FIVE)["spec"]["containers"][0].get("resources", {})
    return found


DEFAULT_REQUESTS = {"cpu": "100m", "memory": "1Gi"}


@pytest.mark.parametrize(
    "container", [{}, {"resources": None}, {"resources": {}}, {"resources": {"requests": {}, "limits": {}}}]
)
def test_a_container_that_asks_for_nothing_gets_the_classs_requests(container: Object) -> None:
    assert resources_of(container)["requests"] == DEFAULT_REQUESTS


def test_a_container_that_asks_for_something_keeps_what_it_asks_for() -> None:
    own = {"requests": {"cpu": "1"}}
    assert resources_of({"resources": own}) == own


def test_a_pod_of_which_any_container_asks_for_something_is_left_so() -> None:
    containers = [
        {"name": "builder", "image": "a"},
        {"name": "helper", "image": "b", "resources": {"requests": {"cpu": "1"}}},
    ]
    for ordered in (containers, containers[::-1]):
        assert place(build_pod(containers=ordered), FIVE)["spec"]["containers"] == ordered


BUILDERS = {
    "builder": {"match": {"labels": {"component": "image-builder"}}, "profile": "", "resources": {"cpu": "2"}},
    "user": {"resources": {"cpu": "100m"}},
}


def daemon(**labels: str) -> Object:
    body = user_pod(affinity=requires_nodes({"matchFields": [expression("metadata.name", "n1")]}))
    body["metadata"] |= {"ownerReferences": [{"kind": "DaemonSet", "controller": True, "name": "x"}]}
    body["metadata"]["labels"] |= labels
    body["spec"]["containers"][0]["resources"] = {}
    return body


def test_a_daemon_sets_pod_gets_its_classs_requests_and_nothing_else() -> None:
    desk = Desk(settings(podClasses=BUILDERS), known=FIVE)
    for body in (daemon(), daemon(component="image-builder")):
        placed = desk.place(body)
        requests = {"cpu": "2"} if body["metadata"]["labels"]["component"] == "image-builder" else {"cpu": "100m"}
        changed = copy.deepcopy(body)
        changed["spec"]["containers"][0]["resources"] = {"requests": requests}
        assert placed == changed
    assert [decision.result for decision in desk.decisions] == ["patched", "patched"]
    desk.place(placed)
    assert desk.decisions[-1][:3] == ("skipped", "builder", "daemon-set")


def test_roosts_own_daemon_sets_get_no_requests() -> None:
    own = {"app.kubernetes.io/part-of": "roost", "app.kubernetes.io/component": "image-puller"}
    desk = Desk(settings(podClasses=BUILDERS), known=FIVE)
    assert patch_of(desk.answer(daemon(**own))) == []
    assert desk.decisions[0].reason == "own-pod"


def test_a_request_is_never_above_a_limit() -> None:
    # What is limited and not requested is requested at its limit by Kubernetes itself.
    own = {"limits": {"memory": "512Mi"}}
    assert resources_of({"resources": own}) == {**own, "requests": {"cpu": "100m"}}
    both = {"limits": {"cpu": "1m", "memory": "1Mi"}}
    assert resources_of({"resources": both}) == both


def test_a_pod_with_resources_of_its_own_as_a_whole_is_left_so() -> None:
    assert resources_of({}, whole={"requests": {"memory": "512Mi"}}) == {}


# --- left alone ---


def untouched(body: Object, namespace: str = NAMESPACE, **request: object) -> str:
    desk = Desk(known=FIVE)
    response = desk.answer(body, namespace, **request)
    assert patch_of(response) == []
    return desk.decisions[0].reason or str(desk.decisions[0].result)


def test_who_is_left_alone_and_why() -> None:
    opted_out, mirror, bound, daemon, pinned, own = (user_pod() for _ in range(6))
    opted_out["metadata"]["annotations"] = {OPT_OUT_ANNOTATION: "true"}
    mirror["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "hash"}
    bound["spec"]["nodeName"] = "n1"
    daemon["metadata"]["ownerReferences"] = [{"kind": "DaemonSet", "controller": True, "name": "x"}]
    pinned["spec"]["affinity"] = requires_nodes({"matchFields": [expression("metadata.name", "n1")]})
    own["metadata"]["labels"] |= {"app.kubernetes.io/part-of": "roost", "app.kubernetes.io/component": "webhook"}
    bodies = (opted_out, mirror, bound, daemon, pinned, own)
    assert list(map(untouched, bodies)) == ["opt-out", "mirror-pod", "node-name", "daemon-set", "daemon-set", "own-pod"]


def test_opting_out_takes_the_word_true() -> None:
    body = user_pod()
    body["metadata"]["annotations"] = {OPT_OUT_ANNOTATION: "false"}
    assert place(body) != body


def test_a_pod_without_a_class_is_left_alone() -> None:
    body = user_pod()
    body["metadata"]["labels"] = {"component": "hub"}
    assert untouched(body) == "unmatched"
    assert untouched(user_pod(), namespace="another-hub") == "unmatched"


@pytest.mark.parametrize(
    "request_change",
    [
        {"operation": "UPDATE"},
        {"operation": "DELETE", "object": None},
        {"subResource": "ephemeralcontainers"},
        {"resource": {"group": "", "version": "v1", "resource": "configmaps"}},
        {"resource": {"group": "other", "version": "v1", "resource": "pods"}},
    ],
)
def test_what_isnt_the_creation_of_a_pod_is_left_alone(request_change: Object) -> None:
    assert untouched(user_pod(), **request_change) == "ignored"


# --- patches that a pod can take ---


@pytest.mark.parametrize(
    "affinity",
    [
        None,
        {},
        {"nodeAffinity": None, "podAffinity": None},
        {"nodeAffinity": {}, "podAffinity": {}},
        {"nodeAffinity": {PREFERRED: None, REQUIRED: None}, "podAffinity": {PREFERRED: None}},
        {"nodeAffinity": {PREFERRED: []}, "podAffinity": {PREFERRED: []}},
    ],
)
def test_a_patch_applies_whatever_parents_are_missing_null_or_empty(affinity: object) -> None:
    # The API server refuses a pod whose patch doesn't apply, even with failurePolicy Ignore.
    placed = place(user_pod(affinity=affinity), HERE)
    assert required_terms(placed) == [{"matchExpressions": [KEEPS_OFF]}]
    assert node_terms(placed) == [PREFERS_HOLDER, PURPOSE]
    assert pod_terms(placed, "podAffinity") == [pair({"component": "singleuser-server"}, 100)]


@pytest.mark.parametrize("annotations", [None, {}, {"own": "text"}])
def test_annotations_are_added_beside_what_is_there(annotations: dict[str, str] | None) -> None:
    body = user_pod()
    body["metadata"]["annotations"] = annotations
    expected = {**(annotations or {}), POLICY_REVISION_ANNOTATION: "revision0001"}
    assert place(body)["metadata"]["annotations"] == expected


def annotated(room_bytes: int, more: dict[str, str] | None = None) -> Object:
    """A build whose annotations leave so much room."""
    body = build_pod()
    more = {**body["metadata"]["annotations"], **(more or {})}
    # Of two bytes a letter.
    used_bytes = sum(len(key) + len(value) for key, value in more.items()) + len("notes1")
    left_bytes = MAX_ANNOTATIONS_BYTES - used_bytes - room_bytes
    body["metadata"]["annotations"] = {"notes": "é" * (left_bytes // 2) + "1" + "x" * (left_bytes % 2), **more}
    return body


def test_annotations_for_which_a_pod_has_no_room_are_left_out_with_a_warning() -> None:
    revision = settings().revision
    need = len(POLICY_REVISION_ANNOTATION) + len(revision)
    for room_bytes, fitting in ((0, set()), (need - 1, {HOME_TARGET_ANNOTATION}), (need, {POLICY_REVISION_ANNOTATION})):
        body, desk = annotated(room_bytes), Desk(known=FIVE)
        placed = desk.place(body)
        found = placed["metadata"]["annotations"]
        assert found.keys() - body["metadata"]["annotations"].keys() == fitting
        assert sum(len(f"{key}{value}".encode()) for key, value in found.items()) <= MAX_ANNOTATIONS_BYTES
        assert homes_of(placed)[0][1] == RING[0]
        (warning,) = desk.answer(body)["warnings"]
        assert [key in warning for key in (POLICY_REVISION_ANNOTATION, HOME_TARGET_ANNOTATION)] == [
            key not in fitting for key in (POLICY_REVISION_ANNOTATION, HOME_TARGET_ANNOTATION)
        ]


def test_an_older_annotation_of_ours_makes_room_for_the_new_one() -> None:
    more = {POLICY_REVISION_ANNOTATION: "x" * 12, HOME_TARGET_ANNOTATION: "x" * len(RING[0])}
    found = place(annotated(0, more), FIVE)["metadata"]["annotations"]
    assert found[POLICY_REVISION_ANNOTATION] == settings().revision
    assert found[HOME_TARGET_ANNOTATION] == RING[0]


def test_a_required_affinity_that_is_invalid_by_itself_stays_so() -> None:
    # It is the API server's to refuse; to mend it would place a pod where its author never said.
    assert required_terms(place(user_pod(affinity=requires_nodes()), HERE)) == []


def test_node_terms_are_the_same_rule_whatever_their_order() -> None:
    first, second = (expression("metadata.name", name, operator="NotIn") for name in ("n1", "n2"))
    assert same_node_preference({"matchFields": [first, second]}, {"matchFields": [second, first]})
    assert not same_node_preference({"matchFields": [first]}, {"matchFields": [second]})
    one = {"matchExpressions": [expression("zone", "a", "b"), expression("pool", "x")]}
    other = {"matchExpressions": [expression("pool", "x"), expression("zone", "b", "a")], "matchFields": []}
    assert same_node_preference(one, other)
    assert not same_node_preference(one, {"matchFields": one["matchExpressions"]})


def test_slashes_and_tildes_in_a_pointers_step_are_escaped() -> None:
    assert pointer("a/b~c") == "a~1b~0c"


# --- what is written, and to whom ---


def test_every_placed_pod_names_the_revision_of_its_rules() -> None:
    for body in (user_pod(), build_pod(), placeholder_pod()):
        assert place(body, FIVE)["metadata"]["annotations"][POLICY_REVISION_ANNOTATION] == "revision0001"


def test_audit_annotations_say_what_was_done() -> None:
    response = Desk(known=FIVE).answer(build_pod())
    assert response["auditAnnotations"] == {
        "class": "build",
        "policy-revision": "revision0001",
        "home": f"{', '.join(RING[:3])} of 5",
    }
    assert Desk(known=HERE).answer(user_pod())["auditAnnotations"]["gate"] == "required 1"


def test_a_pod_with_scheduling_gates_is_placed_and_keeps_them() -> None:
    gates = [{"name": "example.org/wait"}]
    placed = place(user_pod(schedulingGates=gates), HERE)
    assert placed["spec"]["schedulingGates"] == gates
    assert placed["spec"]["schedulerName"] == "hub.jhub.user"


def test_new_rules_hold_from_the_next_review_on() -> None:
    desk = Desk(known=HERE)
    assert desk.place(user_pod())["spec"]["schedulerName"] == "hub.jhub.user"
    desk.rules = settings(podClasses={"user": {"profile": "other"}})
    assert desk.place(user_pod())["spec"]["schedulerName"] == "hub.jhub.other"


SHARED = {"matchLabels": {"pool": "users"}}


def test_where_hubs_share_pools_the_pods_of_all_count_in_each_pair() -> None:
    rules = settings(sharedNamespaces=SHARED, podClasses={"user": {"avoid": {"build": 3}}})
    term = {"topologyKey": "kubernetes.io/hostname", "namespaces": [NAMESPACE], "namespaceSelector": SHARED}
    users = {"weight": 100, "podAffinityTerm": {**term, "labelSelector": {"matchLabels": USERS}}}
    builds = {"weight": 3, "podAffinityTerm": {**term, "labelSelector": {"matchLabels": BUILDS}}}
    placed = place(user_pod(), HERE, rules)
    assert (pod_terms(placed, "podAffinity"), pod_terms(placed, "podAntiAffinity")) == ([users], [builds])
    # Twice is once.
    assert place(placed, HERE, rules) == placed


def test_of_a_class_in_other_namespaces_the_shared_ones_count() -> None:
    elsewhere = {"match": {"labels": USERS, "namespaceSelector": {"matchLabels": {"team": "a"}}}}
    rules = settings(sharedNamespaces=SHARED, podClasses={"user": elsewhere})
    known = replace(HERE, namespaces={"of-ada": {"team": "a"}})
    (term,) = pod_terms(Desk(rules, known).place(user_pod(), "of-ada"), "podAffinity")
    assert term["podAffinityTerm"]["namespaceSelector"] == SHARED
    assert term["podAffinityTerm"]["namespaces"] == [NAMESPACE]


def test_ring_sizes_follow_the_nodes() -> None:
    desk = Desk(known=FIVE)
    nodes = FIVE.nodes
    assert nodes is not None
    steps: list[tuple[dict[str, NodeFact | None], int]] = [
        ({}, 5),
        ({"node-0": node("node-0", ready=False), "node-9": node("node-9")}, 4),
        ({"node-0": node("node-0", unschedulable=True), "node-1": None}, 3),
        ({"node-0": node("node-0"), "node-1": node("node-1")}, 5),
        ({f"node-{index}": None for index in range(5)}, 1),
    ]
    for change, size in steps:
        nodes = nodes.updated(change)
        desk.facts = Facts(nodes=nodes, builder_nodes=FIVE.builder_nodes)
        # With no builder's node left, the ring is made of what nodes there are.
        assert desk.reviewer.ring_sizes() == {"build": size}
