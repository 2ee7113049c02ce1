"""Under which keys waits are remembered, and what a new leader learns from what the API server still holds.

That is the last hour's Events of kubelets in the release's namespace, which the image gate has watched anyway, and the
users' pods that still run on nodes that were started for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from roost.controllers.start_notices.estimates import History
from roost.controllers.start_notices.settings import ROOM_SECONDS
from roost_core.objects.images import normalise_reference
from roost_core.placement.kubelet_pulls import read_pulled_message

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from roost.controllers.contract.snapshot import Snapshot
    from roost_core.objects.node import Node
    from roost_core.objects.pod import Pod

PULLS, NODES = "pull", "node"
# Pulls that took less show that the image was there, unlisted.
LEAST_PULL_SECONDS: Final = 2.0
# A node that is this much older than the wait wasn't requested for it.
_NODE_LEAD_SECONDS: Final = 60.0
_US: Final = 1e6


def keys_of_image(image: str) -> tuple[str, str, str]:
    """Keys of a normalised reference, from the most general to the most special."""
    return PULLS, f"{PULLS} {image.partition('/')[0]}", f"{PULLS} {image}"


def keys_of_pool(pod: Pod) -> tuple[str, str]:
    """Keys of the nodes that a pod may use, from the most general to the most special."""
    return NODES, f"{NODES} {pod.spec.node_selector}"


def is_new_for(node: Node, waits_since: float) -> bool:
    """Whether the node may have been started for who waits since then, in Unix time."""
    return node.created > waits_since - _NODE_LEAD_SECONDS


def earlier_waits(snapshot: Snapshot, is_told: Callable[[Pod], bool]) -> History:
    """What waits took before this replica led. is_told: whether a pod's user is told."""
    history = History({})
    for _, seconds, keys in sorted([*_pulls(snapshot), *_waits_for_nodes(snapshot, is_told)]):
        history = history.with_duration(seconds, *keys)
    return history


# Unix time of the end, seconds, keys.
_Wait = tuple[float, float, tuple[str, ...]]


def _pulls(snapshot: Snapshot) -> Iterator[_Wait]:
    for event in snapshot.pull_events.values():
        said = read_pulled_message(event.message)
        # Without the wait for the kubelet's other pulls.
        took_us = said.pull_us if said else None
        if took_us is not None and took_us >= LEAST_PULL_SECONDS * _US:
            yield event.at, took_us / _US, keys_of_image(normalise_reference(event.image))


def _waits_for_nodes(snapshot: Snapshot, is_told: Callable[[Pod], bool]) -> Iterator[_Wait]:
    for pod in snapshot.pods.values():
        node = snapshot.nodes.get(pod.node_name)
        # A kubelet accepts a pod within a second of its binding.
        if node is None or pod.started is None or not is_new_for(node, pod.created) or not is_told(pod):
            continue
        if pod.started - pod.created >= ROOM_SECONDS:
            yield pod.started, pod.started - pod.created, keys_of_pool(pod)
