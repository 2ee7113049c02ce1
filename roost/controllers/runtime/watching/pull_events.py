"""Kubelets' Events that say that an image was pulled, or was there."""

from __future__ import annotations

from collections.abc import Callable

from roost.controllers.contract.release import ReleaseDocument
from roost.controllers.runtime.watching.minor_changes import is_minor_pull_event
from roost_core.kube.event_stream import ListWatch
from roost_core.kube.watches import Watched, Watches
from roost_core.placement.kubelet_pulls import PULLED, PullEvent, read_pull_event


class WatchedPullEvents(Watched[PullEvent]):
    """The Events of the release's namespace whose reason is `Pulled`.

    `objects` is `Snapshot.pull_events`.
    """

    def __init__(
        self, watches: Watches, release: ReleaseDocument, on_minor_change: Callable[[], None]
    ) -> None:
        super().__init__(
            watches.add(
                ListWatch(
                    f"/api/v1/namespaces/{release.namespace}/events",
                    read_pull_event,
                    kind="events",
                    # A field selector takes one value, so other reasons aren't fetched.
                    field_selector=f"involvedObject.kind=Pod,reason={PULLED}",
                    has_bookmarks=False,
                ),
                is_minor=is_minor_pull_event,
                on_minor_change=on_minor_change,
            )
        )
