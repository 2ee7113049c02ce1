"""Find the function that the hub's Python registers to run before each start."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Final, NamedTuple

from generator.importing.python_names import UNREADABLE, function_named

# Before a profile's overrides; what later hooks tell the spawner comes too late for its pod.
_SPAWN_HOOK: Final = "pre_spawn_hook"
_SPAWNER_CLASSES: Final = ("c.KubeSpawner", "c.Spawner")


class Hook(NamedTuple):
    """The one function that the code registers for starts. Empty: there is none, or several."""

    name: str = ""
    # Where a lambda is registered: the lambda itself.
    function: ast.Lambda | None = None


def spawn_hook(codes: Sequence[str]) -> Hook:
    """What runs before each start, by all pieces of code."""
    # Of each place that names the trait. Where it isn't known what it registers: an empty Hook.
    hooks: list[Hook] = []
    for code in codes:
        try:
            tree = ast.parse(code)
            hooks += [_hook_at(node, tree) for node in ast.walk(tree) if _is_spawn_hook(node)]
        except UNREADABLE:
            return Hook()
    return hooks[0] if len(hooks) == 1 else Hook()


def _is_spawn_hook(node: ast.AST) -> bool:
    """Whether a part of the code names the trait: as an attribute, a text or an argument."""
    match node:
        case (
            ast.Attribute(attr=word)
            | ast.Constant(value=word)
            | ast.arg(arg=word)
            | ast.keyword(arg=word)
        ):
            return bool(word == _SPAWN_HOOK)
    return False


def _hook_at(node: ast.AST, tree: ast.Module) -> Hook:
    """What is registered where code names the trait: by `c.KubeSpawner.pre_spawn_hook = name`, or a
    lambda in place of the name. Empty, if it is named in another way, or within other code.
    """
    if not (isinstance(node, ast.Attribute) and ast.unparse(node.value) in _SPAWNER_CLASSES):
        return Hook()
    for line in tree.body:
        if isinstance(line, ast.Assign) and line.targets == [node]:
            return _registered(line.value, tree)
    return Hook()


def _registered(value: ast.expr, tree: ast.Module) -> Hook:
    if isinstance(value, ast.Lambda):
        return Hook(function=value)
    function = function_named(tree, value.id) if isinstance(value, ast.Name) else None
    # A decorator may run something else in its place.
    if function is None or function.decorator_list:
        return Hook()
    return Hook(function.name)
