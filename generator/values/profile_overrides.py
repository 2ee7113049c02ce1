"""Find what a hub's profiles, and the choices of their options, change of users' pods."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from generator.values.lookups import child, listing, mapping
from generator.values.merge import Values

_OVERRIDE: Final = "kubespawner_override"


def overrides(profile: object) -> Iterator[Values]:
    """`kubespawner_override` of a profile, then of each choice of its options.

    A profile or choice without it gives {}.
    """
    for _, override in overrides_by_place(profile):
        yield override


def overrides_by_place(profile: object) -> Iterator[tuple[tuple[str, ...], Values]]:
    """The same overrides as of `overrides`, each after its path below the profile."""
    yield (_OVERRIDE,), mapping(child(profile, _OVERRIDE))
    for name, option in mapping(child(profile, "profile_options")).items():
        for choice_name, choice in mapping(child(option, "choices")).items():
            path = ("profile_options", str(name), "choices", str(choice_name), _OVERRIDE)
            yield path, mapping(child(choice, _OVERRIDE))


def default_overrides(profiles: object) -> list[Values]:
    """`kubespawner_override` of the default profile, then of the default choice of each of its
    options. Where none is the default, the first counts.
    """
    profile = _default(listing(profiles) or by_key(profiles))
    options = by_key(child(profile, "profile_options"))
    choices = [_default(by_key(child(option, "choices"))) for option in options]
    return [mapping(child(chosen, _OVERRIDE)) for chosen in (profile, *choices)]


def by_key(named: object) -> list[object]:
    """The entries of a map, sorted by their keys: Helm sorts maps, so it is the order of a chart
    that accepts a map in place of a list. [] if `named` isn't a map.
    """
    items = mapping(named).items()
    return [entry for _, entry in sorted(items, key=lambda item: str(item[0]))]


def _default(entries: list[object]) -> object:
    """The entry that is the default, else the first. None: there are no entries."""
    for entry in entries:
        if child(entry, "default") is True:
            return entry
    return entries[0] if entries else None
