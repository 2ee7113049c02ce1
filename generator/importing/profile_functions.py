"""Profiles that a function of the hub's Python returns, where all of them are written out.

For some users it may leave profiles out: those that it can return stand for all.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Final

from generator.importing.python_names import NotWrittenOutError, parents_of, written_out
from generator.importing.python_settings import SCOPES, parts_of, statements_of

_FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef)


def profiles_returned(tree: ast.Module, value: ast.expr) -> ast.List | None:
    """All profiles that a function can return, in the order in which it names them.

    tree: a whole piece of code; value: what `profile_list` is set to. None: that is no function of
    this piece, or not all that it returns is written out.
    """
    name = value.id if isinstance(value, ast.Name) else ""
    functions = [line for line in tree.body if isinstance(line, _FUNCTIONS) and line.name == name]
    if len(functions) != 1 or functions[0].decorator_list:
        return None
    lists = dict(_lists_that_stay(tree))
    returned: list[ast.expr] = []
    has_returned = False
    for statement in statements_of(functions[0]):
        line = statement.line
        if isinstance(line, SCOPES):
            return None
        entries = _listed(line.value, lists) if isinstance(line, ast.Return) else None
        if isinstance(line, ast.Return):
            if entries is None:
                return None
            has_returned = True
            returned += entries
        elif not _is_understood(line, lists):
            return None
    return ast.List([*_each_once(returned)], ast.Load()) if has_returned else None


def _lists_that_stay(tree: ast.Module) -> Iterator[tuple[str, list[ast.expr]]]:
    """Lists of profiles that the piece of code names once, and only returns or adds to others."""
    parents = parents_of(tree)
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    arguments = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    for line in tree.body:
        target, value, _ = _begun_or_added(line)
        if target is None or target in arguments or value is None:
            continue
        if not isinstance(line, ast.Assign):
            continue
        entries = _listed(value, {})
        uses = [node for node in names if node.id == target and node is not line.targets[0]]
        if entries is not None and all(
            isinstance(parents.get(use), ast.Return | ast.BinOp) for use in uses
        ):
            yield target, entries


def _is_understood(line: ast.AST, lists: dict[str, list[ast.expr]]) -> bool:
    """Follow a statement: a list that it begins, or adds to. False: it may do more to one."""
    target, more, is_first = _begun_or_added(line)
    if isinstance(line, ast.Assign) and isinstance(more, ast.Name) and more.id in lists:
        # A second name for the list: what is added by it isn't followed.
        return False
    if target is not None:
        entries = None if more is None else _listed(more, lists)
        is_new = isinstance(line, ast.Assign)
        if target in lists or entries is not None:
            if entries is None or (is_new and target in lists):
                return False
            known = lists.get(target, [])
            lists[target] = [*entries, *known] if is_first else [*known, *entries]
            return True
    names = {part.id for part in parts_of(line) if isinstance(part, ast.Name)}
    return not names & set(lists)


def _begun_or_added(line: ast.AST) -> tuple[str | None, ast.expr | None, bool]:
    """The name of the list that a statement begins or adds to, what it adds, as a list, and whether
    that comes first.
    """
    is_first = False
    if isinstance(line, ast.Assign) and len(line.targets) == 1:
        target: ast.expr = line.targets[0]
        more: ast.expr | None = line.value
    elif isinstance(line, ast.AugAssign):
        target = line.target
        more = line.value if isinstance(line.op, ast.Add) else None
    else:
        call = line.value if isinstance(line, ast.Expr) else None
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)):
            return None, None, False
        target = call.func.value
        more, is_first = (None, False) if call.keywords else _added(call.func.attr, call.args)
    return (target.id if isinstance(target, ast.Name) else None), more, is_first


def _added(method: str, arguments: Sequence[ast.expr]) -> tuple[ast.expr | None, bool]:
    """What a method of a list adds, as a list, and whether that comes first. None: not known."""
    match method, arguments:
        case "append", [entry]:
            return ast.List([entry], ast.Load()), False
        case "extend", [entries]:
            return entries, False
        # The first profile is the default, so the place counts.
        case "insert", [ast.Constant(value=0), entry]:
            return ast.List([entry], ast.Load()), True
    return None, False


def _listed(value: ast.expr | None, lists: dict[str, list[ast.expr]]) -> list[ast.expr] | None:
    """The entries of an expression that is a list for sure, each a mapping that is written out."""
    if isinstance(value, ast.Name) and value.id in lists:
        return [*lists[value.id]]
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
        left, right = _listed(value.left, lists), _listed(value.right, lists)
        return None if left is None or right is None else left + right
    if not isinstance(value, ast.List):
        return None
    try:
        are_mappings = all(isinstance(written_out(entry), dict) for entry in value.elts)
    except (NotWrittenOutError, RecursionError):
        return None
    return value.elts if are_mappings else None


def _each_once(entries: Sequence[ast.expr]) -> Iterator[ast.expr]:
    seen: set[str] = set()
    for entry in entries:
        text = ast.dump(entry)
        if text not in seen:
            seen.add(text)
            yield entry
