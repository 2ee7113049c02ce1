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


def has_number(keeper: StatefulSetState | CapacityBufferState, replicas: int) -> bool:
    """Whether it keeps room for so many already. A buffer that names no PodTemplate keeps none."""
    is_complete = keeper.template == keeper.name if isinstance(keeper, CapacityBufferState) else True
    return is_complete and keeper.replicas == replicas


def scale(keeper: StatefulSetState | CapacityBufferState, replicas: int, why: str) -> Action:
    """Return what gives it that number."""
    if isinstance(keeper, CapacityBufferState):
        # Its PodTemplate has the same name.
        return ScaleBuffer(name=keeper.name, uid=keeper.uid, template=keeper.name, replicas=replicas, why=why)
    return ScaleSet(name=keeper.name, uid=keeper.uid, replicas=replicas, why=why)


def is_ignored(keeper: StatefulSetState | CapacityBufferState) -> bool:
    """Whether it is a buffer that asks for room, and no autoscaler has said that it keeps it."""
    return (
        isinstance(keeper, CapacityBufferState)
        and bool(keeper.template)
        and bool(keeper.replicas)
        and bool(keeper.unready)
    )


def ignored_notice(namespace: str, name: str, keeper: StatefulSetState | CapacityBufferState) -> Notice:
    """Say that nobody keeps the room of the set with this name."""
    unready = keeper.unready if isinstance(keeper, CapacityBufferState) else ""
    message = f"No autoscaler keeps the room for {keeper.replicas} placeholders of set {name}: {unready}. {_NEEDS}."
    return Notice.on_set(namespace, keeper, "CapacityBufferIgnored", message, warning=True)
