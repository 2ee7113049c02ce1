"""Count what an import read and what it skipped, by reason, with the first place of each."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple


class Place(NamedTuple):
    """Where something stands: a file's name as typed, and a line counted from 1."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class UnreadableError(Exception):
    """A file can't be read at all; the message names it, says what was found, what is accepted and how to get there."""


@dataclass(slots=True)
class Counts:
    """What an import read and skipped."""

    # Kind of object (Events, pods, …) -> how many were used.
    used: Counter[str] = field(default_factory=Counter)
    # Reason -> how many objects or lines were skipped for it, and the first of them.
    skipped: Counter[str] = field(default_factory=Counter)
    first: dict[str, Place] = field(default_factory=dict)

    def skip(self, reason: str, place: Place) -> None:
        """Count something that is not used."""
        self.skipped[reason] += 1
        self.first.setdefault(reason, place)
