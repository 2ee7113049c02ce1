"""Whether users' pods are within Roost's reach: what decides their namespace, labels and scheduler
in the hub.

Read are traits below `hub.config`, `singleuser.extraPodConfig` and `extraLabels`, and what the
hub's Python writes out: `c.KubeSpawner.namespace = "lab"`, `setattr`, lambdas, spawners and pods in
hooks. Later ones win. What stands under a condition, or isn't written out, is UNKNOWN. Source:
KubeSpawner 7, traits; zero-to-jupyterhub 4.4, jupyterhub_config.py.
"""

from __future__ import annotations

import ast
import builtins
import json
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Final

from generator.checks.contract import mapping
from generator.importing.profile_pools import UNKNOWN_IMAGE, mark_defaults
from generator.importing.result import Draft
from generator.importing.source import UNKNOWN, HubSection, Path, child
from generator.importing.unread import python_of

# Trait -> its value, and its key below the hub's values.
_Traits = dict[str, tuple[object, Path]]
_UNSET: tuple[object, Path] = (None, ())
LIMITS: Final = ("concurrent_spawn_limit", "active_server_limit")
# Not of the spawner.
_OF_JUPYTERHUB: Final = ("spawner_class", *LIMITS)
# What takes users elsewhere, in hooks and classes of the hub's own too; and until when they aren't
# placed, if UNKNOWN.
_PLACING = {
    "namespace": "podClasses.user.match.namespaceSelector selects the namespace",
    "component_label": "podClasses.user.match.labels.component is the component_label",
    **dict.fromkeys(("scheduler_name", "extra_pod_config"), "replaceSchedulers has the scheduler"),
    **dict.fromkeys(("image", "profile_list", "enable_user_namespaces", *LIMITS), ""),
}
# A trait whose name isn't written out, and what may set one.
ANY: Final = "*"
_ANY_TRAIT: Final = ["c", "Spawner", ANY]
_JUPYTERHUB: Final = ["c", "JupyterHub"]
_SETS_ANY: Final = {"setattr", "exec", "eval", "vars", "load_subconfig"}
_HOOKS: Final = {"pre_spawn_hook", "modify_pod_hook", "auth_state_hook", "spawner_class"}
_OF_PODS: Final[Mapping[tuple[str, ...], str]] = {
    ("scheduler_name",): "scheduler_name",
    ("metadata", "namespace"): "namespace",
    ("metadata", "labels", "component"): "component_label",
    ("metadata", ANY): ANY,
    ("spec", ANY): ANY,
}
# What a class makes pods of.
_MAKERS: Final = ("get_pod_manifest", "_build_common_labels", "_build_pod_labels")
# By module, which of its names make objects, and change none: functions, and traits and classes
# without any.
_MADE_FROM: Final[Mapping[str | None, Callable[[str], bool]]] = {
    "kubespawner.objects": lambda _: True,
    **dict.fromkeys(
        ("traitlets", "traitlets.config"), lambda name: name[0].isupper() and name != "Config"
    ),
}
_SCOPES: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_NOT_READ: Final = ast.Name("not_read")
_PROFILES: Final = ["c", "KubeSpawner", "profile_list"]
# A statement, its owners, whether it runs for all; names, what is set there, whether that is a
# part.
_Line = tuple[ast.AST, frozenset[str], bool]
_Setting = tuple[list[str], ast.expr, bool]
# What isn't known either, then.
_WITH_IT = {
    "profile_list": ("image", UNKNOWN_IMAGE),
    "enable_user_namespaces": ("namespace", UNKNOWN),
}


def map_reach(draft: Draft, hub: HubSection) -> tuple[list[str], set[str]]:
    """Let class `user` match the pods that the hub makes.

    Returns until when users aren't placed, a clause for each reason; and the traits that were
    followed.
    """
    traits = traits_of(hub)
    images = ((trait, traits.get(trait, _UNSET)[0]) for trait in ("image", "image_spec"))
    followed = {
        trait for trait, image in images if isinstance(image, str) and image != UNKNOWN_IMAGE
    }
    followed |= (
        {"profile_list"}
        if isinstance(traits.get("profile_list", _UNSET)[0], list | dict)
        else set()
    )
    # `component` of extra_labels is overwritten by it.
    component, keys = traits.get("component_label", _UNSET)
    if isinstance(component, str) and component not in ("", UNKNOWN):
        draft.put("podClasses.user.match.labels.component", component, (*hub.path, *keys))
        followed.add("component_label")
    until = [*_follow_namespace(draft, hub, traits, followed), *_other_scheduler(draft, traits)]
    if ANY in traits:
        line, keys = traits[ANY]
        until.append(
            f"podClasses.user.match and replaceSchedulers fit what {hub.show(keys)} does in Python"
            f" (line {draft.places.of((*hub.path, *keys))[1]}: {line})"
        )
    for trait, (value, keys) in traits.items():
        if _PLACING.get(trait) and UNKNOWN in (value, child(value, "schedulerName")):
            line = draft.places.of((*hub.path, *keys))[1]
            until.append(f"{_PLACING[trait]} that {hub.show(keys)} sets in Python (line {line})")
    return until, followed


def _follow_namespace(
    draft: Draft, hub: HubSection, traits: _Traits, followed: set[str]
) -> Iterator[str]:
    (several, keys), (one, key_of_one) = (
        traits.get(name, _UNSET) for name in ("enable_user_namespaces", "namespace")
    )
    labels: object = None
    if several is True:
        labels, _ = traits.get("user_namespace_labels", _UNSET)
        if not labels:
            where = f"{hub.show(keys)}: each user has one"
            yield (
                f"podClasses.user.match.namespaceSelector selects the namespaces of users ({where})"
            )
    elif isinstance(one, str) and one not in ("", UNKNOWN):
        labels = {"kubernetes.io/metadata.name": one}
        keys = key_of_one
    if isinstance(labels, Mapping) and labels:
        selector = {"matchLabels": dict(labels)}
        why = "The hub makes its users' pods there."
        draft.put("podClasses.user.match.namespaceSelector", selector, (*hub.path, *keys), why)
        followed |= {"enable_user_namespaces", "namespace", "user_namespace_template"}


def _other_scheduler(draft: Draft, traits: _Traits) -> Iterator[str]:
    name = child(traits.get("extra_pod_config", _UNSET)[0], "schedulerName")
    name = name or traits.get("scheduler_name", _UNSET)[0]
    known = [piece.value for piece in draft.pieces if piece.path == ("replaceSchedulers",)]
    if (
        isinstance(name, str)
        and name not in ("", "default-scheduler", UNKNOWN)
        and [name] not in known
    ):
        yield f"replaceSchedulers has {name}, the scheduler that the hub names in its users' pods"


def traits_of(hub: HubSection) -> _Traits:
    """What the hub sets of its spawner, by trait."""
    found: _Traits = {}
    for key, trait in (("extraPodConfig", "extra_pod_config"), ("extraLabels", "extra_labels")):
        if value := mapping(child(hub.data, "singleuser", key)):
            found[trait] = value, ("singleuser", key)
    for name, traits in mapping(child(hub.data, "hub", "config")).items():
        if str(name).endswith("Spawner") and isinstance(traits, Mapping):
            found |= {
                key: (value, ("hub", "config", name, key)) for key, value in traits.items() if value
            }
    for trait in _OF_JUPYTERHUB:
        at = ("hub", "config", "JupyterHub", trait)
        if (own := child(hub.data, *at)) not in (None, ""):
            found[trait] = own, at
    # What hooks may name: all code runs in one module.
    known = {
        *dir(builtins),
        *sys.stdlib_module_names,
        "c",
        "partial",
        "kubespawner",
        "KubeSpawner",
        "get_config",
    }
    known.add("super()")  # a base that nobody has read is named with its class
    has_profiles = bool(child(hub.data, "singleuser", "profileList"))
    for keys, code in python_of(hub):
        for trait, set_to, is_part in _assigned(
            code, known, has_profiles=has_profiles or "profile_list" in found
        ):
            before = mapping(found.get(trait, _UNSET)[0]) if is_part else {}
            found[trait] = {**before, **set_to} if isinstance(set_to, dict) else set_to, keys
            if trait == "profile_list":
                mark_defaults(set_to)
    own, keys = found.get("spawner_class", _UNSET)
    if isinstance(own, str) and own != UNKNOWN and not own.lower().startswith("kubespawner"):
        found[ANY] = f"the class {own}", keys
    return found


def _assigned(
    code: str, known: set[str], *, has_profiles: bool
) -> Iterator[tuple[str, object, bool]]:
    """Traits that Python sets: of the class, or in a hook; to what; and whether that is a part of
    the trait's value.

    ANY is one whose name isn't written out; its value is the statement. known: names of what was
    read; more are added. has_profiles: false where the list is empty, as in the chart, and a filter
    that asks for it doesn't run.
    """
    try:
        tree = ast.parse(code)
        classes = {one.name for one in tree.body if isinstance(one, ast.ClassDef)}
        # Some code calls other things c, too.
        others = {
            one.id
            for one in ast.walk(tree)
            if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
        }
        others -= {"c"} if "c = get_config()" in ast.unparse(tree) else set()
        skipped: set[ast.AST] = set()
        # Hooks run when all else has been said.
        for line, around, is_sure in sorted(_statements(tree), key=lambda one: "spawner" in one[1]):
            if isinstance(line, ast.If) and not has_profiles and _steps(line.test) == _PROFILES:
                skipped |= {one for below in line.body for one in ast.walk(below)}
            if line in skipped:
                continue
            parts = [*_parts(line)]
            owners = around | _arguments(line)
            names = [one for one in parts if isinstance(one, ast.Name)]
            made = {one.id for one in names if isinstance(one.ctx, ast.Store)}
            is_read = {one.id for one in names} <= known | owners | made
            if isinstance(line, ast.ImportFrom) and line.module in _MADE_FROM:
                is_made = _MADE_FROM[line.module]
                known |= {one.asname or one.name for one in line.names if is_made(one.name)}
            if isinstance(line, _SCOPES) and (is_read or not isinstance(line, ast.ClassDef)):
                known.add(line.name)
            elif is_read:
                known |= made
            is_plain = is_sure and not any(
                isinstance(one, ast.IfExp | ast.BoolOp | ast.comprehension) for one in parts
            )
            # What nobody has read gets a spawner or a pod.
            called = [one for one in parts if isinstance(one, ast.Call)]
            unread = [
                one
                for one in called
                if ast.unparse(one.func).partition(".")[0] not in known | owners
            ]
            given = {
                ast.unparse(one)
                for call in unread
                for one in (*call.args, *(kw.value for kw in call.keywords))
            }
            handed = [(_ANY_TRAIT, _NOT_READ, False)] if given & (owners - {"self"}) else []
            for steps, value, is_part in [*_set_by(line, parts, others), *handed]:
                if steps == [*_JUPYTERHUB, ANY]:
                    yield from ((limit, UNKNOWN, False) for limit in LIMITS)
                trait, *below = _trait_of(steps, owners, classes)
                has_profiles = has_profiles or trait in ("profile_list", ANY)
                if trait == ANY or (trait in _HOOKS and not is_read):
                    yield ANY, ast.unparse(line).splitlines()[0], False
                    continue
                # A part of it, by its first key.
                whole = ast.Dict([ast.Constant(below[0])], [value]) if below else value
                said = _known(trait, whole, is_sure=is_plain and len(below) < 2)
                if trait in _PLACING or (said != UNKNOWN and steps[0] == "c"):
                    yield trait, said, is_part or bool(below)
                    if said == UNKNOWN and trait in _WITH_IT:
                        yield *_WITH_IT[trait], False
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        yield ANY, "no valid Python", False


def _arguments(line: ast.AST) -> frozenset[str]:
    return frozenset(one.arg for one in _parts(line) if isinstance(one, ast.arg))


def _statements(
    node: ast.AST, owners: frozenset[str] = frozenset(), *, is_sure: bool = True
) -> Iterator[_Line]:
    """Those below a node, in hooks with the names of their arguments, in classes with ""; and
    whether each runs.
    """
    for line in ast.iter_child_nodes(node):
        if isinstance(line, ast.stmt | ast.excepthandler | ast.match_case):
            yield line, owners, is_sure
            is_scope = isinstance(line, _SCOPES)
            inner = owners - {""} | {"spawner", "self"} | _arguments(line) if is_scope else owners
            inner = frozenset({""}) if isinstance(line, ast.ClassDef) else inner
            yield from _statements(line, inner, is_sure=is_sure and is_scope)
            # Users for whom a hook has returned get nothing of what follows.
            is_sure = is_sure and (
                is_scope or not any(isinstance(one, ast.Return) for one in ast.walk(line))
            )


def _parts(line: ast.AST) -> Iterator[ast.AST]:
    """The expressions of a statement, without those of statements in it."""
    for part in ast.iter_child_nodes(line):
        if not isinstance(part, ast.stmt | ast.excepthandler | ast.match_case):
            yield part
            yield from _parts(part)


def _set_by(line: ast.AST, parts: Sequence[ast.AST], others: Collection[str]) -> Iterator[_Setting]:
    """What a statement sets, to what, and whether that is a part of it: `[key] = `, `|=` and
    `update` add to it.

    others: names that the code gives to things of its own.
    """
    if isinstance(line, ast.Assign | ast.Delete):
        for target in line.targets:
            several = target.elts if isinstance(target, ast.Tuple) else []
            yield from ((_steps(one), _NOT_READ, False) for one in several)
            yield from _each(_steps(target), getattr(line, "value", _NOT_READ), is_part=False)
    elif isinstance(line, ast.AnnAssign | ast.AugAssign) and line.value is not None:
        is_part = isinstance(line, ast.AugAssign)
        # What a list was before isn't known here.
        value = _NOT_READ if is_part and _items(line.value) is None else line.value
        yield from _each(_steps(line.target), value, is_part=is_part)
    elif isinstance(line, ast.FunctionDef | ast.AsyncFunctionDef):
        yield [ANY if line.name in _MAKERS else line.name], _NOT_READ, False
        yield [line.name.removesuffix("_default").lstrip("_")], _NOT_READ, False
        for call in (one for one in line.decorator_list if isinstance(one, ast.Call) and one.args):
            yield (
                [_key(call.args[0])] if ast.unparse(call.func).endswith("default") else [""],
                _NOT_READ,
                False,
            )
    # What is used, but for a key or a trait of it.
    read: set[ast.AST] = {
        one.value for one in parts if isinstance(one, ast.Attribute | ast.Subscript)
    }
    for call in (part for part in parts if isinstance(part, ast.Call)):
        owner = [call.func.value] if isinstance(call.func, ast.Attribute) else []
        name = _steps(call.func)[-1]
        arguments = [*owner, *call.args]
        if name == "update" and owner:
            given = call.args[0] if call.args else ast.Call(ast.Name("dict"), [], call.keywords)
            yield from _each(_steps(owner[0]), given, is_part=True)
        elif name in ("append", "extend", "insert") and owner:
            yield _steps(owner[0]), _NOT_READ, False
        elif name in ("setattr", "set_trait") and len(arguments) == 3:
            yield _steps(ast.Subscript(arguments[0], arguments[1])), arguments[2], False
            read |= {call.func, arguments[0]}
        elif name == "setup_ui":
            # Of jupyterhub_fancy_profiles: the form of profiles.
            read |= {*call.args}
    for part in parts:
        if (
            isinstance(part, ast.Name | ast.Attribute)
            and isinstance(part.ctx, ast.Load)
            and part not in read
        ):
            steps = _steps(part)
            is_spawner = steps[0] == "c" and (
                (len(steps) == 2 and steps[1].endswith("Spawner")) or steps == ["c"]
            )
            if (is_spawner and "c" not in others) or steps[0] in _SETS_ANY:
                yield _ANY_TRAIT, _NOT_READ, False
            if steps in (["c"], _JUPYTERHUB) and "c" not in others:
                yield [*_JUPYTERHUB, ANY], _NOT_READ, False


def _each(steps: list[str], value: ast.expr, *, is_part: bool) -> Iterator[_Setting]:
    """Of a mapping of traits or labels, or of one of classes, each entry."""
    items = _items(value)
    if steps[-2:] != ["metadata", "labels"] and not (steps[0] == "c" and len(steps) < 3):
        yield steps, value, is_part
    elif items is not None:
        for key, item in items:
            yield from _each([*steps, key], item, is_part=False)
    elif len(steps) == 2:
        yield [*steps, ANY], value, False


def _steps(target: ast.expr) -> list[str]:
    """The names of which `c.KubeSpawner["namespace"]` is made; ANY for one that isn't written
    out.
    """
    if isinstance(target, ast.Attribute):
        return [*_steps(target.value), *([] if target.attr == "__dict__" else [target.attr])]
    return (
        [*_steps(target.value), _key(target.slice)]
        if isinstance(target, ast.Subscript)
        else [ast.unparse(target)]
    )


def _key(key: ast.expr | None) -> str:
    return str(key.value) if isinstance(key, ast.Constant) else ANY


def _items(value: ast.expr) -> list[tuple[str, ast.expr]] | None:
    """The entries of a dictionary that is written out, as `{"key": value}` or `dict(key=value)`."""
    if isinstance(value, ast.Call) and ast.unparse(value.func) == "dict" and not value.args:
        return [(one.arg or ANY, one.value) for one in value.keywords]
    return (
        [*zip(map(_key, value.keys), value.values, strict=True)]
        if isinstance(value, ast.Dict)
        else None
    )


def _trait_of(steps: list[str], owners: frozenset[str], classes: Collection[str]) -> list[str]:
    """The trait that is set, and the keys below it; [""] for none. owners: of a hook, what may be
    spawner or pod.
    """
    if steps[0] == "c":
        is_spawner = len(steps) > 2 and (steps[1].endswith("Spawner") or steps[1] in classes)
        return steps[2:] if is_spawner or (len(steps) == 3 and steps[2] in _OF_JUPYTERHUB) else [""]
    if len(steps) == 1:
        return steps if "" in owners else [""]
    ends = {**_OF_PODS, ("image",): "image"} if "containers" in steps else _OF_PODS
    trait = next((trait for end, trait in ends.items() if tuple(steps[-len(end) :]) == end), "")
    return [trait] if trait else steps[1:] if steps[0] in owners else [""]


def _known(trait: str, value: ast.expr, *, is_sure: bool) -> object:
    """A value that is written out; of extra_pod_config each entry, and the scheduler's name where
    one may hold it.
    """
    if trait != "extra_pod_config":
        try:
            if is_sure:
                # As values have it: tuples are lists, and a set or a number without end is none.
                return json.loads(
                    json.dumps(
                        ast.literal_eval(value), allow_nan=False, ensure_ascii=False
                    ).encode()
                )
        except (ValueError, TypeError, SyntaxError):
            pass
        return UNKNOWN_IMAGE if trait == "image" else UNKNOWN
    found: dict[str, object] = {}
    for name, item in _items(value) or [(ANY, _NOT_READ)]:
        known = _known("", item, is_sure=is_sure and name != ANY)
        if known != UNKNOWN or name in (ANY, "schedulerName", "scheduler_name"):
            found["schedulerName" if name == ANY else name] = known
    return found
