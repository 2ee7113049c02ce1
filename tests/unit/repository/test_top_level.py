"""What stands at the top of the repository, and the map that shows it."""

import re
import subprocess
from pathlib import Path
from typing import Final

REPOSITORY: Final = Path(__file__).resolve().parents[3]
MAP: Final = re.compile(r"^\| who \| folder \| what \|\n(?:\|.*\n)+", re.MULTILINE)
FOLDER: Final = re.compile(r"`(\w+)/`")
# Paths that the architecture names, from the top.
NAMED: Final = re.compile(r"`((?:[\w.-]+/)+[\w.*-]*)(?::\d+)?`")
# Where pip-compile's files are looked for.
OF_TOOLS: Final = {"requirements"}


def the_map(page: str) -> str:
    found = MAP.search((REPOSITORY / page).read_text(encoding="utf-8"))
    assert found, page
    return found[0]


def test_the_readme_and_the_architecture_show_the_same_map() -> None:
    assert the_map("README.md") == the_map("docs/architecture.md")


def test_the_map_has_each_folder_at_the_top_and_no_other() -> None:
    command = ["git", "ls-files"]
    tracked = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    paths = map(Path, tracked.stdout.splitlines())
    folders = {path.parts[0] for path in paths if len(path.parts) > 1}
    shown = {folder for folder in folders if not folder.startswith(".")}
    assert set(FOLDER.findall(the_map("README.md"))) == shown - OF_TOOLS


def test_the_architecture_names_files_that_are_there() -> None:
    text = (REPOSITORY / "docs/architecture.md").read_text(encoding="utf-8")
    named = [path for path in NAMED.findall(text) if (REPOSITORY / Path(path).parts[0]).exists()]
    assert len(named) > 50
    assert [path for path in named if not any(REPOSITORY.glob(path.rstrip("/")))] == []
