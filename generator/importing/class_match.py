"""Let class `user` match the pods that the hub makes: their namespace, labels and scheduler.

Read are traits below `hub.config`, `singleuser.extraPodConfig` and `extraLabels`, and what the
hub's Python writes out: `c.KubeSpawner.namespace = "lab"`, `setattr`, lambdas, spawners and pods in
hooks. Later ones win. What stands under a condition, or isn't written out, is UNKNOWN. Source:
KubeSpawner 7, traits; zero-to-jupyterhub 4.4, jupyterhub_config.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from generator.importing.chart_traits import chart_traits
from generator.importing.hub_code import (
    KNOWN_NAMES,
    OF_JUPYTERHUB,
    TraitValue,
    assigned,
    spawn_hook,
)
from generator.importing.hub_python import python_elsewhere, python_of
from generator.importing.lost_overrides import note_lost_of_groups
from generator.importing.not_carried_over import runtime_class_reason
from generator.importing.profile_pools import UNKNOWN_IMAGE, mark_defaults
from generator.importing.python_settings import ANY
from generator.importing.result import Draft
from generator.importing.source import UNKNOWN, HubPath, HubSection
from generator.importing.traits import (
    LISTS,
    PLACEHOLDER_TRAITS,
    POD_AFFINITIES,
    SetTrait,
    camel_case,
    entries,
    is_known,
)
from generator.values.lookups import child, mapping

_Traits = dict[str, SetTrait]
# Traits that the chart always sets, to nothing if its values say nothing.
_CHART_SETS: Final = frozenset(
    {
        "node_selector",
        "node_affinity_required",
        "extra_pod_config",
        "extra_labels",
        "init_containers",
        "extra_containers",
        "profile_list",
        *POD_AFFINITIES,
    }
)
_UNSET: Final = SetTrait(None, ())
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


class AnyTrait(NamedTuple):
    """What may set any trait of the spawner."""

    # A statement of the hub's Python, or a class, for people.
    words: str
    # The key that holds it, below the hub's values.
    at: HubPath


class HubTraits(NamedTuple):
    """What the hub sets of its spawner beside the chart's keys."""

    traits: _Traits
    # The last statement that may set any of them; None: there is none.
    any_trait: AnyTrait | None


def map_class_match(draft: Draft, hub: HubSection) -> tuple[list[str], set[str]]:
    """Let class `user` match the pods that the hub makes.

    Returns what must be so before users are placed, a clause for each reason; and the traits that
    were followed.
    """
    hub_traits = traits_of(hub)
    traits = hub_traits.traits
    followed = _followed_traits(traits)
    # `component` of extra_labels is overwritten by it.
    component, component_at = traits.get("component_label", _UNSET)
    if isinstance(component, str) and component not in ("", UNKNOWN):
        draft.put("podClasses.user.match.labels.component", component, (*hub.path, *component_at))
        followed.add("component_label")
    _reject_runtime_class(draft, hub, traits)
    groups, groups_at = traits.get("group_overrides", _UNSET)
    note_lost_of_groups(draft, (*hub.path, *groups_at), groups)
    each_user_has_one, _ = traits.get("enable_user_namespaces", _UNSET)
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


def _followed_traits(traits: _Traits) -> set[str]:
    """Traits whose values other parts of the import take as they are."""
    followed: set[str] = set()
    for trait in ("image", "image_spec"):
        image, _ = traits.get(trait, _UNSET)
        if isinstance(image, str) and image != UNKNOWN_IMAGE:
            followed.add(trait)
    for trait in ("profile_list", "extra_pod_config", "group_overrides", *PLACEHOLDER_TRAITS):
        value, _ = traits.get(trait, _UNSET)
        read = entries(value) if trait in LISTS else value
        if read is not None and is_known(value):
            followed.add(trait)
    return followed


def _reject_runtime_class(draft: Draft, hub: HubSection, traits: _Traits) -> None:
    """Note a RuntimeClass that the hub's Python sets: what it adds to pods isn't in the values."""
    pod_config, at = traits.get("extra_pod_config", _UNSET)
    name = child(pod_config, "runtimeClassName")
    is_set_in_python = at[:2] in (("hub", "extraConfig"), ("hub", "extraFiles"))
    if isinstance(name, str) and is_known(name) and is_set_in_python:
        draft.reject(hub, at, runtime_class_reason(name))


def _namespace_labels(traits: _Traits) -> tuple[Mapping[str, object], HubPath]:
    """Labels of the namespaces that users' pods are in, and the key that says so; {}: users are in
    the hub's own, or nobody can say.
    """
    each_user_has_one, switch_at = traits.get("enable_user_namespaces", _UNSET)
    if each_user_has_one is True:
        labels, _ = traits.get("user_namespace_labels", _UNSET)
        return mapping(labels), switch_at
    namespace, namespace_at = traits.get("namespace", _UNSET)
    if isinstance(namespace, str) and namespace not in ("", UNKNOWN):
        return {"kubernetes.io/metadata.name": namespace}, namespace_at
    return {}, ()


def _unmet_by_namespaces(hub: HubSection, traits: _Traits) -> list[str]:
    """What must be so of users' own namespaces, where no labels of them are known."""
    each_user_has_one, at = traits.get("enable_user_namespaces", _UNSET)
    labels, _ = traits.get("user_namespace_labels", _UNSET)
    if each_user_has_one is not True or labels:
        return []
    where = f"{hub.show(at)}: each user has one"
    return [f"podClasses.user.match.namespaceSelector selects the namespaces of users ({where})"]


def _unmet_by_scheduler(draft: Draft, traits: _Traits) -> list[str]:
    """What must be so of a scheduler that the hub names in its users' pods."""
    pod_config, _ = traits.get("extra_pod_config", _UNSET)
    of_trait, _ = traits.get("scheduler_name", _UNSET)
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


def traits_of(hub: HubSection) -> HubTraits:
    """What the hub sets of its spawner beside the chart's keys."""
    found: _Traits = {}
    for key, trait in (("extraPodConfig", "extra_pod_config"), ("extraLabels", "extra_labels")):
        value = mapping(child(hub.data, "singleuser", key))
        if value:
            found[trait] = SetTrait(value, ("singleuser", key))
    chart = chart_traits(hub.data, is_binder=False)
    classes = mapping(child(hub.data, "hub", "config"))
    # KubeSpawner comes last: what it is told itself takes the place of what all spawners are told.
    for name in sorted(classes, key=lambda name: name == "KubeSpawner"):
        traits = classes[name]
        if str(name).endswith("Spawner") and isinstance(traits, Mapping):
            for trait, value in traits.items():
                if _reaches_pods(name, trait, value, chart):
                    found[trait] = SetTrait(value, ("hub", "config", name, trait))
    for trait in OF_JUPYTERHUB:
        at = ("hub", "config", "JupyterHub", trait)
        own = child(hub.data, *at)
        if own not in (None, ""):
            found[trait] = SetTrait(own, at)
    any_trait = _read_python(hub, found, chart)
    pod_config, pod_config_at = found.get("extra_pod_config", _UNSET)
    if isinstance(pod_config, Mapping):
        # KubeSpawner takes either spelling.
        named = {camel_case(str(key)): value for key, value in pod_config.items()}
        found["extra_pod_config"] = SetTrait(named, pod_config_at)
    spawner, spawner_at = found.get("spawner_class", _UNSET)
    is_named = isinstance(spawner, str) and spawner != UNKNOWN
    if is_named and not str(spawner).lower().startswith("kubespawner"):
        any_trait = AnyTrait(f"the class {spawner}", spawner_at)
    return HubTraits(found, any_trait)


def _reaches_pods(
    class_name: object, trait: str, value: object, chart: Mapping[str, object]
) -> bool:
    """Whether what `hub.config` tells a class of spawners of a trait is in users' pods.

    chart: the traits that the chart's own keys set.
    """
    if value in (None, ""):
        return False
    # What the chart tells KubeSpawner counts more than what `Spawner` is told.
    is_overwritten = class_name == "Spawner" and trait in _CHART_SETS
    if trait not in PLACEHOLDER_TRAITS:
        return bool(value) and not is_overwritten
    # Of these an empty one counts, too: it takes the chart's away.
    if class_name == "KubeSpawner":
        return True
    return class_name == "Spawner" and not is_overwritten and not chart.get(trait)


def _read_python(hub: HubSection, found: _Traits, chart: Mapping[str, object]) -> AnyTrait | None:
    """Add what the hub's Python sets, over what was found before; hooks run last.

    Returns the last statement that may set any trait.
    """
    # All code runs in one module: hooks may use names that earlier pieces made.
    known = set(KNOWN_NAMES)
    has_profiles = bool(child(hub.data, "singleuser", "profileList"))
    codes = python_of(hub)
    hook = spawn_hook([code for _, code in codes])
    any_trait: AnyTrait | None = None
    late: list[tuple[TraitValue, HubPath]] = []
    for at, code in codes:
        listed = has_profiles or "profile_list" in found
        for trait_value in assigned(code, known, hook, has_profiles=listed):
            if trait_value.trait == ANY:
                any_trait = AnyTrait(str(trait_value.value), at)
            elif trait_value.in_hook:
                late.append((trait_value, at))
            else:
                _set_trait(found, trait_value, at, chart)
    for trait_value, at in late:
        _set_trait(found, trait_value, at, chart)
    elsewhere = python_elsewhere(hub)
    if any_trait is None and elsewhere is not None:
        at, words = elsewhere
        any_trait = AnyTrait(words, at)
    return any_trait


def _set_trait(
    found: _Traits, trait_value: TraitValue, at: HubPath, chart: Mapping[str, object]
) -> None:
    trait = trait_value.trait
    value = trait_value.value
    if trait_value.is_part:
        before = found[trait].value if trait in found else chart.get(trait)
        value = _added(before, value)
    if trait == "profile_list":
        mark_defaults(value)
    found[trait] = SetTrait(value, at)


def _added(before: object, more: object) -> object:
    """What a trait is once more was added; UNKNOWN if one of both is, or if they don't go
    together.
    """
    if before in (None, {}, []):
        return more
    if isinstance(before, Mapping) and isinstance(more, Mapping):
        return {**before, **more}
    if isinstance(before, list) and isinstance(more, list):
        return before + more
    return UNKNOWN
