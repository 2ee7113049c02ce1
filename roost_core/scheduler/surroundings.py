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
    # None and the empty selector protect nothing here.
    selector: frozenset[Requirement] | None
    disruptions_allowed: int = 0
    # Names of pods whose eviction is under way.
    disrupted_pods: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Everything else that affects scheduling; none of it changes with a pod."""

    # Labels by namespace; one that isn't there counts as having none.
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    budgets: tuple[DisruptionBudget, ...] = ()
    # Selectors of Services by namespace, and of ReplicationControllers, ReplicaSets and
    # StatefulSets by (kind, namespace, name): spreading by default asks for them, and for nothing
    # else.
    services: Mapping[str, tuple[Mapping[str, str], ...]] = field(default_factory=dict)
    controllers: Mapping[tuple[str, str, str], frozenset[Requirement]] = field(default_factory=dict)
    # Extended resources that DeviceClasses map to devices: a node that lists none may have them all
    # the same.
    claimable: frozenset[str] = frozenset()


NO_SURROUNDINGS: Final = Surroundings()
