"""Choose the set whose seat a user takes, where several sets learn on the same nodes: each person
counts once.
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

    # Whether one asks for devices that the other doesn't.
    differs_in_devices: bool
    # How far its size is from a placeholder's: 0 for equal ones.
    distance: float
    # A set whose nodes meet more conditions comes first, then the values' order.
    minus_conditions: int
    position: int


class SetOfUser:
    """Which of the sets that learn a user counts for, at one time."""

    def __init__(self, sets: Sequence[PlaceholderSet], snapshot: Snapshot) -> None:
        """sets: those that learn."""
        self._sets = {learner.name: learner for learner in sets}
        self._asked = {name: asked_by_placeholder(learner) for name, learner in self._sets.items()}
        self._position = {name: number for number, name in enumerate(self._sets)}
        self._nodes = snapshot.nodes
        self._of_node: dict[str, tuple[str, ...]] = {}
        self._nodes_of: dict[str, dict[str, Node]] = {}
        self._chosen: dict[tuple[PodSpec, tuple[str, ...]], str] = {}
        self._waits: dict[PodSpec, tuple[str, ...]] = {}

    def counts_for(self, pod: Pod, set_name: str) -> bool:
        """Whether a user's pod, on a node of the set or waiting for one, takes a seat of it."""
        if len(self._sets) < 2:
            return True
        names = self._on(pod.node_name) if pod.node_name else self._waiting(pod.spec)
        if len(names) < 2:
            return True
        key = (pod.spec, names)
        if key not in self._chosen:
            self._chosen[key] = min(names, key=lambda name: self._fit(pod.spec, name))
        return self._chosen[key] == set_name

    def _on(self, node_name: str) -> tuple[str, ...]:
        """Sets whose placeholders can use a node."""
        if node_name not in self._of_node:
            node = self._nodes[node_name]
            self._of_node[node_name] = tuple(
                name for name, learner in self._sets.items() if is_of_set(learner.rules, node)
            )
        return self._of_node[node_name]

    def _waiting(self, spec: PodSpec) -> tuple[str, ...]:
        """Sets for whose nodes a pod waits."""
        if spec not in self._waits:
            if not self._nodes_of:
                self._nodes_of = {
                    name: self._usable(learner) for name, learner in self._sets.items()
                }
            self._waits[spec] = tuple(
                name
                for name, learner in self._sets.items()
                if waits_for_set(spec, learner, self._nodes_of[name])
            )
        return self._waits[spec]

    def _usable(self, placeholder_set: PlaceholderSet) -> dict[str, Node]:
        return {
            name: node
            for name, node in self._nodes.items()
            if is_of_set(placeholder_set.rules, node)
        }

    def _fit(self, spec: PodSpec, name: str) -> _Fit:
        asked = self._asked[name]
        own = dict(spec.requests)
        size = size_in_placeholders(
            own.get(CPU, 0), own.get(MEMORY, 0), asked.get(CPU, 0), asked.get(MEMORY, 0)
        )
        return _Fit(
            differs_in_devices=_devices(own) != _devices(asked),
            distance=abs(log(size)),
            minus_conditions=-_least_conditions(self._sets[name].rules),
            position=self._position[name],
        )


def _least_conditions(rules: NodeRules) -> int:
    """How many conditions each of the nodes meets at least: of the terms, one must hold."""
    lengths = [len(term.expressions) + len(term.fields) for term in rules.required_node_terms or ()]
    return len(rules.node_selector) + min(lengths, default=0)


def _devices(amounts: Mapping[str, int]) -> frozenset[str]:
    return frozenset(name for name, amount in amounts.items() if amount) - NODE_RESOURCES
