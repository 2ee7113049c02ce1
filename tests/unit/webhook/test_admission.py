"""Which pods are left alone and why, and what audit log and annotations say of the others."""

import pytest

from roost_core.placement.labels import OPT_OUT_ANNOTATION, POLICY_REVISION_ANNOTATION
from tests.builders import (
    NAMESPACE,
    Desk,
    Object,
    build_pod,
    expression,
    patch_of,
    place,
    placeholder_pod,
    requires_nodes,
    settings,
    user_pod,
)
from tests.unit.webhook.small_hub import FIVE, HERE, RING


def untouched(body: Object, namespace: str = NAMESPACE, **request: object) -> str:
    desk = Desk(known=FIVE)
    response = desk.answer(body, namespace, **request)
    assert patch_of(response) == []
    return desk.decisions[0].reason or str(desk.decisions[0].result)


def test_who_is_left_alone_and_why() -> None:
    opted_out, mirror, bound, daemon, own = (user_pod() for _ in range(5))
    opted_out["metadata"]["annotations"] = {OPT_OUT_ANNOTATION: "true"}
    mirror["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "hash"}
    bound["spec"]["nodeName"] = "n1"
    daemon["metadata"]["ownerReferences"] = [{"kind": "DaemonSet", "controller": True, "name": "x"}]
    own["metadata"]["labels"] |= {"app.kubernetes.io/part-of": "roost", "app.kubernetes.io/component": "webhook"}
    bodies = (opted_out, mirror, bound, daemon, own)
    assert list(map(untouched, bodies)) == ["opt-out", "mirror-pod", "node-name", "daemon-set", "own-pod"]


def test_a_user_whom_the_hub_binds_to_a_node_by_its_name_is_a_user() -> None:
    pinned = user_pod(affinity=requires_nodes({"matchFields": [expression("metadata.name", "n1")]}))
    assert place(pinned)["spec"]["schedulerName"] == "hub.jhub.user"


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
