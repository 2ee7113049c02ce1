"""What `roost doctor` says of a cluster around an install: kubelets, clocks, policies, other schedulers, providers."""

from typing import Any

import pytest

from roost.doctor.checks import BEFORE, run_checks
from roost_core.kube.client import ApiError
from roost_core.placement.labels import startup_taint
from tests.unit.doctor.whole_cluster import (
    LEASES,
    LISTED,
    NODE_LEASES,
    NODES,
    PLACED,
    PODS,
    POLICIES,
    Cluster,
    Object,
    ago,
    found,
    node,
    pod,
)


def test_users_on_a_node_that_the_puller_does_not_reach_or_whom_cluster_autoscaler_may_end_are_told() -> None:
    cluster = Cluster(LISTED)
    (daemon_set,) = cluster.install.of_kind("DaemonSet")
    labels = daemon_set["spec"]["template"]["metadata"]["labels"]
    cluster.lists[PODS] = [
        {"metadata": {"name": "puller-1", "labels": labels}, "spec": {"nodeName": "n1"}},
        *(pod(f"ada-{where}", PLACED, spec={"nodeName": where}) for where in ("n1", "gpu")),
        pod("pending", PLACED, spec={}),
    ]
    cluster.tells("puller", "warning", "is on: gpu.", fix="prePuller.tolerations")
    owned: Any = pod("owned", PLACED)
    owned["metadata"]["ownerReferences"] = [{"kind": "ReplicaSet", "name": "r", "controller": True}]
    free = pod("free", {**PLACED, "cluster-autoscaler.kubernetes.io/safe-to-evict": "true"})
    cluster = Cluster()
    cluster.lists[PODS] = [pod("plain", PLACED), free, owned]
    cluster.tells("autoscaler", "warning", "2 of 3 users' pods to save a node: free, owned.")


@pytest.mark.parametrize(("version", "is_told"), [("v1.33.9", 1), ("v1.34.0-eks-1", 0), ("v1.37.9", 0), ("v1.38.0", 1)])
def test_a_kubelet_that_is_too_old_or_newer_than_the_api_server_is_told(version: str, is_told: int) -> None:
    cluster = Cluster("")
    other = node("other")
    other["status"]["nodeInfo"]["kubeletVersion"] = version
    other["metadata"]["labels"]["kubernetes.io/arch"] = "arm64"
    cluster.lists[NODES] = [node("usual"), other]
    outcomes = run_checks(cluster.install, BEFORE)
    (outcome,) = (one for one in outcomes if one.check == "node-versions")
    assert outcome.looked_at.endswith(" on arm64, unknown")
    assert [finding.evidence.endswith(f": other ({version}).") for finding in outcome.findings] == [True] * is_told


@pytest.mark.parametrize(
    ("runtime", "is_told"),
    [
        ("containerd://1.7.27", True),
        ("containerd://2.0.5", True),
        ("containerd://2.1.0-rc.1", False),
        ("cri-o://1.30.9", True),
        ("cri-o://1.34.0", False),
        ("other://0.1", False),
    ],
)
def test_a_runtime_that_cannot_mount_images_is_an_error_where_the_puller_does(runtime: str, is_told: bool) -> None:
    for method, counts in (("auto", True), ("noop", False)):
        cluster = Cluster(f"{LISTED}\nprePuller: {{method: {method}}}")
        old = node("old")
        old["status"]["nodeInfo"]["containerRuntimeVersion"] = runtime
        cluster.lists[NODES] = [old]
        assert bool(cluster.said("image-volumes")) is (is_told and counts)


def node_pool(taint: str) -> Object:
    spec = {
        "disruption": {"consolidationPolicy": "WhenEmpty"},
        "template": {"spec": {"startupTaints": [{"key": taint}]}},
    }
    return {"metadata": {"name": "users"}, "spec": spec}


def test_startup_taints_that_outlive_a_start_are_told() -> None:
    cluster = Cluster()
    own = startup_taint("hub", "jhub")
    cluster.lists["/apis/karpenter.sh/v1/nodepools"] = [node_pool("cilium")]
    cluster.lists[NODES] = [node("a", taints=[own]), node("b", taints=["cilium"]), node("c", taints=["other"])]
    cluster.lists[NODES].append(node("young", age=60, taints=[own]))
    cluster.tells("startup-taints", "warning", "2 startup taints", "b (cilium)")


@pytest.mark.parametrize(("mode", "is_told"), [("requireLabel", True), ("startupTaint", False)])
def test_a_node_pool_with_a_taint_that_nobody_takes_off_is_an_error(mode: str, is_told: bool) -> None:
    cluster = Cluster(f"imageGate: {{mode: {mode}}}")
    cluster.lists["/apis/karpenter.sh/v1/nodepools"] = [node_pool(startup_taint("hub", "jhub"))]
    assert [finding.severity for finding in cluster.said("startup-taints")] == ["error"] * is_told


def lease(name: str, renewed: float, written: float) -> Object:
    fields: Object = {"f:spec": {"f:renewTime": {}}}
    return {
        "metadata": {"name": name, "managedFields": [{"time": ago(written), "fieldsV1": fields}]},
        "spec": {"renewTime": ago(renewed)},
    }


def test_clocks_are_compared_with_the_api_servers_and_not_with_this_machines() -> None:
    cluster = Cluster()
    # An hour ago by either clock: it is this machine whose clock is wrong.
    cluster.lists[NODE_LEASES] = [lease("fine", 3600, 3601), lease("behind", 60, 2)]
    cluster.lists[LEASES] = [lease("ahead", 2, 62), {"metadata": {"name": "bare"}, "spec": {}}]
    cluster.tells("clocks", "warning", "2 clocks", "behind (-58 s)", "ahead (+60 s)")


def policy(name: str, ingress: list[Object], selector: Object | None = None) -> Object:
    return {
        "metadata": {"name": name},
        "spec": {"podSelector": selector or {}, "policyTypes": ["Ingress"], "ingress": ingress},
    }


def test_policies_that_keep_the_api_server_out_are_told_unless_one_lets_all_in() -> None:
    cluster = Cluster("networkPolicy: {enabled: false}")
    assert cluster.said("network") == []
    somewhere: Object = {"from": [{"podSelector": {}}]}
    cluster.lists[POLICIES] = [policy("deny", []), policy("own-pods", [somewhere])]
    cluster.tells("network", "warning", "deny, own-pods", fix="webhookReviews")
    port = cluster.install.values["webhook"]["port"]
    for rule in ({}, {"ports": [{"port": port}]}, {"ports": [{"port": 1, "endPort": 65535}]}):
        cluster.lists[POLICIES] = [policy("deny", []), policy("open", [rule])]
        assert cluster.said("network") == []
    cluster.lists[POLICIES] = [policy("of-others", [], {"matchLabels": {"app": "hub"}})]
    assert cluster.said("network") == []


@pytest.mark.parametrize(
    ("said", "fix"),
    [
        ('pods "x" is forbidden: violates PodSecurity "restricted:latest": host namespaces', "privileged"),
        ("unable to validate against any security context constraint: provider restricted-v2", "runAsUser: null"),
        ("exceeded quota: hub, requested: pods=1", "ResourceQuota"),
    ],
)
def test_a_namespace_that_refuses_roosts_own_pods_is_an_error_with_the_fix(said: str, fix: str) -> None:
    cluster = Cluster()
    cluster.refusal = ApiError(403, said)
    findings = cluster.said("security")
    assert {finding.severity for finding in findings} == {"error"}
    assert all(said in finding.evidence and fix in finding.fix for finding in findings)
    assert any("Deployment jhub/hub-roost-webhook" in finding.evidence for finding in findings)
    cluster.refusal = ApiError(403, "may not create pods")
    assert [finding.severity for finding in cluster.said("security")] == ["unknown"]


def running(name: str, scheduler: str, where: str, phase: str = "Running") -> Object:
    spec = {"nodeName": where, "schedulerName": scheduler}
    return {"metadata": {"name": name}, "spec": spec, "status": {"phase": phase}}


def test_another_scheduler_is_told_on_nodes_that_roosts_uses_too() -> None:
    pods = [
        running("ada", "hub.jhub.user", "n1"),
        running("daemon", "default-scheduler", "n1"),
        running("elsewhere", "hub-user-scheduler", "n2"),
        running("over", "hub-user-scheduler", "n1", "Succeeded"),
    ]
    cluster = Cluster()
    cluster.lists["/api/v1/pods"] = pods
    assert cluster.said("schedulers") == []
    pods.append(running("bob", "hub-user-scheduler", "n1"))
    cluster.tells("schedulers", "warning", "hub-user-scheduler (1 pod)")


def of_provider(values: str, scheme: str) -> Cluster:
    cluster = Cluster(values)
    one = node("n")
    one["spec"]["providerID"] = f"{scheme}:///zone/n"
    cluster.lists[NODES] = [one]
    cluster.objects["/apis/apps/v1/namespaces/kube-system/daemonsets/aws-node"] = {}
    return cluster


def before(cluster: Cluster) -> list[tuple[str, str]]:
    """Of a cluster where nothing is installed yet."""
    cluster.objects = {path: body for path, body in cluster.objects.items() if "roost" not in path}
    outcomes = run_checks(cluster.install, BEFORE)
    return [(finding.severity, finding.fix) for finding in found(outcomes, "platform")]


def test_a_gke_cluster_is_told_of_its_firewall_before_the_install_and_not_after() -> None:
    assert of_provider("", "gce").said("platform") == []
    ((severity, fix),) = before(of_provider("", "gce"))
    assert (severity, "TCP 8443" in fix) == ("warning", True)
    assert before(of_provider("webhook: {port: 10250}", "gce")) == []


def test_on_gke_its_own_scheduler_and_a_priority_that_its_autoscaler_ignores_are_told() -> None:
    values = "priorityClasses: {placeholder: -11}"
    cluster = of_provider(values, "gce")
    other = pod("ada", PLACED, spec={"schedulerName": "gke.io/optimize-utilization-scheduler"})
    cluster.lists[PODS] = [other]
    mutated, ignored = cluster.said("platform")
    assert "replaceSchedulers: [gke.io/optimize-utilization-scheduler]" in mutated.fix
    assert (ignored.severity, ignored.fix) == ("error", "priorityClasses.placeholder: -10")


def test_eks_without_its_own_network_plugin_wants_the_hosts_network() -> None:
    assert of_provider("", "aws").said("platform") == []
    for values, count in (("", 1), ("webhook: {hostNetwork: true}", 0)):
        cluster = of_provider(values, "aws")
        del cluster.objects["/apis/apps/v1/namespaces/kube-system/daemonsets/aws-node"]
        findings = cluster.said("platform")
        assert [finding.severity for finding in findings] == ["warning"] * count
        # Auto Mode has no such DaemonSet.
        cluster.lists[NODES][0]["metadata"]["labels"] = {"eks.amazonaws.com/compute-type": "auto"}
        assert cluster.said("platform") == []


def test_aks_is_told_before_an_install_where_a_startup_taint_belongs() -> None:
    tainted = "imageGate: {mode: startupTaint}"
    assert before(of_provider("", "azure")) == []
    ((severity, fix),) = before(of_provider(tainted, "azure"))
    assert (severity, "node initialization taint" in fix) == ("warning", True)
    assert of_provider(tainted, "azure").said("platform") == []


@pytest.mark.parametrize(
    ("values", "count"), [("", 1), ("podSecurityContext: {runAsUser: null, runAsGroup: null, fsGroup: null}", 0)]
)
def test_openshift_takes_no_fixed_ids(values: str, count: int) -> None:
    cluster = Cluster(values)
    cluster.objects["/apis"] = {"groups": [{"name": "security.openshift.io"}]}
    findings = cluster.said("platform")
    assert [finding.severity for finding in findings] == ["error"] * count
    assert all("runAsUser: null, runAsGroup: null, fsGroup: null" in finding.fix for finding in findings)
