"""Taints of autoscalers and clouds that say that a node is leaving, or may leave."""

from typing import Final

# For certain. Source: cluster-autoscaler's utils/taints; Karpenter's taints.go of apis/v1,
# `disruption` of v1beta1.
LEAVING_TAINTS: Final = frozenset(
    {"ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted", "karpenter.sh/disruption"}
)
# It may leave: cluster-autoscaler considers it unneeded; its cloud reports it as shut down.
MAYBE_LEAVING_TAINTS: Final = frozenset(
    {"DeletionCandidateOfClusterAutoscaler", "node.cloudprovider.kubernetes.io/shutdown"}
)
ANY_LEAVING_TAINTS: Final = LEAVING_TAINTS | MAYBE_LEAVING_TAINTS
