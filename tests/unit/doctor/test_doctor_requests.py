"""What `roost doctor` says of quotas, LimitRanges and priorities of pods that get requests or rank below Roost's."""

import pytest

from roost.doctor.checks import requests, run_checks
from roost_core.kube.client import ApiError
from tests.unit.doctor.whole_cluster import LIMIT_RANGES, QUOTAS, Cluster, Object, found

ELSEWHERE = "podClasses: {build: {match: {namespaceSelector: {matchLabels: {builds: 'yes'}}}}}\n"
METADATA = {"name": "guard", "namespace": "jhub"}


def quota(*scopes: str, namespace: str = "jhub", **hard: str) -> Object:
    return {"metadata": {"name": "guard", "namespace": namespace}, "spec": {"hard": hard, "scopes": list(scopes)}}


def limit_range(kind: str, **limit: Object) -> list[Object]:
    return [{"metadata": METADATA, "spec": {"limits": [{"type": kind, **limit}]}}]


SELECTED = {"metadata": METADATA, "spec": {"scopeSelector": {"matchExpressions": [{"scopeName": "NotBestEffort"}]}}}
NONE, COUNTS = "class build get no requests: ResourceQuota jhub/guard", "ResourceQuota jhub/guard counts placeholders"


@pytest.mark.parametrize(
    ("values", "path", "bodies", "told"),
    [
        ("", QUOTAS, [quota("NotBestEffort", services="1")], [NONE]),
        ("", QUOTAS, [SELECTED], [NONE]),
        ("podClasses: {build: {resources: null}}", QUOTAS, [SELECTED], []),
        ("", QUOTAS, [quota("BestEffort", pods="1"), quota("PriorityClass", memory="1Gi"), quota(services="1")], []),
        ("", QUOTAS, [quota(pods="20")], [COUNTS]),
        ("", QUOTAS, [quota("NotBestEffort", memory="9Gi")], [NONE, COUNTS]),
        ("placeholders: []", QUOTAS, [quota(pods="20")], []),
        ("", LIMIT_RANGES, limit_range("Container", max={"cpu": "1"}), ["build get the requests of LimitRange"]),
        ("", LIMIT_RANGES, limit_range("Container", maxLimitRequestRatio={"cpu": "1"}), []),
        ("", LIMIT_RANGES, limit_range("Pod", max={"cpu": "1"}), []),
    ],
)
def test_quotas_and_limit_ranges_are_named(values: str, path: str, bodies: list[Object], told: list[str]) -> None:
    cluster = Cluster(values)
    cluster.lists[path] = bodies
    said = cluster.said("requests")
    assert [one.severity for one in said] == ["warning"] * len(told)
    assert all(text in one.evidence for text, one in zip(told, said, strict=True))


def test_of_a_class_in_other_namespaces_their_quotas_count() -> None:
    cluster = Cluster(ELSEWHERE)
    cluster.lists["/api/v1/namespaces"] = [{"metadata": {"name": "b", "labels": {"builds": "yes"}}}]
    cluster.lists["/api/v1/resourcequotas"] = [quota("NotBestEffort", namespace=name) for name in ("b", "c")]
    cluster.lists["/api/v1/limitranges"] = []
    (said,) = cluster.said("requests")
    assert "ResourceQuota b/guard could" in said.evidence


def test_a_pod_that_is_refused_only_with_roost_is_an_error() -> None:
    cluster = Cluster()
    cluster.admitted = ApiError(403, "exceeded quota: limited")
    (said,) = found(run_checks(cluster.install, {"requests": requests.check}), "requests")
    assert (said.severity, "exceeded quota: limited" in said.evidence) == ("error", True)
    cluster.refusal = ApiError(403, "exceeded quota: limited")
    assert not found(run_checks(cluster.install, {"requests": requests.check}), "requests")


CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
BUILDS = "for want of room, pods of class build get no requests"
BARE = "podClasses: {build: {resources: null}}\n"
PREFERS = "imageGate: {mode: prefer}\n"


def priority_class(name: str, value: int, part_of: str = "") -> Object:
    return {"metadata": {"name": name, "labels": {"app.kubernetes.io/part-of": part_of}}, "value": value}


OWN = [priority_class("hub.jhub.roost-placeholder", -10, "roost"), priority_class("hub.jhub.roost-puller", -5, "roost")]


@pytest.mark.parametrize(
    ("values", "classes", "told"),
    [
        ("", [*OWN, priority_class("critical", 1000)], []),
        ("", [*OWN, priority_class("batch", -3)], ["batch (-3) rank below users"]),
        (
            "",
            [priority_class("batch", -100)],
            ["batch (-100) rank below users", "batch (-100) rank below Roost's puller"],
        ),
        (PREFERS, [priority_class("batch", -100)], [BUILDS, "batch (-100) rank below Roost's puller"]),
        (PREFERS + "priorityClasses: {puller: -100, placeholder: -110}\n" + BARE, [priority_class("batch", -100)], []),
        (PREFERS + "prePuller: {enabled: false}\n" + BARE, [priority_class("batch", -100)], []),
    ],
)
def test_classes_whose_pods_could_go_for_ours_are_named(values: str, classes: list[Object], told: list[str]) -> None:
    cluster = Cluster(values)
    cluster.lists[CLASSES] = classes
    said = cluster.said("priorities")
    assert [one.severity for one in said] == ["warning"] * len(told)
    assert all(text in one.evidence for text, one in zip(told, said, strict=True))
