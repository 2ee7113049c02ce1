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
from typing import Final, NamedTuple

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
# Traits that take users elsewhere, also where hooks and classes of the hub's own set them. If one
# is UNKNOWN, users aren't placed until what stands beside it.
_PLACING: Final = {
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
# Functions and methods that set a trait by its name.
_SETTERS: Final = ("setattr", "set_trait")
_HOOKS: Final = {"pre_spawn_hook", "modify_pod_hook", "auth_state_hook", "spawner_class"}
_OF_PODS: Final[Mapping[tuple[str, ...], str]] = {
    ("scheduler_name",): "scheduler_name",
    ("metadata", "namespace"): "namespace",
    ("metadata", "labels", "component"): "component_label",
    ("metadata", ANY): ANY,
    ("spec", ANY): ANY,
}
# Methods in which a class makes pods.
_MAKERS: Final = ("get_pod_manifest", "_build_common_labels", "_build_pod_labels")
# By module, which of its names make objects, and change none: functions, and traits and classes
# without any.
_MADE_FROM: Final[Mapping[str | None, Callable[[str], bool]]] = {
    "kubespawner.objects": lambda _: True,
    **dict.fromkeys(
        ("traitlets", "traitlets.config"), lambda name: name[0].isupper() and name != "Config"
    ),
}
# Names that hooks may use, beside those that the code before them made.
_KNOWN_NAMES: Final = frozenset(
    {
        *dir(builtins),
        *sys.stdlib_module_names,
        *("c", "partial", "kubespawner", "KubeSpawner", "get_config"),
        "super()",  # a base that nobody has read is named with its class
    }
)
_SCOPES: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
# In place of a value that isn't written out.
_NOT_READ: Final = ast.Name("not_read")
_PROFILES: Final = ["c", "KubeSpawner", "profile_list"]
# If the trait isn't known, this one isn't either.
_WITH_IT: Final = {
    "profile_list": ("image", UNKNOWN_IMAGE),
    "enable_user_namespaces": ("namespace", UNKNOWN),
}


class _Statement(NamedTuple):
    """A statement of the hub's Python, and where it stands."""

    line: ast.AST
    # In a hook the names of its arguments, which may be a spawner or a pod; in a class "".
    owners: frozenset[str]
    # Whether it runs for all users.
    is_sure: bool


class _Setting(NamedTuple):
    """What a statement sets."""

    # The names of which the target is made: c, KubeSpawner, namespace.
    steps: list[str]
    value: ast.expr
    # Whether it is added to what was there.
    is_part: bool = False


class _TraitValue(NamedTuple):
    """What a trait is set to. Of ANY, the value is the statement."""

    trait: str
    value: object
    # Whether it is added to what was there.
    is_part: bool = False


def map_reach(draft: Draft, hub: HubSection) -> tuple[list[str], set[str]]:
    """Let class `user` match the pods that the hub makes.

    Returns until when users aren't placed, a clause for each reason; and the traits that were
    followed.
    """
    traits = traits_of(hub)
    followed: set[str] = set()
    for trait in ("image", "image_spec"):
        image, _ = traits.get(trait, _UNSET)
        if isinstance(image, str) and image != UNKNOWN_IMAGE:
            followed.add(trait)
    profiles, _ = traits.get("profile_list", _UNSET)
    if isinstance(profiles, list | dict):
        followed.add("profile_list")
    # `component` of extra_labels is overwritten by it.
    component, keys = traits.get("component_label", _UNSET)
    if isinstance(component, str) and component not in ("", UNKNOWN):
        draft.put("podClasses.user.match.labels.component", component, (*hub.path, *keys))
        followed.add("component_label")
    until = [*_follow_namespace(draft, hub, traits, followed), *_other_scheduler(draft, traits)]
    if ANY in traits:
        statement, keys = traits[ANY]
        line = draft.places.of((*hub.path, *keys))[1]
        until.append(
            f"podClasses.user.match and replaceSchedulers fit what {hub.show(keys)} does in Python"
            f" (line {line}: {statement})"
        )
    for trait, (value, keys) in traits.items():
        if _PLACING.get(trait) and UNKNOWN in (value, child(value, "schedulerName")):
            line = draft.places.of((*hub.path, *keys))[1]
            until.append(f"{_PLACING[trait]} that {hub.show(keys)} sets in Python (line {line})")
    return until, followed


def _follow_namespace(
    draft: Draft, hub: HubSection, traits: _Traits, followed: set[str]
) -> Iterator[str]:
    each_user_has_one, keys = traits.get("enable_user_namespaces", _UNSET)
    namespace, namespace_keys = traits.get("namespace", _UNSET)
    labels: object = None
    if each_user_has_one is True:
        labels, _ = traits.get("user_namespace_labels", _UNSET)
        if not labels:
            where = f"{hub.show(keys)}: each user has one"
            yield (
                f"podClasses.user.match.namespaceSelector selects the namespaces of users ({where})"
            )
    elif isinstance(namespace, str) and namespace not in ("", UNKNOWN):
        labels = {"kubernetes.io/metadata.name": namespace}
        keys = namespace_keys
    if isinstance(labels, Mapping) and labels:
        selector = {"matchLabels": dict(labels)}
        why = "The hub makes its users' pods there."
        draft.put("podClasses.user.match.namespaceSelector", selector, (*hub.path, *keys), why)
        followed |= {"enable_user_namespaces", "namespace", "user_namespace_template"}


def _other_scheduler(draft: Draft, traits: _Traits) -> Iterator[str]:
    pod_config, _ = traits.get("extra_pod_config", _UNSET)
    name = child(pod_config, "schedulerName") or traits.get("scheduler_name", _UNSET)[0]
    if not isinstance(name, str) or name in ("", "default-scheduler", UNKNOWN):
        return
    replaced = [piece.value for piece in draft.pieces if piece.path == ("replaceSchedulers",)]
    if [name] not in replaced:
        yield f"replaceSchedulers has {name}, the scheduler that the hub names in its users' pods"


def traits_of(hub: HubSection) -> _Traits:
    """What the hub sets of its spawner, by trait."""
    found: _Traits = {}
    for key, trait in (("extraPodConfig", "extra_pod_config"), ("extraLabels", "extra_labels")):
        value = mapping(child(hub.data, "singleuser", key))
        if value:
            found[trait] = (value, ("singleuser", key))
    for name, traits in mapping(child(hub.data, "hub", "config")).items():
        if str(name).endswith("Spawner") and isinstance(traits, Mapping):
            for trait, value in traits.items():
                if value:
                    found[trait] = (value, ("hub", "config", name, trait))
    for trait in _OF_JUPYTERHUB:
        at = ("hub", "config", "JupyterHub", trait)
        own = child(hub.data, *at)
        if own not in (None, ""):
            found[trait] = (own, at)
    # All code runs in one module: what one piece makes, hooks of the next may name.
    known = set(_KNOWN_NAMES)
    has_profiles = bool(child(hub.data, "singleuser", "profileList"))
    for keys, code in python_of(hub):
        listed = has_profiles or "profile_list" in found
        for trait, set_to, is_part in _assigned(code, known, has_profiles=listed):
            now = set_to
            if isinstance(set_to, dict):
                before = mapping(found.get(trait, _UNSET)[0]) if is_part else {}
                now = {**before, **set_to}
            found[trait] = (now, keys)
            if trait == "profile_list":
                mark_defaults(set_to)
    spawner, keys = found.get("spawner_class", _UNSET)
    is_known = isinstance(spawner, str) and spawner != UNKNOWN
    if is_known and not str(spawner).lower().startswith("kubespawner"):
        found[ANY] = (f"the class {spawner}", keys)
    return found


def _assigned(code: str, known: set[str], *, has_profiles: bool) -> Iterator[_TraitValue]:
    """Traits that Python sets: of the class, or in a hook.

    known: names of what was read; more are added. has_profiles: false where the list is empty, as
    in the chart, and a filter that asks for it doesn't run.
    """
    try:
        tree = ast.parse(code)
        yield from _HubCode(tree, known, has_profiles=has_profiles).traits()
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        yield _TraitValue(ANY, "no valid Python")


class _HubCode:
    """A piece of the hub's Python, and what is known while it is read."""

    def __init__(self, tree: ast.Module, known: set[str], *, has_profiles: bool) -> None:
        self._tree = tree
        self._known = known
        self._has_profiles = has_profiles
        self._classes = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
        # Names that the code gives to things of its own. Some code calls other things c, too.
        self._own_names = {
            node.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }
        if "c = get_config()" in ast.unparse(tree):
            self._own_names.discard("c")

    def traits(self) -> Iterator[_TraitValue]:
        """What is set, in the order in which it runs."""
        skipped: set[ast.AST] = set()
        # Hooks run when all else has been said.
        for statement in sorted(_statements(self._tree), key=_is_in_hook):
            line = statement.line
            if isinstance(line, ast.If) and self._never_runs(line):
                for inner in line.body:
                    skipped.update(ast.walk(inner))
            if line not in skipped:
                yield from self._traits_of(statement)

    def _never_runs(self, line: ast.If) -> bool:
        """Whether it asks for profiles where there are none."""
        return not self._has_profiles and _steps(line.test) == _PROFILES

    def _traits_of(self, statement: _Statement) -> Iterator[_TraitValue]:
        line = statement.line
        parts = [*_parts(line)]
        owners = statement.owners | _arguments(line)
        is_read = self._add_names(line, parts, owners)
        is_plain = statement.is_sure and not any(
            isinstance(part, ast.IfExp | ast.BoolOp | ast.comprehension) for part in parts
        )
        settings = [*_set_by(line, parts, self._own_names)]
        if self._hands_over(parts, owners):
            settings.append(_Setting(_ANY_TRAIT, _NOT_READ))
        for setting in settings:
            if setting.steps == [*_JUPYTERHUB, ANY]:
                for limit in LIMITS:
                    yield _TraitValue(limit, UNKNOWN)
            trait, *below = _trait_of(setting.steps, owners, self._classes)
            self._has_profiles = self._has_profiles or trait in ("profile_list", ANY)
            if trait == ANY or (trait in _HOOKS and not is_read):
                yield _TraitValue(ANY, ast.unparse(line).splitlines()[0])
                continue
            given = setting.value
            if below:
                # A part of the trait, by its first key.
                given = ast.Dict([ast.Constant(below[0])], [given])
            value = _known(trait, given, is_sure=is_plain and len(below) < 2)
            if trait in _PLACING or (value != UNKNOWN and setting.steps[0] == "c"):
                yield _TraitValue(trait, value, setting.is_part or bool(below))
                if value == UNKNOWN and trait in _WITH_IT:
                    yield _TraitValue(*_WITH_IT[trait])

    def _add_names(self, line: ast.AST, parts: Sequence[ast.AST], owners: frozenset[str]) -> bool:
        """Add the names that a statement makes of what was read. Returns whether it names only
        such.
        """
        names = [part for part in parts if isinstance(part, ast.Name)]
        made = {name.id for name in names if isinstance(name.ctx, ast.Store)}
        is_read = {name.id for name in names} <= self._known | owners | made
        if isinstance(line, ast.ImportFrom) and line.module in _MADE_FROM:
            makes_objects = _MADE_FROM[line.module]
            for alias in line.names:
                if makes_objects(alias.name):
                    self._known.add(alias.asname or alias.name)
        if isinstance(line, _SCOPES) and (is_read or not isinstance(line, ast.ClassDef)):
            self._known.add(line.name)
        elif is_read:
            self._known |= made
        return is_read

    def _hands_over(self, parts: Sequence[ast.AST], owners: frozenset[str]) -> bool:
        """Whether something that nobody has read gets a spawner or a pod."""
        given: set[str] = set()
        for call in _calls(parts):
            called, _, _ = ast.unparse(call.func).partition(".")
            if called not in self._known | owners:
                arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
                given |= {ast.unparse(argument) for argument in arguments}
        return bool(given & (owners - {"self"}))


def _is_in_hook(statement: _Statement) -> bool:
    return "spawner" in statement.owners


def _arguments(line: ast.AST) -> frozenset[str]:
    return frozenset(part.arg for part in _parts(line) if isinstance(part, ast.arg))


def _calls(parts: Sequence[ast.AST]) -> list[ast.Call]:
    return [part for part in parts if isinstance(part, ast.Call)]


def _statements(
    node: ast.AST, owners: frozenset[str] = frozenset(), *, is_sure: bool = True
) -> Iterator[_Statement]:
    """The statements below a node. owners and is_sure: as of a _Statement, of the node itself."""
    for line in ast.iter_child_nodes(node):
        if not isinstance(line, ast.stmt | ast.excepthandler | ast.match_case):
            continue
        yield _Statement(line, owners, is_sure)
        is_scope = isinstance(line, _SCOPES)
        inner = owners
        if isinstance(line, ast.ClassDef):
            inner = frozenset({""})
        elif is_scope:
            inner = owners - {""} | {"spawner", "self"} | _arguments(line)
        yield from _statements(line, inner, is_sure=is_sure and is_scope)
        # Users for whom a hook has returned get nothing of what follows.
        if is_sure and not is_scope:
            is_sure = not any(isinstance(part, ast.Return) for part in ast.walk(line))


def _parts(line: ast.AST) -> Iterator[ast.AST]:
    """The expressions of a statement, without those of statements in it."""
    for part in ast.iter_child_nodes(line):
        if not isinstance(part, ast.stmt | ast.excepthandler | ast.match_case):
            yield part
            yield from _parts(part)


def _set_by(
    line: ast.AST, parts: Sequence[ast.AST], own_names: Collection[str]
) -> Iterator[_Setting]:
    """What a statement sets: itself, by calls in it, and by using what holds traits.

    own_names: names that the code gives to things of its own.
    """
    yield from _set_by_statement(line)
    # What is used, but for a key or a trait of it.
    looked_into: set[ast.AST] = {
        part.value for part in parts if isinstance(part, ast.Attribute | ast.Subscript)
    }
    for call in _calls(parts):
        yield from _set_by_call(call)
        called = _steps(call.func)[-1]
        arguments = _arguments_of(call)
        if called in _SETTERS and len(arguments) == 3:
            looked_into |= {call.func, arguments[0]}
        elif called == "setup_ui":
            # Of jupyterhub_fancy_profiles: the form of profiles.
            looked_into |= {*call.args}
    names = [part for part in parts if isinstance(part, ast.Name | ast.Attribute)]
    for name in names:
        if isinstance(name.ctx, ast.Load) and name not in looked_into:
            yield from _set_by_use(_steps(name), own_names)


def _set_by_statement(line: ast.AST) -> Iterator[_Setting]:
    """By `=`, `del`, an annotation or `|=`, which adds to what is there; and by a function, which
    may be a hook, a default or a method that makes pods.
    """
    if isinstance(line, ast.Assign | ast.Delete):
        for target in line.targets:
            several = target.elts if isinstance(target, ast.Tuple) else []
            for element in several:
                yield _Setting(_steps(element), _NOT_READ)
            yield from _each(_steps(target), getattr(line, "value", _NOT_READ), is_part=False)
    elif isinstance(line, ast.AnnAssign | ast.AugAssign) and line.value is not None:
        is_part = isinstance(line, ast.AugAssign)
        # What a list was before isn't known here.
        value = _NOT_READ if is_part and _items(line.value) is None else line.value
        yield from _each(_steps(line.target), value, is_part=is_part)
    elif isinstance(line, ast.FunctionDef | ast.AsyncFunctionDef):
        yield _Setting([ANY if line.name in _MAKERS else line.name], _NOT_READ)
        yield _Setting([line.name.removesuffix("_default").lstrip("_")], _NOT_READ)
        for decorator in line.decorator_list:
            if isinstance(decorator, ast.Call) and decorator.args:
                is_default = ast.unparse(decorator.func).endswith("default")
                trait = _key(decorator.args[0]) if is_default else ""
                yield _Setting([trait], _NOT_READ)


def _set_by_call(call: ast.Call) -> Iterator[_Setting]:
    """By `update`, which adds to what is there, a change of a list, or `setattr`."""
    name = _steps(call.func)[-1]
    arguments = _arguments_of(call)
    if isinstance(call.func, ast.Attribute):
        owner = _steps(call.func.value)
        if name == "update":
            given = call.args[0] if call.args else ast.Call(ast.Name("dict"), [], call.keywords)
            yield from _each(owner, given, is_part=True)
        elif name in ("append", "extend", "insert"):
            yield _Setting(owner, _NOT_READ)
    if name in _SETTERS and len(arguments) == 3:
        yield _Setting(_steps(ast.Subscript(arguments[0], arguments[1])), arguments[2])


def _arguments_of(call: ast.Call) -> list[ast.expr]:
    """Positional ones, the object of a method first."""
    owner = [call.func.value] if isinstance(call.func, ast.Attribute) else []
    return [*owner, *call.args]


def _set_by_use(steps: list[str], own_names: Collection[str]) -> Iterator[_Setting]:
    """Whoever gets the whole configuration, or what sets any name, may set any trait."""
    is_config = steps[0] == "c" and "c" not in own_names
    is_spawner = len(steps) == 2 and steps[1].endswith("Spawner")
    if (is_config and (steps == ["c"] or is_spawner)) or steps[0] in _SETS_ANY:
        yield _Setting(_ANY_TRAIT, _NOT_READ)
    if is_config and steps in (["c"], _JUPYTERHUB):
        yield _Setting([*_JUPYTERHUB, ANY], _NOT_READ)


def _each(steps: list[str], value: ast.expr, *, is_part: bool) -> Iterator[_Setting]:
    """Of a mapping of traits or labels, or of one of classes, each entry."""
    items = _items(value)
    has_traits = steps[0] == "c" and len(steps) < 3
    if steps[-2:] != ["metadata", "labels"] and not has_traits:
        yield _Setting(steps, value, is_part)
    elif items is not None:
        for key, item in items:
            yield from _each([*steps, key], item, is_part=False)
    elif len(steps) == 2:
        yield _Setting([*steps, ANY], value)


def _steps(target: ast.expr) -> list[str]:
    """The names of which `c.KubeSpawner["namespace"]` is made; ANY for one that isn't written
    out.
    """
    if isinstance(target, ast.Attribute):
        owner = _steps(target.value)
        return owner if target.attr == "__dict__" else [*owner, target.attr]
    if isinstance(target, ast.Subscript):
        return [*_steps(target.value), _key(target.slice)]
    return [ast.unparse(target)]


def _key(key: ast.expr | None) -> str:
    return str(key.value) if isinstance(key, ast.Constant) else ANY


def _items(value: ast.expr) -> list[tuple[str, ast.expr]] | None:
    """The entries of a dictionary that is written out, as `{"key": value}` or `dict(key=value)`."""
    if isinstance(value, ast.Call) and ast.unparse(value.func) == "dict" and not value.args:
        return [(keyword.arg or ANY, keyword.value) for keyword in value.keywords]
    if isinstance(value, ast.Dict):
        return [*zip(map(_key, value.keys), value.values, strict=True)]
    return None


def _trait_of(steps: list[str], owners: frozenset[str], classes: Collection[str]) -> list[str]:
    """The trait that is set, and the keys below it; [""] for none.

    owners: of a hook, what may be spawner or pod; in a class "".
    """
    if steps[0] == "c":
        is_spawner = len(steps) > 2 and (steps[1].endswith("Spawner") or steps[1] in classes)
        is_of_hub = len(steps) == 3 and steps[2] in _OF_JUPYTERHUB
        return steps[2:] if is_spawner or is_of_hub else [""]
    if len(steps) == 1:
        return steps if "" in owners else [""]
    ends = {**_OF_PODS, ("image",): "image"} if "containers" in steps else _OF_PODS
    for end, trait in ends.items():
        if tuple(steps[-len(end) :]) == end:
            return [trait]
    return steps[1:] if steps[0] in owners else [""]


def _known(trait: str, value: ast.expr, *, is_sure: bool) -> object:
    """A value that is written out; of extra_pod_config each entry, and the scheduler's name where
    one may hold it.
    """
    if trait != "extra_pod_config":
        try:
            if is_sure:
                written = ast.literal_eval(value)
                # As values have it: tuples are lists, and a set or a number without end is none.
                text = json.dumps(written, allow_nan=False, ensure_ascii=False)
                return json.loads(text.encode())
        except (ValueError, TypeError, SyntaxError):
            pass
        return UNKNOWN_IMAGE if trait == "image" else UNKNOWN
    found: dict[str, object] = {}
    for name, item in _items(value) or [(ANY, _NOT_READ)]:
        known = _known("", item, is_sure=is_sure and name != ANY)
        if known != UNKNOWN or name in (ANY, "schedulerName", "scheduler_name"):
            found["schedulerName" if name == ANY else name] = known
    return found
