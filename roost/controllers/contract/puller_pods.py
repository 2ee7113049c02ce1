"""Recognise pods that pull images, Roost's own and zero-to-jupyterhub's, by their labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from roost_core.placement.labels import (
    COMPONENT_LABEL,
    OWN_COMPONENT_LABEL,
    OWN_PART,
    OWN_POPULAR_PULLER,
    OWN_PULLER,
    PART_OF_LABEL,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

# Part of the name of every puller's pod, of all three kinds.
PULLER_WORD: Final = "puller"
_Z2JH_CONTINUOUS: Final = "continuous-image-puller"
_Z2JH_PULLERS: Final = frozenset({_Z2JH_CONTINUOUS, "hook-image-puller"})


def is_puller(labels: Mapping[str, str]) -> bool:
    """Whether it is a pod of a puller's DaemonSet, of any release."""
    return labels.get(OWN_COMPONENT_LABEL) == OWN_PULLER and _is_own(labels)


def is_popular_puller(labels: Mapping[str, str]) -> bool:
    """Whether it is a pod that pulls a popular image, for any release."""
    return labels.get(OWN_COMPONENT_LABEL) == OWN_POPULAR_PULLER and _is_own(labels)


def is_z2jh_puller(labels: Mapping[str, str]) -> bool:
    """Whether it is one of zero-to-jupyterhub's puller pods, for `imageGate.pullerPods: zeroToJupyterHub`."""
    return labels.get(COMPONENT_LABEL) in _Z2JH_PULLERS


def is_z2jh_continuous_puller(labels: Mapping[str, str]) -> bool:
    """Whether it is of zero-to-jupyterhub's continuous puller, which runs on new nodes, too; its hook doesn't."""
    return labels.get(COMPONENT_LABEL) == _Z2JH_CONTINUOUS


def _is_own(labels: Mapping[str, str]) -> bool:
    return labels.get(PART_OF_LABEL) == OWN_PART
