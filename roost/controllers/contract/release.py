"""release.json as all controllers share it: each part is read once, by one reader, which gathers the faults."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from roost.controllers.contract.bookings import BookingSettings, read_booking_settings
from roost.controllers.contract.placeholder_sets import PlaceholderSet, has_buffers, read_placeholder_sets
from roost_core.placement.classes import Classes
from roost_core.placement.pullers import Pullers, read_pullers
from roost_core.placement.settings import PodClass, read_pod_classes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from roost_core.objects.pod import Pod
    from roost_core.placement.settings_reader import Document, Reader


class ReleaseDocument:
    """What controllers are made from.

    document: release.json; a controller reads its own part. scheduler_configuration: as parsed from YAML; None:
    none is rendered. minor: the cluster's, 36 for 1.36, which decides how kube-scheduler reads it. read: gets faults.
    """

    def __init__(
        self,
        read: Reader,
        document: Document,
        scheduler_configuration: Mapping[str, Any] | None = None,
        minor: int = 0,
    ) -> None:
        self.read = read
        self.document = document
        self.scheduler_configuration = scheduler_configuration
        self.minor = minor

    @cached_property
    def name(self) -> str:
        """The release's name."""
        return self.read.text(self.document.get("release"), "release")

    @cached_property
    def namespace(self) -> str:
        """Its namespace."""
        return self.read.text(self.document.get("namespace"), "namespace")

    @cached_property
    def classes(self) -> Mapping[str, PodClass]:
        """`podClasses`, by name."""
        return read_pod_classes(self.read, self.document)

    @cached_property
    def _matcher(self) -> Classes:
        return Classes(self.namespace, self.classes)

    def class_of(self, pod: Pod, namespaces: Mapping[str, Mapping[str, str]] | None) -> PodClass | None:
        """Return the class of a pod; None: it has none. namespaces: labels, as a Snapshot has them."""
        return self._matcher.classify(pod.labels, pod.namespace, namespaces)

    def is_users(self, pod: Pod, namespaces: Mapping[str, Mapping[str, str]] | None) -> bool:
        """Whether it is a user's pod."""
        found = self.class_of(pod, namespaces)
        return found is not None and found.is_of_users

    @cached_property
    def pullers(self) -> Pullers:
        """The pullers of `imageGate`."""
        return read_pullers(self.read, self.document)

    @cached_property
    def has_buffers(self) -> bool:
        """Whether autoscalers keep the room for placeholders, without any pod."""
        return has_buffers(self.document)

    @cached_property
    def sets(self) -> tuple[PlaceholderSet, ...]:
        """`placeholders`."""
        return read_placeholder_sets(self.read, self.document, self.name, self.namespace)

    @cached_property
    def history_name(self) -> str:
        """The ConfigMap in which headroom keeps what it learned; "": no set learns."""
        name = self.read.text(self.document.get("headroomHistory"), "headroomHistory")
        return name if any(each.learn is not None for each in self.sets) else ""

    @cached_property
    def events(self) -> BookingSettings | None:
        """`events`; None: none can be booked."""
        return read_booking_settings(self.read, self.document)
