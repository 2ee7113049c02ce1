"""Whether users' pods are within Roost's reach: what decides their namespace, labels and scheduler in the hub.

Read are traits below `hub.config`, `singleuser.extraPodConfig` and `extraLabels`, and in `hub.extraConfig` plain
assignments, `c.KubeSpawner.namespace = "lab"`. Later ones win, as in the hub.
Source: KubeSpawner 7, traits; zero-to-jupyterhub 4.4, jupyterhub_config.py.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from generator.checks.contract import mapping
from generator.importing.result import Draft
from generator.importing.source import HubSection, Path, child

# Trait -> its value, and its key below the hub's values.
_Traits = dict[str, tuple[object, Path]]
_UNSET: tuple[object, Path] = (None, ())


def map_reach(draft: Draft, hub: HubSection) -> tuple[list[str], set[str]]:
    """Let class `user` match the pods that the hub makes.

    Returns until when users aren't placed, a clause for each reason; and the traits that were followed.
    """
    traits = traits_of(hub)
    followed: set[str] = set()
    # `component` of extra_labels is overwritten by it.
    component, keys = traits.get("component_label", _UNSET)
    if isinstance(component, str) and component:
        draft.put("podClasses.user.match.labels.component", component, (*hub.path, *keys))
        followed.add("component_label")
    until = [*_follow_namespace(draft, hub, traits, followed), *_other_scheduler(draft, traits)]
    return until, followed


def _follow_namespace(draft: Draft, hub: HubSection, traits: _Traits, followed: set[str]) -> Iterator[str]:
    (several, keys), (one, key_of_one) = (traits.get(name, _UNSET) for name in ("enable_user_namespaces", "namespace"))
    labels: object = None
    if several is True:
        labels, _ = traits.get("user_namespace_labels", _UNSET)
        if not labels:
            where = f"{hub.show(keys)}: each user has one"
            yield f"podClasses.user.match.namespaceSelector selects the namespaces of users ({where})"
    elif isinstance(one, str) and one:
        labels, keys = {"kubernetes.io/metadata.name": one}, key_of_one
    if isinstance(labels, Mapping) and labels:
        selector = {"matchLabels": dict(labels)}
        why = "The hub makes its users' pods there."
        draft.put("podClasses.user.match.namespaceSelector", selector, (*hub.path, *keys), why)
        followed |= {"enable_user_namespaces", "namespace", "user_namespace_template"}


def _other_scheduler(draft: Draft, traits: _Traits) -> Iterator[str]:
    name = child(traits.get("extra_pod_config", _UNSET)[0], "schedulerName")
    name = name or traits.get("scheduler_name", _UNSET)[0]
    known = [piece.value for piece in draft.pieces if piece.path == ("replaceSchedulers",)]
    if isinstance(name, str) and name not in ("", "default-scheduler") and [name] not in known:
        yield f"replaceSchedulers has {name}, the scheduler that the hub names in its users' pods"


def traits_of(hub: HubSection) -> _Traits:
    """What the hub sets of its spawner, by trait."""
    found: _Traits = {}
    for key, trait in (("extraPodConfig", "extra_pod_config"), ("extraLabels", "extra_labels")):
        if value := mapping(child(hub.data, "singleuser", key)):
            found[trait] = value, ("singleuser", key)
    for name, traits in mapping(child(hub.data, "hub", "config")).items():
        if str(name).endswith("Spawner") and isinstance(traits, Mapping):
            found |= {key: (value, ("hub", "config", name, key)) for key, value in traits.items() if value}
    extra = child(hub.data, "hub", "extraConfig")
    codes = extra if isinstance(extra, Mapping) else {"": extra}
    for name, code in sorted(codes.items(), key=lambda item: str(item[0])):
        keys = ("hub", "extraConfig", *([name] if name else []))
        found |= {trait: (value, keys) for trait, value in _assigned(code)}
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
