"""The home of a repository's builds: the ring, BinderHub's own terms, the bound on load, and builds
sent lately.
"""

import copy
from dataclasses import replace

import pytest

from roost_core.objects.node import Node
from roost_core.objects.selectors import Taint
from roost_core.placement.beliefs import REVIEWED
from roost_core.placement.labels import HOME_TARGET_ANNOTATION
from tests.builders import (
    NAMESPACE,
    PREFERRED,
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
from webhook.facts.homes import Homes
from webhook.facts.placed_pod import PlacedPod
from webhook.ledger import Ledger, unnamed
from webhook.rendezvous import rank_nodes

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


def test_an_overloaded_first_node_is_passed_by() -> None:
    busy = {f"{NAMESPACE}/b-{index}": RING[0] for index in range(4)}
    placed = place(build_pod(), facts(*builder_nodes(), builders=" ".join(RING), builds=busy))
    assert homes_of(placed) == [(100, RING[1]), (50, RING[2])]


def test_a_build_reviewed_again_keeps_its_home_whatever_the_load_is_by_then() -> None:
    desk = Desk(known=FIVE)
    placed = desk.place(build_pod())
    busy = {f"{NAMESPACE}/b-{index}": RING[0] for index in range(40)}
    desk.facts = facts(*builder_nodes(), builders=" ".join(RING), builds=busy)
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
    home = {"key": key, "builders": {"labels": None}, "weights": [10], "maxLoad": 0}
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


def burst(known: Facts, builds: int = 60) -> tuple[int, str]:
    """How many builds of a burst, of ten repositories, went to their repository's first home, and
    their last note.
    """
    desk, at_home, note = Desk(known=known), 0, ""
    ring = {name for name, one in (known.nodes or {}).items() if not one.taints}
    for index in range(builds):
        repository = f"{REPOSITORY}-{index % 10}"
        response = desk.answer(build_pod(repository, name=f"build-{index}"))
        (_, first), *_ = homes_of(patched(build_pod(repository), response))
        at_home += first == rank_nodes(repository, ring)[0]
        note = response["auditAnnotations"]["home"]
    return at_home, note


def test_nodes_that_a_build_may_not_use_dont_lower_the_bound() -> None:
    usable = builder_nodes(10)
    shut = [node(f"shut-{index}", taints=TAINTED) for index in range(20)]
    names = " ".join(one.name for one in (*usable, *shut))
    alone, _ = burst(facts(*usable, builders=names))
    beside, note = burst(facts(*usable, *shut, builders=names))
    assert beside == alone
    assert alone / 60 >= 0.8
    assert note.endswith(" of 10")


def test_the_bound_follows_a_taint_that_comes_and_goes() -> None:
    # Two usable nodes of five take 2 x 11 / 2 = 11 builds each, five take 5 each.
    desk = Desk(known=FIVE)
    nodes = FIVE.nodes
    assert nodes is not None
    away = {name: node(name, taints=TAINTED) for name in RING[2:]}
    back = {name: node(name) for name in RING[2:]}
    running = {f"{NAMESPACE}/b-{index}": RING[0] for index in range(10)}
    for change, first in ((back, RING[1]), (away, RING[0]), (back, RING[1])):
        nodes = nodes.updated(change)
        desk.facts = replace(
            facts(builders=" ".join(RING), builds=running),
            nodes=nodes,
            builder_nodes=FIVE.builder_nodes,
        )
        assert homes_of(desk.place(build_pod()))[0][1] == first


def homes_of_builds(desk: Desk, count: int, name: str = "build") -> list[str]:
    """Where so many builds of one repository are sent, one after the other."""
    return [homes_of(desk.place(build_pod(name=f"{name}-{index}")))[0][1] for index in range(count)]


def test_a_burst_counts_before_the_watch_shows_it() -> None:
    # With ten running the bound has grown from 4 to ceil(2 x 11 / 5) = 5, so the first node has
    # room again.
    expected = [RING[0]] * 4 + [RING[1]] * 4 + [RING[2]] * 2 + [RING[0]]
    assert homes_of_builds(Desk(known=FIVE), 11) == expected
    desk, body = Desk(known=FIVE), build_pod()
    body["metadata"] |= {"name": None, "generateName": "build-"}
    # Pods whose names are yet to be made are told apart.
    assert [homes_of(desk.place(body, uid=f"uid-{index}"))[0][1] for index in range(5)] == expected[
        :5
    ]


def test_repeated_posts_of_one_pod_count_once_and_get_the_same_home() -> None:
    desk = Desk(known=FIVE)
    for index in range(3):
        desk.place(build_pod(name=f"other-{index}"))
    assert {homes_of(desk.place(build_pod()))[0][1] for _ in range(20)} == {RING[0]}
    shown = {f"{NAMESPACE}/other-{index}": RING[0] for index in range(2)} | {
        f"{NAMESPACE}/build-1": RING[0]
    }
    desk.reviewer.pod_seen(NAMESPACE, "other-2")
    desk.facts = facts(*builder_nodes(), builders=" ".join(RING), builds=shown)
    assert homes_of(desk.place(build_pod()))[0][1] == RING[0]
    assert homes_of(desk.place(build_pod(name="fourth")))[0][1] == RING[0]
    assert homes_of(desk.place(build_pod(name="fifth")))[0][1] == RING[1]


@pytest.mark.parametrize("own", RING[:2])
def test_a_repeated_post_does_not_raise_the_bound_by_itself_nor_lower_its_nodes_load(
    own: str,
) -> None:
    nodes = [RING[0]] * 4 + [RING[1]] * 2 + [RING[2]] * 3
    builds = {f"{NAMESPACE}/other-{index}": node for index, node in enumerate(nodes)}
    builds[f"{NAMESPACE}/build-1"] = own
    # Nine others: with this one the bound is 2 x 10 / 5 = 4, which the first node has.
    desk = Desk(known=facts(*builder_nodes(), builders=" ".join(RING), builds=builds))
    assert homes_of(desk.place(build_pod()))[0][1] == RING[1]


def test_a_dry_run_leaves_no_trace() -> None:
    desk = Desk(known=FIVE)
    for index in range(4):
        desk.place(build_pod(name=f"build-{index}"), dryRun=True)
    assert homes_of(desk.place(build_pod(name="real")))[0][1] == RING[0]
    assert all(is_dry_run for _, is_dry_run, _ in desk.outcomes[:-1])


def test_after_a_flood_of_made_up_reviews_pods_that_come_bring_back_trust() -> None:
    desk = Desk(known=FIVE)
    homes_of_builds(desk, 10, "made-up")
    desk.now += REVIEWED.age_seconds + 0.1
    for index in range(8):
        desk.place(build_pod(name=f"real-{index}"))
        desk.reviewer.pod_seen(NAMESPACE, f"real-{index}")
    assert homes_of_builds(desk, 5) == [RING[0]] * 4 + [RING[1]]


def test_a_build_that_is_neither_bound_nor_sent_anywhere_counts_among_the_running() -> None:
    # Four at home are at the floor of the bound; with eight more somewhere it is ceil(2 x 13 / 5) =
    # 6.
    lost = {f"{NAMESPACE}/lost-{index}": "" for index in range(8)}
    busy = {f"{NAMESPACE}/busy-{index}": RING[0] for index in range(4)}
    assert (
        homes_of(place(build_pod(), facts(*builder_nodes(), builders=" ".join(RING), builds=busy)))[
            0
        ][1]
        == RING[1]
    )
    both = facts(*builder_nodes(), builders=" ".join(RING), builds=busy | lost)
    assert homes_of(place(build_pod(), both))[0][1] == RING[0]


@pytest.mark.parametrize(("count", "remembered"), [(4096, 4096), (10_000, 0)])
def test_decisions_count_until_the_watch_shows_them_and_after_a_flood_none(
    count: int, remembered: int
) -> None:
    ledger = Ledger()
    for index in range(count):
        ledger.record(f"a/{index}", PlacedPod("build", f"n{index % 3}"), 0.0)
    assert len(ledger._decisions) == 4096
    assert ledger.is_trusted is bool(remembered)
    assert ledger.total("build") == remembered
    assert sum(ledger.load(PlacedPod("build", f"n{index}")) for index in range(3)) == remembered
    ledger.follow(Homes({f"a/{index}": PlacedPod("build", "n0") for index in range(1000)}), 1.0)
    assert ledger.total("build") == max(0, remembered - 1000)
    ledger.follow(Homes(), 31.0)
    assert ledger.total("build") == 0


def test_a_review_that_began_with_earlier_facts_still_counts_what_they_do_not_show() -> None:
    ledger, earlier = Ledger(), Homes()
    pod = PlacedPod("build", "n0")
    ledger.record("a/one", pod, 0.0)
    later = earlier.updated({"a/one": pod})
    ledger.see("a/one", later)
    ledger.follow(earlier, 0.1)
    assert ledger.load(pod) == ledger.total("build") == 1
    ledger.follow(later, 0.2)
    assert ledger.load(pod) == ledger.total("build") == 0


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
    ledger, before = Ledger(), Homes({"a/build-abcde": PlacedPod("build", "n0")})
    ledger.follow(before, 0.0)
    ledger.record(f"a/{unnamed('build-', 'uid')}", PlacedPod("build", "n1"), 0.0)
    ledger.follow(before.updated({"a/other-abcde": PlacedPod("build", "n0")}), 0.1)
    assert ledger.total("build") == 1
    ledger.follow(before.updated({"a/build-fghij": PlacedPod("build", "n1")}), 0.2)
    assert ledger.total("build") == 0
