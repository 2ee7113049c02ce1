"""Which pods are left alone and why; scheduler and requests of the others; what audit log and
annotations say.
"""

import copy
from dataclasses import replace
from typing import Any

import pytest

from roost_core.objects.fields import JSONObject
from roost_core.objects.pod import PREFERRED
from roost_core.placement.labels import OPT_OUT_ANNOTATION, POLICY_REVISION_ANNOTATION
from roost_core.placement.lease_state import LeaseState
from roost_core.release.release_settings import SCHEDULER
from tests.builders import (
    NAMESPACE,
    Desk,
    build_pod,
    expression,
    patch_of,
    patched,
    place,
    placeholder_pod,
    required_terms,
    requires_nodes,
    settings,
    spread_term,
    user_pod,
)
from tests.recorded_data import rows
from tests.unit.webhook.small_hub import FIVE, HERE, KEEPS_OFF, RING


def untouched(body: JSONObject, namespace: str = NAMESPACE, **request: object) -> str:
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
    own["metadata"]["labels"] |= {
        "app.kubernetes.io/part-of": "roost",
        "app.kubernetes.io/component": "webhook",
    }
    bodies = (opted_out, mirror, bound, daemon, own)
    assert list(map(untouched, bodies)) == [
        "opt-out",
        "mirror-pod",
        "node-name",
        "daemon-set",
        "own-pod",
    ]
    own["metadata"]["labels"] = {"component": "hub"}
    assert untouched(own) == untouched(user_pod(), namespace="another-hub") == "unmatched"


def test_who_is_placed_all_the_same_and_names_the_revision_of_its_rules() -> None:
    gates = [{"name": "example.org/wait"}]
    pinned = user_pod(
        affinity=requires_nodes({"matchFields": [expression("metadata.name", "n1")]}),
        schedulingGates=gates,
    )
    pinned["metadata"]["annotations"] = {OPT_OUT_ANNOTATION: "false"}
    placed = place(pinned, HERE)
    assert (placed["spec"]["schedulerName"], placed["spec"]["schedulingGates"]) == (
        "hub.jhub.user",
        gates,
    )
    for body in (pinned, build_pod(), placeholder_pod()):
        assert (
            place(body, FIVE)["metadata"]["annotations"][POLICY_REVISION_ANNOTATION]
            == "revision0001"
        )


@pytest.mark.parametrize("request_change", rows("webhook/other-requests"))
def test_what_isnt_the_creation_of_a_pod_is_left_alone(request_change: JSONObject) -> None:
    assert untouched(user_pod(), **request_change) == "ignored"


def test_audit_annotations_say_what_was_done() -> None:
    response = Desk(known=FIVE).answer(build_pod())
    home = f"{', '.join(RING[:3])} of 5"
    assert response["auditAnnotations"] == {
        "class": "build",
        "policy-revision": "revision0001",
        "home": home,
    }
    assert Desk(known=HERE).answer(user_pod())["auditAnnotations"]["gate"] == "required 1"


def test_new_rules_hold_from_the_next_review_on() -> None:
    desk = Desk(known=HERE)
    assert desk.place(user_pod())["spec"]["schedulerName"] == "hub.jhub.user"
    desk.rules = settings(podClasses={"user": {"profile": "other"}})
    assert desk.place(user_pod())["spec"]["schedulerName"] == "hub.jhub.other"


@pytest.mark.parametrize(
    ("strategy", "name"), [("pack", "hub.jhub.user_strict"), ("imageFirst", "hub.jhub.user")]
)
@pytest.mark.parametrize("spec", rows("webhook/own-terms"))
def test_an_authors_terms_about_pods_decide_before_packing(
    spec: JSONObject, strategy: str, name: str
) -> None:
    desk = Desk(settings(scheduler={"profiles": {"user": {"strategy": strategy}}}), HERE)
    placed, usual = desk.place(user_pod(**spec)), desk.place(user_pod())
    assert (placed["spec"]["schedulerName"], usual["spec"]["schedulerName"]) == (
        name,
        "hub.jhub.user",
    )
    # Roost's own terms are none of the author's, also when the pod comes again.
    for body in (placed, usual):
        response = desk.answer(body)
        assert (patched(body, response), "scheduler" in response["auditAnnotations"]) == (
            body,
            False,
        )


def test_binderhubs_spreading_which_gives_way_to_homes_is_none_of_an_authors_terms() -> None:
    packing = {name: {"strategy": "pack"} for name in ("user", "build")}
    desk, own = (
        Desk(settings(scheduler={"profiles": packing}), FIVE),
        {**spread_term(), "weight": 50},
    )
    for body, name in (
        (build_pod(affinity={"podAntiAffinity": {PREFERRED: [spread_term()]}}), "build"),
        (
            build_pod(affinity={"podAntiAffinity": {PREFERRED: [spread_term(), own]}}),
            "build_strict",
        ),
        # Here it stays.
        (user_pod(affinity={"podAntiAffinity": {PREFERRED: [spread_term()]}}), "user_strict"),
    ):
        assert desk.place(body)["spec"]["schedulerName"] == f"hub.jhub.{name}"


@pytest.mark.parametrize("state", [LeaseState.STALE, LeaseState.NEVER_HELD, LeaseState.UNKNOWN])
@pytest.mark.parametrize("own", ["default-scheduler", "", "hub-user-scheduler"])
def test_while_roosts_scheduler_is_away_pods_keep_the_one_that_they_have(
    own: str, state: LeaseState
) -> None:
    desk = Desk(
        settings(replaceSchedulers=["hub-user-scheduler"]), replace(HERE, leases={SCHEDULER: state})
    )
    body = user_pod(schedulerName=own)
    response = desk.answer(body)
    placed = patched(body, response)
    assert placed["spec"]["schedulerName"] == own
    # All else is as ever.
    assert required_terms(placed) == [{"matchExpressions": [KEEPS_OFF]}]
    assert "Roost's" in response["auditAnnotations"]["scheduler"]
    assert any("schedulerName" in warning for warning in response["warnings"])
    assert [decision.left_to_cluster for decision in desk.decisions] == [state.value]


@pytest.mark.parametrize(
    ("known", "name", "left"),
    [
        ({"leases": {SCHEDULER: LeaseState.HELD}}, "hub.jhub.user", ""),
        ({"leases": {}}, "hub.jhub.user", ""),
        # It was asked for other profiles.
        (
            {"leases": {SCHEDULER: LeaseState.HELD}, "scheduler_host": "hub-roost-scheduler-old"},
            "default-scheduler",
            "outdated",
        ),
    ],
)
def test_a_scheduler_that_is_there_or_whose_lease_is_not_watched_is_named(
    known: Any, name: str, left: str
) -> None:
    desk = Desk(known=replace(HERE, **known))
    # Only both fields of a priority together could change: the API server resolves one into the
    # other before webhooks.
    spec = desk.place(user_pod(priority=0, priorityClassName="some-class"))["spec"]
    assert (spec["schedulerName"], spec["priority"], spec["priorityClassName"]) == (
        name,
        0,
        "some-class",
    )
    assert [decision.left_to_cluster for decision in desk.decisions] == [left]


def test_a_pod_of_another_scheduler_was_not_left_to_the_cluster() -> None:
    desk = Desk(known=replace(HERE, leases={SCHEDULER: LeaseState.STALE}))
    for own in ("my-scheduler", "hub.jhub.user"):
        assert desk.place(user_pod(schedulerName=own))["spec"]["schedulerName"] == own
    assert [decision.left_to_cluster for decision in desk.decisions] == ["", ""]


@pytest.mark.parametrize(("own", "changes", "expected"), rows("webhook/scheduler-names"))
def test_a_pod_gets_its_classs_profile_as_values_say(
    own: str | None, changes: dict[str, object], expected: str
) -> None:
    response = Desk(settings(**changes), HERE).answer(body := user_pod(schedulerName=own))
    placed = patched(body, response)
    assert placed["spec"]["schedulerName"] == expected
    assert own != "hub.jhub.user" or "scheduler" not in response["auditAnnotations"]
    # The other rules hold in any case.
    assert required_terms(placed) == [{"matchExpressions": [KEEPS_OFF]}]


@pytest.mark.parametrize(("own", "whole", "expected"), rows("webhook/given-requests"))
def test_a_container_gets_the_classs_requests_or_none(
    own: JSONObject | None, whole: JSONObject | None, expected: JSONObject
) -> None:
    for container in ({"resources": own}, *([{}] if own is None else [])):
        body = build_pod(
            containers=[{"name": "builder", "image": "a", **container}], resources=whole
        )
        assert place(body, FIVE)["spec"]["containers"][0]["resources"] == expected


def test_a_pod_of_which_any_container_asks_for_something_is_left_so() -> None:
    helper = {"name": "helper", "image": "b", "resources": {"requests": {"cpu": "1"}}}
    containers = [{"name": "builder", "image": "a"}, helper]
    for ordered in (containers, containers[::-1]):
        assert place(build_pod(containers=ordered), FIVE)["spec"]["containers"] == ordered


@pytest.mark.parametrize(
    ("known", "values", "priority", "is_given"), rows("webhook/harmful-requests")
)
def test_no_request_is_given_that_could_harm_a_pod(
    known: JSONObject, values: JSONObject, priority: int, *, is_given: bool
) -> None:
    quotas = known.get("quotas", {})
    if quotas:
        known = {
            **known,
            "quotas": {namespace: frozenset(scopes) for namespace, scopes in quotas.items()},
        }
    desk = Desk(settings(**values), replace(FIVE, **known))
    placed = desk.place(build_pod(priority=priority))
    assert bool(placed["spec"]["containers"][0]["resources"]) is is_given
    assert desk.decisions[0].audit.get("requests", "").startswith("none given") is not is_given
    desk.place(build_pod(priority=priority, preemptionPolicy="Never"))
    assert bool(desk.decisions[1].audit.get("requests")) is ("quotas" in known and not is_given)


BUILDERS = {
    "builder": {
        "match": {"labels": {"component": "image-builder"}},
        "profile": "",
        "resources": {"cpu": "2"},
    },
    "user": {"resources": {"cpu": "100m"}},
}


def daemon(**labels: str) -> JSONObject:
    body = user_pod(affinity=requires_nodes({"matchFields": [expression("metadata.name", "n1")]}))
    body["metadata"] |= {
        "ownerReferences": [{"kind": "DaemonSet", "controller": True, "name": "x"}]
    }
    body["metadata"]["labels"] |= labels
    body["spec"]["containers"][0]["resources"] = {}
    return body


def test_a_daemon_sets_pod_gets_its_classs_requests_and_nothing_else() -> None:
    desk = Desk(settings(podClasses=BUILDERS), known=FIVE)
    for body in (daemon(), daemon(component="image-builder")):
        placed = desk.place(body)
        requests = (
            {"cpu": "2"}
            if body["metadata"]["labels"]["component"] == "image-builder"
            else {"cpu": "100m"}
        )
        changed = copy.deepcopy(body)
        changed["spec"]["containers"][0]["resources"] = {"requests": requests}
        assert placed == changed
    assert [decision.result for decision in desk.decisions] == ["patched", "patched"]
    desk.place(placed)
    assert desk.decisions[-1][:3] == ("skipped", "builder", "daemon-set")
    quotas = {NAMESPACE: frozenset({"NotBestEffort"})}
    desk = Desk(settings(podClasses=BUILDERS), replace(FIVE, lowest_priority=-3, quotas=quotas))
    assert desk.place(daemon()) == daemon()


def test_roosts_own_daemon_sets_get_no_requests() -> None:
    own = {"app.kubernetes.io/part-of": "roost", "app.kubernetes.io/component": "image-puller"}
    desk = Desk(settings(podClasses=BUILDERS), known=FIVE)
    assert patch_of(desk.answer(daemon(**own))) == []
    assert desk.decisions[0].reason == "own-pod"
