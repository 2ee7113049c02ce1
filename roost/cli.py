"""The command line: the table of commands in their groups. A command's module is imported when it
is called.

Other distributions add groups by an entry point of the group `roost.commands`: a sequence of
CommandGroup. roost-lab adds those that watch, record and study.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import Final, NamedTuple

import click

_ENTRY_POINTS: Final = "roost.commands"
# The variable by which a shell asks for completions.
_COMPLETION: Final = "_ROOST_COMPLETE"
_FIRST_STEPS: Final = """\
First steps:
  roost import hub.yaml > values.yaml       from your hub's values; says what to switch off there
  roost validate -f values.yaml             every fault at once: file, line, key, fix
  roost render -f values.yaml --release roost --namespace jhub --summary     what would be created
"""
# Commands of roost-lab, a distribution of its own.
_ELSEWHERE: Final = (
    "why",
    "view",
    "top",
    "report",
    "record",
    "records",
    "simulate",
    "rehearse",
    "book",
)


class CommandGroup(NamedTuple):
    """Commands that serve one purpose, by name, each with its line in the list, in the order in
    which they are listed.

    package: has a module for each, which is its `command`.
    """

    title: str
    commands: Mapping[str, str]
    package: str = "roost.commands"


# Modules that are called otherwise than their command, which is a word of Python's own.
_MODULES: Final = {"import": "import_values", "help": "help_page"}
GROUPS: Final = (
    CommandGroup(
        "set up",
        {
            "import": "Convert zero-to-jupyterhub's or BinderHub's values to Roost's.",
            "validate": "Print every fault and warning of the values.",
            "render": "Render values to Kubernetes manifests.",
            "diff": "Show what changes between two values files, or values and manifests.",
            "doctor": "Say what keeps an install from doing its work, and how to mend it.",
            "images": "List the images that an install needs, for a copy of them.",
        },
    ),
    CommandGroup(
        "room", {"headroom": "Print the placeholders of the coming days, and their node-hours."}
    ),
    CommandGroup(
        "programs",
        {
            "webhook": "Serve admission reviews until SIGTERM.",
            "controllers": "Keep labels, placeholders and images in order until SIGTERM.",
            "seating": "Start booked people's servers before their class, until SIGTERM.",
            "cleanup": "Remove a release's labels and taints from the nodes.",
        },
    ),
    CommandGroup(
        "more",
        {
            "help": "Print the help of a command.",
            "version": "Print the version.",
            "completion": "Print what makes a shell complete commands and options.",
        },
    ),
)


def groups() -> Sequence[CommandGroup]:
    """Roost's own groups, then those of other distributions."""
    # Takes a fifth of a whole render, which needs only Roost's own.
    from importlib.metadata import entry_points  # noqa: PLC0415

    more = sorted(entry_points(group=_ENTRY_POINTS), key=lambda entry_point: entry_point.name)
    return [*GROUPS, *(group for entry_point in more for group in entry_point.load())]


class _Commands(click.Group):
    """Finds commands in the tables, and lists them by group."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's
        """Every command, in the order of the groups."""
        return [name for group in groups() for name in group.commands]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name; None if there is none."""
        module = _module_of(cmd_name)
        if not module:
            if cmd_name in _ELSEWHERE:
                ctx.fail(
                    f"roost {cmd_name} belongs to the distribution roost-lab, which isn't installed"
                    " here. Install it from the checkout or the release that this roost is of:"
                    " pip install ./lab, or its wheel."
                )
            near = get_close_matches(cmd_name, self.list_commands(ctx), 1, cutoff=0.6)
            if near:
                ctx.fail(f"found no command {cmd_name!r}. Did you mean roost {near[0]}?")
            ctx.fail(
                f"found no command {cmd_name!r}, expected one of those that roost --help lists"
            )
        command: click.Command = import_module(module).command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's
        """List the commands of each group under its title."""
        for group in groups():
            with formatter.section(group.title):
                formatter.write_dl(list(group.commands.items()))


def _module_of(name: str) -> str:
    """The module of a command; "": there is none.

    Roost's own are found without a look at other distributions.
    """
    return _module_in(GROUPS, name) or _module_in(groups(), name)


def _module_in(some: Iterable[CommandGroup], name: str) -> str:
    """The module of a command of these groups; "": none has it."""
    for group in some:
        if name in group.commands:
            return f"{group.package}.{_MODULES.get(name, name)}"
    return ""


def _version(context: click.Context, _option: click.Parameter, wanted: bool) -> None:
    if wanted:
        from roost.commands.version import installed_version  # noqa: PLC0415 - takes a fifth of a whole render

        click.echo(installed_version())
        context.exit()


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog="\b\n" + _FIRST_STEPS,
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_version,
    help="Print the version.",
)
def cli() -> None:
    """Decide on which nodes the pods of JupyterHubs and BinderHubs run.


    Exit codes of every command: 0 done; 1 something was found (faulty values, a difference, an
    error of the install, no answer in a record); 2 it couldn't be done (wrong usage, or a file,
    record or cluster that can't be read).
    """


def run(arguments: list[str]) -> int:
    """Run one command and return its exit code; prints help and usage errors."""
    if _COMPLETION in os.environ:
        # A shell asks: click answers, and ends the process.
        cli.main(args=arguments, prog_name="roost")
    try:
        # `cli.main` isn't called: it exits with 1 when whoever reads stdout has closed it.
        with cli.make_context("roost", arguments) as context:
            code = cli.invoke(context)
    except click.exceptions.Exit as exit_:
        return exit_.exit_code
    except click.ClickException as error:
        error.show()
        return 2
    except click.Abort as error:
        raise KeyboardInterrupt from error
    return code if isinstance(code, int) else 0
