"""Compile `templates/` (restricted Jinja2) into the chart's Go templates of the same layout: `roost chart`.

Twin of `generator/render/environment.py`. Each tag is parsed by Jinja2's own parser and its expression tree is written
out in Go's template language; the text around it is kept as it stands. Whatever has no equal meaning in both
languages is refused with file, line and construct, and so is a path that `chart/values.schema.json` doesn't know.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from jinja2 import Environment, TemplateSyntaxError, nodes

from generator.compile.shape import Shape, read_shape
from generator.render.environment import KEYS, MACROS, template_names

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

_SOURCES: Final = "templates"
_CHART: Final = "chart"
_MACROS_TPL: Final = "templates/_macros.tpl"
_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_GENERATED: Final = "{{- /* Written by `roost chart` from templates/"

# Functions of a template's context, by their twin in chart/templates/_helpers.tpl; all give a string.
_HELPERS: Final = {
    "object_name": "roost.object_name",
    "cluster_object_name": "roost.cluster_object_name",
    "scheduler_name": "roost.scheduler_name",
    "attract_label": "roost.attract_label",
    "pulled_label": "roost.pulled_label",
    "startup_taint": "roost.startup_taint",
    "readiness_taint": "roost.readiness_taint",
    "images_condition": "roost.images_condition",
    "pulled_prefix": "roost.pulled_prefix",
    "attract_prefix": "roost.attract_prefix",
    "puller_component": "roost.puller_component",
    "puller_container": "roost.puller_container",
    "puller_method": "roost.puller_method",
    "own_image": "roost.own_image",
    "for_cluster": "roost.for_cluster",
    "minor_for_cluster": "roost.minor_for_cluster",
}
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
_PRINTED_FILTERS: Final = frozenset({"to_json", "to_pretty_json", "indent", "int", "plus"})


class CompileError(Exception):
    """A template uses what the subset doesn't have. The text names file, line, construct and the way out."""


# --- expressions ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression in Go: its text (one word, or in parentheses), its shape, and whether it is text that we wrote."""

    go: str
    shape: Shape
    is_text: bool = False
    is_string: bool = False

    def bare(self) -> str:
        """The text without its outer parentheses."""
        return self.go[1:-1] if self.go.startswith("(") and _closes_at(self.go) == len(self.go) - 1 else self.go


def _closes_at(text: str) -> int:
    """Where the parenthesis that opens `text` closes; strings are skipped."""
    depth, quoted, escaped = 0, False, False
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
class _Block:
    """An open `if`, `for` or `macro`, and the names bound in it."""

    kind: str
    line: int
    names: dict[str, Expression]


class _Compiler:
    """Compiles one template. Holds where it is, for faults, and which names are bound."""

    def __init__(self, name: str, source: str, shape: Shape, macros: Mapping[str, Sequence[str]]) -> None:
        self.name = name
        self.source = source
        self.shape = shape
        self.macros = macros
        self.line = 1
        self.blocks: list[_Block] = [_Block("file", 1, {})]
        self.imported: set[str] = set()
        self.parser = _parser()

    def fault(self, message: str) -> CompileError:
        """Say what is wrong at the current line."""
        return CompileError(f"{_SOURCES}/{self.name}:{self.line}: {message}")

    @property
    def root(self) -> str:
        """How to reach the chart's root: a macro's `$` is its argument."""
        return "$.root" if self.in_macro else "$"

    @property
    def in_macro(self) -> bool:
        """Tell whether the current line is inside a macro."""
        return any(block.kind == "macro" for block in self.blocks)

    def at_root(self, path: str) -> str:
        return f"$.root.{path}" if self.in_macro else f"$.{path}"

    # -- layout

    def compile(self) -> str:
        """Give the Go template."""
        try:
            self.parser.parse(self.source, name=self.name)
        except TemplateSyntaxError as error:
            self.line = error.lineno
            raise self.fault(error.message or "is no Jinja2") from error
        done: list[str] = []
        for begin, end, kind, inner, line in self.tags():
            self.line = line
            if kind == "data":
                if "{{" in inner:
                    raise self.fault("literal '{{': print it as a string, {{ \"{{\" | to_json }}")
                done.append(inner)
            elif kind == "variable":
                done.append("{{ " + self.printed(inner) + " }}")
            else:
                opening = "{{- " if self.check_layout(begin, end, kind, inner) else "{{ "
                text = self.comment(inner) if kind == "comment" else self.statement(inner)
                # Go wants a comment, and a trim mark, right at the brace.
                closing = "}}" if text.endswith(("*/", " -")) else " }}"
                done.append(opening + text + closing if text else "")
        if len(self.blocks) > 1:
            self.line = self.blocks[-1].line
            raise self.fault(f"'{self.blocks[-1].kind}' is never closed")
        return "".join(done)

    def tags(self) -> Iterator[tuple[int, int, str, str, int]]:
        """Yield the parts of the source: begin, end, kind (data, block, variable, comment), inner text, line."""
        position, inner, begin, kind, begin_line = 0, "", 0, "", 1
        for line, part, text in self.parser.lexer.tokeniter(self.source, self.name):
            # A '-' in a tag makes the lexer drop white space, which it then doesn't report.
            start = self.source.index(text, position) if text else position
            position = start + len(text)
            if part in ("raw_begin", "raw_end"):
                self.line = line
                raise self.fault("'raw': print the text as a string, {{ \"{{ … }}\" | to_json }}")
            elif part in ("block_begin", "variable_begin", "comment_begin"):
                kind, inner, begin, begin_line = part.removesuffix("_begin"), "", start, line
                if "-" in text or "+" in text:
                    is_end_of_macro = self.source[position:].lstrip().startswith("endmacro")
                    self.line = line
                    if not is_end_of_macro:
                        raise self.fault(f"white space control {text!r}: only {{%- endmacro %}} may trim")
            elif part in ("block_end", "variable_end", "comment_end"):
                if "-" in text or "+" in text:
                    self.line = line
                    raise self.fault(f"white space control {text.strip()!r}: only {{%- endmacro %}} may trim")
                yield begin, position, kind, inner, begin_line
                kind = ""
            elif part == "data":
                yield start, position, "data", text, line
            elif kind:
                inner += text

    def check_layout(self, begin: int, end: int, kind: str, inner: str) -> bool:
        """Tell whether a statement stands alone on its line; refuse one that Jinja2 and Go would trim differently."""
        line_begin = self.source.rfind("\n", 0, begin) + 1
        line_end = self.source.find("\n", end)
        before = self.source[line_begin:begin]
        after = self.source[end : len(self.source) if line_end < 0 else line_end]
        what = "a comment" if kind == "comment" else f"'{inner.split(maxsplit=1)[0]}'"
        if not before.strip() and not after:
            if self.source[:line_begin].endswith("\n\n"):
                raise self.fault(f"a blank line before {what}: Go's trim mark would eat it; remove the line")
            return True
        if kind != "comment" and before.strip() and after:
            return False
        raise self.fault(
            f"{what} neither alone on its line nor with text on both sides: the two languages trim differently"
        )

    def comment(self, inner: str) -> str:
        if "*/" in inner:
            raise self.fault("'*/' in a comment ends it in Go")
        return f"/* {inner.strip()} */"

    # -- statements

    def statement(self, inner: str) -> str:
        """Give the Go action for one block tag, without its braces; "" for an import, which Go doesn't need."""
        word = inner.split(maxsplit=1)[0]
        match word:
            case "if":
                return self.open("if", "if " + self.expression_of(inner.strip()[2:]).bare())
            case "elif":
                self.within("if", word)
                self.blocks[-1].names.clear()
                return "else if " + self.expression_of(inner.strip()[4:]).bare()
            case "else":
                self.within("if", word)
                self.blocks[-1].names.clear()
                return "else"
            case "endif" | "endfor" | "endmacro":
                if word == "endmacro" and self.source.splitlines()[self.line - 2].lstrip().startswith(("{%", "{#")):
                    raise self.fault("a macro must end with text: Jinja2 would print a line end after the statement")
                self.within(word.removeprefix("end"), word)
                self.blocks.pop()
                return "end"
            case "for":
                return self.loop(inner)
            case "set":
                return self.assignment(inner)
            case "macro":
                return self.macro(inner)
            case "from":
                return self.importing(inner)
            case _:
                raise self.fault(f"'{word}' is not in the subset (if, elif, else, for, set, macro, from … import)")

    def open(self, kind: str, go: str, names: Mapping[str, Expression] | None = None) -> str:
        self.blocks.append(_Block(kind, self.line, dict(names or {})))
        return go

    def within(self, kind: str, word: str) -> None:
        if self.blocks[-1].kind != kind:
            raise self.fault(f"'{word}' without its '{kind}' (a 'for' has no 'else' in the subset)")

    def parse_statement(self, source: str) -> nodes.Node:
        try:
            return self.parser.parse(source).body[0]
        except TemplateSyntaxError as error:
            raise self.fault(error.message or "is no Jinja2") from error

    def loop(self, inner: str) -> str:
        node = self.parse_statement(f"{{% {inner} %}}{{% endfor %}}")
        if not isinstance(node, nodes.For):
            raise self.fault("is no 'for'")
        if node.test is not None or node.recursive:
            raise self.fault("'for' with 'if' or 'recursive': put an 'if' inside")
        source = node.iter
        if isinstance(source, nodes.Filter) and source.name == "items" and source.node is not None:
            if not (isinstance(node.target, nodes.Tuple) and len(node.target.items) == 2):
                raise self.fault("'items' needs two names: for key, value in MAP | items")
            over = self.expression(source.node)
            self.need(over, {"object", "null"}, "'items'")
            key, value = (self.new_name(item) for item in node.target.items)
            names = {
                key: Expression(f"${key}", self.plain("string"), is_string=True),
                value: Expression(f"${value}", over.shape.value()),
            }
            return self.open("for", f"range ${key}, ${value} := {over.bare()}", names)
        if not isinstance(node.target, nodes.Name):
            raise self.fault("several names without 'items': for key, value in MAP | items")
        over = self.expression(source)
        self.need(over, {"array", "null"}, "'for' over what is no list")
        name = self.new_name(node.target)
        return self.open(
            "for", f"range $_, ${name} := {over.bare()}", {name: Expression(f"${name}", over.shape.item())}
        )

    def assignment(self, inner: str) -> str:
        node = self.parse_statement(f"{{% {inner} %}}" + ("" if "=" in inner else "{% endset %}"))
        if not isinstance(node, nodes.Assign):
            raise self.fault("'set' of a block: set NAME = EXPRESSION")
        name = self.new_name(node.target)
        given = self.expression(node.node)
        self.blocks[-1].names[name] = Expression(f"${name}", given.shape, given.is_text, given.is_string)
        return f"${name} := {given.bare()}"

    def macro(self, inner: str) -> str:
        node = self.parse_statement(f"{{% {inner} %}}{{% endmacro %}}")
        if not isinstance(node, nodes.Macro):
            raise self.fault("is no 'macro'")
        if self.name != MACROS or len(self.blocks) > 1:
            raise self.fault(f"a macro belongs into {MACROS}, at the top level")
        if node.defaults:
            raise self.fault("a macro's argument with a default: give every argument")
        following = self.source.splitlines()[self.line : self.line + 1]
        if not following or following[0].lstrip().startswith(("{%", "{#")):
            raise self.fault("a macro must begin with text: Go would print a line end before the statement")
        names = {argument.name: Expression(f"$.{argument.name}", Shape((), {})) for argument in node.args}
        return self.open("macro", f'define "roost.{node.name}" -', names)

    def importing(self, inner: str) -> str:
        node = self.parse_statement(f"{{% {inner} %}}")
        if not isinstance(node, nodes.FromImport) or not node.with_context:
            raise self.fault(f'write: from "{MACROS}" import NAME with context')
        if not isinstance(node.template, nodes.Const) or node.template.value != MACROS:
            raise self.fault(f"macros come from {MACROS} alone")
        for name in node.names:
            if not isinstance(name, str):
                raise self.fault("'import … as': use the macro's own name")
            if name not in self.macros:
                raise self.fault(f"there is no macro '{name}' in {MACROS}")
            self.imported.add(name)
        return ""

    def new_name(self, node: nodes.Node) -> str:
        if not isinstance(node, nodes.Name):
            raise self.fault("only a plain name can be set")
        if any(node.name in block.names for block in self.blocks) or node.name in (
            "values",
            "release",
            "chart",
            "keys",
        ):
            raise self.fault(f"'{node.name}' is bound already: Go would shadow it, Jinja2 change it; take another name")
        return node.name

    # -- expressions

    def expression_of(self, text: str) -> Expression:
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
            self.need_text(text)
            return f"{text.bare()} | indent {self.constant_int(value.args)}"
        is_macro = (
            isinstance(value, nodes.Call)
            and isinstance(value.node, nodes.Name)
            and (value.node.name in self.macros or value.node.name == "fail")
        )
        if not is_macro and not (isinstance(value, nodes.Filter) and value.name in _PRINTED_FILTERS):
            raise self.fault(
                "a bare value: end it in to_json, to_pretty_json, int or indent, or the languages print it apart"
            )
        return self.expression(value).bare()

    def constant_int(self, arguments: Sequence[nodes.Expr]) -> int:
        if len(arguments) == 1 and isinstance(arguments[0], nodes.Const) and isinstance(arguments[0].value, int):
            return arguments[0].value
        raise self.fault("indent and plus take one constant number")

    def plain(self, kind: str) -> Shape:
        return Shape(({"type": kind},), {})

    def need(self, given: Expression, accepted: set[str], what: str) -> None:
        """Refuse an expression that is known to be of another type."""
        types = given.shape.types()
        if types and not types <= accepted:
            raise self.fault(
                f"{what}: {given.go} is {' or '.join(sorted(types))}, needed is {' or '.join(sorted(accepted))}"
            )

    def is_string(self, given: Expression) -> bool:
        """Tell whether an expression is known to be a string."""
        return given.is_string or given.is_text or given.shape.types() == {"string"}

    def need_string(self, given: Expression, what: str) -> None:
        """Refuse an expression that isn't known to be a string: Go and Python spell all others differently."""
        if not self.is_string(given):
            kinds = " or ".join(sorted(given.shape.types())) or "of unknown type"
            raise self.fault(f"{what} takes strings only: {given.go} is {kinds}")

    def need_text(self, given: Expression) -> None:
        if not given.is_text:
            raise self.fault(
                f"indent, replace and sha256 take what a macro, chart_file or to_pretty_json made, not {given.go}"
            )

    def expression(self, node: nodes.Node) -> Expression:
        """Give `node` in Go."""
        match node:
            case nodes.Name():
                return self.named(node.name)
            case nodes.Const():
                return self.constant(node.value)
            case nodes.TemplateData():
                return self.constant(node.data)
            case nodes.Getattr():
                return self.attribute(node.node, node.attr)
            case nodes.Getitem():
                return self.item(node)
            case nodes.Filter():
                return self.filtered(node)
            case nodes.Concat():
                return self.joined(node.nodes)
            case nodes.And() | nodes.Or():
                word = "and" if isinstance(node, nodes.And) else "or"
                sides = self.expression(node.left), self.expression(node.right)
                are_strings = all(self.is_string(side) for side in sides)
                shape = self.plain("string") if are_strings else Shape((), {})
                return Expression(f"({word} {sides[0].go} {sides[1].go})", shape, is_string=are_strings)
            case nodes.Not():
                return Expression(f"(not {self.expression(node.node).go})", self.plain("boolean"))
            case nodes.Test():
                if node.name != "none" or node.args:
                    raise self.fault(f"'is {node.name}': only 'is none' and 'is not none'")
                return Expression(f'(kindIs "invalid" {self.expression(node.node).go})', self.plain("boolean"))
            case nodes.Compare():
                return self.comparison(node)
            case nodes.Call():
                return self.call(node)
            case nodes.Dict():
                return self.mapping(node)
            case nodes.List():
                go = " ".join(["list", *(self.expression(item).go for item in node.items)])
                return Expression(f"({go})", self.plain("array"))
            case _:
                raise self.fault(f"{type(node).__name__} is not in the subset")

    def joined(self, parts: Sequence[nodes.Expr]) -> Expression:
        """Give `a ~ b ~ c`: strings, and whole numbers by `| int`."""
        form, words = "", []
        for part in parts:
            given = self.expression(part)
            if isinstance(part, nodes.Filter) and part.name == "int":
                form += "%d"
            else:
                self.need_string(given, "'~'")
                form += "%s"
            words.append(given.go)
        return Expression(f'(printf "{form}" {" ".join(words)})', self.plain("string"), is_string=True)

    def constant(self, value: object) -> Expression:
        if isinstance(value, bool):
            return Expression("true" if value else "false", self.plain("boolean"))
        if isinstance(value, int):
            return Expression(str(value), self.plain("integer"))
        if isinstance(value, str):
            return Expression(_quote(value), self.plain("string"), is_string=True)
        raise self.fault(f"the constant {value!r}: only strings, whole numbers, true and false")

    def named(self, name: str) -> Expression:
        for block in reversed(self.blocks):
            if name in block.names:
                return block.names[name]
        if name == "values":
            return Expression(self.at_root("Values"), self.shape)
        raise self.fault(f"'{name}' is bound nowhere here (what an 'if' or 'for' sets ends with it)")

    def attribute(self, node: nodes.Expr, attribute: str) -> Expression:
        if isinstance(node, nodes.Name) and node.name in ("release", "chart", "keys"):
            if node.name == "keys":
                if attribute not in KEYS:
                    raise self.fault(f"'keys.{attribute}': known are {', '.join(KEYS)}")
                return self.constant(KEYS[attribute])
            facts = _RELEASE if node.name == "release" else _CHART_FACTS
            if attribute not in facts:
                raise self.fault(f"'{node.name}.{attribute}': known are {', '.join(facts)}")
            return Expression(self.at_root(facts[attribute]), self.plain("string"), is_string=True)
        base = self.expression(node)
        shape = self.key_of(base, attribute)
        if not _IDENTIFIER.match(attribute):
            return Expression(f"(index {base.go} {_quote(attribute)})", shape)
        return Expression(f"{base.go}.{attribute}", shape)

    def key_of(self, base: Expression, key: str) -> Shape:
        shape = base.shape.key(key)
        if shape is None:
            raise self.fault(f"{base.go} has no key '{key}' in chart/values.schema.json")
        return shape

    def item(self, node: nodes.Getitem) -> Expression:
        if isinstance(node.arg, nodes.Const) and isinstance(node.arg.value, str):
            return self.attribute(node.node, node.arg.value)
        base, key = self.expression(node.node), self.expression(node.arg)
        self.need_string(key, "[…]")
        return Expression(f"(index {base.go} {key.go})", base.shape.value())

    def filtered(self, node: nodes.Filter) -> Expression:
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
            case "plus":
                go = f"(add (int64 {given.go}) {self.constant_int(node.args)})"
                return Expression(go, self.plain("integer"))
            case "sha256":
                self.need_text(given)
                return Expression(f"(sha256sum {given.go})", self.plain("string"), is_string=True)
            case "indent":
                self.need_text(given)
                go = f"(indent {self.constant_int(node.args)} {given.go})"
                return Expression(go, self.plain("string"), is_text=True)
            case "replace":
                self.need_text(given)
                words = [self.expression(argument) for argument in node.args]
                if len(words) != 2:
                    raise self.fault("replace takes two arguments")
                for word in words:
                    self.need_string(word, "replace")
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

    def comparison(self, node: nodes.Compare) -> Expression:
        if len(node.ops) != 1 or node.ops[0].op not in ("eq", "ne"):
            raise self.fault("a comparison other than one == or !=")
        other = node.ops[0].expr
        if not isinstance(other, nodes.Const) or not isinstance(other.value, str):
            raise self.fault("== and != take a string constant on the right: Go refuses mixed types")
        given = self.expression(node.expr)
        self.need_string(given, "== and !=")
        word = "eq" if node.ops[0].op == "eq" else "ne"
        return Expression(f"({word} {given.go} {_quote(other.value)})", self.plain("boolean"))

    def mapping(self, node: nodes.Dict) -> Expression:
        parts = ["dict"]
        for pair in node.items:
            key = self.expression(pair.key)
            self.need_string(key, "a key")
            parts += [key.go, self.expression(pair.value).go]
        return Expression(f"({' '.join(parts)})", self.plain("object"))

    def call(self, node: nodes.Call) -> Expression:
        if not isinstance(node.node, nodes.Name) or node.kwargs or node.dyn_args or node.dyn_kwargs:
            raise self.fault("a call of other than a macro or function, or with named arguments")
        name = node.node.name
        if name == "kube_at_least":
            if len(node.args) != 1 or not isinstance(node.args[0], nodes.Const):
                raise self.fault('kube_at_least takes one constant: kube_at_least("1.36")')
            version = self.at_root("Capabilities.KubeVersion.Version")
            constraint = _quote(f">={node.args[0].value}-0")
            return Expression(f"(semverCompare {constraint} {version})", self.plain("boolean"))
        given = [self.expression(argument) for argument in node.args]
        words = " ".join(argument.go for argument in given)
        if name == "chart_file":
            return Expression(f"({self.at_root('Files.Get')} {words})", self.plain("string"), is_text=True)
        if name == "merge":
            return Expression(f'(include "roost.merge" (list {words}) | fromJson)', Shape((), {}))
        if name == "core_pod":
            return Expression(f'(include "roost.core_pod" (list {words}) | fromJson)', given[0].shape)
        if name == "names":
            return Expression(f'(include "roost.names" {words} | fromJsonArray)', self.plain("array"))
        if name == "pulled_labels":
            go = f'(include "roost.pulled_labels" (list {self.root} {words}) | fromJson)'
            return Expression(go, Shape(({"type": "object", "additionalProperties": {"type": "string"}},), {}))
        if name == "placeholder_sets":
            go = f'(include "roost.placeholder_sets" (list {self.root} {words}) | fromJsonArray)'
            return Expression(go, given[0].shape)
        if name == "concat":
            for argument in given:
                self.need(argument, {"array"}, "concat")
            return Expression(
                f"(concat {words})",
                Shape(tuple(s for one in given for s in one.shape.alternatives), given[0].shape.definitions),
            )
        if name == "container_images":
            go = f'(include "roost.with_images" (list list {words}) | fromJsonArray)'
            return Expression(go, Shape(({"type": "array", "items": {"type": "string"}},), {}))
        if name == "unique":
            self.need(given[0], {"array"}, "unique")
            return Expression(f"(uniq {words})", given[0].shape)
        if name == "pullers":
            go = f'(include "roost.pullers" (list {self.root} {words}) | fromJsonArray)'
            return Expression(go, Shape((_PULLERS,), {}))
        if name == "fail":
            for argument in given:
                self.need_string(argument, "fail")
            return Expression(f"(fail {words})", self.plain("string"), is_text=True)
        if name in _HELPERS:
            arguments = " ".join(["list", self.root, *(argument.go for argument in given)])
            return Expression(f'(include "{_HELPERS[name]}" ({arguments}))', self.plain("string"), is_string=True)
        return self.macro_call(name, given)

    def macro_call(self, name: str, given: Sequence[Expression]) -> Expression:
        if name not in self.macros:
            raise self.fault(f"'{name}' is no macro of {MACROS} and no function")
        if self.name != MACROS and name not in self.imported:
            raise self.fault(f"macro '{name}' isn't imported: from \"{MACROS}\" import {name} with context")
        parameters = self.macros[name]
        if len(parameters) != len(given):
            raise self.fault(f"macro '{name}' takes {len(parameters)} arguments, found {len(given)}")
        pairs = [f"{_quote(key)} {value.go}" for key, value in zip(parameters, given, strict=True)]
        words = " ".join([f'"root" {self.root}', *pairs])
        return Expression(f'(include "roost.{name}" (dict {words}))', self.plain("string"), is_text=True)


# --- the chart --------------------------------------------------------------------------------------------------------


def _parser() -> Environment:
    # Only parses and cuts into tokens: white space is left as it stands.
    return Environment(keep_trailing_newline=True, autoescape=False)  # noqa: S701


def macros_of(source: str) -> dict[str, list[str]]:
    """Name and argument names of each macro in `source`."""
    found = _parser().parse(source).find_all(nodes.Macro)
    return {macro.name: [argument.name for argument in macro.args] for macro in found}


def compile_template(name: str, source: str, shape: Shape, macros: Mapping[str, Sequence[str]]) -> str:
    """Give the Go template for one Jinja2 template. Raises CompileError.

    macros: argument names by macro, of the macro file (`macros_of`).
    """
    return _Compiler(name, source, shape, macros).compile()


def compile_chart(root: Path) -> dict[str, str]:
    """Compile all of `root`/templates; give the text by path below `root`/chart. Raises CompileError."""
    folder = root / _SOURCES
    shape = read_shape(root / _CHART)
    names = template_names(folder)
    macros: dict[str, list[str]] = {}
    if (folder / MACROS).exists():
        names.insert(0, MACROS)
        macros = macros_of((folder / MACROS).read_text())
    compiled = {}
    for name in names:
        target = _MACROS_TPL if name == MACROS else f"templates/{name.removesuffix('.j2')}"
        text = compile_template(name, (folder / name).read_text(), shape, macros)
        compiled[target] = f"{_GENERATED}{name}: edit that file. */}}}}\n{text}"
    return compiled


def _generated_files(chart: Path) -> Iterator[Path]:
    """Files that an earlier run wrote, known by their first line."""
    for path in sorted((chart / "templates").rglob("*")):
        if path.is_file() and path.read_text().startswith(_GENERATED):
            yield path


def write_chart(root: Path) -> list[str]:
    """Write the chart's generated files and remove those whose source is gone; give the paths that changed."""
    chart = root / _CHART
    compiled = compile_chart(root)
    changed = []
    for path in _generated_files(chart):
        if str(path.relative_to(chart)) not in compiled:
            path.unlink()
            changed.append(str(path.relative_to(root)))
    for name, text in compiled.items():
        path = chart / name
        if not path.exists() or path.read_text() != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            changed.append(str(path.relative_to(root)))
    return changed


def check_fresh(root: Path) -> list[str]:
    """Give the paths below `root` that `write_chart` would change: none when the chart is fresh."""
    chart = root / _CHART
    compiled = compile_chart(root)
    leftover = [path for path in _generated_files(chart) if str(path.relative_to(chart)) not in compiled]
    stale = [
        chart / name
        for name, text in compiled.items()
        if not (chart / name).exists() or (chart / name).read_text() != text
    ]
    return sorted(str(path.relative_to(root)) for path in [*leftover, *stale])
