"""Prefer nodes that have the pod's images."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from roost_core.objects.images import normalise_reference
from roost_core.placement.labels import HELD, PULLING, pulled_label
from roost_core.release.pod_classes import MAX_WEIGHT, PodClass
from roost_core.release.pullers import GateMode
from webhook.patch import PreferNode
from webhook.rules.contract import Case, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from roost_core.objects.fields import JSONObject
    from roost_core.release.settings import ReleaseSettings


class GatedImage(NamedTuple):
    """One image that the puller manages, by the label with which nodes say whether they have it."""

    label: str

    @property
    def held(self) -> JSONObject:
        """The node has the image."""
        return {"key": self.label, "operator": "In", "values": [HELD]}

    @property
    def not_pulling(self) -> JSONObject:
        """The node isn't pulling it. Nodes without the label match, such as an autoscaler's template nodes."""
        return {"key": self.label, "operator": "NotIn", "values": [PULLING]}


def gate_mode(settings: ReleaseSettings, pod_class: PodClass) -> GateMode:
    """The gate for pods of a class. `startupTaint` works on nodes, not on pods."""
    return settings.gate.mode if pod_class.image_gate and settings.gate.managed_images else GateMode.OFF


def gated_image(settings: ReleaseSettings, reference: str) -> GatedImage | None:
    """The image of this reference; None if the puller doesn't manage it."""
    if normalise_reference(reference) not in settings.gate.managed_images:
        return None
    return GatedImage(pulled_label(settings.name, settings.namespace, reference))


def gated_images(case: Case) -> Sequence[GatedImage]:
    """The pod's images that the puller manages, each once."""
    found = (gated_image(case.settings, reference) for reference in case.pod.images)
    return list(dict.fromkeys(image for image in found if image is not None))


def prefer_pulled_images(case: Case) -> Iterator[PreferNode]:
    """Prefer nodes whose label says that they have an image, as firmly as Kubernetes lets one."""
    for image in gated_images(case):
        yield PreferNode({"weight": MAX_WEIGHT, "preference": {"matchExpressions": [image.held]}})


RULE: Final = Rule(
    prefer_pulled_images,
    lambda settings, pod_class: gate_mode(settings, pod_class) in (GateMode.REQUIRE_LABEL, GateMode.PREFER),
)
