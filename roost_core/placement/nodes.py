"""Keep what is known about nodes, cheap to update node by node, and find which of them a pod's own
rules admit.

`Nodes` is immutable: `updated` returns a new one that shares what didn't change, so a reader has
one state of the cluster, and 100 changes a second to 5,000 nodes cost a few milliseconds a second.
"""

import threading
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Any, Final, Generic, Protocol, Self, TypeVar

from roost_core.objects.node import Node
from roost_core.placement.labels import HELD, KARPENTER_POOL_LABEL, PULLED_LABEL_PREFIX

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
V = TypeVar("V")

# Questions whose answers are kept: hubs' pods ask few, and of others those asked last stay.
_MAX_QUESTIONS: Final = 24


class Question(Hashable, Protocol[T_co]):
    """What is asked of each node by itself. Questions that compare equal ask the same."""

    def answer(self, node: Node) -> T_co | None:
        """The answer; None: the node is left out."""


class Answers(Generic[T]):
    """The answers of all nodes to one question, by name. Immutable, but for what was made of
    them.
    """

    __slots__ = ("_made", "by_name")

    def __init__(self, by_name: Mapping[str, T]) -> None:
        self.by_name = by_name
        self._made: Any = None

    def made(self, make: Callable[[Mapping[str, T]], V]) -> V:
        """What `make` makes of the answers, made once and kept: each question comes with the same
        `make` each time.
        """
        if self._made is None:
            self._made = make(self.by_name)
        made: V = self._made
        return made

    def updated(self, question: Question[T], changes: Mapping[str, Node | None]) -> "Answers[T]":
        """The answers after `changes` of nodes; the same object while no answer changes."""
        changed = {}
        for name, node in changes.items():
            answer = None if node is None else question.answer(node)
            if answer != self.by_name.get(name):
                changed[name] = answer
        if not changed:
            return self
        by_name = dict(self.by_name)
        for name, answer in changed.items():
            if answer is None:
                del by_name[name]
            else:
                by_name[name] = answer
        return Answers(by_name)


def _pulled_labels(node: Node) -> list[str]:
    return [
        key
        for key, value in node.labels.items()
        if key.startswith(PULLED_LABEL_PREFIX) and value == HELD
    ]


def _is_of_karpenter(node: Node | None) -> bool:
    return node is not None and KARPENTER_POOL_LABEL in node.labels


class Nodes(Mapping[str, Node]):
    """All nodes at one time, by name, with the sets that placement needs."""

    __slots__ = ("_answers", "_asking", "_by_name", "holders", "of_karpenter")

    # Names of the nodes that have an image, by the image's label.
    holders: Mapping[str, frozenset[str]]
    # How many are Karpenter's.
    of_karpenter: int

    def __init__(self, nodes: Iterable[Node] = ()) -> None:
        by_name = {node.name: node for node in nodes}
        holders: dict[str, set[str]] = {}
        for node in by_name.values():
            for label in _pulled_labels(node):
                holders.setdefault(label, set()).add(node.name)
        self._by_name: Mapping[str, Node] = by_name
        # By question, that asked last at the end.
        self._answers: dict[Question[Any], Answers[Any]] = {}
        self._asking = threading.Lock()
        self.holders = {label: frozenset(names) for label, names in holders.items()}
        self.of_karpenter = sum(map(_is_of_karpenter, by_name.values()))

    def __getitem__(self, name: str) -> Node:
        return self._by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self._by_name)

    def get_node(self, name: str) -> Node | None:
        """Return the node of that name, faster than Mapping.get."""
        return self._by_name.get(name)

    @property
    def names(self) -> frozenset[str]:
        """All names."""
        return frozenset(self._by_name)

    def answers(self, question: Question[T]) -> Answers[T]:
        """What each node answers. The nodes after `updated` ask only those that changed."""
        with self._asking:
            answers: Answers[T] | None = self._answers.pop(question, None)
            if answers is None:
                found = ((name, question.answer(node)) for name, node in self._by_name.items())
                answers = Answers({name: answer for name, answer in found if answer is not None})
                while len(self._answers) >= _MAX_QUESTIONS:
                    del self._answers[next(iter(self._answers))]
            self._answers[question] = answers
            return answers

    def updated(self, changes: Mapping[str, Node | None]) -> Self:
        """Return the nodes after `changes` (None: the node is gone); this object stays the same.

        Batch many changes.
        """
        by_name = dict(self._by_name)
        holders: dict[str, set[str]] = {}
        of_karpenter = self.of_karpenter
        for name, node in changes.items():
            before = by_name.get(name)
            of_karpenter += _is_of_karpenter(node) - _is_of_karpenter(before)
            if node is not None:
                by_name[name] = node
            elif before is not None:
                del by_name[name]
            held_before = _pulled_labels(before) if before is not None else []
            holds = _pulled_labels(node) if node is not None else []
            if held_before == holds:
                continue
            for label in held_before:
                holders.setdefault(label, set(self.holders.get(label, ()))).discard(name)
            for label in holds:
                holders.setdefault(label, set(self.holders.get(label, ()))).add(name)
        new = type(self).__new__(type(self))
        new._by_name = by_name
        with self._asking:
            asked = list(self._answers.items())
        new._asking = threading.Lock()
        new._answers = {question: answers.updated(question, changes) for question, answers in asked}
        new.holders = self.holders
        new.of_karpenter = of_karpenter
        if holders:
            merged = {
                **self.holders,
                **{label: frozenset(names) for label, names in holders.items()},
            }
            new.holders = {label: names for label, names in merged.items() if names}
        return new
