"""One node's share of a plan: what is known about it, what it needs, and what is remembered until
the next plan.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sized
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, NamedTuple

from roost.controllers.contract.actions import ChangeNode, Notice
from roost.controllers.contract.pod_kinds import gate_labels
from roost.controllers.contract.snapshot import Moment, Snapshot
from roost.controllers.image_gate.closed_or_open import Opening
from roost.controllers.image_gate.facts import Fact, PodEvidence, PullFault
from roost.controllers.image_gate.settings import GateSettings
from roost_core.objects.node import Node
from roost_core.release.image_gate import ManagedImage

# Shared empty values: most of thousands of nodes have nothing to remember.
NO_TIMES: Final[Mapping[str, float]] = {}
NO_OPENINGS: Final[Mapping[str, Opening]] = {}
NO_FAULTS: Final[Mapping[str, PullFault]] = {}


class NodeMemory(NamedTuple):
    """What is remembered of one node; times are steady seconds."""

    node: Node
    evidence: tuple[PodEvidence, ...]
    # By normalised reference.
    facts: Mapping[str, Fact]
    # The images of its pullers, and those that it lacks; both empty while no puller can come or the
    # node isn't Ready.
    wanted: tuple[ManagedImage, ...]
    missing: tuple[ManagedImage, ...]
    # The images that it lacks, whether or not a puller can bring them; empty where the gate is off.
    absent: tuple[ManagedImage, ...]
    # Since when something is missing.
    waiting_since: float | None
    # As first read: later jumps of the clock don't move it.
    ready_since: float | None
    # Labels of images that don't belong on the node, and since when that is known.
    unwanted: Mapping[str, float]
    # By normalised reference.
    faults: Mapping[str, PullFault]
    # Nothing is left to do until something changes.
    is_settled: bool
    # Labels that close the node to users of an image while it is pulled; labels that open it, and
    # why.
    closed: frozenset[str] = frozenset()
    opened: Mapping[str, Opening] = NO_OPENINGS
    # By normalised reference of a missing image: since when no puller's pod on the node is there to
    # pull it.
    unattended_since: Mapping[str, float] = NO_TIMES
    # It has been Ready since it was first judged.
    was_ready: bool = False

    @property
    def failing(self) -> frozenset[str]:
        """Labels of the images that can't be pulled now."""
        return frozenset(image.label for image in self.missing if image.normalised in self.faults)


@dataclass(frozen=True, kw_only=True)
class PlanContext:
    """What all nodes of one plan share."""

    settings: GateSettings
    now: Moment
    snapshot: Snapshot
    # Nothing is remembered: this replica has just begun to lead.
    is_first: bool
    # Whether a puller's pod can be expected on every node that it tolerates.
    has_puller: bool
    # Sizes from nodes' lists, by normalised reference; nodes add theirs as they are judged.
    image_bytes: dict[str, int] = field(default_factory=dict)

    @cached_property
    def required_labels(self) -> frozenset[str]:
        """The image labels that pending pods require."""
        pods = self.snapshot.pods.values()
        pending = [
            pod.spec for pod in pods if not (pod.node_name or pod.is_finished or pod.leaving)
        ]
        keys = {key for spec in pending for key, _ in spec.node_selector}
        for spec in pending:
            for term in spec.required_node_terms or ():
                # NotIn also matches nodes without the label.
                keys.update(
                    expression.key
                    for expression in term.expressions
                    if expression.operator != "NotIn"
                )
        return frozenset(key for key in keys if key.startswith(self.settings.label_prefix))

    @cached_property
    def users(self) -> frozenset[tuple[str, str]]:
        """Nodes and image labels of pods that are or will be there, and must keep off nodes that
        are pulling.
        """
        # Nominated: kube-scheduler has chosen, and waits for a volume, say.
        pods = [pod for pod in self.snapshot.pods.values() if not pod.is_finished]
        prefix = self.settings.label_prefix
        places = [(pod.node_name or pod.nominated_node, pod.spec) for pod in pods]
        return frozenset(
            (node, label) for node, spec in places if node for label in gate_labels(spec, prefix)
        )


class NodeShare:
    """One node as one plan sees it. before: what was remembered of this very node, None at
    first.
    """

    def __init__(
        self,
        node: Node,
        evidence: tuple[PodEvidence, ...],
        before: NodeMemory | None,
        context: PlanContext,
    ) -> None:
        self.node = node
        self.evidence = evidence
        self.before = before
        self.context = context
        self.settings = context.settings
        self.now = context.now
        # Seconds until the node should be judged again although nothing changes.
        self.waits: list[float] = []
        self.change: ChangeNode | None = None
        # Each with its subject, equal on all nodes where the same happens: a few nodes' notices are
        # enough.
        self.notices: list[tuple[tuple[str, str], Notice]] = []
        # Only a Ready node's kubelet reports the present state.
        self.is_reporting = node.ready and not node.deleting
        self.was_ready = before is not None and before.was_ready
        # The images that belong on it.
        self.wanted = context.settings.images_for(node)
        # In steady seconds.
        self.ready_since = before.ready_since if before is not None else None
        if self.ready_since is None:
            self.ready_since = context.snapshot.sight_of(node, self.now).ready_since

    def waiting_since(self) -> float:
        """Since when the node has waited for images, in steady seconds."""
        if self.before is not None and self.before.waiting_since is not None:
            return self.before.waiting_since
        created = max((pod.pod.created for pod in self.evidence), default=None)
        if created is None or self.ready_since is None or not self.context.is_first:
            return self.now.steady
        # A new leader's first look: the puller's pod was created when its images began to be
        # awaited.
        return max(self.ready_since, self.now.began(created, math.inf))


def count_any(things: Sized, singular: str, plural: str) -> str:
    """Return "1 singular" or "n plural"; "" for none."""
    number = len(things)
    return f"{number} {singular if number == 1 else plural}" if number else ""
