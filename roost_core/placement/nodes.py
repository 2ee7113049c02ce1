"""Keep what is known about all nodes, so that it can be updated fast and read from any thread.

`Nodes` is immutable: `updated` returns another that shares what didn't change. So a reader sees one
state of the cluster. 100 changes a second to 5,000 nodes cost a few milliseconds a second.

What a program asks of each node, for example whether it admits a pod, is a `Question`. Its answers
are kept, and asked again only of nodes that change.
"""

import threading
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Any, Final, Generic, Protocol, Self, TypeVar

from roost_core.objects.node import Node
from roost_core.placement.labels import HELD, KARPENTER_POOL_LABEL, PULLED_LABEL_PREFIX

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
V = TypeVar("V")

# The most questions whose answers are kept; those that were asked last. A hub's pods ask few.
_MAX_QUESTIONS: Final = 24


class Question(Hashable, Protocol[T_co]):
    """A question about a single node. Questions that compare equal have the same answers."""

    def answer(self, node: Node) -> T_co | None:
        """The answer for a node; None: the node is left out."""


class Answers(Generic[T]):
    """The answers of all nodes to a question, by the node's name.

    Immutable, except that it keeps what `derive` returned.
    """

    __slots__ = ("_derived", "by_name")

    def __init__(self, by_name: Mapping[str, T]) -> None:
        self.by_name = by_name
        self._derived: Any = None

    def derive(self, compute: Callable[[Mapping[str, T]], V]) -> V:
        """Return what `compute` makes of the answers by name. The result is kept.

        The callers of a question must always give the same `compute`.
        """
        if self._derived is None:
            self._derived = compute(self.by_name)
        derived: V = self._derived
        return derived

    def updated(self, question: Question[T], changes: Mapping[str, Node | None]) -> "Answers[T]":
        """The answers after nodes changed; the same object if no answer changed.

        changes: by name; None: the node is gone.
        """
        changed: dict[str, T | None] = {}
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
    """All nodes at one time, by name."""

    __slots__ = ("_answers", "_by_name", "_lock", "holders", "of_karpenter")

    # Names of the nodes that hold an image, by the image's label.
    holders: Mapping[str, frozenset[str]]
    # How many nodes are Karpenter's.
    of_karpenter: int

    def __init__(self, nodes: Iterable[Node] = ()) -> None:
        by_name = {node.name: node for node in nodes}
        holders: dict[str, set[str]] = {}
        for node in by_name.values():
            for label in _pulled_labels(node):
                holders.setdefault(label, set()).add(node.name)
        self._by_name: Mapping[str, Node] = by_name
        # By question; the question that was asked last is at the end.
        self._answers: dict[Question[Any], Answers[Any]] = {}
        # Held while `_answers` is read or changed.
        self._lock = threading.Lock()
        self.holders = {label: frozenset(names) for label, names in holders.items()}
        self.of_karpenter = sum(map(_is_of_karpenter, by_name.values()))

    def __getitem__(self, name: str) -> Node:
        return self._by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self._by_name)

    def get_node(self, name: str) -> Node | None:
        """Return the node of a name, faster than Mapping.get; None: there is none."""
        return self._by_name.get(name)

    @property
    def names(self) -> frozenset[str]:
        """The names of all nodes."""
        return frozenset(self._by_name)

    def answers(self, question: Question[T]) -> Answers[T]:
        """The answers of all nodes to a question.

        They are kept. After `updated`, only nodes that changed are asked again.
        """
        with self._lock:
            answers: Answers[T] | None = self._answers.pop(question, None)
            if answers is None:
                by_name: dict[str, T] = {}
                for name, node in self._by_name.items():
                    answer = question.answer(node)
                    if answer is not None:
                        by_name[name] = answer
                answers = Answers(by_name)
                while len(self._answers) >= _MAX_QUESTIONS:
                    del self._answers[next(iter(self._answers))]
            self._answers[question] = answers
            return answers

    def updated(self, changes: Mapping[str, Node | None]) -> Self:
        """Return the nodes after changes; this object stays as it is.

        changes: by name; None: the node is gone. One call with many changes is faster than many
        calls.
        """
        by_name = dict(self._by_name)
        # Only those of labels whose nodes changed.
        new_holders: dict[str, set[str]] = {}
        of_karpenter = self.of_karpenter
        for name, node in changes.items():
            before = by_name.get(name)
            of_karpenter += _is_of_karpenter(node) - _is_of_karpenter(before)
            if node is not None:
                by_name[name] = node
            elif before is not None:
                del by_name[name]
            held_before = _pulled_labels(before) if before is not None else []
            held_now = _pulled_labels(node) if node is not None else []
            if held_before == held_now:
                continue
            for label in (*held_before, *held_now):
                if label not in new_holders:
                    new_holders[label] = set(self.holders.get(label, ()))
            for label in held_before:
                new_holders[label].discard(name)
            for label in held_now:
                new_holders[label].add(name)
        new = type(self).__new__(type(self))
        new._by_name = by_name
        with self._lock:
            asked = list(self._answers.items())
        new._lock = threading.Lock()
        new._answers = {question: answers.updated(question, changes) for question, answers in asked}
        new.of_karpenter = of_karpenter
        new.holders = self.holders
        if new_holders:
            holders = dict(self.holders)
            for label, names in new_holders.items():
                holders[label] = frozenset(names)
            new.holders = {label: names for label, names in holders.items() if names}
        return new
