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
    node_versions,
    nodes,
    objects,
    profiles,
    programs,
    puller,
    reach,
    requests,
    rights,
    schedulers,
    security,
    startup_taints,
    switches,
    users,
    version,
    waiting,
    webhook,
)
from roost.doctor.contract import Check, CheckOutcome, Finding
from roost_core.kube.client import ApiError, ClusterError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from roost.doctor.contract import Install

INSTALLED: Final[Mapping[str, Check]] = {
    "version": version.check,
    "namespace": namespace.check,
    "platform": clouds.check,
    "features": features.check,
    "objects": objects.check,
    "security": security.check,
    "programs": programs.check,
    "clocks": clocks.check,
    "leaders": leaders.check,
    "profiles": profiles.check,
    "waiting": waiting.check,
    "network": network.check,
    "webhook": webhook.check,
    "reach": reach.check,
    "hubs": hubs.check,
    "priorities": foreign_priorities.check,
    "requests": requests.check,
    "admission": admission.check,
    "users": users.check,
    "builds": builds.check,
    "schedulers": schedulers.check,
    "switches": switches.check,
    "node-versions": node_versions.check,
    "image-volumes": image_volumes.check,
    "puller": puller.check,
    "nodes": nodes.check,
    "labels": labels.check,
    "kubelets": kubelets.check,
    "startup-taints": startup_taints.check,
    "budgets": budgets.check,
    "autoscaler": autoscaler.check,
}
# Before an install.
BEFORE: Final[Mapping[str, Check]] = {
    name: INSTALLED.get(name, rights.check)
    for name in (
        *("version", "namespace", "platform", "features", "rights", "reach"),
        *("hubs", "priorities", "requests", "security", "clocks"),
        *("node-versions", "image-volumes", "kubelets", "startup-taints", "budgets", "autoscaler"),
    )
}

# What these find, users feel: they wait, start cold, or are refused.
FELT: Final = frozenset({"waiting", "reach", "requests", "puller", "nodes", "labels"})


def run_checks(install: Install, checks: Mapping[str, Check]) -> list[CheckOutcome]:
    """Run each check; one that the API server refuses is unknown, and the others go on."""
    outcomes = []
    for name, check in checks.items():
        looked_at = ""
        findings: list[Finding] = []
        try:
            for told in check(install):
                if isinstance(told, str):
                    looked_at = told
                else:
                    findings.append(told)
        except ClusterError as error:
            is_refused = isinstance(error, ApiError) and error.status in (401, 403)
            fix = "Run it with an account that may, or look there yourself." if is_refused else "Try again."
            findings.append(Finding("unknown", str(error), fix))
        outcomes.append(CheckOutcome(name, looked_at, tuple(findings)))
    return outcomes
