"""The checks of `roost doctor`, one file each, and the two tables of them, in the order in which
one causes the next.

Copy `namespace.py` for a new one, and add it here and to the table in docs/troubleshooting.md.
Nothing is changed: pods are created with dryRun only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Final, cast

from roost.doctor.contract import Check, CheckOutcome, Finding, Install
from roost.doctor.evidence import unread
from roost_core.kube.client import ClusterError


def _checks(names: Iterable[str]) -> Mapping[str, Check]:
    """The checks of these names, each from the file of its name."""
    return {
        name: cast("Check", import_module(f"{__name__}.{name.replace('-', '_')}").check)
        for name in names
    }


INSTALLED: Final = _checks(
    (
        *("version", "namespace", "platform", "features", "objects", "security", "programs"),
        *(
            "leaders",
            "profiles",
            "waiting",
            "network",
            "webhook",
            "reach",
            "hubs",
            "priorities",
            "requests",
        ),
        *("admission", "users", "switches", "node-versions", "image-volumes", "puller"),
        *("nodes", "kubelets", "startup-taints", "autoscaler", "bookings"),
    )
)
BEFORE: Final = _checks(
    (
        *(
            "version",
            "namespace",
            "platform",
            "features",
            "rights",
            "reach",
            "hubs",
            "priorities",
            "requests",
        ),
        *(
            "security",
            "node-versions",
            "image-volumes",
            "kubelets",
            "startup-taints",
            "autoscaler",
            "bookings",
        ),
    )
)

# What these find, with these words, users feel: they wait, start cold, or are refused.
FELT: Final = dict.fromkeys(("waiting", "reach", "requests", "puller", "nodes"), "")
FELT.update(admission=" is refused", programs="DaemonSet ")


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
            findings.append(unread(error))
        outcomes.append(CheckOutcome(name, looked_at, tuple(findings)))
    return outcomes
