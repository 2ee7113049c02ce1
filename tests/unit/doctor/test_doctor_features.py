"""What `roost doctor` says of an API server that lacks something that the rendered objects are made of."""

import pytest

from roost_core.kube.client import ApiError
from tests.unit.doctor.whole_cluster import LISTED, Cluster

POLICY = "admission: {mode: policy}"


def gate(name: str, value: int) -> str:
    return f'kubernetes_feature_enabled{{name="{name}",stage="BETA"}} {value}'


@pytest.mark.parametrize(("values", "name"), [(LISTED, "ImageVolume"), (POLICY, "MutatingAdmissionPolicy")])
def test_a_feature_gate_that_is_off_is_an_error_where_something_needs_it(values: str, name: str) -> None:
    for needs, is_told in ((values, True), ("", False)):
        cluster = Cluster(needs)
        cluster.texts["/metrics"] = ["# HELP kubernetes_feature_enabled x", gate("Other", 0), gate(name, 0)]
        findings = cluster.said("features")
        assert [finding.severity for finding in findings] == ["error"] * is_told
        assert all(name in finding.evidence for finding in findings)
        cluster.texts["/metrics"] = [gate(name, 1)]
        assert cluster.said("features") == []


def test_an_account_that_may_not_read_metrics_is_told_so_where_a_gate_matters() -> None:
    for values, count in ((LISTED, 1), ("", 0)):
        cluster = Cluster(values)
        cluster.texts["/metrics"] = ApiError(403, "GET /metrics: 403 Forbidden")
        findings = cluster.said("features")
        assert [finding.severity for finding in findings] == ["unknown"] * count
        assert all("ImageVolume" in finding.evidence and "/metrics" in finding.fix for finding in findings)


def test_kinds_that_the_api_server_does_not_serve_are_named() -> None:
    cluster = Cluster("monitoring: {serviceMonitor: {enabled: true}}")
    assert cluster.said("features") == []
    del cluster.served["/apis/monitoring.coreos.com/v1"]
    cluster.served["/apis/policy/v1"] = set()
    cluster.tells("features", "error", "ServiceMonitor (monitoring.coreos.com/v1)", "PodDisruptionBudget (policy/v1)")
