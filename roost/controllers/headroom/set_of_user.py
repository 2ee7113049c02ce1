"""Choose the set whose seat a user takes, where several sets learn on the same nodes.

So each person counts once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log
from typing import NamedTuple

from roost.controllers.contract.snapshot import Snapshot
from roost.controllers.headroom.pool_view import asked_by_placeholder, is_of_set, waits_for_set
from roost_core.objects.node import Node
from roost_core.objects.pod import Pod, PodSpec
from roost_core.objects.requests import CPU, MEMORY, NODE_RESOURCES
from roost_core.objects.selectors import NodeRules
from roost_core.placement.headroom_history import size_in_placeholders
from roost_core.release.placeholder_sets import PlaceholderSet


class _Fit(NamedTuple):
    """How well a user fits a set's placeholders; the least is best."""

    # Whether the user or the placeholder asks for devices that the other doesn't.
    differs_in_devices: bool
    # How far its size is from a placeholder's: 0 for equal ones.
    distance: float
    # A set whose nodes meet more conditions comes first, then the values' order.
    minus_conditions: int
    position: int


class SetOfUser:
    """Which of the sets that learn a user counts for, at one time.

    It remembers what it found, because many users have the same spec.
    """

    def __init__(self, sets: Sequence[PlaceholderSet], snapshot: Snapshot) -> None:
        """sets: those that learn."""
        self._sets = {learner.name: learner for learner in sets}
        self._requests = {
            name: asked_by_placeholder(learner) for name, learner in self._sets.items()
        }
        self._position = {name: number for number, name in enumerate(self._sets)}
        self._nodes = snapshot.nodes
        # Names of sets, by the node's name.
        self._sets_of_node: dict[str, tuple[str, ...]] = {}
        # By the set's name.
        self._nodes_of_set: dict[str, dict[str, Node]] = {}
        self._chosen: dict[tuple[PodSpec, tuple[str, ...]], str] = {}
        # Names of sets, by the spec of a pod that waits.
        self._sets_of_waiting: dict[PodSpec, tuple[str, ...]] = {}

    def counts_for(self, pod: Pod, set_name: str) -> bool:
        """Whether a user's pod, on a node of the set or waiting for one, takes a seat of it."""
        if len(self._sets) < 2:
            return True
        if pod.node_name:
            names = self._find_sets_of_node(pod.node_name)
        else:
            names = self._find_sets_of_waiting(pod.spec)
        if len(names) < 2:
            return True
        key = (pod.spec, names)
        if key not in self._chosen:
            self._chosen[key] = min(names, key=lambda name: self._fit(pod.spec, name))
        return self._chosen[key] == set_name

    def _find_sets_of_node(self, node_name: str) -> tuple[str, ...]:
        """Sets whose placeholders can use a node."""
        if node_name not in self._sets_of_node:
            node = self._nodes[node_name]
            self._sets_of_node[node_name] = tuple(
                name for name, learner in self._sets.items() if is_of_set(learner.rules, node)
            )
        return self._sets_of_node[node_name]

    def _find_sets_of_waiting(self, spec: PodSpec) -> tuple[str, ...]:
        """Sets for whose nodes a pod waits."""
        if spec not in self._sets_of_waiting:
            if not self._nodes_of_set:
                self._nodes_of_set = {
                    name: self._usable(learner) for name, learner in self._sets.items()
                }
            self._sets_of_waiting[spec] = tuple(
                name
                for name, learner in self._sets.items()
                if waits_for_set(spec, learner, self._nodes_of_set[name])
            )
        return self._sets_of_waiting[spec]

    def _usable(self, placeholder_set: PlaceholderSet) -> dict[str, Node]:
        return {
            name: node
            for name, node in self._nodes.items()
            if is_of_set(placeholder_set.rules, node)
        }

    def _fit(self, spec: PodSpec, name: str) -> _Fit:
        of_placeholder = self._requests[name]
        of_user = dict(spec.requests)
        size = size_in_placeholders(
            of_user.get(CPU, 0),
            of_user.get(MEMORY, 0),
            of_placeholder.get(CPU, 0),
            of_placeholder.get(MEMORY, 0),
        )
        return _Fit(
            differs_in_devices=_devices(of_user) != _devices(of_placeholder),
            distance=abs(log(size)),
            minus_conditions=-_least_conditions(self._sets[name].rules),
            position=self._position[name],
        )


def _least_conditions(rules: NodeRules) -> int:
    """How many conditions each node of the rules meets at least.

    A node meets the whole selector, and at least one of the required terms.
    """
    lengths = [len(term.expressions) + len(term.fields) for term in rules.required_node_terms or ()]
    return len(rules.node_selector) + min(lengths, default=0)


def _devices(amounts: Mapping[str, int]) -> frozenset[str]:
    return frozenset(name for name, amount in amounts.items() if amount) - NODE_RESOURCES
