"""Write docs/command-line.md: what `--help` of each command prints.

.venv/bin/python -m tools.write_command_line            write it
.venv/bin/python -m tools.write_command_line --check    exit 1 unless it is fresh
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from roost.cli import GROUPS, cli
from tools.generated_file import write_or_check
from tools.root import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from roost.cli import CommandGroup

PAGE: Final = ROOT / "docs" / "command-line.md"
WRITER: Final = "python -m tools.write_command_line"
WIDTH: Final = 110
_HEAD: Final = """# Command line

What `--help` of each command prints, group by group, without its examples; `make generated` writes
this page. Options that several commands share are printed once. The programs that the chart starts,
and `completion`, have their options in `--help` only. So have the lab's commands, which have
[their own pages](../lab/docs/index.md).
"""
# Programs that the chart starts with their options, commands that say all in the list, and
# `completion`, whose three lines its own help has.
_LEFT_OUT: Final = frozenset({"webhook", "controllers", "seating", "help", "version", "completion"})


# How paragraphs of examples begin.
_EXAMPLES: Final = ("  roost ", "  kubectl ")
# Where the program's own examples begin.
_FIRST_STEPS: Final = "\n  First steps:\n"


class _Shared(NamedTuple):
    """Options that the help of one command tells for all that have every one of them."""

    command: str
    options: tuple[str, ...]


_SHARED: Final = (
    _Shared("validate", ("-f", "--set", "--set-json", "--release", "-n", "--kube-version")),
    _Shared("doctor", ("--kubeconfig", "--context")),
)


def page() -> str:
    """The whole page: the program, then its groups."""
    program = cli.get_help(_context(cli, "roost", None)).partition(_FIRST_STEPS)[0]
    helps = [("roost", program), *_groups(GROUPS)]
    parts = [f"\n## {name}\n\n```text\n{_trim(text)}\n```\n" for name, text in helps]
    return "".join([_HEAD, *parts])


def main(arguments: list[str]) -> int:
    """Write the page, or check it."""
    return write_or_check([(PAGE, page())], arguments, WRITER)


def _groups(tables: Iterable[CommandGroup]) -> Iterator[tuple[str, str]]:
    top = _context(cli, "roost", None)
    for table in tables:
        for name in table.commands:
            command = cli.get_command(top, name)
            if command is not None and name not in _LEFT_OUT:
                yield from _helps(command, f"roost {name}", top)


def _context(command: click.Command, name: str, parent: click.Context | None) -> click.Context:
    # The terminal's width must not matter, nor where the writer runs.
    settings = {**command.context_settings, "terminal_width": WIDTH, "max_content_width": WIDTH}
    return click.Context(command, info_name=name.rpartition(" ")[2], parent=parent, **settings)


def _trim(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def _help(command: click.Command, context: click.Context) -> str:
    """What `--help` prints, without `--help` itself and examples, and with one line for options
    that another command tells.
    """
    parameters = command.params
    lines = []
    for told, options in _SHARED:
        shared = [param for param in command.params if {*options} & {*param.opts}]
        if command.name != told and len(shared) == len(options):
            command.params = [param for param in command.params if param not in shared]
            lines.append(f"  {', '.join(options)}: as of roost {told}")
    command.add_help_option = False
    try:
        text = command.get_help(context)
    finally:
        command.params = parameters
        command.add_help_option = True
    before, heading, after = text.partition("\nOptions:\n")
    paragraphs = before.split("\n\n")
    before = "\n\n".join(part for part in paragraphs if not part.startswith(_EXAMPLES))
    parts = (before, "\nOptions:", *lines, after) if heading or lines else (before,)
    return "\n".join(part.rstrip() for part in parts if part)


def _helps(
    command: click.Command, name: str, parent: click.Context | None
) -> Iterator[tuple[str, str]]:
    """Name and help of a command, then of those below it."""
    context = _context(command, name, parent)
    yield name, _help(command, context)
    if isinstance(command, click.Group):
        for below_name in command.list_commands(context):
            below = command.get_command(context, below_name)
            if below is not None and not below.hidden:
                yield from _helps(below, f"{name} {below_name}", context)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
