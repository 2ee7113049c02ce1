"""Run `roost` in this process, as from a command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from roost import __main__ as entry

if TYPE_CHECKING:
    import pytest


class Outcome(NamedTuple):
    """What one run of the command line gave."""

    code: int
    out: str
    err: str


class Runner:
    """Calling it runs `roost` with these arguments."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: object) -> Outcome:
        code = entry.main([str(argument) for argument in arguments])
        captured = self._capsys.readouterr()
        assert "Traceback" not in captured.err
        return Outcome(code, captured.out, captured.err)
