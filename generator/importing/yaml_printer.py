"""Print imported values as YAML with comments. Helm reads the same values from it.

`Draft.put` and `merge_pieces` in `result.py` choose which comments stand above which keys.

A text is printed without quotes only when every YAML reader takes it for text. PyYAML would print
the text `1e3` without quotes, and Helm would read a number.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Final

from generator.faults import one_line
from generator.importing.source import HubPath

_MAX_WIDTH: Final = 120
# What needs no quotes: words, and Kubernetes quantities that have a unit.
_BARE: Final = re.compile(r"[A-Za-z/][A-Za-z0-9_./-]*|[0-9]{1,18}(?:[KMGT]i?|m)")
_NOT_TEXT: Final = frozenset(
    {"y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf"}
)
# What YAML does not allow raw, and what an editor may take for the end of a line.
_UNPRINTABLE: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")


def print_yaml(values: Mapping[str, object], comments: Mapping[HubPath, Sequence[str]]) -> str:
    """`values` as a YAML document that ends in a newline.

    The lines of `comments[path]` stand above the key at `path`.
    """
    return "".join(f"{line}\n" for line in _mapping_lines(values, (), comments))


def _mapping_lines(
    values: Mapping[str, object],
    path: HubPath,
    comments: Mapping[HubPath, Sequence[str]],
    depth: int = 0,
) -> list[str]:
    lines: list[str] = []
    for key, value in values.items():
        here = (*path, key)
        lines += [f"# {one_line(comment)}" for comment in comments.get(here, ())]
        is_commented = any(other[: len(here)] == here and other != here for other in comments)
        flow = f"{_scalar(key)}: {_flow(value)}"
        has_items = isinstance(value, Mapping | list) and bool(value)
        fits_one_line = len(flow) + 2 * depth <= _MAX_WIDTH
        may_be_flow = depth > 0 and not is_commented and fits_one_line
        if not has_items or may_be_flow:
            lines.append(flow)
        elif isinstance(value, Mapping):
            lines.append(f"{_scalar(key)}:")
            lines += _indented(_mapping_lines(value, here, comments, depth + 1))
        elif isinstance(value, list):
            lines.append(f"{_scalar(key)}:")
            lines += _indented(_list_lines(value, depth + 1))
    return lines


def _list_lines(items: Sequence[object], depth: int) -> list[str]:
    lines: list[str] = []
    for item in items:
        flow = _flow(item)
        if isinstance(item, Mapping) and item and len(flow) + 2 * depth + 2 > _MAX_WIDTH:
            first, *rest = _mapping_lines(item, (), {}, depth + 1)
            lines += [f"- {first}", *_indented(rest)]
        else:
            lines.append(f"- {flow}")
    return lines


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"  {line}" for line in lines]


def _flow(value: object) -> str:
    """A value on one line: maps in braces, lists in brackets."""
    if isinstance(value, Mapping):
        entries = [f"{_scalar(key)}: {_flow(item)}" for key, item in value.items()]
        return "{" + ", ".join(entries) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_flow(item) for item in value) + "]"
    return _scalar(value)


def _scalar(value: object) -> str:
    if not isinstance(value, str):
        return json.dumps(value)
    if _BARE.fullmatch(value) and value.lower() not in _NOT_TEXT:
        return value
    quoted = json.dumps(value, ensure_ascii=False)
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found.group()):04x}", quoted)
