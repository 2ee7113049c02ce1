"""The checks of `roost doctor`, one file each, and the two tables of them, in the order in which one causes the next.

Copy `namespace.py` for a new one, and add it here and to the table in docs/troubleshooting.md. Nothing is changed: pods
are created with dryRun only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from roost.doctor.checks import (
    admission,
    autoscaler,
    budgets,
    buffers,
    builds,
    clocks,
    clouds,
    features,
    foreign_priorities,
    hubs,
    image_volumes,
    kubelets,
    labels,
    leaders,
    namespace,
    network,
    nodes,
    objects,
    policy,
    profiles,
    programs,
    puller,
    requests,
    rights,
    schedulers,
    security,
    startup_taints,
    users,
    version,
    waiting,
    webhook,
)
from roost.doctor.contract import Check, CheckOutcome, Finding
from roost_core.kube.client import ApiError, ClusterError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from roost.doctor.contract import Install

INSTALLED: Final[tuple[Check, ...]] = (
    version.CHECK,
    namespace.CHECK,
    clouds.CHECK,
    features.CHECK,
    objects.CHECK,
    security.CHECK,
    programs.CHECK,
    clocks.CHECK,
    leaders.CHECK,
    profiles.CHECK,
    waiting.CHECK,
    network.CHECK,
    webhook.CHECK,
    hubs.CHECK,
    foreign_priorities.CHECK,
    requests.CHECK,
    admission.CHECK,
    policy.CHECK,
    users.CHECK,
    builds.CHECK,
    schedulers.CHECK,
    image_volumes.CHECK,
    puller.CHECK,
    nodes.CHECK,
    labels.CHECK,
    kubelets.CHECK,
    startup_taints.CHECK,
    budgets.CHECK,
    autoscaler.CHECK,
    buffers.CHECK,
)
BEFORE: Final[tuple[Check, ...]] = (
    version.CHECK,
    namespace.CHECK,
    clouds.CHECK,
    features.CHECK,
    rights.CHECK,
    hubs.CHECK,
    foreign_priorities.CHECK,
    requests.CHECK,
    security.CHECK,
    clocks.CHECK,
    image_volumes.CHECK,
    kubelets.CHECK,
    startup_taints.CHECK,
    budgets.CHECK,
    autoscaler.CHECK,
    buffers.CHECK,
)

# What these find, users feel: they wait, start cold, or are refused.
FELT: Final = frozenset({"waiting", "requests", "puller", "nodes", "labels"})


def run_checks(install: Install, checks: Sequence[Check]) -> list[CheckOutcome]:
    """Run each check; one that the API server refuses is unknown, and the others go on."""
    outcomes = []
    for check in checks:
        looked_at = ""
        findings: list[Finding] = []
        try:
            for told in check.run(install):
                if isinstance(told, str):
                    looked_at = told
                else:
                    findings.append(told)
        except ClusterError as error:
            is_refused = isinstance(error, ApiError) and error.status in (401, 403)
            fix = "Run it with an account that may, or look there yourself." if is_refused else "Try again."
            findings.append(Finding("unknown", str(error), fix))
        outcomes.append(CheckOutcome(check.name, looked_at, tuple(findings)))
    return outcomes
