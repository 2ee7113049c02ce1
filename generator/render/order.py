"""The order of objects: those that others need come first, those that affect other pods of the
cluster last.
"""

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
    "PodDisruptionBudget",
    "NetworkPolicy",
    "ServiceMonitor",
    "PrometheusRule",
)
# These affect the pods of the whole cluster as soon as they exist: everything they call must exist
# by then.
_LAST: Final = (
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
    "ValidatingWebhookConfiguration",
    "MutatingWebhookConfiguration",
)
_UNKNOWN: Final = "any other"
_RANKS: Final = {kind: index for index, kind in enumerate((*_KINDS, _UNKNOWN, *_LAST))}


def rank(kind: str) -> int:
    """A kind's place in the order; unknown kinds come before the admission objects."""
    return _RANKS.get(kind, _RANKS[_UNKNOWN])
