"""Read the hub's own Python: what it sets of its spawner, as far as that is written out.

What one statement sets is in `python_settings.py`. Followed are also names that stand for one
value, of the configuration and in a `pre_spawn_hook`. Nothing is run.
A trait of which more is said than was understood is UNKNOWN: under a condition, in a loop, in a
function that nobody registers, by a name that isn't written out.
"""

from __future__ import annotations

import ast
import builtins
import json
import sys
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from generator.importing.profile_filters import leaves_out
from generator.importing.profile_pools import UNKNOWN_IMAGE
from generator.importing.python_names import (
    UNREADABLE,
    Function,
    function_named,
    parents_of,
    without_names,
    written_out,
)
from generator.importing.python_settings import (
    ANEW,
    ANY,
    ANY_TRAIT,
    JUPYTERHUB,
    MAKERS,
    NOT_READ,
    READERS,
    SCOPES,
    Setting,
    Statement,
    argument_names,
    calls_in,
    items_of,
    key_of,
    parts_of,
    set_by,
    statements_of,
    steps_of,
)
from generator.importing.source import UNKNOWN
from generator.importing.spawn_hook import Hook
from generator.importing.traits import LISTS, OLD_NAMES, POD_KEYS, STRICT, camel_case

CONCURRENT_LIMIT: Final = "concurrent_spawn_limit"
ACTIVE_LIMIT: Final = "active_server_limit"
LIMITS: Final = (CONCURRENT_LIMIT, ACTIVE_LIMIT)
# Traits of JupyterHub, not of the spawner.
OF_JUPYTERHUB: Final = ("spawner_class", *LIMITS)
# Traits that count wherever they are set, even if the value is UNKNOWN. Of other traits only a
# known value counts that the configuration sets itself: `c.KubeSpawner.… = …`.
_FOLLOWED: Final = STRICT | {
    *("namespace", "component_label", "scheduler_name", "extra_pod_config", "image"),
    *("profile_list", "enable_user_namespaces", "group_overrides", *LIMITS),
}
_WHERE: Final = ("node_selector",)
_HOW_LARGE: Final = ("mem_guarantee",)
# Words of a trait, or of a pod's field, and which trait is UNKNOWN if it isn't followed.
_WORDS: Final[Mapping[str, tuple[str, ...]]] = {
    **{trait: (trait,) for trait in STRICT},
    **{old: (new,) for old, new in OLD_NAMES.items() if new in STRICT},
    **dict.fromkeys(
        (
            *("nodeSelector", "affinity", "node_affinity", "nodeAffinity", "nodeName", "node_name"),
            *("topology_spread_constraints", "topologySpreadConstraints"),
            *("singleuser_extra_pod_config", "pod_affinity", "pod_anti_affinity"),
            *("podAffinity", "podAntiAffinity"),
        ),
        _WHERE,
    ),
    **dict.fromkeys(("runtime_class_name", "runtimeClassName"), (*_WHERE, *_HOW_LARGE)),
    **dict.fromkeys(("resources", "overhead"), _HOW_LARGE),
    "priorityClassName": ("priority_class_name",),
    "extra_pod_config": (),
}
_ALL_OF_A_POD: Final = (*_WHERE, *_HOW_LARGE)
# What changes nothing of what it is given, or is called on.
_PURE: Final = frozenset(
    [
        "all",
        "any",
        "bool",
        "dict",
        "dir",
        "enumerate",
        "frozenset",
        "getattr",
        "hasattr",
        "id",
        "isinstance",
        "len",
        "list",
        "print",
        "repr",
        "set",
        "sorted",
        "str",
        "sum",
        "tuple",
        "type",
        "deepcopy",
        "copy",
        "dumps",
        "debug",
        "info",
        "warning",
        "error",
    ]
)
_LOGS: Final = frozenset(["critical", "debug", "error", "exception", "info", "log", "warning"])
# What gets a spawner before its pod is made, or makes it.
_HOOKS: Final = {
    *("pre_spawn_hook", "modify_pod_hook", "auth_state_hook", "spawner_class"),
    *("apply_user_options", "options_form", "options_from_form"),
}
_OF_PODS: Final[Mapping[tuple[str, ...], str]] = {
    ("scheduler_name",): "scheduler_name",
    ("metadata", "namespace"): "namespace",
    ("metadata", "labels", "component"): "component_label",
    ("metadata", ANY): ANY,
    ("spec", "containers"): "extra_containers",
    ("spec", ANY): ANY,
}
_TRAIT_MODULES: Final = ("traitlets", "traitlets.config")
# Modules that bring code which nobody has read, or change any object that they are given.
_LOADERS: Final = frozenset({"importlib", "operator", "pkgutil", "runpy", "zipimport"})
# Packages that know nothing of spawners: what they are given, they don't change.
_OTHER_PACKAGES: Final = frozenset(
    {
        *(sys.stdlib_module_names - _LOADERS),
        *("aiohttp", "boto3", "botocore", "cryptography", "dateutil", "escapism", "httpx"),
        *("jinja2", "jose", "jwt", "kubernetes", "kubernetes_asyncio", "ldap3", "oauthenticator"),
        *("psycopg2", "pytz", "redis", "requests", "slugify", "sqlalchemy", "toml", "tornado"),
        *("urllib3", "yaml", "z2jh"),
    }
)
# Names that hooks may use, beside those that the code before them made.
KNOWN_NAMES: Final = frozenset(
    {
        *({*dir(builtins)} - {"__import__"}),
        *(sys.stdlib_module_names - _LOADERS),
        *("c", "partial", "kubespawner", "KubeSpawner", "get_config"),
        "super()",  # a base that nobody has read is named with its class
    }
)
_PROFILES: Final = ["c", "KubeSpawner", "profile_list"]
# Trait -> a trait that isn't known either, if the first isn't.
_UNKNOWN_WITH: Final = {
    "profile_list": ("image", UNKNOWN_IMAGE),
    "enable_user_namespaces": ("namespace", UNKNOWN),
}


class TraitValue(NamedTuple):
    """What a trait is set to. Of ANY, the value is the statement."""

    trait: str
    value: object
    # Whether it is added to what was there.
    is_part: bool = False
    # Whether it is set when a server starts, after all that the code says at once.
    in_hook: bool = False


def assigned(code: str, known: set[str], hook: Hook, *, has_profiles: bool) -> Iterator[TraitValue]:
    """Traits that Python sets: of the class, or in a hook.

    known: names of what was read; more are added. hook: what runs before each start. has_profiles:
    whether the profile list has entries; else a filter that asks for them doesn't run.
    """
    try:
        tree = without_names(ast.parse(code))
        yield from _HubCode(tree, known, hook, has_profiles=has_profiles).traits()
    except UNREADABLE:
        yield TraitValue(ANY, "no valid Python")


class ClassTrait(NamedTuple):
    """What code sets of a configuration class. Of ANY, the value is the statement."""

    class_name: str
    trait: str
    value: object


def class_settings(code: str, classes: Collection[str]) -> Iterator[ClassTrait]:
    """What Python sets of some configuration classes, in order: values that are written out,
    UNKNOWN for others, and ANY for a statement that may set any trait of theirs.
    """
    try:
        yield from _class_settings(without_names(ast.parse(code)), classes)
    except UNREADABLE:
        yield ClassTrait("", ANY, "no valid Python")


def _class_settings(tree: ast.Module, classes: Collection[str]) -> Iterator[ClassTrait]:
    for statement in statements_of(tree):
        line = statement.line
        parts = [*parts_of(line)]
        may_differ = any(
            isinstance(part, ast.IfExp | ast.BoolOp | ast.comprehension | ast.Lambda)
            for part in parts
        )
        is_sure = statement.is_sure and not statement.scopes and not may_differ
        mentions = sum(_names_class(part, classes) for part in parts)
        followed = 0
        for steps, value, is_part in set_by(line, parts, ()):
            if steps == ANY_TRAIT:
                yield ClassTrait("", ANY, ast.unparse(line).splitlines()[0])
            elif steps[0] == "c" and len(steps) > 2 and steps[1] in classes:
                followed += 1
                is_whole = is_sure and len(steps) == 3 and not is_part and steps[2] != ANY
                known = _known("", value, is_sure=is_whole)
                yield ClassTrait(steps[1], steps[2], known)
        # A class of its own, a name that holds the configuration, or a word that nobody follows.
        if mentions > followed:
            yield ClassTrait("", ANY, ast.unparse(line).splitlines()[0])


def _names_class(part: ast.AST, classes: Collection[str]) -> bool:
    if isinstance(part, ast.Name):
        return part.id in classes
    return isinstance(part, ast.Attribute) and part.attr in classes


class _HubCode:
    """A piece of the hub's Python, and what is known while it is read."""

    def __init__(
        self, tree: ast.Module, known: set[str], hook: Hook, *, has_profiles: bool
    ) -> None:
        self._tree = tree
        self._known = known
        self._hook = hook
        self._parents = parents_of(tree)
        self._has_profiles = has_profiles
        self._classes = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
        self._pods = _pod_names(tree)
        # Names that the code gives to things of its own. Some code calls other things c, too.
        self._own_names = {
            node.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }
        if "c = get_config()" in ast.unparse(tree):
            self._own_names.discard("c")
        self._imported = {
            (alias.asname or alias.name).partition(".")[0]
            for node in ast.walk(tree)
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in node.names
        }

    def traits(self) -> Iterator[TraitValue]:
        """What is set, in the order in which it runs."""
        skipped: set[ast.AST] = set()
        # Hooks run when all else has been said.
        for statement in sorted(statements_of(self._tree), key=_is_in_hook):
            line = statement.line
            if isinstance(line, ast.If) and self._never_runs(line):
                for inner in line.body:
                    skipped.update(ast.walk(inner))
            if line not in skipped:
                yield from self._traits_of(statement)

    def _never_runs(self, line: ast.If) -> bool:
        """Whether it asks for profiles where there are none."""
        return not self._has_profiles and steps_of(line.test) == _PROFILES

    def _traits_of(self, statement: Statement) -> Iterator[TraitValue]:
        line = statement.line
        parts = [*parts_of(line)]
        owners = statement.owners | argument_names(line)
        uses_known_names = self._add_names(line, parts, owners)
        is_plain = statement.is_sure and not any(
            isinstance(part, ast.IfExp | ast.BoolOp | ast.comprehension) for part in parts
        )
        settings = [*set_by(line, parts, self._own_names)]
        is_patched = _patches_kubespawner(line, is_read=uses_known_names)
        if is_patched or self._hands_over(parts, owners):
            settings.append(Setting(ANY_TRAIT, NOT_READ))
        in_hook = bool(statement.scopes) or any(isinstance(part, ast.Lambda) for part in parts)
        followed: Counter[str] = Counter()
        for setting in settings:
            if setting.steps == [*JUPYTERHUB, ANY]:
                for limit in LIMITS:
                    yield TraitValue(limit, UNKNOWN)
            if _is_whole_pod(setting.steps, owners):
                for trait in _ALL_OF_A_POD:
                    yield TraitValue(trait, UNKNOWN, in_hook=True)
            trait, *below = _trait_of(setting.steps, owners, self._classes, self._pods)
            self._has_profiles = self._has_profiles or trait in ("profile_list", ANY)
            if trait == ANY or (trait in _HOOKS and not uses_known_names):
                yield TraitValue(ANY, ast.unparse(line).splitlines()[0])
                continue
            followed[trait] += 1
            if trait == "profile_list" and not below and leaves_out(self._tree, setting.value):
                continue
            yield from self._value_of(
                trait, below, setting, statement, is_plain=is_plain, in_hook=in_hook
            )
        yield from self._unfollowed(parts, followed, in_hook=in_hook)

    def _value_of(
        self,
        trait: str,
        below: Sequence[str],
        setting: Setting,
        statement: Statement,
        *,
        is_plain: bool,
        in_hook: bool,
    ) -> Iterator[TraitValue]:
        given = setting.value
        if below:
            # A part of the trait, by its first key.
            given = ast.Dict([ast.Constant(below[0])], [given])
        is_sure = is_plain and len(below) < 2
        if trait in STRICT:
            # Which entry of a list it is, nobody can say.
            is_some_entry = bool(below) and (trait in LISTS or ANY in below)
            is_sure = is_sure and not is_some_entry and self._is_for_all(setting, statement)
        value = _known(trait, given, is_sure=is_sure)
        if trait in STRICT and UNKNOWN in str(value):
            value = UNKNOWN
        is_part = setting.is_part or bool(below)
        if trait == "extra_pod_config" and not is_sure and not is_part and isinstance(value, dict):
            # What was there before may stand.
            value = {**value, ANY: UNKNOWN}
            is_part = True
        if trait in _FOLLOWED or (value != UNKNOWN and setting.steps[0] == "c"):
            yield TraitValue(trait, value, is_part, in_hook)
            if value == UNKNOWN and trait in _UNKNOWN_WITH:
                yield TraitValue(*_UNKNOWN_WITH[trait], in_hook=in_hook)

    def _is_for_all(self, setting: Setting, statement: Statement) -> bool:
        """Whether a trait is set for every start: by the configuration at once, or by the hook that
        is registered.
        """
        owner = setting.steps[0]
        lambdas = [part for part in parts_of(statement.line) if isinstance(part, ast.Lambda)]
        if not statement.scopes and not lambdas:
            return owner == "c" and setting.steps[1:2] == ["KubeSpawner"]
        if lambdas:
            hook = self._hook.function
            if hook is None or statement.scopes:
                return False
            is_the_hook = [ast.unparse(lambda_) for lambda_ in lambdas] == [ast.unparse(hook)]
            return is_the_hook and [owner] == [argument.arg for argument in hook.args.args]
        if statement.scopes != (self._hook.name,):
            return False
        function = function_named(self._tree, self._hook.name)
        return function is not None and owner == _first_argument(function)

    def _unfollowed(
        self, parts: Sequence[ast.AST], followed: Counter[str], *, in_hook: bool
    ) -> Iterator[TraitValue]:
        """Traits of which a statement says more than was followed."""
        # Fields of pods are then read as parts of the trait's value.
        carried = any(
            followed[trait] for trait in ("extra_pod_config", "profile_list", "group_overrides")
        )
        mentions: Counter[str] = Counter()
        for part in parts:
            word = self._word_of(part)
            if word in STRICT:
                mentions[word] += 1
            elif word == "extra_pod_config":
                if not followed[word]:
                    yield TraitValue(word, {ANY: UNKNOWN}, is_part=True, in_hook=in_hook)
            elif word == "profile_list":
                if not followed[word]:
                    yield TraitValue(word, UNKNOWN, in_hook=in_hook)
                    yield TraitValue(*_UNKNOWN_WITH[word], in_hook=in_hook)
            elif word and not carried:
                for trait in _WORDS[word]:
                    yield TraitValue(trait, UNKNOWN, in_hook=in_hook)
        for trait, times in mentions.items():
            if times > followed[trait]:
                yield TraitValue(trait, UNKNOWN, in_hook=in_hook)

    def _word_of(self, part: ast.AST) -> str:
        """The word by which a part of a statement may change a trait; "": it changes none."""
        word = self._name_in(part)
        if word not in _WORDS and word != "profile_list":
            return ""
        if isinstance(part, ast.Attribute | ast.Subscript):
            steps = steps_of(part)
            is_of_spawner = len(steps) > 1 and _is_spawner_class(steps[1], self._classes)
            is_other = steps[0] == "c" and not is_of_spawner
            if is_other or (isinstance(part.ctx, ast.Load) and self._is_read_only(part)):
                return ""
        return word

    def _name_in(self, part: ast.AST) -> str:
        """What a part of a statement names: an attribute, a key that is set, or an argument; "":
        nothing.
        """
        if isinstance(part, ast.Attribute):
            return part.attr
        if isinstance(part, ast.Subscript):
            return "" if isinstance(part.ctx, ast.Load) else key_of(part.slice)
        around = self._parents.get(part)
        if isinstance(part, ast.keyword):
            called = ast.unparse(around.func) if isinstance(around, ast.Call) else ""
            makes_object = called == "dict" or called.rpartition(".")[2].startswith("V1")
            return "" if makes_object else str(part.arg or "")
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            is_given = isinstance(around, ast.Call) and part in around.args
            if is_given and not self._is_looked_up(around):
                return part.value
        return ""

    def _is_looked_up(self, call: ast.AST | None) -> bool:
        """Whether a call with a name only reads what is called so: `x.get("a")`."""
        called = ast.unparse(call.func) if isinstance(call, ast.Call) else ""
        word = called.rpartition(".")[2]
        if word == "getattr":
            return call is not None and self._is_read_only(call)
        return word in ("hasattr", "print", "get", "startswith", "endswith") or word in _LOGS

    def _is_read_only(self, part: ast.AST) -> bool:
        """Whether the value of an expression is looked at, and nothing could change it."""
        around = self._parents.get(part)
        if isinstance(around, ast.Attribute):
            call = self._parents.get(around)
            is_called = isinstance(call, ast.Call) and call.func is around
            return is_called and around.attr in READERS
        if isinstance(around, ast.Call):
            called = ast.unparse(around.func).rpartition(".")[2]
            return part in around.args and called in _PURE
        if isinstance(around, ast.Subscript):
            is_text = isinstance(part, ast.Attribute) and part.attr == "node_selector"
            is_loaded = around.value is part and isinstance(around.ctx, ast.Load)
            return is_loaded and (is_text or self._is_read_only(around))
        if isinstance(around, ast.BoolOp | ast.IfExp | ast.NamedExpr):
            return self._is_read_only(around)
        if isinstance(around, ast.Starred | ast.keyword):
            return isinstance(self._parents.get(around), ast.List | ast.Tuple | ast.Set)
        if isinstance(around, ast.If | ast.While):
            return around.test is part
        if isinstance(around, ast.Dict):
            # `{**x}` is another dictionary.
            return part in around.values and around.keys[around.values.index(part)] is None
        return isinstance(
            around,
            ast.Compare | ast.BinOp | ast.UnaryOp | ast.FormattedValue | ast.Assert | ast.Expr,
        )

    def _add_names(self, line: ast.AST, parts: Sequence[ast.AST], owners: frozenset[str]) -> bool:
        """Add the names that a statement makes of what was read. Returns whether it uses only names
        of what was read.
        """
        names = [part for part in parts if isinstance(part, ast.Name)]
        made = {name.id for name in names if isinstance(name.ctx, ast.Store)}
        uses_known_names = {name.id for name in names} <= self._known | owners | made
        if isinstance(line, ast.Import):
            for alias in line.names:
                package, _, _ = alias.name.partition(".")
                if package in _OTHER_PACKAGES:
                    self._known.add(alias.asname or package)
        if isinstance(line, ast.ImportFrom):
            for alias in line.names:
                if not line.level and _leaves_spawners_alone(line.module, alias.name):
                    self._known.add(alias.asname or alias.name)
        # All that a function does is read here. What a class has of an unread one isn't.
        if isinstance(line, SCOPES) and (uses_known_names or not isinstance(line, ast.ClassDef)):
            self._known.add(line.name)
        elif uses_known_names:
            self._known |= made
        return uses_known_names

    def _hands_over(self, parts: Sequence[ast.AST], owners: frozenset[str]) -> bool:
        """Whether something that nobody has read gets a spawner or a pod."""
        given: set[str] = set()
        for call in calls_in(parts):
            arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
            roots = {_root_name(argument) for argument in arguments}
            # `asyncio.to_thread(move, spawner)` calls what it is given.
            is_passed_on = not roots.isdisjoint(self._imported - self._known)
            is_read = _is_of_a_text(call.func) or _root_name(call.func) in self._known | owners
            if is_passed_on or not is_read:
                given |= {ast.unparse(argument) for argument in arguments}
        return bool(given & (owners - {"self"}))


def _root_name(expression: ast.expr) -> str:
    """`a` of `a.b.c`."""
    return ast.unparse(expression).partition(".")[0]


def _is_in_hook(statement: Statement) -> bool:
    return "spawner" in statement.owners


def _is_of_a_text(called: ast.expr) -> bool:
    """Whether what is called is a method of a text, or of what such a method returned."""
    if not isinstance(called, ast.Attribute):
        return False
    owner = called.value
    is_text = isinstance(owner, ast.Constant | ast.JoinedStr)
    return is_text or (isinstance(owner, ast.Call) and _is_of_a_text(owner.func))


def _patches_kubespawner(line: ast.AST, *, is_read: bool) -> bool:
    """Whether a statement puts what makes pods, or what nobody has read, into KubeSpawner."""
    targets = line.targets if isinstance(line, ast.Assign) else []
    for target in targets:
        steps = steps_of(target)
        is_patched = steps[0].lower() == "kubespawner"
        if is_patched and (not is_read or steps[-1] in (*MAKERS, "make_pod")):
            return True
    return False


def _leaves_spawners_alone(module: str | None, name: str) -> bool:
    """Whether a name of a module changes no spawner and no pod that it is given."""
    if module in ("kubespawner.objects", "jupyterhub.utils"):
        return True
    if str(module).partition(".")[0] in _OTHER_PACKAGES:
        return True
    # Classes, among them those of traits.
    return module in _TRAIT_MODULES and name[0].isupper() and name != "Config"


def _is_spawner_class(name: str, classes: Collection[str]) -> bool:
    """Whether a class of the configuration is a spawner's. classes: the code's own."""
    return name.endswith("Spawner") or name in classes


def _is_whole_pod(steps: Sequence[str], owners: frozenset[str]) -> bool:
    """Whether all that a pod asks for is set anew."""
    return steps[-1] == "spec" and len(steps) > 1 and steps[0] in owners


def _first_argument(function: Function) -> str:
    return function.args.args[0].arg if function.args.args else ""


def _pod_names(tree: ast.Module) -> frozenset[str]:
    """What users' pods are called: `pod`, and as a `modify_pod_hook` calls its second argument."""
    hooks = {
        ast.unparse(line.value)
        for line in tree.body
        if isinstance(line, ast.Assign)
        for target in line.targets
        if steps_of(target)[-1] == "modify_pod_hook"
    }
    return frozenset({"pod"}) | {
        line.args.args[1].arg
        for line in tree.body
        if isinstance(line, Function) and line.name in hooks and len(line.args.args) > 1
    }


def _trait_of(
    steps: list[str], owners: frozenset[str], classes: Collection[str], pods: Collection[str]
) -> list[str]:
    """The trait that is set, and the keys below it; [""] for none.

    owners: of a hook, what may be spawner or pod; in a class "". pods: of `_pod_names`.
    """
    if steps[0] == "c":
        is_spawner = len(steps) > 2 and _is_spawner_class(steps[1], classes)
        is_of_hub = len(steps) == 3 and steps[2] in OF_JUPYTERHUB
        return steps[2:] if is_spawner or is_of_hub else [""]
    if len(steps) == 1:
        return steps if "" in owners else [""]
    if steps[-1] == ANEW:
        # Hooks also label claims and namespaces.
        return ["component_label"] if len(steps) == 4 and steps[0] in pods else [""]
    ends = {**_OF_PODS, ("image",): "image"} if "containers" in steps else _OF_PODS
    for end, trait in ends.items():
        if tuple(steps[-len(end) :]) == end:
            return [trait]
    return steps[1:] if steps[0] in owners else [""]


def _known(trait: str, value: ast.expr, *, is_sure: bool) -> object:
    """The value of a trait, if it is written out; else what stands for one that nobody knows."""
    if trait == "extra_pod_config":
        return _known_pod_config(value, is_sure=is_sure)
    try:
        if is_sure:
            # As values have it: tuples are lists, and a set or a number without end is none.
            text = json.dumps(written_out(value), allow_nan=False, ensure_ascii=False)
            return json.loads(text.encode())
    except (ValueError, TypeError, RecursionError):
        pass
    return UNKNOWN_IMAGE if trait == "image" else UNKNOWN


def _known_pod_config(value: ast.expr, *, is_sure: bool) -> dict[str, object]:
    """The entries of extra_pod_config that are known, or that place a pod.

    An entry whose key isn't written out may be any, also the scheduler's.
    """
    items = items_of(value)
    if items is None:
        items = [(ANY, NOT_READ)]
    entries: dict[str, object] = {}
    for name, item in items:
        known = _known("", item, is_sure=is_sure and name != ANY)
        key = camel_case(name)
        if name == ANY:
            entries |= {"schedulerName": UNKNOWN, ANY: UNKNOWN}
        elif known != UNKNOWN or key in POD_KEYS:
            entries[key] = known
    return entries
