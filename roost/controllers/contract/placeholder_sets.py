"""Read the placeholder sets, and which nodes each can use, from controllers.json."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from roost_core.objects.selectors import NodeRules, read_node_rules
from roost_core.placement.labels import attract_label

if TYPE_CHECKING:
    from roost_core.placement.settings_reader import Document, Reader

# Cluster-autoscaler's API, which Karpenter serves too.
CAPACITY_BUFFER_API: Final = "autoscaling.x-k8s.io/v1beta1"


@dataclass(frozen=True, slots=True)
class PlaceholderSet:
    """One entry of `placeholders`."""

    name: str
    # Name of its StatefulSet; of its CapacityBuffer and PodTemplate if placeholders are no pods.
    stateful_set: str
    # The mark: on the node that attracts its pods.
    label: str
    # Which nodes its pods can use.
    rules: NodeRules


def has_buffers(document: Document) -> bool:
    """Whether autoscalers keep the room for placeholders, without any pod."""
    return document.get("placeholderBackend") == "capacityBuffer"


def read_placeholder_sets(read: Reader, document: Document, release: str, namespace: str) -> tuple[PlaceholderSet, ...]:
    """Read names and pools of `placeholders`; `headroom` reads their counts. Faults go to the reader."""
    sets = []
    for index, entry in enumerate(read.items(document.get("placeholders"), "placeholders")):
        at = f"placeholders[{index}]"
        body = read.mapping(entry, at)
        name = read.text(body.get("name"), f"{at}.name")
        if not name:
            read.fault(f"{at}.name", body.get("name"), "a name")
        terms = read.items(body.get("requiredNodeTerms"), f"{at}.requiredNodeTerms")
        rules = read_node_rules(
            read.labels(body.get("nodeSelector"), f"{at}.nodeSelector"),
            # The template renders no affinity for an empty list.
            terms or None,
            read.items(body.get("tolerations"), f"{at}.tolerations"),
        )
        stateful_set = read.text(body.get("statefulSet"), f"{at}.statefulSet")
        sets.append(PlaceholderSet(name, stateful_set, attract_label(release, namespace, name), rules))
    return tuple(sets)
