"""The scheduler and the controllers have a leader."""

from typing import Final

from roost.doctor.conditions import State, component_of, conditions
from roost.doctor.evidence import age_seconds
from roost.doctor.findings import CheckReport, error
from roost.doctor.install import Install

# A holder renews its Lease every few seconds; this long after, nobody does.
SILENT_SECONDS: Final = 60.0


def check(install: Install) -> CheckReport:
    parts = [
        body
        for name in ("scheduler", "controllers")
        if (body := install.component(name)) is not None
    ]
    yield " and ".join(f"Lease {body['metadata']['name']}" for body in parts) or "no Lease is used"
    for body in parts:
        name = body["metadata"]["name"]
        namespace = install.release.namespace
        lease = install.client.find(
            f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}"
        )
        spec = (lease or {}).get("spec") or {}
        age = age_seconds(install, spec.get("renewTime"))
        # One that was given up a moment ago has a fresh renewTime, and no holder.
        if not spec.get("holderIdentity"):
            fault = "has no holder"
        elif age is None:
            fault = "was never renewed"
        elif age > SILENT_SECONDS:
            fault = f"was renewed {age:.0f} s ago"
        else:
            continue
        component = component_of(body)
        yield error(
            f"Lease {namespace}/{name} {fault}: nobody leads.",
            f"kubectl --namespace {namespace} logs deployment/{name}",
            brings=conditions(State.UNLED, component),
            follows=conditions(State.DOWN, component),
        )
