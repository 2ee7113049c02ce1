"""Let class `user` match the pods that the hub makes: their namespace, labels and scheduler."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from generator.importing.hub_traits import HubTraits, traits_of
from generator.importing.lost_overrides import note_lost_of_groups
from generator.importing.not_carried_over import runtime_class_reason
from generator.importing.profile_pools import UNKNOWN_IMAGE
from generator.importing.result import Draft
from generator.importing.source import UNKNOWN, HubPath, HubSection
from generator.importing.traits import (
    LISTS,
    PLACEHOLDER_TRAITS,
    UNSET,
    SetTraits,
    entries,
    is_known,
)
from generator.values.lookups import child, mapping

_SAME_SCHEDULER: Final = "replaceSchedulers has the scheduler that {setter}"
# Traits that take users out of Roost's reach, each with what must be so before users are placed if
# the trait is UNKNOWN. {setter}: which key sets it, on which line.
_OUT_OF_REACH: Final = {
    "namespace": "podClasses.user.match.namespaceSelector selects the namespace that {setter}",
    "component_label": "podClasses.user.match.labels.component is the component_label that"
    " {setter}",
    "scheduler_name": _SAME_SCHEDULER,
    "extra_pod_config": _SAME_SCHEDULER,
}


def map_class_match(draft: Draft, hub: HubSection) -> tuple[list[str], set[str]]:
    """Let class `user` match the pods that the hub makes.

    Returns what must be so before users are placed, a clause for each reason; and the traits that
    were followed.
    """
    hub_traits = traits_of(hub)
    traits = hub_traits.traits
    followed = _followed_traits(traits)
    # `component` of extra_labels is overwritten by it.
    component, component_at = traits.get("component_label", UNSET)
    if isinstance(component, str) and component not in ("", UNKNOWN):
        draft.put("podClasses.user.match.labels.component", component, (*hub.path, *component_at))
        followed.add("component_label")
    _reject_runtime_class(draft, hub, traits)
    groups, groups_at = traits.get("group_overrides", UNSET)
    note_lost_of_groups(draft, (*hub.path, *groups_at), groups)
    each_user_has_one, _ = traits.get("enable_user_namespaces", UNSET)
    if each_user_has_one is False:
        # As by default.
        followed.add("enable_user_namespaces")
    labels, labels_at = _namespace_labels(traits)
    if labels:
        selector = {"matchLabels": dict(labels)}
        why = "The hub makes its users' pods there."
        draft.put("podClasses.user.match.namespaceSelector", selector, (*hub.path, *labels_at), why)
        followed |= {"enable_user_namespaces", "namespace", "user_namespace_template"}
    unmet = [
        *_unmet_by_namespaces(hub, traits),
        *_unmet_by_scheduler(draft, traits),
        *_unmet_by_python(draft, hub, hub_traits),
    ]
    return unmet, followed


def _followed_traits(traits: SetTraits) -> set[str]:
    """Traits whose values other parts of the import take as they are."""
    followed: set[str] = set()
    for trait in ("image", "image_spec"):
        image, _ = traits.get(trait, UNSET)
        if isinstance(image, str) and image != UNKNOWN_IMAGE:
            followed.add(trait)
    for trait in ("profile_list", "extra_pod_config", "group_overrides", *PLACEHOLDER_TRAITS):
        value, _ = traits.get(trait, UNSET)
        read = entries(value) if trait in LISTS else value
        if read is not None and is_known(value):
            followed.add(trait)
    return followed


def _reject_runtime_class(draft: Draft, hub: HubSection, traits: SetTraits) -> None:
    """Note a RuntimeClass that the hub's Python sets: what it adds to pods isn't in the values."""
    pod_config, at = traits.get("extra_pod_config", UNSET)
    name = child(pod_config, "runtimeClassName")
    is_set_in_python = at[:2] in (("hub", "extraConfig"), ("hub", "extraFiles"))
    if isinstance(name, str) and is_known(name) and is_set_in_python:
        draft.reject(hub, at, runtime_class_reason(name))


def _namespace_labels(traits: SetTraits) -> tuple[Mapping[str, object], HubPath]:
    """Labels of the namespaces that users' pods are in, and the key that sets these namespaces; {}:
    users are in the hub's own, or nobody can say.
    """
    each_user_has_one, switch_at = traits.get("enable_user_namespaces", UNSET)
    if each_user_has_one is True:
        labels, _ = traits.get("user_namespace_labels", UNSET)
        return mapping(labels), switch_at
    namespace, namespace_at = traits.get("namespace", UNSET)
    if isinstance(namespace, str) and namespace not in ("", UNKNOWN):
        return {"kubernetes.io/metadata.name": namespace}, namespace_at
    return {}, ()


def _unmet_by_namespaces(hub: HubSection, traits: SetTraits) -> list[str]:
    """What must be so of users' own namespaces, where no labels of them are known."""
    each_user_has_one, at = traits.get("enable_user_namespaces", UNSET)
    labels, _ = traits.get("user_namespace_labels", UNSET)
    if each_user_has_one is not True or labels:
        return []
    where = f"{hub.show(at)}: each user has one"
    return [f"podClasses.user.match.namespaceSelector selects the namespaces of users ({where})"]


def _unmet_by_scheduler(draft: Draft, traits: SetTraits) -> list[str]:
    """What must be so of a scheduler that the hub names in its users' pods."""
    pod_config, _ = traits.get("extra_pod_config", UNSET)
    of_trait, _ = traits.get("scheduler_name", UNSET)
    name = child(pod_config, "schedulerName") or of_trait
    if not isinstance(name, str) or name in ("", "default-scheduler", UNKNOWN):
        return []
    is_replaced = any(
        piece.path == ("replaceSchedulers",) and piece.value == [name] for piece in draft.pieces
    )
    if is_replaced:
        return []
    return [f"replaceSchedulers has {name}, the scheduler that the hub names in its users' pods"]


def _unmet_by_python(draft: Draft, hub: HubSection, hub_traits: HubTraits) -> list[str]:
    """What must be so of traits that the hub's Python sets to nobody knows what."""
    unmet: list[str] = []
    if hub_traits.any_trait is not None:
        words, at = hub_traits.any_trait
        _, line = draft.places.of((*hub.path, *at))
        unmet.append(
            f"podClasses.user.match and replaceSchedulers fit what {hub.show(at)} does in Python"
            f" (line {line}: {words})"
        )
    for trait, (value, at) in hub_traits.traits.items():
        is_unknown = value == UNKNOWN
        if trait == "extra_pod_config":
            is_unknown = is_unknown or child(value, "schedulerName") == UNKNOWN
        if is_unknown and trait in _OUT_OF_REACH:
            _, line = draft.places.of((*hub.path, *at))
            setter = f"{hub.show(at)} sets in Python (line {line})"
            unmet.append(_OUT_OF_REACH[trait].format(setter=setter))
    return unmet
