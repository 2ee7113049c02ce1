"""Tell which pods wait for a node that pulls their images, by what the webhook has written into them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roost_core.placement.labels import PULLED_LABEL_PREFIX, PULLING

if TYPE_CHECKING:
    from roost_core.placement.selectors import Requirement
    from roost_core.scheduler.objects import PodSpec, PodState


def waits_at_gate(pod: PodState) -> bool:
    """Tell whether a pod has no node, and some nodes are closed to it because they pull its images."""
    return (
        pod.unschedulable_since is not None
        and not (pod.node_name or pod.nominated_node or pod.leaving or pod.gated or pod.is_finished)
        and bool(gate_labels(pod.spec, PULLED_LABEL_PREFIX))
    )


def gate_labels(spec: PodSpec, prefix: str) -> frozenset[str]:
    """The labels that a pod won't have say "pulling"."""
    terms = spec.required_node_terms or ()
    return frozenset(one.key for term in terms for one in term.expressions if is_gate(one, prefix))


def is_gate(one: Requirement, prefix: str) -> bool:
    """Tell whether the webhook wrote a requirement, for the image gate."""
    return one.operator == "NotIn" and PULLING in one.values and one.key.startswith(prefix)
