"""What `roost doctor` says of a hub that a central release serves, and of that release."""

from __future__ import annotations

import copy

import pytest

from generator.values.release import Release
from roost.doctor.checks import BEFORE, run_checks
from roost.doctor.install import path_of
from roost_core.kube.client import ApiError
from roost_core.placement.labels import CENTRAL_LABEL
from tests.unit.doctor.whole_cluster import CA_BUNDLE, LEASES, PLACED, PODS, Cluster, Object, ago, found, pod

CENTRAL_RELEASE = Release("roost", "system", "v1.37.2")
SERVES = "hubs: {serve: true}\nplaceholders: []\n"
SERVED = "hubs: {central: {release: roost, namespace: system}}\n"
CONFIGURATION = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/roost.system.roost-webhook"
RULES = "/api/v1/namespaces/jhub/configmaps/roost-hub"
OWN_RULES = "/api/v1/namespaces/system/configmaps/roost-roost-webhook"
NAMESPACES, CONFIG_MAPS = "/api/v1/namespaces", "/api/v1/configmaps"
LABELS = {CENTRAL_LABEL: "roost.system"}


def namespace(name: str, **labels: str) -> Object:
    return {"metadata": {"name": name, "labels": labels}}


def served(values: str = SERVED) -> Cluster:
    """A hub beside the central release that serves it."""
    cluster = Cluster(values)
    cluster.objects = {**Cluster(SERVES, CENTRAL_RELEASE).objects, **cluster.objects}
    cluster.objects["/api/v1/namespaces/jhub"] = namespace("jhub", **LABELS)
    return cluster


def serving(*hubs: Object, labelled: tuple[str, ...] = ("jhub",)) -> Cluster:
    """The central release, with the ConfigMaps of these hubs."""
    cluster = Cluster(SERVES, CENTRAL_RELEASE)
    home = "/namespaces/system/"
    for path, body in list(cluster.objects.items()):
        if "mutatingwebhookconfigurations" in path:
            for entry in body["webhooks"]:
                entry["clientConfig"]["caBundle"] = CA_BUNDLE
    for part in ("scheduler", "controllers"):
        lease = {"spec": {"holderIdentity": "a", "renewTime": ago(2)}}
        cluster.objects[f"{LEASES.replace('/namespaces/jhub/', home)}/roost-roost-{part}"] = lease
    for path in list(cluster.lists):
        cluster.lists[path.replace("/namespaces/jhub/", home)] = cluster.lists.pop(path)
    cluster.lists[NAMESPACES] = [
        namespace("system", **LABELS),
        namespace("other", **{CENTRAL_LABEL: "roost.elsewhere"}),
        *(namespace(name, **LABELS) for name in labelled),
    ]
    cluster.lists[CONFIG_MAPS] = list(hubs)
    return cluster


def rules(values: str = SERVED) -> Object:
    """The ConfigMap of a hub's release in jhub."""
    return copy.deepcopy(Cluster(values).objects[RULES])


def test_nothing_is_found_of_a_hub_that_is_served_nor_of_the_release_that_serves_it() -> None:
    cluster = served()
    cluster.lists[PODS] = [pod("ada", PLACED)]
    assert cluster.said("hubs") == []
    assert serving(rules()).said("hubs") == []


@pytest.mark.parametrize(
    ("labels", "evidence"),
    [
        ({}, f"has no label {CENTRAL_LABEL}=roost.system:"),
        ({CENTRAL_LABEL: "old.system"}, f"has label {CENTRAL_LABEL}=old.system, not roost.system:"),
    ],
)
def test_a_namespace_without_the_label_is_an_error_with_the_command(labels: dict[str, str], evidence: str) -> None:
    cluster = served()
    cluster.objects["/api/v1/namespaces/jhub"] = namespace("jhub", **labels)
    ((severity, seen, fix),) = cluster.said("hubs")
    assert (severity, evidence in seen) == ("error", True)
    assert fix.endswith(f"kubectl label --overwrite namespace jhub {CENTRAL_LABEL}=roost.system")


@pytest.mark.parametrize(("label", "findings"), [("users", 0), ("others", 1)])
def test_a_hub_that_its_own_shared_pool_leaves_out_is_told(label: str, findings: int) -> None:
    pool = "sharedPools: {namespaceSelector: {matchLabels: {pool: users}}}\n"
    cluster = served(SERVED + pool)
    cluster.objects["/api/v1/namespaces/jhub"] = namespace("jhub", **LABELS, pool=label)
    said = cluster.said("hubs")
    assert len(said) == findings
    assert all("doesn't select the hub's own namespace jhub" in str(one) for one in said)


def test_a_hub_whose_shared_pool_requires_no_label_is_told() -> None:
    cluster = served(SERVED + "sharedPools: {namespaceSelector: {}}\n")
    ((severity, seen, fix),) = cluster.said("hubs")
    assert (severity, "requires no label" in seen) == ("warning", True)
    assert "hub.jupyter.org/pool" in fix


def test_a_central_release_that_is_not_there_or_serves_nobody_is_an_error_before_an_install_too() -> None:
    cluster = served()
    entries = cluster.objects[CONFIGURATION]["webhooks"]
    cluster.objects[CONFIGURATION]["webhooks"] = [one for one in entries if not one["name"].startswith("hubs.")]
    ((severity, _, fix),) = cluster.said("hubs")
    assert (severity, "hubs.serve: true" in fix) == ("error", True)
    cluster.objects = {"/api/v1/namespaces/jhub": namespace("jhub", **LABELS)}
    ((severity, evidence, _),) = found(run_checks(cluster.install, BEFORE), "hubs")
    assert (severity, "roost.system.roost-webhook" in evidence) == ("error", True)


def test_rules_that_the_central_webhook_refuses_are_told_on_both_sides_with_the_reason() -> None:
    refused = rules(SERVED.replace("release: roost", "release: other"))
    cluster = served()
    cluster.objects[RULES] = refused
    for findings in (cluster.said("hubs"), serving(refused).said("hubs")):
        ((severity, evidence, _),) = findings
        assert (severity, "ConfigMap jhub/roost-hub is refused: central" in evidence) == ("error", True)
    # What cannot be read at all is a reason, too.
    refused["data"] = {"policy.json": "{"}
    assert "invalid JSON" in cluster.said("hubs")[0].evidence


def test_a_profile_that_the_central_scheduler_lacks_is_told() -> None:
    profile = "podClasses: {user: {profile: gpus}}\nscheduler: {profiles: {gpus: {strategy: pack}}}\n"
    cluster = served(SERVED + profile)
    ((severity, evidence, _),) = cluster.said("hubs")
    assert (severity, "gpus (class user)" in evidence) == ("warning", True)


def test_the_central_releases_rules_are_looked_for_by_its_full_name() -> None:
    cluster = served()
    own = cluster.objects.pop(OWN_RULES)
    ((severity, _, fix),) = cluster.said("hubs")
    assert (severity, "hubs.central.fullnameOverride" in fix) == ("error", True)
    own["data"]["policy.json"] = "[]"
    cluster.objects[OWN_RULES] = own
    ((severity, evidence, _),) = cluster.said("hubs")
    assert (severity, "system/roost-roost-webhook is refused" in evidence) == ("error", True)


def test_labelled_namespaces_without_rules_and_hubs_without_the_label_are_told() -> None:
    ((severity, evidence, fix),) = serving(rules(), labelled=("jhub", "physics")).said("hubs")
    assert (severity, evidence.endswith("created unchanged: physics.")) == ("warning", True)
    assert fix.endswith(f"kubectl label namespace physics {CENTRAL_LABEL}-")
    ((severity, evidence, _),) = serving(rules(), labelled=()).said("hubs")
    assert (severity, evidence.endswith("created unchanged: jhub.")) == ("warning", True)
    assert serving(rules(SERVED.replace("namespace: system", "namespace: far")), labelled=()).said("hubs") == []


def test_a_hubs_users_and_dry_run_pods_are_looked_at_though_its_release_has_no_webhook() -> None:
    cluster = served()
    cluster.admitted = {"annotations": {}}
    assert [finding.severity for finding in cluster.said("admission")] == ["error", "error"]
    cluster = served()
    cluster.lists[PODS] = [pod("ada")]
    assert "ada" in cluster.said("users")[0].evidence


def test_whoever_may_not_read_the_central_release_still_reads_of_the_label() -> None:
    class Narrow(Cluster):
        def find(self, path: str, /) -> Object | None:
            if path == CONFIGURATION:
                raise ApiError(403, f"GET {path}: 403 Forbidden")
            return super().find(path)

    cluster = Narrow(SERVED)
    cluster.objects["/api/v1/namespaces/jhub"] = namespace("jhub")
    assert [finding.severity for finding in cluster.said("hubs")] == ["error", "unknown"]


def test_the_central_webhooks_configuration_has_the_name_that_is_asked_for() -> None:
    assert CONFIGURATION in {path_of(body) for body in Cluster(SERVES, CENTRAL_RELEASE).install.rendered}
