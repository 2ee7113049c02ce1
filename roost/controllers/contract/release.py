"""The parts of release.json that several controllers read."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from roost.controllers.contract.bookings import BookingSettings, read_booking_settings
from roost_core.release.reader import Document, Reader
from roost_core.release.release_settings import ReleaseSettings


class ReleaseDocument(ReleaseSettings):
    """release.json, from which controllers read their settings.

    scheduler_configuration: kube-scheduler's, as parsed from YAML; None: none is rendered.
    minor: of the cluster, 36 for 1.36. It decides how kube-scheduler reads its configuration.
    """

    def __init__(
        self,
        read: Reader,
        document: Document,
        scheduler_configuration: Mapping[str, Any] | None = None,
        minor: int = 0,
    ) -> None:
        super().__init__(read, document)
        self.scheduler_configuration = scheduler_configuration
        self.minor = minor

    def read_all(self) -> None:
        """Read each part that controllers share, so that faults are found of parts that no
        controller asks for.
        """
        _ = (
            self.evictions_per_minute,
            self.name,
            self.namespace,
            self.classes,
            self.placeholder_sets,
            self.gate,
            self.events,
        )

    @cached_property
    def evictions_per_minute(self) -> int:
        """`placeholderMover.evictionsPerMinute`: over all sets and nodes; 0: nothing moves."""
        mover = self.read.mapping(self.document.get("placeholderMover"), "placeholderMover")
        return self.read.integer(
            mover.get("evictionsPerMinute"), "placeholderMover.evictionsPerMinute"
        )

    @property
    def moves_placeholders(self) -> bool:
        """Whether placeholders are moved. Only then does the chart give the right to evict."""
        mover = self.read.mapping(self.document.get("placeholderMover"), "placeholderMover")
        is_on = mover.get("enabled") is True
        return is_on and bool(self.placeholder_sets) and self.evictions_per_minute > 0

    @property
    def shows_start_notices(self) -> bool:
        """Whether users are told what their server waits for."""
        notices = self.read.mapping(self.document.get("startNotices"), "startNotices")
        return notices.get("enabled") is True

    @cached_property
    def history_name(self) -> str:
        """The ConfigMap in which headroom keeps what it learned; "": no set learns."""
        name = self.read.text(self.document.get("headroomHistory"), "headroomHistory")
        learns = any(placeholder_set.learn is not None for placeholder_set in self.placeholder_sets)
        return name if learns else ""

    @cached_property
    def events(self) -> BookingSettings | None:
        """`events`; None: none can be booked."""
        return read_booking_settings(self.read, self.document)
