"""Read how the hub ends idle servers, and say what ending them earlier would save.

Roost ends no server and has no such setting: the figures help the operator to choose the hub's own.
Source: zero-to-jupyterhub 4.4, `cull` of its values, which it passes to jupyterhub-idle-culler.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from generator.importing.result import Draft
from generator.importing.source import HubSection, fits

# The chart's own.
USUAL_TIMEOUT: Final = 3600
USUAL_EVERY: Final = 600
# What is proposed: half an hour, and a look every minute.
PROPOSED_TIMEOUT: Final = 1800
PROPOSED_EVERY: Final = 60
# Medians of eight universities' weeks: python -m benchmarks.culling.
_SAVED: Final = (
    "saved 12 to 13 % of node-hours in replayed universities whose people leave that to the culler"
)
_PAGE: Final = "docs/faster-starts.md#idle-servers"


class Culling(NamedTuple):
    """How the hub ends servers; seconds."""

    enabled: bool
    # Without activity.
    timeout: int
    # Between two looks.
    every: int
    # At which it ends a server in use, too; 0: never.
    max_age: int


def read_culling(hub: HubSection) -> Culling | None:
    """The hub's culler, by its values and the chart's defaults; None: a number can't be read here.

    A key that was deleted is left to jupyterhub-idle-culler: a timeout of 600 s, a look at each
    half of it.
    """
    enabled = hub.switch("cull.enabled", default=True)
    timeout = _seconds(hub, "timeout", USUAL_TIMEOUT, 600)
    every = _seconds(hub, "every", USUAL_EVERY, None)
    max_age = _seconds(hub, "maxAge", 0, 0)
    if timeout is None or max_age is None:
        return None
    if hub.is_deleted("cull.every") or every == 0:
        every = max(1, timeout // 2)
    return None if every is None else Culling(enabled, timeout, every, max_age)


def _seconds(hub: HubSection, key: str, usual: int, without: int | None) -> int | None:
    """A number of the culler's; None: it isn't one."""
    value = hub.get(f"cull.{key}", "any")
    if value is None:
        return without if hub.is_deleted(f"cull.{key}") else usual
    if not fits(value, "integer"):
        return None
    number = int(float(str(value)))
    return number if number >= 0 else None


def note_culling(draft: Draft, hub: HubSection) -> None:
    """Say what the hub's culler is set to, and what would save node-hours."""
    culling = read_culling(hub)
    if culling is None:
        draft.notes.append(
            f"{hub.show('cull')}: timeout, every or maxAge isn't a whole number of seconds, so"
            f" nothing is said of idle servers ({_PAGE})."
        )
        return
    advice = advise(culling, hub)
    if advice:
        draft.notes.append(advice)


def advise(culling: Culling, hub: HubSection) -> str:
    """What would save node-hours, with its figures; "": the culler is as quick as is proposed."""
    proposed = f"cull.timeout: {PROPOSED_TIMEOUT} and cull.every: {PROPOSED_EVERY}"
    if not culling.enabled:
        return (
            f"{hub.show('cull.enabled')} is false: idle servers keep their nodes until people stop"
            f" them, unless servers end by themselves. {proposed} are usual where it is on"
            f" ({_PAGE})."
        )
    timeout = f"{hub.show('cull.timeout')} is {culling.timeout}"
    every = f"cull.every {culling.every}"
    if culling.timeout > PROPOSED_TIMEOUT:
        return (
            f"{timeout} and {every}: {proposed} {_SAVED}. Who pauses for more than half an hour"
            f" starts again ({_PAGE})."
        )
    if culling.every > 2 * PROPOSED_EVERY:
        return (
            f"{every} with {timeout}: cull.every: {PROPOSED_EVERY} saved 1 to 2 % of node-hours in"
            f" replayed universities ({_PAGE})."
        )
    return ""
