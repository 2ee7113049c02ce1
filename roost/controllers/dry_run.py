"""Show what the controllers would do now, for the release itself and for each hub that it serves, and do nothing.

A hub's part is read as the hub's own account, as when it is worked for: what that account may not read shows here, too.
"""

from __future__ import annotations

import textwrap
import threading
import time
from typing import TYPE_CHECKING, Final

from roost.controllers.contract.snapshot import Moment
from roost.controllers.hub_settings import read_hub_settings
from roost.controllers.runtime.loop import show_plan
from roost.controllers.runtime.watching import Watching
from roost_core.kube.borrowed_account import connect_as
from roost_core.kube.client import ClusterError
from roost_core.kube.hub_feed import HubFeed
from roost_core.placement.hub_documents import MAX_HUBS
from roost_core.placement.labels import HUB_SETTINGS_KEY
from roost_core.placement.settings_reader import SettingsError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from roost.controllers.contract.planner import Planner
    from roost.controllers.runtime.watching import Scope
    from roost.controllers.settings import ControllersSettings
    from roost_core.kube.client import Client

# How long the first lists may take.
LIST_SECONDS: Final = 60.0
_LOOK_SECONDS: Final = 0.05


class DryRun:
    """One look at the cluster. Its watches run until `stop` is called."""

    def __init__(self, client: Client, *, list_seconds: float = LIST_SECONDS) -> None:
        """list_seconds: how long all first lists may take together."""
        self._client = client
        self._stop = threading.Event()
        self._list_seconds = list_seconds
        self._deadline = time.monotonic() + list_seconds
        self._everywhere: Watching | None = None

    def stop(self) -> None:
        """End all watches."""
        self._stop.set()

    def own(self, scope: Scope, planners: Sequence[Planner]) -> str:
        """Describe the release's own plans in lines. Raises ClusterError."""
        self._everywhere = watching = Watching(self._client, scope, on_change=lambda: None)
        watching.start(self._stop)
        if not self._is_listed(watching):
            raise self._not_listed("the cluster", watching.verdict().detail)
        return show_plan(planners, watching.snapshot(), _now())

    def hubs(
        self,
        settings: ControllersSettings,
        minor: int,
        *,
        scope_of: Callable[[ControllersSettings], Scope],
        chosen: Callable[[Sequence[Planner]], Sequence[Planner]],
    ) -> Iterator[tuple[str, str, str]]:
        """Yield each served hub's name, its plans in lines, and why there are none ("" if there are).

        Call `own` before. settings: the release's own. chosen: of a hub's planners, those to show. Raises ClusterError.
        """
        central = settings.release, settings.namespace
        feed = HubFeed(self._client, central, HUB_SETTINGS_KEY)
        feed.start(self._stop)
        if not self._waited_for(lambda: feed.is_listed):
            raise self._not_listed("the served hubs", "; ".join(feed.faults))
        read: list[tuple[str, Watching | None, Sequence[Planner], str]] = []
        for number, (namespace, text) in enumerate(feed.documents().items()):
            if number >= MAX_HUBS:
                read.append((namespace, None, (), f"{MAX_HUBS} hubs are the most"))
                continue
            try:
                hub = read_hub_settings(text, namespace, central, settings.scheduler_configuration, minor)
            except SettingsError as error:
                read.append((namespace, None, (), f"its settings are refused: {error.one_line()}"))
                continue
            except Exception as error:  # noqa: BLE001 - a fault of the reader; the other hubs are shown
                read.append((namespace, None, (), f"its settings can't be read ({type(error).__name__})"))
                continue
            client = connect_as(self._client, namespace, hub.account)
            watching = Watching(client, scope_of(hub.settings), on_change=lambda: None, shared=self._everywhere)
            # All of them list at the same time.
            watching.start(self._stop)
            read.append((hub.hub, watching, chosen(hub.settings.planners), ""))
        for name, watching_hub, planners, refused in read:
            if watching_hub is None:
                yield name, "", refused
            elif self._is_listed(watching_hub):
                yield name, show_plan(planners, watching_hub.snapshot(), _now()), ""
            else:
                yield name, "", str(self._not_listed("it", watching_hub.verdict().detail))

    def _is_listed(self, watching: Watching) -> bool:
        return self._waited_for(lambda: watching.verdict().passed)

    def _waited_for(self, is_done: Callable[[], bool]) -> bool:
        """Whether it was done before the deadline."""
        while not is_done():
            if time.monotonic() > self._deadline:
                return False
            time.sleep(_LOOK_SECONDS)
        return True

    def _not_listed(self, what: str, detail: str) -> ClusterError:
        return ClusterError(f"{what} could not be listed within {self._list_seconds:.0f} s: {detail}")


def describe_hub(name: str, plans: str) -> str:
    """Describe one hub's plans in lines."""
    return f"hub {name}:\n{textwrap.indent(plans, '  ')}"


def _now() -> Moment:
    return Moment(time.time(), time.monotonic())
