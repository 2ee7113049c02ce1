"""Prefer nodes that have the pod's images."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from roost_core.objects.pod import MAX_WEIGHT
from roost_core.placement.labels import HELD
from roost_core.release.image_gate import GateMode
from webhook.patch import PreferNode
from webhook.rules.contract import Case, Rule
from webhook.rules.image_gate import gate_mode, pulled_labels


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
