"""Events that say what holds bound pods up: volumes that aren't there, sandboxes without an
address.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from roost.controllers.contract.release import ReleaseDocument
from roost_core.kube.event_stream import ListWatch
from roost_core.kube.watches import Watched, Watches
from roost_core.placement.hold_ups import HoldUp, read_hold_up

# Reasons of warnings about pods that come in crowds: the API server leaves them out. A field
# selector can take one reason only, but leave out any number.
_LEFT_OUT: Final = ("FailedScheduling", "BackOff", "Unhealthy", "Failed", "Evicted")


class WatchedHoldUps(Watched[HoldUp]):
    """The Events of the release's namespace with such a reason, where start notices tell of
    them.
    """

    def __init__(
        self, watches: Watches, release: ReleaseDocument, on_minor_change: Callable[[], None]
    ) -> None:
        super().__init__(None)
        if release.tells_start_notices:
            others = "".join(f",reason!={reason}" for reason in _LEFT_OUT)
            self.cache = watches.add(
                ListWatch(
                    f"/api/v1/namespaces/{release.namespace}/events",
                    read_hold_up,
                    kind="events",
                    field_selector=f"involvedObject.kind=Pod,type=Warning{others}",
                    has_bookmarks=False,
                ),
                # The plan that tells of them is made each second.
                is_minor=lambda _before, _now: True,
                on_minor_change=on_minor_change,
            )
