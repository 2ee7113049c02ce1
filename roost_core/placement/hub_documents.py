"""Read the rules of a hub that a central release serves, and hold them to the hub's own namespace.

Whoever may write ConfigMaps in a namespace writes these documents. So the namespace comes from where the ConfigMap is,
never from what it says, and nothing in a document reaches another hub's pods, labels or scheduler profiles.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from roost_core.placement.managed_images import count_combinations
from roost_core.placement.settings import CONTROLLERS, PodClass, Settings, read_settings
from roost_core.placement.settings_reader import Fault, Reader, SettingsError, load_document

if TYPE_CHECKING:
    from collections.abc import Mapping

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


def check_size(text: bytes) -> None:
    """Refuse what stands for a document that is too large. Raises SettingsError."""
    if text == TOO_LARGE or len(text) > MAX_HUB_BYTES:
        fault = Fault("the document", f"more than {MAX_HUB_BYTES} bytes", f"at most {MAX_HUB_BYTES} bytes")
        raise SettingsError([fault])


def read_hub_rules(text: bytes, namespace: str, central: Settings) -> HubRules:
    """Read policy.json of the hub in `namespace`; central: the central release's own rules.

    Raises SettingsError with all faults at once.
    """
    check_size(text)
    read = Reader()
    combinations = count_combinations(load_document(text).get("singleuser"))
    if combinations > MAX_COMBINATIONS:
        # Before the whole document is read, which looks at each of them.
        most = f"profiles with at most {MAX_COMBINATIONS} combinations of choices"
        read.fault("singleuser.profileList", f"more than {MAX_COMBINATIONS}", most)
        raise SettingsError(read.faults)
    settings = read_settings(text)
    if settings.namespace != namespace:
        read.fault("namespace", settings.namespace, f"{namespace}, where the ConfigMap is")
    if settings.central != central.scheduler_owner:
        owner = " in namespace ".join(central.scheduler_owner)
        read.fault("central", settings.central, f"{owner}: hubs.central of the hub's values")
    if len(settings.classes) > MAX_CLASSES:
        read.fault("podClasses", len(settings.classes), f"at most {MAX_CLASSES} classes")
    check_placeholder_sets(read, len(settings.placeholder_sets))
    for name, pod_class in settings.classes.items():
        if pod_class.namespace_selector is not None:
            key = f"podClasses.{name}.match.namespaceSelector"
            read.fault(key, pod_class.namespace_selector, "nothing: a hub's rules are for pods of its own namespace")
    if read.faults:
        raise SettingsError(read.faults)
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


def check_placeholder_sets(read: Reader, count: int) -> None:
    """Add a fault if a hub has too many placeholder sets."""
    if count > MAX_PLACEHOLDER_SETS:
        read.fault("placeholders", count, f"at most {MAX_PLACEHOLDER_SETS} sets of placeholders")


def _without_profile(pod_class: PodClass) -> PodClass:
    # With the name of a scheduler that nobody runs, its pods would wait forever.
    return replace(pod_class, profile="")
