"""`roost doctor` tells one fault from another, by objects as an API server would return them."""

from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roost.doctor.checks import BEFORE, INSTALLED, run_checks, trial_pod
from roost_core.kube.client import ApiError
from roost_core.objects.fields import JSONObject
from roost_core.placement.labels import pulled_label
from tests.builders import HUB_RELEASE
from tests.recorded_data import rows
from tests.unit.doctor.whole_cluster import (
    APPS,
    ENDPOINTS,
    LEASES,
    PLACED,
    PODS,
    QUOTAS,
    WEBHOOK,
    Cluster,
    ago,
    ca_bundle,
    found,
    pod,
)


@pytest.mark.parametrize("values", rows("doctor/well"))
def test_nothing_is_found_where_all_is_well(values: str) -> None:
    cluster = Cluster(values)
    for checks in (INSTALLED, BEFORE):
        outcomes = run_checks(cluster.install, checks)
        assert [outcome for outcome in outcomes if outcome.findings] == []
        assert len(outcomes) == len(checks)
        assert all(outcome.looked_at for outcome in outcomes)


DEPLOYMENT: Final = f"{APPS}/deployments/hub-roost-webhook"


def test_what_differs_from_the_values_is_named_by_its_fields_but_not_what_controllers_own() -> None:
    cluster = Cluster()
    live = cluster.objects[DEPLOYMENT]
    live["metadata"] |= {
        "annotations": {"deployment.kubernetes.io/revision": "3"},
        "resourceVersion": "7",
    }
    live["metadata"]["labels"]["app.kubernetes.io/managed-by"] = "Helm"
    cluster.objects["/apis/scheduling.k8s.io/v1/priorityclasses/hub.jhub.roost-user"]["metadata"][
        "uid"
    ] = "1"
    assert cluster.said("objects") == []
    live["spec"]["template"]["spec"]["containers"][0]["image"] = "elsewhere:1"
    live["spec"]["template"]["spec"]["serviceAccountName"] = "other"
    named = "spec.template.spec.containers.webhook.image, spec.template.spec.serviceAccountName"
    evidence = f"1 object not as the values render: Deployment jhub/hub-roost-webhook ({named})."
    cluster.tells("objects", "error", evidence)
    cluster.refused = {DEPLOYMENT}
    cluster.tells(
        "objects", "unknown", "Not allowed to compare: Deployment jhub/hub-roost-webhook (PATCH"
    )
    cluster = Cluster()
    del cluster.objects[
        "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/hub.jhub.roost-scheduler"
    ]
    cluster.tells("objects", "error", "1 of ", "ClusterRoleBinding hub.jhub.roost-scheduler")


def test_of_a_release_that_is_not_there_nothing_of_its_own_is_well() -> None:
    cluster = Cluster()
    cluster.objects = {"/api/v1/namespaces/jhub": {}}
    cluster.admitted = {"annotations": {}}
    outcomes = run_checks(cluster.install, INSTALLED)
    assert [outcome.check for outcome in outcomes if outcome.findings] == [
        "objects",
        "leaders",
        "admission",
    ]


def test_a_program_whose_image_cannot_be_pulled_is_told_with_the_image() -> None:
    cluster = Cluster()
    deployment = cluster.objects[DEPLOYMENT]
    status = {
        "containerStatuses": [
            {"image": "roost:0.1.0", "state": {"waiting": {"reason": "ImagePullBackOff"}}}
        ]
    }
    for name, labels in (
        ("w-1", deployment["spec"]["template"]["metadata"]["labels"]),
        ("other", {}),
    ):
        cluster.lists[PODS].append({"metadata": {"name": name, "labels": labels}, "status": status})
    for ready, severity in ((0, "error"), (1, "warning")):
        deployment["status"]["readyReplicas"] = ready
        evidence = f"{ready} of 2 pods are ready: w-1 ImagePullBackOff (roost:0.1.0)."
        cluster.tells("programs", severity, evidence, fix="docs/install-helm.md#the-image")
    cluster.lists[PODS] = []
    cluster.tells(
        "programs", "warning", "1 of 2 pods are ready.", fix="/readyz says what a program waits for"
    )


def test_a_rollout_that_stopped_is_no_running_program_though_older_pods_are_ready() -> None:
    cluster = Cluster()
    deployment = cluster.objects[DEPLOYMENT]
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    unscheduled = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "0/3 nodes",
    }
    cluster.lists[PODS] = [
        {"metadata": {"name": "w-2", "labels": labels}, "status": {"conditions": [unscheduled]}}
    ]
    stopped = {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}
    deployment["status"] |= {"conditions": [stopped], "updatedReplicas": 1}
    older = (
        "its rollout stopped with 1 of 2 pods replaced (ProgressDeadlineExceeded), so older pods"
        " serve"
    )
    cluster.tells("programs", "error", older, "w-2 Unschedulable (0/3 nodes)")
    deployment["status"] = {"readyReplicas": 2, "observedGeneration": 1}
    deployment["metadata"]["generation"] = 2
    ((_, evidence, *_),) = cluster.said("programs")
    assert "isn't rolled out yet (observedGeneration)" in evidence
    # Before a deadline has passed, the newest pods tell.
    deployment["status"]["observedGeneration"] = 2
    assert cluster.said("programs") == []
    waiting = {"image": "roost:no", "state": {"waiting": {"reason": "ImagePullBackOff"}}}
    cluster.lists[PODS][0]["status"] = {"containerStatuses": [waiting]}
    cluster.tells(
        "programs", "error", "its newest pods don't start, so older pods serve", "(roost:no)"
    )


@pytest.mark.parametrize(("replicas", "severity"), [(0, "error"), (1, "warning")])
def test_other_replicas_than_the_values_say_are_told(replicas: int, severity: str) -> None:
    cluster = Cluster()
    deployment = cluster.objects[DEPLOYMENT]
    deployment["spec"]["replicas"] = deployment["status"]["readyReplicas"] = replicas
    cluster.tells("programs", severity, f"{replicas} replicas, the values say 2")


def test_a_placeholder_or_puller_whose_image_cannot_be_pulled_is_told_with_the_image() -> None:
    cluster = Cluster("prePuller: {extraImages: {a: {name: a/b, tag: '1'}}}")
    for kind in ("DaemonSet", "StatefulSet"):
        (body,) = cluster.install.of_kind(kind)
        # What a volume's image can't be pulled for stands at the container that mounts it.
        waiting = {
            "reason": "ErrImagePull",
            "message": 'failed to pull and unpack image "far:1": not found',
        }
        status = {"containerStatuses": [{"image": "pause:1", "state": {"waiting": waiting}}]}
        metadata = {"name": f"p-{kind}", "labels": body["spec"]["template"]["metadata"]["labels"]}
        cluster.lists[PODS].append({"metadata": metadata, "spec": {}, "status": status})
        # Those that wait for room do what they are for.
        full = {
            "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]
        }
        cluster.lists[PODS].append({"metadata": metadata, "spec": {}, "status": full})
    findings = cluster.said("programs")
    assert [finding.severity for finding in findings] == ["warning", "warning"]
    felt = {finding.evidence.split()[0]: finding.is_felt for finding in findings}
    assert felt == {"DaemonSet": True, "StatefulSet": False}
    assert all("ErrImagePull (far:1)" in finding.evidence for finding in findings)
    assert not any("Unschedulable" in finding.evidence for finding in findings)


@pytest.mark.parametrize(
    "spec", [None, {"renewTime": None}, {"holderIdentity": "a", "renewTime": ago(3600)}]
)
def test_a_lease_that_nobody_renews_means_that_nobody_leads(spec: JSONObject | None) -> None:
    cluster = Cluster()
    cluster.objects[f"{LEASES}/hub-roost-scheduler"]["spec"] = spec
    cluster.tells("leaders", "error", "Lease jhub/hub-roost-scheduler")


@given(st.sampled_from([None, "", "hub-roost-scheduler-0_1"]), st.none() | st.integers(0, 7200))
@settings(max_examples=30)
def test_a_lease_says_why_nobody_leads_by_its_holder_first(
    holder: str | None, age: int | None
) -> None:
    renewed = None if age is None else ago(age)
    cluster = Cluster()
    spec = {"holderIdentity": holder, "renewTime": renewed}
    cluster.objects[f"{LEASES}/hub-roost-scheduler"]["spec"] = spec
    told = [finding.evidence for finding in cluster.said("leaders")]
    # Whoever gives a Lease up writes when: that is no renewal.
    if not holder:
        assert told == ["Lease jhub/hub-roost-scheduler has no holder: nobody leads."]
    elif age is None:
        assert told == ["Lease jhub/hub-roost-scheduler was never renewed: nobody leads."]
    elif age <= 55:
        assert told == []
    elif age > 60:
        assert len(told) == 1
        assert "was renewed" in told[0]


@pytest.mark.parametrize(
    ("bundle", "evidence"),
    [
        (ca_bundle(0), "(expired 1970-01-02 00:00 UTC)"),
        ("LS0t", "(not a certificate)"),
        (None, "no caBundle in"),
    ],
)
def test_a_useless_ca_bundle_or_a_service_without_pods_is_an_error(
    bundle: str | None, evidence: str
) -> None:
    cluster = Cluster()
    cluster.objects[WEBHOOK]["webhooks"][0]["clientConfig"]["caBundle"] = bundle
    cluster.tells("webhook", "error", evidence)
    cluster = Cluster()
    cluster.lists[ENDPOINTS][0]["endpoints"][0]["conditions"]["ready"] = False
    cluster.tells("webhook", "error", "Service jhub/hub-roost-webhook has no ready pod")


def test_rules_other_than_the_values_and_a_webhook_that_keeps_old_ones_are_told() -> None:
    cluster = Cluster()
    path = "/api/v1/namespaces/jhub/configmaps/hub-roost-release"
    other = Cluster("podClasses: {user: {join: {user: 1}}}")
    cluster.objects[path] = other.objects[path]
    (kept,) = cluster.said("admission", "objects")
    assert (kept.severity, "The webhook places pods by revision" in kept.evidence) == (
        "warning",
        True,
    )
    cluster.admitted = other.admitted
    assert cluster.said("admission", "objects") == [], "the webhook has followed"


def test_users_made_without_roost_or_left_to_another_scheduler_or_evictable_are_told() -> None:
    cluster = Cluster()
    for name, scheduler in (("a", "hub.jhub.user"), ("b", "default-scheduler"), ("c", "theirs")):
        cluster.lists[PODS].append(pod(name, PLACED, spec={"schedulerName": scheduler}))
    away, chosen = cluster.said("users")
    assert ("default-scheduler: b." in away.evidence, "was away" in away.fix) == (True, True)
    assert ("theirs: c." in chosen.evidence, "replaceSchedulers: [theirs]" in chosen.fix) == (
        True,
        True,
    )
    assert "mutatingwebhookconfigurations" in chosen.fix, "a webhook may have named it since"
    told = Cluster("replaceSchedulers: [theirs]")
    told.lists[PODS] = [pod("c", PLACED, spec={"schedulerName": "theirs"})]
    assert "replaceSchedulers has it already" in told.said("users")[0].fix
    cluster = Cluster()
    cluster.lists[PODS] = [pod("a", PLACED), *(pod(f"b{number}") for number in range(5))]
    cluster.tells(
        "users", "warning", "5 of 6 users' pods were made without Roost: b0, b1, b2 and 2 more."
    )
    cluster = Cluster()
    cluster.lists["/apis/karpenter.sh/v1/nodepools"] = [
        {
            "metadata": {"name": "users"},
            "spec": {"disruption": {"consolidationPolicy": "WhenEmptyOrUnderutilized"}},
        }
    ]
    cluster.lists[PODS] = [
        pod("a", PLACED),
        pod("b", {**PLACED, "karpenter.sh/do-not-disrupt": "true"}),
    ]
    evidence = "Karpenter (NodePool users) may end 1 of 2 users' pods to save a node: a."
    cluster.tells(
        "autoscaler", "warning", evidence, fix="where it has one): singleuser.extraAnnotations"
    )


def test_a_node_long_without_an_image_and_an_autoscaler_ignoring_placeholders_are_named() -> None:
    cluster = Cluster()
    label = pulled_label("hub", "jhub", "a/b:1")
    for name, age, value in (
        ("old", 7200, "pulling"),
        ("new", 60, "pulling"),
        ("full", 7200, "true"),
    ):
        metadata = {"name": name, "creationTimestamp": ago(age), "labels": {label: value}}
        cluster.lists["/api/v1/nodes"].append({"metadata": metadata})
    cluster.tells("nodes", "warning", "1 node without an image", ": old.")
    container: JSONObject = {"image": "registry.k8s.io/autoscaling/cluster-autoscaler:v1.35.0"}
    spec = {"template": {"spec": {"containers": [container]}}}
    autoscaler = {"metadata": {"namespace": "kube-system", "name": "ca"}, "spec": spec}
    for arguments, is_told in ((["=-5"], True), (["=-10"], False), ([], False)):
        cluster = Cluster()
        container["command"] = [
            "./ca",
            *(f"--expendable-pods-priority-cutoff{value}" for value in arguments),
        ]
        cluster.lists["/apis/apps/v1/deployments"] = [autoscaler]
        assert bool(cluster.said("autoscaler")) is is_told


def test_a_pod_that_admission_leaves_alone_is_an_error_for_each_class() -> None:
    cluster = Cluster()
    cluster.admitted = {"annotations": {}}
    user, build = cluster.said("admission")
    assert "class user" in user[1]
    assert "class build" in build[1]
    assert "webhook.hostNetwork" in user[2]
    on_host = Cluster("webhook: {hostNetwork: true}")
    on_host.admitted = {"annotations": {}}
    assert not any("webhook.hostNetwork" in fix for _, _, fix, *_ in on_host.said("admission"))


def test_a_refused_pod_says_why_a_forbidden_one_is_unknown_the_default_schedulers_a_warning() -> (
    None
):
    cluster = Cluster()
    cluster.scheduler = "default-scheduler"
    assert {severity for severity, *_ in cluster.said("admission")} == {"warning"}
    cluster.admitted = ApiError(500, "failed calling webhook: context deadline exceeded")
    assert all(
        "context deadline exceeded" in evidence for _, evidence, *_ in cluster.said("admission")
    )
    cluster.admitted = cluster.refusal = ApiError(403, "POST: 403 Forbidden: pods is forbidden")
    ((severity, evidence, *_),) = found(
        run_checks(cluster.install, {"admission": trial_pod.check}), "admission"
    )
    assert (severity, "403" in evidence) == ("unknown", True)


def test_a_pod_that_comes_back_with_a_strangers_scheduler_is_told_of_other_webhooks() -> None:
    cluster = Cluster()
    cluster.scheduler = "volcano"
    user, build = cluster.said("admission")
    assert user.severity == build.severity == "warning"
    assert user.evidence == "A pod of class user is placed, and left to scheduler volcano."
    assert "kubectl get mutatingwebhookconfigurations" in user.fix
    assert "replaceSchedulers: [volcano]" in user.fix
    assert "the check leaders" not in user.fix, "Roost's scheduler need not be away"
    cluster.scheduler = "gke.io/optimize-utilization-scheduler"
    assert cluster.said("admission") == [], "the check platform tells of it"
    cluster.scheduler = "hub.other.user"
    assert len(cluster.said("admission")) == 2, "another release's isn't this one's"
    replacing = Cluster("replaceSchedulers: [volcano]")
    replacing.scheduler = "volcano"
    assert "see the check leaders" in replacing.said("admission")[0].fix


def test_a_pod_that_the_cluster_forbids_for_what_roost_adds_is_an_error() -> None:
    cluster = Cluster("sharedPools: {namespaceSelector: {}}")
    cluster.admitted = ApiError(
        403, "403: insufficient quota to match these scopes: [{CrossNamespacePodAffinity}]"
    )
    user, build = found(run_checks(cluster.install, {"admission": trial_pod.check}), "admission")
    assert user.severity == build.severity == "error"
    assert user.is_felt
    assert build.is_felt
    assert "class user is refused, and admitted without Roost: 403: insufficient" in user.evidence
    assert "sharedPools.namespaceSelector: null" in user.fix


def test_rights_that_lack_are_named_by_resource() -> None:
    cluster = Cluster()
    cluster.denied = {"clusterroles", "deployments"}
    ((severity, evidence, *_),) = found(run_checks(cluster.install, BEFORE), "rights")
    assert severity == "error"
    assert "clusterroles.rbac.authorization.k8s.io" in evidence
    assert "deployments.apps in jhub" in evidence


def test_a_namespace_that_is_missing_and_a_version_that_nobody_tested_are_told() -> None:
    cluster = Cluster(release=HUB_RELEASE._replace(kube_version="v1.39.0"))
    del cluster.objects["/api/v1/namespaces/jhub"]
    outcomes = run_checks(cluster.install, BEFORE)
    assert "1.33, 1.34, 1.35, 1.36, 1.37" in found(outcomes, "version")[0][1]
    assert found(outcomes, "namespace")[0][0] == "error"


def test_a_check_that_the_api_server_refuses_is_unknown_and_the_others_go_on() -> None:
    cluster = Cluster()
    cluster.refused = {QUOTAS}
    cluster.tells("requests", "unknown", "nobody may")


@pytest.mark.parametrize("minutes", [1, 29, 31, 600])
@pytest.mark.parametrize("what", ["spec", "pod"])
def test_after_a_change_of_images_each_node_has_half_an_hour(what: str, minutes: int) -> None:
    cluster = Cluster("singleuser: {image: {name: a/b, tag: '1'}}")
    metadata = {
        "name": "old",
        "creationTimestamp": ago(99999),
        "labels": {pulled_label("hub", "jhub", "a/b:1"): "pulling", "kubernetes.io/os": "linux"},
    }
    cluster.lists["/api/v1/nodes"] = [{"metadata": metadata}]
    (puller,) = cluster.install.of_kind("DaemonSet")
    live = cluster.objects[f"{APPS}/daemonsets/{puller['metadata']['name']}"]
    ages = {"spec": 99999.0, "pod": 99999.0, what: minutes * 60.0}
    live["metadata"]["managedFields"] = [
        {"manager": "helm", "time": ago(ages["spec"]), "fieldsV1": {"f:spec": {}}},
        {"manager": "kube-controller-manager", "time": ago(1), "subresource": "status"},
    ]
    labels = puller["spec"]["template"]["metadata"]["labels"]
    made = {"name": "p", "labels": labels, "creationTimestamp": ago(ages["pod"])}
    cluster.lists[PODS] = [{"metadata": made, "spec": {"nodeName": "old"}}]
    assert [finding.severity for finding in cluster.said("nodes")] == ["warning"] * (minutes > 30)
