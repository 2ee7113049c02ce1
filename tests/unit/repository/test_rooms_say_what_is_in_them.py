"""The docstring of a room says what each of its files does, as docs/architecture.md promises."""

import ast
from pathlib import Path
from typing import Final

import pytest

from tools.root import ROOT

HOUSES: Final = ("generator", "webhook", "roost", "roost_core", "lab/roost_lab")
# A table in code lists their files, by the command that each is.
WITH_A_TABLE: Final = {"roost/commands", "lab/roost_lab/commands"}
# What is at the top of a house has no room.
TOPS: Final = {"roost", "roost_core", "roost_core/http", "lab/roost_lab", "lab/roost_lab/recorder"}
# Files of each program, which say themselves what they are.
OF_PROGRAMS: Final = ("main.py", "metrics.py", "options.py", "seating_options.py")
ROOMS: Final = sorted(
    room
    for house in HOUSES
    for found in (ROOT / house).rglob("__init__.py")
    if (room := found.parent.relative_to(ROOT).as_posix()) not in WITH_A_TABLE | TOPS
)


@pytest.mark.parametrize("room", ROOMS)
def test_a_rooms_docstring_names_its_files(room: str) -> None:
    docstring = ast.get_docstring(ast.parse((ROOT / room / "__init__.py").read_text())) or ""
    files = {file.name for file in Path(ROOT / room).glob("*.py")} - {"__init__.py", *OF_PROGRAMS}
    assert sorted(file for file in files if file not in docstring) == []
