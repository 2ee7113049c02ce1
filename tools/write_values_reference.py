"""Write docs/values.md: every key of chart/values.yaml with its default and the comment that stands
above it.

.venv/bin/python -m tools.write_values_reference            write it
.venv/bin/python -m tools.write_values_reference --check    exit 1 unless it is fresh
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Final, NamedTuple

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from tools.generated_file import write_or_check
from tools.root import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

VALUES = ROOT / "chart" / "values.yaml"
PAGE = ROOT / "docs" / "values.md"
WRITER = "python -m tools.write_values_reference"
# A key that is commented out, after its own comment: a mapping or list on one line. Prose has
# colons too.
_COMMENTED_OUT: Final = re.compile(r"([A-Za-z]\w*): [{\[].*[}\]]")
# A page that a comment names, perhaps with a section.
_PAGE_NAMED: Final = re.compile(r"\bdocs/((?:[\w-]+/)*([\w-]+)\.md(?:#[\w-]+)?)")

_HEAD = """# Values

Every key of Roost's values, from the comments of [chart/values.yaml](../chart/values.yaml);
`make generated` writes this page. What a key may be changed to is in `chart/values.schema.json`:
`roost validate -f FILE` says what is wrong.
"""


class Row(NamedTuple):
    """One key: its dotted name, its default as written, what the comment says.

    The default is "" for a group of keys, and for a key that is commented out.
    """

    key: str
    default: str
    comment: str


def rows(node: MappingNode, lines: Sequence[str], prefix: str = "") -> Iterator[Row]:
    """The keys of a block mapping, deep, and those commented out above one; flow mappings and lists
    are values.

    So is a group that has a comment and no more in it.
    """
    for key_node, value in node.value:
        key = f"{prefix}{_key(key_node.value)}"
        comment = ""
        for text in _comment_above(lines, key_node.start_mark.line):
            comment = f"{comment} {text}".lstrip()
            if commented_out := _COMMENTED_OUT.fullmatch(text):
                yield Row(
                    f"{prefix}{commented_out[1]}", "", f"{comment.removesuffix(text)}`{text}`"
                )
                comment = ""
        if (
            isinstance(value, MappingNode)
            and not value.flow_style
            and (not comment or _has_comments(value, lines))
        ):
            if comment:
                yield Row(key, "", comment)
            yield from rows(value, lines, f"{key}.")
        else:
            yield Row(key, _flow(value), comment)


def page() -> str:
    """The whole page."""
    text = VALUES.read_text(encoding="utf-8")
    root = yaml.compose(text, yaml.SafeLoader)
    if not isinstance(root, MappingNode):
        sys.exit(f"{VALUES}: found no mapping. Restore it.")
    sections: dict[str, list[Row]] = {"At the top": []}
    for row in rows(root, text.splitlines()):
        top = row.key.partition(".")[0]
        is_alone = top == row.key and bool(row.default)
        sections.setdefault("At the top" if is_alone else top, []).append(row)
    parts = [_HEAD]
    for title, found in sections.items():
        parts.append(f"\n## {title}\n\n| key | default | what it does |\n|---|---|---|\n")
        for row in found:
            default = f"`{_cell(row.default)}`" if row.default else ""
            parts.append(f"| `{row.key}` | {default} | {_linked(_cell(row.comment))} |\n")
    return "".join(parts)


def comments_of_groups() -> list[tuple[str, str]]:
    """Each key at the top with the comment above it, "" where it has none."""
    text = VALUES.read_text(encoding="utf-8")
    root = yaml.compose(text, yaml.SafeLoader)
    lines = text.splitlines()
    pairs = root.value if isinstance(root, MappingNode) else []
    return [(key.value, " ".join(_comment_above(lines, key.start_mark.line))) for key, _ in pairs]


def main(arguments: list[str]) -> int:
    """Write the page, or check it."""
    return write_or_check([(PAGE, page())], arguments, WRITER)


def _has_comments(node: MappingNode, lines: Sequence[str]) -> bool:
    """Whether a comment stands above a key somewhere in it: a group without any is one row."""
    return any(
        _comment_above(lines, key.start_mark.line)
        or (isinstance(value, MappingNode) and _has_comments(value, lines))
        for key, value in node.value
    )


def _comment_above(lines: Sequence[str], line: int) -> list[str]:
    """The comment lines right above `line` with the key's own indentation."""
    indent = len(lines[line]) - len(lines[line].lstrip())
    found: list[str] = []
    while line > 0:
        line -= 1
        text = lines[line].strip()
        if not text.startswith("#") or len(lines[line]) - len(lines[line].lstrip()) != indent:
            break
        found.insert(0, text.removeprefix("#").strip())
    return found


def _flow(node: Node) -> str:
    if isinstance(node, MappingNode):
        return "{" + ", ".join(f"{_flow(key)}: {_flow(value)}" for key, value in node.value) + "}"
    if isinstance(node, SequenceNode):
        return "[" + ", ".join(_flow(item) for item in node.value) + "]"
    text = str(node.value) if isinstance(node, ScalarNode) else ""
    return f'"{text}"' if isinstance(node, ScalarNode) and node.style else text


def _key(text: str) -> str:
    return f'"{text}"' if "." in text else text


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _linked(text: str) -> str:
    """A comment, with a link for each page of docs/ that it names: this page stands there."""
    return _PAGE_NAMED.sub(r"[\2](\1)", text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
