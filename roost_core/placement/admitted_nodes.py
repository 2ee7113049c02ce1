"""Count the nodes of a set that a pod's own rules admit.

Owns the answer and its memory: builds of one hub ask the same thing, and to look at thousands of nodes for each would
cost milliseconds. A change of some nodes costs a look at those alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from roost_core.objects.node import node_admits

if TYPE_CHECKING:
    from collections.abc import Iterable

    from roost_core.objects.selectors import NodeRules
    from roost_core.placement.nodes import Nodes

# Each keeps the nodes that it was counted from, some hundred kilobytes where there are thousands.
_MAX_REMEMBERED: Final = 32


class _Known(NamedTuple):
    """A count, and what it was counted from."""

    names: frozenset[str]
    nodes: Nodes
    admitted: int


class AdmittedNodes:
    """Counts the same sets, under the same Nodes or later ones of their history, many times.

    Safe to use from several threads.
    """

    def __init__(self) -> None:
        self._known: dict[NodeRules, _Known] = {}

    def count(self, nodes: Nodes, names: frozenset[str], rules: NodeRules) -> int | None:
        """Return how many nodes of `names` are Ready, not cordoned, and admitted by `rules`.

        None for rules that are too long to be remembered: they would cost a look at every node each time. Give the same
        `names` object while they don't change.
        """
        if not rules.are_short:
            return None
        cached = self._known.get(rules)
        changed = None
        if cached is not None and cached.names is names:
            if cached.nodes is nodes:
                return cached.admitted
            changed = nodes.changed_since(cached.nodes.moment)
        if cached is None or changed is None:
            count = _admitted(nodes, names, rules)
        else:
            there = names & changed
            count = cached.admitted + _admitted(nodes, there, rules) - _admitted(cached.nodes, there, rules)
        if len(self._known) >= _MAX_REMEMBERED and rules not in self._known:
            self._known = {}
        self._known[rules] = _Known(names, nodes, count)
        return count


def _admitted(nodes: Nodes, names: Iterable[str], rules: NodeRules) -> int:
    present = map(nodes.get_node, names)
    return sum(1 for node in present if node is not None and node.is_usable and node_admits(rules, node))
