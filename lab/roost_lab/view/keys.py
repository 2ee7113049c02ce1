"""The keys of `roost top`: what they change, and how a terminal gives them."""

from __future__ import annotations

import os
import re
import select
import sys
import termios
import tty
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TextIO

# By trouble: nodes that aren't ready, are cordoned, leave or fail to pull come first, then by name.
TROUBLE, NAME, FULL, USERS = "trouble", "name", "full", "users"
SORTS: Final = (TROUBLE, NAME, FULL, USERS)
UP, DOWN, PAGE_UP, PAGE_DOWN, HOME, END = "up", "down", "page-up", "page-down", "home", "end"
ENTER, ESCAPE, BACKSPACE = "enter", "escape", "backspace"
# What terminals send, by their modes; letters as in less.
_NAMES: Final = {
    **dict.fromkeys(("\x1b[A", "\x1bOA"), UP),
    **dict.fromkeys(("\x1b[B", "\x1bOB"), DOWN),
    **dict.fromkeys(("\x1b[H", "\x1bOH", "\x1b[1~", "\x1b[7~"), HOME),
    **dict.fromkeys(("\x1b[F", "\x1bOF", "\x1b[4~", "\x1b[8~"), END),
    "\x1b[5~": PAGE_UP,
    "\x1b[6~": PAGE_DOWN,
    "\r": ENTER,
    "\n": ENTER,
    "\x1b": ESCAPE,
    "\x7f": BACKSPACE,
    "\x08": BACKSPACE,
}
_LETTERS: Final = {"k": UP, "j": DOWN, "b": PAGE_UP, " ": PAGE_DOWN, "g": HOME, "G": END}
_KEY: Final = re.compile(r"\x1b\[[0-9;]*[A-Za-z~]|\x1bO[A-Za-z]|.", re.DOTALL)
# How long the rest of a key that comes in pieces may take.
_REST_SECONDS: Final = 0.05
_MAX_FILTER: Final = 60


@dataclass(frozen=True, slots=True)
class View:
    """What of the cluster is shown, and in which order."""

    sort: str = TROUBLE
    # Only nodes, images and decisions that hold this text, in whatever case.
    filter: str = ""
    # The first node that is shown, of those in order.
    first: int = 0
    # What is typed goes to the filter.
    typing: bool = False


def press(view: View, key: str, page: int, total: int) -> View | None:
    """The view after a key; None: quit. page: nodes that fit; total: nodes that there are."""
    if view.typing:
        return _typed(view, key)
    key = _LETTERS.get(key, key)
    if key in ("q", "Q"):
        return None
    if key == "s":
        return replace(view, sort=SORTS[(SORTS.index(view.sort) + 1) % len(SORTS)], first=0)
    if key == "/":
        return replace(view, filter="", first=0, typing=True)
    if key == ESCAPE:
        return replace(view, filter="", first=0)
    steps = {UP: -1, DOWN: 1, PAGE_UP: -page, PAGE_DOWN: page, HOME: -total, END: total}
    return replace(view, first=max(0, min(view.first + steps.get(key, 0), total - page)))


def _typed(view: View, key: str) -> View:
    if key == ENTER:
        return replace(view, typing=False)
    if key == ESCAPE:
        return replace(view, filter="", typing=False)
    if key == BACKSPACE:
        return replace(view, filter=view.filter[:-1])
    if len(key) == 1 and key.isprintable():
        return replace(view, filter=(view.filter + key)[:_MAX_FILTER])
    return view


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

    def read(self, seconds: float) -> Sequence[str]:
        """The keys pressed by then, by name or as characters; returns as soon as there are some."""
        if not self._is_there:
            select.select([], [], [], seconds)
            return []
        text = self._some(seconds)
        if text.endswith(("\x1b", "\x1b[", "\x1bO")):
            text += self._some(_REST_SECONDS)
        return [_NAMES.get(key, key) for key in _KEY.findall(text)]

    def _some(self, seconds: float) -> str:
        ready, _, _ = select.select([self._source], [], [], seconds)
        if not ready:
            return ""
        data = os.read(self._source.fileno(), 1024)
        # The terminal is gone.
        self._is_there = self._is_there and bool(data)
        return data.decode(errors="ignore")
