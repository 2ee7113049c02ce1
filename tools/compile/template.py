"""Write one template of restricted Jinja2 as a Go template of the same layout.

The text around tags is kept as it stands; a tag whose white space the two languages would trim
differently is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jinja2 import TemplateSyntaxError, nodes

from generator.render.environment import holds_macros
from tools.compile.expressions import Block, Expression, ExpressionCompiler, Macros, parser
from tools.compile.shape import Shape

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


class _Compiler(ExpressionCompiler):
    """Compiles one template: its layout and its statements."""

    def __init__(self, name: str, source: str, shape: Shape, macros: Macros) -> None:
        super().__init__(name, shape, macros)
        self.source = source

    def compile(self) -> str:
        """Give the Go template."""
        try:
            self.parser.parse(self.source, name=self.name)
        except TemplateSyntaxError as error:
            self.line = error.lineno
            raise self.fault(error.message or "is not valid Jinja2") from error
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
        """Yield the parts of the source: begin, end, kind (data, block, variable, comment), inner
        text, line.
        """
        position = 0
        inner = ""
        begin = 0
        kind = ""
        begin_line = 1
        for line, part, text in self.parser.lexer.tokeniter(self.source, self.name):
            # A '-' in a tag makes the lexer drop white space, which it then doesn't report.
            start = self.source.index(text, position) if text else position
            position = start + len(text)
            if part in ("raw_begin", "raw_end"):
                self.line = line
                raise self.fault("'raw': print the text as a string, {{ \"{{ … }}\" | to_json }}")
            elif part in ("block_begin", "variable_begin", "comment_begin"):
                kind = part.removesuffix("_begin")
                inner = ""
                begin = start
                begin_line = line
                if "-" in text or "+" in text:
                    is_end_of_macro = self.source[position:].lstrip().startswith("endmacro")
                    self.line = line
                    if not is_end_of_macro:
                        raise self.fault(
                            f"white space control {text!r}: only {{%- endmacro %}} may trim"
                        )
            elif part in ("block_end", "variable_end", "comment_end"):
                if "-" in text or "+" in text:
                    self.line = line
                    raise self.fault(
                        f"white space control {text.strip()!r}: only {{%- endmacro %}} may trim"
                    )
                yield begin, position, kind, inner, begin_line
                kind = ""
            elif part == "data":
                yield start, position, "data", text, line
            elif kind:
                inner += text

    def check_layout(self, begin: int, end: int, kind: str, inner: str) -> bool:
        """Return whether a statement stands alone on its line; refuse one that Jinja2 and Go would
        trim differently.
        """
        line_begin = self.source.rfind("\n", 0, begin) + 1
        line_end = self.source.find("\n", end)
        before = self.source[line_begin:begin]
        after = self.source[end : len(self.source) if line_end < 0 else line_end]
        what = "a comment" if kind == "comment" else f"'{inner.split(maxsplit=1)[0]}'"
        if not before.strip() and not after:
            if self.source[:line_begin].endswith("\n\n"):
                raise self.fault(
                    f"a blank line before {what}: Go's trim mark would eat it; remove the line"
                )
            return True
        if kind != "comment" and before.strip() and after:
            return False
        raise self.fault(
            f"{what} neither alone on its line nor with text on both sides: the two languages trim"
            " differently"
        )

    def comment(self, inner: str) -> str:
        if "*/" in inner:
            raise self.fault("'*/' in a comment ends it in Go")
        return f"/* {inner.strip()} */"

    # -- statements

    def statement(self, inner: str) -> str:
        """Give the Go action for one block tag, without its braces; "" for an import, which Go
        doesn't need.
        """
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
                if word == "endmacro" and self.source.splitlines()[
                    self.line - 2
                ].lstrip().startswith(("{%", "{#")):
                    raise self.fault(
                        "a macro must end with text: Jinja2 would print a line end after the"
                        " statement"
                    )
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
                raise self.fault(
                    f"'{word}' is not in the subset (if, elif, else, for, set, macro, from …"
                    " import)"
                )

    def open(self, kind: str, go: str, names: Mapping[str, Expression] | None = None) -> str:
        self.blocks.append(Block(kind, self.line, dict(names or {})))
        return go

    def within(self, kind: str, word: str) -> None:
        if self.blocks[-1].kind != kind:
            raise self.fault(f"'{word}' without its '{kind}' (a 'for' has no 'else' in the subset)")

    def loop(self, inner: str) -> str:
        node = self.parse_statement(f"{{% {inner} %}}{{% endfor %}}")
        if not isinstance(node, nodes.For):
            raise self.fault("is not a 'for'")
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
        self.need(over, {"array", "null"}, "'for' over something that is not a list")
        name = self.new_name(node.target)
        return self.open(
            "for",
            f"range $_, ${name} := {over.bare()}",
            {name: Expression(f"${name}", over.shape.item())},
        )

    def assignment(self, inner: str) -> str:
        node = self.parse_statement(f"{{% {inner} %}}" + ("" if "=" in inner else "{% endset %}"))
        if not isinstance(node, nodes.Assign):
            raise self.fault("'set' of a block: set NAME = EXPRESSION")
        name = self.new_name(node.target)
        given = self.expression(node.node)
        self.blocks[-1].names[name] = Expression(
            f"${name}", given.shape, given.is_text, given.is_string
        )
        return f"${name} := {given.bare()}"

    def macro(self, inner: str) -> str:
        node = self.parse_statement(f"{{% {inner} %}}{{% endmacro %}}")
        if not isinstance(node, nodes.Macro):
            raise self.fault("is not a 'macro'")
        if not holds_macros(self.name) or len(self.blocks) > 1:
            raise self.fault(
                "a macro belongs at the top level of a file whose name begins with an underscore"
            )
        if node.defaults:
            raise self.fault("a macro's argument with a default: give every argument")
        following = self.source.splitlines()[self.line : self.line + 1]
        if not following or following[0].lstrip().startswith(("{%", "{#")):
            raise self.fault(
                "a macro must begin with text: Go would print a line end before the statement"
            )
        names = {
            argument.name: Expression(f"$.{argument.name}", Shape((), {})) for argument in node.args
        }
        return self.open("macro", f'define "roost.{node.name}" -', names)

    def importing(self, inner: str) -> str:
        node = self.parse_statement(f"{{% {inner} %}}")
        if not isinstance(node, nodes.FromImport) or not node.with_context:
            raise self.fault('write: from "FILE" import NAME with context')
        file = node.template.value if isinstance(node.template, nodes.Const) else None
        if not isinstance(file, str) or file not in self.files:
            raise self.fault(f"{file!r} is not a file of macros: known are {', '.join(self.files)}")
        for name in node.names:
            if not isinstance(name, str):
                raise self.fault("'import … as': use the macro's own name")
            if name not in self.files[file]:
                raise self.fault(f"there is no macro '{name}' in {file}")
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
            raise self.fault(
                f"'{node.name}' is bound already: Go would shadow it, Jinja2 change it; take"
                " another name"
            )
        return node.name


def macros_of(source: str) -> dict[str, list[str]]:
    """Name and argument names of each macro in `source`."""
    defined = parser().parse(source).find_all(nodes.Macro)
    return {macro.name: [argument.name for argument in macro.args] for macro in defined}


def compile_template(name: str, source: str, shape: Shape, macros: Macros) -> str:
    """Give the Go template for one Jinja2 template. Raises CompileError."""
    return _Compiler(name, source, shape, macros).compile()
