"""Size CapacityBuffers as StatefulSets are sized, and notice when no autoscaler keeps their room."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from roost.controllers.contract.actions import Notice, ScaleBuffer, ScaleSet
from roost.controllers.contract.snapshot import CapacityBufferState

if TYPE_CHECKING:
    from roost.controllers.contract.actions import Action
    from roost.controllers.contract.snapshot import StatefulSetState

# An autoscaler answers within seconds, unless it restarts.
IGNORED_SECONDS: Final = 120.0
_NEEDS: Final = (
    "cluster-autoscaler needs --capacity-buffer-controller-enabled and --capacity-buffer-pod-injection-enabled, "
    "Karpenter the feature gate CapacityBuffer"
)


def has_number(holder: StatefulSetState | CapacityBufferState, replicas: int) -> bool:
    """Whether it keeps room for so many already. A buffer that names no PodTemplate keeps none."""
    is_complete = holder.template == holder.name if isinstance(holder, CapacityBufferState) else True
    return is_complete and holder.replicas == replicas


def scale(holder: StatefulSetState | CapacityBufferState, replicas: int, why: str) -> Action:
    """Return what gives it that number."""
    if isinstance(holder, CapacityBufferState):
        # Its PodTemplate has the same name.
        return ScaleBuffer(name=holder.name, uid=holder.uid, template=holder.name, replicas=replicas, why=why)
    return ScaleSet(name=holder.name, uid=holder.uid, replicas=replicas, why=why)


def is_ignored(holder: StatefulSetState | CapacityBufferState) -> bool:
    """Whether it is a buffer that asks for room, and no autoscaler has said that it keeps it."""
    return (
        isinstance(holder, CapacityBufferState)
        and bool(holder.template)
        and bool(holder.replicas)
        and bool(holder.unready)
    )


def ignored_notice(namespace: str, name: str, holder: StatefulSetState | CapacityBufferState) -> Notice:
    """Say that nobody keeps the room of the set with this name."""
    unready = holder.unready if isinstance(holder, CapacityBufferState) else ""
    message = f"No autoscaler keeps the room for {holder.replicas} placeholders of set {name}: {unready}. {_NEEDS}."
    return Notice.on_set(namespace, holder, "CapacityBufferIgnored", message, warning=True)
