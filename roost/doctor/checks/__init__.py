"""The checks of `roost doctor`, one file each, and the two tables of them, in the order in which
one causes the next.

Copy `namespace.py` for a new one, and add it here and to the table in docs/doctor.md.
Nothing is changed: pods and copies of the release's objects are created with dryRun only.

- The cluster: `version.py`, `features.py` (kinds and feature gates), `platform.py` (what a provider
  needs), `rights.py` (of who runs doctor).
- The namespace: `namespace.py`, `releases.py` (others of Roost), `security.py` (whether it takes
  Roost's pods), `requests.py` (quotas and limits, against what classes request).
- Roost: `objects.py`, `programs.py`, `leaders.py`, `profiles.py` (kube-scheduler's), `network.py`
  (NetworkPolicies that keep reviews from the webhook), `webhook_connection.py` (the webhook's
  certificate and pods).
- Pods: `waiting.py`, `trial_pod.py` (of a user, with dryRun), `running_users.py` (whether they were
  placed), `priorities.py` (who could be deleted for users).
- The hub: `shared_nodes.py` (several hubs), `idle_servers.py`, `slow_starts.py`, `switches.py`
  (what it must not run), `seating.py` (its token).
- Nodes: `reach.py` (who may use which), `node_versions.py`, `nodes.py` (labels of a pull that
  doesn't end), `kubelets.py` (reports and deletion of images, disks), `startup_taints.py`.
- The puller: `puller.py` (whether it runs where users do), `image_volumes.py` (whether runtimes can
  mount images).
- Placeholders: `autoscaler.py`, `bookings.py`, `runtime_classes.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from roost.doctor.checks import (
    autoscaler,
    bookings,
    features,
    idle_servers,
    image_volumes,
    kubelets,
    leaders,
    namespace,
    network,
    node_versions,
    nodes,
    objects,
    platform,
    priorities,
    profiles,
    programs,
    puller,
    reach,
    releases,
    requests,
    rights,
    running_users,
    runtime_classes,
    seating,
    security,
    shared_nodes,
    slow_starts,
    startup_taints,
    switches,
    trial_pod,
    version,
    waiting,
    webhook_connection,
)
from roost.doctor.findings import Check, CheckOutcome, Finding, could_not_read
from roost.doctor.install import Install
from roost_core.kube.client import ClusterError

INSTALLED: Final[Mapping[str, Check]] = {
    "version": version.check,
    "namespace": namespace.check,
    "releases": releases.check,
    "platform": platform.check,
    "features": features.check,
    "objects": objects.check,
    "security": security.check,
    "programs": programs.check,
    "leaders": leaders.check,
    "profiles": profiles.check,
    "waiting": waiting.check,
    "network": network.check,
    "webhook": webhook_connection.check,
    "reach": reach.check,
    "hubs": shared_nodes.check,
    "priorities": priorities.check,
    "requests": requests.check,
    "admission": trial_pod.check,
    "users": running_users.check,
    "idle-servers": idle_servers.check,
    "slow-starts": slow_starts.check,
    "switches": switches.check,
    "node-versions": node_versions.check,
    "image-volumes": image_volumes.check,
    "puller": puller.check,
    "nodes": nodes.check,
    "kubelets": kubelets.check,
    "startup-taints": startup_taints.check,
    "autoscaler": autoscaler.check,
    "bookings": bookings.check,
    "seating": seating.check,
    "runtime-classes": runtime_classes.check,
}
BEFORE: Final[Mapping[str, Check]] = {
    "version": version.check,
    "namespace": namespace.check,
    "releases": releases.check,
    "platform": platform.check,
    "features": features.check,
    "rights": rights.check,
    "reach": reach.check,
    "hubs": shared_nodes.check,
    "priorities": priorities.check,
    "requests": requests.check,
    "idle-servers": idle_servers.check,
    "security": security.check,
    "node-versions": node_versions.check,
    "image-volumes": image_volumes.check,
    "kubelets": kubelets.check,
    "startup-taints": startup_taints.check,
    "autoscaler": autoscaler.check,
    "bookings": bookings.check,
}

# Whatever these find, users feel. Other checks say so of single findings: `is_felt`.
FELT_CHECKS: Final = frozenset(["waiting", "reach", "puller", "nodes"])


def run_checks(install: Install, checks: Mapping[str, Check]) -> list[CheckOutcome]:
    """Run each check; one that the API server refuses is unknown, and the others go on."""
    outcomes = []
    for name, check in checks.items():
        looked_at = ""
        findings: list[Finding] = []
        try:
            for item in check(install):
                if isinstance(item, str):
                    looked_at = item
                else:
                    findings.append(item)
        except ClusterError as error:
            findings.append(could_not_read(error))
        outcomes.append(CheckOutcome(name, looked_at, tuple(findings)))
    return outcomes
