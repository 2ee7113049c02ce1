"""The checks of the values, one file each, and the table of them.

Each finds what fits the schema and yet doesn't do what it says. It is not run where a key that it
reads doesn't fit: `faulty_keys.py` sees to it. Copy `admission.py` for a new one,
and add it here.

- Who places pods: `admission.py` (what a policy can't do), `webhook.py`, `certificates.py`,
  `scheduler.py`, `feature_gates.py` (kube-scheduler's), `classes.py` (`podClasses`).
- Images: `gate.py` (`imageGate`), `puller.py` (how it pulls), `puller_reach.py` (to which nodes),
  `popular_images.py`; users' images: `moving_tags.py`, `short_names.py`; Roost's own: `image.py`.
- Room for users: `placeholders.py`, `resources.py` (amounts, and whether placeholders are as large
  as users), `priorities.py`, `events.py` (bookings), `seating.py`.
- Other programs: `controllers.py`, `recorder.py`, `monitoring.py` (alerts without metrics).
- The whole release: `names.py` (and labels), `ports.py` (of the host network), `network_policy.py`,
  `release_size.py` (of release.json).

`contract.py` says what a check is. `tolerations_and_terms.py` is no check: others ask it about
profiles.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from generator.checks import (
    admission,
    certificates,
    classes,
    controllers,
    events,
    feature_gates,
    gate,
    image,
    monitoring,
    moving_tags,
    names,
    network_policy,
    placeholders,
    popular_images,
    ports,
    priorities,
    puller,
    puller_reach,
    recorder,
    release_size,
    resources,
    scheduler,
    seating,
    short_names,
    webhook,
)
from generator.checks.contract import Check, LintReport
from generator.faults import Fault, KeyPath
from generator.values.merge import Merged
from generator.values.release_name import Release

# In the order of their names: none needs another's findings.
CHECKS: Final[tuple[Check, ...]] = (
    admission.check,
    certificates.check,
    classes.check,
    controllers.check,
    events.check,
    feature_gates.check,
    gate.check,
    names.check,
    network_policy.check,
    placeholders.check,
    popular_images.check,
    ports.check,
    priorities.check,
    puller.check,
    puller_reach.check,
    recorder.check,
    release_size.check,
    resources.check,
    scheduler.check,
    seating.check,
    webhook.check,
)
# What hints and nothing else.
HINTS: Final[tuple[Check, ...]] = (
    image.check,
    monitoring.check,
    moving_tags.check,
    short_names.check,
)


def find_faults(merged: Merged, release: Release, unfit: Collection[KeyPath] = ()) -> list[Fault]:
    """Every fault and warning, with file and line. unfit: paths of keys that don't fit the schema,
    which no check reads.
    """
    faults = _find(LintReport(merged, unfit, with_hints=False), release, CHECKS)
    return [fault for fault in faults if fault.severity != "hint"]


def find_hints(merged: Merged, release: Release) -> list[Fault]:
    """Every hint: what works as it is written and might work better.

    Only `roost validate` shows them.
    """
    faults = _find(LintReport(merged), release, (*CHECKS, *HINTS))
    return [fault for fault in faults if fault.severity == "hint"]


def _find(report: LintReport, release: Release, checks: Sequence[Check]) -> list[Fault]:
    with report.part():
        if report.values.get("enabled") is False:
            return []
    for check in checks:
        with report.part():
            check(report, release)
    return report.faults
