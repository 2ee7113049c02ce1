"""Read a values file as Helm does, and remember on which line each key stands.

Helm reads YAML through go-yaml v2 and then JSON: plain scalars follow YAML 1.1 in go-yaml's reading
(`on` is true, `017` is 15, `12:30:00` and dates are strings), keys become strings, and every number
becomes a float64. What Helm accepts but no operator intends (a key twice, two documents, control
characters) is a fault here. Source: go-yaml v2 `resolve.go` and `decode.go`; sigs.k8s.io/yaml.
"""

import math
import re
from typing import Final

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from generator.faults import Fault, KeyPath, ValuesError, describe, show_path
from generator.values.sources import (
    CONTROL,
    MAX_DEPTH,
    MAX_FILE_BYTES,
    FoundKey,
    LoadedFile,
    Source,
    normalise_float,
)
from roost_core.objects.foreign_yaml import first_line_below

# Values after expanding aliases: a few nested anchors can expand to billions.
MAX_VALUES: Final = 250_000
# Characters after expanding aliases: one long text can be referenced very often.
MAX_CHARACTERS: Final = 2 * MAX_FILE_BYTES

# Fewer can't nest too deeply.
_MANY_MARKS: Final = 4_000

_TAG: Final = "tag:yaml.org,2002:"
# What `_PlainLoader.resolve` gives a plain scalar without a tag: its type is decided below, by
# go-yaml's rules.
_PLAIN: Final = "plain"
_MERGE_KEY: Final = "<<"

_WORDS: Final[dict[str, bool | float | None]] = {
    **dict.fromkeys(
        ("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True
    ),
    **dict.fromkeys(
        ("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False
    ),
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
}
_NUMBER_STARTS: Final = frozenset("+-.0123456789")
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_DOT_FLOAT: Final = re.compile(r"\.[0-9]+(?:_[0-9]+)*(?:[eE][-+]?[0-9]+(?:_[0-9]+)*)?")
_INTEGER: Final = re.compile(
    r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))"
)
_MOST_BY_SIGN: Final = {"": 2**64 - 1, "+": 2**63 - 1, "-": 2**63}
# Above 64, the most digits of an integer, in binary. Python refuses to read thousands of digits.
_MOST_DIGITS: Final = 70
_QUOTES_HINT: Final = "Use spaces, and quote the value if it holds a colon, a hash or a brace."


class NodeSource(Source):
    """A values file, as libyaml's nodes."""

    __slots__ = ("_root",)

    def __init__(self, name: str, root: Node | None) -> None:
        super().__init__(name)
        self._root = root

    def find(self, path: KeyPath) -> FoundKey:
        """See `Source.find`."""
        node = self._root
        line = 1
        in_list = False
        for depth, step in enumerate(path):
            entry: tuple[Node, Node] | None = None
            if isinstance(node, MappingNode):
                entry = _last_entry(node, str(step))
            elif isinstance(node, SequenceNode):
                in_list = True
                if isinstance(step, int) and step < len(node.value):
                    entry = (node.value[step], node.value[step])
            if entry is None:
                return FoundKey(depth, line, in_list)
            key, node = entry
            line = key.start_mark.line + 1
        return FoundKey(len(path), line, in_list)


class _PlainLoader(yaml.CSafeLoader):
    """libyaml's parser, with the types of scalars left undecided."""

    def resolve(
        self, kind: type[Node], _text: str | None, implicit: tuple[bool, bool] | bool
    ) -> str:
        if kind is ScalarNode:
            return _PLAIN if isinstance(implicit, tuple) and implicit[0] else f"{_TAG}str"
        return f"{_TAG}map" if kind is MappingNode else f"{_TAG}seq"

    def descend_resolver(self, current_node: Node | None, current_index: object) -> None:
        pass

    def ascend_resolver(self) -> None:
        pass


def load(data: bytes, name: str, repeated: list[Fault] | None = None) -> LoadedFile:
    """Read one values file; an empty one is {}.

    repeated: gets a warning for each key that stands twice, and the last one counts, as it does to
    Helm; None: such a key is a fault. Raises ValuesError with every fault, each with its line.
    """
    text = _decode(data, name)
    try:
        _check_depth(text, name)
        loader = _PlainLoader(text)
        try:
            root = loader.get_single_node()
        finally:
            loader.dispose()
    except yaml.YAMLError as error:
        raise ValuesError([_syntax_fault(error, text, name)]) from None
    if root is None:
        return LoadedFile({}, NodeSource(name, None))
    builder = _Builder(name, repeated)
    values = builder.build(root)
    if not builder.faults and values is None:
        values = {}
    if not isinstance(values, dict):
        kind = "a list" if isinstance(values, list) else describe(values)
        builder.fault(
            root, (), kind, "a map of keys at the top of the file", "Write `key: value` lines."
        )
    if builder.faults:
        raise ValuesError(builder.faults)
    return LoadedFile(values if isinstance(values, dict) else {}, NodeSource(name, root))


def _check_depth(text: str, name: str) -> None:
    """Refuse deep nesting before nodes are made: that recurses, and takes quadratic time."""
    if sum(text.count(mark) for mark in ("[", "{", "- ", "? ")) < _MANY_MARKS:
        return
    line = first_line_below(text, MAX_DEPTH)
    if line is not None:
        raise ValuesError([_too_deep(name, line, "")])


def _decode(data: bytes, name: str) -> str:
    if len(data) > MAX_FILE_BYTES:
        found = "a larger file"
        fix = "Is this the right file? Values are a few kB."
        raise ValuesError([Fault(name, 0, "", found, f"at most {MAX_FILE_BYTES} bytes", fix)])
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        found = f"byte 0x{data[error.start]:02x}, which is not UTF-8"
        raise ValuesError(
            [Fault(name, line, "", found, "UTF-8 text", "Save the file as UTF-8.")]
        ) from None
    control = CONTROL.search(text)
    if control is not None:
        raise ValuesError(
            [_control_fault(name, text.count("\n", 0, control.start()) + 1, "", control[0])]
        )
    return text


class _Builder:
    """Turns nodes into values; collects faults instead of stopping at the first."""

    def __init__(self, name: str, repeated: list[Fault] | None) -> None:
        self.name = name
        self.faults: list[Fault] = []
        self._repeated = repeated
        self._count = 0
        self._characters = 0
        self._open: set[int] = set()

    def fault(self, node: Node, path: KeyPath, found: str, expected: str, fix: str = "") -> None:
        self.faults.append(
            Fault(self.name, node.start_mark.line + 1, show_path(path), found, expected, fix)
        )

    def build(self, node: Node, path: KeyPath = ()) -> object:
        self._count += 1
        if self._count > MAX_VALUES:
            raise self._too_many(node, f"{MAX_VALUES} values", "Remove nested aliases.")
        if isinstance(node, ScalarNode):
            self._weigh(node)
            return self._scalar(node, path)
        if len(path) >= MAX_DEPTH:
            raise ValuesError([_too_deep(self.name, node.start_mark.line + 1, show_path(path[:4]))])
        if id(node) in self._open:
            self.fault(
                node, path, "an alias inside its own anchor", "values that end", "Remove the alias."
            )
            return None
        self._open.add(id(node))
        try:
            if isinstance(node, MappingNode):
                self._check_tag(node, path, "map")
                return self._mapping(node, path)
            self._check_tag(node, path, "seq")
            return [self.build(item, (*path, index)) for index, item in enumerate(node.value)]
        finally:
            self._open.discard(id(node))

    def _weigh(self, node: ScalarNode) -> None:
        self._characters += len(node.value)
        if self._characters > MAX_CHARACTERS:
            most = f"{MAX_CHARACTERS} characters"
            raise self._too_many(node, most, "Name long texts by fewer aliases.")

    def _too_many(self, node: Node, most: str, fix: str) -> ValuesError:
        found = f"more than {most} once aliases are written out"
        return ValuesError([Fault(self.name, node.start_mark.line + 1, "", found, "fewer", fix)])

    def _check_tag(self, node: Node, path: KeyPath, kind: str) -> None:
        if node.tag != f"{_TAG}{kind}":
            self.fault(node, path, f"the tag {describe(node.tag)}", "no tag", "Remove it.")

    def _mapping(self, node: MappingNode, path: KeyPath) -> dict[str, object]:
        built: dict[str, object] = {}
        lines: dict[str, int] = {}
        for key_node, value_node in node.value:
            # In the order of the file: in go-yaml v2 a merge after a key overrides it.
            if _is_merge(key_node):
                self._merge(value_node, path, built)
                continue
            key = self._key(key_node, path)
            if key is None:
                continue
            if key in lines and not self._accepts_twice(key_node, (*path, key), lines[key]):
                continue
            lines[key] = key_node.start_mark.line + 1
            built[key] = self.build(value_node, (*path, key))
        return built

    def _accepts_twice(self, node: Node, path: KeyPath, first_line: int) -> bool:
        """Whether a key may stand twice; a warning or a fault says that it does."""
        line = node.start_mark.line + 1
        if self._repeated is None:
            found = f"the key twice (first on line {first_line})"
            self.fault(node, path, found, "each key once", "Remove one of them.")
            return False
        found = (
            f"the key stands twice (first on line {first_line}). Helm reads this one alone, and so"
            " does Roost."
        )
        key = show_path(path)
        self._repeated.append(Fault(self.name, line, key, found, severity="warning"))
        return True

    def _merge(self, node: Node, path: KeyPath, built: dict[str, object]) -> None:
        # Earlier maps of a list win, so they are laid on last.
        maps = list(reversed(node.value)) if isinstance(node, SequenceNode) else [node]
        for merged_node in maps:
            if isinstance(merged_node, MappingNode):
                value = self.build(merged_node, path)
                built.update(value if isinstance(value, dict) else {})
            else:
                found = "a value that is not a map"
                accepted = "a map or a list of maps"
                self.fault(
                    merged_node, (*path, _MERGE_KEY), found, accepted, "Merge an anchor of a map."
                )

    def _key(self, node: Node, path: KeyPath) -> str | None:
        if not isinstance(node, ScalarNode):
            kind = "a map" if isinstance(node, MappingNode) else "a list"
            self.fault(
                node, path, f"{kind} as a key", "a name", "Quote names that start with { or [."
            )
            return None
        self._weigh(node)
        if node.tag != _PLAIN:
            return str(self._scalar(node, path))
        text = _plain_key(node.value)
        if text is None and _resolve(node.value) is None:
            self.fault(
                node, path, "an empty key (null)", "a name", 'Quote it if it is meant: "null".'
            )
        elif text is None:
            self.fault(node, path, f"{node.value} as a key", "a name", "Quote it.")
        return text

    def _scalar(self, node: ScalarNode, path: KeyPath) -> str | int | float | bool | None:
        text: str = node.value
        value: str | int | float | bool | None = text
        if node.tag == _PLAIN:
            value = plain_scalar(text)
        elif node.tag != f"{_TAG}str":
            self.fault(
                node,
                path,
                f"the tag {describe(node.tag)}",
                "no tag",
                "Remove it; quote text instead.",
            )
        if type(value) is str:
            control = CONTROL.search(value)
            if control is not None:
                self.faults.append(
                    _control_fault(self.name, node.start_mark.line + 1, show_path(path), control[0])
                )
            return value
        if isinstance(value, float) and not math.isfinite(value):
            self.fault(node, path, text, "a finite number", "Quote it if text is meant.")
            return 0
        return value


def plain_scalar(text: str) -> str | int | float | bool | None:
    """Read an unquoted scalar as go-yaml v2 does, and numbers as the float64 that Helm makes of
    them.

    Integral numbers below 10^21 come back as int (as Go prints them), -0.0 as 0; NaN and infinities
    as floats.
    """
    value = _resolve(text)
    if isinstance(value, int) and not isinstance(value, bool):
        # Digits beyond 2^53 are lost in Helm, so they are lost here.
        return int(float(value))
    return normalise_float(value) if isinstance(value, float) and math.isfinite(value) else value


def _plain_key(text: str) -> str | None:
    """An unquoted key as Helm has it, such as `1e+06` for `1e6`; None: it makes no name of it."""
    value = _resolve(text)
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    # Go writes such a key as a float32, which keeps any six digits. If six digits aren't the value,
    # no name is made of it.
    shown = f"{value:g}"
    return shown if math.isfinite(value) and float(shown) == value else None


def _resolve(text: str) -> str | int | float | bool | None:
    """Read an unquoted scalar as go-yaml v2 does: integers exact, floats as written."""
    if text in _WORDS:
        return _WORDS[text]
    first = text[0]
    if first not in _NUMBER_STARTS:
        return text
    if first == ".":
        # Go's own float syntax: an underscore only between two digits.
        return _float(text.replace("_", ""), text) if _DOT_FLOAT.fullmatch(text) else text
    plain = text.replace("_", "")
    integer = _INTEGER.fullmatch(plain)
    if integer is not None:
        sign, hexadecimal, binary, octal, decimal = integer.groups()
        by_base = {16: hexadecimal, 2: binary, 8: octal, 10: decimal}
        # Exactly one of these groups matched.
        base, digits = next(item for item in by_base.items() if item[1])
        # Go's ParseInt, and without a sign ParseUint. Larger decimals are floats, others text.
        if len(digits) <= _MOST_DIGITS:
            number = int(digits, base)
            if number <= _MOST_BY_SIGN[sign]:
                return -number if sign == "-" else number
    return _float(plain, text) if _FLOAT.fullmatch(plain) else text


def _float(plain: str, text: str) -> str | float:
    value = float(plain)
    # Out of range: Go's ParseFloat fails, and the scalar stays text.
    return text if math.isinf(value) else value


def _is_merge(node: Node) -> bool:
    return (
        isinstance(node, ScalarNode)
        and node.value == _MERGE_KEY
        and node.tag in {_PLAIN, f"{_TAG}merge"}
    )


def _last_entry(node: MappingNode, key: str) -> tuple[Node, Node] | None:
    """Key and value nodes that gave `key` its value, looking through merge keys."""
    entry: tuple[Node, Node] | None = None
    for key_node, value_node in node.value:
        if _is_merge(key_node):
            maps = value_node.value if isinstance(value_node, SequenceNode) else [value_node]
            for merged_node in maps:
                merged_entry = (
                    _last_entry(merged_node, key) if isinstance(merged_node, MappingNode) else None
                )
                if merged_entry is not None:
                    entry = merged_entry
                    break
        elif isinstance(key_node, ScalarNode):
            is_plain = key_node.tag == _PLAIN
            name = _plain_key(key_node.value) if is_plain else key_node.value
            if name == key:
                entry = (key_node, value_node)
    return entry


def _control_fault(name: str, line: int, key: str, char: str) -> Fault:
    found = f"the control character U+{ord(char):04X}"
    return Fault(
        name, line, key, found, "printable text", "Remove it; it may have come with a copied block."
    )


def _too_deep(name: str, line: int, key: str) -> Fault:
    return Fault(
        name, line, key, f"more than {MAX_DEPTH} levels", "fewer", "Is this the right file?"
    )


def _syntax_fault(error: yaml.YAMLError, text: str, name: str) -> Fault:
    context = getattr(error, "context_mark", None)
    mark = getattr(error, "problem_mark", None) or context
    line = mark.line + 1 if mark is not None else 1
    problem = str(
        getattr(error, "problem", None) or getattr(error, "reason", None) or "invalid YAML"
    )
    lines = text.split("\n")
    shown = lines[line - 1] if line <= len(lines) else ""
    indent = shown[: len(shown) - len(shown.lstrip())]
    stops_at_tab = mark is not None and shown[mark.column :].startswith("\t")
    if "but found another document" in problem or "expected a single document" in str(error):
        fix = "Give each as a file of its own."
        return Fault(name, line, "", "a second document (---)", "one document", fix)
    if "\t" in indent or stops_at_tab:
        return Fault(name, line, "", "a tab", "spaces", "YAML is indented with spaces.")
    if "undefined alias" in problem:
        expected = "its anchor (&name) above it"
        fix = "Define it in the same file."
        return Fault(name, line, "", "an alias (*name)", expected, fix)
    if not shown.strip() and context is not None and context.line < min(line, len(lines)):
        begun = describe(lines[context.line].strip())
        found = f"{begun}, which nothing closes ({problem})"
        return Fault(name, context.line + 1, "", found, "YAML", _QUOTES_HINT)
    place = describe(shown.strip()) if shown.strip() else "the end of the file"
    found = f"{place}, where the YAML parser stops ({problem})"
    return Fault(name, line, "", found, "YAML", _QUOTES_HINT)
