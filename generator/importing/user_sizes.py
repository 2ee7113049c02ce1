"""How large a hub's users are, and which nodes they may use, by KubeSpawner's traits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from generator.checks.tolerations_and_terms import lint_required_term, lint_toleration
from generator.importing.quantities import is_less, memory_quantity, quantity, user_size
from generator.importing.traits import SetTrait, entries_of, pod_config_of
from generator.values.lookups import child, mapping
from roost_core.objects.pod import REQUIRED
from roost_core.objects.requests import PLAIN_RESOURCES, read_requests, requested

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
    traits = {
        trait: child(singleuser, "extraResource", part) for part, trait in EXTRA_RESOURCES.items()
    }
    traits |= {trait: child(singleuser, name, key) for trait, (_, name, key) in SIZES.items()}
    return {trait: value for trait, value in traits.items() if value is not None}


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
    for part, trait in (
        ("requests", EXTRA_RESOURCES["guarantees"]),
        ("limits", EXTRA_RESOURCES["limits"]),
    ):
        for name, value in mapping(traits.get(trait)).items():
            # Kubernetes wants the same number of an extended resource in both.
            kinds = ("requests", "limits") if "/" in name else (part,)
            for kind in kinds:
                if (quantity(value) or 0) > 0:
                    sizes[kind][name] = str(value)
    _raise_to_pod(sizes, traits)
    for name, request in sizes["requests"].items():
        limit = sizes["limits"].get(name)
        if limit is not None and is_less(limit, request):
            # Kubernetes refuses a limit below its request, and the request is what takes the room.
            del sizes["limits"][name]
    pod_config = _pod_config(traits)
    selector = mapping(pod_config.get("nodeSelector", traits["node_selector"]))
    terms = traits["node_affinity_required"]
    if isinstance(pod_config.get("affinity"), Mapping):
        terms = child(pod_config, "affinity", "nodeAffinity", REQUIRED, "nodeSelectorTerms")
    return {
        "resources": {part: amounts for part, amounts in sizes.items() if amounts},
        "nodeSelector": {key: value for key, value in selector.items() if isinstance(value, str)},
        "tolerations": [
            toleration
            for toleration in entries_of(pod_config.get("tolerations", traits["tolerations"]))
            if not lint_toleration(toleration)
        ],
        "requiredNodeTerms": [term for term in entries_of(terms) if not lint_required_term(term)],
    }


def _raise_to_pod(sizes: dict[str, dict[str, str]], traits: Traits) -> None:
    """Raise the requests of the user's own container to those of the whole pod.

    Further containers and sidecars add to it. An ordinary init container counts where it asks for
    more, with the sidecars that run before it.
    """
    own = {"resources": {"requests": requested(sizes)}}
    extra = [_requests_of(each) for each in entries_of(traits.get("extra_containers"))]
    inits = [_requests_of(each) for each in entries_of(traits.get("init_containers"))]
    alone = dict(read_requests({"containers": [own]}))
    whole = read_requests({"containers": [own, *extra], "initContainers": inits})
    for name, amount in whole:
        if amount <= alone.get(name, 0):
            continue
        sizes["requests"][name] = _written(name, amount)
        if "/" in name:
            # Kubernetes wants the same number of an extended resource in both.
            sizes["limits"][name] = sizes["requests"][name]


def _requests_of(container: object) -> dict[str, Any]:
    """What a container requests, as far as a pod can, and its restartPolicy if it is a sidecar."""
    resources = child(container, "resources")
    parts = {part: dict(mapping(child(resources, part))) for part in ("requests", "limits")}
    requests = {
        str(name): amount
        for name, amount in requested(parts).items()
        if (quantity(amount) or 0) > 0 and (name in PLAIN_RESOURCES or "/" in str(name))
    }
    # KubeSpawner takes either spelling.
    policies = (child(container, "restartPolicy"), child(container, "restart_policy"))
    kind = {"restartPolicy": "Always"} if "Always" in policies else {}
    return {"resources": {"requests": requests}, **kind}


def _written(name: str, amount: int) -> str:
    """An amount of a resource as a Kubernetes quantity. amount: of CPU thousandths, else bytes or
    pieces.
    """
    if name == "cpu":
        return f"{amount}m" if amount % 1000 else str(amount // 1000)
    return str(amount) if "/" in name else memory_quantity(amount)


def _pod_config(traits: Traits) -> dict[str, Any]:
    """The known entries of extra_pod_config, each of which takes the place of a pod's field."""
    pod_config = SetTrait(traits.get("extra_pod_config"), ())
    return pod_config_of({"extra_pod_config": pod_config})
