"""Read how the hub ends idle servers, and say what ending them earlier would save.

Roost ends no server and has no such setting: the figures help the operator to choose the hub's own.
`roost import` and `roost doctor --hub-values` say the same.
Source: zero-to-jupyterhub 4.4, `cull` of its values, which it passes to jupyterhub-idle-culler.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from generator.importing.hub_python import python_of, without_comments
from generator.importing.money import node_hours
from generator.importing.result import Draft
from generator.importing.source import HubPath, HubSection, fits
from generator.values.lookups import child, mapping

# The chart's own.
USUAL_TIMEOUT: Final = 3600
USUAL_EVERY: Final = 600
# jupyterhub-idle-culler's own, for keys that were deleted.
_CULLERS_TIMEOUT: Final = 600
# Without an interval of its own, the culler looks every half timeout.
_UNSET: Final = 0
# What is proposed: half an hour, and a look every minute.
PROPOSED_TIMEOUT: Final = 1800
PROPOSED_EVERY: Final = 60
# Medians of eight universities' weeks: python -m benchmarks.culling.
_SAVED: Final = (12, 13)
# With a look each minute, and the hub's own timeout.
_SAVED_BY_LOOKS: Final = (1, 2)
_PAGE: Final = "docs/faster-starts.md#idle-servers"
# How jupyterhub-idle-culler, and the script that it came from, are named where a hub runs them.
_OWN_CULLER: Final = re.compile("idle[-_]culler|cull[-_]idle[-_]servers")


class Culling(NamedTuple):
    """How the hub ends servers; seconds."""

    enabled: bool
    # Without activity.
    timeout: int
    # Between two looks.
    every: int
    # At which it ends a server in use, too; 0: never.
    max_age: int


class CullingAdvice(NamedTuple):
    """What of a hub's culler costs node-hours. The sentence is: found, what to set, its effect."""

    # The keys, and what they are.
    found: str
    # Keys of the hub's values, with what is proposed for them.
    to_set: str
    # What that did where it was replayed, with the page that says so.
    effect: str


def read_culling(hub: HubSection) -> Culling | None:
    """The hub's culler, by its values and the chart's defaults; None: a number can't be read here.

    A key that was deleted is left to jupyterhub-idle-culler: a timeout of 600 s, a look every half
    timeout.
    """
    enabled = hub.switch("cull.enabled", default=True)
    timeout = _seconds(hub, "timeout", of_chart=USUAL_TIMEOUT, of_culler=_CULLERS_TIMEOUT)
    every = _seconds(hub, "every", of_chart=USUAL_EVERY, of_culler=_UNSET)
    max_age = _seconds(hub, "maxAge", of_chart=0, of_culler=0)
    if timeout is None or every is None or max_age is None:
        return None
    if every == _UNSET:
        every = max(1, timeout // 2)
    return Culling(enabled, timeout, every, max_age)


def _seconds(hub: HubSection, key: str, *, of_chart: int, of_culler: int) -> int | None:
    """A number of seconds below `cull`; None: what stands there isn't one.

    of_chart: what the chart says if the hub's values don't. of_culler: what jupyterhub-idle-culler
    takes if the key was deleted.
    """
    value = hub.get(f"cull.{key}", "any")
    if value is None:
        return of_culler if hub.is_deleted(f"cull.{key}") else of_chart
    if not fits(value, "integer"):
        return None
    number = int(float(str(value)))
    return number if number >= 0 else None


def note_culling(draft: Draft, hub: HubSection) -> None:
    """Say what the hub's culler is set to, and what would save node-hours."""
    unread, advice = look_at_culling(hub, draft.node_hour_price)
    draft.notes += unread
    if advice is not None:
        draft.notes.append(f"{advice.found}: {advice.to_set} {advice.effect}")


def look_at_culling(
    hub: HubSection, price: float | None = None
) -> tuple[list[str], CullingAdvice | None]:
    """What can't be read of how the hub ends idle servers, as sentences; and what would save
    node-hours, None for nothing.

    price: of a node-hour; None: it isn't known.
    """
    unread = []
    own_culler = _own_culler(hub)
    if own_culler is not None:
        unread.append(
            f"{hub.show(own_culler)} runs a culler of the hub's own: after how long it ends idle"
            f" servers isn't read here ({_PAGE})."
        )
        if not hub.switch("cull.enabled", default=True):
            return unread, None
    culling = read_culling(hub)
    if culling is None:
        unread.append(
            f"{hub.show('cull')}: timeout, every or maxAge isn't a whole number of seconds, so"
            f" nothing is said of idle servers ({_PAGE})."
        )
        return unread, None
    return unread, _advise(culling, hub, price)


def _own_culler(hub: HubSection) -> HubPath | None:
    """The key by which the hub runs a culler beside the chart's; None: none is found."""
    services = mapping(child(hub.data, "hub", "services"))
    for name, service in services.items():
        words = child(service, "command")
        if _OWN_CULLER.search(str(words)):
            return ("hub", "services", name)
    for at, code in python_of(hub):
        if _OWN_CULLER.search(without_comments(code)):
            return at
    return None


def _advise(culling: Culling, hub: HubSection, price: float | None) -> CullingAdvice | None:
    """What would save node-hours; None: the culler is as quick as is proposed."""
    proposed = f"cull.timeout: {PROPOSED_TIMEOUT} and cull.every: {PROPOSED_EVERY}"
    if not culling.enabled:
        return CullingAdvice(
            f"{hub.show('cull.enabled')} is false, so idle servers keep their nodes until people"
            " stop them, unless servers end by themselves",
            f"cull.enabled: true, {proposed}",
            f"are usual ({_PAGE}).",
        )
    timeout = f"{hub.show('cull.timeout')} is {culling.timeout}"
    every = f"cull.every {culling.every}"
    if culling.timeout > PROPOSED_TIMEOUT:
        return CullingAdvice(
            f"{timeout} and {every}",
            proposed,
            f"saved {node_hours(*_SAVED, 'of', price)} in replayed universities whose people leave"
            f" that to the culler. Who pauses for more than half an hour starts again ({_PAGE}).",
        )
    if culling.every > 2 * PROPOSED_EVERY:
        return CullingAdvice(
            f"{every} with {timeout}",
            f"cull.every: {PROPOSED_EVERY}",
            f"saved {node_hours(*_SAVED_BY_LOOKS, 'of', price)} in replayed universities"
            f" ({_PAGE}).",
        )
    return None
