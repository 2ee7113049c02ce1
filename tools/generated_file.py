"""Write generated files, or check that they are fresh: the command line of all
`tools/write_*.py`.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path


def write_or_check(files: Iterable[tuple[Path, str]], arguments: Sequence[str], writer: str) -> int:
    """Write each file whose text isn't on disk, or with `--check` name it; the exit code.

    files: where each belongs, and its text; one after the other, so that a text may quote a file
    before it. writer: the command that writes them.
    """
    if arguments not in ([], ["--check"]):
        print(f"usage: {writer} [--check]", file=sys.stderr)
        return 2
    is_stale = False
    for path, fresh in files:
        if path.exists() and path.read_text(encoding="utf-8") == fresh:
            continue
        if arguments:
            print(f"{path} is not fresh. Write it: {writer}", file=sys.stderr)
            is_stale = True
        else:
            path.write_text(fresh, encoding="utf-8")
    return 1 if is_stale else 0
