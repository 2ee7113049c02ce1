"""Pages that messages name, and the pages of the command line."""

import re
from pathlib import Path
from typing import Final

import pytest

from tools import write_command_line

REPOSITORY: Final = Path(__file__).resolve().parents[3]
# A page that a message or a comment names, perhaps with a section.
PAGE: Final = re.compile(r"(?<![\w./])((?:lab/)?docs/[\w/-]+\.md)(?:#([\w-]+))?")
HEADING: Final = re.compile(r"^#+ (.+)$", re.MULTILINE)
NAMES_PAGES: Final = frozenset({".py", ".yaml", ".j2", ".txt", ".sh"})


def test_the_command_lines_pages_have_each_command(capsys: pytest.CaptureFixture[str]) -> None:
    page, lab = write_command_line.page(), write_command_line.lab_page()
    assert {"roost records export", "roost records import"} <= set(re.findall(r"^## (roost .+)$", lab, re.MULTILINE))
    assert "--certificate-folder" in page.partition("## roost webhook")[2].partition("## ")[0]
    assert write_command_line.main(["--wrong"]) == 2
    assert "usage: " in capsys.readouterr().err


def test_pages_and_sections_that_messages_and_comments_name_exist() -> None:
    folders = (
        "generator",
        "webhook",
        "roost",
        "roost_core",
        "lab/roost_lab",
        "chart",
        "templates",
        "benchmarks",
        "tools",
    )
    files = [path for folder in folders for path in (REPOSITORY / folder).rglob("*") if path.suffix in NAMES_PAGES]
    missing = []
    for path in files:
        for page, anchor in PAGE.findall(path.read_text(encoding="utf-8")):
            file = REPOSITORY / page
            headings = HEADING.findall(file.read_text(encoding="utf-8")) if file.is_file() else []
            if not file.is_file() or (anchor and anchor not in [slug(heading) for heading in headings]):
                missing.append(f"{path.relative_to(REPOSITORY)}: {page}#{anchor}")
    assert missing == []


def slug(heading: str) -> str:
    """The anchor of a heading, as forges and Sphinx make it."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
