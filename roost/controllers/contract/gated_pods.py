"""Recognise pods that wait for a node that is pulling their images, by the terms that the webhook added to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roost_core.placement.labels import PULLED_LABEL_PREFIX, PULLING

if TYPE_CHECKING:
    from roost_core.objects.pod import Pod, PodSpec
    from roost_core.objects.selectors import Requirement


def waits_at_gate(pod: Pod) -> bool:
    """Whether a pod is unschedulable, and nodes that are pulling its images are closed to it."""
    return (
        pod.unschedulable_since is not None
        and not (pod.node_name or pod.nominated_node or pod.leaving or pod.gated or pod.is_finished)
        and bool(gate_labels(pod.spec, PULLED_LABEL_PREFIX))
    )


def gate_labels(spec: PodSpec, prefix: str) -> frozenset[str]:
    """The labels that keep the pod off a node while they say "pulling"."""
    terms = spec.required_node_terms or ()
    return frozenset(expression.key for term in terms for expression in term.expressions if is_gate(expression, prefix))


def is_gate(requirement: Requirement, prefix: str) -> bool:
    """Whether the webhook added the requirement for the image gate."""
    return requirement.operator == "NotIn" and PULLING in requirement.values and requirement.key.startswith(prefix)
