"""What one statement of a hub's Python sets: the names that its target is made of, and the value.

Followed are whole assignments, `setattr`, `update`, `append`, `extend`, `insert`, `+=` and
`x = x + y`. Nothing is run. Which trait of the spawner that is, `hub_code.py` says.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence
from typing import Final, NamedTuple

from generator.importing.python_names import Function, NotWrittenOutError, written_out
from generator.importing.traits import STRICT

READERS: Final = frozenset(["copy", "count", "get", "index", "items", "keys", "values"])
_ADDERS: Final = ("append", "extend", "insert")
# A trait whose name isn't written out, and what may set one.
ANY: Final = "*"
ANY_TRAIT: Final = ["c", "Spawner", ANY]
JUPYTERHUB: Final = ["c", "JupyterHub"]
# In place of a label's name: all labels were replaced, and the one by which a pod's class is found
# is gone.
ANEW: Final = "="
_SETS_ANY: Final = {"setattr", "exec", "eval", "vars", "load_subconfig"}
# Functions and methods that set a trait by its name.
SETTERS: Final = ("setattr", "set_trait", "__setattr__", "__setitem__")
# Methods in which a class makes pods.
_LABEL_MAKERS: Final = ("_build_common_labels", "_build_pod_labels")
MAKERS: Final = ("get_pod_manifest", *_LABEL_MAKERS)
SCOPES: Final = Function | ast.ClassDef
# In place of a value that isn't written out.
NOT_READ: Final = ast.Name("not_read")


class Statement(NamedTuple):
    """A statement of the hub's Python, and where it stands."""

    line: ast.AST
    # In a hook the names of its arguments, which may be a spawner or a pod; in a class "".
    owners: frozenset[str]
    # Whether it runs for all users, should the functions around it be called.
    is_sure: bool
    # The functions and classes around it.
    scopes: tuple[str, ...] = ()


class Setting(NamedTuple):
    """What a statement sets."""

    # The names of which the target is made: c, KubeSpawner, namespace.
    steps: list[str]
    value: ast.expr
    # Whether it is added to what was there.
    is_part: bool = False


def argument_names(line: ast.AST) -> frozenset[str]:
    """The names of a function's arguments, from its definition."""
    return frozenset(part.arg for part in parts_of(line) if isinstance(part, ast.arg))


def calls_in(parts: Sequence[ast.AST]) -> list[ast.Call]:
    """The calls among these expressions."""
    return [part for part in parts if isinstance(part, ast.Call)]


def statements_of(
    node: ast.AST,
    owners: frozenset[str] = frozenset(),
    scopes: tuple[str, ...] = (),
    *,
    is_sure: bool = True,
) -> Iterator[Statement]:
    """The statements below a node. owners, scopes and is_sure: as of a Statement, of the node
    itself.
    """
    # False from the statement on that may have returned.
    runs_for_all = is_sure
    for line in ast.iter_child_nodes(node):
        if not isinstance(line, ast.stmt | ast.excepthandler | ast.match_case):
            continue
        yield Statement(line, owners, runs_for_all, scopes)
        if isinstance(line, SCOPES):
            # Once it is called, a function runs for any user. Whether it is called for all of them,
            # its scopes let the reader find out.
            below = (*scopes, line.name)
            inner = _owners_in(line, owners)
            yield from statements_of(line, inner, below, is_sure=runs_for_all)
            continue
        # What an `if`, a loop or a `try` holds may not run.
        yield from statements_of(line, owners, scopes, is_sure=False)
        if any(isinstance(part, ast.Return) for part in ast.walk(line)):
            # Users for whom a hook has returned get nothing of what follows.
            runs_for_all = False


def _owners_in(scope: ast.AST, owners: frozenset[str]) -> frozenset[str]:
    """The owners of what a function or a class holds. owners: those around it."""
    if isinstance(scope, ast.ClassDef):
        return frozenset({""})
    return (owners - {""}) | {"spawner", "self"} | argument_names(scope)


def parts_of(line: ast.AST) -> Iterator[ast.AST]:
    """The expressions of a statement, without those of statements in it."""
    for part in ast.iter_child_nodes(line):
        if not isinstance(part, ast.stmt | ast.excepthandler | ast.match_case):
            yield part
            yield from parts_of(part)


def set_by(
    line: ast.AST, parts: Sequence[ast.AST], own_names: Collection[str]
) -> Iterator[Setting]:
    """What a statement sets: itself, by calls in it, and by using what holds traits.

    own_names: names that the code gives to things of its own.
    """
    yield from _set_by_statement(line)
    # Names of which only a part is used: `c.KubeSpawner` in `c.KubeSpawner.image`. What is used
    # whole, as in `f(c)`, may get any trait.
    looked_into: set[ast.AST] = {
        part.value for part in parts if isinstance(part, ast.Attribute | ast.Subscript)
    }
    for call in calls_in(parts):
        yield from _set_by_call(call)
        called = steps_of(call.func)[-1]
        arguments = _arguments_of(call)
        if called in SETTERS and len(arguments) == 3:
            looked_into |= {call.func, arguments[0]}
        elif called == "setup_ui":
            # jupyterhub_fancy_profiles' form of profiles.
            looked_into |= {*call.args}
    names = [part for part in parts if isinstance(part, ast.Name | ast.Attribute)]
    for name in names:
        if isinstance(name.ctx, ast.Load) and name not in looked_into:
            yield from _set_by_use(steps_of(name), own_names)


def _set_by_statement(line: ast.AST) -> Iterator[Setting]:
    """What `=`, `del`, an annotation or `|=` sets; the last adds to what is there. And what a
    function sets that may be a hook, a default or a method that makes pods.
    """
    if isinstance(line, ast.Assign | ast.Delete):
        value = getattr(line, "value", NOT_READ)
        if len(line.targets) > 1 and not isinstance(value, ast.Constant):
            # The other name may change it.
            value = NOT_READ
        for target in line.targets:
            yield from _set_by_target(target, value)
    elif isinstance(line, ast.AnnAssign) and line.value is not None:
        yield from _entry_by_entry(steps_of(line.target), line.value, is_part=False)
    elif isinstance(line, ast.AugAssign):
        adds_list = isinstance(line.op, ast.Add) and _is_listed(line.value)
        adds_mapping = isinstance(line.op, ast.BitOr) and items_of(line.value) is not None
        value = line.value if adds_list or adds_mapping else NOT_READ
        yield from _entry_by_entry(steps_of(line.target), value, is_part=True)
    elif isinstance(line, Function):
        # `def` sets its name as `=` does: a hook's, or a method's that makes pods.
        makes_pods = line.name in MAKERS and not _keeps_class(line)
        yield Setting([ANY if makes_pods else line.name], NOT_READ)
        # `_tolerations_default` sets the trait in a class.
        yield Setting([line.name.removesuffix("_default").lstrip("_")], NOT_READ)
        for decorator in line.decorator_list:
            if isinstance(decorator, ast.Call) and decorator.args:
                is_default = ast.unparse(decorator.func).endswith("default")
                trait = key_of(decorator.args[0]) if is_default else ""
                yield Setting([trait], NOT_READ)


def _set_by_target(target: ast.expr, value: ast.expr) -> Iterator[Setting]:
    """What one target of `=` or `del` sets."""
    if isinstance(target, ast.Tuple | ast.List):
        for element in target.elts:
            yield from _set_by_target(element, NOT_READ)
        return
    steps = steps_of(target)
    if steps == ["c", "KubeSpawner"]:
        yield from _all_anew()
    more = _added_to(target, value)
    if more is None:
        yield from _entry_by_entry(steps, value, is_part=False)
    else:
        yield from _entry_by_entry(steps, more, is_part=True)


def _keeps_class(method: Function) -> bool:
    """Whether a method changes single labels of those that KubeSpawner makes, and leaves the one by
    which a pod's class is found.
    """
    if method.name not in _LABEL_MAKERS:
        return False
    given = {argument.arg for argument in method.args.args}
    # Names of the labels that KubeSpawner made.
    made: set[str] = set()
    for line in method.body:
        if not _is_harmless(line, given, made):
            return False
        match line:
            case ast.Assign(targets=[ast.Name(id=name)]):
                made.add(name)
    return True


def _is_harmless(line: ast.stmt, given: Collection[str], made: Collection[str]) -> bool:
    """Whether a method with this statement still has the label `component`.

    given, made: names of its arguments, and of the labels that KubeSpawner made.
    """
    match line:
        case ast.Return(value=ast.Name(id=name)):
            return name in made
        case ast.Assign(targets=[ast.Name()], value=value) | ast.Return(value=value):
            return _is_made_by_spawner(value, given)
    return _is_single_label(line) or _is_docstring(line)


def _is_docstring(line: ast.stmt) -> bool:
    return isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant)


def _is_single_label(line: ast.stmt) -> bool:
    """Whether a statement deletes or sets one label, to a value that is written out."""
    if isinstance(line, ast.Assign):
        if not isinstance(line.value, ast.Constant):
            return False
    elif not isinstance(line, ast.Delete):
        return False
    return all(
        isinstance(target, ast.Subscript) and key_of(target.slice) not in (ANY, "component")
        for target in line.targets
    )


def _is_made_by_spawner(value: ast.expr | None, given: Collection[str]) -> bool:
    """Whether an expression calls KubeSpawner's own method, with what this one was given."""
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute):
        return False
    method = value.func
    is_spawners = ast.unparse(method.value) == "super()" and method.attr in _LABEL_MAKERS
    passes_on = all(
        isinstance(argument, ast.Name) and argument.id in given for argument in value.args
    )
    return is_spawners and passes_on and not value.keywords


def _set_by_call(call: ast.Call) -> Iterator[Setting]:
    """What `update`, a change of a list or `setattr` sets. `update` adds to what is there."""
    name = steps_of(call.func)[-1]
    arguments = _arguments_of(call)
    if isinstance(call.func, ast.Attribute):
        owner = steps_of(call.func.value)
        if name == "update":
            if owner == ["c"]:
                yield from _all_anew()
            given = call.args[0] if call.args else ast.Call(ast.Name("dict"), [], call.keywords)
            yield from _entry_by_entry(owner, given, is_part=True)
        elif _holds_traits(owner) and name not in READERS | {"setdefault", *SETTERS}:
            yield Setting(ANY_TRAIT, NOT_READ)
        elif name in _ADDERS:
            yield Setting(owner, _more_of(name, call), is_part=True)
    if name in SETTERS and len(arguments) == 3:
        # `setattr(x, "y", value)` is read as `x["y"] = value`.
        yield Setting(steps_of(ast.Subscript(arguments[0], arguments[1])), arguments[2])


def _all_anew() -> Iterator[Setting]:
    """A spawner's whole section takes the place of what the chart had set."""
    for trait in sorted({*STRICT, "image"}):
        yield Setting(["c", "KubeSpawner", trait], NOT_READ)


def _more_of(name: str, call: ast.Call) -> ast.expr:
    """What `append`, `extend` or `insert` adds, as a list."""
    if call.keywords or len(call.args) != (2 if name == "insert" else 1):
        return NOT_READ
    more = call.args[-1]
    if name != "extend":
        return ast.List([more], ast.Load())
    return more if _is_listed(more) else NOT_READ


def _is_listed(value: ast.expr) -> bool:
    """Whether an expression is a list for sure."""
    try:
        return isinstance(written_out(value), list)
    except (NotWrittenOutError, RecursionError):
        return False


def _added_to(target: ast.expr, value: ast.expr) -> ast.expr | None:
    """What `x = x + y`, `x = [*x, y]` and `x = {**x, y: z}` add to x; None: it is no such
    assignment.
    """
    name = ast.unparse(target)
    if isinstance(value, ast.BinOp):
        return _added_by_operator(value, name)
    if isinstance(value, ast.List) and value.elts:
        first, *after_first = value.elts
        if isinstance(first, ast.Starred) and _is_same(first.value, name):
            return ast.List(after_first, ast.Load())
        *before_last, last = value.elts
        if isinstance(last, ast.Starred) and _is_same(last.value, name):
            return ast.List(before_last, ast.Load())
    if isinstance(value, ast.Dict) and value.keys:
        # The key of `**x` is None.
        begins_with_it = value.keys[0] is None and _is_same(value.values[0], name)
        if begins_with_it:
            return ast.Dict(value.keys[1:], value.values[1:])
    return None


def _added_by_operator(value: ast.BinOp, name: str) -> ast.expr | None:
    """What `x + y`, `y + x` and `x | y` add to what `name` is; None: it is none of these.

    `y | x` isn't among them: entries of x would win over those of y.
    """
    left = value.left
    right = value.right
    if isinstance(value.op, ast.BitOr):
        is_added = _is_same(left, name) and items_of(right) is not None
        return right if is_added else None
    if not isinstance(value.op, ast.Add):
        return None
    if _is_same(left, name) and _is_listed(right):
        return right
    if _is_same(right, name) and _is_listed(left):
        return left
    return None


def _is_same(value: ast.expr, name: str) -> bool:
    """Whether an expression is what `name` is, or a copy of it."""
    if isinstance(value, ast.Call) and len(value.args) == 1 and not value.keywords:
        called = ast.unparse(value.func).rpartition(".")[2]
        return called in ("list", "dict", "copy", "deepcopy") and _is_same(value.args[0], name)
    return ast.unparse(value) == name or ast.unparse(value) == f"{name}.copy()"


def _arguments_of(call: ast.Call) -> list[ast.expr]:
    """A call's positional arguments, after the object of a method."""
    owner = [call.func.value] if isinstance(call.func, ast.Attribute) else []
    return [*owner, *call.args]


def _holds_traits(steps: Sequence[str]) -> bool:
    """Whether these steps name the configuration, or a spawner's section of it."""
    return steps[0] == "c" and (len(steps) == 1 or _is_spawner(steps))


def _is_spawner(steps: Sequence[str]) -> bool:
    return len(steps) == 2 and steps[1].endswith("Spawner")


def _set_by_use(steps: list[str], own_names: Collection[str]) -> Iterator[Setting]:
    """Any trait, if what is used is the whole configuration, or a function that sets any name."""
    is_config = "c" not in own_names
    if (is_config and _holds_traits(steps)) or steps[0] in _SETS_ANY:
        yield Setting(ANY_TRAIT, NOT_READ)
    if is_config and steps in (["c"], JUPYTERHUB):
        yield Setting([*JUPYTERHUB, ANY], NOT_READ)


def _entry_by_entry(steps: list[str], value: ast.expr, *, is_part: bool) -> Iterator[Setting]:
    """Each entry of a mapping of traits, labels or classes; of another value the value itself."""
    is_labels = steps[-2:] == ["metadata", "labels"]
    holds_traits = steps[0] == "c" and len(steps) < 3
    if not (is_labels or holds_traits):
        yield Setting(steps, value, is_part)
        return
    items = items_of(value)
    if items is not None:
        for key, item in items:
            yield from _entry_by_entry([*steps, key], item, is_part=False)
        keys = {key for key, _ in items}
        if is_labels and not is_part and not keys & {"component", ANY}:
            yield Setting([*steps, ANEW], NOT_READ)
    elif len(steps) == 2:
        # A class that gets what isn't written out: any trait of it.
        yield Setting([*steps, ANY], value)
    # Nothing for a pod's labels that aren't written out: they are taken to be more labels, beside
    # those by which its class is found.


def steps_of(target: ast.expr) -> list[str]:
    """The names of which `c.KubeSpawner["namespace"]` is made; ANY for one that isn't written
    out.
    """
    called = ast.unparse(target.func) if isinstance(target, ast.Call) else ""
    if isinstance(target, ast.Call) and called == "getattr" and len(target.args) > 1:
        return [*steps_of(target.args[0]), key_of(target.args[1])]
    if isinstance(target, ast.Attribute):
        owner = steps_of(target.value)
        return owner if target.attr == "__dict__" else [*owner, target.attr]
    if isinstance(target, ast.Subscript):
        return [*steps_of(target.value), key_of(target.slice)]
    return [ast.unparse(target)]


def key_of(key: ast.expr | None) -> str:
    """A key that is written out; else ANY."""
    return str(key.value) if isinstance(key, ast.Constant) else ANY


def items_of(value: ast.expr) -> list[tuple[str, ast.expr]] | None:
    """The entries of a dictionary that is written out, as `{"key": value}` or `dict(key=value)`."""
    if isinstance(value, ast.Call) and ast.unparse(value.func) == "dict" and not value.args:
        return [(keyword.arg or ANY, keyword.value) for keyword in value.keywords]
    if isinstance(value, ast.Dict):
        return [(key_of(key), item) for key, item in zip(value.keys, value.values, strict=True)]
    return None
