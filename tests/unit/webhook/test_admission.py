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
    own["metadata"]["labels"] = {"component": "hub"}
    assert untouched(own) == untouched(user_pod(), namespace="another-hub") == "unmatched"


def test_who_is_placed_all_the_same_and_names_the_revision_of_its_rules() -> None:
    gates = [{"name": "example.org/wait"}]
    pinned = user_pod(
        affinity=requires_nodes({"matchFields": [expression("metadata.name", "n1")]}), schedulingGates=gates
    )
    pinned["metadata"]["annotations"] = {OPT_OUT_ANNOTATION: "false"}
    placed = place(pinned, HERE)
    assert (placed["spec"]["schedulerName"], placed["spec"]["schedulingGates"]) == ("hub.jhub.user", gates)
    for body in (pinned, build_pod(), placeholder_pod()):
        assert place(body, FIVE)["metadata"]["annotations"][POLICY_REVISION_ANNOTATION] == "revision0001"


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


def test_audit_annotations_say_what_was_done() -> None:
    response = Desk(known=FIVE).answer(build_pod())
    assert response["auditAnnotations"] == {
        "class": "build",
        "policy-revision": "revision0001",
        "home": f"{', '.join(RING[:3])} of 5",
    }
    assert Desk(known=HERE).answer(user_pod())["auditAnnotations"]["gate"] == "required 1"


def test_new_rules_hold_from_the_next_review_on() -> None:
    desk = Desk(known=HERE)
    assert desk.place(user_pod())["spec"]["schedulerName"] == "hub.jhub.user"
    desk.rules = settings(podClasses={"user": {"profile": "other"}})
    assert desk.place(user_pod())["spec"]["schedulerName"] == "hub.jhub.other"
