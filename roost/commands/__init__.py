"""One module per command of `roost/cli.py` and `lab/roost_lab/cli.py`, imported only when the command is called."""

from __future__ import annotations

from importlib import import_module


def call(command: str, *arguments: object, **named: object) -> int:
    """Run a command's module, and return its exit code."""
    code: int = import_module(f"roost.commands.{command}").run(*arguments, **named)
    return code
