"""Prefer nodes that have the pod's images."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from roost_core.objects.fields import JSONObject
from roost_core.objects.image_references import normalise_reference
from roost_core.placement.beliefs import FAILED_PULL
from roost_core.placement.labels import HELD, PULLING, pulled_label
from roost_core.placement.warm_sets import MAX_NODES
from roost_core.release.image_gate import GateMode
from roost_core.release.pod_classes import PodClass
from roost_core.release.reader import MAX_WEIGHT
from roost_core.release.release_settings import ReleaseSettings
from webhook.patch import PreferNode
from webhook.rules.contract import Case, Rule
from webhook.rules.scheduler import own_scheduler_name


def not_pulling(label: str) -> JSONObject:
    """The node isn't pulling the image of this label.

    Nodes without one match, as an autoscaler's template nodes.
    """
    return {"key": label, "operator": "NotIn", "values": [PULLING]}


def gate_mode(settings: ReleaseSettings, pod_class: PodClass) -> GateMode:
    """The gate for pods of a class. `startupTaint` works on nodes, not on pods."""
    return (
        settings.gate.mode
        if pod_class.image_gate and settings.gate.managed_images
        else GateMode.OFF
    )


def gate_label(settings: ReleaseSettings, reference: str) -> str:
    """The label by which nodes say whether they have an image; "" if the puller doesn't manage
    it.
    """
    if normalise_reference(reference) not in settings.gate.managed_images:
        return ""
    return pulled_label(settings.name, settings.namespace, reference)


def pulled_labels(case: Case) -> Sequence[str]:
    """The labels of the pod's images that the puller manages, each once."""
    labels = (gate_label(case.settings, reference) for reference in case.pod.images)
    return list(dict.fromkeys(label for label in labels if label))


def failing_nodes(case: Case) -> list[str]:
    """Names of nodes that couldn't pull one of the pod's images lately."""
    images = {normalise_reference(reference) for reference in case.pod.images}
    failed = case.facts.failed_pulls.items()
    lately = {
        node
        for (node, image), at in failed
        if image in images and case.now - at < FAILED_PULL.age_seconds
    }
    return sorted(lately)


def prefer_others(case: Case) -> Iterator[PreferNode]:
    """Nodes that are preferred otherwise may be full, and one that isn't ready yet is none of
    them.
    """
    failing = failing_nodes(case)[:MAX_NODES]
    if failing:
        fields = [
            {"key": "metadata.name", "operator": "NotIn", "values": [name]} for name in failing
        ]
        yield PreferNode({"weight": MAX_WEIGHT, "preference": {"matchFields": fields}})


def prefer_pulled_images(case: Case) -> Iterator[PreferNode]:
    """Prefer nodes whose label says that they have an image, as firmly as Kubernetes lets one."""
    for label in pulled_labels(case):
        held = {"key": label, "operator": "In", "values": [HELD]}
        yield PreferNode({"weight": MAX_WEIGHT, "preference": {"matchExpressions": [held]}})


RULE: Final = Rule(
    prefer_pulled_images,
    lambda settings, pod_class: (
        gate_mode(settings, pod_class) in (GateMode.REQUIRE_LABEL, GateMode.PREFER)
    ),
)
# Where Roost draws a class's pods together, one failing node would draw each of them again.
FAILING: Final = Rule(
    prefer_others,
    lambda settings, pod_class: (
        pod_class.warm is not None or bool(own_scheduler_name(settings, pod_class))
    ),
)
