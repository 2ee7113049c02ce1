"""Count what was read of a trace and what was skipped and why; the error for a trace that can't be
used.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

# Different reasons and notes that are kept; further ones are counted under OTHERS, so that no input
# fills memory.
MOST_REASONS: Final = 100
OTHERS: Final = "further reasons"
_LONGEST_FOUND: Final = 60
ACCEPTED: Final = (
    "JSON lines of binderhub.jupyter.org/launch 1 to 6 or roost.hub.jupyter.org/launch 3, plain or"
    " gzip"
)


class TraceError(Exception):
    """A trace can't be used. The text is one line for an operator: file, line, found, accepted,
    fix.

    line: 1 is the first; 0: the file as a whole.
    """

    def __init__(
        self, file: str, line: int, found: str, accepted: str = ACCEPTED, fix: str = ""
    ) -> None:
        self.file = file
        self.line = line
        self.found = found
        self.fix = fix
        place = f"{file}:{line}" if line else file
        text = f"{place}: found {found}, accepted are {accepted}."
        super().__init__(" ".join(f"{text} {fix}".split()))


class Tally(NamedTuple):
    """How often a reason or a note was counted, and where first."""

    number: int
    file: str
    # 1 is the first; 0: the file as a whole.
    line: int

    @property
    def place(self) -> str:
        """The first one's file:line."""
        return f"{self.file}:{self.line}" if self.line else self.file


@dataclass(slots=True)
class InputCounts:
    """Filled in while a trace is read; at its end `lines == used + sum of skipped`."""

    lines: int = 0
    # Lines that attempts came from, one each.
    used: int = 0
    # Schema and version -> lines of it.
    formats: dict[str, int] = field(default_factory=dict)
    # Reason -> lines that were skipped for it.
    skipped: dict[str, Tally] = field(default_factory=dict)
    # What was noted about lines that were used, or about a file.
    notes: dict[str, Tally] = field(default_factory=dict)

    @property
    def skipped_lines(self) -> int:
        """How many lines were skipped, for all reasons."""
        return sum(tally.number for tally in self.skipped.values())

    def skip(self, reason: str, file: str, line: int, number: int = 1) -> None:
        """Count lines as skipped."""
        _count(self.skipped, reason, file, line, number)

    def note(self, text: str, file: str, line: int, number: int = 1) -> None:
        """Count lines that were used although something about them is unusual."""
        _count(self.notes, text, file, line, number)

    def sentences(self) -> Iterator[str]:
        """The report: one line in all, and one for each reason and note, the commonest first."""
        yield f"{self.lines} lines read, {self.used} used, {self.skipped_lines} skipped"
        for kind, tallies in (("skipped", self.skipped), ("noted", self.notes)):
            for text, tally in sorted(tallies.items(), key=lambda item: (-item[1].number, item[0])):
                yield f"{tally.place}: {kind} {tally.number}: {text}"


def _count(tallies: dict[str, Tally], text: str, file: str, line: int, number: int) -> None:
    if text not in tallies and len(tallies) >= MOST_REASONS:
        text = OTHERS
    before = tallies.get(text, Tally(0, file, line))
    tallies[text] = before._replace(number=before.number + number)


def show(value: object) -> str:
    """A value as an error shows it: JSON, on one line, cut when long."""
    try:
        text = json.dumps(value)
    except (TypeError, ValueError, RecursionError):
        text = type(value).__name__
    return text if len(text) <= _LONGEST_FOUND else f"{text[:_LONGEST_FOUND]}…"
