"""zero-to-jupyterhub's own parts don't run beside those of Roost's that replace them."""

from collections.abc import Mapping
from typing import Final

from roost.doctor.contract import Finding, Install, Told
from roost.doctor.evidence import label_items, name_of, selector_of
from roost_core.placement.labels import COMPONENT_LABEL, USER_CLASS
from roost_core.release.classes import namespace_matches

# Component of the hub's chart: kind, resource, the switch in the hub's values, what goes wrong while it is on.
_PARTS: Final[Mapping[str, tuple[str, str, str, str]]] = {
    "user-scheduler": (
        "Deployment",
        "deployments",
        "scheduling.userScheduler.enabled: false",
        "two schedulers race for the last room of a node",
    ),
    "user-placeholder": (
        "StatefulSet",
        "statefulsets",
        "scheduling.userPlaceholder.replicas: 0",
        "its placeholders keep nodes beside Roost's, and no mover moves them",
    ),
    "continuous-image-puller": (
        "DaemonSet",
        "daemonsets",
        "prePuller.continuous.enabled: false    # Roost's puller does this",
        "each new node is brought its images twice",
    ),
}


def check(install: Install) -> Told:
    rendered = {
        "Deployment": install.component("scheduler") is not None,
        "StatefulSet": bool(install.of_kind("StatefulSet")),
        "DaemonSet": bool(install.of_kind("DaemonSet")),
    }
    required = selector_of(install.values["podClasses"].get(USER_CLASS))
    place = "" if required is not None else f"namespaces/{install.release.namespace}/"
    yield "parts of zero-to-jupyterhub that Roost replaces"
    for component, (kind, resource, switch, harm) in _PARTS.items():
        if not rendered[kind]:
            continue
        for body in install.client.get(f"/apis/apps/v1/{place}{resource}")["items"]:
            labels, namespace = label_items(body), body["metadata"].get("namespace") or ""
            if (labels.get("app"), labels.get(COMPONENT_LABEL)) != ("jupyterhub", component):
                continue
            is_served = required is None or namespace_matches(required, namespace, install.namespaces)
            if is_served and (body.get("spec") or {}).get("replicas", 1):
                yield Finding(
                    "warning",
                    f"{name_of({'kind': kind, **body})} of zero-to-jupyterhub still runs beside Roost's: {harm}.",
                    f"In the hub's values: {switch}",
                )
