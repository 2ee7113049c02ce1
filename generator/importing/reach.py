"""Whether users' pods are within Roost's reach: what decides their namespace, labels and scheduler in the hub.

Read are traits below `hub.config`, `singleuser.extraPodConfig` and `extraLabels`, and in `hub.extraConfig` plain
assignments, `c.KubeSpawner.namespace = "lab"`, also `spawner.namespace = "lab"` in hooks. Later ones win. What stands
under a condition, or isn't written out, is UNKNOWN.
Source: KubeSpawner 7, traits; zero-to-jupyterhub 4.4, jupyterhub_config.py.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from generator.checks.contract import mapping
from generator.importing.profile_pools import UNKNOWN_IMAGE
from generator.importing.result import Draft
from generator.importing.source import UNKNOWN, HubSection, Path, child

# Trait -> its value, and its key below the hub's values.
_Traits = dict[str, tuple[object, Path]]
_UNSET: tuple[object, Path] = (None, ())
# What takes users elsewhere, in hooks and classes of the hub's own too; and until when they aren't placed, if UNKNOWN.
_PLACING = {
    "namespace": "podClasses.user.match.namespaceSelector selects the namespace",
    "component_label": "podClasses.user.match.labels.component is the component_label",
    **dict.fromkeys(("scheduler_name", "extra_pod_config"), "replaceSchedulers has the scheduler"),
    **dict.fromkeys(("image", "profile_list", "enable_user_namespaces"), ""),
}
# What isn't known either, then.
_WITH_IT = {"profile_list": ("image", UNKNOWN_IMAGE), "enable_user_namespaces": ("namespace", UNKNOWN)}


def map_reach(draft: Draft, hub: HubSection) -> tuple[list[str], set[str]]:
    """Let class `user` match the pods that the hub makes.

    Returns until when users aren't placed, a clause for each reason; and the traits that were followed.
    """
    traits = traits_of(hub)
    images = ((trait, traits.get(trait, _UNSET)[0]) for trait in ("image", "image_spec"))
    followed = {trait for trait, image in images if isinstance(image, str) and image != UNKNOWN_IMAGE}
    # `component` of extra_labels is overwritten by it.
    component, keys = traits.get("component_label", _UNSET)
    if isinstance(component, str) and component not in ("", UNKNOWN):
        draft.put("podClasses.user.match.labels.component", component, (*hub.path, *keys))
        followed.add("component_label")
    until = [*_follow_namespace(draft, hub, traits, followed), *_other_scheduler(draft, traits)]
    for trait, (value, keys) in traits.items():
        if _PLACING.get(trait) and UNKNOWN in (value, child(value, "schedulerName")):
            line = draft.places.of((*hub.path, *keys))[1]
            until.append(f"{_PLACING[trait]} that {hub.show(keys)} sets in Python (line {line})")
    return until, followed


def _follow_namespace(draft: Draft, hub: HubSection, traits: _Traits, followed: set[str]) -> Iterator[str]:
    (several, keys), (one, key_of_one) = (traits.get(name, _UNSET) for name in ("enable_user_namespaces", "namespace"))
    labels: object = None
    if several is True:
        labels, _ = traits.get("user_namespace_labels", _UNSET)
        if not labels:
            where = f"{hub.show(keys)}: each user has one"
            yield f"podClasses.user.match.namespaceSelector selects the namespaces of users ({where})"
    elif isinstance(one, str) and one not in ("", UNKNOWN):
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
    if isinstance(name, str) and name not in ("", "default-scheduler", UNKNOWN) and [name] not in known:
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
        for trait, known, is_part in _assigned(code):
            before = mapping(found.get(trait, _UNSET)[0]) if is_part else {}
            found[trait] = {**before, **known} if isinstance(known, dict) else known, keys
    return found


def _assigned(code: object) -> Iterator[tuple[str, object, bool]]:
    """Traits that Python sets: of the class, or in a hook; to what; and whether that is a part of the trait's value."""
    try:
        tree = ast.parse(code) if isinstance(code, str) else ast.Module([], [])
        classes = {one.name for one in tree.body if isinstance(one, ast.ClassDef)}
        # Hooks run when all else has been said.
        for line, where, is_sure in sorted(_statements(tree), key=lambda one: one[1] == "hook"):
            for target, value, is_part in _set_by(line):
                *owner, trait = ast.unparse(target).split(".")
                if not where:
                    # c.KubeSpawner.namespace
                    is_read = len(owner) == 2 and (owner[1].endswith("Spawner") or owner[1] in classes)
                else:
                    # spawner.namespace, pod.spec.scheduler_name; in a class of the hub's own: namespace
                    is_own = owner in (["spawner"], ["self"]) or (where == "class" and not owner)
                    is_read = trait in _PLACING if is_own else bool(owner) and trait == "scheduler_name"
                known = _known(trait, value, is_sure=is_sure)
                if is_read and (trait in _PLACING or known != UNKNOWN):
                    yield trait, known, is_part
                    if known == UNKNOWN and trait in _WITH_IT:
                        yield *_WITH_IT[trait], False
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return


def _statements(node: ast.AST, where: str = "", *, is_sure: bool = True) -> Iterator[tuple[ast.AST, str, bool]]:
    """Those below a node; whether in a "class" or a "hook"; and whether none of them stands under a condition."""
    for line in ast.iter_child_nodes(node):
        if isinstance(line, ast.stmt | ast.excepthandler | ast.match_case):
            yield line, where, is_sure
            is_hook = isinstance(line, ast.FunctionDef | ast.AsyncFunctionDef)
            inner = "hook" if is_hook else "class" if isinstance(line, ast.ClassDef) else where
            is_scope = is_hook or inner != where
            yield from _statements(line, inner, is_sure=is_sure and is_scope)
            # Users for whom a hook has returned get nothing of what follows.
            is_sure = is_sure and (is_scope or not any(isinstance(one, ast.Return) for one in ast.walk(line)))


def _set_by(line: ast.AST) -> Iterator[tuple[ast.expr, ast.expr, bool]]:
    """What a statement sets, to what, and whether that is a part of it: `[key] = `, `|=` and `update` add to it."""
    if isinstance(line, ast.Assign):
        for target in line.targets:
            if isinstance(target, ast.Subscript):
                yield target.value, ast.Dict([target.slice], [line.value]), True
            else:
                yield target, line.value, False
    elif isinstance(line, ast.AnnAssign | ast.AugAssign) and line.value is not None:
        yield line.target, line.value, isinstance(line, ast.AugAssign)
    elif isinstance(line, ast.Expr) and isinstance(call := line.value, ast.Call):
        if isinstance(call.func, ast.Attribute) and call.func.attr == "update":
            yield call.func.value, call.args[0] if call.args else ast.Call(ast.Name("dict"), [], call.keywords), True
        elif ast.unparse(call.func) == "setattr" and len(call.args) == 3 and isinstance(call.args[1], ast.Constant):
            yield ast.Attribute(call.args[0], str(call.args[1].value)), call.args[2], False


def _known(trait: str, value: ast.expr | None, *, is_sure: bool) -> object:
    """A value that is written out; of extra_pod_config each entry, and the scheduler's name where one may hold it."""
    if trait != "extra_pod_config":
        try:
            if is_sure and value is not None:
                return ast.literal_eval(value)
        except (ValueError, TypeError, SyntaxError):
            pass
        return UNKNOWN_IMAGE if trait == "image" else UNKNOWN
    if isinstance(value, ast.Call) and ast.unparse(value.func) == "dict" and not value.args:
        value = ast.Dict([ast.Constant(one.arg) for one in value.keywords], [one.value for one in value.keywords])
    found: dict[str, object] = {}
    for key, item in zip(value.keys, value.values, strict=True) if isinstance(value, ast.Dict) else [(None, None)]:
        name = key.value if isinstance(key, ast.Constant) else None
        known = _known("", item, is_sure=is_sure and name is not None)
        if known != UNKNOWN or name in (None, "schedulerName", "scheduler_name"):
            found[str(name or "schedulerName")] = known
    return found
