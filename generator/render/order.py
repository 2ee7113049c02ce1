"""Own the order of objects: what others need comes first, what changes other people's pods comes last."""

from __future__ import annotations

from typing import Final

_KINDS: Final = (
    "Namespace",
    "PriorityClass",
    "CustomResourceDefinition",
    "ServiceAccount",
    "Secret",
    "ConfigMap",
    "ClusterRole",
    "ClusterRoleBinding",
    "Role",
    "RoleBinding",
    "Issuer",
    "Certificate",
    "Service",
    "DaemonSet",
    "Deployment",
    "StatefulSet",
    "PodTemplate",
    "CapacityBuffer",
    "PodDisruptionBudget",
    "NetworkPolicy",
    "ServiceMonitor",
    "PrometheusRule",
    "NodeReadinessRule",
)
# These act on the pods of a whole cluster from the moment they exist: all they call must be there by then.
_LAST: Final = (
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
    "ValidatingWebhookConfiguration",
    "MutatingWebhookConfiguration",
)
_RANKS: Final = {
    **{kind: index for index, kind in enumerate(_KINDS)},
    **{kind: len(_KINDS) + 1 + index for index, kind in enumerate(_LAST)},
}


def rank(kind: str) -> int:
    """Give a kind's place in the order; kinds that aren't known stand before the admission objects."""
    return _RANKS.get(kind, len(_KINDS))
