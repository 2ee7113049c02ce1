"""What `roost doctor` says of CapacityBuffers: known and heeded."""

from typing import Any

import pytest

from roost.doctor.checks import BEFORE, run_checks
from tests.unit.doctor.whole_cluster import Cluster, Object, ago, found

API = "/apis/autoscaling.x-k8s.io/v1beta1"
NAME = "hub-roost-placeholder-default"
PATH = f"{API}/namespaces/jhub/capacitybuffers/{NAME}"
BACKEND = "placeholder: {backend: capacityBuffer}\nplaceholderMover: {enabled: false}\n"
FIXED = f"{BACKEND}placeholders: [{{name: default, replicas: 3}}]\n"
LEARNED = (
    f"{BACKEND}placeholders: [{{name: default, replicas: 1, learn: {{max: 9, min: 0, timeZone: UTC, percentile: 95}}}}]"
)
READY = {"type": "ReadyForProvisioning", "status": "True", "reason": "Resolved"}


def cluster_of(values: str, *, conditions: list[Object] | None = None, age: float = 7200) -> Cluster:
    """A cluster with a buffer that an autoscaler heeds and, with LEARNED, the controllers size."""
    cluster = Cluster(values)
    cluster.objects[API] = {}
    buffer = cluster.objects[PATH]
    buffer["metadata"]["creationTimestamp"] = ago(age)
    buffer["spec"].setdefault("podTemplateRef", {"name": NAME})
    buffer["spec"].setdefault("replicas", 3)
    buffer["status"] = {"conditions": [READY] if conditions is None else conditions}
    return cluster


def autoscaler(*flags: str) -> Object:
    container: Any = {"image": "registry.k8s.io/autoscaling/cluster-autoscaler:v1.37.0", "args": list(flags)}
    return {
        "metadata": {"namespace": "kube-system", "name": "ca"},
        "spec": {"template": {"spec": {"containers": [container]}}},
    }


@pytest.mark.parametrize("values", [FIXED, LEARNED])
def test_nothing_is_found_where_an_autoscaler_keeps_the_room(values: str) -> None:
    assert cluster_of(values).said("buffers") == []


def test_an_api_server_without_capacity_buffers_is_an_error_before_an_install_too() -> None:
    cluster = Cluster(FIXED)
    ((severity, evidence, fix),) = cluster.said("buffers")
    assert (severity, "autoscaling.x-k8s.io/v1beta1" in evidence) == ("error", True)
    assert "placeholder.backend: statefulset" in fix
    cluster.objects = {"/api/v1/namespaces/jhub": {}}
    assert [one.severity for one in found(run_checks(cluster.install, BEFORE), "buffers")] == ["error"]
    cluster.objects[API] = {}
    assert found(run_checks(cluster.install, BEFORE), "buffers") == []


def test_a_buffer_that_nobody_heeds_is_told_after_two_minutes_with_what_every_autoscaler_needs() -> None:
    assert cluster_of(FIXED, conditions=[], age=60).said("buffers") == []
    ((severity, evidence, fix),) = cluster_of(FIXED, conditions=[]).said("buffers")
    assert (severity, f"{NAME} (no condition ReadyForProvisioning)" in evidence) == ("error", True)
    assert "--capacity-buffer-controller-enabled and --capacity-buffer-pod-injection-enabled" in fix
    assert "feature gate CapacityBuffer" in fix


def test_the_flag_is_named_that_the_clusters_own_autoscaler_lacks() -> None:
    cluster = cluster_of(FIXED, conditions=[])
    cluster.lists["/apis/apps/v1/deployments"] = [autoscaler("--capacity-buffer-controller-enabled=true")]
    ((_, _, fix),) = cluster.said("buffers")
    assert "lacks --capacity-buffer-pod-injection-enabled in Deployment kube-system/ca (" in fix
    cluster.lists["/apis/apps/v1/deployments"] = []
    cluster.lists["/apis/karpenter.sh/v1/nodepools"] = []
    ((_, _, fix),) = cluster.said("buffers")
    assert "lacks Karpenter (from 1.14 on): the feature gate CapacityBuffer (" in fix


def test_what_an_autoscaler_says_against_a_buffer_is_told_at_once() -> None:
    refused = {**READY, "status": "False", "message": "podtemplates hub-x not found."}
    ((severity, evidence, _),) = cluster_of(FIXED, conditions=[refused], age=5).said("buffers")
    assert (severity, "(podtemplates hub-x not found)" in evidence) == ("error", True)


def test_a_buffer_without_room_to_keep_needs_no_autoscaler_and_one_without_a_number_is_told() -> None:
    cluster = cluster_of(LEARNED, conditions=[])
    cluster.objects[PATH]["spec"]["replicas"] = 0
    assert cluster.said("buffers") == []
    del cluster.objects[PATH]["spec"]["podTemplateRef"]
    ((severity, evidence, fix),) = cluster.said("buffers")
    assert (severity, "refer to no PodTemplate" in evidence) == ("warning", True)
    assert "controllers' leader" in fix
