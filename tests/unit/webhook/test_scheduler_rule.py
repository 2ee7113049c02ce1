"""Which scheduler a pod gets, and when it keeps the one it has."""

from dataclasses import replace
from typing import Any

import pytest

from roost_core.placement.lease_state import LeaseState
from roost_core.release.settings import SCHEDULER
from tests.builders import Desk, patched, required_terms, settings, user_pod
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
def test_a_scheduler_that_is_there_or_whose_lease_is_not_watched_is_named(known: Any, name: str, left: str) -> None:
    desk = Desk(known=replace(HERE, **known))
    # Only both fields of a priority together could change: the API server resolves one into the other before webhooks.
    spec = desk.place(user_pod(priority=0, priorityClassName="some-class"))["spec"]
    assert (spec["schedulerName"], spec["priority"], spec["priorityClassName"]) == (name, 0, "some-class")
    assert [decision.left_to_cluster for decision in desk.decisions] == [left]


def test_a_pod_of_another_scheduler_was_not_left_to_the_cluster() -> None:
    desk = Desk(known=replace(HERE, leases={SCHEDULER: LeaseState.STALE}))
    for own in ("my-scheduler", "hub.jhub.user"):
        assert desk.place(user_pod(schedulerName=own))["spec"]["schedulerName"] == own
    assert [decision.left_to_cluster for decision in desk.decisions] == ["", ""]


@pytest.mark.parametrize(
    ("own", "changes", "expected"),
    [
        ("default-scheduler", {}, "hub.jhub.user"),
        ("", {}, "hub.jhub.user"),
        (None, {}, "hub.jhub.user"),
        ("hub.jhub.user", {}, "hub.jhub.user"),
        ("hub-user-scheduler", {}, "hub-user-scheduler"),
        ("hub-user-scheduler", {"replaceSchedulers": ["hub-user-scheduler"]}, "hub.jhub.user"),
        ("default-scheduler", {"schedulerTarget": "none"}, "default-scheduler"),
        ("default-scheduler", {"podClasses": {"user": {"profile": ""}}}, "default-scheduler"),
    ],
)
def test_a_pod_gets_its_classs_profile_unless_it_or_the_values_name_another_scheduler(
    own: str | None, changes: dict[str, object], expected: str
) -> None:
    response = Desk(settings(**changes), HERE).answer(body := user_pod(schedulerName=own))
    placed = patched(body, response)
    assert placed["spec"]["schedulerName"] == expected
    assert own != "hub.jhub.user" or "scheduler" not in response["auditAnnotations"]
    # The other rules hold in any case.
    assert required_terms(placed) == [{"matchExpressions": [KEEPS_OFF]}]
