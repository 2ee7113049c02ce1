"""`roost doctor` on the real API server: faults of a cluster that can be provoked, and each told with its fix."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from generator.render.manifests import render
from generator.values.files import parse_values
from generator.values.release import Release
from roost.doctor.checks import BEFORE, INSTALLED, run_checks
from roost.doctor.install import Install
from roost_core.kube.client import connect
from roost_core.placement.labels import startup_taint
from tests.harness.binaries import HarnessUnavailableError
from tests.harness.fixtures import give_up
from tests.harness.pod_network import PodNetwork
from tests.harness.real_nodes import SERVING, RealNode
from tests.harness.registry import RealRegistry

if TYPE_CHECKING:
    from pathlib import Path

    from roost.doctor.findings import Finding
    from tests.harness.controlplane import ControlPlane
    from tests.harness.nodes import FakeNodes

pytestmark = pytest.mark.e2e

LISTED = "singleuser: {image: {name: a/b, tag: '1'}}"


def asked(
    cluster: ControlPlane, namespace: str, check: str, values: str = LISTED, kubeconfig: Path | None = None
) -> list[Finding]:
    """What one check says of a release that isn't installed; kubeconfig: the administrator's by default."""
    release = Release("hub", namespace, f"v{cluster.minor}.0")
    merged = parse_values(values.encode(), "values.yaml")
    rendered = [manifest.body for manifest in render(merged.values, release)]
    install = Install(connect(kubeconfig or cluster.kubeconfig), release, merged.values, rendered)
    checks = dict((*BEFORE, *INSTALLED))
    ((_, _, findings),) = run_checks(install, [(check, checks[check])])
    return list(findings)


@pytest.fixture
def restricted(control_plane: ControlPlane) -> str:
    return control_plane.create_namespace(labels={"pod-security.kubernetes.io/enforce": "restricted"})


def test_pod_security_takes_roosts_pods_and_not_those_on_the_hosts_network(
    control_plane: ControlPlane, restricted: str
) -> None:
    assert asked(control_plane, restricted, "security") == []
    findings = asked(control_plane, restricted, "security", "webhook: {hostNetwork: true}")
    assert [finding.severity for finding in findings] == ["error"]
    assert "hub-roost-webhook" in findings[0].evidence
    assert "violates PodSecurity" in findings[0].evidence
    assert "pod-security.kubernetes.io/enforce" in findings[0].fix


def test_policies_and_budgets_of_others_are_read_as_the_api_server_stores_them(
    control_plane: ControlPlane, namespace: str
) -> None:
    assert asked(control_plane, namespace, "network") == []
    assert asked(control_plane, namespace, "budgets") == []
    deny = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": "deny"},
        "spec": {"podSelector": {}},
    }
    control_plane.api.create(deny, namespace)
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "all"},
        "spec": {"maxUnavailable": 0, "selector": {}},
    }
    control_plane.api.create(budget, namespace)
    assert "deny" in asked(control_plane, namespace, "network")[0].evidence
    assert any(
        "hub-placeholder" in one.evidence or "Deployment" in one.evidence
        for one in asked(control_plane, namespace, "budgets")
    )


def test_a_holder_whose_clock_is_wrong_is_told_by_what_the_api_server_wrote(
    control_plane: ControlPlane, namespace: str
) -> None:
    for name, ahead in (("fine", 0.0), ("fast", 90.0)):
        now = (datetime.now(UTC) + timedelta(seconds=ahead)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        lease = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": name},
            "spec": {"holderIdentity": "a", "renewTime": now},
        }
        control_plane.api.create(lease, namespace)
    findings = asked(control_plane, namespace, "clocks")
    assert [finding.severity for finding in findings] == ["warning"]
    assert "fast (+" in findings[0].evidence
    assert "fine" not in findings[0].evidence


def test_nodes_are_asked_for_their_runtime_their_kubelet_and_their_taints(
    control_plane: ControlPlane, namespace: str, fake_nodes: FakeNodes
) -> None:
    taint: dict[str, Any] = {"key": startup_taint("hub", namespace), "effect": "NoSchedule"}
    images = {f"registry.example/i{number}:1": 1024 for number in range(50)}
    fake_nodes.create("doctored", cpu="4", memory="8Gi", taints=[taint], images=images)
    assert asked(control_plane, namespace, "startup-taints") == [], "it is young"
    # No kubelet is behind it.
    assert [finding.severity for finding in asked(control_plane, namespace, "kubelets")] == ["unknown"]
    assert asked(control_plane, namespace, "platform") == []


def test_a_real_kubelet_is_asked_what_it_does_with_images_and_only_as_whom_it_lets() -> None:
    kubelet = {"nodeStatusMaxImages": 20, "imageGCLowThresholdPercent": 50, "imageGCHighThresholdPercent": 65}
    values = f"{LISTED}\npopularImages: {{enabled: true, nodeStatusMaxImages: 20}}"
    try:
        with contextlib.ExitStack() as stack:
            network = stack.enter_context(PodNetwork())
            registry = stack.enter_context(RealRegistry())
            cluster = stack.enter_context(network.make_cluster())
            stack.enter_context(RealNode(cluster, "node-a", registry, network=network, kubelet={**SERVING, **kubelet}))
            namespace = cluster.create_namespace()
            short, early = asked(cluster, namespace, "kubelets", values)
            assert (short.severity, "node-a (20)" in short.evidence) == ("warning", True)
            assert (early.severity, "node-a (65)" in early.evidence) == ("error", True)

            stranger = account_that_may(cluster, namespace, "list", "nodes")
            ((severity, evidence, fix),) = asked(cluster, namespace, "kubelets", values, kubeconfig=stranger)
            assert (severity, "Not allowed to look" in evidence, "nodes/proxy" in fix) == ("unknown", True, True)
    except HarnessUnavailableError as error:
        give_up(error)


def account_that_may(cluster: ControlPlane, namespace: str, verb: str, resource: str) -> Path:
    """The kubeconfig of an account that has this right in the whole cluster, and no other."""
    name = f"{namespace}-{resource}"
    cluster.kubectl("create", "clusterrole", name, f"--verb={verb}", f"--resource={resource}")
    account = f"--serviceaccount={namespace}:default"
    cluster.kubectl("create", "clusterrolebinding", name, f"--clusterrole={name}", account)
    return cluster.service_account_kubeconfig(namespace, "default")
