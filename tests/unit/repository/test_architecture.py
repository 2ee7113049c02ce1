"""docs/architecture.md and docs/glossary.md name files that exist, and what is in them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
# In backticks, from the top of the repository: a file, or a folder with its slash.
PATH = re.compile(
    r"`((?:roost|roost_core|generator|webhook|templates|chart|tests|tools|docs|benchmarks)/[\w./-]*)(?=`)"
)
QUOTED = re.compile(r"`([^`]+)`")


def steps() -> list[str]:
    """The lines of the recipes."""
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    return page.partition("## Recipes")[2].splitlines()


def rows() -> list[list[str]]:
    """The rows of the tables under "Where a change goes": change, room, files, tests."""
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    part = page.partition("## Where a change goes")[2].partition("## Recipes")[0]
    lines = [line for line in part.splitlines() if line.startswith("| ") and not line.startswith("| change |")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


@pytest.mark.parametrize("page", ["architecture.md", "glossary.md"])
def test_every_file_that_the_page_names_exists(page: str) -> None:
    named = PATH.findall((ROOT / "docs" / page).read_text(encoding="utf-8"))
    assert len(named) > 15
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_where_a_change_goes_has_rows_of_four_cells_that_name_a_file_each() -> None:
    assert len(rows()) >= 15
    assert [row for row in rows() if len(row) != 4 or not QUOTED.search(row[2])] == []


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0])
def test_a_change_names_files_of_its_room_and_what_is_in_them(row: list[str]) -> None:
    _, room, files, tests = row
    folders = [ROOT, *(ROOT / name for name in QUOTED.findall(room))]
    quoted = QUOTED.findall(files)
    paths = {name for name in quoted if "/" in name or "." in name}
    exist = {name: [folder / name for folder in folders if (folder / name).exists()] for name in paths}
    assert [name for name, at in exist.items() if not at] == []
    text = "".join(path.read_text(encoding="utf-8") for at in exist.values() for path in at if path.is_file())
    names = [name for name in quoted if name not in paths and re.fullmatch(r"[\w$]+", name)]
    assert [name for name in names if name not in text] == []
    assert [name for name in QUOTED.findall(tests) if " " not in name and not (ROOT / "tests" / name).exists()] == []


def test_a_step_of_a_recipe_names_what_is_in_its_files() -> None:
    missing = []
    for step in steps():
        text = "".join(
            (ROOT / path).read_text(encoding="utf-8")
            for path in PATH.findall(step)
            if path[-1] != "/" and "<" not in path
        )
        names = [name for name in QUOTED.findall(step) if re.fullmatch(r"[\w$]+", name)]
        missing += [name for name in names if text and name not in text]
    assert missing == []
