"""Whether a function of the hub's Python only leaves profiles out: what it returns are members of
the list that the file holds, so that list stands.
"""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Collection, Iterator
from typing import Final

_LIST: Final = "c.KubeSpawner.profile_list"
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
_FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef)


def leaves_out(tree: ast.Module, value: ast.expr) -> bool:
    """Whether `profile_list` gets members of the list that was there, by a list or a function.

    tree: the whole piece of code; value: what is assigned.
    """
    same = _names_of_the_list(tree)
    if _is_of(value, same):
        return True
    given: list[ast.expr] = []
    if isinstance(value, ast.Call) and _last(value.func) == "partial" and not value.keywords:
        value, *given = value.args or [value]
    functions = [
        node
        for node in tree.body
        if isinstance(node, _FUNCTIONS) and isinstance(value, ast.Name) and node.name == value.id
    ]
    if len(functions) != 1 or functions[0].decorator_list:
        return False
    function = functions[0]
    names = [argument.arg for argument in function.args.args]
    own = {name for name, item in zip(names, given, strict=False) if _is_of(item, same)}
    if len(own) != len(given):
        return False
    return _returns_members(function, same | own)


def _names_of_the_list(tree: ast.Module) -> frozenset[str]:
    """Names that the code gives to the list, or to a copy of it."""
    found: set[str] = set()
    given = [
        (node.targets[0].id, node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    ]
    for name, value in given:
        if _is_of(value, found) and [other for other, _ in given].count(name) == 1:
            found.add(name)
    return frozenset(found)


def _returns_members(
    function: ast.FunctionDef | ast.AsyncFunctionDef, same: Collection[str]
) -> bool:
    members = set(same)
    lines = [node for statement in function.body for node in ast.walk(statement)]
    if not _is_harmless(lines):
        return False
    empty = {
        name for name, value in _assigned(lines) if isinstance(value, ast.List) and not value.elts
    }
    for _ in range(len(lines)):
        more = {name for name, value in _assigned(lines) if _is_of(value, members | empty)}
        more |= {
            node.target.id
            for node in lines
            if isinstance(node, ast.For)
            and isinstance(node.target, ast.Name)
            and _is_of(node.iter, members)
        }
        if more <= members:
            break
        members |= more
    # A name that has another value somewhere is none of the list's.
    if any(
        not _is_of(value, members | empty) for name, value in _assigned(lines) if name in members
    ):
        return False
    for call in (node for node in lines if isinstance(node, ast.Call)):
        if _last(call.func) in ("append", "extend", "insert") and isinstance(
            call.func, ast.Attribute
        ):
            owner = ast.unparse(call.func.value)
            if owner in members | empty and not _is_of(call.args[-1], members):
                return False
    returned = [node.value for node in lines if isinstance(node, ast.Return)]
    return bool(returned) and all(
        value is not None and _is_of(value, members | empty) for value in returned
    )


def _assigned(lines: list[ast.AST]) -> Iterator[tuple[str, ast.expr]]:
    for node in lines:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    yield target.id, node.value
        elif isinstance(node, ast.AugAssign | ast.NamedExpr) and isinstance(node.target, ast.Name):
            yield node.target.id, node.value


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
        loop = value.generators[0]
        return (
            len(value.generators) == 1
            and isinstance(loop.target, ast.Name)
            and _is_of(loop.iter, members)
            and _is_of(value.elt, {*members, loop.target.id})
        )
    if isinstance(value, ast.Call) and _last(value.func) in _SAME and value.args:
        return _is_of(value.args[-1 if _last(value.func) == "filter" else 0], members)
    return False


def _picks(index: ast.expr) -> bool:
    """Whether a list's entries are picked, none of whose parts."""
    return isinstance(index, ast.Slice) or (
        isinstance(index, ast.Constant) and isinstance(index.value, int)
    )


def _is_harmless(lines: list[ast.AST]) -> bool:
    """Whether nothing in a function writes to what decides about a profile's pod."""
    for node in lines:
        if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            key = node.slice.value if isinstance(node.slice, ast.Constant) else ""
            if key not in _HARMLESS:
                return False
        elif (
            (isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load))
            or (
                isinstance(node, ast.Attribute)
                and node.attr
                in (
                    "update",
                    "setdefault",
                    "pop",
                    "popitem",
                    "clear",
                    "__setitem__",
                    "profile_list",
                )
            )
            or (isinstance(node, ast.Constant) and node.value == "kubespawner_override")
        ):
            return False
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id not in _KNOWN or node.func.id in ("setattr", "exec", "eval", "vars"):
                return False
        elif isinstance(node, ast.Import | ast.ImportFrom | ast.Global) or (
            isinstance(node, ast.Dict) and node.keys
        ):
            return False
    return True


def _last(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else ast.unparse(function)
