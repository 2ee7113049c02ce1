"""The checks of `roost doctor`, in the order in which one causes the next.

Each takes an Install, and returns what it looked at and its findings; it raises ClusterError where the API server
doesn't answer. Nothing is changed: pods are created with dryRun only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from roost.doctor.admission_checks import (
    check_admission,
    check_builds,
    check_certificate,
    check_network,
    check_policy,
    check_security,
    check_users,
)
from roost.doctor.buffer_checks import check_buffers
from roost.doctor.feature_checks import check_features
from roost.doctor.findings import Finding, Outcome
from roost.doctor.hub_checks import check_hubs
from roost.doctor.kubelet_checks import check_kubelets
from roost.doctor.node_checks import (
    check_clocks,
    check_image_volumes,
    check_labels,
    check_nodes,
    check_puller,
    check_startup_taints,
)
from roost.doctor.platform_checks import check_platform
from roost.doctor.release_checks import (
    check_leases,
    check_namespace,
    check_objects,
    check_programs,
    check_rights,
    check_version,
)
from roost.doctor.scaling_checks import check_autoscaler, check_budgets, check_schedulers
from roost.doctor.scheduler_checks import check_profiles, check_waiting
from roost_core.kube.client import ApiError, ClusterError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from roost.doctor.install import Install

    Check = Callable[[Install], tuple[str, Iterator[Finding]]]


def run_checks(install: Install, checks: Sequence[tuple[str, Check]]) -> list[Outcome]:
    """Run each check; one that the API server refuses is unknown, and the others go on."""
    outcomes = []
    for name, check in checks:
        looked_at = ""
        findings: list[Finding] = []
        try:
            looked_at, found = check(install)
            findings.extend(found)
        except ClusterError as error:
            fix = "Run it with an account that may, or look there yourself." if _is_refused(error) else "Try again."
            findings.append(Finding("unknown", str(error), fix))
        outcomes.append(Outcome(name, looked_at, tuple(findings)))
    return outcomes


INSTALLED: Final[tuple[tuple[str, Check], ...]] = (
    ("version", check_version),
    ("namespace", check_namespace),
    ("platform", check_platform),
    ("features", check_features),
    ("objects", check_objects),
    ("security", check_security),
    ("programs", check_programs),
    ("clocks", check_clocks),
    ("leaders", check_leases),
    ("profiles", check_profiles),
    ("waiting", check_waiting),
    ("network", check_network),
    ("webhook", check_certificate),
    ("hubs", check_hubs),
    ("admission", check_admission),
    ("policy", check_policy),
    ("users", check_users),
    ("builds", check_builds),
    ("schedulers", check_schedulers),
    ("image-volumes", check_image_volumes),
    ("puller", check_puller),
    ("nodes", check_nodes),
    ("labels", check_labels),
    ("kubelets", check_kubelets),
    ("startup-taints", check_startup_taints),
    ("budgets", check_budgets),
    ("autoscaler", check_autoscaler),
    ("buffers", check_buffers),
)
BEFORE: Final[tuple[tuple[str, Check], ...]] = (
    ("version", check_version),
    ("namespace", check_namespace),
    ("platform", check_platform),
    ("features", check_features),
    ("rights", check_rights),
    ("hubs", check_hubs),
    ("security", check_security),
    ("clocks", check_clocks),
    ("image-volumes", check_image_volumes),
    ("kubelets", check_kubelets),
    ("startup-taints", check_startup_taints),
    ("budgets", check_budgets),
    ("autoscaler", check_autoscaler),
    ("buffers", check_buffers),
)


def _is_refused(error: ClusterError) -> bool:
    return isinstance(error, ApiError) and error.status in (401, 403)
