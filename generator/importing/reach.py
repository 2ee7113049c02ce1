"""Whether users' pods are within Roost's reach: what decides their namespace, labels and scheduler in the hub.

Read are traits below `hub.config`, `singleuser.extraPodConfig` and `extraLabels`, and in `hub.extraConfig` plain
assignments, `c.KubeSpawner.namespace = "lab"`. Later ones win, as in the hub.
Source: KubeSpawner 7, traits; zero-to-jupyterhub 4.4, jupyterhub_config.py.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from generator.importing.result import Draft
from generator.importing.source import HubSection, Path, child


class _Trait(NamedTuple):
    value: object
    # Below the hub's values.
    keys: Path


def map_reach(draft: Draft, hub: HubSection) -> tuple[list[str], set[str]]:
    """Let class `user` match the pods that the hub makes.

    Returns until when users aren't placed, a clause for each reason; and the traits that were followed.
    """
    traits = _traits(hub)
    followed: set[str] = set()
    labels = traits.get("extra_labels")
    component = child(labels.value, "component") if labels else None
    source = labels if component is not None else traits.get("component_label")
    wanted = component if component is not None else source and source.value
    if source and isinstance(wanted, str) and wanted:
        draft.put("podClasses.user.match.labels.component", wanted, (*hub.path, *source.keys))
        followed.add("component_label")
    until = [*_follow_namespace(draft, hub, traits, followed), *_other_scheduler(draft, traits)]
    return until, followed


def _follow_namespace(draft: Draft, hub: HubSection, traits: Mapping[str, _Trait], followed: set[str]) -> Iterator[str]:
    several, one = traits.get("enable_user_namespaces"), traits.get("namespace")
    selector: dict[str, object] | None = None
    source = one
    if several and several.value is True:
        source, labels = several, traits.get("user_namespace_labels")
        selector = {"matchLabels": labels.value} if labels and isinstance(labels.value, dict) and labels.value else None
        if selector is None:
            yield (
                "podClasses.user.match.namespaceSelector selects the namespaces of users "
                f"({hub.show(several.keys)}: each user has one)"
            )
    elif one and isinstance(one.value, str) and one.value:
        selector = {"matchLabels": {"kubernetes.io/metadata.name": one.value}}
    if selector and source:
        why = "The hub makes its users' pods there."
        draft.put("podClasses.user.match.namespaceSelector", selector, (*hub.path, *source.keys), why)
        followed |= {"enable_user_namespaces", "namespace", "user_namespace_template"}


def _other_scheduler(draft: Draft, traits: Mapping[str, _Trait]) -> Iterator[str]:
    trait = traits.get("scheduler_name")
    spec = traits.get("extra_pod_config")
    name = (child(spec.value, "schedulerName") if spec else None) or (trait.value if trait else None)
    known = [piece.value for piece in draft.pieces if piece.path == ("replaceSchedulers",)]
    if isinstance(name, str) and name not in ("", "default-scheduler", *(known[0] if known else [])):  # type: ignore[misc]
        yield f"replaceSchedulers has {name}, the scheduler that the hub names in its users' pods"


def _traits(hub: HubSection) -> dict[str, _Trait]:
    found: dict[str, _Trait] = {}
    for key, trait in (("extraPodConfig", "extra_pod_config"), ("extraLabels", "extra_labels")):
        value = child(hub.data, "singleuser", key)
        if isinstance(value, Mapping) and value:
            found[trait] = _Trait(value, ("singleuser", key))
    config = child(hub.data, "hub", "config")
    for name, traits in config.items() if isinstance(config, Mapping) else ():
        if str(name).endswith("Spawner") and isinstance(traits, Mapping):
            found |= {key: _Trait(value, ("hub", "config", name, key)) for key, value in traits.items() if value}
    extra = child(hub.data, "hub", "extraConfig")
    codes = extra if isinstance(extra, Mapping) else {"": extra}
    for name, code in sorted(codes.items(), key=lambda item: str(item[0])):
        keys = ("hub", "extraConfig", *([name] if name else []))
        for trait, value in _assigned(code):
            found[trait] = _Trait(value, keys)
    return found


def _assigned(code: object) -> Iterator[tuple[str, object]]:
    """Traits that Python sets outside any condition or function to a value that is written there."""
    try:
        lines = ast.parse(code).body if isinstance(code, str) else []
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for line in lines:
        target = line.targets[0] if isinstance(line, ast.Assign) and len(line.targets) == 1 else None
        if not (isinstance(line, ast.Assign) and isinstance(target, ast.Attribute)):
            continue
        owner = target.value
        if isinstance(owner, ast.Attribute) and owner.attr.endswith("Spawner") and isinstance(owner.value, ast.Name):
            try:
                yield target.attr, ast.literal_eval(line.value)
            except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
                continue
