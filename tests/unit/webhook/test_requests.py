"""Requests for pods that have none, DaemonSets included."""

import copy
from dataclasses import replace

import pytest

from tests.builders import (
    NAMESPACE,
    Desk,
    Object,
    build_pod,
    expression,
    patch_of,
    place,
    requires_nodes,
    settings,
    user_pod,
)
from tests.unit.webhook.small_hub import FIVE

STORAGE = {"podClasses": {"build": {"resources": {"ephemeral-storage": "1Gi"}}}}


LIMITED, BELOW = {"limits": {"memory": "512Mi"}}, {"limits": {"cpu": "1m", "memory": "1Mi"}}
DEFAULTS = {"cpu": "100m", "memory": "1Gi"}


@pytest.mark.parametrize(
    ("own", "whole", "expected"),
    [
        (None, None, {"requests": DEFAULTS}),
        ({}, None, {"requests": DEFAULTS}),
        ({"requests": {}, "limits": {}}, None, {"requests": DEFAULTS, "limits": {}}),
        ({"requests": {"cpu": "1"}}, None, {"requests": {"cpu": "1"}}),
        # What is limited and not requested is requested at its limit by Kubernetes itself.
        (LIMITED, None, {**LIMITED, "requests": {"cpu": "100m"}}),
        (BELOW, None, BELOW),
        ({}, {"requests": {"memory": "512Mi"}}, {}),
    ],
)
def test_a_container_gets_the_classs_requests_or_none(
    own: Object | None, whole: Object | None, expected: Object
) -> None:
    for container in ({"resources": own}, *([{}] if own is None else [])):
        body = build_pod(containers=[{"name": "builder", "image": "a", **container}], resources=whole)
        assert place(body, FIVE)["spec"]["containers"][0]["resources"] == expected


def test_a_pod_of_which_any_container_asks_for_something_is_left_so() -> None:
    containers = [
        {"name": "builder", "image": "a"},
        {"name": "helper", "image": "b", "resources": {"requests": {"cpu": "1"}}},
    ]
    for ordered in (containers, containers[::-1]):
        assert place(build_pod(containers=ordered), FIVE)["spec"]["containers"] == ordered


@pytest.mark.parametrize(
    ("known", "values", "priority", "is_given"),
    [
        ({"quotas": {NAMESPACE: {"NotBestEffort"}}}, {}, 0, False),
        ({"quotas": {"another": {"NotBestEffort"}, NAMESPACE: {"CrossNamespacePodAffinity"}}}, {}, 0, True),
        ({"quotas": {NAMESPACE: {"requests.ephemeral-storage"}}}, {}, 0, True),
        ({"quotas": {NAMESPACE: {"requests.ephemeral-storage"}}}, STORAGE, 0, False),
        ({"quotas": {NAMESPACE: {"ephemeral-storage"}}}, STORAGE, 0, False),
        ({"quotas": None}, {}, 0, False),
        # The lowest priority that others' pods can have.
        ({"lowest_priority": -3}, {}, 0, False),
        ({"lowest_priority": -3}, {}, -3, True),
        ({}, {}, 5, False),
    ],
)
def test_no_request_is_given_that_could_harm_a_pod(
    known: Object, values: Object, priority: int, *, is_given: bool
) -> None:
    desk = Desk(settings(**values), replace(FIVE, **known))
    placed = desk.place(build_pod(priority=priority))
    assert bool(placed["spec"]["containers"][0]["resources"]) is is_given
    assert desk.decisions[0].audit.get("requests", "").startswith("none given") is not is_given
    desk.place(build_pod(priority=priority, preemptionPolicy="Never"))
    assert bool(desk.decisions[1].audit.get("requests")) is ("quotas" in known and not is_given)


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
    desk = Desk(
        settings(podClasses=BUILDERS),
        replace(FIVE, lowest_priority=-3, quotas={NAMESPACE: frozenset({"NotBestEffort"})}),
    )
    assert desk.place(daemon()) == daemon()


def test_roosts_own_daemon_sets_get_no_requests() -> None:
    own = {"app.kubernetes.io/part-of": "roost", "app.kubernetes.io/component": "image-puller"}
    desk = Desk(settings(podClasses=BUILDERS), known=FIVE)
    assert patch_of(desk.answer(daemon(**own))) == []
    assert desk.decisions[0].reason == "own-pod"
