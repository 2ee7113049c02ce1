"""Taints of autoscalers and clouds that say that a node is leaving, or may leave."""

from typing import Final

# It is leaving for certain. Source: cluster-autoscaler's utils/taints; Karpenter's apis/v1/taints.go, and
# apis/v1beta1/taints.go for `disruption`.
GOING_TAINTS: Final = frozenset({"ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted", "karpenter.sh/disruption"})
# It may leave: cluster-autoscaler considers it unneeded; its cloud reports it as shut down.
MAYBE_GOING_TAINTS: Final = frozenset(
    {"DeletionCandidateOfClusterAutoscaler", "node.cloudprovider.kubernetes.io/shutdown"}
)
LEAVING_TAINTS: Final = GOING_TAINTS | MAYBE_GOING_TAINTS
