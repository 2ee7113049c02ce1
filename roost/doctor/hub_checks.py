"""Is a hub served by the central release that its values name, and does a central release serve who is meant to be?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from roost.doctor.evidence import label_items, some
from roost.doctor.findings import Finding
from roost.doctor.install import path_of
from roost_core.objects.selectors import read_label_selector
from roost_core.placement.classes import namespace_matches
from roost_core.placement.hub_documents import central_of, load_hub_document, read_hub_rules, requires_a_label
from roost_core.placement.labels import (
    CENTRAL_LABEL,
    HUB_CONFIG_MAP,
    POLICY_KEY,
    central_name,
    cluster_object_name,
    object_name,
)
from roost_core.placement.settings import read_settings
from roost_core.placement.settings_reader import SettingsError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from roost.doctor.install import Install, Object

_WEBHOOKS: Final = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
_LAST_GOOD: Final = "The hub's last good rules stay in use; without any, its pods are created unchanged."


def check_hubs(install: Install) -> tuple[str, Iterator[Finding]]:
    """Namespaces are labelled, rules are there and accepted: all that a hub of another namespace needs to be served."""
    hubs = install.values["hubs"]
    central = hubs["central"]
    if install.values["enabled"] and central["release"]:
        said = f"label and rules of a hub of central release {central['release']} in {central['namespace']}"
        return said, _find_of_hub(install, central)
    if install.values["enabled"] and hubs["serve"]:
        return "labels and rules of the hubs that this release serves", _find_of_central(install)
    return "no central release is used", iter(())


def _find_of_hub(install: Install, central: dict[str, Any]) -> Iterator[Finding]:
    namespace, wanted = install.release.namespace, central_name(central["release"], central["namespace"])
    body = install.client.find(f"/api/v1/namespaces/{namespace}")
    if body is None:
        return  # the check namespace says so
    label = label_items(body).get(CENTRAL_LABEL)
    if label != wanted:
        yield Finding(
            "error",
            f"Namespace {namespace} has "
            + (f"label {CENTRAL_LABEL}={label}, not {wanted}" if label else f"no label {CENTRAL_LABEL}={wanted}")
            + ": its pods are created unchanged.",
            f"The cluster's operator consents by kubectl label --overwrite namespace {namespace} "
            f"{CENTRAL_LABEL}={wanted}",
        )
    yield from _find_outside_of_its_pool(install.values, namespace, body)
    yield from _find_central(install, central)
    found = install.client.find(f"/api/v1/namespaces/{namespace}/configmaps/{HUB_CONFIG_MAP}")
    if found is None:
        return  # the check objects says so
    base = central["fullnameOverride"] or f"{central['release']}-roost"
    name = object_name(base, "webhook")
    own = install.client.find(f"/api/v1/namespaces/{central['namespace']}/configmaps/{name}")
    if own is None:
        yield Finding(
            "error",
            f"There is no ConfigMap {central['namespace']}/{name} with the central release's own rules.",
            "If that release sets fullnameOverride, set hubs.central.fullnameOverride to the same.",
        )
        return
    yield from _find_refused(own, {namespace: found})


def _find_outside_of_its_pool(values: Mapping[str, Any], namespace: str, body: Object) -> Iterator[Finding]:
    """A hub whose `sharedPools` doesn't select its own namespace shares no warm set."""
    shared = (values.get("sharedPools") or {}).get("namespaceSelector")
    required = None if shared is None else read_label_selector(shared)
    if required is not None and not requires_a_label(required):
        yield Finding(
            "warning",
            "sharedPools.namespaceSelector requires no label by matchLabels, In or Exists: warm sets of this hub "
            "count its own users alone, and those of other hubs don't count them.",
            "Choose a label, set {matchLabels: {hub.jupyter.org/pool: users}} in all hubs that share nodes, and label "
            "their namespaces.",
        )
    elif required is not None and not namespace_matches(required, namespace, {namespace: label_items(body)}):
        yield Finding(
            "warning",
            f"sharedPools.namespaceSelector doesn't select the hub's own namespace {namespace}: warm sets of this hub "
            "count its own users alone, and those of other hubs don't count them.",
            f"Label namespace {namespace} as the selector asks, or set sharedPools.namespaceSelector: null.",
        )


def _find_central(install: Install, central: dict[str, Any]) -> Iterator[Finding]:
    name = cluster_object_name(central["release"], central["namespace"], "webhook")
    configuration = install.client.find(f"{_WEBHOOKS}/{name}")
    if configuration is None:
        yield Finding(
            "error",
            f"There is no MutatingWebhookConfiguration {name}: central release {central['release']} isn't in "
            f"{central['namespace']}.",
            "Install it there (docs/many-hubs.md#set-it-up), or correct hubs.central of this hub's values.",
        )
    elif not any(entry["name"].startswith("hubs.") for entry in configuration.get("webhooks") or []):
        yield Finding(
            "error",
            f"MutatingWebhookConfiguration {name} has no entry for hubs of other namespaces.",
            "Set hubs.serve: true in the central release's values, and upgrade it.",
        )


def _find_of_central(install: Install) -> Iterator[Finding]:
    rendered = next((body for body in install.of_kind("ConfigMap") if POLICY_KEY in (body.get("data") or {})), None)
    own = install.client.find(path_of(rendered)) if rendered is not None else None
    if own is None:
        return  # the check objects says so; before an install nobody is served
    identity = (install.release.name, install.release.namespace)
    labelled = {
        body["metadata"]["name"]
        for body in install.client.get("/api/v1/namespaces")["items"]
        if label_items(body).get(CENTRAL_LABEL) == central_name(*identity)
    } - {install.release.namespace}
    listed = install.client.get("/api/v1/configmaps", {"fieldSelector": f"metadata.name={HUB_CONFIG_MAP}"})["items"]
    hubs = {body["metadata"]["namespace"]: body for body in listed if body["metadata"]["name"] == HUB_CONFIG_MAP}
    bare = sorted(labelled - hubs.keys())
    if bare:
        yield Finding(
            "warning",
            f"Labelled namespaces without a ConfigMap {HUB_CONFIG_MAP}, whose pods are created unchanged: "
            f"{some(bare)}.",
            f"Install the hub's release there with hubs.central, or take the label away: kubectl label namespace "
            f"{bare[0]} {CENTRAL_LABEL}-",
        )
    waiting = [name for name, body in sorted(hubs.items()) if name not in labelled and _central_of(body) == identity]
    if waiting:
        yield Finding(
            "warning",
            f"Hubs of this release in namespaces without its label, whose pods are created unchanged: {some(waiting)}.",
            f"To serve one: kubectl label --overwrite namespace {waiting[0]} {CENTRAL_LABEL}={central_name(*identity)}",
        )
    yield from _find_refused(own, {name: hubs[name] for name in sorted(labelled & hubs.keys())})


def _find_refused(own: Object, hubs: Mapping[str, Object]) -> Iterator[Finding]:
    """What the central webhook says of hubs' ConfigMaps, by its own reader. own: the central release's ConfigMap."""
    try:
        central = read_settings(_rules_of(own))
    except SettingsError as error:
        metadata = own["metadata"]
        yield _refused(
            f"{metadata['namespace']}/{metadata['name']}",
            error.one_line(),
            "The central release's last good rules stay.",
        )
        return
    for namespace, config_map in hubs.items():
        try:
            rules = read_hub_rules(_rules_of(config_map), namespace, central)
        except SettingsError as error:
            yield _refused(f"{namespace}/{HUB_CONFIG_MAP}", error.one_line(), _LAST_GOOD)
            continue
        except Exception as error:  # noqa: BLE001 - what one hub wrote must not end the checks of the others
            yield _refused(f"{namespace}/{HUB_CONFIG_MAP}", f"it can't be read ({type(error).__name__})", _LAST_GOOD)
            continue
        if rules.lost_profiles:
            yield _lost(namespace, rules.lost_profiles)


def _refused(config_map: str, reason: str, consequence: str) -> Finding:
    return Finding(
        "error",
        f"ConfigMap {config_map} is refused: {reason}. {consequence}",
        "Put right in the release's values what is named, or bring both releases to the same version of Roost.",
    )


def _lost(namespace: str, profiles: Mapping[str, str]) -> Finding:
    lost = [f"{profile} (class {pod_class})" for pod_class, profile in profiles.items()]
    return Finding(
        "warning",
        f"The central scheduler lacks profiles of the hub in {namespace}: {some(lost)}. Such pods keep the cluster's.",
        "Add them to scheduler.profiles of the central release.",
    )


def _central_of(config_map: Object) -> tuple[object, object] | None:
    """Name and namespace of the central release that a hub's rules name; None where they can't be read."""
    try:
        return central_of(load_hub_document(_rules_of(config_map)))
    except SettingsError:
        return None


def _rules_of(config_map: Object) -> bytes:
    return str((config_map.get("data") or {}).get(POLICY_KEY) or "").encode()
