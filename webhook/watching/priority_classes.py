"""PriorityClasses, by which rules know whether a pod could pre-empt another."""

from __future__ import annotations

from typing import Final

from roost_core.kube.event_stream import ListWatch
from roost_core.kube.watches import Watched, Watches
from roost_core.placement.priorities import LOWEST_PRIORITY, NO_CLASS, foreign_priority
from webhook.rules import Rulebook
from webhook.rules.contract import Reads

_PATH: Final = "/apis/scheduling.k8s.io/v1/priorityclasses"


class WatchedPriorityClasses(Watched[int]):
    """Priorities that are lower than that of pods without a class, without those of Roost.

    Watched if a rule reads them and the webhook reads nodes.
    """

    def __init__(self, watches: Watches, rulebook: Rulebook) -> None:
        super().__init__(None)
        if rulebook.settings.reads_nodes and rulebook.classes_that_read(Reads.PRIORITIES):
            self.cache = watches.add(ListWatch(_PATH, foreign_priority, kind="priorityclasses"))

    @property
    def fact(self) -> int:
        """`Facts.lowest_priority`; the lowest possible priority while the classes aren't known."""
        if not self.is_known:
            return LOWEST_PRIORITY
        return min(self.objects().values(), default=NO_CLASS)
