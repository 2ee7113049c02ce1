"""Index all pods by what the placeholder mover asks about them, kept from plan to plan: only changed pods are read.

It is only a cache: after `follow`, it answers as one built from these pods alone.
"""

from __future__ import annotations

from itertools import compress
from operator import is_not
from typing import TYPE_CHECKING, Final

from roost.controllers.contract.puller_pods import is_popular_puller, is_puller
from roost_core.placement.kubelet_pulls import PULL_FAULTS
from roost_core.placement.labels import PLACEHOLDER_SET_LABEL

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from roost_core.objects.pod import Pod

_NO_PODS: Final[Mapping[str, Pod]] = {}


class PodIndex:
    """The pods of one snapshot."""

    def __init__(self) -> None:
        """Start empty."""
        self._reset()

    def _reset(self) -> None:
        self._pods: dict[str, Pod] = {}
        # Keys of pods with a set's label, whoever created them.
        self._placeholders: set[str] = set()
        # By key of a pod that pre-empted others: the node that it waits for.
        self._nominated: dict[str, str] = {}
        # By key of a puller's pod at work: its node.
        self._pulling: dict[str, str] = {}
        self._by_node: dict[str, dict[str, Pod]] = {}

    def follow(self, pods: Mapping[str, Pod]) -> None:
        """Index exactly these pods, by `namespace/name`; the cost is that of the changes, plus one comparison a pod."""
        try:
            indexed = self._pods
            # As a comprehension would find them; hubs have thousands of pods, of which few change between plans.
            for key in list(compress(pods, map(is_not, map(indexed.get, pods), pods.values()))):
                self._remove(key)
                self._add(key, pods[key])
            if len(indexed) != len(pods):
                for key in indexed.keys() - pods.keys():
                    self._remove(key)
        except Exception:
            # It may have been done by half: the next plan starts from scratch.
            self._reset()
            raise

    def _add(self, key: str, pod: Pod) -> None:
        self._pods[key] = pod
        if PLACEHOLDER_SET_LABEL in pod.labels:
            self._placeholders.add(key)
        node = pod.node_name
        if not node:
            if pod.nominated_node:
                self._nominated[key] = pod.nominated_node
            return
        if not pod.is_finished:
            self._by_node.setdefault(node, {})[key] = pod
        if pod.phase == "Pending" and (is_puller(pod.labels) or is_popular_puller(pod.labels)) and not _is_stuck(pod):
            self._pulling[key] = node

    def _remove(self, key: str) -> None:
        pod = self._pods.pop(key, None)
        if pod is None:
            return
        self._placeholders.discard(key)
        self._nominated.pop(key, None)
        self._pulling.pop(key, None)
        node_pods = self._by_node.get(pod.node_name)
        if node_pods is not None:
            node_pods.pop(key, None)
            if not node_pods:
                del self._by_node[pod.node_name]

    def placeholders(self, pods: Mapping[str, Pod]) -> Iterator[Pod]:
        """Yield the pods with a set's label in the order of `pods`, which must be those followed last."""
        return (pods[key] for key in filter(self._placeholders.__contains__, pods))

    @property
    def nominated_to(self) -> Collection[str]:
        """Nodes on which pods that pre-empted others wait for room."""
        return self._nominated.values()

    @property
    def pulling_on(self) -> frozenset[str]:
        """Nodes on which a puller's pod is at work: not done, and not failing to pull."""
        return frozenset(self._pulling.values())

    def on_node(self, node: str) -> Collection[Pod]:
        """The pods that take room on a node."""
        return self._by_node.get(node, _NO_PODS).values()


def _is_stuck(pod: Pod) -> bool:
    return any(container.waiting_reason in PULL_FAULTS for container in pod.containers)
