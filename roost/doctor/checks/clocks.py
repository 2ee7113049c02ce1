"""Clocks of nodes, and so of Roost's programs, go with the API server's.

A holder writes `renewTime` by its own clock, and the API server writes by its own when that field was set.
"""

from typing import Final

from roost.doctor.contract import Install, Object, Told, warning
from roost.doctor.evidence import age_seconds, count, some

# Kubelets and the API server are compared to the second.
_SKEW_SECONDS: Final = 5.0


def check(install: Install) -> Told:
    own = f"/apis/coordination.k8s.io/v1/namespaces/{install.release.namespace}/leases"
    yield "Leases of nodes and of this namespace"
    leases = [
        *install.client.get("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases")["items"],
        *install.client.get(own)["items"],
    ]
    skews = [(lease["metadata"]["name"], _skew_seconds(lease) or 0.0) for lease in leases]
    if wrong := [f"{name} ({skew:+.0f} s)" for name, skew in skews if abs(skew) > _SKEW_SECONDS]:
        yield warning(
            f"{count(len(wrong), 'clock')} more than {_SKEW_SECONDS:.0f} s away from the API server's: "
            f"{some(wrong)}. Leases then seem stale that aren't, and the gate stays open.",
            "Synchronise the nodes' clocks (chrony, systemd-timesyncd).",
        )


def _skew_seconds(lease: Object) -> float | None:
    """How far the holder's clock is ahead of the API server's, in seconds; None: not known."""
    renewed = age_seconds((lease.get("spec") or {}).get("renewTime"))
    written = [
        age_seconds(entry.get("time"))
        for entry in lease["metadata"].get("managedFields") or []
        if "f:renewTime" in ((entry.get("fieldsV1") or {}).get("f:spec") or {})
    ]
    if renewed is None or len(written) != 1 or written[0] is None:
        return None
    return written[0] - renewed
