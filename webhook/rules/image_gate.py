"""What the two rules of the image gate share: the mode for a class, and the labels of images."""

from __future__ import annotations

from collections.abc import Sequence

from roost_core.objects.fields import JSONObject
from roost_core.objects.image_references import normalise_reference
from roost_core.placement.labels import PULLING, pulled_label
from roost_core.release.image_gate import GateMode
from roost_core.release.pod_classes import PodClass
from roost_core.release.release_settings import ReleaseSettings
from webhook.rules.contract import Case


def gate_mode(settings: ReleaseSettings, pod_class: PodClass) -> GateMode:
    """The gate's mode for pods of a class.

    OFF: pods of the class don't use the gate, or it has no images. With the mode `startupTaint`,
    the gate works on nodes, not on pods.
    """
    if pod_class.image_gate and settings.gate.managed_images:
        return settings.gate.mode
    return GateMode.OFF


def gate_label(settings: ReleaseSettings, reference: str) -> str:
    """The label of nodes that says whether they hold an image; "": the puller doesn't manage it."""
    if normalise_reference(reference) not in settings.gate.managed_images:
        return ""
    return pulled_label(settings.name, settings.namespace, reference)


def pulled_labels(case: Case) -> Sequence[str]:
    """The labels of the pod's images that the puller manages, without duplicates."""
    labels = (gate_label(case.settings, reference) for reference in case.pod.images)
    return list(dict.fromkeys(label for label in labels if label))


def not_pulling(label: str) -> JSONObject:
    """The expression that a node isn't pulling the image of this label.

    Nodes without the label match it, for example the nodes that an autoscaler would add.
    """
    return {"key": label, "operator": "NotIn", "values": [PULLING]}
