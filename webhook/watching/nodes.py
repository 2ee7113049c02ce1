"""The cluster's nodes."""

from __future__ import annotations

from functools import partial

from roost_core.kube.event_stream import ListWatch
from roost_core.kube.watches import NODES_PATH, TakenChanges, Watched, Watches
from roost_core.objects.node import Node, node_or_none
from roost_core.placement.nodes import Nodes
from webhook.rules import Rulebook
from webhook.rules.contract import Reads
from webhook.watching.reported_images import ReportedImages


class WatchedNodes(Watched[Node]):
    """Nodes, unless the values say that the webhook doesn't read them."""

    def __init__(self, watches: Watches, rulebook: Rulebook) -> None:
        super().__init__(None)
        if rulebook.settings.reads_nodes:
            # Images take most of a node's memory, so they are kept only if a rule reads them.
            reads_images = Reads.WARM | Reads.PULLS
            with_images = any(
                rulebook.reads(name) & reads_images for name in rulebook.settings.classes
            )
            self.cache = watches.add(
                ListWatch(NODES_PATH, partial(node_or_none, with_images=with_images), kind="nodes"),
                keeps_changes=True,
            )
        # The nodes as last listed, however long ago. None: they were never listed.
        self.last_known: Nodes | None = None

    def refresh(self, taken: TakenChanges, images: ReportedImages) -> None:
        """Take in what changed. images: forget what was reported of nodes that were replaced by
        others of the same name.
        """
        if self.cache is None or not self.cache.synced:
            return
        changes = taken.take(self.cache)
        if self.last_known is None:
            self.last_known = Nodes(node for node in changes.values() if node is not None)
        elif changes:
            images.note_replaced(self.last_known, changes)
            self.last_known = self.last_known.updated(changes)

    def lists(self, name: str, reference: str) -> bool:
        """Whether a node's own list has an image. name: of the node; reference: normalised."""
        node = self.fact.get_node(name) if self.fact is not None else None
        return node is not None and reference in node.image_names

    def may_hold_more(self, name: str) -> bool:
        """Whether a node may hold images that its list lacks. name: of the node."""
        node = self.fact.get_node(name) if self.fact is not None else None
        return node is None or not node.lists_all_images

    @property
    def fact(self) -> Nodes | None:
        """`Facts.nodes`."""
        return self.last_known if self.is_known else None

    @property
    def readable(self) -> Nodes | None:
        """`last_known`; None while nodes may not be read."""
        return None if self.cache is None or self.cache.is_forbidden else self.last_known
