"""Placeholder sets for the node pools that a hub's profiles choose, as large as who goes there.

The default set stands for users of the default profile. Who chooses a profile with another node selector, other
tolerations or terms waits for a node of that pool, whatever room the default set keeps.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from generator.checks.contract import at, listing, mapping
from generator.checks.terms import lint_required_term, lint_toleration
from generator.importing.quantities import cpu_quantity, quantity, spawner_memory
from generator.importing.result import free_name
from generator.importing.source import child
from roost_core.placement.go_json import to_json

Values = Mapping[str, object]

# Room for a suffix that tells sets of one name apart.
_MAX_NAME: Final = 40
# Where a pool says what it is for only by its labels or taints.
_GPU_WORDS: Final = ("gpu", "accelerator")
# Part, resource, and the trait that says it.
SIZES: Final = (
    ("requests", "cpu", "cpu_guarantee"),
    ("requests", "memory", "mem_guarantee"),
    ("limits", "cpu", "cpu_limit"),
    ("limits", "memory", "mem_limit"),
)


class PoolSet(NamedTuple):
    """A set of placeholders for one pool, and why it is as it is."""

    entry: dict[str, object]
    comment: str


class User(NamedTuple):
    """Where a user may go, and the user's size in Kubernetes quantities; what is chosen, for names and for people."""

    selector: dict[str, str]
    tolerations: list[object]
    terms: list[object]
    requests: dict[str, str]
    limits: dict[str, str]
    slugs: tuple[str, ...] = ()
    titles: tuple[str, ...] = ()

    @property
    def pool(self) -> str:
        """What tells the nodes of one user from another's."""
        return to_json([self.selector, self.tolerations, self.terms])

    def is_unlike(self, other: User) -> bool:
        """Whether they go to other nodes, or have other sizes."""
        return (self.pool, self.requests, self.limits) != (other.pool, other.requests, other.limits)

    def nodes_unlike(self, usual: User) -> dict[str, object]:
        """Keys of a placeholder set; one that it names counts in place of placeholder.defaults."""
        nodes = (
            ("nodeSelector", self.selector, usual.selector),
            ("tolerations", self.tolerations, usual.tolerations),
            ("requiredNodeTerms", self.terms, usual.terms),
        )
        return {key: own for key, own, other in nodes if own != other}


def pool_sets(profiles: object, now: Values, taken: Collection[str]) -> list[PoolSet]:
    """One set for each pool that a profile or a choice leads to and the hub's other users don't use, in their order.

    profiles: `singleuser.profileList` as the hub has it. now: Roost's values for this hub, whole. taken: names of sets.
    """
    usual = _usual_user(now)
    kept = default_user(usual, profiles)
    by_pool: dict[str, list[User]] = {}
    for position, profile in enumerate(listing(profiles), start=1):
        for user in _users_of(usual, profile, position):
            by_pool.setdefault(user.pool, []).append(user)
    by_pool.pop(kept.pool, None)
    names = set(taken)
    found = []
    for users in by_pool.values():
        name = free_name("-".join(users[0].slugs), names, "pool", _MAX_NAME)
        names.add(name)
        found.append(_set_of(name, users, usual))
    return found


def default_user(usual: User, profiles: object) -> User:
    """Who takes the default profile with its default choices: the profile that says so, else the first.

    usual: what the hub says of all users. profiles: `singleuser.profileList` as the hub has it.
    """
    listed = [one for one in listing(profiles) if isinstance(one, Mapping)]
    chosen = [one for one in listed if child(one, "default") is True] or listed
    return next(_users_of(usual, chosen[0], 1)) if chosen else usual


def _usual_user(now: Values) -> User:
    """Who chooses nothing."""
    defaults, singleuser = at(now, "placeholder", "defaults"), mapping(now.get("singleuser"))
    user = User(
        {key: str(value) for key, value in mapping(at(defaults, "nodeSelector")).items()},
        listing(at(defaults, "tolerations")),
        listing(at(defaults, "requiredNodeTerms")),
        {},
        {},
    )
    sizes = {
        f"{short}_{part}": at(singleuser, kind, part)
        for kind, short in (("cpu", "cpu"), ("memory", "mem"))
        for part in ("guarantee", "limit")
    }
    extended = {f"extra_resource_{part}": at(singleuser, "extraResource", part) for part in ("limits", "guarantees")}
    return _overridden(user, {**sizes, **extended})


def _users_of(usual: User, profile: object, position: int) -> Iterator[User]:
    """Whoever chooses a profile, with each of its choices: the usual one of each option first."""
    title = child(profile, "display_name")
    slug = child(profile, "slug")
    name = title if isinstance(title, str) and title else f"profile {position}"
    users = [
        _overridden(usual, child(profile, "kubespawner_override"))._replace(
            slugs=(slug if isinstance(slug, str) and slug else name,), titles=(name,)
        )
    ]
    for option in mapping(child(profile, "profile_options")).values():
        choices = mapping(child(option, "choices"))
        if not choices:
            continue
        ordered = sorted(choices.items(), key=lambda item: child(item[1], "default") is not True)
        # Options of images alone would multiply users who are all alike.
        alike: dict[str, User] = {}
        for key, choice in ordered:
            for user in users:
                made = _overridden(user, child(choice, "kubespawner_override"))
                if made.pool != user.pool:
                    made = made._replace(slugs=(*user.slugs, str(key)), titles=(*user.titles, str(key)))
                alike.setdefault(to_json([made.pool, made.requests, made.limits]), made)
        users = list(alike.values())
    yield from users


def _overridden(user: User, override: object) -> User:
    """What `kubespawner_override` makes of a user: KubeSpawner merges dictionaries and replaces lists."""
    selector = dict(user.selector)
    for key, value in mapping(child(override, "node_selector")).items():
        if value is None:
            selector.pop(key, None)
        elif isinstance(value, str):
            selector[key] = value
    tolerations, terms = child(override, "tolerations"), child(override, "node_affinity_required")
    sizes = {"requests": dict(user.requests), "limits": dict(user.limits)}
    for part, name, key in SIZES:
        if key not in mapping(override):
            continue
        size = child(override, key)
        amount = cpu_quantity(size) if name == "cpu" else spawner_memory(size)
        if amount is not None:
            sizes[part][name] = amount
        elif size in (None, 0, "", "0"):
            sizes[part].pop(name, None)
    for part, key in (("requests", "extra_resource_guarantees"), ("limits", "extra_resource_limits")):
        for name, value in mapping(child(override, key)).items():
            _put_extended(sizes, part, name, value)
    for name, least in sizes["requests"].items():
        if name in sizes["limits"] and (quantity(sizes["limits"][name]) or 0) < (quantity(least) or 0):
            del sizes["limits"][name]
    return user._replace(
        selector=selector,
        tolerations=[one for one in tolerations if not lint_toleration(one)]
        if isinstance(tolerations, list)
        else user.tolerations,
        terms=[one for one in terms if not lint_required_term(one)] if isinstance(terms, list) else user.terms,
        requests=sizes["requests"],
        limits=sizes["limits"],
    )


def _put_extended(sizes: dict[str, dict[str, str]], part: str, name: str, value: object) -> None:
    amount = quantity(value)
    # Kubernetes wants the same number of an extended resource in both.
    parts = ("requests", "limits") if "/" in name else (part,)
    for each in parts:
        if value is None or amount == 0:
            sizes[each].pop(name, None)
        elif amount is not None and amount > 0:
            sizes[each][name] = str(value)


def _set_of(name: str, users: Sequence[User], usual: User) -> PoolSet:
    first = users[0]
    device = _device_of(first, usual)
    entry: dict[str, object] = {"name": name, "replicas": 0 if device else 1}
    resources = {part: sizes for part, sizes in (("requests", first.requests), ("limits", first.limits)) if sizes}
    if resources:
        entry["resources"] = resources
    entry |= first.nodes_unlike(usual)
    why = f"{name}: as large as a user of {', '.join(first.titles)}"
    if len({to_json([user.requests, user.limits]) for user in users}) > 1:
        why += f", the first of {len(users)} kinds of users there"
    why += "."
    if device:
        why += f" 0 replicas: each would cost a node with {device} that nobody uses."
    return PoolSet(entry, why)


def needs_device(entry: object) -> bool:
    """Whether a placeholder of this set takes a device, or says by its nodes that it does."""
    nodes = [at(entry, key) for key in ("nodeSelector", "tolerations", "requiredNodeTerms")]
    names = mapping(at(entry, "resources", "requests"))
    return any("/" in name for name in names) or any(word in to_json(nodes).lower() for word in _GPU_WORDS)


def _device_of(user: User, usual: User) -> str:
    """Which device a placeholder holds, or makes a node with one come for; empty: none."""
    extended = sorted(name for name in user.requests if "/" in name)
    if extended:
        return " and ".join(extended)
    own = [
        *(f"{key}={value}" for key, value in user.selector.items() if usual.selector.get(key) != value),
        *(str(child(one, "key") or "") for one in user.tolerations if one not in usual.tolerations),
        *(to_json(one) for one in user.terms if one not in usual.terms),
    ]
    return "a GPU" if any(word in text.lower() for text in own for word in _GPU_WORDS) else ""
