"""Hold values together with where they were written."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from generator.faults import Fault, Path, Severity, show_path

MAX_FILE_BYTES: Final = 4 * 2**20
MAX_DEPTH: Final = 64
# C0 but tab, newline and carriage return; DEL; C1. Helm prints some raw and then can't read its own
# output.
CONTROL: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


class Source:
    """One place that values came from. Answers on which line a key stands."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def find(self, path: Path) -> tuple[int, int, bool]:
        """Find a key as deep as this source has it.

        Returns how many steps of `path` were found, the line of the last (0 without lines), and
        whether the search went into a list, which hides earlier files (lists replace).
        """
        raise NotImplementedError


class ValueSource(Source):
    """Values from the command line: they have a name (`--set`) but no lines."""

    __slots__ = ("_values",)

    def __init__(self, name: str, values: object) -> None:
        super().__init__(name)
        self._values = values

    def find(self, path: Path) -> tuple[int, int, bool]:
        """See `Source.find`."""
        value, in_list = self._values, False
        for depth, step in enumerate(path):
            if isinstance(value, dict) and step in value:
                value = value[step]
            elif isinstance(value, list) and isinstance(step, int) and step < len(value):
                value, in_list = value[step], True
            else:
                return depth, 0, in_list
        return len(path), 0, in_list


class Places:
    """Says where a key of the merged values was written: the last source that has it, or has its
    parent.
    """

    def __init__(self, sources: Sequence[Source]) -> None:
        self._sources = tuple(sources)

    def of(self, path: Path) -> tuple[str, int]:
        """File and line for `path`; the line of the nearest parent when the key itself stands
        nowhere.
        """
        best = (-1, "values", 0)
        for source in reversed(self._sources):
            depth, line, in_list = source.find(path)
            # Of places as good, the one with a line.
            if depth > best[0] or (depth == best[0] and line and not best[2]):
                best = (depth, source.name, line)
            if in_list or depth == len(path):
                break
        return (
            (best[1], best[2]) if best[0] > 0 or not self._sources else (self._sources[-1].name, 1)
        )

    def fault(
        self,
        path: Path,
        found: str,
        expected: str = "",
        fix: str = "",
        severity: Severity = "error",
    ) -> Fault:
        """What is wrong with a key, with its place."""
        return Fault(*self.of(path), show_path(path), found, expected, fix, severity)


class LoadedFile(NamedTuple):
    """One values file: what it says, and where."""

    values: dict[str, object]
    source: Source


def normalise_float(value: float) -> int | float:
    """Give integral floats below 10^21 as int, and -0.0 as 0: both print alike in Go, and compare
    alike here.
    """
    return int(value) if value.is_integer() and abs(value) < 1e21 else value
