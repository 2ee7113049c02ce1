"""From README to the first user whom Roost placed: how much there is to read, and to type."""

import re
from typing import Final

from tools.root import ROOT

PAGE: Final = "docs/tutorials/zero-to-jupyterhub.md"
MOST_COMMANDS: Final = 7
MOST_WORDS: Final = 1500
_WORD: Final = re.compile(r"\w")
_NOT_SHOWN: Final = re.compile(r"<!--.*?-->|<img [^>]*>", re.DOTALL)


def words(text: str) -> int:
    """Words, commands included. Comments, pictures and the marks of tables aren't read."""
    shown = _NOT_SHOWN.sub("", text)
    return sum(1 for word in shown.split() if _WORD.search(word))


def commands(text: str) -> list[str]:
    """The lines to type, of the page's shell blocks; a line that goes on is one command."""
    found: list[str] = []
    for block in re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        joined = re.sub(r"\\\n\s*", "", block)
        for line in joined.splitlines():
            found += [part.strip() for part in line.split("&&") if part.strip()]
    return found


def test_a_first_user_is_placed_after_seven_commands_and_few_words() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    # A reader who reads everything up to the link.
    until_link, link, _ = readme.partition(f"]({PAGE})")
    assert link
    page = (ROOT / PAGE).read_text(encoding="utf-8")
    until_placed, placed, _ = page.partition("Roost placed it.")
    assert placed
    typed = commands(until_placed)
    read = words(until_link) + words(until_placed)
    assert len(typed) <= MOST_COMMANDS, typed
    assert read <= MOST_WORDS, read


def test_each_command_of_the_path_is_one_of_a_program_that_the_page_names_as_needed() -> None:
    page = (ROOT / PAGE).read_text(encoding="utf-8")
    needs = page.partition("## 1.")[0].lower()
    programs = {command.split()[0] for command in commands(page)}
    own = {"cd", "tools/publish", ".venv/bin/roost"}
    assert [program for program in programs - own if program not in needs] == []
