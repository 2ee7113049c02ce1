"""zero-to-jupyterhub's own parts don't run beside those of Roost's that replace them."""

from collections.abc import Mapping
from typing import Final

from roost.doctor.evidence import HUB_VALUES, label_items, listed, name_of, plural
from roost.doctor.findings import CheckReport, warning
from roost.doctor.install import Install
from roost_core.placement.labels import COMPONENT_LABEL, USER_CLASS

# Component of the hub's chart: kind, the switch in the hub's values, what goes wrong while it is
# on.
_PARTS: Final[Mapping[str, tuple[str, str, str]]] = {
    "user-scheduler": (
        "Deployment",
        "scheduling.userScheduler.enabled: false",
        "two schedulers race for room",
    ),
    "user-placeholder": (
        "StatefulSet",
        "scheduling.userPlaceholder.replicas: 0",
        "its placeholders keep nodes, too",
    ),
    "continuous-image-puller": (
        "DaemonSet",
        "prePuller.continuous.enabled: false    # Roost's puller does this",
        "each new node is brought its images twice",
    ),
}


def check(install: Install) -> CheckReport:
    user = install.values["podClasses"].get(USER_CLASS)
    yield "parts of zero-to-jupyterhub that Roost replaces"
    for component, (kind, switch, harm) in _PARTS.items():
        own = install.component("scheduler") if kind == "Deployment" else install.of_kind(kind)
        if not own:
            continue
        for body in listed(install, user, "/apis/apps/v1", plural(kind)):
            labels = label_items(body)
            is_part = (labels.get("app"), labels.get(COMPONENT_LABEL)) == ("jupyterhub", component)
            if is_part and (body.get("spec") or {}).get("replicas", 1):
                yield warning(
                    f"{name_of({'kind': kind, **body})} of zero-to-jupyterhub still runs beside"
                    f" Roost's: {harm}.",
                    f"{HUB_VALUES}: {switch}",
                )
