"""Count which lines of a trace were read, and which were skipped and why.

TraceError is for a trace that can't be used at all.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

# Most different reasons, and most different notes, that are kept. More of them are counted together
# as OTHERS, so that no input fills memory.
MOST_REASONS: Final = 100
OTHERS: Final = "further reasons"
# Characters of a value that an error shows.
_LONGEST_FOUND: Final = 60
ACCEPTED: Final = (
    "JSON lines of binderhub.jupyter.org/launch 1 to 6 or roost.hub.jupyter.org/launch 3, plain or"
    " gzip"
)


class TraceError(Exception):
    """A trace can't be used.

    The text is one line for an operator: file, line, what was found, what is accepted, the fix.

    line: 1 is the first; 0: the file as a whole.
    """

    def __init__(
        self, file: str, line: int, found: str, accepted: str = ACCEPTED, fix: str = ""
    ) -> None:
        self.file = file
        self.line = line
        self.found = found
        self.fix = fix
        text = f"{_place(file, line)}: found {found}, accepted are {accepted}. {fix}"
        # On one line, whatever line ends and spaces its parts have.
        super().__init__(" ".join(text.split()))


class Tally(NamedTuple):
    """How many lines had a reason or a note, and where the first of them is."""

    number: int
    file: str
    # 1 is the first; 0: the file as a whole.
    line: int

    @property
    def place(self) -> str:
        """Where the first line is: file:line."""
        return _place(self.file, self.line)


@dataclass(slots=True)
class InputCounts:
    """Counts of lines, which are filled in while a trace is read.

    At its end `lines` is `used` plus the skipped lines.
    """

    lines: int = 0
    # Lines that an attempt was made of.
    used: int = 0
    # Schema and version -> lines of that format.
    formats: dict[str, int] = field(default_factory=dict)
    # Reason -> lines that were skipped for it.
    skipped: dict[str, Tally] = field(default_factory=dict)
    # Note -> lines that were used although it is true of them, or a file.
    notes: dict[str, Tally] = field(default_factory=dict)

    @property
    def skipped_lines(self) -> int:
        """How many lines were skipped, for all reasons."""
        return sum(tally.number for tally in self.skipped.values())

    def skip(self, reason: str, file: str, line: int, number: int = 1) -> None:
        """Count lines as skipped. line: where the first of them is, as of Tally."""
        _count(self.skipped, reason, file, line, number)

    def note(self, text: str, file: str, line: int, number: int = 1) -> None:
        """Count lines that were used although they are unusual. line: as of `skip`."""
        _count(self.notes, text, file, line, number)

    def sentences(self) -> Iterator[str]:
        """The counts for people: a sentence, then one for each reason and note, commonest first."""
        yield f"{self.lines} lines read, {self.used} used, {self.skipped_lines} skipped"
        for kind, tallies in (("skipped", self.skipped), ("noted", self.notes)):
            by_number = sorted(tallies.items(), key=lambda item: (-item[1].number, item[0]))
            for text, tally in by_number:
                yield f"{tally.place}: {kind} {tally.number}: {text}"


def _place(file: str, line: int) -> str:
    return f"{file}:{line}" if line else file


def _count(tallies: dict[str, Tally], text: str, file: str, line: int, number: int) -> None:
    if text not in tallies and len(tallies) >= MOST_REASONS:
        text = OTHERS
    tally = tallies.get(text, Tally(0, file, line))
    tallies[text] = tally._replace(number=tally.number + number)


def show(value: object) -> str:
    """A value as an error shows it: JSON, on one line, cut when long."""
    try:
        text = json.dumps(value)
    except (TypeError, ValueError, RecursionError):
        text = type(value).__name__
    return text if len(text) <= _LONGEST_FOUND else f"{text[:_LONGEST_FOUND]}…"
