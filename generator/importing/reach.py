"""Whether users' pods are within Roost's reach: what decides their namespace, labels and scheduler in the hub.

Read are traits below `hub.config`, `singleuser.extraPodConfig` and `extraLabels`, and in `hub.extraConfig` plain
assignments, `c.KubeSpawner.namespace = "lab"`, also `spawner.namespace = "lab"` in hooks. Later ones win.
Source: KubeSpawner 7, traits; zero-to-jupyterhub 4.4, jupyterhub_config.py.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from generator.checks.contract import mapping
from generator.importing.profile_pools import UNKNOWN_IMAGE
from generator.importing.result import Draft
from generator.importing.source import HubSection, Path, child

# Trait -> its value, and its key below the hub's values.
_Traits = dict[str, tuple[object, Path]]
_UNSET: tuple[object, Path] = (None, ())
# What hooks and classes of the hub's own set to take users elsewhere.
_IN_HOOKS = frozenset({"namespace", "scheduler_name", "enable_user_namespaces", "component_label", "extra_pod_config"})


def map_reach(draft: Draft, hub: HubSection) -> tuple[list[str], set[str]]:
    """Let class `user` match the pods that the hub makes.

    Returns until when users aren't placed, a clause for each reason; and the traits that were followed.
    """
    traits = traits_of(hub)
    images = ((trait, traits.get(trait, _UNSET)[0]) for trait in ("image", "image_spec"))
    followed = {trait for trait, image in images if isinstance(image, str) and image != UNKNOWN_IMAGE}
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
    """Traits that Python sets outside any condition to a value that is written there: of the class, or in a hook."""
    try:
        tree = ast.parse(code) if isinstance(code, str) else ast.Module([], [])
        classes = {one.name for one in tree.body if isinstance(one, ast.ClassDef)}
        for line, is_global in _statements(tree):
            if not (isinstance(line, ast.Assign) and len(line.targets) == 1):
                continue
            target = ast.unparse(line.targets[0])
            *owner, trait = target.split(".")
            if is_global:
                # c.KubeSpawner.namespace
                is_read = len(owner) == 2 and (owner[1].endswith("Spawner") or owner[1] in classes)
            else:
                # spawner.namespace, pod.spec.scheduler_name; in a class of the hub's own: namespace
                is_read = trait == "scheduler_name" or (trait in _IN_HOOKS and owner in ([], ["spawner"], ["self"]))
            if is_read:
                yield from _value(trait, line.value)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return


def _statements(tree: ast.Module) -> Iterator[tuple[ast.stmt, bool]]:
    """Those of the module, and of its classes and functions; whether they are the module's own."""
    todo = [(line, True) for line in tree.body]
    while todo:
        line, is_global = todo.pop(0)
        yield line, is_global
        if isinstance(line, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            todo += [(inner, False) for inner in line.body]


def _value(trait: str, value: ast.expr) -> Iterator[tuple[str, object]]:
    if isinstance(value, ast.Call) and ast.unparse(value.func) == "dict" and not value.args:
        value = ast.Dict([ast.Constant(one.arg) for one in value.keywords], [one.value for one in value.keywords])
    try:
        yield trait, ast.literal_eval(value)
    except (ValueError, TypeError, SyntaxError):
        if trait == "image":
            yield trait, UNKNOWN_IMAGE
