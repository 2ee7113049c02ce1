"""The scheduler and the controllers have a leader."""

from typing import Final

from roost.doctor.conditions import State, component_of, conditions
from roost.doctor.contract import Install, Told, error
from roost.doctor.evidence import age_seconds

# A holder renews its Lease every few seconds; this long after, nobody does.
SILENT_SECONDS: Final = 60.0


def check(install: Install) -> Told:
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
        if not spec.get("holderIdentity") or age is None or age > SILENT_SECONDS:
            state = f"was renewed {age:.0f} s ago" if age is not None else "has no holder"
            fix = f"kubectl --namespace {namespace} logs deployment/{name}"
            component = component_of(body)
            yield error(
                f"Lease {namespace}/{name} {state}: nobody leads.",
                fix,
                conditions(State.UNLED, component),
                conditions(State.DOWN, component),
            )
