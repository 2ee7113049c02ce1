"""Keep warm facts in step with the nodes: images go with their node, and what nodes report is taken
in.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Final, TypeVar

from roost_core.objects.node import Node
from roost_core.placement.nodes import Nodes
from webhook.facts.warm import WarmFacts

Key = TypeVar("Key")

# Nodes whose images are taken in together.
_REPORTS_AT_ONCE: Final = 500


class ReportedImages:
    """What was taken in of nodes so far, for some warm facts. Only one thread may call it."""

    def __init__(self) -> None:
        # Names that now belong to other machines, whose images are still to be forgotten.
        self._replaced: set[str] = set()
        # Each node as it was when a report of its images was last taken in, and the nodes of the
        # last time.
        self._reported: dict[str, Node] = {}
        self._reported_at: Nodes | None = None

    def note_replaced(self, known: Nodes, changes: Mapping[str, Node | None]) -> None:
        """Note the names of nodes that were replaced by other machines within these changes."""
        for name, now in changes.items():
            before = known.get_node(name)
            if now and before and before.uid != now.uid:
                self._replaced.add(name)

    def follow(
        self,
        warm: Mapping[Key, WarmFacts],
        nodes: Nodes | None,
        sets: Container[Key],
        *,
        with_reports: bool,
    ) -> dict[Key, WarmFacts]:
        """The facts without the images of nodes that went, and with what nodes report.

        nodes: None: they can't be read, so images go with the last pod of their node, as those do
        of classes outside `sets`. with_reports: what nodes say is recent. A fault loses nothing:
        the next call takes in the same.
        """
        known_names = nodes.names if nodes is not None else None
        followed: dict[Key, WarmFacts] = {}
        for key, known in warm.items():
            held = known.nodes_with_images
            gone = (
                {node for node in held if not known.pods_on(node)}
                if known_names is None or key not in sets
                else held - known_names
            )
            followed[key] = known.without_nodes(gone | self._replaced)
        if known_names is None:
            # Their reports are taken in again once nodes can be read.
            self._reported, self._reported_at = {}, None
        for node in self._replaced:
            self._reported.pop(node, None)
        if nodes is not None and with_reports:
            followed |= self._with_reports(
                {key: known for key, known in followed.items() if key in sets}, nodes
            )
        self._replaced = set()
        return followed

    def _with_reports(self, warm: dict[Key, WarmFacts], nodes: Nodes) -> dict[Key, WarmFacts]:
        if not warm or nodes is self._reported_at:
            return warm
        reports: list[tuple[str, tuple[Node | None, Node]]] = []
        # Replaced at the end, and not before: after a fault the same reports are taken in again.
        reported: dict[str, Node] = {}
        for name, node in nodes.items():
            before = self._reported.get(name)
            if node.images:
                reported[name] = node
                if node is not before:
                    reports.append((name, (before, node)))
            elif before is not None:
                # A kubelet that starts reports no image at first.
                reported[name] = before
        # A few at a time, for what is kept meanwhile takes as much memory as the result.
        for start in range(0, len(reports), _REPORTS_AT_ONCE):
            some = dict(reports[start : start + _REPORTS_AT_ONCE])
            warm = {key: known.with_reports(some) for key, known in warm.items()}
        self._reported, self._reported_at = reported, nodes
        return warm
