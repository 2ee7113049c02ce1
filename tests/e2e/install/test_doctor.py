"""`roost doctor` on the real API server: faults of a cluster that can be provoked, and each told
with its fix.
"""

import copy
import json
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from generator.render.kube_scheduler import SCHEDULER_TAGS
from generator.render.manifests import render
from generator.values.files import parse_values
from generator.values.release_name import Release
from roost.doctor.cause_tree import CauseTree, group_by_cause
from roost.doctor.checks import BEFORE, INSTALLED, run_checks
from roost.doctor.evidence import AUTOSCALER_STATUS
from roost.doctor.findings import Finding
from roost.doctor.install import Install
from roost_core.kube.account import connect
from roost_core.placement.labels import EVENTS_LABEL, POOL_LABELS
from tests.harness.binaries import NEWEST_MINOR
from tests.harness.controlplane import ControlPlane
from tests.harness.fixtures import networked_nodes, or_give_up, push_scheduler
from tests.harness.nodes import FakeNodes
from tests.harness.registry import RealRegistry
from tests.harness.waiting import wait_until

pytestmark = pytest.mark.e2e

# Bounds for an overloaded machine.
SECONDS = 180.0
LISTED = "singleuser: {image: {name: a/b, tag: '1'}}"


def asked(
    cluster: ControlPlane,
    namespace: str,
    check: str,
    values: str = LISTED,
    kubeconfig: Path | None = None,
) -> list[Finding]:
    """What one check says of a release that isn't installed; kubeconfig: the administrator's by
    default.
    """
    release = Release("hub", namespace, f"v{cluster.minor}.0")
    merged = parse_values(values.encode(), "values.yaml")
    rendered = [manifest.body for manifest in render(merged.values, release)]
    install = Install(connect(kubeconfig or cluster.kubeconfig), release, merged.values, rendered)
    checks = {**BEFORE, **INSTALLED}
    ((_, _, findings),) = run_checks(install, {check: checks[check]})
    return list(findings)


@pytest.fixture
def restricted(control_plane: ControlPlane) -> str:
    return control_plane.create_namespace(
        labels={"pod-security.kubernetes.io/enforce": "restricted"}
    )


def test_pod_security_takes_roosts_pods_and_not_those_on_the_hosts_network(
    control_plane: ControlPlane, restricted: str
) -> None:
    assert asked(control_plane, restricted, "security") == []
    findings = asked(control_plane, restricted, "security", "webhook: {hostNetwork: true}")
    assert [finding.severity for finding in findings] == ["error"]
    assert "hub-roost-webhook" in findings[0].evidence
    assert "violates PodSecurity" in findings[0].evidence
    assert "pod-security.kubernetes.io/enforce" in findings[0].fix


def test_an_api_server_is_asked_what_it_serves_and_which_gates_are_on(
    control_plane: ControlPlane, namespace: str
) -> None:
    assert asked(control_plane, namespace, "features") == []
    ((severity, evidence, *_),) = asked(
        control_plane, namespace, "features", "monitoring: {serviceMonitor: {enabled: true}}"
    )
    assert (severity, "ServiceMonitor (monitoring.coreos.com/v1)" in evidence) == ("error", True)
    stranger = account_that_may(control_plane, namespace, "create", "pods")
    ((severity, evidence, *_),) = asked(control_plane, namespace, "features", kubeconfig=stranger)
    assert (
        severity,
        "Not allowed to look whether the API server has ImageVolume on" in evidence,
    ) == ("unknown", True)


def test_a_feature_gate_that_is_off_in_a_real_api_server_is_told() -> None:
    with (
        or_give_up(),
        ControlPlane(apiserver_flags=["--feature-gates=MutatingAdmissionPolicy=false"]) as cluster,
    ):
        findings = asked(
            cluster, cluster.create_namespace(), "features", "admission: {mode: policy}"
        )
    assert {finding.severity for finding in findings} == {"error"}
    assert any(
        "feature gate MutatingAdmissionPolicy switched off" in finding.evidence
        for finding in findings
    )


def test_objects_are_held_against_what_the_values_would_make_of_them(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    merged = parse_values(LISTED.encode(), "values.yaml").values
    rendered: Any = [
        manifest.body
        for manifest in render(merged, Release("hub", namespace, f"v{control_plane.minor}.0"))
    ]
    webhooks = f"/apis/apps/v1/namespaces/{namespace}/deployments/hub-roost-webhook"
    file = tmp_path / "rendered.json"
    earlier = copy.deepcopy(rendered)
    for body in earlier:
        if body["kind"] == "ConfigMap":
            # What earlier values rendered, and these no longer do; and what who installs adds.
            body["data"]["old"] = "1"
            body["metadata"]["annotations"] = {"meta.helm.sh/release-name": "hub"}
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": earlier}))
    try:
        for by in (["--server-side"], []):
            control_plane.kubectl("apply", *by, "-f", str(file))
            said = asked(control_plane, namespace, "objects")
            assert ["(data.old, by kubectl" in finding.evidence for finding in said] == [True], said
            # A post-renderer may have added it, too.
            assert [finding.severity for finding in said] == ["warning"], said
            assert "and that whoever installs wrote" in said[0].evidence, said
            control_plane.kubectl("delete", "-f", str(file), "--wait=false")
        for body in rendered:
            control_plane.api.create(body, body["metadata"].get("namespace"))
        assert asked(control_plane, namespace, "objects") == []
        containers = [{"name": "webhook", "image": "elsewhere:1"}]
        control_plane.api.patch(
            webhooks, {"spec": {"replicas": 1, "template": {"spec": {"containers": containers}}}}
        )
        (differs,) = asked(control_plane, namespace, "objects")
        assert differs.severity == "error"
        where = f"Deployment {namespace}/hub-roost-webhook (spec.template.spec.containers.webhook."
        assert (where in differs.evidence, "replicas" in differs.evidence) == (True, False), differs
    finally:
        control_plane.kubectl("delete", "-f", str(file), "--ignore-not-found", "--wait=false")


@pytest.mark.parametrize("way", ["create", "apply", "apply --server-side"])
def test_what_was_changed_by_hand_is_told_and_the_told_command_takes_it_back(
    control_plane: ControlPlane, namespace: str, tmp_path: Path, way: str
) -> None:
    merged = parse_values(LISTED.encode(), "values.yaml").values
    rendered: Any = [
        manifest.body
        for manifest in render(merged, Release("hub", namespace, f"v{control_plane.minor}.0"))
    ]
    file = tmp_path / "rendered.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": rendered}))
    here = ["--namespace", namespace]
    affinity = '{"spec": {"sessionAffinity": "ClientIP"}}'
    dns = '[{"op": "add", "path": "/spec/template/spec/dnsPolicy", "value": "Default"}]'
    # By what is told of each.
    by_hand = {
        "hub-roost-webhook (spec.template.spec.containers.webhook.env": (
            *("set", "env", "deployment/hub-roost-webhook", "HTTP_PROXY=http://a:1", "B=2"),
        ),
        "hub-roost-controllers (spec.template.spec.dnsPolicy, by kubectl-patch)": (
            *("patch", "deployment", "hub-roost-controllers", "--type=json", "--patch", dns),
        ),
        "hub-roost-webhook (spec.sessionAffinity": (
            *("patch", "service", "hub-roost-webhook", "--patch", affinity),
        ),
        "hub-roost-release (data.more, by kubectl-patch)": (
            *("patch", "configmap", "hub-roost-release", "--patch", '{"data": {"more": "1"}}'),
        ),
    }
    harmless = [
        ("rollout", "restart", "deployment/hub-roost-webhook"),
        ("annotate", "deployment", "hub-roost-webhook", "a=b"),
        ("label", "service", "hub-roost-webhook", "a=b"),
    ]
    try:
        control_plane.kubectl(*way.split(), "-f", str(file))
        assert asked(control_plane, namespace, "objects") == []
        for command in harmless:
            control_plane.kubectl(*here, *command)
        assert asked(control_plane, namespace, "objects") == []
        seen = []
        for evidence, change in by_hand.items():
            control_plane.kubectl(*here, *change)
            (told,) = asked(control_plane, namespace, "objects")
            seen.append((told.severity, evidence in told.evidence))
            # As an operator pastes it into a shell.
            advice = told.fix.partition("`")[2].rpartition("`")[0]
            control_plane.kubectl(*shlex.split(advice.removeprefix("kubectl ")))
            assert asked(control_plane, namespace, "objects") == []
        assert seen == [("warning", True)] * len(by_hand), seen
    finally:
        control_plane.kubectl("delete", "-f", str(file), "--ignore-not-found", "--wait=false")


def test_a_full_quota_is_one_cause_of_all_that_a_real_api_server_refuses(
    control_plane: ControlPlane, namespace: str
) -> None:
    release = Release("hub", namespace, f"v{control_plane.minor}.0")
    merged = parse_values(b"{}", "values.yaml").values
    rendered = [manifest.body for manifest in render(merged, release)]
    control_plane.kubectl("create", "quota", "course", "--hard=pods=0", "--namespace", namespace)
    control_plane.api.patch(
        f"/api/v1/namespaces/{namespace}/resourcequotas/course/status",
        {"status": {"hard": {"pods": "0"}, "used": {"pods": "0"}}},
    )
    install = Install(connect(control_plane.kubeconfig), release, merged, rendered)
    checks = {name: INSTALLED[name] for name in ("security", "requests", "leaders", "admission")}

    def found() -> list[CauseTree]:
        return group_by_cause(run_checks(replace(install), checks))

    trees = wait_until(
        lambda: [tree for tree in found() if tree.check == "security"], SECONDS, "a refusal"
    )
    (tree,) = trees
    assert f"kubectl --namespace {namespace} edit resourcequota course" in tree.finding.fix
    assert {check for check, _ in tree.consequences} == {"requests", "leaders", "admission"}
    assert [one.check for one in found()] == ["security"]


def test_bookings_are_held_against_a_real_quota_and_what_an_autoscaler_says_of_pools(
    control_plane: ControlPlane, namespace: str, fake_nodes: FakeNodes
) -> None:
    for name in ("a", "b"):
        fake_nodes.create(
            f"{namespace}-{name}", memory="9Gi", labels={"pool": namespace, POOL_LABELS[0]: "users"}
        )

    def create(
        kind: str,
        name: str,
        place: str,
        labels: Mapping[str, str] = MappingProxyType({}),
        **body: Any,
    ) -> None:
        metadata = {"name": name, "labels": dict(labels)}
        control_plane.api.create(
            {"apiVersion": "v1", "kind": kind, "metadata": metadata, **body}, place
        )

    create("ResourceQuota", "course", namespace, spec={"hard": {"pods": "50"}})
    quota = {"status": {"hard": {"pods": "50"}, "used": {"pods": "10"}}}
    control_plane.api.patch(f"/api/v1/namespaces/{namespace}/resourcequotas/course/status", quota)
    events = "[{name: lecture, people: 60, start: '2099-01-01T09:00', timeZone: UTC}]"
    create("ConfigMap", "taught", namespace, {EVENTS_LABEL: "hub"}, data={"events.yaml": events})
    create("ConfigMap", "others", namespace, {EVENTS_LABEL: "binder"}, data={"events.yaml": events})
    status = "nodeGroups: [{name: gke-hub-users-6ac1-grp, health: {maxSize: 4}}]"
    create(
        "ConfigMap", AUTOSCALER_STATUS.rpartition("/")[2], "kube-system", data={"status": status}
    )
    values = (
        "events: {enabled: true, concurrentSpawnLimit: 50, activeServerLimit: 55}\nplaceholders:"
        " [{name: default, "
    )
    values += (
        f"replicas: 0, nodeSelector: {{pool: {namespace}}}, resources: {{requests: {{memory:"
        " 1Gi}}}]\n"
    )
    try:
        said = asked(control_plane, namespace, "bookings", values)
    finally:
        control_plane.api.delete(AUTOSCALER_STATUS)
    told = (
        "last of 60 waits about 45",
        "5 and more are refused",
        "has room for 40 of 60",
        "users-6ac1-grp: never",
    )
    assert [text in finding.evidence for text, finding in zip(told, said, strict=True)] == [
        True
    ] * 4, said
    assert {finding.severity for finding in said} == {"warning"}
    stranger = account_that_may(control_plane, namespace, "list", "configmaps,resourcequotas")
    *seen, refused = asked(control_plane, namespace, "bookings", values, kubeconfig=stranger)
    assert [text in finding.evidence for text, finding in zip(told, seen, strict=False)] == [
        True
    ] * 3, seen
    assert (refused.severity, "nodes" in refused.evidence) == ("unknown", True), refused


@pytest.fixture(scope="module")
def on_a_kubelet() -> Iterator[ControlPlane]:
    """A cluster whose one node answers, with kube-scheduler's image to pull."""
    kubelet = {
        "nodeStatusMaxImages": 20,
        "imageGCLowThresholdPercent": 50,
        "imageGCHighThresholdPercent": 65,
    }

    def fill(registry: RealRegistry) -> None:
        push_scheduler(registry, SCHEDULER_TAGS[NEWEST_MINOR])

    with networked_nodes(fill, {"node-a": {}}, kubelet=kubelet) as (node,):
        yield node.cluster


def test_a_real_kubelet_is_asked_what_it_does_with_images_and_only_as_whom_it_lets(
    on_a_kubelet: ControlPlane,
) -> None:
    cluster, namespace = on_a_kubelet, on_a_kubelet.create_namespace()
    values = f"{LISTED}\npopularImages: {{enabled: true, nodeStatusMaxImages: 20}}"
    short, early = asked(cluster, namespace, "kubelets", values)
    assert (short.severity, "node-a (20)" in short.evidence) == ("warning", True)
    assert (early.severity, "node-a (65)" in early.evidence) == ("error", True)

    stranger = account_that_may(cluster, namespace, "list", "nodes")
    ((severity, evidence, fix, *_),) = asked(
        cluster, namespace, "kubelets", values, kubeconfig=stranger
    )
    assert (severity, "Not allowed to look" in evidence, "nodes/proxy" in fix) == (
        "unknown",
        True,
        True,
    )


def test_what_waits_now_is_told_by_the_scheduler_and_the_kubelet_from_a_kubeconfig_alone(
    on_a_kubelet: ControlPlane,
) -> None:
    cluster, namespace = on_a_kubelet, on_a_kubelet.create_namespace()
    for name, image, memory in (
        ("ada", "a/b:1", "900Gi"),
        ("bob", "a/b:1", "900Gi"),
        ("cyd", "quay.io/no/such:1", "1"),
    ):
        container = {
            "name": "notebook",
            "image": image,
            "resources": {"requests": {"memory": memory}},
        }
        metadata = {"name": f"jupyter-{name}", "labels": {"component": "singleuser-server"}}
        body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": metadata,
            "spec": {"containers": [container]},
        }
        cluster.api.create(body, namespace)
    where = ["--namespace", namespace, "--kubeconfig", str(cluster.kubeconfig)]

    def said() -> str:
        command = [sys.executable, "-m", "roost", "doctor", "--now", *where]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    def told() -> bool:
        lines = said()
        return (
            "1 user pod: ImagePullBackOff: " in lines
            and "2 user pods: 1 Insufficient memory\n" in lines
        )

    wait_until(told, SECONDS, "both causes", explain=said)
    print(said())  # noqa: T201 - for docs/doctor.md
    first, *_ = said().splitlines()
    assert first == "Waiting: 3 of 3 pods."
    assert "not found (on node-a)" in said()


def test_a_real_scheduler_is_told_when_it_refuses_its_profiles_and_when_it_has_old_ones(
    on_a_kubelet: ControlPlane,
) -> None:
    cluster, namespace = on_a_kubelet, on_a_kubelet.create_namespace()
    values = "scheduler: {replicas: 1}"
    merged = parse_values(values.encode(), "values.yaml").values
    for manifest in render(merged, Release("hub", namespace, f"v{cluster.minor}.0")):
        body: Any = copy.deepcopy(manifest.body)
        if body["kind"] == "ConfigMap" and body["metadata"]["name"] == "hub-roost-scheduler":
            # As if a new minor had renamed it.
            body["data"]["config.yaml"] = body["data"]["config.yaml"].replace(
                "PodTopologySpread", "Spread"
            )
        if (
            body["metadata"]["labels"].get("app.kubernetes.io/component") == "scheduler"
            or "Priority" in body["kind"]
        ):
            cluster.api.create(body, body["metadata"].get("namespace"))
    pods = f"/api/v1/namespaces/{namespace}/pods"
    config = f"/api/v1/namespaces/{namespace}/configmaps/hub-roost-scheduler"

    def said() -> list[Finding]:
        return asked(cluster, namespace, "profiles", values)

    def change(old: str, new: str) -> None:
        text = cluster.api.get(config)["data"]["config.yaml"]
        cluster.api.patch(config, {"data": {"config.yaml": text.replace(old, new)}})

    def refusal() -> Finding | None:
        found = asked(cluster, namespace, "programs", values)
        return next((finding for finding in found if "Its last words:" in finding.evidence), None)

    refused = wait_until(refusal, SECONDS, "a refusal", explain=lambda: str(said()))
    assert (refused.severity, "Spread" in refused.evidence) == ("error", True), refused

    # A kubelet gives a new pod the ConfigMap as it saw it last, for as long as another pod of the
    # node has it.
    deployment = f"/apis/apps/v1/namespaces/{namespace}/deployments/hub-roost-scheduler"
    cluster.api.patch(deployment, {"spec": {"replicas": 0}})
    wait_until(lambda: not cluster.api.list(pods), SECONDS, "the pod that was refused to go")
    change("Spread", "PodTopologySpread")
    cluster.api.patch(deployment, {"spec": {"replicas": 1}})
    lease = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/hub-roost-scheduler"

    def leads() -> bool:
        hosts = [pod["spec"]["hostname"] for pod in cluster.api.list(pods)]
        holder = str(cluster.api.get(lease)["spec"].get("holderIdentity"))
        return len(hosts) == 1 and holder.startswith(f"{hosts[0]}_")

    wait_until(
        leads,
        SECONDS,
        "the new pod to lead",
        explain=lambda: (cluster.api.list(pods), cluster.api.get(lease)),
    )
    wait_until(lambda: said() == [], SECONDS, "all to be well", explain=lambda: str(said()))

    # Both times are written in whole seconds: within one of them nobody can tell which came first.
    time.sleep(2)
    change(f".{namespace}.user", f".{namespace}.changed")
    (stale,) = said()
    assert (stale.severity, "which leads, started before" in stale.evidence) == ("error", True)


def account_that_may(cluster: ControlPlane, namespace: str, verb: str, resource: str) -> Path:
    """The kubeconfig of an account that has this right in the whole cluster, and no other."""
    name = f"{namespace}-{resource.partition(',')[0]}"
    cluster.kubectl("create", "clusterrole", name, f"--verb={verb}", f"--resource={resource}")
    account = f"--serviceaccount={namespace}:default"
    cluster.kubectl("create", "clusterrolebinding", name, f"--clusterrole={name}", account)
    return cluster.service_account_kubeconfig(namespace, "default")
