"""The namespace takes Roost's own pods as they are rendered: Pod Security, OpenShift's constraints,
quotas.
"""

from typing import Final

from roost.doctor.contract import Install, Told, error
from roost.doctor.evidence import name_of
from roost.doctor.try_pod import try_template
from roost_core.kube.client import ApiError

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
    "exceeded quota": "Raise the namespace's ResourceQuota, or lower the component's resources.",
}


def check(install: Install) -> Told:
    workloads = [
        body
        for kind in ("Deployment", "DaemonSet", "StatefulSet")
        for body in install.of_kind(kind)
    ]
    yield f"dry-run pods of {len(workloads)} workloads"
    for workload in workloads:
        try:
            try_template(install.client, install.release.namespace, workload["spec"]["template"])
        except ApiError as refusal:
            reason = next((reason for reason in _REFUSALS if reason in str(refusal)), None)
            if reason is None:
                raise
            yield error(f"Pods of {name_of(workload)} are refused: {refusal}", _REFUSALS[reason])
