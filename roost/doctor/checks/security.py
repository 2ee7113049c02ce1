"""The namespace takes Roost's own pods as they are rendered: Pod Security, OpenShift's constraints,
quotas.
"""

from typing import Final

from roost.doctor.conditions import NO_NAMESPACE, State, component_of, conditions
from roost.doctor.contract import Install, Told, error
from roost.doctor.evidence import name_of, some
from roost.doctor.quotas import EXCEEDED, quota_in_refusal
from roost.doctor.try_pod import try_template
from roost_core.kube.client import ApiError
from roost_core.objects.fields import JSONObject

# What a refusal says, and how to mend it.
_REFUSALS: Final = {
    "violates PodSecurity": (
        "Pods with hostNetwork need a namespace whose label pod-security.kubernetes.io/enforce is "
        "privileged, or none: docs/threat-model.md. All others pass `restricted`."
    ),
    "security context constraint": (
        "OpenShift gives each namespace users of its own: set podSecurityContext: "
        "{runAsUser: null, runAsGroup: null, fsGroup: null} (docs/how-to/openshift.md)."
    ),
    EXCEEDED: "Raise the namespace's ResourceQuota, or lower what its pods request.",
}


def check(install: Install) -> Told:
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
            reason = next((reason for reason in _REFUSALS if reason in str(refusal)), None)
            if reason is None:
                raise
            refused.setdefault(reason, []).append((workload, str(refusal)))
    for reason, found in refused.items():
        names = some([name_of(workload) for workload, _ in found])
        _, first = found[0]
        quota = quota_in_refusal(first)
        fix = _REFUSALS[reason]
        if quota:
            edit = f"kubectl --namespace {install.release.namespace} edit resourcequota {quota}"
            fix = f"Raise the namespace's ResourceQuota (`{edit}`), or lower what its pods request."
        components = [component_of(workload) for workload, _ in found]
        brought = conditions(State.BROKEN, *components)
        if quota:
            brought |= conditions(State.QUOTA_FULL, quota)
        yield error(
            f"Pods of {names} are refused: {first}", fix, brings=brought, follows=NO_NAMESPACE
        )
