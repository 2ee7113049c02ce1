"""Name the taints by which others say that a node is about to go, or may go."""

from __future__ import annotations

from typing import Final

# It goes, and nobody takes that back. Source: cluster-autoscaler's utils/taints; Karpenter's apis/v1/taints.go, and
# apis/v1beta1/taints.go for `disruption`.
GOING_TAINTS: Final = frozenset({"ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted", "karpenter.sh/disruption"})
# It may go, or stay after all: cluster-autoscaler finds it not needed for now; its cloud says that it is shut down.
MAYBE_GOING_TAINTS: Final = frozenset(
    {"DeletionCandidateOfClusterAutoscaler", "node.cloudprovider.kubernetes.io/shutdown"}
)
LEAVING_TAINTS: Final = GOING_TAINTS | MAYBE_GOING_TAINTS
