"""Everything that a plan may request. Each action says why, in words for an operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic, NamedTuple, Self, TypeVar

from roost.controllers.contract.snapshot import StatefulSetState
from roost_core.objects.fields import JSONObject
from roost_core.objects.pod import Pod


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeNode:
    """Change labels of a node and remove taints, if it still is the node with this uid."""

    node: str
    uid: str
    set_labels: Mapping[str, str] = field(default_factory=dict)
    remove_labels: frozenset[str] = frozenset()
    # Keys. A taint with this key goes, whatever its effect is.
    remove_taints: frozenset[str] = frozenset()
    why: str

    def __str__(self) -> str:
        parts = [f"+{key}={value}" for key, value in sorted(self.set_labels.items())]
        parts += [f"-{key}" for key in sorted(self.remove_labels)]
        parts += [f"-taint {key}" for key in sorted(self.remove_taints)]
        return f"change node {self.node}: {', '.join(parts)} ({self.why})"


@dataclass(frozen=True, slots=True, kw_only=True)
class _PodAction:
    """What the actions on an existing pod have in common."""

    namespace: str
    name: str
    uid: str
    why: str

    @classmethod
    def of(cls, pod: Pod, why: str) -> Self:
        """Make the action for this pod."""
        return cls(namespace=pod.namespace, name=pod.name, uid=pod.uid, why=why)


@dataclass(frozen=True, slots=True, kw_only=True)
class EvictPod(_PodAction):
    """Evict a pod through the Eviction API, if it still is the pod with this uid."""

    def __str__(self) -> str:
        return f"evict {self.namespace}/{self.name} ({self.why})"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleSet:
    """Set the replicas of one of our StatefulSets, if it still has this uid."""

    name: str
    uid: str
    replicas: int
    why: str

    def __str__(self) -> str:
        return f"scale {self.name} to {self.replicas} ({self.why})"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepHistory:
    """Write keys of the ConfigMap that keeps what headroom learned."""

    name: str
    data: Mapping[str, str]
    why: str

    def __str__(self) -> str:
        return f"keep {', '.join(sorted(self.data))} in {self.name} ({self.why})"


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatePod:
    """Create a pod in our namespace, unless one of that name exists."""

    # The manifest; it has a metadata.name, so that a retry creates no second pod.
    body: JSONObject
    why: str

    def __str__(self) -> str:
        return f"create pod {self.body['metadata']['name']} ({self.why})"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletePod(_PodAction):
    """Delete one of our pods, if it still has this uid."""

    def __str__(self) -> str:
        return f"delete pod {self.namespace}/{self.name} ({self.why})"


@dataclass(frozen=True, slots=True)
class Notice:
    """Write an Event. The same notice is not repeated for some minutes."""

    # The object that the Event is about.
    kind: str
    # "" for a kind that has no namespace, as Node.
    namespace: str
    name: str
    uid: str
    # A word in CamelCase, by which programs recognise the Event.
    reason: str
    # A plain sentence for people.
    message: str
    # Whether the Event's type is Warning, not Normal.
    warning: bool = False

    @classmethod
    def on_node(
        cls, name: str, uid: str, reason: str, message: str, *, warning: bool = False
    ) -> Notice:
        """Make a notice about a node."""
        return cls("Node", "", name, uid, reason, message, warning)

    @classmethod
    def on_pod(cls, pod: Pod, reason: str, message: str, *, warning: bool = False) -> Notice:
        """Make a notice about a pod."""
        return cls("Pod", pod.namespace, pod.name, pod.uid, reason, message, warning)

    @classmethod
    def on_set(
        cls,
        namespace: str,
        stateful_set: StatefulSetState,
        reason: str,
        message: str,
        *,
        warning: bool = False,
    ) -> Notice:
        """Make a notice about the StatefulSet of a placeholder set."""
        return cls(
            "StatefulSet", namespace, stateful_set.name, stateful_set.uid, reason, message, warning
        )

    def __str__(self) -> str:
        where = f"{self.namespace}/{self.name}" if self.namespace else self.name
        verb = "warn" if self.warning else "note"
        return f"{verb} on {self.kind} {where}: {self.message}"


Action = ChangeNode | EvictPod | ScaleSet | KeepHistory | CreatePod | DeletePod | Notice


class Outcome(StrEnum):
    """How an action ended."""

    DONE = "done"
    # The object is gone, or was replaced: nothing is left to do.
    GONE = "gone"
    # The budget was used up; the next plan may request it again.
    HELD_BACK = "held-back"
    # The Eviction API refused for now (a PodDisruptionBudget).
    REFUSED = "refused"
    # A conflicting write came first, or the API server failed.
    FAILED = "failed"


class Done(NamedTuple):
    """An action and its outcome."""

    action: Action
    outcome: Outcome


# What a controller remembers from plan to plan.
M = TypeVar("M")
# Metric name -> label values, in the metric's order -> value.
Gauges = Mapping[str, Mapping[tuple[str, ...], float]]


class PlanGauge(NamedTuple):
    """A metric that a plan reports."""

    name: str
    help: str
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned(Generic[M]):
    """A plan: what to do now, the most important first, and what to remember."""

    actions: Sequence[Action]
    memory: M
    # After so many seconds a new plan is made, even if nothing in the cluster changed. None: a new
    # plan is made only after a change.
    wake_after_seconds: float | None = None
    gauges: Gauges = field(default_factory=dict)
