"""Compile `templates/` and the chart's data into one Python module, so that a render imports neither Jinja2 nor YAML.

`roost chart` writes it. The module carries a fingerprint of all that it was made from; when that differs from what is
on disk, rendering takes the long way through Jinja2, so an edited template counts at once. Tests hold both ways
together.
"""

from __future__ import annotations

import json
import pprint
import re
from typing import TYPE_CHECKING, Final

from jinja2 import nodes

from generator.compile.chart import CompileError
from generator.compile.fingerprint import fingerprint
from generator.render.environment import KEYS, MACROS, make_environment, template_names
from generator.values.loader import load
from generator.values.merge import coalesce

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

MODULE: Final = "generator/compile/compiled_templates.py"
_HEAD: Final = '''"""Written by `roost chart` from templates/ and chart/: edit those."""

# ruff: noqa: ANN001, ANN201, ARG001, D103, E501, E714, F841, I001, PLR1714, RUF100, SIM102, SIM114, UP018, UP034
# mypy: ignore-errors
# fmt: off

from generator.render.functions import (
    default, each, indent, items, plus, read_key, sha256_of, to_int, to_json, to_pretty_json,
)

'''
_CONTEXT_NAMES: Final = frozenset({"values", "release", "chart"})
_FILTERS: Final = frozenset(
    {"to_json", "to_pretty_json", "indent", "int", "plus", "items", "each", "default", "sha256"}
)
# Filters whose function has another name, since Python's own has theirs.
_PYTHON_NAMES: Final = {"int": "to_int", "sha256": "sha256_of"}


def compile_python(root: Path) -> str:
    """Give the module's text for the checkout at `root`. Raises CompileError."""
    folder = root / "templates"
    environment = make_environment(folder)
    parts = [_HEAD]
    names = template_names(folder)
    table = []
    for name in [MACROS, *names]:
        path = folder / name
        if not path.is_file():
            continue
        tree = environment.parse(path.read_text(encoding="utf-8"), name=name)
        writer = _Writer(name)
        parts.append("\n".join(writer.module(tree)) + "\n\n")
        if name != MACROS:
            table.append(f"    {name!r}: {_function(name)},")
    defaults = load((root / "chart" / "values.yaml").read_bytes(), "chart/values.yaml").values
    data = {
        "DEFAULTS": coalesce({}, defaults),
        "SCHEMA": json.loads((root / "chart" / "values.schema.json").read_text(encoding="utf-8")),
        "CHART": _versions(root),
        "FINGERPRINT": fingerprint(root / "templates", root / "chart"),
    }
    parts.extend(f"{name} = {pprint.pformat(value, width=110, sort_dicts=False)}\n" for name, value in data.items())
    parts.append("\n".join(["TEMPLATES = {", *table, "}\n"]))
    return "\n".join(parts)


def write_python(root: Path) -> list[str]:
    """Write the module; its path when it changed."""
    text = compile_python(root)
    target = root / MODULE
    if target.is_file() and target.read_text(encoding="utf-8") == text:
        return []
    target.write_text(text, encoding="utf-8")
    return [MODULE]


def check_python(root: Path) -> list[str]:
    """The module's path when `write_python` would change it."""
    target = root / MODULE
    is_fresh = target.is_file() and target.read_text(encoding="utf-8") == compile_python(root)
    return [] if is_fresh else [MODULE]


def _versions(root: Path) -> tuple[str, str]:
    chart = load((root / "chart" / "Chart.yaml").read_bytes(), "chart/Chart.yaml").values
    return str(chart["version"]), str(chart["appVersion"])


def _function(name: str) -> str:
    return "render_" + re.sub(r"\W", "_", name.removesuffix(".yaml.j2"))


class _Writer:
    """Writes one template's functions. compile_chart refuses most of what is wrong with it; this refuses the rest."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._line = 0
        self._macros: set[str] = set()
        self._locals: set[str] = set()

    def module(self, tree: nodes.Template) -> Iterator[str]:
        """Yield the lines of all functions of a template."""
        if self._name == MACROS:
            macros = [node for node in tree.body if isinstance(node, nodes.Macro)]
            self._macros = {macro.name for macro in macros}
            for macro in macros:
                self._locals = {argument.name for argument in macro.args}
                arguments = "".join(f", v_{argument.name}" for argument in macro.args)
                yield f"def macro_{macro.name}(given{arguments}):"
                yield "    out = []"
                yield from self._body(macro.body, 1)
                yield "    return ''.join(out)"
                yield ""
        else:
            yield f"def {_function(self._name)}(given):"
            yield "    out = []"
            yield from self._body(tree.body, 1)
            yield "    return ''.join(out)"

    def _fault(self, what: object) -> CompileError:
        return CompileError(f"templates/{self._name}:{self._line}: {what} is not in the subset")

    def _body(self, body: Sequence[nodes.Node], depth: int) -> Iterator[str]:
        lines = [line for node in body for line in self._statement(node, depth)]
        yield from lines or [f"{'    ' * depth}pass"]

    def _statement(self, node: nodes.Node, depth: int) -> Iterator[str]:
        self._line = node.lineno
        pad = "    " * depth
        match node:
            case nodes.Output():
                for part in node.nodes:
                    text = repr(part.data) if isinstance(part, nodes.TemplateData) else f"str({self._value(part)})"
                    yield f"{pad}out.append({text})"
            case nodes.If():
                yield f"{pad}if {self._value(node.test)}:"
                yield from self._body(node.body, depth + 1)
                for other in node.elif_:
                    yield f"{pad}elif {self._value(other.test)}:"
                    yield from self._body(other.body, depth + 1)
                if node.else_:
                    yield f"{pad}else:"
                    yield from self._body(node.else_, depth + 1)
            case nodes.For():
                over = self._value(node.iter)
                yield f"{pad}for {self._target(node.target)} in {over}:"
                yield from self._body(node.body, depth + 1)
            case nodes.Assign():
                value = self._value(node.node)
                yield f"{pad}{self._target(node.target)} = {value}"
            case nodes.FromImport():
                self._macros |= {name for name in node.names if isinstance(name, str)}
            case _:
                raise self._fault(type(node).__name__)

    def _target(self, node: nodes.Node) -> str:
        if isinstance(node, nodes.Tuple):
            return ", ".join(self._target(item) for item in node.items)
        if not isinstance(node, nodes.Name):
            raise self._fault(type(node).__name__)
        self._locals.add(node.name)
        return f"v_{node.name}"

    def _value(self, node: nodes.Node) -> str:
        match node:
            case nodes.Name():
                return self._named(node.name)
            case nodes.Const():
                return repr(node.value)
            case nodes.TemplateData():
                return repr(node.data)
            case nodes.Getattr():
                if isinstance(node.node, nodes.Name) and node.node.name == "keys":
                    return repr(KEYS[node.attr])
                return f"read_key({self._value(node.node)}, {node.attr!r})"
            case nodes.Getitem():
                return f"read_key({self._value(node.node)}, {self._value(node.arg)})"
            case nodes.Filter():
                if node.node is None or node.name not in _FILTERS:
                    raise self._fault(f"filter {node.name}")
                given = ", ".join(self._value(part) for part in [node.node, *node.args])
                return f"{_PYTHON_NAMES.get(node.name, node.name)}({given})"
            case nodes.Concat():
                return "(" + " + ".join(f"str({self._value(part)})" for part in node.nodes) + ")"
            case nodes.And() | nodes.Or():
                word = "and" if isinstance(node, nodes.And) else "or"
                return f"({self._value(node.left)} {word} {self._value(node.right)})"
            case nodes.Not():
                return f"(not {self._value(node.node)})"
            case nodes.Test() if node.name == "none":
                return f"({self._value(node.node)} is None)"
            case nodes.Compare() if len(node.ops) == 1 and node.ops[0].op in {"eq", "ne"}:
                sign = "==" if node.ops[0].op == "eq" else "!="
                return f"({self._value(node.expr)} {sign} {self._value(node.ops[0].expr)})"
            case nodes.Dict():
                pairs = (f"{self._value(pair.key)}: {self._value(pair.value)}" for pair in node.items)
                return "{" + ", ".join(pairs) + "}"
            case nodes.List():
                return "[" + ", ".join(self._value(item) for item in node.items) + "]"
            case nodes.Call() if isinstance(node.node, nodes.Name):
                arguments = [self._value(argument) for argument in node.args]
                if node.node.name in self._macros:
                    return f"macro_{node.node.name}({', '.join(['given', *arguments])})"
                return f"given[{node.node.name!r}]({', '.join(arguments)})"
            case _:
                raise self._fault(type(node).__name__)

    def _named(self, name: str) -> str:
        if name in self._locals:
            return f"v_{name}"
        if name in _CONTEXT_NAMES:
            return f"given[{name!r}]"
        raise self._fault(f"the name {name}")
