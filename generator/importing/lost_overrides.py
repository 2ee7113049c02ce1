"""Name what of profiles' `kubespawner_override` decides about placement and isn't carried over,
each with its line.

Source: KubeSpawner 7, traits of KubeSpawner; a name that is no trait changes nothing there.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from generator.checks.puller import IMAGE
from generator.checks.tolerations_and_terms import lint_required_term, lint_toleration
from generator.faults import KeyPath
from generator.importing.not_carried_over import (
    POD_KEEPS_IT,
    SPAWNER_TRAITS_PATTERN,
    no_trait_reason,
    places_pods,
    runtime_class_reason,
)
from generator.importing.quantities import SIZE_EXPECTED, quantity, user_size
from generator.importing.result import Draft
from generator.importing.source import kind_of
from generator.importing.traits import OLD_NAMES, entries, entries_of, is_trait, is_unfilled
from generator.importing.user_sizes import SIZES
from generator.render.managed_images import RESOURCE_TRAITS
from generator.values.lookups import child, mapping, text
from roost_core.objects.image_references import is_reference

_NAMESPACE: Final = (
    "Roost leaves such pods alone until podClasses.user.match.namespaceSelector selects it"
)
_KEPT: Final[Mapping[str, str]] = {
    **dict.fromkeys(("namespace", "enable_user_namespaces", "user_namespace_template"), _NAMESPACE),
    "component_label": "Roost leaves such pods alone until podClasses.user.match.labels matches it",
    "scheduler_name": "Roost places such pods once replaceSchedulers has it",
    "priority_class_name": (
        "the pods keep it; who may pre-empt others isn't held back for an image, and placeholders "
        "make room only for priorities above theirs"
    ),
}
_CHOICE_KEYS: Final = frozenset({"default", "description", "display_name", "kubespawner_override"})
_PROFILE_KEYS: Final = _CHOICE_KEYS | {"profile_options", "slug"}
_OPTION_KEYS: Final = frozenset({"choices", "display_name", "unlisted_choice"})
_MEANT: Final = ("kubespawner_override", "profile_options", "choices", "unlisted_choice")
_NEAR: Final = 0.75
# A key, its value, and why it isn't carried over.
_Lost = tuple[KeyPath, object, str]
_MAPPINGS: Final = ("node_selector", *RESOURCE_TRAITS)
_LINTS: Final = {"tolerations": lint_toleration, "node_affinity_required": lint_required_term}


def note_lost(draft: Draft, listed: KeyPath, profiles: Sequence[object]) -> None:
    """Note each override, of profiles and their choices, that Roost can't carry over. listed: where
    they are.
    """
    # Each is the list of one scheduler.
    taken_over = [piece.value for piece in draft.pieces if piece.path == ("replaceSchedulers",)]
    for at, profile in enumerate(profiles):
        source: KeyPath = (*listed, at)
        if not isinstance(profile, Mapping):
            draft.refuse(source, profile, f"expected a profile, found a {kind_of(profile)}")
        for keys, value, reason in _misplaced(profile):
            draft.refuse((*source, *keys), value, reason)
        for below, override in _overrides(profile):
            for keys, value, reason in lost_of(override):
                is_placed_so = value == "default-scheduler" or [value] in taken_over
                if keys == ("scheduler_name",) and is_placed_so:
                    continue
                draft.refuse((*source, *below, "kubespawner_override", *keys), value, reason)


def note_lost_of_groups(draft: Draft, listed: KeyPath, overrides: object) -> None:
    """Note each override of `group_overrides` that Roost can't carry over. listed: where they are.

    Roost's values have no groups: of each, the trial says how its users fare.
    """
    for name, entry in mapping(overrides).items():
        below: KeyPath = (*listed, name, "spawner_override")
        for keys, value, reason in lost_of(mapping(child(entry, "spawner_override"))):
            draft.refuse((*below, *keys), value, reason)


def _misplaced(profile: object) -> Iterator[_Lost]:
    """Keys of a profile, its options and choices that nobody reads there, and that are meant for
    something.
    """
    holders: list[tuple[KeyPath, object, frozenset[str]]] = [((), profile, _PROFILE_KEYS)]
    for name, option in mapping(child(profile, "profile_options")).items():
        below: KeyPath = ("profile_options", name)
        holders.append((below, option, _OPTION_KEYS))
        holders += [
            ((*below, "choices", key), choice, _CHOICE_KEYS)
            for key, choice in mapping(child(option, "choices")).items()
        ]
    for path, holder, known in holders:
        for key, value in mapping(holder).items():
            if key in known:
                continue
            near = difflib.get_close_matches(str(key), _MEANT, 1, _NEAR)
            if near and near[0] in known:
                yield (*path, key), value, f"nobody reads a key of this name; {near[0]} is one"
            elif places_pods(str(key), value) and re.fullmatch(SPAWNER_TRAITS_PATTERN, str(key)):
                reason = "KubeSpawner ignores it here: it reads traits below kubespawner_override"
                yield (*path, key), value, reason


def _overrides(profile: object) -> Iterator[tuple[KeyPath, Mapping[str, object]]]:
    holders: list[tuple[KeyPath, object]] = [((), profile)]
    for name, option in mapping(child(profile, "profile_options")).items():
        below: KeyPath = ("profile_options", name)
        holders += [
            ((*below, "choices", key), choice)
            for key, choice in mapping(child(option, "choices")).items()
        ]
        holders.append(((*below, "unlisted_choice"), child(option, "unlisted_choice")))
    for path, holder in holders:
        yield path, mapping(child(holder, "kubespawner_override"))


def lost_of(override: Mapping[str, object]) -> Iterator[_Lost]:
    """What of an override Roost can't carry over: its keys below the override, value, reason."""
    for written, value in override.items():
        key = str(written)
        if not is_trait(key):
            yield (written,), value, _no_trait_here(key)
            continue
        key = OLD_NAMES.get(key, key)
        is_typed = isinstance(value, str) and "{" in value and not is_unfilled(value)
        if value in (None, 0, "", "0") or is_typed:
            continue
        if key == "image":
            if not isinstance(value, str):
                reason = "expected text: KubeSpawner takes an image as one reference, NAME:TAG"
                yield (key,), value, reason
            elif not is_reference(value):
                yield (key,), value, f"expected {IMAGE}; no node can pull it"
        elif key in _MAPPINGS:
            yield from _lost_of_mapping(key, value)
        elif key in SIZES:
            _, resource, _ = SIZES[key]
            if user_size(resource, value) is None:
                yield (key,), value, f"expected {SIZE_EXPECTED[resource]}"
        elif key in _LINTS:
            yield from _lost_entries(key, value)
        elif _runtime_class(value):
            yield (written,), value, runtime_class_reason(_runtime_class(value))
        elif re.fullmatch(SPAWNER_TRAITS_PATTERN, key) and value and places_pods(key, value):
            yield (key,), value, _KEPT.get(key, POD_KEEPS_IT)


def _runtime_class(value: object) -> str:
    """The RuntimeClass that an extra_pod_config names; "": none."""
    return text(child(value, "runtimeClassName") or child(value, "runtime_class_name"))


def _no_trait_here(key: str) -> str:
    """What KubeSpawner does with a key of an override that is no trait, and what may be meant."""
    if key in _PROFILE_KEYS:
        return f"KubeSpawner ignores it here: {key} belongs beside kubespawner_override"
    return no_trait_reason(key)


def _lost_of_mapping(key: str, value: object) -> Iterator[_Lost]:
    """What is no label's value in a node selector, and no quantity among resources."""
    if not isinstance(value, Mapping):
        yield (key,), value, f"expected a mapping, found a {kind_of(value)}"
        return
    is_label = key == "node_selector"
    expected = "text in quotes: a label's value" if is_label else "a Kubernetes quantity"
    for name, entry in value.items():
        fits = isinstance(entry, str) if is_label else quantity(entry) is not None
        if entry is not None and not fits:
            yield (key, name), entry, f"expected {expected}"


def _lost_entries(key: str, value: object) -> Iterator[_Lost]:
    """What the API server would refuse among tolerations or terms."""
    if entries(value) is None:
        expected = "a list, or a mapping of entries by name"
        yield (key,), value, f"expected {expected}, found a {kind_of(value)}"
        return
    named = value.items() if isinstance(value, Mapping) else enumerate(entries_of(value))
    for at, entry in named:
        wrong = "" if entry is None else _LINTS[key](entry)
        if wrong:
            yield (key, at), entry, f"{wrong}; the API server would refuse such a pod"
