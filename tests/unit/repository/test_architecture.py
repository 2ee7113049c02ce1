"""docs/architecture.md names files that exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
# In backticks, from the top of the repository: a file, or a folder with its slash.
PATH = re.compile(
    r"`((?:roost|roost_core|generator|webhook|lab|templates|chart|tests|tools|docs|benchmarks)/[\w./-]*)(?=`)"
)


def test_every_file_that_the_page_names_exists() -> None:
    named = PATH.findall((ROOT / "docs" / "architecture.md").read_text(encoding="utf-8"))
    assert named
    assert [path for path in named if not (ROOT / path).exists()] == []
