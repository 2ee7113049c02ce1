"""Whether a function of the hub's Python only leaves profiles out.

Then what it returns are members of the list that the file holds, and import reads that list.
"""

from __future__ import annotations

import ast
import builtins
import sys
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Final

from generator.importing.python_names import UNREADABLE, Function, function_named

_LIST: Final = "c.KubeSpawner.profile_list"
# Functions that return their list, a part of it or a copy.
_SAME: Final = frozenset(["copy", "deepcopy", "list", "sorted", "filter", "tuple", "reversed"])
# Keys of a profile that decide neither about image, nodes nor size.
_HARMLESS: Final = frozenset(
    [
        "allowed_groups",
        "allowed_teams",
        "allowed_users",
        "choices",
        "default",
        "description",
        "display_name",
        "profile_options",
        "slug",
    ]
)
_KNOWN: Final = frozenset({*dir(builtins), *sys.stdlib_module_names, "c"})
# Modules whose functions change nothing of what they are given.
_PURE_MODULES: Final = frozenset(
    ["copy", "datetime", "fnmatch", "html", "re", "string", "textwrap", "time", "unicodedata"]
)
# What may be taken out of a profile besides.
_MAY_GO: Final = _HARMLESS | {"unlisted_choice"}
# Methods that yield the values of a dict.
_VALUES: Final = frozenset(["items", "values"])
# Methods that add to a list.
_ADDERS: Final = frozenset(["append", "extend", "insert"])
# Methods that change a dict, and the trait itself.
_WRITERS: Final = frozenset(
    ["update", "setdefault", "pop", "popitem", "clear", "__setitem__", "profile_list"]
)
# Built-in functions that may write to anything.
_RUNNERS: Final = frozenset(["setattr", "exec", "eval", "vars"])


def leaves_out(tree: ast.Module, value: ast.expr) -> bool:
    """Whether `profile_list` gets members of the list that was there, by a list or a function.

    tree: the whole piece of code; value: what is assigned.
    """
    list_names = _names_of_the_list(tree)
    if _is_of(value, list_names):
        return True
    called = value
    # What a `partial` gives its function.
    bound: list[ast.expr] = []
    if isinstance(value, ast.Call) and _last(value.func) == "partial" and value.args:
        if value.keywords:
            return False
        called, *bound = value.args
    function = function_named(tree, ast.unparse(called))
    if function is None or function.decorator_list:
        return False
    parameters = [argument.arg for argument in function.args.args]
    # The parameters that are given the list.
    list_parameters = {
        name for name, item in zip(parameters, bound, strict=False) if _is_of(item, list_names)
    }
    if len(list_parameters) != len(bound):
        return False
    return _returns_members(function, list_names | list_parameters, _pure_functions(tree))


def _pure_functions(tree: ast.Module) -> frozenset[str]:
    """Names that the code imports from modules whose functions change nothing."""
    return frozenset(
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module in _PURE_MODULES
        for alias in node.names
    )


def only_leaves_out(code: str) -> bool:
    """Whether all that a piece of code does to `profile_list` is to leave profiles out."""
    try:
        return _only_leaves_out(ast.parse(code))
    except UNREADABLE:
        return False


def _only_leaves_out(tree: ast.Module) -> bool:
    assigned_values: list[ast.expr] = []
    writes = 0
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and node.value == "profile_list":
            # As text it may be written in many ways.
            return False
        if isinstance(node, ast.Attribute) and node.attr == "profile_list":
            writes += isinstance(node.ctx, ast.Store)
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == _LIST:
            assigned_values.append(node.value)
    if not assigned_values or writes != len(assigned_values):
        return False
    return all(leaves_out(tree, value) for value in assigned_values)


def _names_of_the_list(tree: ast.Module) -> frozenset[str]:
    """Names that the code gives to the list, or to a copy of it."""
    given = [
        (node.targets[0].id, node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    ]
    times = Counter(name for name, _ in given)
    names: set[str] = set()
    for name, value in given:
        if times[name] == 1 and _is_of(value, names):
            names.add(name)
    return frozenset(names)


def _returns_members(
    function: Function, list_names: Collection[str], pure_functions: Collection[str]
) -> bool:
    """Whether a function returns the list, parts of it or its members, and nothing else.

    list_names: of the code, and of parameters that are given the list.
    pure_functions: names of imported functions that change nothing.
    """
    nodes = [node for statement in function.body for node in ast.walk(statement)]
    if not _is_harmless(nodes, pure_functions):
        return False
    members = _names_of_members(nodes, list_names)
    if not (_hold_only_members(nodes, members) and _gain_only_members(nodes, members)):
        return False
    returned = [node.value for node in nodes if isinstance(node, ast.Return)]
    return bool(returned) and all(
        value is not None and _is_of(value, members) for value in returned
    )


def _names_of_members(nodes: Sequence[ast.AST], list_names: Collection[str]) -> frozenset[str]:
    """Names that are given the list, a part of it, a member, or an empty list to be filled."""
    members = set(list_names)
    has_more = True
    # A name may get its value from one that is found later, so look until none is found.
    while has_more:
        given = [*_assigned(nodes), *_looped(nodes)]
        names = {name for name, value in given if _is_of(value, members)}
        has_more = not names <= members
        members |= names
    return frozenset(members)


def _hold_only_members(nodes: Sequence[ast.AST], members: Collection[str]) -> bool:
    """Whether none of the names has another value somewhere."""
    return all(_is_of(value, members) for name, value in _assigned(nodes) if name in members)


def _gain_only_members(nodes: Sequence[ast.AST], members: Collection[str]) -> bool:
    """Whether nothing but members is added to the lists of these names."""
    for node in nodes:
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        is_added = node.func.attr in _ADDERS and ast.unparse(node.func.value) in members
        # A call without arguments is a fault of the hub's own, which it meets when it runs.
        if is_added and not (node.args and _is_of(node.args[-1], members)):
            return False
    return True


def _assigned(nodes: Sequence[ast.AST]) -> Iterator[tuple[str, ast.expr]]:
    """Each name that is assigned to, with the value."""
    for node in nodes:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    yield target.id, node.value
        elif isinstance(node, ast.AugAssign | ast.NamedExpr) and isinstance(node.target, ast.Name):
            yield node.target.id, node.value


def _looped(nodes: Sequence[ast.AST]) -> Iterator[tuple[str, ast.expr]]:
    """The name of each loop, with what it loops over."""
    for node in nodes:
        if isinstance(node, ast.For) and isinstance(node.target, ast.Name):
            yield node.target.id, node.iter


def _is_of(value: ast.expr, members: Collection[str]) -> bool:
    """Whether an expression is the list, a part of it, or one of its members."""
    if ast.unparse(value) == _LIST:
        return True
    if isinstance(value, ast.Name):
        return value.id in members
    if isinstance(value, ast.List):
        return not value.elts
    if isinstance(value, ast.IfExp):
        return _is_of(value.body, members) and _is_of(value.orelse, members)
    if isinstance(value, ast.Subscript):
        return _is_of(value.value, members) and _picks(value.slice)
    if isinstance(value, ast.ListComp | ast.GeneratorExp):
        loop, *inner_loops = value.generators
        if inner_loops or not isinstance(loop.target, ast.Name):
            return False
        return _is_of(loop.iter, members) and _is_of(value.elt, {*members, loop.target.id})
    if isinstance(value, ast.Call) and _last(value.func) in _SAME and value.args:
        # `filter(condition, profiles)`; the others take the list first.
        listed = value.args[-1] if _last(value.func) == "filter" else value.args[0]
        return _is_of(listed, members)
    return False


def _picks(index: ast.expr) -> bool:
    """Whether an index picks entries of a list: a number or a slice, no key of an entry."""
    return isinstance(index, ast.Slice) or (
        isinstance(index, ast.Constant) and isinstance(index.value, int)
    )


def _is_harmless(nodes: Sequence[ast.AST], pure_functions: Collection[str]) -> bool:
    """Whether nothing in a function writes to what decides about a profile's pod.

    It may not hide such a write either. So it calls by name only built-in and pure functions, and
    imports nothing. It has no `global` and makes no dict with content, which could be a new
    profile.
    """
    kept = set(_entries_kept(nodes))
    for node in nodes:
        if _writes_by_name(node):
            if node not in kept:
                return False
        elif not _node_is_harmless(node, pure_functions):
            return False
    return True


def _writes_by_name(node: ast.AST) -> bool:
    """Whether an entry is set whose key isn't written out: `choices[name] = choice`."""
    return (
        isinstance(node, ast.Subscript)
        and isinstance(node.ctx, ast.Store)
        and not isinstance(node.slice, ast.Constant)
    )


def _entries_kept(nodes: Sequence[ast.AST]) -> Iterator[ast.expr]:
    """Targets of assignments that keep entries of a dict: into a dict that begins empty, from a
    loop over another dict's entries.
    """
    assigned = list(_assigned(nodes))
    times = Counter(name for name, _ in assigned)
    begins_empty = {
        name
        for name, value in assigned
        if isinstance(value, ast.Dict) and not value.keys and times[name] == 1
    }
    entries = {name for name in _names_of_entries(nodes) if not times[name]}
    for node in nodes:
        if not isinstance(node, ast.Assign) or len(node.targets) != 1:
            continue
        target = node.targets[0]
        if not isinstance(target, ast.Subscript):
            continue
        is_entry = isinstance(node.value, ast.Name) and node.value.id in entries
        is_into_empty = isinstance(target.value, ast.Name) and target.value.id in begins_empty
        if is_entry and is_into_empty:
            yield target


def _names_of_entries(nodes: Sequence[ast.AST]) -> Iterator[str]:
    """Names of loops over the entries of a dict."""
    for node in nodes:
        if isinstance(node, ast.For) and _loops_over_values(node.iter):
            for target in ast.walk(node.target):
                if isinstance(target, ast.Name):
                    yield target.id


def _loops_over_values(iterated: ast.expr) -> bool:
    return (
        isinstance(iterated, ast.Call)
        and isinstance(iterated.func, ast.Attribute)
        and iterated.func.attr in _VALUES
    )


def _node_is_harmless(node: ast.AST, pure_functions: Collection[str]) -> bool:
    if isinstance(node, ast.Subscript):
        key = node.slice.value if isinstance(node.slice, ast.Constant) else ""
        may_change = _MAY_GO if isinstance(node.ctx, ast.Del) else _HARMLESS
        return isinstance(node.ctx, ast.Load) or key in may_change
    if isinstance(node, ast.Attribute):
        return isinstance(node.ctx, ast.Load) and node.attr not in _WRITERS
    if isinstance(node, ast.Constant):
        return node.value != "kubespawner_override"
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        name = node.func.id
        return name in pure_functions or (name in _KNOWN and name not in _RUNNERS)
    if isinstance(node, ast.Dict):
        return not node.keys
    return not isinstance(node, ast.Import | ast.ImportFrom | ast.Global)


def _last(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else ast.unparse(function)
