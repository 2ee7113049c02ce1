"""The scheduler and the controllers have a leader."""

from typing import Final

from roost.doctor.conditions import State, component_of, conditions
from roost.doctor.evidence import age_seconds
from roost.doctor.findings import CheckReport, error
from roost.doctor.install import Install

# A leader renews its Lease every few seconds. After this time without a renewal, nobody leads.
SILENT_SECONDS: Final = 60.0


def check(install: Install) -> CheckReport:
    components = [install.component(name) for name in ("scheduler", "controllers")]
    deployments = [deployment for deployment in components if deployment is not None]
    leases = [f"Lease {deployment['metadata']['name']}" for deployment in deployments]
    yield " and ".join(leases) or "no Lease is used"
    namespace = install.release.namespace
    for deployment in deployments:
        # The Lease has the Deployment's name.
        name = deployment["metadata"]["name"]
        lease = install.client.find(
            f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}"
        )
        spec = (lease or {}).get("spec") or {}
        age = age_seconds(install, spec.get("renewTime"))
        # A Lease that was just given up has a fresh renewTime, and no holder.
        if not spec.get("holderIdentity"):
            fault = "has no holder"
        elif age is None:
            fault = "was never renewed"
        elif age > SILENT_SECONDS:
            fault = f"was renewed {age:.0f} s ago"
        else:
            continue
        component = component_of(deployment)
        yield error(
            f"Lease {namespace}/{name} {fault}: nobody leads.",
            f"kubectl --namespace {namespace} logs deployment/{name}",
            brings=conditions(State.UNLED, component),
            follows=conditions(State.DOWN, component),
        )
