"""Placeholder sets for the node pools that a hub's profiles choose, as large as who goes there.

The default set stands for users of the default profile. Who chooses a profile with another node
selector, other tolerations or terms waits for a node of that pool, whatever room the default set
keeps.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Final

from generator.checks.contract import at, listing, mapping, text
from generator.checks.terms import by_key, lint_required_term, lint_toleration
from generator.importing.quantities import cpu_quantity, quantity, spawner_memory
from generator.importing.result import free_name
from generator.importing.source import child
from generator.importing.traits import (
    LISTS,
    OLD_NAMES,
    camel_case,
    entries,
    entries_of,
    overridden,
    pod_config_of,
)
from generator.render.go_json import to_json
from roost_core.objects.pod import REQUIRED
from roost_core.objects.requests import requested

# What KubeSpawner is told of a pod, by its names.
Traits = Mapping[str, Any]
# What its user chose, for people: a profile and choices.
Kind = tuple[tuple[str, ...], Traits]
# A placeholder set as far as it stands for a user: `resources`, and every key of NODES.
Room = dict[str, Any]

# A choice whose image nobody can name beforehand: it is typed, or built.
UNLISTED: Final = "an image of their own"
UNKNOWN_IMAGE: Final = "an-image-of-their-own:1"
# Options multiply: of one hub, unless it has more choices than that.
MOST_KINDS: Final = 400
# Room for a suffix that tells sets of one name apart.
_MAX_NAME: Final = 40
# A seat that is larger is most of a node.
_A_MACHINE_BYTES: Final = 64 * 2**30
# A usual node for users, should nobody say which: 64 GiB and 16 CPUs.
_A_NODE_CPUS: Final = 16
# What a wrong forecast may fill.
_NODES_AT_MOST: Final = 3
_MOST: Final = 200
# Fewer seats than that on a node: each is a large part of it.
_A_LARGE_PART: Final = 8
# An imported set keeps what the hub kept, until the hub's own weeks show that less is enough.
LEARN: Final[Room] = {"min": 0, "max": 200, "timeZone": "UTC"}
# Why a set has no replicas of its own: each is a node with a device, or most of one.
RARE: Final = "0 replicas: each would cost a node with {}; their number is learned."
# What one hour of a node with a GPU costs on the large clouds: 0.5 to 4, for courses mostly 1 to
# 3.
GPU_PRICES: Final[Room] = {"waitingHour": 4, "nodeHour": 3, "monthlyCeiling": 200}
COSTLY: Final = (
    "0 replicas: each would cost a node with {}. Before a course that comes each week their number"
    " is learned, with 3 as the price of a node-hour: set prices.nodeHour to yours."
)
# Where a pool says what it is for only by its labels or taints.
_GPU_WORDS: Final = ("gpu", "accelerator")
# KubeSpawner takes nothing else for these.
_SHAPES: Final[Mapping[str, type | tuple[type, ...]]] = {
    "node_selector": dict,
    "tolerations": (list, dict),
    "node_affinity_required": (list, dict),
}
# By trait: its part of a pod's resources, which of these, and its key below `singleuser.cpu` or
# `.memory`.
SIZES: Final = {
    "cpu_guarantee": ("requests", "cpu", "guarantee"),
    "cpu_limit": ("limits", "cpu", "limit"),
    "mem_guarantee": ("requests", "memory", "guarantee"),
    "mem_limit": ("limits", "memory", "limit"),
}
# By the chart's key below `singleuser.extraResource`.
EXTRA_RESOURCES: Final = {
    "guarantees": "extra_resource_guarantees",
    "limits": "extra_resource_limits",
}
# The keys of a placeholder set that say which nodes it is for.
NODE_KEYS: Final = ("nodeSelector", "tolerations", "requiredNodeTerms")


def pool_sets(
    profiles: object, now: Mapping[str, object], taken: Collection[str], zone: str
) -> list[tuple[Room, str]]:
    """One set for each pool that a profile or a choice leads to and the hub's other users don't
    use, in their order.

    profiles: `singleuser.profileList` as the hub has it. now: Roost's values for this hub, whole.
    taken: names of sets. zone: the users' time zone. Each comes with the reason why it is as it is.
    """
    defaults = mapping(at(now, "placeholder", "defaults"))
    nodes = zip(_SHAPES, (defaults.get(key) for key in NODE_KEYS), strict=True)
    usual = {**size_traits(now.get("singleuser")), **dict(nodes)}
    usual_room = room_of(usual)
    by_pool: dict[str, list[tuple[tuple[str, ...], Room]]] = {}
    slugs: dict[str, str] = {}
    listed = list(named_profiles(profiles))
    for name, profile in listed:
        for chosen, traits in kinds_of(
            usual, profile, name, _pool_and_sizes, MOST_KINDS // len(listed)
        ):
            pool = _pool_and_sizes(traits)[0]
            by_pool.setdefault(pool, []).append((chosen, room_of(traits)))
            slugs.setdefault(pool, "-".join([text(child(profile, "slug")) or name, *chosen[1:]]))
    by_pool.pop(_pool_and_sizes(default_kind(usual, profiles)[1])[0], None)
    names = set(taken)
    found = []
    for pool, users in by_pool.items():
        name = free_name(slugs[pool], names, "pool", _MAX_NAME)
        names.add(name)
        chosen, room = users[0]
        device = device_of(room, usual_room)
        why = f"{name}: as large as a user of {', '.join(chosen)}"
        if len({to_json(other["resources"]) for _, other in users}) > 1:
            why += f", the first of {len(users)} kinds of users there"
        why += f". {why_none(device)}".rstrip(" ")
        learned = learning(
            device, most_of(room, device, at(now, "events", "activeServerLimit")), zone
        )
        sized = learned | ({"resources": room["resources"]} if room["resources"] else {})
        entry = {
            "name": name,
            "replicas": 0 if device else 1,
            **sized,
            **nodes_unlike(room, usual_room),
        }
        found.append((entry, why))
    return found


def learning(device: str, most: int = LEARN["max"], zone: str = LEARN["timeZone"]) -> Room:
    """How a set learns its number, as keys of it. device: of `device_of`; most: of `most_of`."""
    prices = {"prices": dict(GPU_PRICES)} if is_gpu(device) else {}
    return {"learn": {**LEARN, "max": most, "timeZone": zone}, **prices}


def most_of(room: Room, device: str, limit: object, replicas: object = 0) -> int:
    """The most placeholders that a set may learn: as many users as the hub lets in at once, or as
    fill three usual nodes. Of seats that are a large part of a node, never more than these.

    device: of `device_of`. limit: the hub's activeServerLimit, 0 for none. replicas: those that the
    hub keeps.
    """
    requests = requested(mapping(room.get("resources")))
    seats = [_A_NODE_CPUS * 1000]
    for name, size in (("cpu", _A_NODE_CPUS), ("memory", _A_MACHINE_BYTES)):
        if (amount := quantity(requests.get(name)) or 0) > 0:
            seats.append(int(size / amount))
    if device:
        seats.append(1)
    on_a_node = max(1, min(seats))
    most = min(_MOST, _NODES_AT_MOST * on_a_node)
    if isinstance(limit, int) and limit > 0:
        most = limit if on_a_node >= _A_LARGE_PART else min(limit, most)
    return max(most, replicas if isinstance(replicas, int) else 0)


def why_none(device: str) -> str:
    """Why a set has no replicas of its own; "": it has some. device: of `device_of`."""
    if is_gpu(device):
        return COSTLY.format(device)
    return RARE.format(device) if device else ""


def is_gpu(device: str) -> bool:
    """Whether what `device_of` found is a GPU: of other devices a node may have many."""
    return any(word in device.lower() for word in _GPU_WORDS)


def default_kind(usual: Traits, profiles: object) -> Kind:
    """The user who takes the default profile with its default choices. It is the profile that says
    so, else the first.

    usual: what the hub says of all users. profiles: `singleuser.profileList` as the hub has it.
    """
    listed = list(named_profiles(profiles))
    chosen = [
        named_profile for named_profile in listed if child(named_profile[1], "default")
    ] or listed
    return (
        kinds_of(usual, chosen[0][1], chosen[0][0], _pool_and_sizes, 1)[0]
        if chosen
        else ((), usual)
    )


def mark_defaults(profiles: object) -> None:
    """Say of each option's first choice that it is the default one, if none does: values don't keep
    their order.
    """
    for profile in listing(profiles) or by_key(profiles):
        for option in by_key(child(profile, "profile_options")):
            choices = [
                choice
                for choice in mapping(child(option, "choices")).values()
                if isinstance(choice, dict)
            ]
            if choices and not any(choice.get("default") for choice in choices):
                choices[0]["default"] = True


def named_profiles(profiles: object) -> Iterator[tuple[str, object]]:
    """Each profile with its name for people; what isn't a mapping is none."""
    for place, profile in enumerate(listing(profiles) or by_key(profiles), start=1):
        if isinstance(profile, dict):
            yield (
                text(child(profile, "display_name"))
                or text(child(profile, "slug"))
                or f"profile {place}",
                profile,
            )


def kinds_of(
    usual: Traits, profile: object, name: str, told: Callable[[Traits], tuple[str, str]], most: int
) -> list[Kind]:
    """The kinds of users who take a profile, those with the usual choices first.

    told: of traits, what makes a choice worth naming, and what else tells kinds apart. most:
    options multiply; beyond it a choice is taken with the first of the others only.
    """
    kinds: list[Kind] = [((name,), overridden_by(usual, profile))]
    for option in by_key(child(profile, "profile_options")):
        choices = sorted(
            mapping(child(option, "choices")).items(),
            key=lambda item: (not child(item[1], "default"), str(item[0])),
        )
        if any(
            child(option, key, "enabled") is True
            for key in ("unlisted_choice", "dynamic_image_building")
        ):
            choices.append((UNLISTED, child(option, "unlisted_choice")))
        found: dict[object, Kind] = {}
        for key, choice in choices:
            for chosen, before in kinds[: max(1, most // len(choices))]:
                traits = overridden_by(before, choice)
                named = (*chosen, str(key))
                as_told = told(traits)
                found.setdefault(
                    as_told, (chosen if as_told[0] == told(before)[0] else named, traits)
                )
        kinds = list(found.values()) or kinds
    return kinds


def overridden_by(traits: Traits, holder: object) -> Traits:
    """KubeSpawner merges dictionaries, and replaces all else."""
    changed = dict(traits)
    for written, value in mapping(child(holder, "kubespawner_override")).items():
        name = OLD_NAMES.get(str(written), str(written))
        if not isinstance(value, _SHAPES.get(name, object)):
            continue
        if name in LISTS and name in _SHAPES and entries(value) is None:
            continue
        if name == "extra_pod_config" and isinstance(value, dict):
            # KubeSpawner takes either spelling.
            item = {camel_case(str(key)): field for key, field in value.items()}
            changed[name] = overridden(changed.get(name) or {}, item)
            continue
        before = changed.get(name)
        if before is None and name not in LISTS:
            before = {}
        typed = isinstance(value, str) and "{value}" in value
        changed[name] = UNKNOWN_IMAGE if typed else overridden(before, value)
    return changed


def size_traits(singleuser: object) -> dict[str, object]:
    """The traits of a user's size, as `singleuser` of zero-to-jupyterhub says it."""
    found = {
        f"extra_resource_{part}": at(singleuser, "extraResource", part)
        for part in ("limits", "guarantees")
    }
    found |= {trait: at(singleuser, name, key) for trait, (_, name, key) in SIZES.items()}
    return {trait: value for trait, value in found.items() if value is not None}


def own_sizes(traits: Traits) -> dict[str, dict[str, str]]:
    """Requests and limits of CPU and memory, in Kubernetes quantities."""
    sizes: dict[str, dict[str, str]] = {"requests": {}, "limits": {}}
    for trait in (trait for trait in traits if trait in SIZES):
        part, name, _ = SIZES[trait]
        amount = cpu_quantity(traits[trait]) if name == "cpu" else spawner_memory(traits[trait])
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
    for name, request in sizes["requests"].items():
        limit = sizes["limits"].get(name)
        if limit is not None and (quantity(limit) or 0) < (quantity(request) or 0):
            del sizes["limits"][name]
    instead = _pod_config(traits)
    selector = mapping(instead.get("nodeSelector", traits["node_selector"]))
    terms = traits["node_affinity_required"]
    if isinstance(instead.get("affinity"), Mapping):
        terms = at(instead, "affinity", "nodeAffinity", REQUIRED, "nodeSelectorTerms")
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


def _pod_config(traits: Traits) -> dict[str, Any]:
    """The known entries of extra_pod_config, each of which takes the place of a pod's field."""
    return pod_config_of({"extra_pod_config": (traits.get("extra_pod_config"), ())})


def _pool_and_sizes(traits: Traits) -> tuple[str, str]:
    """What tells the nodes of one user from another's, and the size."""
    room = room_of(traits)
    return to_json([room[key] for key in NODE_KEYS]), to_json(room["resources"])


def nodes_unlike(room: Room, usual: Room) -> Room:
    """Keys of a placeholder set; one that it names counts in place of placeholder.defaults."""
    return {key: room[key] for key in NODE_KEYS if room[key] != usual[key]}


def device_of(entry: object, usual: Mapping[str, object]) -> str:
    """What makes a placeholder of this set a node of its own: a device that it holds, or its size;
    empty: nothing.
    """
    requests = requested(mapping(at(entry, "resources")))
    extended = sorted(name for name in requests if "/" in name)
    own = [
        part
        for key in NODE_KEYS
        for part in _parts(at(entry, key))
        if part not in _parts(usual.get(key))
    ]
    if (quantity(requests.get("memory", 0)) or 0) > _A_MACHINE_BYTES:
        extended.append("more than 64 GiB of memory")
    return " and ".join(extended) or ("a GPU" if is_gpu(" ".join(own)) else "")


def _parts(nodes: object) -> list[str]:
    return [to_json({key: item}) for key, item in mapping(nodes).items()] + [
        to_json(term) for term in listing(nodes)
    ]
