"""Keep from plan to plan what the placeholder mover asks of all pods: only those that changed are looked at closely.

It is a cache and nothing else: `follow` makes it say of the pods what it would say had it never seen others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from roost.controllers.contract.pull_failures import PULL_FAULTS
from roost.controllers.contract.pullers import is_popular_puller, is_puller
from roost_core.placement.labels import PLACEHOLDER_SET_LABEL

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from roost_core.scheduler.objects import PodState

_NO_PODS: Final[Mapping[str, PodState]] = {}


class PodWatch:
    """The pods of one snapshot, by what the mover wants to know."""

    def __init__(self) -> None:
        """Know no pod."""
        self._reset()

    def _reset(self) -> None:
        self._pods: dict[str, PodState] = {}
        # Those with a set's label, whoever made them.
        self._placeholders: set[str] = set()
        # The node for which each waits that pre-empted others.
        self._nominated: dict[str, str] = {}
        # The node on which each pulls.
        self._pulling: dict[str, str] = {}
        self._by_node: dict[str, dict[str, PodState]] = {}

    def follow(self, pods: Mapping[str, PodState]) -> None:
        """Know these pods, by `namespace/name`, and no others; costs what has changed, and a look at each."""
        try:
            known = self._pods
            changed = [(key, pod) for key, pod in pods.items() if known.get(key) is not pod]
            for key, pod in changed:
                self._forget(key)
                self._learn(key, pod)
            if len(known) != len(pods):
                for key in known.keys() - pods.keys():
                    self._forget(key)
        except Exception:
            # Half of it may be done: the next plan had better begin anew.
            self._reset()
            raise

    def _learn(self, key: str, pod: PodState) -> None:
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

    def _forget(self, key: str) -> None:
        pod = self._pods.pop(key, None)
        if pod is None:
            return
        self._placeholders.discard(key)
        self._nominated.pop(key, None)
        self._pulling.pop(key, None)
        there = self._by_node.get(pod.node_name)
        if there is not None:
            there.pop(key, None)
            if not there:
                del self._by_node[pod.node_name]

    def placeholders(self, pods: Mapping[str, PodState]) -> Iterator[PodState]:
        """Those with a set's label, in the order of `pods`: those followed last."""
        return (pods[key] for key in filter(self._placeholders.__contains__, pods))

    @property
    def nominated_to(self) -> Collection[str]:
        """Nodes on which pods that pre-empted others wait for room."""
        return self._nominated.values()

    @property
    def pulling_on(self) -> frozenset[str]:
        """Nodes on which a puller's pod is at work: not done, and not stuck at an image that can't be had."""
        return frozenset(self._pulling.values())

    def on_node(self, node: str) -> Collection[PodState]:
        """The pods that take room on a node."""
        return self._by_node.get(node, _NO_PODS).values()


def _is_stuck(pod: PodState) -> bool:
    return any(container.waiting_reason in PULL_FAULTS for container in pod.containers)
