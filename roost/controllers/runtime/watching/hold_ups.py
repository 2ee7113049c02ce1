"""Events that say what holds bound pods up, as a volume that isn't there."""

from __future__ import annotations

from collections.abc import Callable

from roost.controllers.contract.release import ReleaseDocument
from roost_core.kube.event_stream import ListWatch
from roost_core.kube.watches import Watched, Watches
from roost_core.placement.hold_ups import OTHER_WARNINGS, HoldUp, read_hold_up


class WatchedHoldUps(Watched[HoldUp]):
    """The Events about hold-ups in the release's namespace; watched only for start notices."""

    def __init__(
        self, watches: Watches, release: ReleaseDocument, on_minor_change: Callable[[], None]
    ) -> None:
        super().__init__(None)
        if release.shows_start_notices:
            without_others = "".join(f",reason!={reason}" for reason in OTHER_WARNINGS)
            self.cache = watches.add(
                ListWatch(
                    f"/api/v1/namespaces/{release.namespace}/events",
                    read_hold_up,
                    kind="events",
                    field_selector=f"involvedObject.kind=Pod,type=Warning{without_others}",
                    has_bookmarks=False,
                ),
                # No plan has to be made at once: start notices are planned each second anyway.
                is_minor=lambda _before, _now: True,
                on_minor_change=on_minor_change,
            )
