"""Attract a placeholder to the node that is marked for its set."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from roost_core.placement.labels import PLACEHOLDER_SET_LABEL, attract_label
from webhook.patch import PreferNode
from webhook.rules.contract import Case, Rule

# The highest weight that Kubernetes allows. The placeholders' StatefulSet prefers the marked node
# with the same weight.
_WEIGHT: Final = 100


def go_to_marked_node(case: Case) -> Iterator[PreferNode]:
    """Prefer the node that has the mark of the pod's placeholder set.

    A pod that names no set counts to the first set.
    """
    settings = case.settings
    first_set = next(iter(settings.placeholder_names), "")
    placeholder_set = case.pod.labels.get(PLACEHOLDER_SET_LABEL) or first_set
    if placeholder_set:
        mark = attract_label(settings.name, settings.namespace, placeholder_set)
        preference = {"matchExpressions": [{"key": mark, "operator": "Exists"}]}
        yield PreferNode({"weight": _WEIGHT, "preference": preference})


RULE: Final = Rule(go_to_marked_node, lambda _settings, pod_class: pod_class.is_of_placeholders)
