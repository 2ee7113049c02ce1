"""Terms about other pods and about nodes: join, avoid, preferred nodes, the marked node; and
patches that apply.
"""

from dataclasses import replace
from typing import Any

import pytest

from roost_core.objects.fields import JSONObject
from roost_core.objects.pod import PREFERRED
from roost_core.placement.beliefs import FAILED_PULL
from roost_core.placement.labels import (
    HOME_TARGET_ANNOTATION,
    PLACEHOLDER_SET_LABEL,
    POLICY_REVISION_ANNOTATION,
    attract_label,
)
from roost_core.placement.lease_state import LeaseState
from roost_core.release.release_settings import SCHEDULER
from tests.builders import (
    IMAGE,
    NAMESPACE,
    RELEASE,
    Desk,
    build_pod,
    expression,
    facts,
    homes_of,
    node,
    node_terms,
    place,
    placeholder_pod,
    pod_terms,
    prefers_nodes,
    required_terms,
    requires_nodes,
    settings,
    user_pod,
)
from tests.recorded_data import rows
from tests.unit.webhook.small_hub import FIVE, HERE, KEEPS_OFF, PREFERS_HOLDER, PURPOSE, RING, pair
from webhook.facts.facts import Facts
from webhook.facts.placed_pod import FailedPull
from webhook.patch import node_rule
from webhook.rules.join_and_avoid import MOST_CLUSTER_NODES

USERS = {"component": "singleuser-server"}
BUILDS = {"component": "binderhub-build"}


SHARED = {"matchLabels": {"pool": "users"}}
GUARD = frozenset({"CrossNamespacePodAffinity"})


@pytest.mark.parametrize(
    ("who", "spec", "classes", "joins", "avoids"), rows("webhook/joins-and-avoids")
)
def test_whom_pods_join_and_avoid(
    who: str, spec: JSONObject, classes: JSONObject, joins: JSONObject, avoids: JSONObject
) -> None:
    placed = place(
        (user_pod if who == "user" else placeholder_pod)(**spec), HERE, settings(podClasses=classes)
    )
    for kind, expected in (("podAffinity", joins), ("podAntiAffinity", avoids)):
        assert pod_terms(placed, kind) == [
            pair({"component": one}, weight) for one, weight in expected.items()
        ]


def test_beside_a_node_that_fails_to_pull_the_image_users_avoid_nobody() -> None:
    """Those whom they avoid may be on the only other nodes."""
    rules = settings(podClasses={"user": {"avoid": {"placeholder": 100}}})
    failed = {IMAGE: {FailedPull("n1", IMAGE): 990.0}}
    desk = Desk(rules, replace(HERE, failed_pulls=failed))
    assert pod_terms(desk.place(user_pod(IMAGE)), "podAntiAffinity") == []
    # Users of another image, and all once it is long ago.
    placeholders = pair({"component": "user-placeholder"}, 100)
    others = desk.place(user_pod("quay.io/me/another:1"))
    assert placeholders in pod_terms(others, "podAntiAffinity")
    desk.now = 990.0 + FAILED_PULL.age_seconds
    assert placeholders in pod_terms(desk.place(user_pod(IMAGE)), "podAntiAffinity")


EACH_CLASS = [user_pod(), build_pod(), placeholder_pod()]


@pytest.mark.parametrize("body", EACH_CLASS, ids=["user", "build", "placeholder"])
def test_in_a_tie_pods_of_each_class_keep_off_builds(body: JSONObject) -> None:
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
        (HERE, {"scheduler": {"target": "none"}}, "another scheduler"),
        (HERE, {"podClasses": {"build": {"profile": ""}}}, "another scheduler"),
    ],
    ids=[
        "beside Karpenter's nodes",
        "nodes unknown",
        "scheduler away",
        "no scheduler",
        "builds by another",
    ],
)
def test_where_it_would_do_more_a_term_that_breaks_ties_is_left_out_and_a_heavier_one_stays(
    body: JSONObject, known: Facts, changes: dict[str, Any], why: str
) -> None:
    desk = Desk(settings(**changes), known)
    assert pod_terms(desk.place(body), "podAntiAffinity") == []
    assert why in desk.decisions[0].audit["avoid"]
    given = changes.get("podClasses", {})
    heavier = {
        name: {"avoid": {"placeholder": 2}, **given.get(name, {})}
        for name in ("user", "build", "placeholder")
    }
    rules = settings(**{**changes, "podClasses": heavier})
    assert pod_terms(place(body, known, rules), "podAntiAffinity") == [
        pair({"component": "user-placeholder"}, 2)
    ]


@pytest.mark.parametrize("body", EACH_CLASS, ids=["user", "build", "placeholder"])
@pytest.mark.parametrize("weight", [1, 100])
def test_with_more_nodes_than_kube_scheduler_can_count_pods_for_there_are_no_terms_about_pods(
    body: JSONObject, weight: int
) -> None:
    classes = {
        name: {"join": {"user": 100}, "avoid": {"build": weight}}
        for name in ("user", "build", "placeholder")
    }
    rules = settings(podClasses=classes)
    names = [f"n{number}" for number in range(MOST_CLUSTER_NODES + 1)]
    as_many = Desk(rules, facts(*map(node, names[1:])))
    placed = as_many.place(body)
    assert pod_terms(placed, "podAffinity") == [pair(USERS, 100)]
    assert pod_terms(placed, "podAntiAffinity") == [pair(BUILDS, weight)]
    more = Desk(rules, facts(*map(node, names)))
    own = {"affinity": {"podAffinity": {PREFERRED: [pair(BUILDS, 7)]}}}
    placed = more.place({**body, "spec": {**body["spec"], **own}})
    # What the pod's author wrote stays.
    assert pod_terms(placed, "podAffinity") == [pair(BUILDS, 7)]
    assert pod_terms(placed, "podAntiAffinity") == []
    assert f"more than {MOST_CLUSTER_NODES} nodes" in more.decisions[0].audit["join"]
    assert f"more than {MOST_CLUSTER_NODES} nodes" in more.decisions[0].audit["avoid"]


@pytest.mark.parametrize(("own", "is_equal"), rows("webhook/pair-terms"))
def test_an_equal_pair_term_is_not_doubled_whatever_its_weight_or_spelling(
    own: JSONObject, is_equal: bool
) -> None:
    placed = place(user_pod(affinity={"podAffinity": {PREFERRED: [own]}}))
    assert pod_terms(placed, "podAffinity") == [own, *([] if is_equal else [pair(USERS, 100)])]


def test_user_namespaces_are_counted_across_by_the_classs_selector() -> None:
    labels, selector = {"component": "singleuser-server"}, {"matchLabels": {"hub": "jhub"}}
    rules = settings(
        podClasses={"user": {"match": {"labels": labels, "namespaceSelector": selector}}}
    )
    known = facts(node("n1", IMAGE), namespaces={"user-ada": {"hub": "jhub"}})
    placed = Desk(rules, known).place(user_pod(), namespace="user-ada")
    assert pod_terms(placed, "podAffinity") == [pair(labels, 100, namespaceSelector=selector)]
    assert required_terms(placed) == [{"matchExpressions": [KEEPS_OFF]}]


def test_from_another_namespace_a_class_of_the_releases_own_is_named_by_it() -> None:
    match = {"labels": {"component": "user-placeholder"}, "namespaceSelector": {}}
    rules = settings(
        podClasses={"placeholder": {"match": match, "avoid": {"user": 2, "build": None}}}
    )
    placed = Desk(rules).place(placeholder_pod(), namespace="placeholders")
    assert pod_terms(placed, "podAntiAffinity") == [
        pair({"component": "singleuser-server"}, 2, namespaces=[NAMESPACE])
    ]


def test_an_equal_preferred_node_term_is_not_doubled_whatever_its_weight() -> None:
    own = {**PURPOSE, "weight": 3}
    assert node_terms(place(user_pod(affinity=prefers_nodes(own)), HERE)) == [own, PREFERS_HOLDER]
    assert node_terms(place(user_pod(), HERE)) == [PREFERS_HOLDER, PURPOSE]


def attraction(name: str) -> JSONObject:
    key = attract_label(RELEASE, NAMESPACE, name)
    return {"weight": 100, "preference": {"matchExpressions": [{"key": key, "operator": "Exists"}]}}


def test_a_placeholder_is_drawn_to_the_node_marked_for_its_set() -> None:
    marked = [attraction(name) for name in ("gpu", "default")]
    assert [
        term
        for term in node_terms(place(placeholder_pod({PLACEHOLDER_SET_LABEL: "gpu"})))
        if term in marked
    ] == [attraction("gpu")]
    assert [term for term in node_terms(place(placeholder_pod())) if term in marked] == [
        attraction("default")
    ]
    unnamed = place(placeholder_pod(), rules=settings(placeholders=None))
    assert "attract-placeholders" not in str(unnamed)


@pytest.mark.parametrize(
    ("quotas", "why"),
    [
        ({}, ""),
        ({"another": GUARD, NAMESPACE: frozenset({"NotBestEffort"})}, ""),
        ({NAMESPACE: GUARD}, "CrossNamespacePodAffinity"),
        (None, "can't be read"),
    ],
)
def test_where_hubs_share_pools_the_pods_of_all_count_in_each_pair_unless_a_quota_could_forbid_it(
    quotas: dict[str, frozenset[str]] | None, why: str
) -> None:
    desk = Desk(
        settings(
            sharedPools={"namespaceSelector": SHARED}, podClasses={"user": {"avoid": {"build": 3}}}
        ),
        replace(HERE, quotas=quotas),
    )
    more: JSONObject = {} if why else {"namespaces": [NAMESPACE], "namespaceSelector": SHARED}
    placed = desk.place(user_pod())
    assert pod_terms(placed, "podAffinity") == [pair(USERS, 100, **more)]
    assert pod_terms(placed, "podAntiAffinity") == [pair(BUILDS, 3, **more)]
    assert any(why in warning for warning in desk.answer(user_pod()).get("warnings", [])) is bool(
        why
    )
    # Twice is once.
    assert desk.place(placed) == placed


def test_of_a_class_in_other_namespaces_the_shared_ones_count() -> None:
    elsewhere = {"match": {"labels": USERS, "namespaceSelector": {"matchLabels": {"team": "a"}}}}
    rules = settings(sharedPools={"namespaceSelector": SHARED}, podClasses={"user": elsewhere})
    known = replace(HERE, namespaces={"of-ada": {"team": "a"}})
    (term,) = pod_terms(Desk(rules, known).place(user_pod(), "of-ada"), "podAffinity")
    assert term["podAffinityTerm"]["namespaceSelector"] == SHARED
    assert term["podAffinityTerm"]["namespaces"] == [NAMESPACE]


@pytest.mark.parametrize("affinity", rows("webhook/parents"))
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


def annotated(room_bytes: int, more: dict[str, str] | None = None) -> JSONObject:
    """A build whose annotations leave so much room."""
    body = build_pod()
    more = {**body["metadata"]["annotations"], **(more or {})}
    # Of two bytes a letter.
    used_bytes = sum(len(key) + len(value) for key, value in more.items()) + len("notes1")
    left_bytes = 256 * 1024 - used_bytes - room_bytes
    body["metadata"]["annotations"] = {
        "notes": "é" * (left_bytes // 2) + "1" + "x" * (left_bytes % 2),
        **more,
    }
    return body


def test_annotations_for_which_a_pod_has_no_room_are_left_out_with_a_warning() -> None:
    revision = settings().revision
    need = len(POLICY_REVISION_ANNOTATION) + len(revision)
    for room_bytes, fitting in (
        (0, set()),
        (need - 1, {HOME_TARGET_ANNOTATION}),
        (need, {POLICY_REVISION_ANNOTATION}),
    ):
        body, desk = annotated(room_bytes), Desk(known=FIVE)
        placed = desk.place(body)
        found = placed["metadata"]["annotations"]
        assert found.keys() - body["metadata"]["annotations"].keys() == fitting
        assert sum(len(f"{key}{value}".encode()) for key, value in found.items()) <= 256 * 1024
        assert homes_of(placed)[0][1] == RING[0]
        (warning,) = desk.answer(body)["warnings"]
        assert [key in warning for key in (POLICY_REVISION_ANNOTATION, HOME_TARGET_ANNOTATION)] == [
            key not in fitting for key in (POLICY_REVISION_ANNOTATION, HOME_TARGET_ANNOTATION)
        ]


def test_an_older_annotation_makes_room_for_one_of_its_length_but_not_for_a_longer_one() -> None:
    revision, home = settings().revision, RING[0]
    # A pod that is over the limit already may have an annotation replaced by one of the same
    # length.
    for room, old, new in (
        (0, "x" * len(home), home),
        (-2, "x" * len(home), home),
        (0, "x" * (len(home) - 1), ""),
    ):
        body = annotated(room, {POLICY_REVISION_ANNOTATION: "x" * 12, HOME_TARGET_ANNOTATION: old})
        found = place(body, FIVE)["metadata"]["annotations"]
        assert found[HOME_TARGET_ANNOTATION] == (new or old)
        assert new == "" or found[POLICY_REVISION_ANNOTATION] == revision


def test_a_required_affinity_that_is_invalid_by_itself_stays_so() -> None:
    # It is the API server's to refuse; to mend it would place a pod where its author never said.
    assert required_terms(place(user_pod(affinity=requires_nodes()), HERE)) == []


def test_node_terms_are_the_same_rule_whatever_their_order() -> None:
    first, second = (expression("metadata.name", name, operator="NotIn") for name in ("n1", "n2"))
    assert node_rule({"matchFields": [first, second]}) == node_rule(
        {"matchFields": [second, first]}
    )
    assert node_rule({"matchFields": [first]}) != node_rule({"matchFields": [second]})
    one = {"matchExpressions": [expression("zone", "a", "b"), expression("pool", "x")]}
    other = {
        "matchExpressions": [expression("pool", "x"), expression("zone", "b", "a")],
        "matchFields": [],
    }
    assert node_rule(one) == node_rule(other)
    assert node_rule(one) != node_rule({"matchFields": one["matchExpressions"]})
