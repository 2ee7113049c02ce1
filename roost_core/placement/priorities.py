"""Priorities of pods, as kube-scheduler and autoscalers see them."""

from __future__ import annotations

from typing import Final

from roost_core.objects.fields import JSONObject
from roost_core.placement.labels import OWN_PART, PART_OF_LABEL

# The priority of pods without a PriorityClass, if no class is the cluster's default.
NO_CLASS: Final = 0
# The lowest that there is.
LOWEST_PRIORITY: Final = -(2**31)
# cluster-autoscaler's default of --expendable-pods-priority-cutoff, also on GKE. A pod with a lower
# priority neither causes a new node, nor keeps a node.
AUTOSCALER_CUTOFF: Final = -10
# Ends of the names of Roost's PriorityClasses for pods that are there to be pre-empted by users.
_FILLERS: Final = (".roost-placeholder", ".roost-puller")


def foreign_priority(priority_class: JSONObject) -> int | None:
    """The value of a PriorityClass with a negative priority, if Roost's fillers don't have it.

    None: it isn't such a class. Users would pre-empt these pods, though they aren't there for
    it. priority_class: as parsed from JSON.
    """
    metadata = priority_class["metadata"]
    value = priority_class.get("value")
    if type(value) is not int or value >= NO_CLASS:
        return None
    is_of_roost = (metadata.get("labels") or {}).get(PART_OF_LABEL) == OWN_PART
    if is_of_roost and metadata["name"].endswith(_FILLERS):
        return None
    return value
