"""Write an expression of restricted Jinja2 in Go's template language.

Twin of `generator/render/environment.py` and `generator/render/functions.py`. Jinja2's own parser
gives the expression's tree; what has no equal meaning in both languages is refused, and so is a
path that `chart/values.schema.json` doesn't know.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from jinja2 import Environment, TemplateSyntaxError, nodes

from generator.render.functions import KEYS
from tools.compile.shape import Shape

# Argument names of each macro, by the file below `templates/` that holds it.
Macros = Mapping[str, Mapping[str, Sequence[str]]]

_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")

# Functions of a template's context that give a string: written by hand in chart/templates, as
# `roost.NAME`.
_HELPERS: Final = (
    "object_name",
    "cluster_object_name",
    "scheduler_name",
    "dashboard_uid",
    "attract_label",
    "pulled_label",
    "startup_taint",
    "pulled_prefix",
    "attract_prefix",
    "puller_container",
    "popular_prefix",
    "puller_method",
    "lab_image",
    "own_image",
    "pause_image",
    "in_registry",
    "for_cluster",
    "minor_for_tag",
)
# What `pullers` gives, as a schema.
_PULLERS: Final = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "nodeSelector": {"type": "object", "additionalProperties": {"type": "string"}},
            "tolerations": {"type": "array", "items": {"type": "object"}},
            "requiredNodeTerms": {"type": "array", "items": {"type": "object"}},
            "images": {"type": "array", "items": {"type": "string"}},
        },
        "additionalProperties": False,
    },
}
_RELEASE: Final = {"name": "Release.Name", "namespace": "Release.Namespace"}
_CHART_FACTS: Final = {"version": "Chart.Version", "app_version": "Chart.AppVersion"}
# What may be printed; anything else would be quoted or spelt differently by the two languages.
_PRINTED_FILTERS: Final = frozenset({"to_json", "to_pretty_json", "indent", "int"})


class CompileError(Exception):
    """A template uses what the subset doesn't have.

    The text names file, line, construct and the way out.
    """


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression in Go: its text (one word, or in parentheses), its shape, and whether it is
    text that we wrote.
    """

    go: str
    shape: Shape
    is_text: bool = False
    is_string: bool = False

    def bare(self) -> str:
        """The text without its outer parentheses."""
        return (
            self.go[1:-1]
            if self.go.startswith("(") and _closes_at(self.go) == len(self.go) - 1
            else self.go
        )


def _closes_at(text: str) -> int:
    """Where the parenthesis that opens `text` closes; strings are skipped."""
    depth = 0
    quoted = False
    escaped = False
    for position, char in enumerate(text):
        if quoted:
            escaped, quoted = (char == "\\" and not escaped), not (char == '"' and not escaped)
        elif char == '"':
            quoted = True
        elif char in "()":
            depth += 1 if char == "(" else -1
            if depth == 0:
                return position
    return -1


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


@dataclass(slots=True)
class Block:
    """An open `if`, `for` or `macro`, and the names bound in it."""

    kind: str
    line: int
    names: dict[str, Expression]


class ExpressionCompiler:
    """Compiles the expressions of one template.

    Holds where it is, for faults, and which names are bound.
    """

    def __init__(self, name: str, shape: Shape, files: Macros) -> None:
        self.name = name
        self.shape = shape
        self.files = files
        self.macros = {
            macro: arguments for file in files.values() for macro, arguments in file.items()
        }
        self.line = 1
        self.blocks: list[Block] = [Block("file", 1, {})]
        self.imported: set[str] = set()
        self.parser = parser()

    def fault(self, message: str) -> CompileError:
        """Say what is wrong at the current line."""
        return CompileError(f"templates/{self.name}:{self.line}: {message}")

    @property
    def _root(self) -> str:
        """How to reach the chart's root: a macro's `$` is its argument."""
        return "$.root" if self._in_macro else "$"

    @property
    def _in_macro(self) -> bool:
        """Return whether the current line is inside a macro."""
        return any(block.kind == "macro" for block in self.blocks)

    def _at_root(self, path: str) -> str:
        """How to reach `path` of the chart's root."""
        return f"$.root.{path}" if self._in_macro else f"$.{path}"

    def parse_statement(self, source: str) -> nodes.Node:
        """Parse one tag with its braces. Raises CompileError."""
        try:
            return self.parser.parse(source).body[0]
        except TemplateSyntaxError as error:
            raise self.fault(error.message or "is not valid Jinja2") from error

    def expression_of(self, text: str) -> Expression:
        """Give the text of an expression in Go."""
        node = self.parse_statement("{{ " + text + " }}")
        if not isinstance(node, nodes.Output) or len(node.nodes) != 1:
            # Jinja's parser turns constants into text: only a literal can be here.
            raise self.fault("a constant where a value is needed")
        return self.expression(node.nodes[0])

    def printed(self, inner: str) -> str:
        """Give the pipeline that prints an expression."""
        node = self.parse_statement("{{ " + inner + " }}")
        if not isinstance(node, nodes.Output) or len(node.nodes) != 1:
            raise self.fault("write a constant as text")
        value = node.nodes[0]
        if isinstance(value, nodes.Filter) and value.name == "indent" and value.node is not None:
            text = self.expression(value.node)
            self._need_text(text)
            return f"{text.bare()} | indent {self._constant_int(value.args)}"
        is_macro = (
            isinstance(value, nodes.Call)
            and isinstance(value.node, nodes.Name)
            and (value.node.name in self.macros or value.node.name == "fail")
        )
        if not is_macro and not (
            isinstance(value, nodes.Filter) and value.name in _PRINTED_FILTERS
        ):
            raise self.fault(
                "a bare value: end it in to_json, to_pretty_json, int or indent, or the languages"
                " print it apart"
            )
        return self.expression(value).bare()

    def _constant_int(self, arguments: Sequence[nodes.Expr]) -> int:
        if (
            len(arguments) == 1
            and isinstance(arguments[0], nodes.Const)
            and isinstance(arguments[0].value, int)
        ):
            return arguments[0].value
        raise self.fault("indent takes one constant number")

    def plain(self, kind: str) -> Shape:
        """The shape of a value of one JSON type."""
        return Shape(({"type": kind},), {})

    def need(self, given: Expression, accepted: set[str], what: str) -> None:
        """Refuse an expression that is known to be of another type."""
        types = given.shape.types()
        if types and not types <= accepted:
            raise self.fault(
                f"{what}: {given.go} is {' or '.join(sorted(types))}, needed is"
                f" {' or '.join(sorted(accepted))}"
            )

    def _is_string(self, given: Expression) -> bool:
        """Return whether an expression is known to be a string."""
        return given.is_string or given.is_text or given.shape.types() == {"string"}

    def _need_string(self, given: Expression, what: str) -> None:
        """Refuse an expression that isn't known to be a string: Go and Python spell all others
        differently.
        """
        if not self._is_string(given):
            kinds = " or ".join(sorted(given.shape.types())) or "of unknown type"
            raise self.fault(f"{what} takes strings only: {given.go} is {kinds}")

    def _need_text(self, given: Expression) -> None:
        if not given.is_text:
            raise self.fault(
                "indent, replace and sha256 take what a macro, chart_file or to_pretty_json made,"
                f" not {given.go}"
            )

    def expression(self, node: nodes.Node) -> Expression:
        """Give `node` in Go."""
        match node:
            case nodes.Name():
                return self._named(node.name)
            case nodes.Const():
                return self._constant(node.value)
            case nodes.TemplateData():
                return self._constant(node.data)
            case nodes.Getattr():
                return self._attribute(node.node, node.attr)
            case nodes.Getitem():
                return self._item(node)
            case nodes.Filter():
                return self._filtered(node)
            case nodes.Concat():
                return self._joined(node.nodes)
            case nodes.And() | nodes.Or():
                word = "and" if isinstance(node, nodes.And) else "or"
                sides = self.expression(node.left), self.expression(node.right)
                are_strings = all(self._is_string(side) for side in sides)
                shape = self.plain("string") if are_strings else Shape((), {})
                return Expression(
                    f"({word} {sides[0].go} {sides[1].go})", shape, is_string=are_strings
                )
            case nodes.Not():
                return Expression(f"(not {self.expression(node.node).go})", self.plain("boolean"))
            case nodes.Test():
                if node.name != "none" or node.args:
                    raise self.fault(f"'is {node.name}': only 'is none' and 'is not none'")
                return Expression(
                    f'(kindIs "invalid" {self.expression(node.node).go})', self.plain("boolean")
                )
            case nodes.Compare():
                return self._comparison(node)
            case nodes.Call():
                return self._call(node)
            case nodes.Dict():
                return self._mapping(node)
            case nodes.List():
                go = " ".join(["list", *(self.expression(item).go for item in node.items)])
                return Expression(f"({go})", self.plain("array"))
            case _:
                raise self.fault(f"{type(node).__name__} is not in the subset")

    def _joined(self, parts: Sequence[nodes.Expr]) -> Expression:
        """Give `a ~ b ~ c`: strings, and whole numbers by `| int`."""
        form = ""
        words = []
        for part in parts:
            given = self.expression(part)
            if isinstance(part, nodes.Filter) and part.name == "int":
                form += "%d"
            else:
                self._need_string(given, "'~'")
                form += "%s"
            words.append(given.go)
        return Expression(
            f'(printf "{form}" {" ".join(words)})', self.plain("string"), is_string=True
        )

    def _constant(self, value: object) -> Expression:
        if isinstance(value, bool):
            return Expression("true" if value else "false", self.plain("boolean"))
        if isinstance(value, int):
            return Expression(str(value), self.plain("integer"))
        if isinstance(value, str):
            return Expression(_quote(value), self.plain("string"), is_string=True)
        if isinstance(value, Mapping):
            pairs = (f" {_quote(key)} {self._constant(item).go}" for key, item in value.items())
            return Expression(f"(dict{''.join(pairs)})", self.plain("object"))
        raise self.fault(f"the constant {value!r}: only strings, whole numbers, true and false")

    def _named(self, name: str) -> Expression:
        for block in reversed(self.blocks):
            if name in block.names:
                return block.names[name]
        if name == "values":
            return Expression(self._at_root("Values"), self.shape)
        raise self.fault(
            f"'{name}' is bound nowhere here (what an 'if' or 'for' sets ends with it)"
        )

    def _attribute(self, node: nodes.Expr, attribute: str) -> Expression:
        if isinstance(node, nodes.Name) and node.name in ("release", "chart", "keys"):
            if node.name == "keys":
                if attribute not in KEYS:
                    raise self.fault(f"'keys.{attribute}': known are {', '.join(KEYS)}")
                return self._constant(KEYS[attribute])
            facts = _RELEASE if node.name == "release" else _CHART_FACTS
            if attribute not in facts:
                raise self.fault(f"'{node.name}.{attribute}': known are {', '.join(facts)}")
            return Expression(self._at_root(facts[attribute]), self.plain("string"), is_string=True)
        base = self.expression(node)
        shape = self._key_of(base, attribute)
        if not _IDENTIFIER.match(attribute):
            return Expression(f"(index {base.go} {_quote(attribute)})", shape)
        return Expression(f"{base.go}.{attribute}", shape)

    def _key_of(self, base: Expression, key: str) -> Shape:
        shape = base.shape.key(key)
        if shape is None:
            raise self.fault(f"{base.go} has no key '{key}' in chart/values.schema.json")
        return shape

    def _item(self, node: nodes.Getitem) -> Expression:
        if isinstance(node.arg, nodes.Const) and isinstance(node.arg.value, str):
            return self._attribute(node.node, node.arg.value)
        base = self.expression(node.node)
        key = self.expression(node.arg)
        self._need_string(key, "[…]")
        return Expression(f"(index {base.go} {key.go})", base.shape.value())

    def _filtered(self, node: nodes.Filter) -> Expression:
        if node.node is None or node.kwargs:
            raise self.fault(f"filter '{node.name}' without a value, or with named arguments")
        given = self.expression(node.node)
        match node.name:
            case "to_json":
                return Expression(f"(toJson {given.go})", self.plain("string"), is_string=True)
            case "to_pretty_json":
                return Expression(f"(toPrettyJson {given.go})", self.plain("string"), is_text=True)
            case "int":
                return Expression(f"(int64 {given.go})", self.plain("integer"), is_string=False)
            case "sha256":
                self._need_text(given)
                return Expression(f"(sha256sum {given.go})", self.plain("string"), is_string=True)
            case "indent":
                self._need_text(given)
                go = f"(indent {self._constant_int(node.args)} {given.go})"
                return Expression(go, self.plain("string"), is_text=True)
            case "replace":
                self._need_text(given)
                words = [self.expression(argument) for argument in node.args]
                if len(words) != 2:
                    raise self.fault("replace takes two arguments")
                for word in words:
                    self._need_string(word, "replace")
                go = f"(replace {words[0].go} {words[1].go} {given.go})"
                return Expression(go, self.plain("string"), is_text=True)
            case "default":
                if len(node.args) != 1:
                    raise self.fault("default takes one argument")
                fallback = self.expression(node.args[0])
                go = f'(ternary {fallback.go} {given.go} (kindIs "invalid" {given.go}))'
                kinds = given.shape.types()
                known = bool(kinds) and kinds - {"null"} <= fallback.shape.types()
                return Expression(go, fallback.shape if known else given.shape)
            case "items":
                raise self.fault("'items' outside 'for'")
            case _:
                raise self.fault(f"filter '{node.name}' is not in the subset")

    def _comparison(self, node: nodes.Compare) -> Expression:
        if [op.op for op in node.ops] == ["in"] and isinstance(node.expr, nodes.Const):
            whole = self.expression(node.ops[0].expr)
            self._need_string(whole, "in")
            return Expression(
                f"(contains {self.expression(node.expr).go} {whole.go})", self.plain("boolean")
            )
        if len(node.ops) != 1 or node.ops[0].op not in ("eq", "ne"):
            raise self.fault("a comparison other than one ==, != or constant in string")
        sides = self.expression(node.expr), self.expression(node.ops[0].expr)
        for side in sides:
            # Go refuses mixed types.
            self._need_string(side, "== and !=")
        word = "eq" if node.ops[0].op == "eq" else "ne"
        return Expression(f"({word} {sides[0].go} {sides[1].go})", self.plain("boolean"))

    def _mapping(self, node: nodes.Dict) -> Expression:
        parts = ["dict"]
        for pair in node.items:
            key = self.expression(pair.key)
            self._need_string(key, "a key")
            parts += [key.go, self.expression(pair.value).go]
        return Expression(f"({' '.join(parts)})", self.plain("object"))

    def _call(self, node: nodes.Call) -> Expression:
        if not isinstance(node.node, nodes.Name) or node.kwargs or node.dyn_args or node.dyn_kwargs:
            raise self.fault("a call of other than a macro or function, or with named arguments")
        name = node.node.name
        if name == "kube_at_least":
            if len(node.args) != 1 or not isinstance(node.args[0], nodes.Const):
                raise self.fault('kube_at_least takes one constant: kube_at_least("1.36")')
            version = self._at_root("Capabilities.KubeVersion.Version")
            constraint = _quote(f">={node.args[0].value}-0")
            return Expression(f"(semverCompare {constraint} {version})", self.plain("boolean"))
        given = [self.expression(argument) for argument in node.args]
        words = " ".join(argument.go for argument in given)
        if name == "chart_file":
            return Expression(
                f"({self._at_root('Files.Get')} {words})", self.plain("string"), is_text=True
            )
        if name == "merge":
            return Expression(f'(include "roost.merge" (list {words}) | fromJson)', Shape((), {}))
        if name == "core_pod":
            return Expression(
                f'(include "roost.core_pod" (list {words}) | fromJson)', given[0].shape
            )
        if name == "pulled_labels":
            go = f'(include "roost.pulled_labels" (list {self._root} {words}) | fromJson)'
            return Expression(
                go, Shape(({"type": "object", "additionalProperties": {"type": "string"}},), {})
            )
        if name == "placeholder_sets":
            go = f'(include "roost.placeholder_sets" (list {self._root} {words}) | fromJsonArray)'
            return Expression(go, given[0].shape)
        if name == "profile_seats":
            return Expression(
                f'(include "roost.profile_seats" (list {self._root} {words}) | fromJsonArray)',
                Shape((), {}),
            )
        if name == "concat":
            for argument in given:
                self.need(argument, {"array"}, "concat")
            return Expression(
                f"(concat {words})",
                Shape(
                    tuple(s for argument in given for s in argument.shape.alternatives),
                    given[0].shape.definitions,
                ),
            )
        if name == "unique":
            self.need(given[0], {"array"}, "unique")
            return Expression(f"(uniq {words})", given[0].shape)
        if name == "secret_names":
            self.need(given[0], {"array"}, "secret_names")
            go = f'(include "roost.secret_names" (list {self._root} {words}) | fromJsonArray)'
            return Expression(go, Shape(({"type": "array", "items": {"type": "string"}},), {}))
        if name == "pullers":
            go = f'(include "roost.pullers" (list {self._root} {words}) | fromJsonArray)'
            return Expression(go, Shape((_PULLERS,), {}))
        if name == "fail":
            for argument in given:
                self._need_string(argument, "fail")
            return Expression(f"(fail {words})", self.plain("string"), is_text=True)
        if name in _HELPERS:
            arguments = " ".join(["list", self._root, *(argument.go for argument in given)])
            return Expression(
                f'(include "roost.{name}" ({arguments}))', self.plain("string"), is_string=True
            )
        return self._macro_call(name, given)

    def _macro_call(self, name: str, given: Sequence[Expression]) -> Expression:
        if name not in self.macros:
            raise self.fault(f"'{name}' is neither a macro nor a function")
        if name not in self.imported and name not in self.files.get(self.name, ()):
            file = next(file for file, macros in self.files.items() if name in macros)
            raise self.fault(
                f"macro '{name}' isn't imported: from \"{file}\" import {name} with context"
            )
        parameters = self.macros[name]
        if len(parameters) != len(given):
            raise self.fault(
                f"macro '{name}' takes {len(parameters)} arguments, found {len(given)}"
            )
        pairs = [f"{_quote(key)} {value.go}" for key, value in zip(parameters, given, strict=True)]
        words = " ".join([f'"root" {self._root}', *pairs])
        return Expression(
            f'(include "roost.{name}" (dict {words}))', self.plain("string"), is_text=True
        )


def parser() -> Environment:
    """The parser of Jinja2, which leaves white space as it stands."""
    return Environment(keep_trailing_newline=True, autoescape=False)  # noqa: S701
