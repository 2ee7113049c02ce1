"""Keep what is known about nodes, cheap to update node by node, and find which of them a pod's own rules admit.

`Nodes` is immutable: `updated` returns a new one that shares what didn't change, so a reader has one state of the
cluster, and 100 changes a second to 5,000 nodes cost a few milliseconds a second.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Self

from roost_core.objects.node import Node
from roost_core.placement.labels import HELD, PULLED_LABEL_PREFIX

# How many updates a reader may miss and still learn which nodes changed; after more, it reads all of them.
_REMEMBERED_UPDATES: Final = 256


def _pulled_labels(node: Node) -> list[str]:
    return [key for key, value in node.labels.items() if key.startswith(PULLED_LABEL_PREFIX) and value == HELD]


class Nodes(Mapping[str, Node]):
    """All nodes at one time, by name, with the sets that placement needs."""

    __slots__ = ("_by_name", "_names", "_recent", "holders", "moment")

    # Names of the nodes that have an image, by the image's label.
    holders: Mapping[str, frozenset[str]]
    # Which history of updates this belongs to, and how many it has seen; for `changed_since`.
    moment: tuple[object, int]

    def __init__(self, nodes: Iterable[Node] = ()) -> None:
        by_name = {node.name: node for node in nodes}
        holders: dict[str, set[str]] = {}
        for node in by_name.values():
            for label in _pulled_labels(node):
                holders.setdefault(label, set()).add(node.name)
        self._by_name: Mapping[str, Node] = by_name
        # Created when first needed.
        self._names: frozenset[str] | None = None
        self.holders = {label: frozenset(names) for label, names in holders.items()}
        self.moment = (object(), 0)
        # The last updates of this history: the names each changed, newest last.
        self._recent: tuple[frozenset[str], ...] = ()

    def __getitem__(self, name: str) -> Node:
        return self._by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self._by_name)

    def get_node(self, name: str) -> Node | None:
        """Return the node of that name, faster than Mapping.get."""
        return self._by_name.get(name)

    def is_usable(self, name: str) -> bool:
        """Whether the node exists, is Ready and not cordoned."""
        node = self._by_name.get(name)
        return node is not None and node.is_usable

    @property
    def names(self) -> frozenset[str]:
        """All names; the same object while no node joins or leaves."""
        if self._names is None:
            self._names = frozenset(self._by_name)
        return self._names

    def changed_since(self, moment: tuple[object, int]) -> frozenset[str] | None:
        """Return names of nodes that joined, left or changed since an earlier `moment`; None if that is unknown."""
        behind = self.moment[1] - moment[1]
        if self.moment[0] is not moment[0] or behind < 0 or behind > len(self._recent):
            return None
        return frozenset().union(*self._recent[len(self._recent) - behind :])

    def updated(self, changes: Mapping[str, Node | None]) -> Self:
        """Return the nodes after `changes` (None: the node is gone); this object stays the same. Batch many changes."""
        by_name = dict(self._by_name)
        has_same_names = True
        holders: dict[str, set[str]] = {}
        for name, node in changes.items():
            before = by_name.get(name)
            if node is not None:
                by_name[name] = node
            elif before is not None:
                del by_name[name]
            has_same_names = has_same_names and (before is None) == (node is None)
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
        new._names = self._names if has_same_names else None
        new.holders = self.holders
        if holders:
            merged = {**self.holders, **{label: frozenset(names) for label, names in holders.items()}}
            new.holders = {label: names for label, names in merged.items() if names}
        new.moment = (self.moment[0], self.moment[1] + 1)
        new._recent = (*self._recent[-(_REMEMBERED_UPDATES - 1) :], frozenset(changes))
        return new
