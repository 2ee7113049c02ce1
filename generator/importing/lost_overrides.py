"""Name what of profiles' `kubespawner_override` decides about placement and isn't carried over,
each with its line.

Source: KubeSpawner 7, traits of KubeSpawner; a name that is no trait changes nothing there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from generator.checks.contract import mapping
from generator.checks.controllers import IMAGE
from generator.checks.terms import lint_required_term, lint_toleration
from generator.faults import Path
from generator.importing.profile_pools import SIZES
from generator.importing.quantities import MEMORY, cpu_quantity, quantity, spawner_memory
from generator.importing.result import Draft
from generator.importing.source import child, kind_of
from generator.importing.unread import POD_KEEPS_IT, SPAWNER_TRAITS, places_pods
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
_CAMEL: Final = re.compile("(?<=[a-z0-9])([A-Z])")
_Lost = tuple[Path, object, str]
_MAPPINGS: Final = ("node_selector", "extra_resource_limits", "extra_resource_guarantees")
_LINTS: Final = {"tolerations": lint_toleration, "node_affinity_required": lint_required_term}


def note_lost(draft: Draft, listed: Path, profiles: Sequence[object]) -> None:
    """Note each override, of profiles and their choices, that Roost can't carry over. listed: where
    they are.
    """
    # Each is the list of one scheduler.
    taken_over = [piece.value for piece in draft.pieces if piece.path == ("replaceSchedulers",)]
    for at, profile in enumerate(profiles):
        source: Path = (*listed, at)
        if not isinstance(profile, Mapping):
            draft.refuse(source, profile, f"expected a profile, found a {kind_of(profile)}")
        for below, override in _overrides(profile):
            for keys, value, reason in _lost(override):
                is_taken_over = keys == ("scheduler_name",) and (
                    value == "default-scheduler" or [value] in taken_over
                )
                if not is_taken_over:
                    draft.refuse((*source, *below, "kubespawner_override", *keys), value, reason)


def _overrides(profile: object) -> Iterator[tuple[Path, Mapping[str, object]]]:
    holders: list[tuple[Path, object]] = [((), profile)]
    for name, option in mapping(child(profile, "profile_options")).items():
        below: Path = ("profile_options", name)
        holders += [
            ((*below, "choices", key), choice)
            for key, choice in mapping(child(option, "choices")).items()
        ]
        holders.append(((*below, "unlisted_choice"), child(option, "unlisted_choice")))
    for path, holder in holders:
        yield path, mapping(child(holder, "kubespawner_override"))


def _lost(override: Mapping[str, object]) -> Iterator[_Lost]:
    for key, value in override.items():
        if value in (None, 0, "", "0") or (isinstance(value, str) and "{" in value):
            continue
        if key in ("image", "image_spec"):
            if not isinstance(value, str):
                yield (
                    (key,),
                    value,
                    "expected text: KubeSpawner takes an image as one reference, NAME:TAG",
                )
            elif not is_reference(value):
                yield (key,), value, f"expected {IMAGE}; no node can pull it"
        elif key in _MAPPINGS and not isinstance(value, Mapping):
            yield (key,), value, f"expected a mapping, found a {kind_of(value)}"
        elif isinstance(value, Mapping) and key in _MAPPINGS:
            is_label = key == "node_selector"
            expected = "text in quotes: a label's value" if is_label else "a Kubernetes quantity"
            for name, entry in value.items():
                fits = isinstance(entry, str) if is_label else quantity(entry) is not None
                if entry is not None and not fits:
                    yield (key, name), entry, f"expected {expected}"
        elif key in SIZES:
            if (cpu_quantity(value) if key.startswith("cpu") else spawner_memory(value)) is None:
                yield (
                    (key,),
                    value,
                    f"expected {'a number of CPUs' if key.startswith('cpu') else MEMORY}",
                )
        elif key in _LINTS:
            yield from _lost_entries(key, value)
        elif (trait := _CAMEL.sub(r"_\1", key).lower()) != key and re.fullmatch(
            SPAWNER_TRAITS, trait
        ):
            yield (
                (key,),
                value,
                f"KubeSpawner has no trait of this name and ignores it; {trait} is one",
            )
        elif re.fullmatch(SPAWNER_TRAITS, key) and value and places_pods(key, value):
            yield (key,), value, _KEPT.get(key, POD_KEEPS_IT)


def _lost_entries(key: str, value: object) -> Iterator[_Lost]:
    if not isinstance(value, list):
        yield (key,), value, f"expected a list, found a {kind_of(value)}"
        return
    for at, entry in enumerate(value):
        if wrong := _LINTS[key](entry):
            yield (key, at), entry, f"{wrong}; the API server would refuse such a pod"
