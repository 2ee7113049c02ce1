"""Write docs/command-line.md: what `--help` of each command prints.

.venv/bin/python -m tools.write_command_line            write it
.venv/bin/python -m tools.write_command_line --check    exit 1 unless it is fresh
"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from roost.cli import cli
from tools.generated_file import write_or_check

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = Path(__file__).resolve().parent.parent
PAGE: Final = ROOT / "docs" / "command-line.md"
WRITER: Final = "python -m tools.write_command_line"
WIDTH: Final = 110
_HEAD: Final = """# Command line

What `--help` of each command prints; `make generated` writes this page from the commands' own declarations.
"""


def page() -> str:
    """The whole page: a section for the program and for each of its commands, in alphabetical order."""
    parts = [_HEAD]
    for name, text in _helps(cli, "roost", None):
        parts.append(f"\n## {name}\n\n```text\n{text}\n```\n")
    return "".join(parts)


def main(arguments: list[str]) -> int:
    """Write the page, or check it."""
    return write_or_check([(PAGE, page())], arguments, WRITER)


def _helps(command: click.Command, name: str, parent: click.Context | None) -> Iterator[tuple[str, str]]:
    """Name and help of a command, then of those below it."""
    # The terminal's width must not matter, nor where the writer runs.
    settings = {**command.context_settings, "terminal_width": WIDTH, "max_content_width": WIDTH}
    context = click.Context(command, info_name=name.rpartition(" ")[2], parent=parent, **settings)
    text = inspect.cleandoc(command.get_help(context))
    yield name, "\n".join(line.rstrip() for line in text.splitlines())
    if isinstance(command, click.Group):
        for each in command.list_commands(context):
            below = command.get_command(context, each)
            if below is not None and not below.hidden:
                yield from _helps(below, f"{name} {each}", context)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
