"""Users' servers end when nobody uses them: a node goes only when its last user has left.

After how long the hub ends them is in the hub's Secret, which is never read: the operator may give
the hub's values.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from generator.importing.culling import look_at_culling, read_culling
from generator.importing.source import HubSection
from roost.doctor.evidence import admits, age_seconds, some, users_of
from roost.doctor.findings import CheckReport, Finding, unknown, warning
from roost.doctor.install import Install

# Longer than a working day; with fewer servers, or a smaller share, somebody may well be at work.
_LONG_SECONDS: Final = 86_400.0
_LEAST: Final = 3
_LEAST_SHARE: Final = 0.1
_LOOK_THERE: Final = (
    "Look there: it is proposed to end servers after 1800 idle seconds, and to look every 60"
    " seconds."
)


def check(install: Install) -> CheckReport:
    users = users_of(install) if admits(install) else []
    ages = {
        pod["metadata"]["name"]: age
        for pod in users
        if (age := age_seconds(install, pod["metadata"].get("creationTimestamp"))) is not None
    }
    oldest = max(ages.values(), default=0.0)
    yield (
        f"how long {len(users)} users' servers run: up to {oldest / 3600:.0f} hours;"
        f" {_looked_at_culler(install.hub)}"
    )
    long = sorted(
        (name for name in ages if ages[name] > _LONG_SECONDS), key=lambda name: -ages[name]
    )
    if len(long) >= max(_LEAST, _LEAST_SHARE * len(users)):
        yield warning(
            f"{len(long)} of {len(users)} users' servers run for more than a day, the oldest for"
            f" {oldest / 86_400:.0f} days: {some(long)}. Their nodes stay as long.",
            "If nobody uses them, the hub's culler is off, or idle kernels keep them: in the hub's"
            " values cull.enabled, cull.timeout: 1800, cull.every: 60, and cull.maxAge"
            " (docs/faster-starts.md#idle-servers).",
        )
    if install.hub is not None:
        yield from _advise(install.hub)


def _looked_at_culler(hub: HubSection | None) -> str:
    """What is looked at of the hub's culler. Only numbers are told of the hub's values."""
    if hub is None:
        return "after how long the hub ends idle ones is told with --hub-values FILE"
    culling = read_culling(hub)
    if culling is None:
        return "after how long the hub ends idle ones can't be read of its values"
    if not culling.enabled:
        return "by cull.enabled, the hub ends none of them"
    return f"the hub ends idle ones after {culling.timeout} s and looks every {culling.every} s"


def _advise(hub: HubSection) -> Iterator[Finding]:
    """What would save node-hours by the hub's values, or why that isn't known."""
    unread, advice = look_at_culling(hub)
    for sentence in unread:
        yield unknown(sentence, _LOOK_THERE)
    if advice is not None:
        yield warning(
            f"{advice.found}.", f"In the hub's values, set {advice.to_set}, which {advice.effect}"
        )
