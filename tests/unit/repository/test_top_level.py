"""What stands at the top of the repository, and the map that shows it."""

import ast
import re
import subprocess
from pathlib import Path
from typing import Final

from tools.root import ROOT

MAP: Final = re.compile(r"^\| who \| folder \| what \|\n(?:\|.*\n)+", re.MULTILINE)
FOLDER: Final = re.compile(r"`(\w+)/`")
# Of the architecture's table, whose other cells name folders below.
FIRST_CELL: Final = re.compile(r"^\| `(\w+)/` \|", re.MULTILINE)
# Paths that the architecture names, from the top.
NAMED: Final = re.compile(r"`((?:[\w.-]+/)+[\w.*-]*)(?::\d+)?`")
# Files that a package's docstring names.
OF_PACKAGE: Final = re.compile(r"`([\w/]+\.py)`")
# Files that a template names, from the top.
PYTHON_FILE: Final = re.compile(r"\b(?:\w+/)+\w+\.py\b")
# Where pip-compile's files are looked for.
OF_TOOLS: Final = {"requirements"}


def tracked(*patterns: str) -> list[Path]:
    """The repository's files that fit one of these patterns; all, if there is none."""
    command = ["git", "ls-files", *patterns]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return [Path(name) for name in found.stdout.splitlines()]


def folders_at_the_top() -> set[str]:
    folders = {path.parts[0] for path in tracked() if len(path.parts) > 1}
    return {folder for folder in folders if not folder.startswith(".")} - OF_TOOLS


def test_the_readmes_map_has_each_folder_at_the_top_and_no_other() -> None:
    found = MAP.search((ROOT / "README.md").read_text(encoding="utf-8"))
    assert found
    assert set(FOLDER.findall(found[0])) == folders_at_the_top()


def test_the_architectures_table_has_each_folder_at_the_top_and_no_other() -> None:
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    assert sorted(FIRST_CELL.findall(text)) == sorted(folders_at_the_top())


def test_the_architecture_names_files_that_are_there() -> None:
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    named = [path for path in NAMED.findall(text) if (ROOT / Path(path).parts[0]).exists()]
    assert len(named) > 50
    assert [path for path in named if not any(ROOT.glob(path.rstrip("/")))] == []


def test_templates_name_files_that_are_there() -> None:
    named = [
        f"{template}: {name}"
        for template in tracked("templates", "chart")
        for name in PYTHON_FILE.findall((ROOT / template).read_text(encoding="utf-8"))
    ]
    assert len(named) > 5
    assert [path for path in named if not (ROOT / path.partition(": ")[2]).exists()] == []


def test_packages_name_files_that_are_there() -> None:
    missing = [
        f"{init}: {name}"
        for init in tracked("*/__init__.py")
        for name in named_in(init)
        if not is_there(name, init.parent)
    ]
    assert missing == []


def named_in(init: Path) -> list[str]:
    """The files that a package's docstring names."""
    docstring = ast.get_docstring(ast.parse((ROOT / init).read_text(encoding="utf-8")))
    return OF_PACKAGE.findall(docstring or "")


def is_there(name: str, package: Path) -> bool:
    """Whether the package has a file of that name, or the folder around it, or the repository."""
    places = (package, package.parent, Path())
    return any((ROOT / place / name).is_file() for place in places)
