"""Remember what follows from parts of objects, by their JSON: most pods of a hub are alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Generic, TypeVar

import orjson

T = TypeVar("T")

_MAX_REMEMBERED: Final = 256
# Longer texts aren't worth it: a pod may have megabytes, real parts have some hundred bytes.
_MAX_BYTES: Final = 4096


class ByJSON(Generic[T]):
    """A memory of what was read; safe to use from several threads."""

    def __init__(self) -> None:
        self._known: dict[bytes, T] = {}

    def __call__(self, parts: object, read: Callable[[], T]) -> T:
        """Return what `read` gives, which depends on `parts` alone; what it raises isn't
        remembered.
        """
        try:
            key = orjson.dumps(parts)
        except TypeError:
            # Nested too deeply, or a number beyond 64 bits.
            return read()
        known = self._known.get(key)
        if known is None:
            known = read()
            if len(key) <= _MAX_BYTES:
                if len(self._known) >= _MAX_REMEMBERED:
                    self._known = {}
                self._known[key] = known
        return known
