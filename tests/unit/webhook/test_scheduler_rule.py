"""Which scheduler a pod gets, and when it keeps the one it has."""

from dataclasses import replace

import pytest

from roost_core.placement.lease_state import LeaseState
from roost_core.release.settings import SCHEDULER
from tests.builders import Desk, patched, place, required_terms, settings, user_pod
from tests.unit.webhook.small_hub import HERE, KEEPS_OFF


@pytest.mark.parametrize("state", [LeaseState.STALE, LeaseState.NEVER_HELD, LeaseState.UNKNOWN])
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


def test_a_leader_that_was_asked_for_other_profiles_is_not_named() -> None:
    known = replace(HERE, leases={SCHEDULER: LeaseState.HELD}, scheduler_host="hub-roost-scheduler-old")
    placed = place(user_pod(), known)
    assert placed["spec"]["schedulerName"] == "default-scheduler"


@pytest.mark.parametrize("leases", [{SCHEDULER: LeaseState.HELD}, {}])
def test_a_scheduler_that_is_there_or_whose_lease_is_not_watched_is_named(leases: dict[str, LeaseState]) -> None:
    desk = Desk(known=replace(HERE, leases=leases))
    assert desk.place(user_pod())["spec"]["schedulerName"] == "hub.jhub.user"
    assert [decision.left_to_cluster for decision in desk.decisions] == [""]


def test_a_pod_of_another_scheduler_was_not_left_to_the_cluster() -> None:
    desk = Desk(known=replace(HERE, leases={SCHEDULER: LeaseState.STALE}))
    for own in ("my-scheduler", "hub.jhub.user"):
        assert desk.place(user_pod(schedulerName=own))["spec"]["schedulerName"] == own
    assert [decision.left_to_cluster for decision in desk.decisions] == ["", ""]


def test_priority_is_left_alone() -> None:
    # Only both fields together could change: the API server resolves one into the other before webhooks.
    body = user_pod(priority=0, priorityClassName="some-class")
    placed = place(body, HERE)
    assert (placed["spec"]["priority"], placed["spec"]["priorityClassName"]) == (0, "some-class")


@pytest.mark.parametrize(
    ("own", "changes", "expected"),
    [
        ("default-scheduler", {}, "hub.jhub.user"),
        ("", {}, "hub.jhub.user"),
        (None, {}, "hub.jhub.user"),
        ("hub-user-scheduler", {}, "hub-user-scheduler"),
        ("hub-user-scheduler", {"replaceSchedulers": ["hub-user-scheduler"]}, "hub.jhub.user"),
        ("default-scheduler", {"schedulerTarget": "none"}, "default-scheduler"),
        ("default-scheduler", {"podClasses": {"user": {"profile": ""}}}, "default-scheduler"),
    ],
)
def test_a_pod_gets_its_classs_profile_unless_it_or_the_values_name_another_scheduler(
    own: str | None, changes: dict[str, object], expected: str
) -> None:
    placed = place(user_pod(schedulerName=own), HERE, settings(**changes))
    assert placed["spec"]["schedulerName"] == expected
    # The other rules hold in any case.
    assert required_terms(placed) == [{"matchExpressions": [KEEPS_OFF]}]


def test_of_a_pod_that_names_its_classs_profile_already_nothing_is_noted() -> None:
    assert "scheduler" not in Desk(settings(), HERE).answer(user_pod(schedulerName="hub.jhub.user"))["auditAnnotations"]


def test_a_pod_without_the_field_gets_its_classs_profile() -> None:
    body = user_pod()
    body["spec"].pop("schedulerName", None)
    assert place(body)["spec"]["schedulerName"] == "hub.jhub.user"
