"""Write plain functions of Python as Go templates, so that the chart's names are those of `roost
render`.

A function becomes a `define` of its name, whose argument is a list: the chart's root, then the
function's arguments but those that every release has (`_GIVEN`). It gives text; what is no text it
gives as JSON: a map, a list, or a map with the one key `value`. The subset: assignments, `if`,
`for`, `return`, `append`, comprehensions, and what `_ExpressionWriter` knows. Maps are walked by
their sorted keys, as Go does: write `sorted(map.items())`. What has no equal meaning is refused.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import sys
import textwrap
from typing import TYPE_CHECKING, Final, NamedTuple

from tools.compile.expressions import CompileError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from types import FunctionType

# Parameters that a chart knows by itself, by their names.
_GIVEN: Final = {
    "release": "$root.Release.Name",
    "namespace": "$root.Release.Namespace",
    "override": "$root.Values.fullnameOverride",
    "base": '(include "roost.base_name" (list $root))',
}
_COMPARISONS: Final = {
    ast.Eq: "eq",
    ast.NotEq: "ne",
    ast.LtE: "le",
    ast.Lt: "lt",
    ast.GtE: "ge",
    ast.Gt: "gt",
}
# What `isinstance` asks, by the text of its second argument.
_KINDS: Final = {"Mapping": "map", "str": "string", "bool": "bool", "list | tuple": "slice"}
_MAPS: Final = ("dict", "Mapping")
_LISTS: Final = ("list", "tuple", "Sequence", "frozenset")
# How a result that is no text is read back.
_READ: Final = {
    "int": "({} | int)",
    "map": "({} | fromJson)",
    "list": "({} | fromJsonArray)",
    "any": "({} | fromJson).value",
}
# Functions whose argument is already as Go wants it.
_SAME: Final = ("list", "tuple")


class _Go(NamedTuple):
    """An expression in Go, one word or in parentheses; kind: str, int, map, list, or any."""

    text: str
    kind: str = "any"


def define_functions(functions: Iterable[Callable[..., object]]) -> dict[str, str]:
    """Compile functions, and those that they call; give each `define` by its name.

    Raises CompileError.
    """
    defined: dict[str, str] = {}
    waiting = list(functions)
    while waiting:
        writer = _FunctionWriter(waiting.pop(0))
        if defined_name(writer.name) not in defined:
            defined[defined_name(writer.name)] = writer.written()
            waiting += writer.called
    return defined


def defined_name(name: str) -> str:
    """Name of the `define` of a function."""
    return f"roost.{name.lstrip('_')}"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


class _FunctionWriter:
    """Writes one function: its statements, and the expressions in them."""

    def __init__(self, function: Callable[..., object]) -> None:
        self.name = function.__name__
        self.module = sys.modules[function.__module__]
        self.path = function.__module__.replace(".", "/") + ".py"
        tree = ast.parse(inspect.getsource(self.module))
        self.tree = next(
            node
            for node in tree.body
            if isinstance(node, ast.FunctionDef) and node.name == self.name
        )
        self.locals = {argument.arg for argument in self.tree.args.args} | _stored([self.tree])
        self.given = {argument.arg for argument in self.tree.args.args} & set(_GIVEN)
        self.body = self.tree.body if ast.get_docstring(self.tree) is None else self.tree.body[1:]
        self.called: list[Callable[..., object]] = []
        self.lines: list[str] = []
        self.kinds: dict[str, str] = {}
        self.count = 0

    def fault(self, node: ast.AST, message: str) -> CompileError:
        """Say what is wrong where."""
        return CompileError(
            f"{self.path}:{getattr(node, 'lineno', 0)}: {message}: not in the subset"
        )

    def written(self) -> str:
        """The whole `define`."""
        self.returns = self.kind_of(self.tree.returns)
        self.emit("$root := index . 0")
        own = [
            (argument, fallback)
            for argument, fallback in _parameters(self.tree)
            if argument.arg not in _GIVEN
        ]
        for position, (argument, fallback) in enumerate(own, 1):
            self.kinds[argument.arg] = self.kind_of(argument.annotation)
            if fallback is None:
                self.emit(f"${argument.arg} := index . {position}")
            else:
                self.emit(f"${argument.arg} := {self.expression(fallback).text}")
                self.emit(
                    f"if gt (len .) {position} }}}}{{{{ ${argument.arg} = index . {position}"
                    " }}{{ end"
                )
        # The others begin where all that follows sees them.
        self.begun = {argument.arg for argument, _ in own}
        for name in sorted(_begun_in_blocks(self.body) - self.begun):
            self.emit(f'${name} := ""')
            self.begun.add(name)
        self.statements(self.body)
        signature = " ".join(["$", *(argument.arg for argument, _ in own)])
        name = defined_name(self.name)
        head = (
            f'{{{{- /* {name} (list {signature}): {self.path} */}}}}\n{{{{- define "{name}" -}}}}\n'
        )
        return head + "".join(f"{{{{- {line} -}}}}\n" for line in self.lines) + "{{- end }}\n"

    def put(self, name: str, value: str) -> None:
        """Set a name."""
        self.emit(f"${name} {'=' if name in self.begun else ':='} {value}")
        self.begun.add(name)

    def emit(self, line: str) -> None:
        """Write one action."""
        self.lines.append(line)

    def temporary(self) -> str:
        """A name of our own."""
        self.count += 1
        return f"$t{self.count}"

    def kind_of(self, annotation: ast.expr | None) -> str:
        """The kind that an annotation says."""
        if annotation is None:
            return "any"
        text = ast.unparse(annotation)
        if text in ("str", "int"):
            return text
        found = getattr(self.module, text, None)
        if (
            text.startswith(_MAPS)
            or text == "_Object"
            or (isinstance(found, type) and hasattr(found, "_fields"))
        ):
            return "map"
        return "list" if text.startswith(_LISTS) and "| None" not in text else "any"

    # Statements

    def statements(self, body: Sequence[ast.stmt]) -> None:
        """Write statements; what follows an `if` that returns stands in its `else`."""
        for position, node in enumerate(body):
            if isinstance(node, ast.If):
                rest = body[position + 1 :] if isinstance(node.body[-1], ast.Return) else ()
                self.emit(f"if {self.expression(node.test).text}")
                self.statements(node.body)
                if node.orelse or rest:
                    self.emit("else")
                    self.statements([*node.orelse, *rest])
                self.emit("end")
                if rest:
                    return
            else:
                self.statement(node)

    def statement(self, node: ast.stmt) -> None:
        """Write one statement that isn't an `if`."""
        match node:
            case ast.Return(value=ast.expr() as value):
                found = self.expression(value).text
                if self.returns == "any":
                    found = f'(dict "value" {found})'
                self.emit(found if self.returns == "str" else f"{found} | toJson")
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                self.kinds[name] = self.kind_of(node.annotation)
                self.put(name, self.expression(value).text)
            case ast.Assign(targets=[target]):
                self.assign(target, node.value)
            case ast.AugAssign(target=ast.Name(id=name), op=ast.Add()):
                before = _Go(f"${name}", self.kinds[name])
                added = self.added(node, before, self.expression(node.value))
                self.emit(f"${name} = {added.text}")
            case ast.Expr(
                value=ast.Call(
                    func=ast.Attribute(value=ast.Name(id=name), attr="append"), args=[value]
                )
            ):
                self.emit(f"${name} = append ${name} {self.expression(value).text}")
            case ast.Expr(
                value=ast.Call(
                    func=ast.Attribute(
                        value=ast.Subscript(value=ast.Name(id=name), slice=key), attr="append"
                    ),
                    args=[value],
                )
            ):
                at = self.expression(key).text
                self.emit(
                    f"$_ := set ${name} {at} (append (index ${name} {at})"
                    f" {self.expression(value).text})"
                )
            case ast.Expr(
                value=ast.Call(
                    func=ast.Attribute(value=ast.Name(id=name), attr="pop"), args=[key, _]
                )
            ):
                self.emit(f"$_ := unset ${name} {self.expression(key).text}")
            case ast.For(orelse=[]):
                self.loop(node.target, node.iter, lambda: self.statements(node.body))
            case _:
                raise self.fault(node, ast.unparse(node).partition("\n")[0])

    def assign(self, target: ast.expr, value: ast.expr) -> None:
        """Write an assignment: to names, to a map's key, or of a text's parts."""
        match target, value:
            case ast.Name(id=name), _:
                found = self.expression(value)
                self.kinds.setdefault(name, found.kind)
                self.put(name, found.text)
            case ast.Subscript(value=ast.Name(id=name), slice=key), _:
                self.emit(
                    f"$_ := set ${name} {self.expression(key).text} {self.expression(value).text}"
                )
            case ast.Tuple(elts=names), ast.Tuple(elts=values):
                for one, other in zip(names, values, strict=True):
                    self.assign(one, other)
            case ast.Tuple(elts=names), _:
                for one, part in zip(names, self.parts(value), strict=True):
                    if isinstance(one, ast.Name) and one.id != "_":
                        self.kinds.setdefault(one.id, "str")
                        self.put(one.id, part.text)
            case _:
                raise self.fault(target, f"an assignment to {ast.unparse(target)}")

    def loop(self, target: ast.expr, source: ast.expr, body: Callable[[], None]) -> None:
        """Write a `for` over a list, over `sorted(map.items())`, or over `sorted(map, …)`, its
        keys.
        """
        match source:
            case ast.Call(
                func=ast.Name(id="sorted"),
                args=[ast.Call(func=ast.Attribute(attr="items", value=of))],
            ):
                names = [
                    f"${name.id}"
                    for name in getattr(target, "elts", ())
                    if isinstance(name, ast.Name)
                ]
                self.emit(f"range {names[0]}, {names[1]} := {self.expression(of).text}")
            case ast.Call(func=ast.Name(id="sorted"), args=[of]) if isinstance(target, ast.Name):
                self.emit(f"range ${target.id}, $_ := {self.expression(of).text}")
            case _ if isinstance(target, ast.Name):
                self.emit(f"range $_, ${target.id} := {self.expression(source).text}")
            case _:
                raise self.fault(source, f"a loop over {ast.unparse(source)}")
        body()
        self.emit("end")

    # Expressions

    def expression(self, node: ast.expr) -> _Go:
        """Give an expression; what takes more than one action is written before it."""
        match node:
            case ast.Name(id=name):
                if name in self.given:
                    return _Go(_GIVEN[name], "str")
                return (
                    _Go(f"${name}", self.kinds.get(name, "any"))
                    if name in self.locals
                    else self.constant(node)
                )
            case ast.Constant():
                return self.constant(node)
            case ast.JoinedStr():
                return self.formatted(node)
            case ast.BoolOp():
                return self.lazily(node)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return _Go(f"(not {self.expression(operand).text})")
            case ast.Compare(left=left, ops=[operator], comparators=[right]):
                return self.compared(node, left, operator, right)
            case ast.IfExp():
                return self.chosen(node)
            case ast.BinOp(op=ast.Add()):
                return self.added(node, self.expression(node.left), self.expression(node.right))
            case ast.BinOp(op=ast.Sub() | ast.Mult() as operator):
                word = "sub" if isinstance(operator, ast.Sub) else "mul"
                return _Go(
                    f"({word} {self.expression(node.left).text} {self.expression(node.right).text}"
                    " | int)",
                    "int",
                )
            case ast.Attribute():
                if isinstance(node.value, ast.Name) and node.value.id not in self.locals:
                    return self.constant(node)
                return _Go(
                    f"{self.expression(node.value).text}.{node.attr}", self.field_kind(node.attr)
                )
            case ast.Subscript():
                return self.item(node)
            case ast.List() | ast.Tuple():
                return self.listed(node)
            case ast.Dict():
                pairs = [
                    self.expression(one)
                    for pair in zip(node.keys, node.values, strict=True)
                    for one in pair
                    if one
                ]
                return _Go(f"({' '.join(['dict', *(one.text for one in pairs)])})", "map")
            case ast.ListComp() | ast.GeneratorExp():
                return self.comprehension(node)
            case ast.Call(func=ast.Attribute() as method) if not self.is_module(method.value):
                return self.method(node, method)
            case ast.Call():
                return self.call(node)
            case _:
                raise self.fault(node, ast.unparse(node))

    def is_module(self, node: ast.expr) -> bool:
        """Whether an expression names a module."""
        return isinstance(node, ast.Name) and inspect.ismodule(getattr(self.module, node.id, None))

    def field_kind(self, field: str) -> str:
        """The kind of a field of the module's tuples."""
        for found in vars(self.module).values():
            if isinstance(found, type) and field in getattr(found, "__annotations__", {}):
                for part in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(found)))):
                    if isinstance(part, ast.AnnAssign) and ast.unparse(part.target) == field:
                        return self.kind_of(part.annotation)
        return "any"

    def constant(self, node: ast.expr) -> _Go:
        """A literal, or a constant of the module."""
        value = (
            node.value
            if isinstance(node, ast.Constant)
            else eval(ast.unparse(node), vars(self.module))  # noqa: S307
        )
        match value:
            case None:
                return _Go("nil")
            case bool():
                return _Go("true" if value else "false")
            case int():
                return _Go(str(value), "int")
            case str():
                return _Go(_quoted(value), "str")
            case re.Pattern():
                return _Go(_quoted(value.pattern), "str")
            case tuple():
                return _Go(f"(list {' '.join(_quoted(str(one)) for one in value)})", "list")
            case _:
                raise self.fault(node, f"the constant {ast.unparse(node)}")

    def formatted(self, node: ast.JoinedStr) -> _Go:
        """An f-string."""
        form, words = "", []
        for part in node.values:
            found = self.expression(part.value if isinstance(part, ast.FormattedValue) else part)
            if found.text.startswith('"'):
                form += json.loads(found.text).replace("%", "%%")
            else:
                form += "%v"
                words.append(found.text)
        return _Go(f"(printf {_quoted(form)} {' '.join(words)})", "str")

    def added(self, node: ast.AST, left: _Go, right: _Go) -> _Go:
        """Two texts or two lists put together."""
        if "str" in (left.kind, right.kind):
            return _Go(f'(printf "%v%v" {left.text} {right.text})', "str")
        if left.kind == right.kind == "list":
            return _Go(f"(concat {left.text} {right.text})", "list")
        raise self.fault(node, "'+' of what isn't known to be two texts or two lists")

    def lazily(self, node: ast.BoolOp) -> _Go:
        """`and` and `or`, whose later parts count only if need be, as in Go."""
        before = len(self.lines)
        words = [self.expression(one) for one in node.values]
        if len(self.lines) > before:
            raise self.fault(node, "a part of 'and' or 'or' that takes more than one action")
        if isinstance(node.op, ast.And):
            return _Go(f"(and {' '.join(word.text for word in words)})")
        return _Go(f"(or {' '.join(word.text for word in words)})", words[-1].kind)

    def chosen(self, node: ast.IfExp) -> _Go:
        """`a if c else b`."""
        name = self.temporary()
        self.emit(f'{name} := ""')
        self.emit(f"if {self.expression(node.test).text}")
        first = self.expression(node.body)
        self.emit(f"{name} = {first.text}")
        self.emit("else")
        self.emit(f"{name} = {self.expression(node.orelse).text}")
        self.emit("end")
        return _Go(name, first.kind)

    def compared(self, node: ast.expr, left: ast.expr, operator: ast.cmpop, right: ast.expr) -> _Go:
        """A comparison, or whether something is in another."""
        first = self.expression(left)
        match operator, right:
            case ast.Is(), ast.Constant(value=None):
                return _Go(f'(kindIs "invalid" {first.text})')
            case ((ast.Is() | ast.IsNot()), ast.Constant(value=bool() as value)):
                word = "eq" if isinstance(operator, ast.Is) else "ne"
                return _Go(f'({word} (toJson {first.text}) "{str(value).lower()}")')
        second = self.expression(right)
        if isinstance(operator, ast.In | ast.NotIn):
            word = {"list": "has {0} {1}", "map": "hasKey {1} {0}"}.get(
                second.kind, "contains {0} {1}"
            )
            found = f"({word.format(first.text, second.text)})"
            return _Go(found if isinstance(operator, ast.In) else f"(not {found})")
        if type(operator) not in _COMPARISONS:
            raise self.fault(node, ast.unparse(node))
        if first.kind in ("map", "list"):
            raise self.fault(node, "a comparison of maps or lists, but for to_json of them")
        return _Go(f"({_COMPARISONS[type(operator)]} {first.text} {second.text})")

    def parts(self, node: ast.expr) -> tuple[_Go, _Go, _Go]:
        """The three parts of `text.partition("x")` and `text.rpartition("x")`."""
        match node:
            case ast.Call(
                func=ast.Attribute(value=of, attr="partition" | "rpartition" as method),
                args=[ast.Constant(value=str() as mark)],
            ):
                text = self.expression(of).text
            case ast.Call(func=ast.Name(id=name)) if name not in self.locals:
                text = self.temporary()
                self.emit(f"{text} := {self.call(node).text}")
                return (
                    _Go(f"(index {text} 0)", "str"),
                    _Go(f"(index {text} 1)", "str"),
                    _Go(f"(index {text} 2)", "str"),
                )
            case _:
                raise self.fault(node, ast.unparse(node))
        name, other = self.temporary(), f"[^{re.escape(mark)}]*"
        self.emit(f"{name} := {text}")
        between = _Go(f'(ternary "{mark}" "" (contains "{mark}" {name}))', "str")
        if method == "partition":
            head = f"(regexFind {_quoted('^' + other)} {name})"
            return (
                _Go(head, "str"),
                between,
                _Go(
                    f'(regexReplaceAll {_quoted("^" + other + re.escape(mark) + "?")} {name} "")',
                    "str",
                ),
            )
        head = f'(regexReplaceAll {_quoted(re.escape(mark) + "?" + other + "$")} {name} "")'
        return _Go(head, "str"), between, _Go(f"(regexFind {_quoted(other + '$')} {name})", "str")

    def item(self, node: ast.Subscript) -> _Go:
        """`text[:n]`, a part of a text, an item of a list, a map's value."""
        match node:
            case ast.Subscript(slice=ast.Slice(lower=None, upper=ast.expr() as end)):
                return _Go(
                    f"(trunc {self.expression(end).text} {self.expression(node.value).text})", "str"
                )
            case ast.Subscript(
                value=ast.Call(func=ast.Attribute(attr="partition" | "rpartition")),
                slice=ast.Constant(value=int() as at),
            ):
                return self.parts(node.value)[at]
            case _:
                return _Go(
                    f"(index {self.expression(node.value).text} {self.expression(node.slice).text})"
                )

    def listed(self, node: ast.List | ast.Tuple) -> _Go:
        """A list, with others in it by `*`."""
        if not any(isinstance(one, ast.Starred) for one in node.elts):
            return _Go(
                f"({' '.join(['list', *(self.expression(one).text for one in node.elts)])})", "list"
            )
        words = [
            (
                self.expression(one.value).text
                if isinstance(one, ast.Starred)
                else f"(list {self.expression(one).text})"
            )
            for one in node.elts
        ]
        return _Go(f"(concat {' '.join(words)})", "list")

    def comprehension(self, node: ast.ListComp | ast.GeneratorExp) -> _Go:
        """A list made by loops."""
        name = self.temporary()
        self.emit(f"{name} := list")

        def nest(generators: Sequence[ast.comprehension]) -> None:
            if not generators:
                self.emit(f"{name} = append {name} {self.expression(node.elt).text}")
                return
            first, *others = generators

            def body() -> None:
                for test in first.ifs:
                    self.emit(f"if {self.expression(test).text}")
                nest(others)
                for _ in first.ifs:
                    self.emit("end")

            self.loop(first.target, first.iter, body)

        nest(node.generators)
        return _Go(name, "list")

    def method(self, node: ast.Call, method: ast.Attribute) -> _Go:
        """A method of a text, a map, a pattern or a tuple with names."""
        match node:
            case ast.Call(
                func=ast.Attribute(
                    value=ast.Call(
                        func=ast.Name(id="sha256"), args=[ast.Call(func=ast.Attribute(value=text))]
                    )
                )
            ):
                return _Go(f"(sha256sum {self.expression(text).text})", "str")
        of = self.expression(method.value).text
        words = [self.expression(argument).text for argument in node.args]
        match method.attr:
            case "rstrip":
                characters = ast.literal_eval(node.args[0])
                return _Go(
                    f'(regexReplaceAll {_quoted(f"[{re.escape(characters)}]+$")} {of} "")', "str"
                )
            case "strip":
                return _Go(f"(trimAll {words[0]} {of})", "str")
            case "encode" | "_asdict":
                # Go's texts are bytes, and tuples with names are maps there.
                return _Go(of, "str" if method.attr == "encode" else "map")
            case "lower":
                return _Go(f"(lower {of})", "str")
            case "replace":
                return _Go(f"(replace {words[0]} {words[1]} {of})", "str")
            case "removeprefix":
                return _Go(f"(trimPrefix {words[0]} {of})", "str")
            case "removesuffix":
                return _Go(f"(trimSuffix {words[0]} {of})", "str")
            case "startswith":
                return _Go(f"(hasPrefix {words[0]} {of})")
            case "join":
                return _Go(f"(join {of} {words[0]})", "str")
            case "sub":
                return _Go(f"(regexReplaceAll {of} {words[1]} {words[0]})", "str")
            case "search":
                return _Go(f"(regexMatch {of} {words[0]})")
            case "get":
                return _Go(f"(index {of} {words[0]})")
            case "_replace":
                copy = f"(deepCopy {of})"
                for one in node.keywords:
                    copy = f"(set {copy} {_quoted(str(one.arg))} {self.expression(one.value).text})"
                return _Go(copy, "map")
            case _:
                raise self.fault(node, ast.unparse(node))

    def call(self, node: ast.Call) -> _Go:
        """A function of Python's, a tuple with names, or a function that is compiled, too."""
        name = ast.unparse(node.func)
        if name == "isinstance":
            return _Go(
                f"(kindIs {_quoted(_KINDS[ast.unparse(node.args[1])])}"
                f" {self.expression(node.args[0]).text})"
            )
        words = [self.expression(argument) for argument in node.args]
        match name:
            case "len":
                return _Go(f"(len {words[0].text})", "int")
            case "str":
                return _Go(f"(toString {words[0].text})", "str")
            case "dict":
                return _Go(f"(deepCopy {words[0].text})", "map")
            case "sorted":
                return _Go(
                    f"({f'keys {words[0].text}' if words[0].kind == 'map' else words[0].text} |"
                    " sortAlpha)",
                    "list",
                )
            case "frozenset":
                return _Go(f"(uniq {words[0].text})", "list")
            case "to_json":
                return _Go(f"(toJson {words[0].text})", "str")
            case _ if name in _SAME:
                return _Go(words[0].text, "list")
        found = eval(name, vars(self.module))  # noqa: S307 - a name in our own source
        if isinstance(found, type) and hasattr(found, "_fields"):
            pairs = [
                f"{_quoted(field)} {word.text}"
                for field, word in zip(found._fields, words, strict=False)
            ]
            return _Go(f"(dict {' '.join(pairs)})", "map")
        return self.call_compiled(node, found, words)

    def call_compiled(self, node: ast.Call, function: FunctionType, words: Sequence[_Go]) -> _Go:
        """A call of a function that is compiled, too; what a chart knows by itself isn't handed
        on.
        """
        self.called.append(function)
        other = _FunctionWriter(function)
        given = ["$root"]
        for (argument, _), word in zip(_parameters(other.tree), words, strict=False):
            if argument.arg not in _GIVEN:
                given.append(word.text)
            elif word.text != _GIVEN[argument.arg]:
                raise self.fault(node, f"{function.__name__} with another {argument.arg}")
        text = f"include {_quoted(defined_name(function.__name__))} (list {' '.join(given)})"
        kind = other.kind_of(other.tree.returns)
        return _Go(f"({text})" if kind == "str" else _READ[kind].format(text), kind)


def _parameters(tree: ast.FunctionDef) -> list[tuple[ast.arg, ast.expr | None]]:
    """The parameters of a function, each with its default."""
    arguments = tree.args.args
    defaults: list[ast.expr | None] = [None] * (len(arguments) - len(tree.args.defaults))
    return list(zip(arguments, [*defaults, *tree.args.defaults], strict=True))


def _stored(nodes: Iterable[ast.AST]) -> set[str]:
    """Names that are set below some nodes."""
    found = (one for node in nodes for one in ast.walk(node))
    return {one.id for one in found if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}


def _begun_in_blocks(body: Sequence[ast.stmt]) -> set[str]:
    """Names that are first assigned inside an `if` or `for`; a loop's own name is bound by the
    loop.
    """
    outside: set[str] = set()
    inside: set[str] = set()
    for node in body:
        if isinstance(node, ast.If | ast.For):
            assignments = [
                one for one in ast.walk(node) if isinstance(one, ast.Assign | ast.AnnAssign)
            ]
            inside |= _targets(assignments) - outside
        else:
            outside |= _targets([node])
    return inside


def _targets(nodes: Iterable[ast.AST]) -> set[str]:
    """Names that assignments set."""
    return _stored(
        target
        for node in nodes
        for target in getattr(node, "targets", [getattr(node, "target", ast.Pass())])
    ) - {"_"}
