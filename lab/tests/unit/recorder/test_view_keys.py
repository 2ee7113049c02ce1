"""The keys of `roost top`, on a pseudo-terminal."""

from __future__ import annotations

import io
import os
import re
import select
import termios
import threading
import time
from typing import TYPE_CHECKING, Any, Final

import pytest
from rich.console import Console

from roost_core.objects.node import Node
from roost_lab.recorder.recording.reading import NodeReading
from roost_lab.view.live import rows_of
from roost_lab.view.moment import Moment, moment_of
from roost_lab.view.terminal import Keys, watch

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SECONDS: Final = 20.0


@pytest.fixture
def terminal() -> Iterator[tuple[int, Any]]:
    """The side of who sits there, and the program's."""
    master, slave = os.openpty()
    with os.fdopen(slave, "r+b", buffering=0) as raw, io.TextIOWrapper(raw, write_through=True) as program:
        yield master, program
    os.close(master)


def test_keys_are_read_without_enter_and_the_terminal_is_as_before(terminal: tuple[int, Any]) -> None:
    master, program = terminal
    before = termios.tcgetattr(program)
    with Keys(program) as keys:
        assert keys.is_there
        assert termios.tcgetattr(program) != before
        assert keys.read(0.0) == ""
        os.write(master, b"s \xc3\xa4q")
        assert keys.read(SECONDS) == "s äq"
    assert termios.tcgetattr(program) == before


def test_where_nobody_can_press_keys_none_are_read(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("q\n")
    with path.open() as file, Keys(file) as keys:
        assert not keys.is_there
        assert keys.read(0.0) == ""


class _Cluster:
    """A cluster that gets a node each time one looks."""

    def __init__(self) -> None:
        self.looks = 0

    def start(self, stop: threading.Event) -> str:
        return ""

    def moment(self) -> Moment:
        self.looks += 1
        nodes = [NodeReading(Node(f"node-{number}", uid=f"{number}"), "") for number in range(self.looks)]
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
    console = Console(file=program, force_terminal=True, width=100, height=24)
    said: list[str] = []
    cluster: Any = _Cluster()
    thread = threading.Thread(target=lambda: said.append(watch(cluster, console, once=False)), daemon=True)
    thread.start()
    person = _Person(master)
    person.wait_for("s: by trouble   space: pause   q: quit")
    person.wait_for("node-1")
    person.press(b"\x1b[As")
    person.wait_for("s: by name")
    person.press(b" ")
    person.wait_for("space: go on")
    looks = cluster.looks
    time.sleep(1.5)
    assert cluster.looks == looks
    person.press(b"s ")
    person.wait_for("s: by full   space: pause")
    person.wait_for(f"node-{looks}")
    person.press(b"q")
    # The screen that was there before.
    thread.join(SECONDS)
    assert said == [""]
