"""The cluster's Kubernetes is one that Roost is tested with."""

from generator.render.kube_scheduler import SCHEDULER_TAGS
from generator.values.release_name import kube_minor
from roost.doctor.findings import CheckReport, warning
from roost.doctor.install import Install


def check(install: Install) -> CheckReport:
    minor = ".".join(map(str, install.release.kube_minor))
    tested = sorted(SCHEDULER_TAGS, key=kube_minor)
    yield f"Kubernetes {minor}"
    if minor not in tested:
        fix = "Use a release of Roost that names it, or test yours before users do."
        yield warning(
            f"Kubernetes {minor} is none of those that Roost is tested with: {', '.join(tested)}.",
            fix,
        )
