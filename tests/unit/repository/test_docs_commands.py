"""Each `roost …` in a block of the documentation is one that the command line takes; its release isn't the hub's."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import click
import pytest

from roost.cli import cli

REPOSITORY: Final = Path(__file__).resolve().parents[3]
PAGES: Final = (
    REPOSITORY / "README.md",
    *sorted((REPOSITORY / "docs").glob("**/*.md")),
    *sorted((REPOSITORY / "lab" / "docs").glob("**/*.md")),
)
BLOCK: Final = re.compile(r"^ *```(?:sh|console|)\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
BEGIN: Final = re.compile(r"(?:^|[|;] *|&& *| -- |do )(roost [a-z-].*)")
# What ends a command, unless it is quoted. The name of a command or of an argument has none of these.
END: Final = re.compile(r"[();<>|&]+")
# What another command prints, in the place of arguments.
PRINTED: Final = re.compile(r"\$\([^)]*\)")


class Command(NamedTuple):
    # Path and line.
    place: str
    arguments: tuple[str, ...]
    # By `kubectl exec`, in the recorder's pod.
    in_pod: bool


def lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines of shell in blocks, with the number of each one's last line; a line that ends in a backslash goes on."""
    for block in BLOCK.finditer(text):
        # With prompts, a line that has none was printed.
        prompts = re.search(r"^ *\$ ", block[1], re.MULTILINE) is not None
        joined = ""
        for number, shown in enumerate(block[1].splitlines(), text.count("\n", 0, block.start()) + 2):
            line = shown.strip()
            if prompts and not joined and not line.startswith("$ "):
                continue
            joined += line.removeprefix("$ ").removesuffix("\\")
            if not line.endswith("\\"):
                yield number, joined
                joined = ""


def words(line: str) -> Iterator[str]:
    read = shlex.shlex(PRINTED.sub("", line), posix=True, punctuation_chars=True)
    read.whitespace_split = True
    for word in read:
        if END.fullmatch(word):
            return
        yield word


def commands() -> list[Command]:
    found = []
    for path in PAGES:
        for number, line in lines(path.read_text(encoding="utf-8")):
            for begin in BEGIN.finditer(line):
                place = f"{path.relative_to(REPOSITORY)}:{number}"
                in_pod = begin[0].startswith(" -- ")
                found += [
                    Command(place, tuple(words(each))[1:], in_pod)
                    for each in re.split(r"(?<=[|]) *(?=roost )", begin[1])
                ]
    return found


COMMANDS: Final = commands()


def parsed(arguments: tuple[str, ...]) -> click.Context:
    """What the command line makes of arguments, without running anything. Raises click.UsageError."""
    command: click.Command = cli
    name, rest = "roost", list(arguments)
    while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
        below = command.get_command(click.Context(command), rest[0])
        if below is None:
            break
        name = rest.pop(0)
        command = below
    if command is cli:
        raise click.UsageError(f"no such command: {arguments}")
    return command.make_context(name, rest)


def test_commands_are_found() -> None:
    assert len(COMMANDS) > 80
    assert {command.place.partition(":")[0] for command in COMMANDS} >= {"README.md", "docs/tutorials/kind.md"}
    assert "records" in {command.arguments[0] for command in COMMANDS}


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: f"{command.place} {command.arguments[0]}")
def test_the_command_line_takes_what_the_documentation_writes(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    if command.in_pod:
        monkeypatch.setenv("ROOST_DATABASE", "roost.db")
    else:
        monkeypatch.delenv("ROOST_DATABASE", raising=False)
    context = parsed(command.arguments)
    if command.arguments[0] != "import":  # whose --release is the hub's
        given = context.params.get("release") or context.params.get("name")
        assert given != "hub", "In the documentation Roost's release is roost; hub is the hub's."
