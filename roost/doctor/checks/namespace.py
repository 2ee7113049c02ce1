"""The release's namespace is there."""

from typing import Final

from roost.doctor.contract import Check, Finding, Install, Told


def _check(install: Install) -> Told:
    name = install.release.namespace
    yield f"namespace {name}"
    if install.client.find(f"/api/v1/namespaces/{name}") is None:
        yield Finding(
            "error",
            f"There is no namespace {name}.",
            "Give the hub's namespace by --namespace: Roost looks for users' pods there.",
        )


CHECK: Final = Check("namespace", _check)
