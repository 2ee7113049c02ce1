"""Find what a hub's profiles, and the choices of their options, set of users' pods."""

from __future__ import annotations

from collections.abc import Iterator

from generator.values.lookups import child, listing, mapping
from generator.values.merge import Values


def overrides(profile: object) -> Iterator[Values]:
    """`kubespawner_override` of a profile and of the choices of its options; {} where there is
    none.
    """
    for _, override in overrides_by_place(profile):
        yield override


def overrides_by_place(profile: object) -> Iterator[tuple[tuple[str, ...], Values]]:
    """The same, each with its keys below the profile."""
    own = "kubespawner_override"
    yield (own,), mapping(child(profile, own))
    for name, option in mapping(child(profile, "profile_options")).items():
        for chosen, choice in mapping(child(option, "choices")).items():
            place = ("profile_options", str(name), "choices", str(chosen), own)
            yield place, mapping(child(choice, own))


def default_overrides(profiles: object) -> list[Values]:
    """`kubespawner_override` of the default profile, and of its default choices. Without a default,
    the first counts.
    """
    chosen = _default(listing(profiles) or by_key(profiles))
    options = by_key(child(chosen, "profile_options"))
    choices = [_default(by_key(child(option, "choices"))) for option in options]
    return [mapping(child(profile, "kubespawner_override")) for profile in (chosen, *choices)]


def by_key(named: object) -> list[object]:
    """Entries of a mapping, in the order of their keys: Helm keeps no other, and a chart may take
    one for a list.
    """
    return [item for _, item in sorted(mapping(named).items(), key=lambda entry: str(entry[0]))]


def _default(listed: list[object]) -> object:
    """The entry that is the default, else the first; None: there is none."""
    for entry in listed:
        if child(entry, "default") is True:
            return entry
    return listed[0] if listed else None
