"""What zero-to-jupyterhub's own keys tell KubeSpawner, trait by trait.

Source: zero-to-jupyterhub 4.4, jupyterhub_config.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from generator.importing.traits import entries_of
from generator.importing.user_sizes import Traits, size_traits
from generator.values.files import read_defaults
from generator.values.lookups import child, mapping, text
from generator.values.merge import coalesce
from roost_core.placement.labels import NODE_PURPOSE_LABEL

PURPOSE_TERM: Final[Mapping[str, object]] = {
    "matchExpressions": [{"key": NODE_PURPOSE_LABEL, "operator": "In", "values": ["user"]}]
}
# Trait -> the chart's key below `singleuser`.
_AFFINITIES: Final[Mapping[str, tuple[str, str]]] = {
    "pod_affinity_required": ("extraPodAffinity", "required"),
    "pod_anti_affinity_required": ("extraPodAntiAffinity", "required"),
}


def chart_traits(hub: Mapping[str, object], *, is_binder: bool) -> Traits:
    """What the chart sets by its values. hub: those of the hub alone."""
    tolerations = child(read_defaults().values, "placeholder", "defaults", "tolerations")
    user_pods = {"tolerations": tolerations, "nodeAffinity": {"matchNodePurpose": "prefer"}}
    memory = {"guarantee": None if is_binder else "1G"}
    data = coalesce(hub, {"scheduling": {"userPods": user_pods}, "singleuser": {"memory": memory}})
    single = mapping(data.get("singleuser"))
    user_pods = mapping(child(data, "scheduling", "userPods"))
    purpose = child(user_pods, "nodeAffinity", "matchNodePurpose")
    priorities = child(data, "scheduling", "podPriority")
    has_priority = child(priorities, "enabled") is True
    priority = child(priorities, "defaultPriority") if has_priority else None
    extra = mapping(single.get("extraNodeAffinity"))
    network_tools = image_reference(child(single, "networkTools", "image"))
    guards = []
    if network_tools and child(single, "cloudMetadata", "blockWithIptables") is not False:
        guards.append({"name": "block-cloud-metadata", "image": network_tools})
    required = [PURPOSE_TERM] if purpose == "require" else []
    preferred = [{"weight": 100, "preference": PURPOSE_TERM}] if purpose == "prefer" else []
    return {
        "image": image_reference(child(hub, "singleuser", "image")),
        "node_selector": single.get("nodeSelector"),
        "tolerations": entries_of(user_pods.get("tolerations"))
        + entries_of(single.get("extraTolerations")),
        "node_affinity_required": required + entries_of(extra.get("required")),
        "node_affinity_preferred": preferred + entries_of(extra.get("preferred")),
        "init_containers": guards + entries_of(single.get("initContainers")),
        "extra_containers": entries_of(single.get("extraContainers")),
        "extra_labels": single.get("extraLabels"),
        "priority": priority,
        "profile_list": single.get("profileList"),
        **{trait: entries_of(child(single, *keys)) for trait, keys in _AFFINITIES.items()},
        **size_traits(single),
    }


def image_reference(image: object) -> str:
    """An image's name and tag; "" where the tag isn't known."""
    name = child(image, "name")
    tag = child(image, "tag")
    if name and tag:
        return f"{name}:{tag}"
    # `tag: null` takes the chart's tag away. Without the key, the chart's own tag counts, which
    # isn't known here.
    return text(name) if "tag" in mapping(image) else ""
