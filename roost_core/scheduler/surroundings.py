"""What affects scheduling besides nodes and pods."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from roost_core.objects.selectors import Requirement


@dataclass(frozen=True, slots=True)
class DisruptionBudget:
    """A PodDisruptionBudget, as pre-emption sees it."""

    namespace: str
    # None and the empty selector protect no pod from pre-emption.
    selector: frozenset[Requirement] | None
    disruptions_allowed: int = 0
    # Names of pods whose eviction is under way.
    disrupted_pods: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Everything besides nodes and pods that affects scheduling. No pod changes it."""

    # Labels by namespace. A namespace that isn't there counts as one without labels.
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    budgets: tuple[DisruptionBudget, ...] = ()
    # Only default spreading uses the selectors that follow. Those of Services, by namespace; those
    # of ReplicationControllers, ReplicaSets and StatefulSets, by kind, namespace and name.
    services: Mapping[str, tuple[Mapping[str, str], ...]] = field(default_factory=dict)
    controllers: Mapping[tuple[str, str, str], frozenset[Requirement]] = field(default_factory=dict)
    # Extended resources that DeviceClasses map to devices. A node may have these resources without
    # listing them.
    claimable: frozenset[str] = frozenset()


NO_SURROUNDINGS: Final = Surroundings()
