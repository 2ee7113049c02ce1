"""Device classes, which give nodes extended resources that they don't list."""

from __future__ import annotations

from roost_core.kube.event_stream import ListWatch
from roost_core.kube.watches import DEVICE_CLASSES_PATH, Watched, Watches
from roost_core.objects.device_classes import claimable_resources


class WatchedDeviceClasses(Watched[frozenset[str]]):
    """The extended resources of each device class, where the account may read them."""

    def __init__(self, watches: Watches) -> None:
        super().__init__(None)
        if watches.all_namespaces:
            self.cache = watches.add(
                ListWatch(DEVICE_CLASSES_PATH, claimable_resources, kind="deviceclasses")
            )

    @property
    def claimable(self) -> frozenset[str]:
        """`Snapshot.claimable`."""
        return frozenset[str]().union(*self.objects().values())
