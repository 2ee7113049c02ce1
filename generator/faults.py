"""How a fault in the values is reported: one line with file, key, what was found, what is accepted
and the fix.
"""

import json
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

# A hint is about values that work as they are written: only `roost validate` shows it, also under
# --strict.
Severity = Literal["error", "warning", "hint"]
# Keys and indexes from the top of the values: ("placeholders", 0, "replicas").
KeyPath = tuple[str | int, ...]

MISSING: Final = "nothing"
# The file of values that nobody set.
DEFAULTS_NAME: Final = "chart/values.yaml"
_LONGEST_VALUE: Final = 60


class Fault(NamedTuple):
    """One thing that is wrong in the values. `str` gives exactly one line.

    line: 1 is the first; 0 when the place has none (a missing file, `--set`). found, expected:
    parts of "found …, expected …"; with `expected` empty, `found` is a sentence of its own.
    """

    file: str
    line: int
    key: str
    found: str
    expected: str = ""
    fix: str = ""
    severity: Severity = "error"

    def __str__(self) -> str:
        reason = f"found {self.found}, expected {self.expected}." if self.expected else self.found
        kind = "" if self.severity == "error" else self.severity
        key = self.key
        place = f"{self.file}:{self.line}" if self.line else self.file
        if self.file == DEFAULTS_NAME and kind:
            # The key is what to set: who installed by pip has no such file.
            place = ""
            key = f"{key} isn't set" if kind == "hint" else key
        text = ": ".join(part for part in (place, kind, key, reason) if part)
        return one_line(f"{text} {self.fix}" if self.fix else text)


class GeneratorError(Exception):
    """The generator can't do what was requested; the text is for an operator."""


class ValuesError(GeneratorError):
    """The values can't be rendered.

    `faults` holds every one, sorted, so that a single run mends the file.
    """

    def __init__(self, faults: list[Fault]) -> None:
        self.faults = sort_faults(faults)
        super().__init__("\n".join(str(fault) for fault in self.faults))


class UsageError(GeneratorError):
    """The command line is invalid: an unreadable file, a `--set` that doesn't parse."""


def sort_faults(faults: list[Fault]) -> list[Fault]:
    """Order by file, line and key, each fault once."""
    return sorted(set(faults))


def raise_errors(faults: list[Fault]) -> list[Fault]:
    """The warnings of these faults, sorted. Raises ValuesError with every error."""
    errors = [fault for fault in faults if fault.severity == "error"]
    if errors:
        raise ValuesError(errors)
    return sort_faults(faults)


def describe(value: object, longest: int = _LONGEST_VALUE) -> str:
    """Show a value as JSON on one line, cut when longer than `longest` characters."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return one_line(text if len(text) <= longest else f"{text[:longest]}…")


def count_of(number: int, noun: str) -> str:
    """Write a number with its noun: 1 image, 2 images."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def some(names: Sequence[str], shown: int = 3) -> str:
    """The first of these names, and how many more there are."""
    hidden = len(names) - shown
    more = f" and {hidden} more" if hidden > 0 else ""
    return f"{', '.join(names[:shown])}{more}"


def show_path(path: KeyPath) -> str:
    """Write a path as an operator would: `placeholders[0].labels["a.b/c"]`."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif step and all(char not in '.[]"=, \n\t' for char in step) and step.isprintable():
            if text:
                text += "."
            text += step
        else:
            text += f"[{json.dumps(step, ensure_ascii=False)}]"
    return text


def printable_lines(text: str) -> str:
    """Escape what no terminal may be told by strangers' text; line breaks stay."""
    return "\n".join(one_line(line) for line in text.split("\n"))


def one_line(text: str) -> str:
    """Escape what would break the line or hide a character from the reader."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )
