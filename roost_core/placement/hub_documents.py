"""Read the rules of a hub that a central release serves, and hold them to the hub's own namespace.

Whoever may write ConfigMaps in a namespace writes these documents. So the namespace comes from where the ConfigMap is,
never from what it says, and nothing in a document reaches another hub's pods, labels or scheduler profiles.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from roost_core.placement.settings import CONTROLLERS, PodClass, Settings, read_settings
from roost_core.placement.settings_reader import Reader, SettingsError

if TYPE_CHECKING:
    from collections.abc import Mapping

# Each class of a hub is one watch, or two: no hub may take all that the API server gives the central webhook.
MAX_CLASSES: Final = 16


class HubRules(NamedTuple):
    """A hub's rules as the central release applies them."""

    settings: Settings
    # Profiles that the central scheduler lacks, by class: pods of these classes keep the cluster's scheduler.
    lost_profiles: Mapping[str, str]


def read_hub_rules(text: bytes, namespace: str, central: Settings) -> HubRules:
    """Read policy.json of the hub in `namespace`; central: the central release's own rules.

    Raises SettingsError with all faults at once.
    """
    settings = read_settings(text)
    read = Reader()
    if settings.namespace != namespace:
        read.fault("namespace", settings.namespace, f"{namespace}, where the ConfigMap is")
    if settings.central != central.scheduler_owner:
        owner = " in namespace ".join(central.scheduler_owner)
        read.fault("central", settings.central, f"{owner}: hubs.central of the hub's values")
    if len(settings.classes) > MAX_CLASSES:
        read.fault("podClasses", len(settings.classes), f"at most {MAX_CLASSES} classes")
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


def _without_profile(pod_class: PodClass) -> PodClass:
    # With the name of a scheduler that nobody runs, its pods would wait forever.
    return replace(pod_class, profile="")
