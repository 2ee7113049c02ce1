"""Values in which some keys have faults: a check that reads such a key stops there.

Of a value that doesn't fit the schema, it could say nothing useful. Checks that don't read the key
go on, so that all other faults are still found.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NoReturn, SupportsIndex, cast

from generator.faults import KeyPath
from generator.values.merge import Values


class FaultyKeyError(Exception):
    """A check read a key with a fault of its own."""


def _stop(*_arguments: object) -> NoReturn:
    raise FaultyKeyError


class _Map(dict[str, Any]):
    """A map of which some keys are faulty. Their names may be read, and each sound key."""

    def __init__(self, entries: dict[str, Any], faulty: set[str | int]) -> None:
        # The dict holds the sound keys alone; `_names` has all keys, in their order.
        super().__init__({key: value for key, value in entries.items() if key not in faulty})
        self._names = [*entries]
        self._faulty = faulty

    def __getitem__(self, key: str) -> Any:  # noqa: ANN401 - as a dict's
        if key in self._faulty:
            raise FaultyKeyError
        return super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:  # noqa: ANN401 - as a dict's
        if key in self._faulty:
            raise FaultyKeyError
        return super().get(key, default)

    def __contains__(self, key: object) -> bool:
        # The name of a key that is there may be read, even if its value has a fault.
        is_there = key in self._names
        if not is_there and key in self._faulty:
            # A required key that is missing: the schema has said so.
            raise FaultyKeyError
        return is_there

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def keys(self) -> Any:  # noqa: ANN401 - as a dict's
        return dict.fromkeys(self._names).keys()

    # What is taken in as a whole.
    items = values = copy = _stop
    __eq__ = __ne__ = __or__ = __ror__ = _stop
    __hash__ = None


class _List(list[Any]):
    """A list of which some entries are faulty. Each sound entry may be read."""

    def __init__(self, entries: list[Any], faulty: set[str | int]) -> None:
        super().__init__(entries)
        self._faulty = faulty

    def __getitem__(self, index: SupportsIndex | slice) -> Any:  # noqa: ANN401 - as a list's
        if isinstance(index, slice):
            raise FaultyKeyError
        position = int(index)
        if position < 0:
            position += len(self)
        if position in self._faulty:
            raise FaultyKeyError
        return super().__getitem__(index)

    def __iter__(self) -> Iterator[Any]:
        for index, entry in enumerate(super().__iter__()):
            if index in self._faulty:
                raise FaultyKeyError
            yield entry

    copy = _stop
    __eq__ = __ne__ = __add__ = __contains__ = _stop
    __hash__ = None


def guarded(values: Values, faulty: Iterable[KeyPath]) -> Values:
    """The values; reading a key at one of these paths raises FaultyKeyError. `values` stay as they
    are.
    """
    return cast("Values", _guarded(values, {_existing(values, path) for path in faulty}))


def _existing(values: Any, path: KeyPath) -> KeyPath:  # noqa: ANN401 - any part of the values
    """A path as far as the values go: up to its first key that is missing, or that holds neither a
    map nor a list.
    """
    part = values
    for depth, step in enumerate(path, start=1):
        try:
            part = part[step]
        except (KeyError, IndexError):
            return path[:depth]
        if not isinstance(part, dict | list):
            return path[:depth]
    return path


def _guarded(node: Any, paths: set[KeyPath]) -> Any:  # noqa: ANN401 - a part of the values
    """A part of the values; reading a key at one of these paths below it raises FaultyKeyError."""
    if not paths:
        return node
    faulty = {path[0] for path in paths if len(path) == 1}
    # What is faulty further down, by the first step of its path.
    paths_below: dict[str | int, set[KeyPath]] = {}
    for first, *rest in paths:
        if rest and first not in faulty:
            paths_below.setdefault(first, set()).add(tuple(rest))
    below = {step: _guarded(node[step], inner) for step, inner in paths_below.items()}
    if isinstance(node, dict):
        entries = {**node, **below}
        return _Map(entries, faulty) if faulty else entries
    listed = [below.get(index, entry) for index, entry in enumerate(node)]
    return _List(listed, faulty) if faulty else listed


def sound_items(entries: object) -> Iterator[tuple[str, Any]]:
    """The sound entries of a map; none where `entries` isn't a map."""
    if not isinstance(entries, dict):
        return
    for key in entries:
        try:
            entry = entries[key]
        except FaultyKeyError:
            continue
        yield key, entry


def sound_entries(entries: object) -> Iterator[tuple[int, Any]]:
    """The sound entries of a list, each with its position; none where `entries` isn't a list."""
    if not isinstance(entries, list):
        return
    for position in range(len(entries)):
        try:
            entry = entries[position]
        except FaultyKeyError:
            continue
        yield position, entry


def is_sound(part: object) -> bool:
    """Whether nothing in a part of the values is faulty."""
    if isinstance(part, _Map | _List):
        return False
    if isinstance(part, dict):
        return all(map(is_sound, part.values()))
    return not isinstance(part, list) or all(map(is_sound, part))
