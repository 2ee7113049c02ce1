"""The release's namespace is there."""

from roost.doctor.conditions import NO_NAMESPACE
from roost.doctor.findings import CheckReport, error
from roost.doctor.install import Install


def check(install: Install) -> CheckReport:
    name = install.release.namespace
    yield f"namespace {name}"
    if install.client.find(f"/api/v1/namespaces/{name}") is None:
        fix = "Give the hub's namespace by --namespace: Roost looks for users' pods there."
        yield error(f"There is no namespace {name}.", fix, NO_NAMESPACE)
