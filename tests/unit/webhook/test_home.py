"""The home of a repository's builds: the ring, and BinderHub's own terms."""

import copy
from dataclasses import replace

import pytest

from roost_core.objects.node import Node
from roost_core.objects.pod import PREFERRED
from roost_core.objects.selectors import Taint
from roost_core.placement.labels import HOME_TARGET_ANNOTATION
from tests.builders import (
    REPOSITORY,
    Desk,
    build_pod,
    builder_nodes,
    expression,
    facts,
    homes_of,
    node,
    node_terms,
    patched,
    place,
    pod_terms,
    prefers_nodes,
    required_terms,
    settings,
    spread_term,
    sticky_term,
    user_pod,
)
from tests.unit.webhook.small_hub import FIVE, HERE, RING
from webhook.facts.facts import Facts

FIRST_THREE = list(zip([100, 50, 25], RING, strict=False))


def test_a_build_prefers_the_first_nodes_of_its_ring_with_falling_weights() -> None:
    placed = place(build_pod(), FIVE)
    assert homes_of(placed) == FIRST_THREE
    assert placed["metadata"]["annotations"][HOME_TARGET_ANNOTATION] == RING[0]
    assert homes_of(place(build_pod(), Facts(builder_nodes=FIVE.builder_nodes))) == FIRST_THREE


def test_binderhubs_sticky_term_gives_way_by_its_shape_only() -> None:
    keep = [
        {**sticky_term("node-x"), "weight": 99},
        {
            "weight": 100,
            "preference": {"matchExpressions": [expression("kubernetes.io/hostname", "a", "b")]},
        },
        {"weight": 100, "preference": {"matchExpressions": [expression("zone", "a")]}},
        {
            "weight": 100,
            "preference": {
                "matchExpressions": [expression("kubernetes.io/hostname", "a", operator="NotIn")]
            },
        },
    ]
    body = build_pod(
        affinity=prefers_nodes(keep[0], sticky_term("node-x"), *keep[1:], sticky_term("node-y"))
    )
    placed = place(body, FIVE)
    assert node_terms(placed)[:4] == keep
    assert len(homes_of(placed)) == 3


def test_binderhubs_spreading_term_gives_way_by_its_shape_only() -> None:
    keep = [{**spread_term(), "weight": 50}, copy.deepcopy(spread_term())]
    keep[1]["podAffinityTerm"]["topologyKey"] = "topology.kubernetes.io/zone"
    required = [{"labelSelector": {"matchLabels": {"a": "b"}}, "topologyKey": "zone"}]
    terms = {
        PREFERRED: [keep[0], spread_term(), keep[1]],
        "requiredDuringSchedulingIgnoredDuringExecution": required,
    }
    placed = place(build_pod(affinity={"podAntiAffinity": terms}), FIVE)
    assert placed["spec"]["affinity"]["podAntiAffinity"] == {**terms, PREFERRED: keep}
    # Builds that avoid builds say so in the same words.
    avoids = settings(podClasses={"build": {"avoid": {"build": 100}}})
    placed = place(
        build_pod(affinity={"podAntiAffinity": {PREFERRED: [spread_term()]}}), FIVE, avoids
    )
    assert pod_terms(placed, "podAntiAffinity") == [spread_term()]


def test_without_a_ready_builder_builds_still_meet_and_with_nothing_known_are_left_alone() -> None:
    body = build_pod(affinity={"podAntiAffinity": {PREFERRED: [spread_term()]}})
    placed = place(body, facts(*builder_nodes()))
    # BinderHub's words, at a weight that only breaks ties.
    assert pod_terms(placed, "podAntiAffinity") == [{**spread_term(), "weight": 1}]
    assert homes_of(placed) == FIRST_THREE
    placed = place(body, Facts())
    assert (pod_terms(placed, "podAntiAffinity"), node_terms(placed), required_terms(placed)) == (
        [],
        [],
        None,
    )


def test_binderhubs_terms_stay_where_there_is_no_home() -> None:
    sticky = prefers_nodes(sticky_term("node-x"))
    placed = place(
        user_pod(affinity={**sticky, "podAntiAffinity": {PREFERRED: [spread_term()]}}), HERE
    )
    assert sticky_term("node-x") in node_terms(placed)
    assert pod_terms(placed, "podAntiAffinity") == [spread_term()]
    unready = place(build_pod(affinity=sticky), facts(*builder_nodes()))
    assert node_terms(unready) == [sticky_term("node-x")]
    assert HOME_TARGET_ANNOTATION not in unready["metadata"]["annotations"]
    assert node_terms(place(build_pod("", affinity=sticky), FIVE)) == [sticky_term("node-x")]


def test_a_node_that_the_builds_own_selector_shuts_out_is_no_home() -> None:
    nodes = [
        node(name, labels={"pool": "builds" if name in RING[2:] else "users"}) for name in RING
    ]
    placed = place(
        build_pod(nodeSelector={"pool": "builds"}), facts(*nodes, builders=" ".join(RING))
    )
    assert [name for _, name in homes_of(placed)] == RING[2:5]


def test_a_build_reviewed_again_keeps_its_home_whatever_nodes_have_builders_by_then() -> None:
    desk = Desk(known=FIVE)
    placed = desk.place(build_pod())
    desk.facts = facts(*builder_nodes(), builders=" ".join(RING[1:]))
    assert desk.place(placed) == placed


def test_a_copied_annotation_without_its_terms_is_no_home() -> None:
    body = build_pod(
        affinity=prefers_nodes(
            {"weight": 1, "preference": {"matchExpressions": [expression("a", "b")]}}
        )
    )
    body["metadata"]["annotations"][HOME_TARGET_ANNOTATION] = "node-of-another-life"
    placed = place(body, FIVE)
    assert placed["metadata"]["annotations"][HOME_TARGET_ANNOTATION] == RING[0]


def test_an_authors_loud_term_beside_the_home_is_warned_of_but_not_binderhubs_which_goes() -> None:
    loud = {"weight": 50, "preference": {"matchExpressions": [expression("zone", "a")]}}
    for term, is_told in (
        (loud, True),
        ({**loud, "weight": 49}, False),
        (sticky_term("node-x"), False),
    ):
        said = Desk(known=FIVE).answer(build_pod(affinity=prefers_nodes(term))).get("warnings", [])
        assert ["outvote" in text for text in said] == [True] * is_told


def test_a_users_home_can_be_known_from_its_environment() -> None:
    key = [{"env": "BINDER_REPO_URL"}, {"image": "repository"}]
    home = {"key": key, "builders": {"labels": None}, "weights": [10]}
    body = user_pod()
    body["spec"]["containers"][0]["env"] = [{"name": "BINDER_REPO_URL", "value": REPOSITORY}]
    assert homes_of(
        place(body, facts(*builder_nodes()), settings(podClasses={"user": {"home": home}}))
    ) == [(10, RING[0])]


def test_ring_sizes_follow_the_nodes() -> None:
    desk = Desk(known=FIVE)
    nodes = FIVE.nodes
    assert nodes is not None
    steps: list[tuple[dict[str, Node | None], int]] = [
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


@pytest.mark.parametrize(
    ("first", "builders"),
    [
        (node(RING[0], ready=False), RING),
        (node(RING[0], unschedulable=True), RING),
        (node(RING[0]), RING[1:]),
    ],
)
def test_a_node_unready_cordoned_or_without_ready_builder_is_no_home(
    first: Node, builders: list[str]
) -> None:
    placed = place(build_pod(), facts(first, *map(node, RING[1:]), builders=" ".join(builders)))
    assert [name for _, name in homes_of(placed)] == RING[1:4]


TAINTED = (Taint("dedicated", "users", "NoSchedule"),)


def test_a_node_that_a_build_may_not_use_is_no_home_while_its_taint_lasts() -> None:
    desk = Desk(known=FIVE)
    nodes = FIVE.nodes
    assert nodes is not None
    for taints, homes in ((TAINTED, RING[1:4]), ((), RING[:3])):
        nodes = nodes.updated({RING[0]: node(RING[0], taints=taints)})
        desk.facts = replace(FIVE, nodes=nodes)
        response = desk.answer(build_pod())
        assert [name for _, name in homes_of(patched(build_pod(), response))] == homes
        assert response["auditAnnotations"]["home"].endswith(f" of {4 if taints else 5}")


def test_however_many_builds_of_one_repository_come_they_meet() -> None:
    desk = Desk(known=FIVE)
    placed = [desk.place(build_pod(name=f"build-{index}")) for index in range(30)]
    assert {tuple(homes_of(body)) for body in placed} == {tuple(FIRST_THREE)}
