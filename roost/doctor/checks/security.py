"""The namespace takes Roost's own pods as they are rendered: Pod Security, OpenShift's constraints,
quotas.
"""

from typing import Final

from roost.doctor.conditions import NO_NAMESPACE, State, component_of, conditions
from roost.doctor.evidence import name_of, some
from roost.doctor.findings import CheckReport, error
from roost.doctor.install import Install
from roost.doctor.quotas import EXCEEDED, quota_in_refusal
from roost.doctor.try_pod import try_template
from roost_core.kube.client import ApiError
from roost_core.objects.fields import JSONObject

# What a refusal says, and how to mend it. A quota is mended by `_quota_fix`.
_FIXES: Final = {
    "violates PodSecurity": (
        "Pods with hostNetwork need a namespace whose label pod-security.kubernetes.io/enforce is "
        "privileged, or none: docs/threat-model.md. All others pass `restricted`."
    ),
    "security context constraint": (
        "OpenShift gives each namespace users of its own: set podSecurityContext: "
        "{runAsUser: null, runAsGroup: null, fsGroup: null} (docs/how-to/clouds.md#openshift)."
    ),
}


def check(install: Install) -> CheckReport:
    workloads = [
        body
        for kind in ("Deployment", "DaemonSet", "StatefulSet")
        for body in install.of_kind(kind)
    ]
    yield f"dry-run pods of {len(workloads)} workloads"
    refused: dict[str, list[tuple[JSONObject, str]]] = {}
    for workload in workloads:
        try:
            try_template(install.client, install.release.namespace, workload["spec"]["template"])
        except ApiError as refusal:
            reasons = [reason for reason in (*_FIXES, EXCEEDED) if reason in str(refusal)]
            if not reasons:
                raise
            refused.setdefault(reasons[0], []).append((workload, str(refusal)))
    for reason, found in refused.items():
        names = some([name_of(workload) for workload, _ in found])
        _, first = found[0]
        components = [component_of(workload) for workload, _ in found]
        brought = conditions(State.BROKEN, *components)
        if reason == EXCEEDED:
            quota = quota_in_refusal(first)
            fix = _quota_fix(install.release.namespace, quota)
            if quota:
                brought |= conditions(State.QUOTA_FULL, quota)
        else:
            fix = _FIXES[reason]
        yield error(
            f"Pods of {names} are refused: {first}", fix, brings=brought, follows=NO_NAMESPACE
        )


def _quota_fix(namespace: str, quota: str) -> str:
    """quota: the ResourceQuota's name; "": the refusal doesn't name it."""
    command = f" (`kubectl --namespace {namespace} edit resourcequota {quota}`)" if quota else ""
    return f"Raise the namespace's ResourceQuota{command}, or lower what its pods request."
