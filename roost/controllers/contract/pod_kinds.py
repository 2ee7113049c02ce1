"""Recognise the pods of pullers, Roost's and zero-to-jupyterhub's, and users' pods that wait for
images.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from roost_core.objects.pod import Pod, PodSpec
from roost_core.objects.selectors import Requirement
from roost_core.placement.labels import (
    COMPONENT_LABEL,
    OWN_COMPONENT_LABEL,
    OWN_PART,
    OWN_POPULAR_PULLER,
    OWN_PULLER,
    PART_OF_LABEL,
    PULLED_LABEL_PREFIX,
    PULLING,
)

# Part of the name of every puller's pod, of all three kinds.
PULLER_WORD: Final = "puller"
_Z2JH_CONTINUOUS: Final = "continuous-image-puller"
_Z2JH_PULLERS: Final = frozenset({_Z2JH_CONTINUOUS, "hook-image-puller"})


def is_puller(labels: Mapping[str, str]) -> bool:
    """Whether it is a pod of a puller's DaemonSet, of any release."""
    return labels.get(OWN_COMPONENT_LABEL) == OWN_PULLER and labels.get(PART_OF_LABEL) == OWN_PART


def is_popular_puller(labels: Mapping[str, str]) -> bool:
    """Whether it is a pod that pulls a popular image, for any release."""
    return (
        labels.get(OWN_COMPONENT_LABEL) == OWN_POPULAR_PULLER
        and labels.get(PART_OF_LABEL) == OWN_PART
    )


def is_z2jh_puller(labels: Mapping[str, str]) -> bool:
    """Whether it is a pod of a zero-to-jupyterhub puller, for `imageGate.pullerPods:
    zeroToJupyterHub`.
    """
    return labels.get(COMPONENT_LABEL) in _Z2JH_PULLERS


def is_z2jh_continuous_puller(labels: Mapping[str, str]) -> bool:
    """Whether it is a pod of zero-to-jupyterhub's continuous puller.

    The continuous puller runs on new nodes, too. The hook's puller doesn't.
    """
    return labels.get(COMPONENT_LABEL) == _Z2JH_CONTINUOUS


def waits_at_gate(pod: Pod) -> bool:
    """Whether a pod is unschedulable, and nodes that are pulling its images are closed to it.

    `nominated_node` isn't looked at: a pod that pre-empts others waits, too. They may take their
    time to go.
    """
    if pod.unschedulable_since is None or pod.node_name:
        return False
    if pod.leaving or pod.gated or pod.is_finished:
        return False
    return bool(gate_labels(pod.spec, PULLED_LABEL_PREFIX))


def gate_labels(spec: PodSpec, prefix: str) -> frozenset[str]:
    """The labels that keep the pod off a node while their value is "pulling".

    prefix: of the labels that count.
    """
    terms = spec.required_node_terms or ()
    return frozenset(
        expression.key
        for term in terms
        for expression in term.expressions
        if is_gate(expression, prefix)
    )


def is_gate(requirement: Requirement, prefix: str) -> bool:
    """Whether the webhook added the requirement for the image gate."""
    return (
        requirement.operator == "NotIn"
        and PULLING in requirement.values
        and requirement.key.startswith(prefix)
    )
