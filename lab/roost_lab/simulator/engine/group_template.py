"""Model what an autoscaler expects a new node to look like.

Cluster Autoscaler copies a node of the group that runs, labels included, whoever wrote them, and
drops only what passes: startup taints and those of the node's conditions
(MixedTemplateNodeInfoProvider, SanitizedTemplateNodeInfoFromNodeInfo, SanitizeTaints). So what a
controller has written onto that node counts as if each new node had it: a required label that the
copied node has brings a node, one that it lacks brings none, though neither says anything about a
new node. It copies nodes that are Ready for a minute and without startup taints (and not cordoned),
whichever comes first in a list that has no order: here one of them is drawn anew each turn. With
none left it goes on with its last copy (--node-info-cache-expire-time, ten years); before the
first, and after a restart, with what the cloud says of the group, which has the group's own labels
only. Karpenter reads the NodePool always. A label of somebody else's that the NodePool doesn't name
is compatible with NotIn and DoesNotExist and with nothing else
(scheduling.Requirements.Compatible), which is what a node without that label matches. Where a pod
asked with NotIn, Karpenter gives the node that label with a random number as its value
(Requirement.Any): no value that anybody asks for, so here it comes without.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from roost_core.objects.node import HOSTNAME_LABEL, Node
from roost_core.placement.labels import STARTUP_PREFIXES
from roost_core.scheduler.state import ClusterState

# Taints of a node's conditions.
_CONDITION_TAINTS: Final = "node.kubernetes.io/"
# Seconds for which a node must be Ready before it is copied (stabilizationDelay).
STABLE_SECONDS: Final = 60.0
# Knuth's multiplicative hash: close times give distant draws.
_SCATTER: Final = 2_654_435_761
_BITS: Final = 32


class CopiedTemplate:
    """The template of Cluster Autoscaler for one group."""

    def __init__(self, of_the_group: Node) -> None:
        """of_the_group: a node as the cloud describes it, before the group has any."""
        self._name = of_the_group.name
        self._last = of_the_group

    def find(self, state: ClusterState, now: float) -> Node:
        """The template in this run."""
        nodes = [row.node for row in state.rows.values() if _is_example(row.node, now)]
        if nodes:
            drawn = int(now) * _SCATTER % 2**_BITS * len(nodes) >> _BITS
            self._last = self._copy(nodes[drawn])
        return self._last

    def next_change(self, state: ClusterState, now: float, turn_seconds: float) -> float | None:
        """When the template may change by time alone; None: never."""
        since = (row.node.ready_since for row in state.rows.values())
        moments = [
            at + STABLE_SECONDS for at in since if at is not None and at + STABLE_SECONDS > now
        ]
        nodes = [row.node.labels for row in state.rows.values() if _is_example(row.node, now)]
        if any(not _is_alike(labels, nodes[0]) for labels in nodes[1:]):
            moments.append(now + turn_seconds)
        return min(moments, default=None)

    def _copy(self, node: Node) -> Node:
        taints = tuple(
            taint
            for taint in node.taints
            if not taint.key.startswith((*STARTUP_PREFIXES, _CONDITION_TAINTS))
        )
        labels = {**node.labels, HOSTNAME_LABEL: self._name}
        return replace(node, name=self._name, labels=labels, taints=taints)


def _is_example(node: Node, now: float) -> bool:
    if not node.ready or any(taint.key.startswith(STARTUP_PREFIXES) for taint in node.taints):
        return False
    return node.ready_since is not None and node.ready_since + STABLE_SECONDS <= now


def _is_alike(labels: Mapping[str, str], others: Mapping[str, str]) -> bool:
    """Whether two nodes have the same labels but for their names."""
    if len(labels) != len(others):
        return False
    return all(others.get(key) == value for key, value in labels.items() if key != HOSTNAME_LABEL)
