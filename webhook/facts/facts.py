"""An immutable snapshot of everything that rules can read of the cluster."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from roost_core.placement.lease_state import LeaseState
from roost_core.placement.nodes import Nodes
from webhook.facts.placed_pod import FailedPull
from webhook.facts.warm import WarmFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Everything that rules can read of the cluster, at one time."""

    # None: nodes can't be read.
    nodes: Nodes | None = None
    # Names of nodes with a Ready builder pod, by class with a home. While a set doesn't change, it
    # is the same object.
    builder_nodes: Mapping[str, frozenset[str]] = field(default_factory=dict)
    # Labels of namespaces, by name. None: they can't be read.
    namespaces: Mapping[str, Mapping[str, str]] | None = None
    # By class with a warm set.
    warm: Mapping[str, WarmFacts] = field(default_factory=dict)
    # By image, normalised: each failed pull to a node that isn't known to hold it, and when it last
    # failed, on the clock of reviews. While a registry is down, every node fails, for every image.
    failed_pulls: Mapping[str, Mapping[FailedPull, float]] = field(default_factory=dict)
    # Those of `failed_pulls` that no pod reported. A start was given up, and perhaps the pull was
    # only slow.
    given_up: Collection[FailedPull] = frozenset()
    # Scopes and resources of ResourceQuotas, by namespace, as far as rules look for them. None:
    # quotas can't be read.
    quotas: Mapping[str, frozenset[str]] | None = field(default_factory=dict)
    # Extended resources that nodes may have without listing them.
    claimable: frozenset[str] = frozenset()
    # The lowest priority that pods can have, except Roost's placeholders and pullers. It is at most
    # 0, the priority of pods without a PriorityClass.
    lowest_priority: int = 0
    # The Leases of Roost's other parts, by part (CONTROLLERS, SCHEDULER), as far as they are
    # watched.
    leases: Mapping[str, LeaseState] = field(default_factory=dict)
    # `ReleaseSettings.scheduler_host` when the scheduler's Lease was last looked at; the values may
    # have changed since. None: the Lease wasn't looked at.
    scheduler_host: str | None = None
