"""Read files of JSON, JSON lines, YAML or log lines, plain or gzipped, as values with their place.

Guarantee: damage costs what is damaged. A line, or an item of an indented list, that can't be read
is counted, and what comes after it is read.
"""

from __future__ import annotations

import io
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

import orjson
import yaml

from roost_core.objects.foreign_yaml import MOST_DEPTH, first_line_below
from roost_lab.packed_files import (
    DAMAGES,
    UNPACKS_WITHOUT_END,
    UTF16_MARKS,
    UnpacksWithoutEndError,
    find_other_packing,
    unpacked,
)
from roost_lab.recorder.recording.hub_log import is_hub_line, read_hub_line

# Its number, counted from 1, and its bytes.
_Line = tuple[int, bytes]

STDIN: Final = "-"
# Kubernetes' objects have at most 1.5 MB, but `jq -c` writes a list of them in one line. More must
# not fill memory.
MOST_BYTES: Final = 1 << 30
NOT_JSON: Final = "not valid JSON"
_YAML: Final = (b"apiVersion:", b"kind:", b"items:", b"metadata:", b"- apiVersion:", b"---")
_OPENINGS: Final = {b"{": b"}", b"[": b"]"}
# A log line may begin with its time and the like before the JSON.
_MOST_PREFIX: Final = 200


class UnreadableError(Exception):
    """A file can't be read at all; the message names it, says what was found, what is accepted and
    how to get there.
    """


@dataclass(slots=True)
class Counts:
    """What an import read and skipped."""

    # Kind of object (Events, pods, …) -> how many were used.
    used: Counter[str] = field(default_factory=Counter)
    # Reason -> how many objects or lines were skipped for it, and where the first of them is:
    # FILE:LINE.
    skipped: Counter[str] = field(default_factory=Counter)
    first: dict[str, str] = field(default_factory=dict)
    # Node -> how far its clock was behind, in µs: its Events' times were corrected.
    clocks: dict[str, int] = field(default_factory=dict)

    def skip(self, reason: str, place: str) -> None:
        """Count something that is not used."""
        self.skipped[reason] += 1
        self.first.setdefault(reason, place)


def read_values(name: str, counts: Counts) -> Iterator[tuple[Any, str]]:
    """Each JSON or YAML document of a file, or text of a log line that holds one, or a hub's news;
    and FILE:LINE.

    Raises UnreadableError.
    """
    if name == STDIN:
        yield from _values("standard input", cast("io.BufferedReader", sys.stdin.buffer), counts)
        return
    try:
        with Path(name).open("rb") as file:
            yield from _values(name, file, counts)
    except OSError as error:
        raise UnreadableError(f"{name}: {error.strerror or error}") from None


def _values(name: str, file: io.BufferedReader, counts: Counts) -> Iterator[tuple[Any, str]]:
    lines = _lines(name, file, counts)
    current = next(lines, None)
    # Only empty lines were read so far.
    is_at_beginning = True
    is_hub = False
    while current is not None:
        number, line = current
        text = line.strip()
        if is_at_beginning and line.startswith(_YAML):
            whole = b"".join([line, *(rest for _, rest in lines)])
            yield from _yaml_values(name, number, whole, counts)
            return
        is_at_beginning = is_at_beginning and not text
        is_hub = is_hub or is_hub_line(text.decode(errors="replace"))
        after = None
        if _opens_document(line):
            document, after = _document(current, lines)
            yield from _parsed(name, document, counts)
        elif is_hub:
            # Lines between a hub's own, as tracebacks, tell nothing.
            news = read_hub_line(text.decode(errors="replace"))
            if news is not None:
                yield news, f"{name}:{number}"
        elif text:
            value = read_text(text)
            if value is None:
                counts.skip(NOT_JSON, f"{name}:{number}")
            else:
                yield value, f"{name}:{number}"
        current = after or next(lines, None)


def read_text(text: bytes) -> Any:  # noqa: ANN401 - JSON
    """The JSON of a log line, which may follow a time and the like; None when there is none."""
    start = 0 if text[:1] in _OPENINGS else text.find(b"{", 0, _MOST_PREFIX)
    if start < 0:
        return None
    try:
        return orjson.loads(text[start:])
    except orjson.JSONDecodeError:
        return None


def _opens_document(line: bytes) -> bool:
    """Whether a document over several lines begins: a bracket alone, in the first column."""
    text = line.strip()
    return text in _OPENINGS and line.startswith(text)


def _document(first: _Line, lines: Iterator[_Line]) -> tuple[list[_Line], _Line | None]:
    """A document over several lines, as kubectl, jq and aws write it: to the bracket in the first
    column.

    Also the line after it, if it breaks off there.
    """
    document = [first]
    closing = _OPENINGS[first[1].strip()]
    for number, line in lines:
        if not line.startswith((b" ", b"\t", b"\r", b"\n", closing)):
            return document, (number, line)
        document.append((number, line))
        if line.startswith(closing):
            break
    return document, None


def _parsed(name: str, document: list[_Line], counts: Counts) -> Iterator[tuple[Any, str]]:
    try:
        yield orjson.loads(b"".join(line for _, line in document)), f"{name}:{document[0][0]}"
    except orjson.JSONDecodeError:
        yield from _salvage(name, document, counts)


def _salvage(name: str, document: list[_Line], counts: Counts) -> Iterator[tuple[Any, str]]:
    """The items of a damaged list that can be read: those between brackets of the list's own
    indentation.
    """
    indents = [
        len(line) - len(line.lstrip())
        for _, line in document
        if line.strip() == b"{" and line[:1] == b" "
    ]
    indent = b" " * min(indents, default=0)
    item: list[bytes] = []
    begin = document[0][0]
    is_found = False
    for number, line in document:
        if indent and line.rstrip() == indent + b"{":
            if item:
                counts.skip(NOT_JSON, f"{name}:{begin}")
            item = []
            begin = number
            is_found = True
        if not is_found:
            continue
        item.append(line)
        if line.startswith(indent + b"}"):
            try:
                yield orjson.loads(b"".join(item).rstrip().rstrip(b",")), f"{name}:{begin}"
            except orjson.JSONDecodeError:
                counts.skip(NOT_JSON, f"{name}:{begin}")
            item = []
            is_found = False
    if item or not indent:
        counts.skip(NOT_JSON, f"{name}:{begin}")


class _Loader(yaml.CSafeLoader):
    """Reads YAML as version 1.2 and kubectl do: times are texts."""


def _without_times(resolvers: Iterable[tuple[str, Any]]) -> list[tuple[str, Any]]:
    return [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]


_Loader.yaml_implicit_resolvers = {
    first_letter: _without_times(resolvers)
    for first_letter, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


def _yaml_values(name: str, first: int, text: bytes, counts: Counts) -> Iterator[tuple[Any, str]]:
    try:
        # PyYAML's recursion in C would end the process.
        deep = first_line_below(text, MOST_DEPTH)
        if deep is not None:
            counts.skip("YAML that is nested too deep", f"{name}:{first + deep - 1}")
            return
        # References could make a small file endless; kubectl writes none.
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, Loader=_Loader)):
            counts.skip("YAML with references", f"{name}:{first}")
            return
        for value in yaml.load_all(text, Loader=_Loader):
            yield value, f"{name}:{first}"
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        line = first if mark is None else first + mark.line
        counts.skip("not valid YAML", f"{name}:{line}")


def _lines(name: str, file: io.BufferedReader, counts: Counts) -> Iterator[_Line]:
    """The file's lines with their numbers, unpacked and as UTF-8."""
    other = find_other_packing(file)
    if other:
        raise UnreadableError(
            f"{name}: found {other.kind}, expected text or gzip. Unpack it: {other.unpack} {name} |"
            " roost records import -"
        )
    number = 0
    try:
        for number, line in enumerate(_lines_as_utf8(unpacked(file)), start=1):
            yield number, line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
    except UnpacksWithoutEndError:
        counts.skip(f"{UNPACKS_WITHOUT_END}: unpack it yourself", f"{name}:{number + 1}")
    except DAMAGES:
        counts.skip(
            "the compressed data breaks off or is damaged from here on", f"{name}:{number + 1}"
        )


def _lines_as_utf8(stream: io.BufferedReader) -> Iterator[bytes]:
    """The lines of a text in UTF-8 or UTF-16. Raises DAMAGES if the stream is unpacked."""
    if not stream.peek(4)[:4].startswith(UTF16_MARKS):
        while line := stream.readline(MOST_BYTES):
            yield line
        return
    text = io.TextIOWrapper(stream, encoding="utf-16", errors="replace")
    for decoded in text:
        yield decoded.encode("utf-8", "replace")
    # The file is closed where it was opened.
    text.detach()
