"""Gather what a lint finds: where in the values, how bad, what is said."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from generator.faults import Fault, Path, Severity, describe, show_path

if TYPE_CHECKING:
    from generator.values.merge import Values


class Where(Protocol):
    """Knows where a key stands."""

    def of(self, path: Path) -> tuple[str, int]:
        """File and line; line 0 when unknown."""


class Report:
    """Values under lint, and the faults found so far."""

    def __init__(self, values: Values, places: Where) -> None:
        self.values = values
        self._places = places
        self.faults: list[Fault] = []

    def error(self, path: Path, found: object, expected: str, fix: str = "") -> None:
        """Say that a value doesn't work: what was found (shown as JSON), what is accepted."""
        self._add(path, found if isinstance(found, Phrase) else describe(found), expected, fix, is_error=True)

    def refuse(self, path: Path, reason: str, fix: str = "") -> None:
        """Say in a sentence why values don't work together."""
        self._add(path, reason, "", fix, is_error=True)

    def warn(self, path: Path, reason: str, fix: str = "") -> None:
        """Say in a sentence what will surprise an operator."""
        self._add(path, reason, "", fix, is_error=False)

    def _add(self, path: Path, found: str, expected: str, fix: str, *, is_error: bool) -> None:
        file, line = self._places.of(path)
        severity: Severity = "error" if is_error else "warning"
        self.faults.append(Fault(file, line, show_path(path), str(found), expected, fix, severity))


class Phrase(str):
    """Words for what was found, when the value itself says too little."""

    __slots__ = ()


def mapping(value: object) -> Values:
    """`value` if it is a map, else {}: a null reads as nothing."""
    return value if isinstance(value, dict) else {}


def listing(value: object) -> list[object]:
    """`value` if it is a list, else []."""
    return value if isinstance(value, list) else []


def at(values: object, *keys: str) -> object:
    """What stands under `keys`, one in the other; None when missing."""
    for key in keys:
        values = values.get(key) if isinstance(values, dict) else None
    return values


def number(value: object) -> float:
    """`value` if it is a number, else 0."""
    return value if isinstance(value, int | float) and not isinstance(value, bool) else 0


def text(value: object) -> str:
    """`value` if it is text, else ""."""
    return value if isinstance(value, str) else ""
