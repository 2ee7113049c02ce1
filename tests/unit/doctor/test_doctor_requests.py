"""What `roost doctor` says of quotas, LimitRanges and priorities of pods that get requests or rank
below Roost's.
"""

from pathlib import Path

import pytest
import yaml

from roost.doctor.checks import requests, run_checks
from roost.doctor.quotas_option import find_faults
from roost_core.kube.client import ApiError
from roost_core.objects.fields import JSONObject
from tests.builders import HUB_RELEASE
from tests.recorded_data import rows
from tests.unit.doctor.whole_cluster import Cluster, found

ELSEWHERE = "podClasses: {build: {match: {namespaceSelector: {matchLabels: {builds: 'yes'}}}}}\n"


def quota(*scopes: str, namespace: str = "jhub", **hard: str) -> JSONObject:
    return {
        "metadata": {"name": "guard", "namespace": namespace},
        "spec": {"hard": hard, "scopes": list(scopes)},
    }


KINDS = {"resourcequotas": "ResourceQuota", "limitranges": "LimitRange"}


@pytest.mark.parametrize(("values", "path", "bodies", "told"), rows("doctor/quotas"))
def test_quotas_and_limit_ranges_are_named_in_a_cluster_and_in_a_file(
    values: str, path: str, bodies: list[JSONObject], told: list[str], tmp_path: Path
) -> None:
    cluster = Cluster(values)
    cluster.lists[path] = bodies
    said = [
        (finding.severity, f"{finding.evidence} {finding.fix}")
        for finding in cluster.said("requests")
    ]
    assert [severity for severity, _ in said] == [
        ("error" if "refuses" in text else "warning") for text in told
    ]
    assert all(text in one for text, (_, one) in zip(told, said, strict=True))
    file, kind = tmp_path / "quotas.yaml", KINDS[path.rpartition("/")[2]]
    file.write_text(
        yaml.safe_dump_all([{"apiVersion": "v1", "kind": kind, **body} for body in bodies])
    )
    faults = find_faults(str(file), cluster.install.values, HUB_RELEASE)
    assert [(fault.severity, f"{fault.found} {fault.fix}") for fault in faults] == said
    assert {fault.file for fault in faults} <= {str(file)}


def test_of_a_class_in_other_namespaces_their_quotas_count() -> None:
    cluster = Cluster(ELSEWHERE)
    cluster.lists["/api/v1/namespaces"] = [{"metadata": {"name": "b", "labels": {"builds": "yes"}}}]
    cluster.lists["/api/v1/resourcequotas"] = [
        quota("NotBestEffort", namespace=name) for name in ("b", "c")
    ]
    cluster.lists["/api/v1/limitranges"] = []
    (said,) = cluster.said("requests")
    assert "ResourceQuota b/guard could" in said.evidence


def test_a_pod_that_is_refused_only_with_roost_is_an_error() -> None:
    cluster = Cluster()
    cluster.admitted = ApiError(403, "exceeded quota: limited")
    (said,) = found(run_checks(cluster.install, {"requests": requests.check}), "requests")
    assert (said.severity, "exceeded quota: limited" in said.evidence) == ("error", True)
    assert said.is_felt
    cluster.refusal = ApiError(403, "exceeded quota: limited")
    assert not found(run_checks(cluster.install, {"requests": requests.check}), "requests")


CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"


@pytest.mark.parametrize(("values", "classes", "told"), rows("doctor/priorities"))
def test_classes_whose_pods_could_go_for_ours_are_named(
    values: str, classes: list[JSONObject], told: list[str]
) -> None:
    cluster = Cluster(values)
    cluster.lists[CLASSES] = classes
    said = cluster.said("priorities")
    assert [finding.severity for finding in said] == ["warning"] * len(told)
    assert all(text in finding.evidence for text, finding in zip(told, said, strict=True))
