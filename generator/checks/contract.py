"""What a check of the values is, and what it reports to: where in the values, how bad, what is
said.

A check reads merged values and calls `report.error`, `refuse`, `warn` or `hint`. It does no I/O.
Where it reads a key that doesn't fit the schema, it ends, or the part of it that it runs in a
`with report.part():`. `generator/checks/admission.py` is the example to copy.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Final, TypeVar

from generator.checks.faulty_keys import FaultyKeyError, guarded
from generator.faults import DEFAULTS_NAME, Fault, KeyPath, Severity, describe
from generator.render.functions import core_pod
from generator.render.managed_images import PullerGroup, puller_groups
from generator.values.lookups import child, mapping
from generator.values.merge import Merged
from generator.values.release_name import Release

T = TypeVar("T")
# More of the puller's DaemonSets aren't looked at: the values may name a thousand profiles, each
# with a hundred tolerations.
MOST_PULLERS: Final = 200
_KEY = re.compile(r"[A-Za-z]+(?:\.[A-Za-z]+)*")


class LintReport:
    """Values under lint, and the faults found so far."""

    def __init__(
        self, merged: Merged, unfit: Collection[KeyPath] = (), *, with_hints: bool = True
    ) -> None:
        """unfit: paths of keys that don't fit the schema.

        with_hints: somebody reads hints, so that those that take time are worth it.
        """
        self.with_hints = with_hints
        self.values = guarded(merged.values, unfit)
        # With faulty keys: what has a faulty name is still there to be referred to.
        self.written = merged.values
        self._defaults = merged.defaults
        self._places = merged.places
        self.faults: list[Fault] = []

    @contextmanager
    def part(self) -> Iterator[None]:
        """Run a part of a check on its own: if a key that it reads is faulty, this part ends there,
        and the rest of the check goes on.
        """
        try:
            yield
        except FaultyKeyError:
            # The fault of the key is said by the schema.
            return

    @cached_property
    def pullers(self) -> list[PullerGroup]:
        """The DaemonSets of the puller, at most MOST_PULLERS + 1.

        One more than allowed, so that a check can tell that there are too many.
        """
        groups = puller_groups(self.values.get("singleuser"), self.values.get("prePuller"))
        return groups[: MOST_PULLERS + 1]

    def is_default(self, path: KeyPath) -> bool:
        """Whether a key says what the chart's defaults say: nobody chose it, so nobody need be
        warned of it.
        """
        keys = [str(step) for step in path]
        default = child(self._defaults, *keys)
        return default is not None and child(self.values, *keys) == default

    def error(self, path: KeyPath, found: object, expected: str, fix: str = "") -> None:
        """Say that a value doesn't work: what was found (shown as JSON), what is accepted."""
        shown = str(found) if isinstance(found, Phrase) else describe(found)
        self._add(path, shown, expected, fix, "error")

    def refuse(self, path: KeyPath, reason: str, fix: str = "") -> None:
        """Say in a sentence why values don't work together."""
        self._add(path, reason, "", fix, "error")

    def warn(self, path: KeyPath, reason: str, fix: str = "") -> None:
        """Say in a sentence what will surprise an operator."""
        self._add(path, reason, "", fix, "warning")

    def hint(self, path: KeyPath, reason: str, fix: str = "") -> None:
        """Say in a sentence what works as written, and might work better."""
        self._add(path, reason, "", fix, "hint")

    def _add(self, path: KeyPath, found: str, expected: str, fix: str, severity: Severity) -> None:
        fault = self._places.fault(path, found, expected, fix, severity)
        if fault.file == DEFAULTS_NAME and severity == "error":
            fault = self._at_its_cause(fault, path)
        self.faults.append(fault)

    def _at_its_cause(self, fault: Fault, path: KeyPath) -> Fault:
        """The same fault of a default, at the line that somebody wrote and that may have caused it.

        That is a key that the fault's text names, else the nearest key above `path`.
        """
        possible_keys = _keys_named_in(f"{fault.found} {fault.expected}")
        named_keys = [keys for keys in possible_keys if child(self.written, *keys) is not None]
        keys_above = [path[:depth] for depth in range(len(path) - 1, 0, -1)]
        for cause in (*named_keys, *keys_above):
            file, line = self._places.of(cause)
            if file != DEFAULTS_NAME:
                return fault._replace(file=file, line=line)
        return fault


def _keys_named_in(text: str) -> list[tuple[str, ...]]:
    """Words that may be keys of the values. Those with dots come first: fewer of them are mere
    words.
    """
    words = _KEY.findall(text)
    dotted = [word for word in words if "." in word]
    single = [word for word in words if "." not in word]
    return [tuple(word.split(".")) for word in (*dotted, *single)]


class Phrase(str):
    """Words for what was found, when the value itself says too little."""

    __slots__ = ()


def repeated(items: Iterable[T]) -> Iterator[tuple[int, T]]:
    """What a list has a further time, each with its position."""
    earlier: set[T] = set()
    for position, item in enumerate(items):
        if item in earlier:
            yield position, item
        earlier.add(item)


def entry_key(key: str) -> KeyPath:
    """The path of a key in a list, from the text that a reader of documents writes: (2, "name") for
    `[2].name`.

    () for a text without an index: then the fault is of the whole list.
    """
    index, _, rest = key.removeprefix("[").partition("].")
    return (int(index), rest) if index.isdigit() else ()


def of_core_pod(report: LintReport, part: str, key: str) -> object:
    """A key of `corePods`, as it applies to one program's pods."""
    common = mapping(report.values.get("corePods"))
    own = mapping(report.values.get(part))
    # Of each map this key alone: `core_pod` reads all keys, and another may be faulty.
    of_all = {key: common[key]} if key in common else {}
    of_part = {key: own.get(key)}
    return core_pod(of_all, of_part).get(key)


def named_by(report: LintReport, part: str, key: str) -> tuple[str, str]:
    """Where that key is set: in the program's own values, else in `corePods`."""
    return (part if child(report.values, part, key) is not None else "corePods", key)


Check = Callable[[LintReport, Release], None]
