"""Placeholder sets for the node pools that a hub's profiles choose, as large as who goes there.

The default set stands for users of the default profile. Who chooses a profile with another node
selector, other tolerations or terms waits for a node of that pool, whatever room the default set
keeps.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Final, NamedTuple

from generator.checks.placeholders import is_gpu
from generator.importing.quantities import quantity
from generator.importing.result import free_name
from generator.importing.summary import MOST_PLACEHOLDERS
from generator.importing.traits import LISTS, OLD_NAMES, camel_case, entries, overridden
from generator.importing.user_sizes import NODE_KEYS, Room, Traits, room_of, size_traits
from generator.render.go_json import to_json
from generator.values.lookups import child, listing, mapping, text
from generator.values.profile_overrides import by_key
from roost_core.objects.requests import requested

# A kind of user: its title for people, which is a profile and choices; and its pod's traits.
Kind = tuple[tuple[str, ...], Traits]

# Keys of a placeholder set.
SetKeys = dict[str, Any]

# A choice whose image nobody can name beforehand: it is typed, or built.
UNLISTED: Final = "an image of their own"
UNKNOWN_IMAGE: Final = "an-image-of-their-own:1"
# The kinds of users that are looked at of one hub: options multiply. Each choice is in one of them,
# even if there are more choices than that.
MOST_KINDS: Final = 400
# Room for a suffix that tells sets of one name apart.
_MAX_NAME: Final = 40
# What a usual node for users has. Nobody says which nodes a hub has. A placeholder that asks for
# more memory than that counts as most of a node.
_NODE_BYTES: Final = 64 * 2**30
_NODE_CPUS: Final = 16
# If fewer placeholders than that fit on a node, each is a large part of it.
_FEW: Final = 8
# A wrong forecast may fill at most so many usual nodes, if few placeholders fit on each.
_MOST_NODES: Final = 3
# An imported set keeps what the hub kept, until the hub's own weeks show that less is enough.
LEARN: Final[SetKeys] = {"min": 0, "max": MOST_PLACEHOLDERS, "timeZone": "UTC"}
# Why a set has no replicas of its own: each is a node with a device, or most of one.
RARE: Final = "0 replicas: each would cost a node with {}; their number is learned."
# Values of a label by which nodes have no such thing, in lower case.
_FALSE: Final = ("false", "no", "none", "0")
# An hour of a node with a GPU costs 0.5 to 4 on the large clouds, for courses mostly 1 to 3.
GPU_PRICES: Final[SetKeys] = {"waitingHour": 4, "nodeHour": 3}
COSTLY: Final = (
    "0 replicas: each would cost a node with {}. Before a course that comes each week their number"
    " is learned, with 3 as the price of a node-hour: set prices.nodeHour to yours, and max to the"
    " people of your largest course."
)
# Keys of a placeholder set -> KubeSpawner's traits that say the same of a user's pod.
_TRAIT_OF: Final[Mapping[str, str]] = {
    "nodeSelector": "node_selector",
    "tolerations": "tolerations",
    "requiredNodeTerms": "node_affinity_required",
}
# Traits of nodes -> the types that KubeSpawner takes for them.
_SHAPES: Final[Mapping[str, type | tuple[type, ...]]] = {
    "node_selector": dict,
    "tolerations": (list, dict),
    "node_affinity_required": (list, dict),
}


class KindKey(NamedTuple):
    """Users with the same key are of one kind."""

    # A choice that changes this is named in the kind's title.
    naming: str
    # What else tells kinds apart.
    other: str = ""


def pool_sets(
    profiles: object,
    now: Mapping[str, object],
    taken: Collection[str],
    zone: str,
    containers: Traits,
) -> list[tuple[SetKeys, str]]:
    """One placeholder set for each pool to which a profile or a choice leads, in their order, and
    why it is as it is. The pool of the default profile has its set already.

    profiles: `singleuser.profileList` as the hub has it. now: Roost's values for this hub, whole.
    taken: names of sets. zone: the users' time zone. containers: those in the pods of all users,
    beside their own, as traits.
    """
    defaults = mapping(child(now, "placeholder", "defaults"))
    nodes = {trait: defaults.get(key) for key, trait in _TRAIT_OF.items()}
    usual = {**size_traits(now.get("singleuser")), **nodes, **containers}
    usual_room = room_of(usual)
    # Of each pool: the titles of its kinds of users, and their room.
    by_pool: dict[str, list[tuple[tuple[str, ...], Room]]] = {}
    slugs: dict[str, str] = {}
    listed = list(named_profiles(profiles))
    most_kinds = MOST_KINDS // max(1, len(listed))
    for profile_name, profile in listed:
        for title, traits in kinds_of(usual, profile, profile_name, _pool_and_size, most_kinds):
            room = room_of(traits)
            pool = _pool_of(room)
            by_pool.setdefault(pool, []).append((title, room))
            _, *choices = title
            slug = text(child(profile, "slug")) or profile_name
            slugs.setdefault(pool, "-".join([slug, *choices]))
    _, default_traits = default_kind(usual, profiles)
    by_pool.pop(_pool_of(room_of(default_traits)), None)
    names = set(taken)
    sets = []
    for pool, users in by_pool.items():
        name = free_name(slugs[pool], names, "pool", _MAX_NAME)
        names.add(name)
        first_title, room = users[0]
        device = device_of(room, usual_room)
        why = f"{name}: as large as a user of {', '.join(first_title)}"
        if len({to_json(other["resources"]) for _, other in users}) > 1:
            why += f", the first of {len(users)} kinds of users there"
        why += "."
        if device:
            why += f" {why_none(device)}"
        most = most_of(room, device, child(now, "events", "activeServerLimit"))
        entry: SetKeys = {"name": name, "replicas": 0 if device else 1}
        entry |= learning(device, most, zone)
        if room["resources"]:
            entry["resources"] = room["resources"]
        entry |= nodes_unlike(room, usual_room)
        sets.append((entry, why))
    return sets


def learning(device: str, most: int = LEARN["max"], zone: str = LEARN["timeZone"]) -> SetKeys:
    """How a set learns its number, as keys of it. device: of `device_of`; most: of `most_of`."""
    prices = {"prices": dict(GPU_PRICES)} if is_gpu(device) else {}
    return {"learn": {**LEARN, "max": most, "timeZone": zone}, **prices}


def most_of(room: Room, device: str, limit: object, replicas: object = 0) -> int:
    """The most placeholders that a set may learn: the hub's limit of servers, else
    MOST_PLACEHOLDERS. If few fit on a node: what fills three usual nodes, or the limit if that is
    less.

    device: of `device_of`. limit: the hub's activeServerLimit, 0 for none. replicas: those that the
    hub keeps, which are never cut.
    """
    requests = requested(mapping(room.get("resources")))
    # How many fit on a node by each resource. Without requests: as with a thousandth of a CPU.
    fitting = [_NODE_CPUS * 1000]
    for name, size in (("cpu", _NODE_CPUS), ("memory", _NODE_BYTES)):
        amount = quantity(requests.get(name)) or 0
        if amount > 0:
            fitting.append(int(size / amount))
    if device:
        fitting.append(1)
    on_a_node = max(1, min(fitting))
    most = limit if isinstance(limit, int) and limit > 0 else MOST_PLACEHOLDERS
    if on_a_node < _FEW:
        most = min(most, _MOST_NODES * on_a_node)
    return max(most, replicas if isinstance(replicas, int) else 0)


def why_none(device: str) -> str:
    """Why a set has no replicas of its own; "": it has some. device: of `device_of`."""
    if is_gpu(device):
        return COSTLY.format(device)
    return RARE.format(device) if device else ""


def default_kind(usual: Traits, profiles: object) -> Kind:
    """The user who takes the default profile with its default choices. It is the profile that says
    so, else the first.

    usual: what the hub says of all users. profiles: `singleuser.profileList` as the hub has it.
    """
    listed = list(named_profiles(profiles))
    if not listed:
        return (), usual
    marked = [named for named in listed if child(named[1], "default")]
    name, profile = [*marked, *listed][0]
    return kinds_of(usual, profile, name, _pool_and_size, 1)[0]


def mark_defaults(profiles: object) -> None:
    """Say of each option's first choice that it is the default one, if none does: values don't keep
    their order.
    """
    for profile in listing(profiles) or by_key(profiles):
        for option in by_key(child(profile, "profile_options")):
            listed = mapping(child(option, "choices")).values()
            choices = [choice for choice in listed if isinstance(choice, dict)]
            if choices and not any(choice.get("default") for choice in choices):
                choices[0]["default"] = True


def named_profiles(profiles: object) -> Iterator[tuple[str, object]]:
    """Each profile with its name for people; what isn't a mapping is none."""
    for place, profile in enumerate(listing(profiles) or by_key(profiles), start=1):
        if isinstance(profile, dict):
            name = text(child(profile, "display_name")) or text(child(profile, "slug"))
            yield name or f"profile {place}", profile


def kinds_of(
    usual: Traits, profile: object, name: str, key_of: Callable[[Traits], KindKey], most: int
) -> list[Kind]:
    """The kinds of users who take a profile, those with the usual choices first.

    key_of: by which kinds are told apart. most: of kinds; beyond it each choice is still taken, but
    with the usual choices of the other options only.
    """
    kinds: list[Kind] = [((name,), overridden_by(usual, profile))]
    for option in by_key(child(profile, "profile_options")):
        choices = sorted(
            mapping(child(option, "choices")).items(),
            key=lambda item: (not child(item[1], "default"), str(item[0])),
        )
        may_type = child(option, "unlisted_choice", "enabled") is True
        may_build = child(option, "dynamic_image_building", "enabled") is True
        if may_type or may_build:
            choices.append((UNLISTED, child(option, "unlisted_choice")))
        kind_of_key: dict[KindKey, Kind] = {}
        for choice_name, choice in choices:
            # Each choice is combined with so many earlier kinds that at most `most` come of it, and
            # always with the first, which has the usual choices.
            for title, before in kinds[: max(1, most // len(choices))]:
                traits = overridden_by(before, choice)
                key = key_of(traits)
                is_named = key.naming != key_of(before).naming
                new_title = (*title, str(choice_name)) if is_named else title
                kind_of_key.setdefault(key, (new_title, traits))
        kinds = list(kind_of_key.values()) or kinds
    return kinds


def overridden_by(traits: Traits, holder: object) -> Traits:
    """The traits after the `kubespawner_override` of a profile or a choice.

    KubeSpawner merges dictionaries, and replaces all else.
    """
    changed = dict(traits)
    for written, value in mapping(child(holder, "kubespawner_override")).items():
        name = OLD_NAMES.get(str(written), str(written))
        if not isinstance(value, _SHAPES.get(name, object)):
            continue
        if name in LISTS and name in _SHAPES and entries(value) is None:
            # Neither a list nor named entries: KubeSpawner couldn't use it.
            continue
        if name == "extra_pod_config" and isinstance(value, dict):
            # KubeSpawner takes either spelling.
            item = {camel_case(str(key)): field for key, field in value.items()}
            changed[name] = overridden(changed.get(name) or {}, item)
            continue
        if isinstance(value, str) and "{value}" in value:
            # The user types it.
            changed[name] = UNKNOWN_IMAGE
            continue
        before = changed.get(name)
        if before is None and name not in LISTS:
            before = {}
        changed[name] = overridden(before, value)
    return changed


def _pool_and_size(traits: Traits) -> KindKey:
    """By which placeholder sets are told apart: users of one pool are named alike."""
    room = room_of(traits)
    return KindKey(_pool_of(room), to_json(room["resources"]))


def _pool_of(room: Room) -> str:
    """The nodes that a set is for, in one text."""
    return to_json([room[key] for key in NODE_KEYS])


def nodes_unlike(room: Room, usual: Room) -> SetKeys:
    """The keys about nodes in which a set differs from the usual set. It takes the others from
    placeholder.defaults.
    """
    return {key: room[key] for key in NODE_KEYS if room[key] != usual[key]}


def device_of(entry: object, usual: Mapping[str, object]) -> str:
    """Why each placeholder of this set costs a node: its device, or its size; "": it doesn't.

    usual: nodes of all users. Their labels and taints say nothing of this set.
    """
    requests = requested(mapping(child(entry, "resources")))
    reasons = sorted(
        name for name, amount in requests.items() if "/" in name and (quantity(amount) or 0) > 0
    )
    if (quantity(requests.get("memory", 0)) or 0) > _NODE_BYTES:
        reasons.append("more than 64 GiB of memory")
    if reasons:
        return " and ".join(reasons)
    own: list[str] = []
    for key in NODE_KEYS:
        usual_parts = _parts(usual.get(key))
        own += [part for part in _parts(child(entry, key)) if part not in usual_parts]
    return "a GPU" if is_gpu(" ".join(own)) else ""


def _parts(nodes: object) -> list[str]:
    """Each label of a node selector, or each toleration or term of a list; without what keeps pods
    off nodes.
    """
    labels = [to_json({key: item}) for key, item in mapping(nodes).items() if not _is_false(item)]
    terms = [to_json(_without_negations(term)) for term in listing(nodes)]
    return labels + terms


def _without_negations(term: object) -> object:
    """A node selector term without expressions that nodes with a GPU don't match."""
    expressions = child(term, "matchExpressions")
    if not isinstance(term, Mapping) or not isinstance(expressions, list):
        return term
    asked = [expression for expression in expressions if not _is_negation(expression)]
    return {**term, "matchExpressions": asked}


def _is_false(value: object) -> bool:
    return str(value).lower() in _FALSE


def _is_negation(expression: object) -> bool:
    operator = child(expression, "operator")
    values = listing(child(expression, "values"))
    if operator == "In":
        return all(_is_false(value) for value in values)
    return operator in ("NotIn", "DoesNotExist")
