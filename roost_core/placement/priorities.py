"""Priorities of pods: which PriorityClasses are for pods that aren't there to give way, and below
which priority autoscalers ignore a pod.
"""

from __future__ import annotations

from typing import Final

from roost_core.objects.fields import JSONObject
from roost_core.placement.labels import OWN_PART, PART_OF_LABEL

# The priority of pods without a PriorityClass, where no class is the default of all.
NO_CLASS: Final = 0
# The lowest that there is.
LOWEST_PRIORITY: Final = -(2**31)
# cluster-autoscaler's default of --expendable-pods-priority-cutoff, and what GKE's has: pods below
# it neither request nor keep a node.
AUTOSCALER_CUTOFF: Final = -10
# How the names of Roost's PriorityClasses end whose pods users may pre-empt: they are there for
# that.
_FILLERS: Final = (".roost-placeholder", ".roost-puller")


def foreign_priority(priority_class: JSONObject) -> int | None:
    """The value of a PriorityClass if it is below that of pods without one, and not of placeholders
    or pullers.
    """
    metadata = priority_class["metadata"]
    value = priority_class.get("value")
    is_own = (metadata.get("labels") or {}).get(PART_OF_LABEL) == OWN_PART
    if (
        type(value) is not int
        or value >= NO_CLASS
        or (is_own and metadata["name"].endswith(_FILLERS))
    ):
        return None
    return value
