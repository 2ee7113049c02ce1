"""What `roost doctor` says of the scheduler, of pods that no scheduler looks at, and of nodes that
users may use.
"""

from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.doctor.checks import INSTALLED, run_checks
from roost_core.kube.client import ApiError
from roost_core.objects.fields import JSONObject
from tests.recorded_data import rows
from tests.unit.doctor.whole_cluster import (
    APPS,
    LEASES,
    NODES,
    PLACED,
    PODS,
    Cluster,
    ago,
    found,
    node,
    pod,
)

CONFIG = "/api/v1/namespaces/jhub/configmaps/hub-roost-scheduler"
LOG = f"{PODS}/s-1/log"
REFUSAL = 'E1123 10:00:00.1 1 run.go:72] "command failed" err="unknown plugin Fit"'


def with_scheduler(*, changed: float = 600, checksum: str = "", **status: Any) -> Cluster:
    """A scheduler's pod s-1 that leads, started 300 s ago; changed: how many seconds ago its
    ConfigMap was changed.
    """
    cluster = Cluster()
    deployment = cluster.install.component("scheduler")
    assert deployment is not None
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    cluster.objects[CONFIG]["metadata"]["managedFields"] = [
        {"time": ago(changed), "fieldsV1": {"f:data": {}}},
        {"time": ago(1), "fieldsV1": {"f:metadata": {}}},
    ]
    cluster.objects[f"{LEASES}/hub-roost-scheduler"]["spec"]["holderIdentity"] = "s-1_abc"
    container = {"name": "kube-scheduler", "image": "k", "ready": True, "restartCount": 0, **status}
    container.setdefault("state", {"running": {"startedAt": ago(300)}})
    metadata = {"name": "s-1", "labels": labels, "annotations": {"checksum/config": checksum}}
    cluster.lists[PODS] = [
        {"metadata": metadata, "spec": {}, "status": {"containerStatuses": [container]}}
    ]
    cluster.texts[LOG] = ["I1123 fine"]
    return cluster


def test_a_scheduler_that_started_with_this_configuration_has_accepted_each_profile() -> None:
    cluster = with_scheduler()
    assert cluster.said("profiles") == []
    # The ConfigMap's labels changed later, and its data didn't: the rendered pods carry its
    # checksum.
    current = sha256(
        cluster.objects[CONFIG]["data"]["config.yaml"].rstrip("\n").encode()
    ).hexdigest()
    deployment = cluster.install.component("scheduler")
    assert deployment is not None
    assert deployment["spec"]["template"]["metadata"]["annotations"]["checksum/config"] == current
    assert with_scheduler(changed=10, checksum=current).said("profiles") == []


def test_a_scheduler_that_started_before_its_configuration_changed_is_told() -> None:
    fix = "rollout restart deployment/hub-roost-scheduler"
    with_scheduler(changed=10).tells(
        "profiles", "error", "Pod s-1, which leads, started before", fix=fix
    )
    spare = with_scheduler(changed=10)
    spare.objects[f"{LEASES}/hub-roost-scheduler"]["spec"]["holderIdentity"] = "s-2_abc"
    assert [finding.severity for finding in spare.said("profiles")] == ["warning"]


def test_a_scheduler_that_refuses_its_configuration_is_told_by_its_last_words() -> None:
    cluster = with_scheduler(
        ready=False, restartCount=2, state={"waiting": {"reason": "CrashLoopBackOff"}}
    )
    cluster.objects[f"{APPS}/deployments/hub-roost-scheduler"]["status"]["readyReplicas"] = 0
    cluster.texts[f"{LOG}?previous"] = ["I1123 starting", REFUSAL, "E1123 bye", "I1123 bye"]
    cluster.tells("programs", "error", f"Its last words: {REFUSAL}", fix="roost validate")
    cluster.texts[f"{LOG}?previous"] = ApiError(403, "pods/log is forbidden")
    unread, unready = cluster.said("programs")
    assert (unread.severity, "pods/log is forbidden" in unread.evidence) == ("unknown", True)
    assert "0 of 2 pods are ready: s-1 CrashLoopBackOff (k)." in unready.evidence


def test_rights_that_the_leading_scheduler_lacks_are_told_from_its_log() -> None:
    cluster = with_scheduler()
    cluster.texts[LOG] = [
        'E1123 reflector.go] "Failed to watch" err="pvcs is forbidden: User x cannot list"',
        "I fine",
    ]
    cluster.tells("profiles", "warning", "has 1 refusals", "pvcs is forbidden")
    cluster.texts[LOG] = ApiError(502, "no kubelet")
    assert [finding.severity for finding in cluster.said("profiles")] == ["unknown"]


_ACCOUNT = "system:serviceaccount:jhub:hub-roost-scheduler"
_CANNOT = f'is forbidden: User "{_ACCOUNT}" cannot'
_LIST = f'pvcs {_CANNOT} list resource "pvcs" in API group "" at the cluster scope'
_GET = f'leases "a" {_CANNOT} get resource "leases" in API group "c.io" in the namespace "jhub"'
_BIND = f'pods "p" {_CANNOT} create resource "pods/binding" in API group "" in the namespace "far"'
# Words of the API server, and the right that was missing.
_WORDS = (
    (_LIST, f"{_ACCOUNT} list pvcs"),
    (_GET, f"{_ACCOUNT} get c.io leases jhub a"),
    (_BIND, f"{_ACCOUNT} create pods binding far p"),
)


@given(
    lines=st.lists(st.sampled_from(_WORDS)),
    mended=st.sets(st.sampled_from(_WORDS)),
    is_quoted=st.booleans(),
)
def test_refusals_of_what_is_allowed_by_now_are_no_news(
    lines: list[tuple[str, str]], mended: set[tuple[str, str]], is_quoted: bool
) -> None:
    cluster = with_scheduler()
    # klog writes an error within quotes.
    cluster.texts[LOG] = [
        f'E1 x.go:1] "Failed" err="{words}"'.replace('"', '\\"') if is_quoted else f"E1 x] {words}"
        for words, _ in lines
    ]
    cluster.rights = {right for _, right in mended}
    left = [line for line in lines if line not in mended]
    said = cluster.said("profiles")
    assert [f"has {len(left)} refusals" in finding.evidence for finding in said] == [True] * bool(
        left
    )


def waiting(
    name: str, scheduler: str, age: float = 120, conditions: list[JSONObject] | None = None
) -> JSONObject:
    made: JSONObject = pod(name, PLACED, spec={"schedulerName": scheduler})
    made["metadata"] |= {"creationTimestamp": ago(age), "labels": {}}
    made["status"] = {"phase": "Pending", "conditions": conditions or []}
    return made


@pytest.mark.parametrize(("scheduler", "fix"), rows("doctor/no-schedulers"))
def test_pods_that_no_scheduler_looks_at_are_told_with_what_to_do(scheduler: str, fix: str) -> None:
    cluster = Cluster()
    said = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]
    full = waiting("full", scheduler, conditions=said)
    cluster.lists[PODS] = [waiting("ada", scheduler), waiting("new", scheduler, age=5), full]
    cluster.tells("waiting", "error", "longer: ada.", fix=fix)


@pytest.mark.parametrize(("status", "event", "told"), rows("doctor/waiting-users"))
def test_users_who_wait_for_long_are_told_by_cause(
    status: JSONObject, event: str, told: str
) -> None:
    spec = {} if "conditions" in status else {"nodeName": "a"}
    cluster = Cluster()
    users = [pod(name, PLACED, spec=spec, status=status) for name in ("ada", "bob", "new")]
    for user, age in zip(users, (900, 950, 5), strict=True):
        user["metadata"] |= {"uid": "u", "creationTimestamp": ago(age)}
    cluster.lists[PODS] = users
    said = {"involvedObject": {"uid": "u"}, "reason": event, "message": "x", "type": "Warning"}
    cluster.lists[PODS.replace("/pods", "/events")] = [said] if event else []
    findings = cluster.said("waiting")
    assert [finding.severity for finding in findings] == ["warning"] * bool(told)
    assert all(
        "2 user pods waiting" in finding.evidence and told in finding.evidence
        for finding in findings
    )


TERM = "{matchExpressions: [{key: p, operator: In, values: [u]}]}"
REQUIRED = "singleuser: {nodeSelector: {hub.jupyter.org/node-purpose: user}}\nplaceholders: []\n"
POOLS = (
    "singleuser: {profileList: [{display_name: GPU, kubespawner_override: {node_selector: {pool:"
    " gpu}}}]}\n"
)
RIGHT = {"hub.jupyter.org/node-purpose": "user"}
AUTOSCALER: JSONObject = {
    "metadata": {"namespace": "kube-system", "name": "ca"},
    "spec": {"template": {"spec": {"containers": [{"image": "cluster-autoscaler:v1"}]}}},
}


def labelled(name: str, labels: dict[str, str], taints: list[str] | None = None) -> JSONObject:
    made = node(name, taints=taints or [])
    made["metadata"]["labels"] = labels
    return made


def looked_at(cluster: Cluster) -> str:
    (said,) = [
        outcome.looked_at
        for outcome in run_checks(cluster.install, INSTALLED)
        if outcome.check == "reach"
    ]
    return said


def test_it_says_how_many_nodes_each_kind_of_pod_may_use() -> None:
    cluster = Cluster(POOLS + "placeholders: [{name: default, replicas: 1}]\n")
    cluster.lists[NODES] = [
        node("a"),
        node("b", pool="gpu"),
        node("c", taints=["theirs"], pool="gpu"),
    ]
    cluster.lists[PODS] = [
        pod("ada", PLACED, spec={"nodeSelector": {"pool": "gpu"}}, status={"phase": "Running"})
    ]
    assert (
        looked_at(cluster)
        == "of 3 nodes, may use: users + placeholders: 2, users (pool=gpu): 1, pods of class"
        " user: 1"
    )
    assert cluster.said("reach") == []


@pytest.mark.parametrize(("values", "nodes", "told"), rows("doctor/no-usable-nodes"))
def test_a_pool_that_users_cant_use_is_an_error(values: str, nodes: list[Any], told: str) -> None:
    cluster = Cluster(values)
    cluster.lists[NODES] = [labelled(*one) for one in nodes]
    cluster.tells("reach", "error", told)


def test_a_pool_that_is_all_cordoned_is_an_error_and_one_that_is_just_starting_is_not() -> None:
    cluster = Cluster(REQUIRED)
    cluster.lists[NODES] = [labelled("a", RIGHT)]
    cluster.lists[NODES][0]["spec"]["unschedulable"] = True
    cluster.tells("reach", "error", "they are cordoned")
    cluster = Cluster(REQUIRED)
    cluster.lists[NODES] = [labelled("a", RIGHT, ["node.kubernetes.io/not-ready"])]
    assert cluster.said("reach") == []


@pytest.mark.parametrize("way", ["deployment", "karpenter", "managed"])
def test_a_pool_without_nodes_is_fine_where_an_autoscaler_may_bring_them(way: str) -> None:
    cluster = Cluster(REQUIRED)
    cluster.lists[NODES] = [node("a")]
    if way == "deployment":
        cluster.lists["/apis/apps/v1/deployments"] = [AUTOSCALER]
    elif way == "karpenter":
        cluster.lists["/apis/karpenter.sh/v1/nodepools"] = []
    else:
        cluster.objects["/api/v1/namespaces/kube-system/configmaps/cluster-autoscaler-status"] = {}
    assert found(run_checks(cluster.install, INSTALLED), "reach") == []
    cluster.lists[NODES] = [node("a"), labelled("b", {"hub.jupyter.org/node-purpose": "core"})]
    assert found(run_checks(replace(cluster.install), INSTALLED), "reach") == []


@pytest.mark.parametrize(("values", "near"), rows("doctor/near-labels"))
def test_labels_of_nodes_that_are_nearly_those_required_are_named(
    values: str, near: dict[str, str]
) -> None:
    cluster = Cluster(values)
    # A pool without nodes is fine where an autoscaler may bring them; one that is misspelt never
    # comes.
    cluster.lists["/apis/karpenter.sh/v1/nodepools"] = []
    cluster.lists[NODES] = [labelled("a", near)]
    said = [each for severity, each, *_ in found(run_checks(cluster.install, INSTALLED), "reach")]
    ((key, value),) = near.items()
    assert [f"; nodes have {key}={value}." in each for each in said] == [True]
