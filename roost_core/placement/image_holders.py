"""Find whether a node that a pod's own rules admit and that is large enough holds all of some images.

Owns the answer and its memory: pods of one profile ask the same thing, and among thousands of nodes "no" is dear to
find.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from roost_core.objects.node import Node, node_admits, node_covers

if TYPE_CHECKING:
    from collections.abc import Callable

    from roost_core.objects.selectors import NodeRules
    from roost_core.placement.nodes import Nodes

# Nodes tried before the cache is consulted: mostly, the first one fits.
_TRIED_AT_ONCE: Final = 4
_MAX_REMEMBERED: Final = 1024

# A pod's requests: resources and amounts.
Requests = tuple[tuple[str, int], ...]


class Holders:
    """Asks the same Nodes, or later ones of their history, many times. Safe to use from several threads."""

    def __init__(self) -> None:
        # -> (moment of the nodes asked, a node that fits or None)
        self._found: dict[tuple[NodeRules, tuple[str, ...], Requests], tuple[tuple[object, int], str | None]] = {}

    def exists(self, nodes: Nodes, rules: NodeRules, labels: tuple[str, ...], requests: Requests = ()) -> bool:
        """Whether a Ready node that `rules` admit holds the images of all `labels`, and could take `requests`.

        Could: if nothing else were there. Who looks for room now asks the scheduler.
        """
        sets = [nodes.holders.get(label) for label in labels]
        held = [found for found in sets if found]
        if len(held) < len(sets):
            return False
        fewest = min(held, key=len)
        others = [found for found in held if found is not fewest]

        def fits(name: str) -> bool:
            node: Node | None = nodes.get_node(name)
            if node is None or not node.ready or not node_admits(rules, node):
                return False
            if not node_covers(requests, node.allocatable):
                return False
            return not others or all(name in found for found in others)

        for tried, name in enumerate(fewest):
            if fits(name):
                return True
            if tried >= _TRIED_AT_ONCE:
                return self._look_up((rules, labels, requests), nodes, fewest, fits)
        return False

    def _look_up(
        self,
        key: tuple[NodeRules, tuple[str, ...], Requests],
        nodes: Nodes,
        names: frozenset[str],
        fits: Callable[[str], bool],
    ) -> bool:
        if not key[0].are_short:
            return any(map(fits, names))
        cached = self._found.get(key)
        if cached is not None:
            moment, witness = cached
            if witness is not None and witness in names and fits(witness):
                return True
            changed = nodes.changed_since(moment) if witness is None else None
            if changed is not None:
                # No node fitted then, so only nodes that changed since can fit now.
                names &= changed
        witness = next((name for name in names if fits(name)), None)
        if len(self._found) >= _MAX_REMEMBERED:
            self._found = {}
        self._found[key] = (nodes.moment, witness)
        return witness is not None
