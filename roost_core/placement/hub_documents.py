"""Read the rules of a hub that a central release serves, and hold them to the hub's own namespace.

Whoever may write ConfigMaps in a namespace writes these documents. So the namespace comes from where the ConfigMap is,
never from what it says, and nothing in a document reaches another hub's pods, labels or scheduler profiles.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from roost_core.placement.labels import CENTRAL_LABEL, NAMESPACE_NAME_LABEL
from roost_core.placement.managed_images import count_combinations
from roost_core.placement.settings import CONTROLLERS, PodClass, Settings, parse_settings, revision_of
from roost_core.placement.settings_reader import Document, Fault, Reader, SettingsError, load_document

if TYPE_CHECKING:
    from collections.abc import Iterable

    from roost_core.objects.selectors import Requirement

# Each takes some threads and connections; further ones are refused, and counted.
MAX_HUBS: Final = 200
# Each class of a hub is one watch, or two: no hub may take all that the API server gives the central webhook.
MAX_CLASSES: Final = 16
# The controllers plan for each set, and the webhook keeps a label for each.
MAX_PLACEHOLDER_SETS: Final = 100
# Of choices of a profile's options: they multiply, and reading the document takes time for each.
MAX_COMBINATIONS: Final = 20_000
# A hub's ConfigMap holds two documents, and at most 1 MiB.
MAX_HUB_BYTES: Final = 512 * 1024
# What is kept in place of a longer document. No JSON begins like this.
TOO_LARGE: Final = b"\0too large"


class HubRules(NamedTuple):
    """A hub's rules as the central release applies them."""

    settings: Settings
    # Profiles that the central scheduler lacks, by class: pods of these classes keep the cluster's scheduler.
    lost_profiles: Mapping[str, str]


def load_hub_document(text: bytes) -> dict[str, object]:
    """Parse a document of a hub's ConfigMap. Raises SettingsError."""
    if text == TOO_LARGE:
        fault = Fault("the document", f"more than {MAX_HUB_BYTES} bytes", f"at most {MAX_HUB_BYTES} bytes")
        raise SettingsError([fault])
    return load_document(text, MAX_HUB_BYTES)


def requires_a_label(selector: Iterable[Requirement]) -> bool:
    """Whether a hub's `sharedPools` selects only namespaces that somebody labelled for it, or named.

    Without such a requirement it would select each namespace that is served, and the operator would have no say. All of
    those have the labels for being served and of the name.
    """
    return any(
        requirement.operator == "In" or (requirement.operator == "Exists" and requirement.key != NAMESPACE_NAME_LABEL)
        for requirement in selector
        if requirement.key != CENTRAL_LABEL
    )


def central_of(document: Document) -> tuple[object, object] | None:
    """Name and namespace of the central release that a hub's document names; None: it names none."""
    central = document.get("central")
    return (central.get("release"), central.get("namespace")) if isinstance(central, Mapping) else None


def check_reach(read: Reader, document: Document, namespace: str, central: tuple[str, str]) -> None:
    """Add a fault for all that would reach beyond the hub in `namespace`, or take more than its share.

    Both documents of a hub have these keys. It is for a document of which nothing else was read yet.
    """
    if document.get("namespace") != namespace:
        read.fault("namespace", document.get("namespace"), f"{namespace}, where the ConfigMap is")
    if central_of(document) != central:
        expected = f"{' in namespace '.join(central)}: hubs.central of the hub's values"
        read.fault("central", document.get("central"), expected)
    classes = read.mapping(document.get("podClasses"), "podClasses")
    if len(classes) > MAX_CLASSES:
        read.fault("podClasses", len(classes), f"at most {MAX_CLASSES} classes")
    for name, pod_class in classes.items():
        match = pod_class.get("match") if isinstance(pod_class, Mapping) else None
        selector = match.get("namespaceSelector") if isinstance(match, Mapping) else None
        if selector is not None:
            key = f"podClasses.{name}.match.namespaceSelector"
            read.fault(key, selector, "nothing: a hub's rules are for pods of its own namespace")
    sets = len(read.items(document.get("placeholders"), "placeholders"))
    if sets > MAX_PLACEHOLDER_SETS:
        read.fault("placeholders", sets, f"at most {MAX_PLACEHOLDER_SETS} sets of placeholders")
    if count_combinations(document.get("singleuser")) > MAX_COMBINATIONS:
        most = f"profiles with at most {MAX_COMBINATIONS} combinations of choices"
        read.fault("singleuser.profileList", f"more than {MAX_COMBINATIONS}", most)


def read_hub_rules(text: bytes, namespace: str, central: Settings) -> HubRules:
    """Read policy.json of the hub in `namespace`; central: the central release's own rules.

    Raises SettingsError with all faults of its reach, or else with all others.
    """
    document = load_hub_document(text)
    read = Reader()
    check_reach(read, document, namespace, central.scheduler_owner)
    if read.faults:
        raise SettingsError(read.faults)
    settings = parse_settings(document, revision_of(text))
    profiles = central.scheduler_profiles or frozenset()
    lost = {
        name: pod_class.profile
        for name, pod_class in settings.classes.items()
        if pod_class.profile and pod_class.profile not in profiles
    }
    leases = {part: name for part, name in settings.leases.items() if part == CONTROLLERS}
    held = replace(
        settings,
        sets_scheduler=settings.sets_scheduler and central.sets_scheduler,
        classes={name: _without_profile(each) if name in lost else each for name, each in settings.classes.items()},
        leases=leases,
    )
    return HubRules(held, lost if held.sets_scheduler else {})


def _without_profile(pod_class: PodClass) -> PodClass:
    # With the name of a scheduler that nobody runs, its pods would wait forever.
    return replace(pod_class, profile="")
