"""zero-to-jupyterhub's own parts don't run beside those of Roost's that replace them."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from roost.doctor.evidence import HUB_VALUES, label_items, listed, name_of, plural
from roost.doctor.findings import CheckReport, warning
from roost.doctor.install import Install
from roost_core.placement.labels import COMPONENT_LABEL, USER_CLASS


class _Part(NamedTuple):
    """A part of the hub that Roost replaces."""

    kind: str
    # What switches it off in the hub's values.
    switch: str
    # What goes wrong while it is on.
    harm: str


# By component of the hub's chart.
_PARTS: Final[Mapping[str, _Part]] = {
    "user-scheduler": _Part(
        "Deployment", "scheduling.userScheduler.enabled: false", "two schedulers race for room"
    ),
    "user-placeholder": _Part(
        "StatefulSet", "scheduling.userPlaceholder.replicas: 0", "its placeholders keep nodes, too"
    ),
    "continuous-image-puller": _Part(
        "DaemonSet",
        "prePuller.continuous.enabled: false    # Roost's puller does this",
        "each new node is brought its images twice",
    ),
}


def check(install: Install) -> CheckReport:
    user = install.values["podClasses"].get(USER_CLASS)
    yield "parts of zero-to-jupyterhub that Roost replaces"
    for component, part in _PARTS.items():
        kind = part.kind
        own = install.component("scheduler") if kind == "Deployment" else install.of_kind(kind)
        if not own:
            continue
        for body in listed(install, user, "/apis/apps/v1", plural(kind)):
            labels = label_items(body)
            is_part = (labels.get("app"), labels.get(COMPONENT_LABEL)) == ("jupyterhub", component)
            if is_part and (body.get("spec") or {}).get("replicas", 1):
                yield warning(
                    f"{name_of({'kind': kind, **body})} of zero-to-jupyterhub still runs beside"
                    f" Roost's: {part.harm}.",
                    f"{HUB_VALUES}: {part.switch}",
                )
