"""What `roost doctor` says of a cluster around an install: kubelets, clocks, policies, providers,
the API server.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.faults import ValuesError
from roost.cli import run
from roost.commands import doctor
from roost.commands.hub_values import read_hub
from roost.doctor.checks import BEFORE, INSTALLED, idle_servers, run_checks, slow_starts
from roost.doctor.checks.kubelets import check
from roost_core.kube.client import ApiError, ClusterError
from roost_core.objects.fields import JSONObject
from roost_core.placement.labels import startup_taint
from tests.recorded_data import rows
from tests.unit.doctor.whole_cluster import (
    LISTED,
    NODES,
    PLACED,
    PODS,
    POLICIES,
    Cluster,
    ago,
    found,
    node,
    pod,
)


def test_users_out_of_the_pullers_reach_or_whom_cluster_autoscaler_may_end_are_told() -> None:
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


@pytest.mark.parametrize(
    ("version", "is_told"), [("v1.33.9", 1), ("v1.34.0-eks-1", 0), ("v1.37.9", 0), ("v1.38.0", 1)]
)
def test_a_kubelet_that_is_too_old_or_newer_than_the_api_server_is_told(
    version: str, is_told: int
) -> None:
    cluster = Cluster("")
    other = node("other")
    other["status"]["nodeInfo"]["kubeletVersion"] = version
    other["metadata"]["labels"]["kubernetes.io/arch"] = "arm64"
    cluster.lists[NODES] = [node("usual"), other]
    outcomes = run_checks(cluster.install, BEFORE)
    (outcome,) = (one for one in outcomes if one.check == "node-versions")
    assert outcome.looked_at.endswith(" on arm64, unknown")
    assert [finding.evidence.endswith(f": other ({version}).") for finding in outcome.findings] == [
        True
    ] * is_told


@pytest.mark.parametrize(("runtime", "is_told"), rows("doctor/container-runtimes"))
def test_a_runtime_that_cannot_mount_images_is_an_error_where_the_puller_does(
    runtime: str, is_told: bool
) -> None:
    for method, counts in (("auto", True), ("noop", False)):
        cluster = Cluster(f"{LISTED}\nprePuller: {{method: {method}}}")
        old = node("old")
        old["status"]["nodeInfo"]["containerRuntimeVersion"] = runtime
        cluster.lists[NODES] = [old]
        assert bool(cluster.said("image-volumes")) is (is_told and counts)


def node_pool(taint: str) -> JSONObject:
    template = {"spec": {"startupTaints": [{"key": taint}]}}
    spec = {"disruption": {"consolidationPolicy": "WhenEmpty"}, "template": template}
    return {"metadata": {"name": "users"}, "spec": spec}


def test_startup_taints_that_outlive_a_start_are_told() -> None:
    cluster = Cluster()
    own = startup_taint("hub", "jhub")
    cluster.lists["/apis/karpenter.sh/v1/nodepools"] = [node_pool("cilium")]
    cluster.lists[NODES] = [
        node("a", taints=[own]),
        node("b", taints=["cilium"]),
        node("c", taints=["other"]),
    ]
    cluster.lists[NODES].append(node("young", age=60, taints=[own]))
    cluster.tells("startup-taints", "warning", "2 startup taints", "b (cilium)")


@pytest.mark.parametrize(("mode", "is_told"), [("requireLabel", True), ("startupTaint", False)])
def test_a_node_pool_with_a_taint_that_nobody_takes_off_is_an_error(
    mode: str, is_told: bool
) -> None:
    cluster = Cluster(f"imageGate: {{mode: {mode}}}")
    cluster.lists["/apis/karpenter.sh/v1/nodepools"] = [node_pool(startup_taint("hub", "jhub"))]
    assert [finding.severity for finding in cluster.said("startup-taints")] == ["error"] * is_told


def policy(name: str, ingress: list[JSONObject], selector: JSONObject | None = None) -> JSONObject:
    spec = {"podSelector": selector or {}, "policyTypes": ["Ingress"], "ingress": ingress}
    return {"metadata": {"name": name}, "spec": spec}


def test_policies_that_keep_the_api_server_out_are_told_unless_one_lets_all_in() -> None:
    cluster = Cluster("networkPolicy: {enabled: false}")
    assert cluster.said("network") == []
    somewhere: JSONObject = {"from": [{"podSelector": {}}]}
    cluster.lists[POLICIES] = [policy("deny", []), policy("own-pods", [somewhere])]
    cluster.tells("network", "warning", "deny, own-pods", fix="webhookReviews")
    port = cluster.install.values["webhook"]["port"]
    for rule in ({}, {"ports": [{"port": port}]}, {"ports": [{"port": 1, "endPort": 65535}]}):
        cluster.lists[POLICIES] = [policy("deny", []), policy("open", [rule])]
        assert cluster.said("network") == []
    cluster.lists[POLICIES] = [policy("of-others", [], {"matchLabels": {"app": "hub"}})]
    assert cluster.said("network") == []


@pytest.mark.parametrize(("said", "fix"), rows("doctor/namespace-refusals"))
def test_a_namespace_that_refuses_roosts_own_pods_is_an_error_with_the_fix(
    said: str, fix: str
) -> None:
    cluster = Cluster()
    cluster.refusal = ApiError(403, said)
    findings = cluster.said("security")
    assert {finding.severity for finding in findings} == {"error"}
    assert all(said in finding.evidence and fix in finding.fix for finding in findings)
    assert any("Deployment jhub/hub-roost-webhook" in finding.evidence for finding in findings)
    cluster.refusal = ApiError(403, "may not create pods")
    assert [finding.severity for finding in cluster.said("security")] == ["unknown"]


def of_provider(values: str, scheme: str) -> Cluster:
    cluster = Cluster(values)
    one = node("n")
    one["spec"]["providerID"] = f"{scheme.partition(' ')[0]}:///zone/n"
    cluster.lists[NODES] = [one]
    if scheme == "aws with its own plugin":
        cluster.objects["/apis/apps/v1/namespaces/kube-system/daemonsets/aws-node"] = {}
    if scheme == "aws in Auto Mode":
        one["metadata"]["labels"] = {"eks.amazonaws.com/compute-type": "auto"}
    if scheme == "openshift":
        cluster.objects["/apis"] = {"groups": [{"name": "security.openshift.io"}]}
    return cluster


@pytest.mark.parametrize(("values", "scheme", "is_installed", "expected"), rows("doctor/providers"))
def test_what_a_provider_asks_for_is_told_when_it_matters(
    values: str, scheme: str, is_installed: bool, expected: list[tuple[str, str]]
) -> None:
    cluster = of_provider(values, scheme)
    if is_installed:
        findings = cluster.said("platform")
    else:
        cluster.objects = {
            path: body for path, body in cluster.objects.items() if "roost" not in path
        }
        findings = found(run_checks(cluster.install, BEFORE), "platform")
    assert [finding.severity for finding in findings] == [severity for severity, _ in expected]
    assert all(fix in finding.fix for finding, (_, fix) in zip(findings, expected, strict=True))


def test_on_gke_its_own_scheduler_and_a_priority_that_its_autoscaler_ignores_are_told() -> None:
    values = "priorityClasses: {placeholder: -11}"
    cluster = of_provider(values, "gce")
    other = pod("ada", PLACED, spec={"schedulerName": "gke.io/optimize-utilization-scheduler"})
    cluster.lists[PODS] = [other]
    mutated, ignored = cluster.said("platform")
    assert "replaceSchedulers: [gke.io/optimize-utilization-scheduler]" in mutated.fix
    assert (ignored.severity, ignored.fix) == ("error", "priorityClasses.placeholder: -10")


POLICY = "admission: {mode: policy}"


def gate(name: str, value: int) -> str:
    return f'kubernetes_feature_enabled{{name="{name}",stage="BETA"}} {value}'


@pytest.mark.parametrize(
    ("values", "name"), [(LISTED, "ImageVolume"), (POLICY, "MutatingAdmissionPolicy")]
)
def test_a_feature_gate_that_is_off_is_an_error_where_something_needs_it(
    values: str, name: str
) -> None:
    for needs, is_told in ((values, True), ("", False)):
        cluster = Cluster(needs)
        cluster.texts["/metrics"] = [
            "# HELP kubernetes_feature_enabled x",
            gate("Other", 0),
            gate(name, 0),
        ]
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
        assert all(
            "ImageVolume" in finding.evidence and "/metrics" in finding.fix for finding in findings
        )


def test_kinds_that_the_api_server_does_not_serve_are_named() -> None:
    cluster = Cluster("monitoring: {serviceMonitor: {enabled: true}}")
    assert cluster.said("features") == []
    del cluster.served["/apis/monitoring.coreos.com/v1"]
    cluster.served["/apis/policy/v1"] = set()
    cluster.tells(
        "features",
        "error",
        "ServiceMonitor (monitoring.coreos.com/v1)",
        "PodDisruptionBudget (policy/v1)",
    )


def with_kubelets(values: str, *configs: dict[str, Any]) -> Cluster:
    """A cluster of one Ready node for each of these configurations: n0, n1 …"""
    cluster = Cluster(values)
    for number, config in enumerate(configs):
        cluster.lists[NODES].append(node(f"n{number}", images=3))
        cluster.kubelets[f"n{number}"] = config
    return cluster


SIXTY = yaml.safe_dump(
    {"prePuller": {"extraImages": {f"x{n}": {"name": f"a/x{n}", "tag": "1"} for n in range(60)}}}
)


def test_a_kubelet_that_holds_more_images_than_it_reports_is_told_by_its_own_limit() -> None:
    cluster = Cluster()
    cluster.lists[NODES] = [node("few"), node("many", images=50), node("all", images=70)]
    cluster.kubelets = {"all": {"nodeStatusMaxImages": -1}}
    cluster.tells(
        "kubelets", "warning", "1 of 3 kubelets", "many (50)", fix="nodeStatusMaxImages: -1"
    )


@pytest.mark.parametrize(("reported", "is_told"), [(10, True), (0, True), (50, False), (-1, False)])
def test_a_report_too_short_for_the_gate_is_told_where_it_holds_users_back(
    reported: int, is_told: bool
) -> None:
    for values, counts in (
        (LISTED, True),
        (f"{LISTED}\nimageGate: {{mode: 'off'}}", False),
        ("", False),
    ):
        cluster = with_kubelets(values, {"nodeStatusMaxImages": reported})
        findings = cluster.said("kubelets")
        assert [finding.severity for finding in findings] == ["warning"] * (is_told and counts)


@pytest.mark.parametrize(
    ("values", "config", "severity", "evidence"),
    [*rows("doctor/kubelets"), (SIXTY, {}, "warning", "fewer than 60 images: n0 (50)")],
)
def test_a_kubelets_settings_are_told(
    values: str, config: dict[str, Any], severity: str, evidence: str
) -> None:
    cluster = with_kubelets(values, config)
    if severity:
        cluster.tells("kubelets", severity, evidence)
    else:
        assert cluster.said("kubelets") == []


@pytest.mark.parametrize(
    ("version", "is_told"), [("v1.34.3", True), ("v1.35.0", False), ("", False)]
)
def test_a_kubelet_too_old_to_mount_images_is_an_error_where_the_puller_does(
    version: str, is_told: bool
) -> None:
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
    ((severity, evidence, fix, *_),) = cluster.said("kubelets")
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
    cluster.kubelets = {
        "other": {"imageGCHighThresholdPercent": 100},
        "down": ApiError(503, "gone"),
    }
    ((_, looked_at, findings),) = run_checks(cluster.install, {"kubelets": check})
    usual = "unused images go from 85 % of a disk on, down to 80 %; one pull at a time"
    assert looked_at == f"5 kubelets asked: {usual}, or unused images stay; one pull at a time"
    assert ["100): other." in finding.evidence for finding in findings] == [True]


PRESSURE = "node.kubernetes.io/disk-pressure"


def evicted(name: str, message: str) -> JSONObject:
    status = {"phase": "Failed", "reason": "Evicted", "message": message}
    return pod(name, PLACED, spec={"nodeName": "full"}, status=status)


def test_full_disks_are_told_with_what_their_kubelet_does() -> None:
    cluster = Cluster("podClasses: {user: {warm: null}}")
    cluster.lists[NODES] = [node("well"), node("full", taints=[PRESSURE])]
    cluster.kubelets = {
        "full": {
            "imageGCHighThresholdPercent": 70,
            "imageGCLowThresholdPercent": 60,
            "imageMaximumGCAge": "48h0m0s",
            "serializeImagePulls": False,
            "maxParallelImagePulls": 3,
        }
    }
    cluster.tells(
        "kubelets",
        "warning",
        "disk pressure, which take no pods: full.",
        "On full unused images go from 70 % of a disk on, down to 60 %, and after 48h0m0s; 3 pulls",
        fix="larger boot disk",
    )
    cluster.kubelets = {"full": ApiError(403, "nodes/proxy is forbidden")}
    cluster.tells(
        "kubelets",
        "warning",
        "disk pressure, which take no pods: full.",
        fix="kubectl get --raw /api/v1/nodes/full/proxy/configz",
    )


@pytest.mark.parametrize(
    ("message", "is_told"),
    [
        ("The node was low on resource: ephemeral-storage. Container notebook was using", True),
        ("The node had condition: [DiskPressure]. ", True),
        ("The node was low on resource: memory. Container notebook was using 9Gi", False),
    ],
)
def test_pods_that_were_evicted_for_their_disks_are_told(message: str, is_told: bool) -> None:
    cluster = Cluster("podClasses: {user: {warm: null}}")
    cluster.lists[NODES] = [node("full")]
    cluster.lists[PODS] = [evicted("jupyter-ada", message)]
    findings = [finding for finding in cluster.said("kubelets") if "evicted" in finding.evidence]
    assert ["jupyter-ada" in finding.evidence for finding in findings] == [True] * is_told


def test_kubelets_are_asked_though_pods_may_not_be_listed() -> None:
    cluster = with_kubelets(LISTED, {"imageGCHighThresholdPercent": 100})
    cluster.refused = {PODS}
    ((_, looked_at, findings),) = run_checks(cluster.install, {"kubelets": check})
    assert looked_at.startswith("1 kubelet asked")
    assert ["never delete images" in finding.evidence for finding in findings] == [True]


@given(long=st.integers(0, 12), short=st.integers(0, 60), hours=st.integers(25, 400))
@settings(max_examples=25, deadline=None)
def test_servers_of_days_are_told_where_they_are_many(long: int, short: int, hours: int) -> None:
    cluster = Cluster()
    users = [pod(f"jupyter-long-{number}", PLACED) for number in range(long)]
    users += [pod(f"jupyter-short-{number}", PLACED) for number in range(short)]
    for number, user in enumerate(users):
        user["metadata"]["creationTimestamp"] = ago(hours * 3600 if number < long else 3600 * 20)
    cluster.lists[PODS] = users
    ((_, looked_at, findings),) = run_checks(cluster.install, {"idle-servers": idle_servers.check})
    is_told = long >= 3 and 10 * long >= long + short
    assert [f"{long} of {long + short} users' servers" in said for _, said, *_ in findings] == [
        True
    ] * is_told
    assert looked_at.startswith(f"how long {long + short} users' servers run")


class ClusterOfVersion(Cluster):
    """A cluster that says its version, as the command asks it."""

    def get(
        self, path: str, query: Mapping[str, Any] | None = None, /, *, read_seconds: float = 0.0
    ) -> JSONObject:
        if path == "/version":
            return {"gitVersion": "v1.37.2"}
        return super().get(path, query, read_seconds=read_seconds)


SECRETS_OF_HUB = """
hub: {config: {GitHubOAuthenticator: {client_secret: hunter2}}, cookieSecret: hunter2,
  services: {c: {apiToken: hunter2, command: [jupyterhub-idle-culler, --token=hunter2]}}}
proxy: {secretToken: hunter2}
"""


@pytest.mark.parametrize(("values", "found", "fix"), rows("doctor/cullings"))
def test_a_hub_that_ends_idle_servers_late_is_told_by_its_values_alone(
    values: str, found: str, fix: str, tmp_path: Path
) -> None:
    file = tmp_path / "hub.yaml"
    file.write_text(values)
    cluster = Cluster()
    cluster.install = replace(cluster.install, hub=read_hub([str(file)]))
    if not found:
        assert cluster.said("idle-servers") == []
        return
    cluster.tells("idle-servers", "warning", found, fix=fix)


def test_a_culler_that_the_hub_runs_itself_is_unknown(tmp_path: Path) -> None:
    file = tmp_path / "hub.yaml"
    file.write_text(SECRETS_OF_HUB + "cull: {enabled: false}")
    cluster = Cluster()
    cluster.install = replace(cluster.install, hub=read_hub([str(file)]))
    own = "hub.services.c runs a culler of the hub's own"
    cluster.tells("idle-servers", "unknown", own, fix="end servers after 1800 idle seconds")


def test_without_the_hubs_values_it_is_said_how_its_culler_is_looked_at() -> None:
    cluster = Cluster()
    ((_, looked_at, findings),) = run_checks(cluster.install, {"idle-servers": idle_servers.check})
    assert findings == ()
    assert looked_at.endswith(
        "after how long the hub ends idle ones is told with --hub-values FILE"
    )


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize("before", [(), ("--before-install",)])
def test_of_the_hubs_values_nothing_but_its_culler_is_printed(
    form: str,
    before: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "hub.yaml"
    file.write_text(SECRETS_OF_HUB + "cull: {timeout: hunter2, every: 7}")
    later = tmp_path / "later.yaml"
    later.write_text("cull: {timeout: 5400}")
    monkeypatch.setattr(doctor, "connect_as_user", lambda *_: ClusterOfVersion())
    arguments = ["doctor", "--release", "hub", "-n", "jhub", "--format", form, *before]
    for files in ([file], [file, later]):
        run([*arguments, *(f"--hub-values={path}" for path in files)])
        printed = capsys.readouterr()
        assert "hunter2" not in printed.out + printed.err
        assert "hub.services.c runs a culler of the hub's own" in printed.out
        isnt_number = "timeout, every or maxAge isn't a whole number of seconds" in printed.out
        assert isnt_number == (later not in files)
        assert ("cull.timeout is 5400 and cull.every 7." in printed.out) == (later in files)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("password: hunter2\nhub: [", "hub.yaml:3"),
        ("hub: {cookieSecret: hunter2, cookieSecret: hunter2}\nauth: {{hunter2", "hub.yaml"),
        ("{proxy: hunter2, jupyterhub: hunter2}", "hub.yaml:1"),
        ("other: {password: hunter2}", "values of zero-to-jupyterhub or BinderHub"),
    ],
)
def test_a_file_that_holds_no_hub_is_refused_without_its_content(
    text: str, said: str, tmp_path: Path
) -> None:
    file = tmp_path / "hub.yaml"
    file.write_text(text)
    with pytest.raises(ValuesError) as refused:
        read_hub([str(file)])
    assert said in str(refused.value)
    assert "hunter2" not in str(refused.value)


def with_request(name: str, cpu: str, *, of_pod: str = "") -> JSONObject:
    """A user's server on node-a, by what its container and the whole pod request of CPU; "": no
    CPU.
    """
    own, whole = ({"requests": {"cpu": amount}} if amount else {} for amount in (cpu, of_pod))
    containers = [{"name": "notebook", "resources": own}]
    spec = {"nodeName": "node-a", "containers": containers, "resources": whole}
    return pod(name, PLACED, spec=spec)


@pytest.mark.parametrize(("bare", "is_told"), [(0, False), (9, False), (10, True)])
def test_users_servers_without_a_request_of_cpu_are_told_where_they_are_some(
    bare: int, is_told: bool
) -> None:
    cluster = Cluster()
    cluster.lists[PODS] = [with_request(f"jupyter-bare-{number}", "") for number in range(bare)]
    cluster.lists[PODS] += [with_request("jupyter-ada", "50m")]
    findings = cluster.said("slow-starts")
    assert [f"{bare} of {bare + 1} users' servers" in said for _, said, *_ in findings] == [
        True
    ] * is_told
    assert not any("jupyter-ada" in finding.evidence for finding in findings)


@pytest.mark.parametrize(
    ("cpu", "of_pod", "values", "is_told"),
    [
        ("0", "", "", True),
        ("0m", "0", "", True),
        ("", "50m", "", False),
        # A release that changes no pod at admission judges none.
        ("", "", "enabled: false", False),
    ],
)
def test_a_request_of_cpu_is_what_the_whole_pod_requests(
    cpu: str, of_pod: str, values: str, is_told: bool
) -> None:
    cluster = Cluster(values)
    cluster.lists[PODS] = [
        with_request(f"jupyter-{number}", cpu, of_pod=of_pod) for number in range(10)
    ]
    ((_, looked_at, findings),) = run_checks(cluster.install, {"slow-starts": slow_starts.check})
    assert ["10 of 10 users' servers" in said for _, said, *_ in findings] == [True] * is_told
    assert looked_at.startswith(f"CPU requests of {0 if values else 10} user servers")


@pytest.mark.parametrize(("disk", "is_told"), [("pd-standard", True), ("pd-balanced", False)])
def test_slow_boot_disks_of_users_nodes_are_told(disk: str, is_told: bool) -> None:
    cluster = Cluster()
    nodes = [node("node-a"), node("node-without-users")]
    for one in nodes:
        one["metadata"]["labels"]["cloud.google.com/gke-boot-disk"] = disk
    cluster.lists[NODES] = nodes
    cluster.lists[PODS] = [with_request("jupyter-ada", "50m")]
    findings = cluster.said("slow-starts")
    assert ["pd-standard: node-a." in finding.evidence for finding in findings] == [True] * is_told


KEY = "hub.jupyter.org/node-purpose"
POOL = "cloud.google.com/gke-nodepool"


@given(
    labelled=st.integers(0, 4),
    lost=st.integers(0, 4),
    core=st.integers(0, 3),
    by_taint=st.booleans(),
)
@settings(max_examples=25, deadline=None)
def test_a_node_that_lost_its_purpose_is_named_with_the_command_that_mends_it(
    labelled: int, lost: int, core: int, by_taint: bool
) -> None:
    cluster = Cluster()
    users = {} if by_taint else {POOL: "users"}
    drawn = [
        *((f"u{number}", {**users, KEY: "user"}) for number in range(labelled)),
        *((f"lost{number}", users) for number in range(lost)),
        *((f"c{number}", {POOL: "core"}) for number in range(core)),
        *((f"d{number}", {KEY: "core", POOL: "users"}) for number in range(core)),
    ]
    for name, labels in drawn:
        body = node(name)
        body["metadata"]["labels"] = labels
        cluster.lists[NODES].append(body)
    if by_taint:
        dedicated = {"key": "hub.jupyter.org/dedicated", "value": "user", "effect": "NoSchedule"}
        for body in cluster.lists[NODES][labelled : labelled + lost]:
            body["spec"]["taints"] = [dedicated]
    reach = found(run_checks(cluster.install, {"reach": INSTALLED["reach"]}), "reach")
    said = [finding for finding in reach if KEY in finding.evidence]
    assert [finding.severity for finding in said] == ["warning"] * bool(labelled and lost)
    for finding in said:
        commands = [f"kubectl label node lost{number} {KEY}=user" for number in range(lost)]
        assert all(command in finding.fix for command in commands)
        assert " c0" not in finding.evidence


_GPU = "2i2c/has-gpu"
_DEDICATED = {"key": "hub.jupyter.org/dedicated", "value": "user", "effect": "NoSchedule"}
_PROFILES = "singleuser: {image: {name: a/b, tag: '1'}, nodeSelector: {%s}, profileList: [%s]}\n"


@given(
    gpu=st.integers(0, 4),
    lost=st.integers(0, 3),
    cpu=st.integers(0, 4),
    has_pools=st.booleans(),
    selector=st.sampled_from(["", "2i2c/size: small"]),
    profiles=st.permutations(
        [
            "{display_name: cpu}",
            "{display_name: gpu, kubespawner_override: {node_selector: {2i2c/has-gpu: 'true'}}}",
        ]
    ),
)
@settings(max_examples=25, deadline=None)
def test_a_dedicated_node_of_another_pool_needs_no_label_of_a_profile(
    *, gpu: int, lost: int, cpu: int, has_pools: bool, selector: str, profiles: list[str]
) -> None:
    cluster = Cluster(_PROFILES % (selector, ", ".join(profiles)))
    small = {"2i2c/size": "small"} if selector else {}
    drawn = [
        *((f"gpu{number}", "gpu", {**small, _GPU: "true"}) for number in range(gpu)),
        *((f"lost{number}", "gpu", small) for number in range(lost)),
        *((f"cpu{number}", "cpu", small) for number in range(cpu)),
    ]
    for name, pool, labels in drawn:
        body = node(name)
        of_pool = {POOL: pool} if has_pools else {}
        body["metadata"]["labels"] = {**of_pool, **labels, KEY: "user"}
        body["spec"]["taints"] = [_DEDICATED]
        cluster.lists[NODES].append(body)
    reach = found(run_checks(cluster.install, {"reach": INSTALLED["reach"]}), "reach")
    said = [finding for finding in reach if "without the label" in finding.evidence]
    told = [finding for finding in said if _GPU in finding.evidence]
    assert len(told) == (has_pools and gpu > 0 and lost > 0)
    for finding in told:
        assert "cpu" not in finding.evidence + finding.fix
        assert f"kubectl label node lost0 {_GPU}=true" in finding.fix
    assert said == told


@pytest.mark.parametrize(
    ("overhead", "selector", "told"),
    [
        ({}, {}, ""),
        ({"memory": "160Mi"}, {}, "resources.requests: {memory: 1184Mi}"),
        ({}, {"sandbox": "gvisor"}, "nodeSelector: {sandbox: 'gvisor'}"),
    ],
)
def test_placeholders_that_a_runtime_class_makes_too_small_or_leaves_elsewhere_are_told(
    overhead: dict[str, str], selector: dict[str, str], told: str
) -> None:
    cluster = Cluster(
        "placeholders: [{name: default, replicas: 2, resources: {requests: {memory: 1Gi}}}]"
    )
    path = "/apis/node.k8s.io/v1/runtimeclasses/gvisor"
    cluster.objects[path] = {
        "overhead": {"podFixed": overhead},
        "scheduling": {"nodeSelector": selector},
    }
    container = {"name": "notebook", "resources": {"requests": {"memory": "1Gi"}}}
    spec = {"containers": [container], "runtimeClassName": "gvisor", "overhead": overhead}
    cluster.lists[PODS] = [pod("a", PLACED, spec=spec)]
    said = found(
        run_checks(cluster.install, {"runtime-classes": INSTALLED["runtime-classes"]}),
        "runtime-classes",
    )
    assert [told in finding.fix for finding in said] == [True] * bool(told)
    del cluster.objects[path]
    cluster.tells("runtime-classes", "warning", "RuntimeClass gvisor", "is gone", others=())
