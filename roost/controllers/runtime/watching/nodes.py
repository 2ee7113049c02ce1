"""The cluster's nodes, and since when each is there and Ready."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from roost.controllers.contract.snapshot import Moment, Sight, see
from roost_core.kube.event_stream import ListWatch
from roost_core.kube.watches import NODES_PATH, Watched, Watches, apply_changes
from roost_core.objects.node import Node, node_or_none


class WatchedNodes(Watched[Node]):
    """All nodes."""

    def __init__(self, watches: Watches, wall: Callable[[], float]) -> None:
        """wall: Unix time."""
        self._nodes = watches.add(
            ListWatch(NODES_PATH, node_or_none, kind="nodes"), keeps_changes=True
        )
        super().__init__(self._nodes)
        self._clock = watches.clock
        self._wall = wall
        # Seconds that a node can have been there before this program first sees it.
        self._longest_unseen = math.inf
        self._known: dict[str, Node] = {}
        self._sights: dict[str, Sight] = {}

    def follow(self) -> None:
        """Take in what changed."""
        was_listed = self._nodes.synced
        now = Moment(self._wall(), self._clock())
        changes = self._nodes.take_changes()
        apply_changes(self._known, changes)
        for name, node in changes.items():
            before = self._sights.pop(name, None)
            if node is not None:
                self._sights[name] = see(node, before, now, self._longest_unseen)
        # The nodes of the first list may have been there before this program. It sees each later
        # node come.
        self._longest_unseen = 0.0 if was_listed else math.inf

    @property
    def by_name(self) -> Mapping[str, Node]:
        """`Snapshot.nodes`; changes with each `follow`."""
        return self._known

    @property
    def sights(self) -> Mapping[str, Sight]:
        """`Snapshot.sights`; changes with each `follow`."""
        return self._sights
