"""No key that says where users go, how large they are or what they run vanishes: it changes Roost's
values, or is named.
"""

import json
from typing import Any

import pytest

from generator.importing.importer import import_layers
from generator.importing.result import ImportResult
from generator.importing.traits import LISTS, NAMES, SIZE_TRAITS
from generator.importing.trial_pods import user_pods

TERM = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
POD_TERM = {"labelSelector": {"matchLabels": {"a": "b"}}, "topologyKey": "kubernetes.io/hostname"}
WEIGHTED = {"weight": 100, "preference": TERM}
WEIGHTED_POD = {"weight": 100, "podAffinityTerm": POD_TERM}
# What decides about a pod's place, size or images, with a value that isn't the chart's.
PLACING: dict[str, Any] = {
    "component_label": "mine",
    "cpu_guarantee": 2,
    "cpu_limit": 3,
    "enable_user_namespaces": True,
    "extra_containers": [{"name": "side", "image": "side:1"}],
    "extra_pod_config": {"nodeName": "a"},
    "extra_resource_guarantees": {"example.com/gpu": "1"},
    "extra_resource_limits": {"example.com/gpu": "1"},
    "group_overrides": {"a": {"groups": ["b"], "spawner_override": {"tolerationz": []}}},
    "image": "other:2",
    "init_containers": [{"name": "first", "image": "first:1"}],
    "mem_guarantee": "3G",
    "mem_limit": "5G",
    "namespace": "elsewhere",
    "node_affinity_preferred": [WEIGHTED],
    "node_affinity_required": [TERM],
    "node_selector": {"pool": "a"},
    "pod_affinity_preferred": [WEIGHTED_POD],
    "pod_affinity_required": [POD_TERM],
    "pod_anti_affinity_preferred": [WEIGHTED_POD],
    "pod_anti_affinity_required": [POD_TERM],
    "priority_class_name": "high",
    "profile_list": [{"display_name": "A", "kubespawner_override": {"image": "other:2"}}],
    "scheduler_name": "mine",
    "tolerations": [{"key": "gpu", "operator": "Exists"}],
}
# Of one user, not of a profile's users.
NOT_IN_PROFILES = {"group_overrides", "profile_list"}
MISSPELT = [
    *("mem_guaranttee", "memGuarantee", "extra_tolerations", "nodeSelector", "toleration"),
    *("node_selectors", "cpuLimit", "images", "nodeAffinityRequired", "anything_else"),
]


def imported(hub: dict[str, Any]) -> ImportResult:
    return import_layers([("hub.yaml", json.dumps(hub))])


def forms(trait: str) -> list[Any]:
    value = PLACING[trait]
    by_name = trait in LISTS and trait != "profile_list"
    return [value, {"b": value[0]}] if by_name else [value]


def vanishes(hub: dict[str, Any], without: dict[str, Any], key: str) -> bool:
    one = imported(hub)
    other = imported(without)
    if key in SIZE_TRAITS and user_pods(one) != user_pods(other):
        # How they fare is told by their pods.
        return False
    return (
        one.values == other.values
        and one.places_users_once == other.places_users_once
        and not any(key in note.key for note in one.unmapped)
    )


@pytest.mark.parametrize("trait", sorted(PLACING))
def test_a_trait_below_hub_config_is_mapped_or_named(trait: str) -> None:
    assert trait in NAMES
    usual = {"singleuser": {"image": {"name": "a/b", "tag": "1"}}}
    for value in forms(trait):
        hub = usual | {"hub": {"config": {"KubeSpawner": {trait: value}}}}
        assert not vanishes(hub, usual, trait), value


@pytest.mark.parametrize("trait", sorted({*PLACING, *MISSPELT} - NOT_IN_PROFILES))
@pytest.mark.parametrize("place", ["profile", "choice", "second"])
def test_a_key_of_a_profile_is_mapped_or_named(trait: str, place: str) -> None:
    for value in forms(trait) if trait in PLACING else ["1"]:
        hubs = []
        for override in ({trait: value}, {}):
            holder: dict[str, Any] = {"display_name": "A", "kubespawner_override": override}
            if place == "choice":
                choices = {"c": {"display_name": "C", "kubespawner_override": override}}
                holder = {"display_name": "A", "profile_options": {"o": {"choices": choices}}}
            profiles = [{"display_name": "First"}, holder] if place == "second" else [holder]
            hubs.append({"singleuser": {"profileList": profiles}})
        assert not vanishes(hubs[0], hubs[1], trait), value


@pytest.mark.parametrize(
    "key", ["kubespawner_overrides", "kubespawnerOverride", "profile_option", "node_selector"]
)
def test_a_misspelt_key_of_a_profile_itself_is_named(key: str) -> None:
    hub = {"singleuser": {"profileList": [{"display_name": "A", key: {"pool": "a"}}]}}
    assert key in str([note.key for note in imported(hub).unmapped])


@pytest.mark.parametrize("key", MISSPELT)
def test_a_misspelt_trait_below_hub_config_is_named(key: str) -> None:
    usual: dict[str, Any] = {"singleuser": {}}
    hub = usual | {"hub": {"config": {"KubeSpawner": {key: "1"}}}}
    assert not vanishes(hub, usual, key)
