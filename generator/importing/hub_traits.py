"""Find what the hub sets of its spawner beside the chart's keys.

Read are traits below `hub.config`, `singleuser.extraPodConfig` and `extraLabels`, and what the
hub's Python writes out: `c.KubeSpawner.namespace = "lab"`, `setattr`, lambdas, spawners and pods in
hooks. Later ones win. What stands under a condition, or isn't written out, is UNKNOWN. Source:
KubeSpawner 7, traits; zero-to-jupyterhub 4.4, jupyterhub_config.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from generator.importing.chart_traits import chart_traits
from generator.importing.hub_code import KNOWN_NAMES, OF_JUPYTERHUB, TraitValue, assigned
from generator.importing.hub_python import python_elsewhere, python_of
from generator.importing.profile_pools import mark_defaults
from generator.importing.python_settings import ANY
from generator.importing.source import UNKNOWN, HubPath, HubSection
from generator.importing.spawn_hook import spawn_hook
from generator.importing.traits import (
    PLACEHOLDER_TRAITS,
    POD_AFFINITIES,
    UNSET,
    SetTrait,
    SetTraits,
    camel_case,
)
from generator.values.lookups import child, mapping

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


class AnyTrait(NamedTuple):
    """What may set any trait of the spawner."""

    # A statement of the hub's Python, or a class, for people.
    words: str
    # The key that holds it, below the hub's values.
    at: HubPath


class HubTraits(NamedTuple):
    """What the hub sets of its spawner beside the chart's keys."""

    traits: SetTraits
    # The last statement that may set any of them; None: there is none.
    any_trait: AnyTrait | None


def traits_of(hub: HubSection) -> HubTraits:
    """What the hub sets of its spawner beside the chart's keys."""
    set_traits: dict[str, SetTrait] = {}
    for key, trait in (("extraPodConfig", "extra_pod_config"), ("extraLabels", "extra_labels")):
        value = mapping(child(hub.data, "singleuser", key))
        if value:
            set_traits[trait] = SetTrait(value, ("singleuser", key))
    chart = chart_traits(hub.data, is_binder=False)
    classes = mapping(child(hub.data, "hub", "config"))
    # KubeSpawner comes last: what it is told itself takes the place of what all spawners are told.
    for name in sorted(classes, key=lambda name: name == "KubeSpawner"):
        traits = classes[name]
        if str(name).endswith("Spawner") and isinstance(traits, Mapping):
            for trait, value in traits.items():
                if _reaches_pods(name, trait, value, chart):
                    set_traits[trait] = SetTrait(value, ("hub", "config", name, trait))
    for trait in OF_JUPYTERHUB:
        at = ("hub", "config", "JupyterHub", trait)
        own = child(hub.data, *at)
        if own not in (None, ""):
            set_traits[trait] = SetTrait(own, at)
    any_trait = _read_python(hub, set_traits, chart)
    pod_config, pod_config_at = set_traits.get("extra_pod_config", UNSET)
    if isinstance(pod_config, Mapping):
        # KubeSpawner takes either spelling.
        named = {camel_case(str(key)): value for key, value in pod_config.items()}
        set_traits["extra_pod_config"] = SetTrait(named, pod_config_at)
    spawner, spawner_at = set_traits.get("spawner_class", UNSET)
    is_named = isinstance(spawner, str) and spawner != UNKNOWN
    if is_named and not str(spawner).lower().startswith("kubespawner"):
        any_trait = AnyTrait(f"the class {spawner}", spawner_at)
    return HubTraits(set_traits, any_trait)


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
    if trait in PLACEHOLDER_TRAITS:
        # Of these an empty one counts, too: it takes the chart's away.
        if class_name == "KubeSpawner":
            return True
        return class_name == "Spawner" and not is_overwritten and not chart.get(trait)
    return bool(value) and not is_overwritten


def _read_python(
    hub: HubSection, set_traits: dict[str, SetTrait], chart: Mapping[str, object]
) -> AnyTrait | None:
    """Add what the hub's Python sets, over what was set before; hooks run last.

    Returns the last statement that may set any trait.
    """
    # All code runs in one module: hooks may use names that earlier pieces made.
    known = set(KNOWN_NAMES)
    in_chart = bool(child(hub.data, "singleuser", "profileList"))
    codes = python_of(hub)
    hook = spawn_hook([code for _, code in codes])
    any_trait: AnyTrait | None = None
    late: list[tuple[TraitValue, HubPath]] = []
    for at, code in codes:
        has_profile_list = in_chart or "profile_list" in set_traits
        for trait_value in assigned(code, known, hook, has_profiles=has_profile_list):
            if trait_value.trait == ANY:
                any_trait = AnyTrait(str(trait_value.value), at)
            elif trait_value.in_hook:
                late.append((trait_value, at))
            else:
                _set_trait(set_traits, trait_value, at, chart)
    for trait_value, at in late:
        _set_trait(set_traits, trait_value, at, chart)
    elsewhere = python_elsewhere(hub)
    if any_trait is None and elsewhere is not None:
        at, words = elsewhere
        any_trait = AnyTrait(words, at)
    return any_trait


def _set_trait(
    set_traits: dict[str, SetTrait],
    trait_value: TraitValue,
    at: HubPath,
    chart: Mapping[str, object],
) -> None:
    trait = trait_value.trait
    value = trait_value.value
    if trait_value.is_part:
        before = set_traits[trait].value if trait in set_traits else chart.get(trait)
        value = _added(before, value)
    if trait == "profile_list":
        mark_defaults(value)
    set_traits[trait] = SetTrait(value, at)


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
