"""Count the nodes of a set that a pod's own rules admit.

Owns the answer and its memory: builds of one hub ask the same thing, and to look at thousands of nodes for each would
cost milliseconds. A change of some nodes costs a look at those alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import orjson

from roost_core.placement.nodes import node_admits

if TYPE_CHECKING:
    from collections.abc import Iterable

    from roost_core.placement.nodes import NodeRules, Nodes

# Each keeps the nodes that it was counted from, some hundred kilobytes where there are thousands.
_MAX_REMEMBERED: Final = 32
# A pod may have megabytes; real rules have some hundred bytes.
_MAX_RULES_BYTES: Final = 4096


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
        self._known: dict[bytes, _Known] = {}

    def count(self, nodes: Nodes, names: frozenset[str], rules: NodeRules) -> int | None:
        """Return how many nodes of `names` are Ready, not cordoned, and admitted by `rules`.

        None for rules that are too long to be remembered: they would cost a look at every node each time. Give the same
        `names` object while they don't change.
        """
        key = _written(rules)
        if key is None:
            return None
        cached = self._known.get(key)
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
        if len(self._known) >= _MAX_REMEMBERED and key not in self._known:
            self._known = {}
        self._known[key] = _Known(names, nodes, count)
        return count


def _admitted(nodes: Nodes, names: Iterable[str], rules: NodeRules) -> int:
    present = map(nodes.get_node, names)
    return sum(1 for node in present if node is not None and node.is_usable and node_admits(rules, node))


def _written(rules: NodeRules) -> bytes | None:
    """Return the rules as JSON; None if they are too long or too deeply nested."""
    try:
        text = orjson.dumps([rules.node_selector, rules.required_terms, rules.tolerations])
    except TypeError:
        return None
    return text if len(text) <= _MAX_RULES_BYTES else None
