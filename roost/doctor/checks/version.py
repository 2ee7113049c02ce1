"""The cluster's Kubernetes is one that Roost is tested with."""

from roost.doctor.contract import Install, Told, warning


def check(install: Install) -> Told:
    minor = ".".join(map(str, install.release.kube_minor))
    tested = sorted(install.values["scheduler"]["image"]["tags"])
    yield f"Kubernetes {minor}"
    if minor not in tested:
        fix = "Use a release of Roost that names it, or test yours before users do."
        yield warning(
            f"Kubernetes {minor} is none of those that Roost is tested with: {', '.join(tested)}.",
            fix,
        )
