"""The keys of `roost top`, as a terminal gives them."""

from __future__ import annotations

import os
import select
import sys
import termios
import tty
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from typing import TextIO


class Keys:
    """Keys of a terminal, one by one and without Enter; of anything else, none.

    `with Keys() as keys: keys.read(1.0)`; source: stdin unless given. Ctrl-C goes on raising KeyboardInterrupt.
    """

    def __init__(self, source: TextIO | None = None) -> None:
        self._source = sys.stdin if source is None else source
        self._is_there = self._source.isatty()

    @property
    def is_there(self) -> bool:
        """Whether somebody can press keys."""
        return self._is_there

    def __enter__(self) -> Self:
        if self._is_there:
            self._before = termios.tcgetattr(self._source)
            tty.setcbreak(self._source)
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_there:
            termios.tcsetattr(self._source, termios.TCSADRAIN, self._before)

    def read(self, seconds: float) -> str:
        """What was pressed by then; returns as soon as there is something."""
        ready, _, _ = select.select([self._source] if self._is_there else [], [], [], seconds)
        if not ready:
            return ""
        data = os.read(self._source.fileno(), 1024)
        # The terminal is gone.
        self._is_there = self._is_there and bool(data)
        return data.decode(errors="ignore")
