"""Device classes, which give nodes extended resources that they don't list."""

from __future__ import annotations

from roost_core.kube.event_stream import ListWatch
from roost_core.kube.watches import DEVICE_CLASSES_PATH, Watched, Watches
from roost_core.objects.device_classes import claimable_resources
from webhook.rules import Rulebook


class WatchedDeviceClasses(Watched[frozenset[str]]):
    """The extended resources of each device class, where nodes are read."""

    def __init__(self, watches: Watches, rulebook: Rulebook) -> None:
        super().__init__(None)
        if rulebook.settings.reads_nodes:
            self.cache = watches.add(
                ListWatch(DEVICE_CLASSES_PATH, claimable_resources, kind="deviceclasses")
            )

    @property
    def fact(self) -> frozenset[str]:
        """`Facts.claimable`; none where it can't be known, so that the gate requires too little
        rather than too much.
        """
        resources = self.objects().values() if self.is_known else ()
        return frozenset[str]().union(*resources)
