"""Terms about other pods and about nodes: join, avoid, preferred nodes, the marked node."""

from dataclasses import replace
from typing import Any

import pytest

from roost_core.placement.labels import PLACEHOLDER_SET_LABEL, attract_label
from roost_core.placement.lease_state import LeaseState
from roost_core.release.settings import SCHEDULER
from tests.builders import (
    IMAGE,
    NAMESPACE,
    PREFERRED,
    RELEASE,
    Desk,
    Object,
    build_pod,
    expression,
    facts,
    node,
    node_terms,
    place,
    placeholder_pod,
    pod_terms,
    prefers_nodes,
    required_terms,
    settings,
    user_pod,
)
from tests.unit.webhook.small_hub import HERE, KEEPS_OFF, PREFERS_HOLDER, PURPOSE, pair
from webhook.facts import Facts

USERS = {"component": "singleuser-server"}
BUILDS = {"component": "binderhub-build"}


def test_users_join_users() -> None:
    assert pod_terms(place(user_pod()), "podAffinity") == [pair({"component": "singleuser-server"}, 100)]


EACH_CLASS = [user_pod(), build_pod(), placeholder_pod()]


@pytest.mark.parametrize("body", EACH_CLASS, ids=["user", "build", "placeholder"])
def test_in_a_tie_pods_of_each_class_keep_off_builds(body: Object) -> None:
    placed = place(body, HERE)
    assert pod_terms(placed, "podAntiAffinity") == [pair(BUILDS, 1)]
    assert place(placed, HERE) == placed
    # The author's own words stay, whatever they weigh.
    own = {"affinity": {"podAntiAffinity": {PREFERRED: [pair(BUILDS, 7), pair(USERS, 3)]}}}
    kept = place({**body, "spec": {**body["spec"], **own}}, HERE)
    assert pod_terms(kept, "podAntiAffinity") == own["affinity"]["podAntiAffinity"][PREFERRED]


KARPENTERS = facts(node("n1"), node("n2", labels={"karpenter.sh/nodepool": "users"}))
AWAY = replace(HERE, leases={SCHEDULER: LeaseState.STALE})


@pytest.mark.parametrize("body", EACH_CLASS, ids=["user", "build", "placeholder"])
@pytest.mark.parametrize(
    ("known", "changes", "why"),
    [
        (KARPENTERS, {}, "Karpenter"),
        (Facts(), {}, "can't be read"),
        (AWAY, {}, "another scheduler"),
        (HERE, {"schedulerTarget": "none"}, "another scheduler"),
    ],
    ids=["beside Karpenter's nodes", "nodes unknown", "scheduler away", "no scheduler"],
)
def test_where_it_would_do_more_a_term_that_breaks_ties_is_left_out_and_a_heavier_one_stays(
    body: Object, known: Facts, changes: dict[str, Any], why: str
) -> None:
    desk = Desk(settings(**changes), known)
    assert pod_terms(desk.place(body), "podAntiAffinity") == []
    assert why in desk.decisions[0].audit["avoid"]
    heavier = {name: {"avoid": {"placeholder": 2}} for name in ("user", "build", "placeholder")}
    rules = settings(**changes, podClasses=heavier)
    assert pod_terms(place(body, known, rules), "podAntiAffinity") == [pair({"component": "user-placeholder"}, 2)]


def test_a_pod_that_names_another_scheduler_gets_no_term_that_breaks_ties() -> None:
    assert pod_terms(place(user_pod(schedulerName="theirs"), HERE), "podAntiAffinity") == []
    assert pod_terms(place(user_pod(schedulerName="hub.jhub.user"), HERE), "podAntiAffinity") == [pair(BUILDS, 1)]


def test_without_the_class_of_builds_nobody_keeps_off_them() -> None:
    assert pod_terms(place(user_pod(), HERE, settings(podClasses={"build": None})), "podAntiAffinity") == []


def test_placeholders_that_avoid_users_say_so_and_users_dont_say_it_again() -> None:
    rules = settings(podClasses={"placeholder": {"avoid": {"user": 1}}})
    assert pod_terms(place(placeholder_pod(), HERE, rules), "podAntiAffinity") == [pair(BUILDS, 1), pair(USERS, 1)]
    assert pod_terms(place(user_pod(), HERE, rules), "podAntiAffinity") == [pair(BUILDS, 1)]


def test_an_operators_equal_pair_term_is_not_doubled_whatever_its_weight_or_spelling() -> None:
    own = pair({}, 5)
    own["podAffinityTerm"]["labelSelector"] = {"matchExpressions": [expression("component", "singleuser-server")]}
    placed = place(user_pod(affinity={"podAffinity": {PREFERRED: [own]}}))
    assert pod_terms(placed, "podAffinity") == [own]


@pytest.mark.parametrize(
    "more",
    [{"namespaces": ["other"]}, {"namespaceSelector": {}}, {"topologyKey": "zone"}, {"matchLabelKeys": ["version"]}],
)
def test_a_pair_term_about_other_namespaces_places_or_pods_is_another_term(more: dict[str, object]) -> None:
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
    rules = settings(podClasses={"placeholder": {"match": match, "avoid": {"user": 2, "build": None}}})
    placed = Desk(rules).place(placeholder_pod(), namespace="placeholders")
    assert pod_terms(placed, "podAntiAffinity") == [pair({"component": "singleuser-server"}, 2, namespaces=[NAMESPACE])]


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


SHARED = {"matchLabels": {"pool": "users"}}
GUARD = frozenset({"CrossNamespacePodAffinity"})


def test_where_hubs_share_pools_the_pods_of_all_count_in_each_pair() -> None:
    rules = settings(sharedNamespaces=SHARED, podClasses={"user": {"avoid": {"build": 3}}})
    term = {"topologyKey": "kubernetes.io/hostname", "namespaces": [NAMESPACE], "namespaceSelector": SHARED}
    users = {"weight": 100, "podAffinityTerm": {**term, "labelSelector": {"matchLabels": USERS}}}
    builds = {"weight": 3, "podAffinityTerm": {**term, "labelSelector": {"matchLabels": BUILDS}}}
    placed = place(user_pod(), HERE, rules)
    assert (pod_terms(placed, "podAffinity"), pod_terms(placed, "podAntiAffinity")) == ([users], [builds])
    # Twice is once.
    assert place(placed, HERE, rules) == placed


@pytest.mark.parametrize(
    ("quotas", "why"), [({NAMESPACE: GUARD}, "CrossNamespacePodAffinity"), (None, "can't be read")]
)
def test_where_a_quota_limits_affinities_across_namespaces_pods_get_none(
    quotas: dict[str, frozenset[str]] | None, why: str
) -> None:
    rules = settings(sharedNamespaces=SHARED, podClasses={"user": {"avoid": {"build": 3}}})
    term = {"topologyKey": "kubernetes.io/hostname"}
    desk = Desk(rules, replace(HERE, quotas=quotas))
    review = desk.answer(user_pod())
    placed = desk.place(user_pod())
    users = {"weight": 100, "podAffinityTerm": {**term, "labelSelector": {"matchLabels": USERS}}}
    builds = {"weight": 3, "podAffinityTerm": {**term, "labelSelector": {"matchLabels": BUILDS}}}
    assert (pod_terms(placed, "podAffinity"), pod_terms(placed, "podAntiAffinity")) == ([users], [builds])
    assert any(why in warning for warning in review["warnings"])
    elsewhere = replace(HERE, quotas={"another": GUARD, NAMESPACE: frozenset({"NotBestEffort"})})
    assert "namespaceSelector" in str(place(user_pod(), elsewhere, rules))


def test_of_a_class_in_other_namespaces_the_shared_ones_count() -> None:
    elsewhere = {"match": {"labels": USERS, "namespaceSelector": {"matchLabels": {"team": "a"}}}}
    rules = settings(sharedNamespaces=SHARED, podClasses={"user": elsewhere})
    known = replace(HERE, namespaces={"of-ada": {"team": "a"}})
    (term,) = pod_terms(Desk(rules, known).place(user_pod(), "of-ada"), "podAffinity")
    assert term["podAffinityTerm"]["namespaceSelector"] == SHARED
    assert term["podAffinityTerm"]["namespaces"] == [NAMESPACE]
