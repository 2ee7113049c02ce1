"""Hold values together with where they were written."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from generator.faults import Fault, KeyPath, Severity, show_path

MAX_FILE_BYTES: Final = 4 * 2**20
MAX_DEPTH: Final = 64
# Control characters (C0 except tab, newline and carriage return, DEL, C1) and code points that are
# no characters. Helm prints some of them unescaped, and then can't read its own output.
CONTROL: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


class FoundKey(NamedTuple):
    """How far one source has a key."""

    # How many steps of the path it has.
    depth: int
    # The line of the last step that the source has; 0: the source has no lines.
    line: int
    # Whether the path leads into a list. A list replaces those of earlier files, and hides them.
    in_list: bool


class Source:
    """One place that values came from. Answers on which line a key stands.

    A file is a `NodeSource` of `loader.py`.
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def find(self, path: KeyPath) -> FoundKey:
        """Find a key as deep as this source has it."""
        raise NotImplementedError


class ValueSource(Source):
    """Values from the command line: they have a name (`--set`) but no lines."""

    __slots__ = ("_values",)

    def __init__(self, name: str, values: object) -> None:
        super().__init__(name)
        self._values = values

    def find(self, path: KeyPath) -> FoundKey:
        """See `Source.find`."""
        value = self._values
        in_list = False
        for depth, step in enumerate(path):
            if isinstance(value, dict) and step in value:
                value = value[step]
            elif isinstance(value, list) and isinstance(step, int) and step < len(value):
                value = value[step]
                in_list = True
            else:
                return FoundKey(depth, 0, in_list)
        return FoundKey(len(path), 0, in_list)


class Places:
    """Finds where a key of the merged values was written: in the last source that has the key, else
    in the last that has its nearest parent.
    """

    def __init__(self, sources: Sequence[Source]) -> None:
        self._sources = tuple(sources)

    def of(self, path: KeyPath) -> tuple[str, int]:
        """The source's name and the line of the key at `path`, or of its nearest parent.

        Line 0: the source has no lines, as `--set`.
        """
        if not self._sources:
            return "values", 0
        # If no source has even the first step: the beginning of the last file. Values without a
        # file, as those of --set, have line 0.
        name = self._sources[-1].name
        line = 1
        depth = 0
        for source in reversed(self._sources):
            found = source.find(path)
            is_as_deep_with_a_line = found.depth == depth and found.line > 0 and line == 0
            if found.depth > depth or is_as_deep_with_a_line:
                name = source.name
                line = found.line
                depth = found.depth
            if found.in_list or found.depth == len(path):
                break
        return name, line

    def fault(
        self,
        path: KeyPath,
        found: str,
        expected: str = "",
        fix: str = "",
        severity: Severity = "error",
    ) -> Fault:
        """A fault of the key at `path`, with file and line."""
        return Fault(*self.of(path), show_path(path), found, expected, fix, severity)


class LoadedFile(NamedTuple):
    """One values file: what it says, and where."""

    values: dict[str, object]
    source: Source


def normalise_float(value: float) -> int | float:
    """An integral float below 10^21 as int, and -0.0 as 0; any other float as it is.

    Go prints 2.0 as 2, too.
    """
    return int(value) if value.is_integer() and abs(value) < 1e21 else value
