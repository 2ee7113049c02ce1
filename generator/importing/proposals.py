"""What would help a hub most that it doesn't have: as values to lay over the imported ones.

Each proposal is what the import would say if the hub had that part switched on, so sizes and
selectors are the hub's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from generator.checks.contract import at, listing, mapping, number, text
from generator.faults import ValuesError
from generator.importing.class_match import traits_of
from generator.importing.commented_yaml import print_yaml
from generator.importing.importer import faults_of, import_layers
from generator.importing.profile_pools import UNKNOWN_IMAGE, device_of, pool_sets
from generator.importing.result import ImportResult
from generator.importing.source import Path, child
from generator.importing.trial_pods import user_pods
from generator.values.files import read_defaults
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
    # What it adds to the imported values.
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
        inherited = mapping(at(now, "placeholder", "defaults"))
        sets = [
            {**inherited, **mapping(placeholder_set)}
            for layer in (now, values)
            for placeholder_set in listing(layer.get("placeholders"))
        ]
        # A seat with a GPU is a machine that nobody uses.
        has_gpu_seats = any(device_of(placeholder_set, {}) for placeholder_set in sets)
        changes_gpu_seats = "placeholders" in values and has_gpu_seats
        if values and not changes_gpu_seats:
            proposals.append(Proposal(reason, values))
    if (images <= {UNKNOWN_IMAGE} or UNKNOWN_IMAGE in images) and at(
        now, "popularImages", "enabled"
    ) is False:
        proposals.append(Proposal(_POPULAR, {"popularImages": {"enabled": True}}))
    # The placeholder sets that a proposal brings, or else those that the hub has.
    rooms = [
        proposal.values["placeholders"]
        for proposal in proposals
        if "placeholders" in proposal.values
    ]
    listed = (child(result.hub.data, "singleuser", "profileList"), ())
    profiles = traits_of(result.hub).traits.get("profile_list", listed)[0]
    return proposals + _pools(
        result, now, listing(rooms[0] if rooms else now.get("placeholders")), profiles
    )


def _pools(
    result: ImportResult, now: Values, sets: Sequence[object], profiles: object
) -> list[Proposal]:
    """Sets for the pools of profiles, behind the others of the hub: a list of values replaces a
    list.
    """
    names = [
        name for placeholder_set in sets if isinstance(name := at(placeholder_set, "name"), str)
    ]
    # A profile may name labels that nodes can't have.
    found = [
        (entry, why)
        for entry, why in pool_sets(profiles, now, names, _zone(sets))
        if "error"
        not in {
            fault.severity for fault in faults_of({**result.values, "placeholders": [*sets, entry]})
        }
    ]
    if not any(entry["replicas"] or "learn" in entry for entry, _ in found):
        return []
    values = {"placeholders": [*sets, *(entry for entry, _ in found)]}
    return [Proposal(_POOLS, values, tuple(why for _, why in found))]


def _zone(sets: Sequence[object]) -> str:
    """The time zone in which the other sets learn."""
    zones = [text(at(placeholder_set, "learn", "timeZone")) for placeholder_set in sets]
    return next(filter(None, zones), "UTC")


def _missing(now: Values, *, names_images: bool) -> list[tuple[str, Values]]:
    """What to switch on in the hub's values, most helpful first (lab/docs/simulator-results.md)."""
    scheduler = (_SCHEDULER, {"scheduling": {"userScheduler": {"enabled": True}}})
    puller = (_PULLER, {"prePuller": {"hook": {"enabled": True}, "continuous": {"enabled": True}}})
    room = (
        _PLACEHOLDERS,
        {"scheduling": {"userPlaceholder": {"enabled": True, "replicas": PLACEHOLDERS}}},
    )
    has_room = any(
        number(mapping(placeholder_set).get("replicas"))
        for placeholder_set in listing(now.get("placeholders"))
    )
    rooms = [] if has_room else [room]
    if not names_images:
        return [scheduler, *rooms]
    return [*([] if at(now, "prePuller", "enabled") is True else [puller]), *rooms, scheduler]


def _images(result: ImportResult) -> set[str]:
    """What users run, beside it nothing: UNKNOWN_IMAGE stands for all that nobody can name in
    advance.
    """
    users = user_pods(result)
    if result.has_builds and all(len(user.chosen) < 2 and len(users) < 3 for user in users):
        return {UNKNOWN_IMAGE}
    return {image for user in users if (image := user.pod["spec"]["containers"][0]["image"])}


def print_proposals(proposals: Sequence[Proposal]) -> str:
    """The proposals as comments below the values; "" if there are none."""
    if not proposals:
        return ""
    lines = []
    for place, proposal in enumerate(proposals, start=1):
        comments: dict[Path, Sequence[str]] = {(next(iter(proposal.values)),): proposal.comments}
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
    found: dict[str, object] = {}
    for key in (*after, *(key for key in before if key not in after)):
        old = before.get(key)
        new = after.get(key)
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            if inner := _difference(old, new):
                found[key] = inner
        elif old != new:
            found[key] = new
    return found
