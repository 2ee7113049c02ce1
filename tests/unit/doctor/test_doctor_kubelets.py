"""What `roost doctor` says of kubelets' configuration, and of what they can."""

from typing import Any

import pytest
import yaml

from roost.doctor.checks import run_checks
from roost.doctor.checks.kubelets import check
from roost_core.kube.client import ApiError, ClusterError
from tests.unit.doctor.whole_cluster import LISTED, NODES, Cluster, node


def with_kubelets(values: str, *configs: dict[str, Any], images: int = 3) -> Cluster:
    """A cluster of one Ready node for each of these configurations: n0, n1 …"""
    cluster = Cluster(values)
    for number, config in enumerate(configs):
        cluster.lists[NODES].append(node(f"n{number}", images=images))
        cluster.kubelets[f"n{number}"] = config
    return cluster


POPULAR = "popularImages: {enabled: true}"
SIXTY = yaml.safe_dump({"prePuller": {"extraImages": {f"x{n}": {"name": f"a/x{n}", "tag": "1"} for n in range(60)}}})
NO_VOLUMES = {"featureGates": {"ImageVolume": False}}


def test_a_kubelet_that_holds_more_images_than_it_reports_is_told_by_its_own_limit() -> None:
    cluster = Cluster()
    cluster.lists[NODES] = [node("few"), node("many", images=50), node("all", images=70)]
    cluster.kubelets = {"all": {"nodeStatusMaxImages": -1}}
    cluster.tells("kubelets", "warning", "1 of 3 kubelets", "many (50)", fix="nodeStatusMaxImages: -1")


@pytest.mark.parametrize(("reported", "is_told"), [(10, True), (0, True), (50, False), (-1, False)])
def test_a_report_too_short_for_the_gate_is_told_where_it_holds_users_back(reported: int, is_told: bool) -> None:
    for values, counts in ((LISTED, True), (f"{LISTED}\nimageGate: {{mode: 'off'}}", False), ("", False)):
        cluster = with_kubelets(values, {"nodeStatusMaxImages": reported})
        findings = cluster.said("kubelets")
        assert [finding.severity for finding in findings] == ["warning"] * (is_told and counts)


@pytest.mark.parametrize(
    ("values", "config", "severity", "evidence"),
    [
        (SIXTY, {}, "warning", "fewer than 60 images: n0 (50)"),
        (POPULAR, {}, "", ""),
        (POPULAR, {"imageGCHighThresholdPercent": 70}, "error", "n0 (70)"),
        (LISTED, {"imageGCHighThresholdPercent": 70}, "", ""),
        (LISTED, {"imageGCHighThresholdPercent": 100}, "warning", "never delete images"),
        # Only where the puller mounts images.
        (LISTED, NO_VOLUMES, "error", "ImageVolume switched off: n0"),
        (f"{LISTED}\nprePuller: {{method: noop}}", NO_VOLUMES, "", ""),
    ],
)
def test_a_kubelets_settings_are_told(values: str, config: dict[str, Any], severity: str, evidence: str) -> None:
    cluster = with_kubelets(values, config)
    if severity:
        cluster.tells("kubelets", severity, evidence)
    else:
        assert cluster.said("kubelets") == []


@pytest.mark.parametrize(("version", "is_told"), [("v1.34.3", True), ("v1.35.0", False), ("", False)])
def test_a_kubelet_too_old_to_mount_images_is_an_error_where_the_puller_does(version: str, is_told: bool) -> None:
    cluster = with_kubelets(LISTED, {})
    cluster.lists[NODES][0]["status"]["nodeInfo"]["kubeletVersion"] = version
    assert [finding.severity for finding in cluster.said("image-volumes")] == ["error"] * is_told


def test_kubelets_that_do_not_answer_are_unknown_and_why_is_said_once() -> None:
    for values, count in (("", 1), ("podClasses: {user: {warm: null}}", 0)):
        cluster = Cluster(values)
        cluster.lists[NODES] = [node("n")]
        cluster.kubelets = {"n": ApiError(503, "no route to host")}
        assert [finding.severity for finding in cluster.said("kubelets")] == ["unknown"] * count
    cluster = with_kubelets(LISTED, {}, {"imageGCHighThresholdPercent": 100})
    # It hangs, and keeps the other from nothing.
    cluster.kubelets["n0"] = ClusterError("API server unreachable: ReadTimeoutError")
    silent, never = cluster.said("kubelets")
    assert (silent.severity, "1 kubelet: n0." in silent.evidence) == ("unknown", True)
    assert (never.severity, "n1" in never.evidence) == ("warning", True)
    cluster = with_kubelets(LISTED, {}, {})
    cluster.kubelets = dict.fromkeys(cluster.kubelets, ApiError(403, "nodes/proxy is forbidden"))
    ((severity, evidence, fix),) = cluster.said("kubelets")
    assert (severity, evidence.count("forbidden")) == ("unknown", 1)
    assert "nodes/proxy" in fix
    assert "nodeStatusMaxImages" in fix


def test_one_kubelet_of_each_pool_is_asked_first_and_five_at_most() -> None:
    cluster = Cluster(LISTED)
    cluster.lists[NODES] = [node(f"a{number}", images=9) for number in range(9)]
    other, down = node("other"), node("down")
    other["metadata"]["labels"]["karpenter.sh/nodepool"] = "gpu"
    down["metadata"]["labels"]["karpenter.sh/nodepool"] = "down"
    down["status"]["conditions"][0]["status"] = "Unknown"
    cluster.lists[NODES] += [other, down]
    cluster.kubelets = {"other": {"imageGCHighThresholdPercent": 100}, "down": ApiError(503, "gone")}
    ((_, looked_at, findings),) = run_checks(cluster.install, {"kubelets": check})
    assert looked_at == "5 kubelets: 50 images reported, deleted from 85 %; 50 images reported, none deleted"
    assert ["100): other." in finding.evidence for finding in findings] == [True]
