"""Every object that the values render to is there."""

from roost.doctor.contract import Finding, Install, Told
from roost.doctor.evidence import name_of, path_of, some


def check(install: Install) -> Told:
    yield f"{len(install.rendered)} objects of release {install.release.name}"
    missing = [name_of(body) for body in install.rendered if install.client.find(path_of(body)) is None]
    if missing:
        yield Finding(
            "error",
            f"{len(missing)} of {len(install.rendered)} objects are missing: {some(missing)}.",
            "Are --release, --namespace and -f those of the install? If so, apply it again.",
        )
