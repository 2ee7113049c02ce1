"""Users' servers end when nobody uses them: a node goes only when its last user has left.

The hub's own settings aren't in the cluster but in the hub's Secret, which nobody need read for
this: `roost import` reads the hub's values.
"""

from typing import Final

from roost.doctor.evidence import admits, age_seconds, some, users_of
from roost.doctor.findings import CheckReport, warning
from roost.doctor.install import Install

# Longer than a working day; with fewer servers, or a smaller share, somebody may well be at work.
_LONG_SECONDS: Final = 86_400.0
_LEAST: Final = 3
_LEAST_SHARE: Final = 0.1


def check(install: Install) -> CheckReport:
    users = users_of(install) if admits(install) else []
    ages = {
        pod["metadata"]["name"]: age
        for pod in users
        if (age := age_seconds(install, pod["metadata"].get("creationTimestamp"))) is not None
    }
    oldest = max(ages.values(), default=0.0)
    yield f"how long {len(users)} users' servers run: up to {oldest / 3600:.0f} hours"
    long = sorted(
        (name for name in ages if ages[name] > _LONG_SECONDS), key=lambda name: -ages[name]
    )
    if len(long) < max(_LEAST, _LEAST_SHARE * len(users)):
        return
    yield warning(
        f"{len(long)} of {len(users)} users' servers run for more than a day, the oldest for"
        f" {oldest / 86_400:.0f} days: {some(long)}. Their nodes stay as long.",
        "If nobody uses them, the hub's culler is off, or idle kernels keep them: in the hub's"
        " values cull.enabled, cull.timeout: 1800, cull.every: 60, and cull.maxAge"
        " (docs/faster-starts.md#idle-servers).",
    )
