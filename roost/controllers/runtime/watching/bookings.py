"""Bookings: ConfigMaps of the release's and of hubs' namespaces."""

from __future__ import annotations

from collections.abc import Mapping

from roost.controllers.contract.bookings import BookingSource, bounded
from roost.controllers.contract.release import ReleaseDocument
from roost.controllers.runtime.booking_sources import (
    BookingText,
    ConfigMapReader,
    ReadingTime,
    keep_config_map,
)
from roost.controllers.runtime.watching.namespaces import WatchedNamespaces
from roost_core.kube.event_stream import ListWatch
from roost_core.kube.watch_cache import label_selector
from roost_core.kube.watches import Watched, Watches
from roost_core.objects.fields import JSONObject
from roost_core.objects.selectors import read_label_selector
from roost_core.placement.labels import EVENTS_LABEL, HUB_BOOKINGS
from roost_core.release.class_of_pod import namespace_matches


class WatchedBookings:
    """The ConfigMaps that book events. There are none while events are switched off."""

    def __init__(
        self,
        vital: Watches,
        others: Watches,
        release: ReleaseDocument,
        namespaces: WatchedNamespaces,
    ) -> None:
        """vital: watches that every plan waits for; they get the release's bookings. others:
        watches that no plan waits for; they get hubs' bookings.
        """
        self._own_namespace = release.namespace
        self._namespaces = namespaces
        # A ConfigMap HUB_BOOKINGS books in a namespace with users. These selectors find the
        # namespaces.
        self._hub_selectors = []
        for pod_class in release.classes.values():
            selector = read_label_selector(pod_class.namespace_selector)
            if pod_class.is_of_users and selector is not None:
                self._hub_selectors.append(selector)
        self._of_release: Watched[BookingText] = Watched(None)
        self._of_hubs: Watched[BookingText] = Watched(None)
        # None while events are switched off.
        self._reader: ConfigMapReader | None = None
        self._hubs_reader: ConfigMapReader | None = None
        events = release.events
        if events is None or not events.config_maps:
            return
        labels = label_selector({EVENTS_LABEL: release.name})
        # One budget of time for both readers.
        reading_time = ReadingTime(vital.clock)
        self._reader = ConfigMapReader(events.limits, reading_time)
        self._hubs_reader = ConfigMapReader(events.limits, reading_time)
        self._of_release.cache = vital.add(
            ListWatch(
                f"/api/v1/namespaces/{release.namespace}/configmaps",
                keep_config_map,
                kind="configmaps",
                label_selector=labels,
            )
        )
        if self._hub_selectors and others.all_namespaces:
            self._of_hubs.cache = others.add(
                ListWatch(
                    "/api/v1/configmaps",
                    _keep_hubs_config_map,
                    kind="configmaps of hubs",
                    label_selector=labels,
                    # The account may read only ConfigMaps of this name.
                    field_selector=f"metadata.name={HUB_BOOKINGS}",
                )
            )

    @property
    def by_name(self) -> Mapping[str, BookingSource]:
        """`Snapshot.bookings`."""
        sources: list[BookingSource] = []
        if self._reader is not None:
            sources += self._reader.sources(self._of_release.objects())
        if self._hubs_reader is not None:
            texts = {
                key: text for key, text in self._of_hubs.objects().items() if self._is_hub(text.hub)
            }
            sources += self._hubs_reader.sources(texts)
        return {f"{source.hub}/{source.name}": source for source in bounded(sources)}

    def _is_hub(self, namespace: str) -> bool:
        """Whether it is another namespace than the release's, and has users of this release."""
        if namespace == self._own_namespace:
            return False
        labels = self._namespaces.labels()
        return any(
            namespace_matches(selector, namespace, labels) for selector in self._hub_selectors
        )


def _keep_hubs_config_map(body: JSONObject) -> BookingText:
    return keep_config_map(body, body["metadata"].get("namespace") or "")
