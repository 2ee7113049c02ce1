"""Names of the hub's Python that stand for one value: replaced by what they stand for.

`gpu = {"key": "gpu"}` and `spawner = c.KubeSpawner` are common; so are lists by `dict()`, `list()`
and `+`. A name counts if it is given a value once, and if nothing could change that value.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

# Calls that leave a list or dictionary among their arguments as it is: `x.append(name)` changes x,
# not what the name stands for.
_LEAVE_ARGUMENTS_ALONE: Final = frozenset(
    ["append", "extend", "insert", "update", "setattr", "set_trait", "list", "dict", "tuple"]
)
# What `ast.parse` and walks raise at a text that is no Python, or that nests too deep.
UNREADABLE: Final = (SyntaxError, ValueError, RecursionError, MemoryError)
Function = ast.FunctionDef | ast.AsyncFunctionDef
_MAX_SIZE: Final = 2000


class NotWrittenOutError(ValueError):
    """An expression whose value only a run would show."""


def written_out(value: ast.expr) -> object:
    """The value of an expression that is written out: literals, `dict(a=1)`, `list(x)`, `[*x, y]`,
    `{**x}` and `x + y` of such. Raises NotWrittenOutError for any other.
    """
    if isinstance(value, ast.Constant):
        return value.value
    if isinstance(value, ast.List | ast.Tuple):
        return [item for element in value.elts for item in _elements(element)]
    if isinstance(value, ast.Dict):
        return _dictionary(zip(value.keys, value.values, strict=True))
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add | ast.BitOr):
        return _together(written_out(value.left), written_out(value.right))
    if isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.USub):
        number = written_out(value.operand)
        if isinstance(number, int | float):
            return -number
    if isinstance(value, ast.JoinedStr):
        parts = [part.value for part in value.values if isinstance(part, ast.Constant)]
        if len(parts) == len(value.values):
            return "".join(str(part) for part in parts)
    if isinstance(value, ast.Call):
        return _called(value)
    raise NotWrittenOutError(ast.dump(value)[:80])


def _elements(element: ast.expr) -> list[object]:
    if not isinstance(element, ast.Starred):
        return [written_out(element)]
    several = written_out(element.value)
    if isinstance(several, list):
        return several
    raise NotWrittenOutError("a starred value that isn't a list")


def _dictionary(items: Iterator[tuple[ast.expr | None, ast.expr]]) -> dict[object, object]:
    entries: dict[object, object] = {}
    for key, item in items:
        value = written_out(item)
        if key is not None:
            name = written_out(key)
            if isinstance(name, list | dict):
                raise NotWrittenOutError("a key that isn't a text")
            entries[name] = value
        elif isinstance(value, dict):
            entries |= value
        else:
            raise NotWrittenOutError("a starred value that isn't a dictionary")
    return entries


def _together(left: object, right: object) -> object:
    if isinstance(left, list) and isinstance(right, list):
        return left + right
    if isinstance(left, dict) and isinstance(right, dict):
        return {**left, **right}
    if isinstance(left, str) and isinstance(right, str):
        return left + right
    raise NotWrittenOutError("a sum of other things")


def _called(call: ast.Call) -> object:
    """`dict`, `list` and `tuple` of what is written out."""
    called = call.func.id if isinstance(call.func, ast.Name) else ""
    if called == "dict" and len(call.args) < 2:
        first = written_out(call.args[0]) if call.args else {}
        if isinstance(first, dict):
            return {**first, **_dictionary(_keyword_item(keyword) for keyword in call.keywords)}
    if called in ("list", "tuple") and len(call.args) < 2 and not call.keywords:
        listed = written_out(call.args[0]) if call.args else []
        if isinstance(listed, list):
            return list(listed)
    raise NotWrittenOutError(called)


def _keyword_item(keyword: ast.keyword) -> tuple[ast.expr | None, ast.expr]:
    """Key and value as in a dictionary; no key: `**` stands before the value."""
    key = ast.Constant(keyword.arg) if keyword.arg else None
    return key, keyword.value


def function_named(tree: ast.Module, name: str) -> Function | None:
    """The function of the code that a name means; None: there is none, or several."""
    functions = [node for node in tree.body if isinstance(node, Function) and node.name == name]
    return functions[0] if len(functions) == 1 else None


def parents_of(tree: ast.AST) -> dict[ast.AST, ast.AST]:
    """The node around each node."""
    return {inner: node for node in ast.walk(tree) for inner in ast.iter_child_nodes(node)}


def without_names(tree: ast.Module) -> ast.Module:
    """The code with names that stand for one value replaced by it. `tree` is changed."""
    # A name may stand for what holds another one, three deep.
    for _ in range(3):
        parents = parents_of(tree)
        replaced = {
            name: assign.value
            for name, assign in _given_once(tree).items()
            if _stays(name, assign, tree, parents)
        }
        if not replaced:
            return tree
        _Names(replaced).visit(tree)
    return tree


def _given_once(tree: ast.Module) -> dict[str, ast.Assign]:
    """Names that have one value in all of the code, with the statement that gives it."""
    times = _times_given(tree)
    given: dict[str, ast.Assign] = {}
    for holder in ast.walk(tree):
        if not isinstance(holder, ast.Module | Function):
            continue
        for statement in holder.body:
            if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
                continue
            target = statement.targets[0]
            if isinstance(target, ast.Name) and times[target.id] == 1:
                given[target.id] = statement
    return given


def _times_given(tree: ast.Module) -> Counter[str]:
    """How often each name is given a value."""
    times: Counter[str] = Counter()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            times[node.id] += 1
        elif isinstance(node, ast.arg):
            times[node.arg] += 1
        elif isinstance(node, ast.alias):
            times[(node.asname or node.name).partition(".")[0]] += 1
        elif isinstance(node, Function | ast.ClassDef):
            times[node.name] += 1
        elif isinstance(node, ast.Global | ast.Nonlocal):
            # Twice: a function changes the name of another, so it never has one value.
            times.update(node.names * 2)
        elif isinstance(node, ast.ExceptHandler) and node.name:
            times[node.name] += 1
    return times


def _stays(
    name: str, assign: ast.Assign, tree: ast.Module, parents: Mapping[ast.AST, ast.AST]
) -> bool:
    """Whether a name always is the value that it was given, and is used at all."""
    value = assign.value
    uses = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)
    ]
    if not uses:
        return False
    if isinstance(value, ast.Attribute):
        return _is_configuration_class(value) and assign in tree.body
    if sum(1 for _ in ast.walk(value)) > _MAX_SIZE:
        return False
    try:
        known = written_out(value)
    except (NotWrittenOutError, RecursionError):
        return False
    if not isinstance(known, list | dict):
        return True
    return all(_only_reads(parents.get(use), parents) for use in uses)


def _is_configuration_class(value: ast.expr) -> bool:
    """Whether an expression is a class of the configuration, such as `c.KubeSpawner`.

    No other attribute stays what it is: a trait's value may change later.
    """
    return (
        isinstance(value, ast.Attribute)
        and isinstance(value.value, ast.Name)
        and value.value.id == "c"
    )


def _only_reads(around: ast.AST | None, parents: Mapping[ast.AST, ast.AST]) -> bool:
    """Whether what is around a name leaves its list or dictionary as it is."""
    if isinstance(around, ast.Call):
        called = around.func
        word = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
        return word in _LEAVE_ARGUMENTS_ALONE
    if isinstance(around, ast.keyword):
        return _only_reads(parents.get(around), parents)
    if isinstance(around, ast.Starred):
        return True
    if isinstance(around, ast.Assign):
        return len(around.targets) == 1 and not isinstance(around.targets[0], ast.Name)
    return isinstance(
        around, ast.List | ast.Tuple | ast.Dict | ast.BinOp | ast.AugAssign | ast.Compare
    )


class _Names(ast.NodeTransformer):
    """Puts values in the place of names."""

    def __init__(self, values: Mapping[str, ast.expr]) -> None:
        self._values = values

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if isinstance(node.ctx, ast.Load) and node.id in self._values:
            return ast.copy_location(_copy(self._values[node.id]), node)
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.AST | None:
        target = node.targets[0]
        is_replaced = isinstance(target, ast.Name) and target.id in self._values
        if is_replaced and _is_configuration_class(node.value):
            # The spawner's configuration by another name: each use was replaced.
            return ast.copy_location(ast.Pass(), node)
        return self.generic_visit(node)


def _copy(value: ast.expr) -> ast.expr:
    return ast.parse(ast.unparse(value), mode="eval").body
