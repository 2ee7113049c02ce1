"""The cluster's Kubernetes is one that Roost is tested with."""

from typing import Final

from roost.doctor.contract import Check, Finding, Install, Told


def _check(install: Install) -> Told:
    minor = ".".join(map(str, install.release.kube_minor))
    tested = sorted(
        install.values["scheduler"]["image"]["tags"], key=lambda tag: [int(part) for part in tag.split(".")]
    )
    yield f"Kubernetes {minor}"
    if minor not in tested:
        yield Finding(
            "warning",
            f"Kubernetes {minor} is none of those that Roost is tested with: {', '.join(tested)}.",
            "Use a release of Roost that names it, or test yours before users do.",
        )


CHECK: Final = Check("version", _check)
