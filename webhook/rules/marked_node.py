"""Attract a placeholder to the node that is marked for its set."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from roost_core.placement.labels import PLACEHOLDER_SET_LABEL, attract_label
from webhook.patch import PreferNode
from webhook.rules.contract import Case, Rule

# The StatefulSet of the placeholders has the same one.
_WEIGHT: Final = 100


def go_to_marked_node(case: Case) -> Iterator[PreferNode]:
    """Prefer the node with the mark of the pod's set, the first set for a pod that names none."""
    settings = case.settings
    placeholder_set = case.pod.labels.get(PLACEHOLDER_SET_LABEL) or next(
        iter(settings.placeholder_names), ""
    )
    if placeholder_set:
        label = attract_label(settings.name, settings.namespace, placeholder_set)
        preference = {"matchExpressions": [{"key": label, "operator": "Exists"}]}
        yield PreferNode({"weight": _WEIGHT, "preference": preference})


RULE: Final = Rule(go_to_marked_node, lambda _settings, pod_class: pod_class.is_of_placeholders)
