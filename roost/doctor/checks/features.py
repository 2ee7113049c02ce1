"""Every kind that the values render to is served."""

from __future__ import annotations

from roost.doctor.contract import Install, Told, error
from roost.doctor.evidence import count, some


def check(install: Install) -> Told:
    versions: dict[str, set[str]] = {}
    for body in install.rendered:
        versions.setdefault(body["apiVersion"], set()).add(body["kind"])
    yield count(sum(map(len, versions.values())), "kind")
    missing = []
    for version, kinds in versions.items():
        found = install.client.find(f"/apis/{version}" if "/" in version else f"/api/{version}") or {}
        served = {str(resource.get("kind")) for resource in found.get("resources") or []}
        missing += [f"{kind} ({version})" for kind in sorted(kinds - served)]
    if missing:
        yield error(
            f"The API server doesn't serve kinds that the values render to: {some(missing)}.",
            "Install what defines them (ServiceMonitor: Prometheus Operator), switch the feature on in the API "
            "server, or switch off in the values what needs them.",
        )
