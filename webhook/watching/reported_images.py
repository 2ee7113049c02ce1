"""Keep warm facts in step with the nodes: images go with their node, and what nodes report is taken
in.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Set
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
        # Each node as it was when a report of its images was last taken in.
        self._reported: dict[str, Node] = {}
        # All nodes as they were when reports were last taken in.
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

        nodes: None: they can't be read. Then images go with the last pod of their node. So do, at
        any time, images of classes outside `sets`. with_reports: what nodes say is recent. A fault
        loses nothing: the next call takes in the same.
        """
        followed: dict[Key, WarmFacts] = {}
        # Made of all nodes each time it is asked for.
        names = nodes.names if nodes is not None else None
        for key, known in warm.items():
            gone: Set[str]
            if names is not None and key in sets:
                gone = known.nodes_with_images - names
            else:
                gone = {node for node in known.nodes_with_images if not known.pods_on(node)}
            followed[key] = known.without_nodes(gone | self._replaced)
        if nodes is None:
            # Once nodes can be read, all reports are taken in again.
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
        """The facts with the images of nodes whose report changed since the last call."""
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
        # A part at a time: what `with_reports` works with takes as much memory as the result.
        for start in range(0, len(reports), _REPORTS_AT_ONCE):
            some = dict(reports[start : start + _REPORTS_AT_ONCE])
            warm = {key: known.with_reports(some) for key, known in warm.items()}
        self._reported, self._reported_at = reported, nodes
        return warm
