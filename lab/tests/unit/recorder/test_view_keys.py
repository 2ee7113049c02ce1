"""The keys of `roost top`: what each does, and all of it on a pseudo-terminal."""

from __future__ import annotations

import io
import os
import re
import select
import termios
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pytest
from rich.console import Console

from roost_core.objects.node import Node
from roost_lab.recorder.recording.reading import NodeReading
from roost_lab.view.keys import (
    BACKSPACE,
    DOWN,
    END,
    ENTER,
    ESCAPE,
    HOME,
    PAGE_DOWN,
    PAGE_UP,
    UP,
    Keys,
    View,
    press,
)
from roost_lab.view.live import rows_of
from roost_lab.view.moment import Moment, moment_of
from roost_lab.view.terminal import watch

if TYPE_CHECKING:
    from collections.abc import Iterator

SECONDS: Final = 20.0


def pressed(*keys: str, view: View | None = None) -> View | None:
    """After these keys, with ten of 25 nodes on the screen."""
    after = view or View()
    for key in keys:
        changed = press(after, key, 10, 25)
        if changed is None:
            return None
        after = changed
    return after


@pytest.mark.parametrize(
    ("keys", "first"),
    [
        ((DOWN,), 1),
        (("j", "j", "k"), 1),
        ((UP,), 0),
        ((PAGE_DOWN,), 10),
        ((" ", " ", " "), 15),
        ((END, UP), 14),
        (("G", "b"), 5),
        ((PAGE_DOWN, PAGE_UP, "x"), 0),
        ((END, HOME), 0),
        (("G", "g"), 0),
    ],
)
def test_nodes_scroll_no_further_than_there_are_some(keys: tuple[str, ...], first: int) -> None:
    assert pressed(*keys) == View(first=first)


def test_a_page_that_holds_all_nodes_does_not_scroll() -> None:
    assert press(View(), DOWN, 10, 5) == View()


def test_s_sorts_by_the_next_and_begins_at_the_top() -> None:
    sorts = []
    view = View(first=7)
    for _ in range(5):
        after = press(view, "s", 10, 25)
        assert after is not None
        assert after.first == 0
        sorts.append(after.sort)
        view = replace(after, first=7)
    assert sorts == ["name", "full", "users", "trouble", "name"]


def test_a_filter_is_typed_and_cleared() -> None:
    assert pressed("/", *"gpux", BACKSPACE) == View(filter="gpu", typing=True)
    # Letters that are keys otherwise.
    assert pressed("/", *"qs j", ENTER) == View(filter="qs j")
    assert pressed("/", *"gpu", ESCAPE) == View()
    assert pressed("/", *"gpu", ENTER, ESCAPE) == View()
    assert pressed("/", *"gpu", UP, "\x07", ENTER) == View(filter="gpu")
    assert len((pressed("/", *("x" * 500)) or View()).filter) == 60
    assert pressed("/", *"gpu", ENTER, "/", "a") == View(filter="a", typing=True)


def test_q_quits() -> None:
    assert pressed("q") is None
    assert pressed("Q") is None


@pytest.fixture
def terminal() -> Iterator[tuple[int, Any]]:
    """The side of who sits there, and the program's."""
    master, slave = os.openpty()
    with os.fdopen(slave, "r+b", buffering=0) as raw, io.TextIOWrapper(raw, write_through=True) as program:
        yield master, program
    os.close(master)


def test_keys_are_read_as_terminals_send_them_and_the_terminal_is_as_before(terminal: tuple[int, Any]) -> None:
    master, program = terminal
    before = termios.tcgetattr(program)
    with Keys(program) as keys:
        assert keys.is_there
        assert termios.tcgetattr(program) != before
        assert keys.read(0.0) == []
        os.write(master, b"s\x1b[A\x1bOB\x1b[6~/\xc3\xa4\x7f\r\x1b[99x")
        assert keys.read(SECONDS) == ["s", UP, DOWN, PAGE_DOWN, "/", "ä", BACKSPACE, ENTER, "\x1b[99x"]
        os.write(master, b"\x1b")
        assert keys.read(SECONDS) == [ESCAPE]
    assert termios.tcgetattr(program) == before


def test_where_nobody_can_press_keys_none_are_read(tmp_path: Any) -> None:
    path = tmp_path / "file"
    path.write_text("q\n")
    with path.open() as file, Keys(file) as keys:
        assert not keys.is_there
        assert keys.read(0.0) == []


class _Cluster:
    """A cluster of a hundred nodes."""

    def start(self, stop: threading.Event) -> str:
        return ""

    def moment(self) -> Moment:
        nodes = [NodeReading(Node(f"node-{number:03d}", uid=f"{number}"), "", 0, None) for number in range(100)]
        return moment_of(rows_of(nodes, [], lambda *_: "", 1))


class _Person:
    """Presses keys, and reads the screen."""

    def __init__(self, master: int) -> None:
        self._master = master
        self._seen = ""

    def press(self, keys: bytes) -> None:
        os.write(self._master, keys)

    def wait_for(self, text: str) -> None:
        """Wait for a text to be drawn, after what was waited for before."""
        deadline = time.monotonic() + SECONDS
        while text not in self._seen:
            assert time.monotonic() < deadline, f"no {text!r} in {self._seen[-2000:]!r}"
            if select.select([self._master], [], [], 0.1)[0]:
                drawn = os.read(self._master, 65536).decode(errors="ignore")
                self._seen = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self._seen + drawn)
        self._seen = self._seen.partition(text)[2]


def test_the_live_view_follows_keys_on_a_terminal(terminal: tuple[int, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    master, program = terminal
    monkeypatch.setattr("sys.stdin", program)
    console = Console(file=program, force_terminal=True, width=100, height=14)
    said: list[str] = []
    cluster: Any = _Cluster()
    thread = threading.Thread(target=lambda: said.append(watch(cluster, console, once=False)), daemon=True)
    thread.start()
    person = _Person(master)
    person.wait_for("node-000")
    person.wait_for("nodes 1 to 10 of 100   s: by trouble")
    person.press(b"\x1b[6~")
    person.wait_for("node-010")
    person.wait_for("nodes 11 to 20 of 100")
    person.press(b"s")
    person.wait_for("nodes 1 to 10 of 100   s: by name")
    person.press(b"/09")
    person.wait_for("filter: 09_")
    person.press(b"\r")
    person.wait_for("node-090")
    person.wait_for("nodes 1 to 10 of 11   s: by name   /: filter (09)")
    person.press(b"q")
    # The screen that was there before.
    thread.join(SECONDS)
    assert said == [""]
