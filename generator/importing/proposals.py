"""What would help a hub most that it doesn't have: as values to lay over the imported ones.

Each proposal is what the import would say if the hub had that part switched on, so sizes and
selectors are the hub's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from generator.faults import ValuesError
from generator.importing.hub_traits import traits_of
from generator.importing.importer import faults_of, import_layers
from generator.importing.profile_pools import UNKNOWN_IMAGE, device_of, pool_sets
from generator.importing.result import ImportResult
from generator.importing.source import HubPath
from generator.importing.trial_pods import user_pods
from generator.importing.user_sizes import Traits
from generator.importing.users import pod_containers
from generator.importing.yaml_printer import print_yaml
from generator.values.files import read_defaults
from generator.values.lookups import child, listing, mapping, number, text
from generator.values.merge import coalesce

Values = Mapping[str, object]

# As many as Roost's own default.
PLACEHOLDERS: Final = 3
_HEAD: Final = """\
#
# What would help this hub most, the first most. To try one, write its lines without "# " \
to a file, and give it
# after this one:
#   roost simulate --trace LAUNCHES -f values.yaml -f values.yaml,more.yaml
"""
_PULLER: Final = (
    "Bring the users' images to new nodes before users come, and keep users off nodes that still"
    " pull."
)
_PLACEHOLDERS: Final = (
    "Keep room for the next users, so that they needn't wait until a node has booted. It costs what"
    " it requests."
)
_POPULAR: Final = (
    "Bring images that several users run to nodes that lack them (docs/popular-images.md)."
)
_BELOW: Final = "What would help this hub most stands below the values, as comments:"
_POOLS: Final = (
    "Keep room in the node pools that profiles choose, too: the other placeholders don't stand"
    " there. Each costs what it requests."
)
_SCHEDULER: Final = "Send users to nodes that hold their image, on as few nodes as carry all users."


class Proposal(NamedTuple):
    """One change."""

    reason: str
    # What it lays over the imported values.
    values: Values
    # Above its first key.
    comments: Sequence[str] = ()


def propose(
    result: ImportResult,
    layers: Sequence[tuple[str, str | bytes]],
    release: str,
    hub: str | None = None,
) -> list[Proposal]:
    """Proposals for a hub, most helpful first; none where nothing is missing, or no hub.

    result: what `import_layers` made of the same layers, release and hub.
    """
    if result.hub is None:
        return []
    now = _whole(result)
    images = _images(result)
    proposals = []
    for reason, change in _missing(now, names_images=bool(images - {UNKNOWN_IMAGE})):
        below: Values = change
        for key in reversed(result.hub.path):
            below = {key: below}
        try:
            changed = import_layers([*layers, ("a proposal", json.dumps(below))], release, hub)
        except ValuesError:
            continue  # the hub's values have something else at that key
        values = _difference(now, _whole(changed))
        # The hub has no scheduler whose pods could be taken over.
        values.pop("replaceSchedulers", None)
        # A placeholder with a device is a machine that nobody uses.
        keeps_devices = "placeholders" in values and _has_devices(now, values)
        if values and not keeps_devices:
            proposals.append(Proposal(reason, values))
    runs_unnamed = not images or UNKNOWN_IMAGE in images
    can_be_brought = runs_unnamed and result.has_registry
    if can_be_brought and child(now, "popularImages", "enabled") is False:
        proposals.append(Proposal(_POPULAR, {"popularImages": {"enabled": True}}))
    # The placeholder sets that a proposal brings, or else those that the hub has.
    rooms = [
        proposal.values["placeholders"]
        for proposal in proposals
        if "placeholders" in proposal.values
    ]
    sets = listing(rooms[0] if rooms else now.get("placeholders"))
    listed = (child(result.hub.data, "singleuser", "profileList"), ())
    traits = traits_of(result.hub).traits
    profiles, _ = traits.get("profile_list", listed)
    containers = pod_containers(result.hub, traits)
    return proposals + _pools(result, now, sets, profiles, containers)


def _has_devices(now: Values, change: Values) -> bool:
    """Whether a placeholder of the hub's sets, or of those that a change brings, costs a node."""
    inherited = mapping(child(now, "placeholder", "defaults"))
    return any(
        device_of({**inherited, **mapping(placeholder_set)}, {})
        for values in (now, change)
        for placeholder_set in listing(values.get("placeholders"))
    )


def _pools(
    result: ImportResult, now: Values, sets: Sequence[object], profiles: object, containers: Traits
) -> list[Proposal]:
    """Sets for the pools of profiles, behind the others of the hub: a list of values replaces a
    list. containers: as of `pool_sets`.
    """
    names = [text(child(placeholder_set, "name")) for placeholder_set in sets]
    entries = []
    reasons = []
    for entry, why in pool_sets(profiles, now, names, _zone(sets), containers):
        faults = faults_of({**result.values, "placeholders": [*sets, entry]})
        # A profile may name labels that nodes can't have.
        if all(fault.severity != "error" for fault in faults):
            entries.append(entry)
            reasons.append(why)
    if not any(entry["replicas"] or "learn" in entry for entry in entries):
        return []
    return [Proposal(_POOLS, {"placeholders": [*sets, *entries]}, reasons)]


def _zone(sets: Sequence[object]) -> str:
    """The time zone in which the other sets learn."""
    zones = [text(child(placeholder_set, "learn", "timeZone")) for placeholder_set in sets]
    return next((zone for zone in zones if zone), "UTC")


def _missing(now: Values, *, names_images: bool) -> list[tuple[str, Values]]:
    """What to switch on in the hub's values, most helpful first (lab/docs/simulator-results.md)."""
    scheduler = (_SCHEDULER, {"scheduling": {"userScheduler": {"enabled": True}}})
    both = {"hook": {"enabled": True}, "continuous": {"enabled": True}}
    placeholders = {"enabled": True, "replicas": PLACEHOLDERS}
    missing: list[tuple[str, Values]] = []
    if names_images and child(now, "prePuller", "enabled") is not True:
        missing.append((_PULLER, {"prePuller": both}))
    has_room = any(
        number(mapping(placeholder_set).get("replicas"))
        for placeholder_set in listing(now.get("placeholders"))
    )
    if not has_room:
        missing.append((_PLACEHOLDERS, {"scheduling": {"userPlaceholder": placeholders}}))
    # Images that nobody names come to no node in advance: only the scheduler finds those that hold
    # them.
    return [*missing, scheduler] if names_images else [scheduler, *missing]


def _images(result: ImportResult) -> set[str]:
    """The images that users run. UNKNOWN_IMAGE stands for all that nobody can name in advance."""
    users = user_pods(result)
    chooses_nothing = len(users) < 3 and all(len(user.chosen) < 2 for user in users)
    if result.has_builds and chooses_nothing:
        return {UNKNOWN_IMAGE}
    images = {user.pod["spec"]["containers"][0]["image"] for user in users}
    return images - {""}


def print_proposals(proposals: Sequence[Proposal]) -> str:
    """The proposals as comments below the values; "" if there are none."""
    if not proposals:
        return ""
    lines = []
    for place, proposal in enumerate(proposals, start=1):
        comments: dict[HubPath, Sequence[str]] = {(next(iter(proposal.values)),): proposal.comments}
        text = f"\n{place}. {proposal.reason}\n{print_yaml(proposal.values, comments)}"
        lines += [f"# {line}".rstrip() for line in text.splitlines()]
    return _HEAD + "".join(f"{line}\n" for line in lines)


def pointer(proposals: Sequence[Proposal]) -> list[str]:
    """Lines of the report that say which proposals stand below the values."""
    lines = [f"  {place}. {proposal.reason}" for place, proposal in enumerate(proposals, start=1)]
    return [_BELOW, *lines] if proposals else []


def _whole(result: ImportResult) -> Values:
    return coalesce(result.values, read_defaults().values)


def _difference(before: Values, after: Values) -> dict[str, object]:
    """What makes `after` of `before` by Helm's merge: null removes a key."""
    difference: dict[str, object] = {}
    for key in dict.fromkeys((*after, *before)):
        old = before.get(key)
        new = after.get(key)
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            inner = _difference(old, new)
            if inner:
                difference[key] = inner
        elif old != new:
            difference[key] = new
    return difference
