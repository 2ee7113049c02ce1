"""docs/architecture.md and docs/glossary.md name files that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
# In backticks, from the top of the repository: a file, or a folder with its slash.
PATH = re.compile(
    r"`((?:roost|roost_core|generator|webhook|templates|chart|tests|tools|docs|benchmarks)/[\w./-]*)(?=`)"
)


@pytest.mark.parametrize("page", ["architecture.md", "glossary.md"])
def test_every_file_that_the_page_names_exists(page: str) -> None:
    named = PATH.findall((ROOT / "docs" / page).read_text(encoding="utf-8"))
    assert len(named) > 15
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_where_a_change_goes_names_fifteen_changes_with_their_files() -> None:
    table = (ROOT / "docs/architecture.md").read_text(encoding="utf-8").partition("## Where a change goes")[2]
    rows = [line for line in table.splitlines() if line.startswith("| ")][1:]
    assert len(rows) >= 15
    assert [row for row in rows if not PATH.search(row)] == []
