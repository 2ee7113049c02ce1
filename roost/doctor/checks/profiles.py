"""kube-scheduler runs with the profiles that the values render to, and has accepted each.

kube-scheduler reads its configuration once, when it starts, and refuses it as a whole: one that
runs, and that started with this configuration, has accepted each profile in it.
"""

import re
from hashlib import sha256
from typing import Final

from roost.doctor import evidence
from roost.doctor.conditions import State, conditions
from roost.doctor.findings import CheckReport, Finding, warning
from roost.doctor.install import Install
from roost_core.kube.client import ApiError
from roost_core.objects.fields import JSONObject

# On the scheduler's pods: of the configuration for which they were created.
_CHECKSUM: Final = "checksum/config"
_LOG_SECONDS: Final = 600
# What was refused, in the API server's words; klog writes quotes within quotes with a backslash.
_QUOTED: Final = r'\\?"(?P<{}>[^"\\]*)\\?"'
_REFUSED: Final = re.compile(
    f"(?:{_QUOTED.format('name')} )?is forbidden: User {_QUOTED.format('user')} cannot"
    rf" (?P<verb>\w+) resource {_QUOTED.format('resource')} in API group"
    f" {_QUOTED.format('group')}(?: in the namespace {_QUOTED.format('namespace')})?"
)
_API: Final = "authorization.k8s.io/v1"
_ACCOUNT: Final = "system:serviceaccount:"


def check(install: Install) -> CheckReport:
    deployment = install.component("scheduler")
    rendered = evidence.config_map_of(install, deployment)
    if deployment is None or rendered is None:
        yield "no scheduler of Roost's is used"
        return
    wanted = evidence.read_profiles(rendered)
    yield f"{len(wanted)} profiles of {evidence.name_of(deployment)}"
    live = install.client.find(evidence.path_of(rendered))
    if live is None:
        return  # the check objects says so, and what differs
    lease = f"/apis/coordination.k8s.io/v1/namespaces/{install.release.namespace}/leases"
    spec = (install.client.find(f"{lease}/{deployment['metadata']['name']}") or {}).get(
        "spec"
    ) or {}
    holder = str(spec.get("holderIdentity") or "")
    for pod in evidence.labelled(install.pods, deployment["spec"]["selector"]["matchLabels"]):
        if pod["metadata"].get("deletionTimestamp"):
            continue
        name = pod["metadata"]["name"]
        # Its host's name, which tells its profiles: several pods that have the same ones may be the
        # one that leads.
        leads = holder.startswith(f"{pod['spec'].get('hostname') or name}_")
        if _is_stale(install, pod, live):
            yield Finding(
                "error" if leads or not holder else "warning",
                f"Pod {name}{', which leads,' if leads else ''} started before"
                f" {evidence.name_of(live)} was last changed: kube-scheduler has the profiles of"
                " then.",
                f"kubectl --namespace {install.release.namespace} rollout restart "
                f"deployment/{deployment['metadata']['name']}",
            )
        if leads:
            yield from _find_refusals(install, name)


def _find_refusals(install: Install, pod: str) -> CheckReport:
    """What the leading kube-scheduler is refused, by its own words."""
    try:
        lines = evidence.log_lines(install, pod, "kube-scheduler", {"sinceSeconds": _LOG_SECONDS})
    except ApiError as error:
        yield evidence.unreadable_log(pod, error)
        return
    forbidden = [line for line in lines if "is forbidden" in line and not _is_mended(install, line)]
    if forbidden:
        yield warning(
            f"The log of pod {pod}, which leads, has {len(forbidden)} refusals in the last"
            f" {_LOG_SECONDS / 60:.0f} minutes: {forbidden[-1][: evidence.LINE_LENGTH]}",
            "Its ClusterRoleBindings are part of the release: the check objects says whether they"
            " are there. Without rbac.create and clusterResources, bind them yourself"
            " (docs/install-manifests.md#without-cluster-wide-rights).",
            follows=conditions(State.BROKEN, "scheduler"),
        )


def _is_mended(install: Install, line: str) -> bool:
    """Whether what a line of the log was refused is allowed now: rights may come seconds after a
    program that needs them.
    """
    match = _REFUSED.search(line)
    if match is None:
        return False
    resource, _, subresource = match["resource"].partition("/")
    attributes = {
        "verb": match["verb"],
        "group": match["group"],
        "resource": resource,
        "subresource": subresource,
        "namespace": match["namespace"] or "",
        "name": match["name"] or "",
    }
    groups = []
    if match["user"].startswith(_ACCOUNT):
        # As the API server itself counts a service account to its groups.
        namespace = match["user"].split(":")[2]
        groups = [
            "system:serviceaccounts",
            f"system:serviceaccounts:{namespace}",
            "system:authenticated",
        ]
    review = {
        "apiVersion": _API,
        "kind": "SubjectAccessReview",
        "spec": {"user": match["user"], "groups": groups, "resourceAttributes": attributes},
    }
    try:
        answer = install.client.create(f"/apis/{_API}/subjectaccessreviews", review)
    except ApiError:
        # Who may not ask that is told what the log says.
        return False
    return bool(answer["status"].get("allowed"))


def _is_stale(install: Install, pod: JSONObject, config_map: JSONObject) -> bool:
    """Whether a pod's kube-scheduler started with another configuration than the ConfigMap's.

    The checksum on the pod says for which configuration it was created. A container that started
    after the last change of the data read the new data, whatever the pod was created for.
    """
    text = str((config_map.get("data") or {}).get(evidence.CONFIG_KEY, ""))
    if evidence.annotation_of(pod, _CHECKSUM) == sha256(text.rstrip("\n").encode()).hexdigest():
        return False
    statuses = (pod.get("status") or {}).get("containerStatuses") or [{}]
    status = next(
        (status for status in statuses if status.get("name") == "kube-scheduler"), statuses[0]
    )
    running_seconds = evidence.age_seconds(
        install, ((status.get("state") or {}).get("running") or {}).get("startedAt")
    )
    ages = [
        evidence.age_seconds(install, entry.get("time"))
        for entry in config_map["metadata"].get("managedFields") or []
        if "f:data" in (entry.get("fieldsV1") or {})
    ]
    changed = [age for age in ages if age is not None]
    return running_seconds is not None and bool(changed) and min(changed) < running_seconds
