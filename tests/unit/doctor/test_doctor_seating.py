"""`roost doctor` says why seating starts nobody."""

from __future__ import annotations

import pytest

from roost.doctor.cause_tree import group_by_cause
from roost.doctor.checks import INSTALLED, run_checks
from roost_core.kube.client import ApiError
from tests.unit.doctor.whole_cluster import APPS, PODS, SECRETS, Cluster

VALUES = "{seating: {enabled: true}, events: {enabled: true}}"
KEY = "hub.services.roost-seating.apiToken"
REFUSED = (
    "GET http://hub:8081/hub/api/users: 403 Forbidden; the hub doesn't know this token, or its role"
    " lacks this right"
)


def seated(*, ready: int = 1, log: str = "") -> Cluster:
    """A release whose seating has a token."""
    cluster = Cluster(VALUES)
    cluster.objects[f"{SECRETS}/hub"] = {"data": {KEY: "YQ=="}}
    deployment = cluster.objects[f"{APPS}/deployments/hub-roost-seating"]
    deployment["status"] = {"readyReplicas": ready}
    labels = deployment["spec"]["selector"]["matchLabels"]
    cluster.lists[PODS] = [{"metadata": {"name": "s", "labels": labels}, "spec": {}}]
    cluster.texts[f"{PODS}/s/log"] = ["fine", f"WARNING nothing is started or stopped: {log}"]
    return cluster


def test_seating_that_works_and_none_are_well() -> None:
    assert seated().said("seating") == []
    assert Cluster().said("seating") == []


@pytest.mark.parametrize("data", [None, {}, {"other": "YQ=="}])
def test_a_token_that_was_withdrawn_is_told(data: dict[str, str] | None) -> None:
    cluster = seated()
    cluster.objects[f"{SECRETS}/hub"] = {"data": data}
    cluster.tells("seating", "error", f"Secret jhub/hub has no key {KEY}", fix="hub.loadRoles")


@pytest.mark.parametrize(
    ("log", "fix"), [(REFUSED, "hub.loadRoles"), ("GET http://x: no answer (refused)", "hubUrl")]
)
def test_what_the_hub_answered_is_told_and_seating_that_isnt_ready_follows(
    log: str, fix: str
) -> None:
    cluster = seated(ready=0, log=log)
    (tree,) = group_by_cause(run_checks(cluster.install, INSTALLED))
    assert (tree.check, log in tree.finding.evidence) == ("seating", True)
    assert fix in tree.finding.fix
    assert [check for check, _ in tree.consequences] == ["programs"]


def test_whoever_may_read_neither_the_secret_nor_the_log_is_told_so() -> None:
    cluster = seated(ready=0)
    cluster.texts[f"{PODS}/s/log"] = ApiError(403, "pods/log is forbidden")
    assert [finding.severity for finding in cluster.said("seating", "programs")] == ["unknown"]
