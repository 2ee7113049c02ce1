"""`roost doctor` knows how an install was made, what was cut off, and who else places its pods."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any, Final

import pytest

from roost.doctor.checks import INSTALLED, run_checks
from roost_core.kube.client import ApiError
from tests.unit.doctor.whole_cluster import APPS, LEASES, WEBHOOK, WEBHOOKS, Cluster, ago, found

DEPLOYMENT: Final = f"{APPS}/deployments/hub-roost-webhook"
SECRETS: Final = "/api/v1/namespaces/jhub/secrets"
NAMESPACES: Final = "/api/v1/namespaces"


@pytest.mark.parametrize(
    ("managers", "fix"),
    [
        (
            [("helm", "Apply"), ("kubectl-edit", "Update")],
            "`helm upgrade hub CHART --namespace jhub -f VALUES --force-conflicts`.",
        ),
        ([("helm", "Update")], "`helm upgrade hub CHART --namespace jhub -f VALUES`."),
        (
            [("kubectl", "Apply")],
            "--namespace jhub | kubectl apply --server-side --force-conflicts -f -`.",
        ),
        (
            [("kubectl-client-side-apply", "Update")],
            "`roost render -f VALUES --release hub --namespace jhub | kubectl apply -f -`.",
        ),
        ([("argocd-controller", "Apply")], "let Argo CD apply it again"),
        ([("helm-controller", "Update"), ("helm", "Apply")], "let Flux apply it again"),
        ([("somebody", "Update")], "apply it again."),
    ],
)
def test_the_fix_of_a_difference_is_the_command_of_the_way_of_install(
    managers: list[tuple[str, str]], fix: str
) -> None:
    cluster = Cluster()
    live = cluster.objects[DEPLOYMENT]
    live["metadata"]["managedFields"] = [
        {"manager": manager, "operation": operation, "fieldsV1": {}}
        for manager, operation in managers
    ]
    live["spec"]["template"]["spec"]["serviceAccountName"] = "other"
    cluster.tells("objects", "error", "1 object not as the values render", fix=fix)


@pytest.mark.parametrize(
    ("status", "fix"),
    [
        ("pending-install", "helm uninstall hub --namespace jhub"),
        ("pending-upgrade", "helm rollback hub --namespace jhub"),
        ("pending-rollback", "helm rollback hub --namespace jhub"),
    ],
)
def test_a_change_of_helms_that_was_cut_off_is_told(status: str, fix: str) -> None:
    cluster = Cluster()
    cluster.lists[SECRETS] = [{"metadata": {"labels": {"status": status, "version": "4"}}}]
    cluster.tells("releases", "error", f"revision 4 of release hub is {status}", fix=fix)


def test_who_may_not_list_secrets_is_told_nothing_of_helm() -> None:
    cluster = Cluster()
    cluster.refused = {SECRETS}
    assert cluster.said("releases") == []


def _other_release(cluster: Cluster) -> dict[str, Any]:
    """Another release's webhook, which the cluster has, too."""
    other: dict[str, Any] = copy.deepcopy(cluster.objects[WEBHOOK])
    other["metadata"]["name"] = "second.jhub.roost-webhook"
    other["metadata"]["labels"]["app.kubernetes.io/instance"] = "second"
    cluster.lists[WEBHOOKS] = [other]
    cluster.lists[NAMESPACES] = [{"metadata": {"name": "jhub"}}, {"metadata": {"name": "lab"}}]
    return other


def test_two_releases_that_change_the_same_pods_are_told() -> None:
    cluster = Cluster()
    _other_release(cluster)
    cluster.tells("releases", "error", "second.jhub.roost-webhook", "in namespace jhub", fix="one")


def test_two_releases_for_two_hubs_are_well() -> None:
    cluster = Cluster()
    other = _other_release(cluster)
    for entry in other["webhooks"]:
        entry["namespaceSelector"] = {"matchLabels": {"kubernetes.io/metadata.name": "lab"}}
    assert cluster.said("releases") == []
    # Somebody else's webhook for the same pods is no release of Roost.
    other = _other_release(cluster)
    other["metadata"]["labels"] = {"app.kubernetes.io/part-of": "istio"}
    assert cluster.said("releases") == []


def test_the_scheduler_of_another_release_isnt_to_be_replaced() -> None:
    cluster = Cluster()
    other = _other_release(cluster)
    for entry in other["webhooks"]:
        entry["namespaceSelector"] = {"matchLabels": {"kubernetes.io/metadata.name": "lab"}}
        entry["clientConfig"]["service"] = {"name": "second-roost-webhook", "namespace": "lab"}
    cluster.scheduler = "second.lab.user"
    told = found(run_checks(cluster.install, INSTALLED), "users")
    waits = {
        "metadata": {"name": "u", "creationTimestamp": ago(600)},
        "spec": {"schedulerName": "second.lab.user"},
        "status": {"phase": "Pending"},
    }
    cluster.lists["/api/v1/namespaces/jhub/pods"] = [waits]
    told += found(run_checks(replace(cluster.install), INSTALLED), "waiting")
    assert told
    assert not any("replaceSchedulers: [" in finding.fix for finding in told)


def test_a_changed_priority_class_is_to_be_deleted_first(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster()
    real = cluster.try_apply

    def refuse(path: str, body: Any, manager: str, /) -> Any:
        if body["kind"] == "PriorityClass":
            raise ApiError(422, "Invalid: value: may not be changed in an update.")
        return real(path, body, manager)

    monkeypatch.setattr(cluster, "try_apply", refuse)
    cluster.tells(
        "objects",
        "error",
        "A PriorityClass has another value than the values say",
        fix="`kubectl delete priorityclass hub.jhub.roost-",
    )


def test_ages_are_by_the_api_servers_clock() -> None:
    cluster = Cluster()
    # This machine's clock is ten minutes ahead.
    cluster.ahead_seconds = -600.0
    lease = cluster.objects[f"{LEASES}/hub-roost-scheduler"]
    lease["spec"]["renewTime"] = ago(602)
    cluster.objects[f"{LEASES}/hub-roost-controllers"]["spec"]["renewTime"] = ago(602)
    assert cluster.said("leaders") == []
    lease["spec"]["renewTime"] = ago(600 + 300)
    # A slow machine may take some seconds. By this machine's clock, it would be 900 s.
    cluster.tells("leaders", "error", "was renewed 30")
