"""How large a hub's users are, and which nodes they may use, by KubeSpawner's traits."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Final

from generator.checks.tolerations_and_terms import lint_required_term, lint_toleration
from generator.importing.quantities import cpu_quantity, memory_quantity, quantity, user_size
from generator.importing.traits import SetTrait, entries_of, pod_config_of
from generator.values.lookups import child, mapping
from roost_core.objects.pod import REQUIRED
from roost_core.objects.requests import PLAIN_RESOURCES, requested

# What KubeSpawner is told of a pod, by its names.
Traits = Mapping[str, Any]
# A placeholder set as far as it stands for a user: `resources`, and every key of NODE_KEYS.
Room = dict[str, Any]

# Trait -> its part of a pod's resources, which resource, and its key below `singleuser.cpu` or
# `.memory`.
SIZES: Final = {
    "cpu_guarantee": ("requests", "cpu", "guarantee"),
    "cpu_limit": ("limits", "cpu", "limit"),
    "mem_guarantee": ("requests", "memory", "guarantee"),
    "mem_limit": ("limits", "memory", "limit"),
}
# The chart's key below `singleuser.extraResource` -> the trait.
EXTRA_RESOURCES: Final = {
    "guarantees": "extra_resource_guarantees",
    "limits": "extra_resource_limits",
}
# The keys of a placeholder set that say which nodes it is for.
NODE_KEYS: Final = ("nodeSelector", "tolerations", "requiredNodeTerms")


def size_traits(singleuser: object) -> dict[str, object]:
    """The traits of a user's size, as `singleuser` of zero-to-jupyterhub says it."""
    found = {
        f"extra_resource_{part}": child(singleuser, "extraResource", part)
        for part in ("limits", "guarantees")
    }
    found |= {trait: child(singleuser, name, key) for trait, (_, name, key) in SIZES.items()}
    return {trait: value for trait, value in found.items() if value is not None}


def own_sizes(traits: Traits) -> dict[str, dict[str, str]]:
    """Requests and limits of CPU and memory, in Kubernetes quantities."""
    sizes: dict[str, dict[str, str]] = {"requests": {}, "limits": {}}
    for trait, value in traits.items():
        if trait not in SIZES:
            continue
        part, name, _ = SIZES[trait]
        amount = user_size(name, value)
        if amount is not None:
            sizes[part][name] = amount
    return sizes


def room_of(traits: Traits) -> Room:
    """What a placeholder needs to stand for a user: the user's size, and where the user may go."""
    sizes = own_sizes(traits)
    for part, key in (
        ("requests", "extra_resource_guarantees"),
        ("limits", "extra_resource_limits"),
    ):
        for name, value in mapping(traits.get(key)).items():
            # Kubernetes wants the same number of an extended resource in both.
            kinds = ("requests", "limits") if "/" in name else (part,)
            for kind in kinds:
                if (quantity(value) or 0) > 0:
                    sizes[kind][name] = str(value)
    for container in entries_of(traits.get("extra_containers")):
        _add_container(sizes, child(container, "resources"))
    for name, request in sizes["requests"].items():
        limit = sizes["limits"].get(name)
        if limit is not None and (quantity(limit) or 0) < (quantity(request) or 0):
            del sizes["limits"][name]
    instead = _pod_config(traits)
    selector = mapping(instead.get("nodeSelector", traits["node_selector"]))
    terms = traits["node_affinity_required"]
    if isinstance(instead.get("affinity"), Mapping):
        terms = child(instead, "affinity", "nodeAffinity", REQUIRED, "nodeSelectorTerms")
    return {
        "resources": {part: amounts for part, amounts in sizes.items() if amounts},
        "nodeSelector": {key: value for key, value in selector.items() if isinstance(value, str)},
        "tolerations": [
            toleration
            for toleration in entries_of(instead.get("tolerations", traits["tolerations"]))
            if not lint_toleration(toleration)
        ],
        "requiredNodeTerms": [term for term in entries_of(terms) if not lint_required_term(term)],
    }


def _add_container(sizes: dict[str, dict[str, str]], resources: object) -> None:
    """Add what a further container of the user's pod requests to what the pod does."""
    parts = {part: dict(mapping(child(resources, part))) for part in ("requests", "limits")}
    for name, amount in requested(parts).items():
        more = quantity(amount) or Fraction(0)
        is_resource = name in PLAIN_RESOURCES or "/" in str(name)
        if more <= 0 or not is_resource:
            continue
        total = more + (quantity(sizes["requests"].get(name)) or 0)
        sizes["requests"][name] = _written(name, total)
        if "/" in name:
            # Kubernetes wants the same number of an extended resource in both.
            sizes["limits"][name] = sizes["requests"][name]


def _written(name: str, amount: Fraction) -> str:
    """An amount of a resource as a Kubernetes quantity, rounded up."""
    if name == "cpu":
        return cpu_quantity(amount) or str(math.ceil(amount))
    return str(math.ceil(amount)) if "/" in name else memory_quantity(math.ceil(amount))


def _pod_config(traits: Traits) -> dict[str, Any]:
    """The known entries of extra_pod_config, each of which takes the place of a pod's field."""
    pod_config = SetTrait(traits.get("extra_pod_config"), ())
    return pod_config_of({"extra_pod_config": pod_config})
