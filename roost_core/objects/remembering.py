"""Remember what was read from parts of objects, by their JSON: most pods of a hub are alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Generic, TypeVar

import orjson

T = TypeVar("T")

_MAX_REMEMBERED: Final = 256
# Longer JSON isn't remembered. A usual part has some hundred bytes, and a pod may have megabytes.
_MAX_BYTES: Final = 4096


class ByJSON(Generic[T]):
    """A memory of what was read. It may be used from several threads."""

    def __init__(self) -> None:
        self._known: dict[bytes, T] = {}

    def __call__(self, parts: object, read: Callable[[], T]) -> T:
        """Return the result of `read`, or the remembered result for equal `parts`.

        read: its result must depend only on `parts`. What it raises isn't remembered.
        """
        try:
            key = orjson.dumps(parts)
        except TypeError:
            # The parts are nested too deeply, or hold a number beyond 64 bits.
            return read()
        remembered = self._known.get(key)
        if remembered is not None:
            return remembered
        result = read()
        if len(key) <= _MAX_BYTES:
            if len(self._known) >= _MAX_REMEMBERED:
                self._known = {}
            self._known[key] = result
        return result
